//! Every kind of caller against every method: who is let in is written out here once more, so that
//! no change of the table goes unseen.

use super::*;

const CLUSTER: &str = "longshore://cluster/111122223333/us-east-1/prod";
const SCHEDULER: &str = "longshore://scheduler";
const ACTUATOR: &str = "longshore://actuator/111122223333/us-east-1";
/// Clients by what they may do; the last is nobody's acquaintance.
const CLIENTS: [&str; 4] = ["planner", "explainer", "onlooker", "stranger"];

fn guard() -> Guard {
    Guard::new("planner=plan,explainer=explain,onlooker=watch".parse().unwrap())
}

fn peer(uri: &str) -> Peer {
    Peer { address: None, identity: Some(Arc::new(uri.parse().unwrap())) }
}

fn callers() -> Vec<(&'static str, String)> {
    let ours = [("cluster", CLUSTER), ("scheduler", SCHEDULER), ("actuator", ACTUATOR)];
    let ours = ours.into_iter().map(|(name, uri)| (name, uri.to_owned()));
    ours.chain(CLIENTS.map(|name| (name, format!("longshore://client/{name}")))).collect()
}

#[test]
fn each_method_answers_those_who_may_call_it_and_nobody_else() {
    let everybody = "cluster scheduler actuator planner explainer onlooker";
    for (method, may) in [
        ("/longshore.cluster.v1.ClusterService/Sync", "cluster"),
        ("/longshore.planning.v1.PlanningService/ComputePlan", "planner"),
        ("/longshore.planning.v1.PlanningService/StreamPlan", "planner"),
        ("/longshore.planning.v1.PlanningService/ExplainPod", "explainer"),
        ("/longshore.planning.v1.PlanningService/ExplainNode", "explainer"),
        ("/longshore.capacity.v1.CapacityService/PutCluster", "scheduler"),
        ("/longshore.capacity.v1.CapacityService/ApplyPlan", "scheduler"),
        ("/longshore.capacity.v1.CapacityService/ForgetCluster", "scheduler"),
        ("/longshore.capacity.v1.CapacityService/Watch", "scheduler onlooker"),
        ("/grpc.health.v1.Health/Check", everybody),
        ("/grpc.health.v1.Health/Watch", everybody),
        ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", everybody),
        ("/longshore.capacity.v1.CapacityService/", ""),
        ("/longshore.capacity.v1.CapacityService/Watch/", ""),
        ("/longshore.capacity.v1.CapacityService/Unheard", ""),
        ("/", ""),
    ] {
        for (name, uri) in callers() {
            let admitted = guard().admit(&peer(&uri), method).is_ok();
            assert_eq!(admitted, may.split(' ').any(|one| one == name), "{name} calls {method}");
        }
        let nobody = guard().admit(&Peer::default(), method);
        assert!(nobody.is_err(), "nobody calls {method}");
    }
}

#[test]
fn a_refusal_says_who_called_what_and_what_was_needed() {
    let refusal = |caller: &Peer, method: &str| guard().admit(caller, method).unwrap_err();
    let apply = "/longshore.capacity.v1.CapacityService/ApplyPlan";
    assert_eq!(
        refusal(&peer(CLUSTER), apply).to_string(),
        format!("{CLUSTER} may not call {apply}: it needs the right scheduler")
    );
    let watch = "/longshore.capacity.v1.CapacityService/Watch";
    let told = refusal(&peer("longshore://client/stranger"), watch).to_string();
    assert!(told.ends_with("it needs the right scheduler or watch"), "{told}");
    assert_eq!(refusal(&Peer::default(), apply), Refusal::Nobody { method: apply.to_owned() });
    assert_eq!(refusal(&peer(SCHEDULER), "/x/y"), Refusal::Method("/x/y".to_owned()));
}

#[test]
fn rights_are_given_by_name() {
    let clients = |text: &str| text.parse::<Clients>();
    assert_eq!(clients(""), Ok(Clients::default()));
    let both = clients("ci=plan+explain,grafana=watch").unwrap();
    assert_eq!(clients("grafana=watch,ci=explain,ci=plan"), Ok(both));
    for wrong in ["ci", "=plan", "a/b=plan", "ci=", "ci=scheduler", "ci=plan+", "ci = plan"] {
        assert!(clients(wrong).is_err(), "{wrong}");
    }
}
