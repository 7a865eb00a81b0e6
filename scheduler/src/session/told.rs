//! Which pods of a plan are told their nodes.
//!
//! Invariant: who is not told finds a place all the same, since nobody else is on the way who could
//! take it.

use longshore_core::answer::{Placement, Plan, Target, Told};

/// All pods are told of a plan that leaves fewer alone than this: a write for each of so few costs
/// less than to have them wait until all others have their places.
const LEFT_ALONE_MIN: usize = 64;

/// Before the first plan.
pub const ALL: &Told = &Told::All;

/// Who is told, by a plan whose launches have these claims, where pods are pinned or not: others
/// find any node that is open. Pods whose launch is put off, or not wanted any more, would take what
/// is open by the time they get a node.
pub fn told(plan: &Plan, launched: &[Option<String>], pins_pods: bool) -> Told {
    let Told::AllBut(free) = &plan.told else { return plan.told.clone() };
    let is_put_off = |place: &Placement| match place.target {
        Target::New(at) => launched.get(at).is_none_or(Option::is_none),
        Target::Claim(_) | Target::Node(_) => false,
    };
    let strays = |place: &Placement| plan.told.includes(&place.pod) && is_put_off(place);
    match pins_pods && free.len() >= LEFT_ALONE_MIN && !plan.placements.iter().any(strays) {
        true => plan.told.clone(),
        false => Told::All,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use longshore_core::ids::PodUid;

    use super::*;

    /// So many free pods on a node that is there, and one to be told on a launch.
    fn plan(free: usize) -> Plan {
        let free: BTreeSet<PodUid> =
            (0..free).map(|number| PodUid::new(&format!("free-{number:02}"))).collect();
        let node = |pod: &PodUid| Placement { pod: pod.clone(), target: Target::Node("n".into()) };
        let mut placements: Vec<Placement> = free.iter().map(node).collect();
        placements.push(Placement { pod: PodUid::new("other"), target: Target::New(0) });
        Plan { placements, told: Told::AllBut(free), ..Plan::default() }
    }

    #[test]
    fn many_are_left_alone_once_all_others_have_a_claim() {
        let claimed = [Some("claim".to_owned())];
        let all_but = plan(LEFT_ALONE_MIN);
        assert_eq!(told(&all_but, &claimed, true), all_but.told);
        assert_eq!(told(&all_but, &claimed, false), Told::All, "nominations keep nobody out");
        assert_eq!(told(&all_but, &[None], true), Told::All, "the other's launch is put off");
        assert_eq!(told(&plan(LEFT_ALONE_MIN - 1), &claimed, true), Told::All, "few");
        let none = Plan { told: Told::None, ..all_but };
        assert_eq!(told(&none, &[None], false), Told::None, "all are alike");
    }
}
