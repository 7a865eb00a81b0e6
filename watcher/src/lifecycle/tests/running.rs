//! Whether the places that were planned were taken.

use super::*;
use crate::counters::Places;

#[test]
fn a_claims_trace_ends_when_its_pods_run() {
    let mut index = Index::default();
    apply::<NodeClaim>(&mut index, claim(json!({})));
    let pending = json!({ "spec": { "nodeName": "" }, "status": { "phase": "Pending" } });
    for name in ["p", "q"] {
        apply::<Pod>(&mut index, pod(name, pending.clone()));
    }
    let planned = ["p", "q", "gone"].map(str::to_owned);
    index.plan_for("c1", &planned, &[]);
    apply::<Pod>(&mut index, pod("p", json!({})));
    assert!(counted(&index).is_empty(), "one waits");
    apply::<Pod>(&mut index, pod("q", json!({ "spec": { "nodeName": "elsewhere" } })));
    let running = |planned, realised, free| Step::Running {
        claim: "c1".to_owned(),
        places: Places { planned, realised, free },
    };
    assert_eq!(counted(&index), [running(2, 1, 0)]);
    apply::<Pod>(&mut index, pod("r", pending));
    assert!(counted(&index).is_empty(), "it may still come");
    apply::<Pod>(&mut index, pod("r", json!({})));
    assert_eq!(counted(&index), [running(2, 2, 0)], "it is like the one that went elsewhere");
    apply::<Pod>(&mut index, pod("s", json!({})));
    assert_eq!(counted(&index), [running(3, 2, 0)], "it was not planned here");
    index.plan_for("c1", &planned, &planned);
    assert_eq!(counted(&index), [running(0, 0, 2)], "any place is as good");
}

#[test]
fn who_need_not_be_told_takes_nobodys_place() {
    let mut index = Index::default();
    apply::<NodeClaim>(&mut index, claim(json!({})));
    let large = json!({ "spec": { "containers": [
        { "name": "main", "resources": { "requests": { "cpu": "2" } } },
    ] } });
    apply::<Pod>(&mut index, pod("told", large));
    for name in ["free", "like it"] {
        apply::<Pod>(&mut index, pod(name, json!({})));
    }
    let planned = ["told", "free"].map(str::to_owned);
    index.plan_for("c1", &planned, &planned[1..]);
    let places = Places { planned: 1, realised: 1, free: 1 };
    assert_eq!(counted(&index), [Step::Running { claim: "c1".to_owned(), places }]);
}

fn counted(index: &Index) -> Vec<Step> {
    let steps = activity::steps(index, NOW_MS).into_iter();
    steps.filter(|step| matches!(step, Step::Running { .. })).collect()
}
