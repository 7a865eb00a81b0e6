//! Tables of nodes with which something is wrong.

use super::super::repair;
use super::*;

/// A node in service, since long ago, that has ailed for as long as is put up with, and as long
/// seen to.
fn ailing() -> Case {
    let mut case = Case::new().provided().launch(LaunchPhase::Launched);
    case = case.instance(InstancePhase::Running).node();
    case.claim.pool = "p".to_owned();
    case.claim.register_time = case.claim.create_time;
    case.claim.initialize_time = case.claim.create_time;
    case.pools.insert("p".to_owned(), NodePool::default());
    let what = Some(("Ready is Unknown".to_owned(), NOW_MS));
    case.nodes.values_mut().for_each(|node| node.ailing.clone_from(&what));
    case.lasting("ailing/default-a", repair::SEEN_MS)
}

#[test]
fn a_node_that_ails_for_too_long_goes_at_once() {
    let due = ailing().dues().remove(0);
    assert_eq!(due.evidence, Evidence::Absence("default-a".to_owned()), "the breaker is asked");
    let Step::Direct { action, .. } = due.step else { panic!("no directive") };
    let Action::DeleteClaim(delete) = *action else { panic!("{action:?}") };
    assert_eq!((delete.reason.as_str(), delete.at_once), ("Unhealthy", true));
    assert!(delete.message.contains("Ready is Unknown"), "{}", delete.message);
}

#[test]
fn a_node_is_put_up_with_until_then_and_where_its_pool_says_so() {
    let changes: [fn(&mut Case); 5] = [
        |it| it.nodes.values_mut().for_each(|node| node.ailing.as_mut().unwrap().1 += 1),
        |it| it.sightings.clear(),
        |it| it.pools.get_mut("p").unwrap().keeps_ailing_nodes = true,
        |it| it.pools.clear(),
        |it| it.claim.initialize_time = None,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut case = ailing();
        change(&mut case);
        assert_eq!(case.only(), None, "change {at}");
    }
}

#[test]
fn of_many_that_ail_none_goes_and_the_pool_hears_of_it() {
    let mut case = ailing();
    assert!(case.seen(blocked).is_empty());
    for number in 0..5 {
        let (name, provider_id) = (format!("other-{number}"), format!("aws:///z/i-9{number}"));
        case.others.push(NodeClaim {
            name,
            provider_id: provider_id.clone(),
            ..case.claim.clone()
        });
        let ailing = case.nodes["aws:///z/i-1"].ailing.clone().filter(|_| number < 2);
        case.nodes.insert(provider_id, Joined { ailing, ..joined() });
    }
    let goes = |step: &Step| matches!(step, Step::Direct { claim, .. } if claim == "default-a");
    assert!(!case.steps().iter().any(goes), "three of six");
    assert!(case.seen(blocked)["p"].starts_with("3 of 6 nodes ail"));
    case.nodes.get_mut("aws:///z/i-90").unwrap().ailing = None;
    assert!(case.steps().iter().any(goes), "two of six");
    assert!(case.seen(blocked).is_empty());
}
