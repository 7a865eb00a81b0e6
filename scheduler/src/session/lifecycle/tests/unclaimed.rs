//! Tables of instances without a claim.

use super::*;

#[test]
fn an_orphan_is_ended_only_when_everything_speaks_for_it() {
    let orphan = |lasted_ms: i64| {
        let mut case = Case::new().launch(LaunchPhase::Pending).instance(InstancePhase::Running);
        case.claim.name = "other".to_owned();
        let mut instance = case.region.instances["i-1"].clone();
        instance.launch_id = "l2".to_owned();
        instance.launch_time = Some(Timestamp { seconds: 0, nanos: 0 });
        case.put(instance);
        case.lasting("orphan/i-1", lasted_ms)
    };
    let changed = |change: fn(&mut InstanceState)| {
        let mut case = orphan(orphans::ORPHAN_AFTER_MS);
        let mut instance = case.region.instances["i-1"].clone();
        change(&mut instance);
        case.put(instance);
        case
    };
    let ended = orphan(orphans::ORPHAN_AFTER_MS);
    assert_eq!(ended.only().as_deref(), Some("terminate i-1"));
    assert_eq!(ended.dues()[0].evidence, Evidence::Absence("i-1".to_owned()));
    assert_eq!(orphan(orphans::ORPHAN_AFTER_MS - 1).only(), None, "seen for too short");
    assert_eq!(changed(|i| i.cluster_id = "d".to_owned()).only(), None, "of another cluster");
    let young = Timestamp { seconds: NOW_MS / 1000, nanos: 0 };
    let mut fresh = orphan(orphans::ORPHAN_AFTER_MS);
    let mut instance = fresh.region.instances["i-1"].clone();
    instance.launch_time = Some(young);
    fresh.put(instance);
    assert_eq!(fresh.only(), None, "EC2 says that it is young");
    for (kind, key) in [(ObjectKind::NodeClaim, "default-a"), (ObjectKind::NodeClaim, "")] {
        let hidden = orphan(orphans::ORPHAN_AFTER_MS).unreadable(kind, key);
        assert_eq!(hidden.only(), None, "its claim cannot be read");
    }
    let mut unsettled = orphan(orphans::ORPHAN_AFTER_MS);
    unsettled.settled = false;
    assert_eq!(unsettled.only(), None, "its claim may still come");
    let serving = orphan(orphans::ORPHAN_AFTER_MS).node();
    assert_eq!(serving.only(), None, "a node of the cluster runs on it");
    let serving = orphan(orphans::NODE_ORPHAN_AFTER_MS).node();
    assert_eq!(serving.only().as_deref(), Some("terminate i-1"));
    let closed = orphan(orphans::ORPHAN_AFTER_MS).node().closed();
    assert_eq!(closed.only().as_deref(), Some("terminate i-1"), "nobody ever let its node in");
}

#[test]
fn what_another_autoscaler_launched_is_ended_when_no_node_serves_on_it_and_no_claim_names_it() {
    let stray = |lasted_ms: i64| {
        let mut case = Case::new().instance(InstancePhase::Running);
        case.claim.provider_id = "aws:///z/i-2".to_owned();
        case.claim.register_time = Some(Timestamp::default());
        let mut instance = case.region.instances["i-1"].clone();
        instance.launch_time = Some(Timestamp { seconds: 0, nanos: 0 });
        case.put(instance);
        case.lasting("orphan/i-1", lasted_ms)
    };
    let lasted = || stray(orphans::ADOPTED_ORPHAN_AFTER_MS);
    assert_eq!(lasted().only().as_deref(), Some("terminate i-1"));
    assert_eq!(lasted().dues()[0].evidence, Evidence::Absence("i-1".to_owned()));
    let mut beside = lasted();
    let original = beside.region.instances["i-1"].clone();
    beside.put(InstanceState { instance_id: "i-2".to_owned(), ..original });
    assert_eq!(beside.dues()[0].evidence, Evidence::Told, "its claim has another one, which lives");
    assert_eq!(stray(orphans::ADOPTED_ORPHAN_AFTER_MS - 1).only(), None, "seen for too short");
    let named = |provider_id: &str| {
        let mut case = lasted();
        case.claim.provider_id = provider_id.to_owned();
        case.seen(|world| world.unclaimed().count())
    };
    assert_eq!((named(""), named("aws:///z/i-1")), (0, 0), "it is its claim's");
    assert_eq!(lasted().node().only(), None, "a node serves on it");
    assert_eq!(lasted().node().unready().only(), None, "it serves, and is not well for now");
    let joined = lasted().node().closed();
    assert_eq!(joined.only().as_deref(), Some("terminate i-1"), "nobody ever let it in");
    for key in ["", "default-z"] {
        let hidden = lasted().unreadable(ObjectKind::NodeClaim, key);
        assert_eq!(hidden.only(), None, "its claim may be the one that cannot be read");
    }
}
