//! Who waits for whom, and what is remembered.

use std::convert::Infallible;

use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::client::Body;
use longshore_proto::cluster::v1::{
    CreateClaim, DirectiveStatus, DisruptClaim, PinPods, RecordLaunch, RegisterNode, ReleaseClaim,
};
use longshore_proto::types::v1::NodeClaim;
use longshore_runtime::platform::Platform;
use tower::service_fn;

use super::*;
use crate::counters::Counters;
use crate::events;
use crate::index::Store;

/// Hands whose API server has nothing, and never answers about what is called stuck.
fn hands() -> Directives {
    let call = |request: Request<Body>| async move {
        if request.uri().path().contains("stuck") {
            std::future::pending::<()>().await;
        }
        let status = serde_json::json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": "", "reason": "NotFound", "code": 404 });
        let mut answer = Response::new(Body::from(status.to_string().into_bytes()));
        *answer.status_mut() = StatusCode::NOT_FOUND;
        Ok::<_, Infallible>(answer)
    };
    let client = kube::Client::new(service_fn(call), "default");
    let (platform, counters) = (Platform::system(), Counters::default());
    let (events, _) = events::events(client.clone(), "test", counters.clone(), &platform);
    Directives::new(client, Store::new(platform.clock.clone()), events, counters, platform)
}

fn directive(id: &str, action: Action) -> Directive {
    Directive { directive_id: id.to_owned(), action: Some(action), ..Directive::default() }
}

fn release(claim: &str) -> Action {
    Action::ReleaseClaim(ReleaseClaim { claim: claim.to_owned(), on_absence: false })
}

/// One session: these directives in, as many results out as asked for.
async fn session(hands: &Directives, all: Vec<Directive>, wanted: usize) -> Vec<DirectiveResult> {
    let (queue, directives) = mpsc::channel(DIRECTIVE_QUEUE);
    let (results, mut answers) = mpsc::channel(DIRECTIVE_QUEUE);
    all.into_iter().for_each(|directive| queue.try_send(directive).unwrap());
    let collect = async {
        let mut out = Vec::new();
        while out.len() < wanted {
            out.push(answers.recv().await.unwrap());
        }
        out
    };
    tokio::select! {
        out = collect => out,
        () = hands.run(directives, results) => panic!("the session ended by itself"),
        () = tokio::time::sleep(Duration::from_secs(3600)) => panic!("an answer never comes"),
    }
}

#[tokio::test(start_paused = true)]
async fn deletions_wait_neither_for_nodes_that_open_nor_for_other_writes() {
    let hands = hands();
    let register =
        Action::RegisterNode(RegisterNode { claim: "stuck".to_owned(), ..Default::default() });
    let mut all: Vec<Directive> =
        (0..1_000).map(|n| directive(&format!("r{n}"), register.clone())).collect();
    all.push(directive("end", release("c1")));
    let results = session(&hands, all, 1).await;
    assert_eq!(
        (results[0].directive_id.as_str(), results[0].status()),
        ("end", DirectiveStatus::Done)
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_done_ahead_of_time_delays_nothing() {
    let (hands, uid) = (hands(), "stuck".to_owned());
    hands.store.update(|index| {
        let pod = serde_json::from_value::<Pod>(serde_json::json!({
            "metadata": { "namespace": "default", "name": uid, "uid": uid },
            "spec": { "containers": [] },
        }));
        index.apply(ObjectReference::default(), pod.map_err(|error| error.to_string()));
    });
    let pin = |n| {
        let pods = vec![uid.clone()];
        directive(&format!("p{n}"), Action::PinPods(PinPods { claim: format!("c{n}"), pods }))
    };
    let mut all: Vec<Directive> = (0..DIRECTIVE_QUEUE - 1).map(pin).collect();
    let register = RegisterNode { claim: "gone".to_owned(), ..Default::default() };
    all.push(directive("opens", Action::RegisterNode(register)));
    let results = session(&hands, all, 1).await;
    assert_eq!(results[0].directive_id, "opens");
}

#[tokio::test(start_paused = true)]
async fn directives_about_one_claim_keep_their_order() {
    let hands = hands();
    let disrupt =
        Action::DisruptClaim(DisruptClaim { claim: "stuck".to_owned(), ..Default::default() });
    let all = vec![
        directive("first", disrupt),
        directive("second", release("stuck")),
        directive("another", release("c2")),
    ];
    let results = session(&hands, all, 1).await;
    assert_eq!(results[0].directive_id, "another", "the second waits for the first");
}

#[tokio::test(start_paused = true)]
async fn answers_of_an_earlier_session_are_not_given_again() {
    let hands = hands();
    let record =
        Action::RecordLaunch(RecordLaunch { claim: "c1".to_owned(), ..Default::default() });
    let first = vec![directive("d1", record), directive("d1", release("c1"))];
    let results = session(&hands, first, 2).await;
    let statuses: Vec<_> = results.iter().map(DirectiveResult::status).collect();
    assert_eq!(statuses, [DirectiveStatus::Refused; 2], "within a session they are");
    let results = session(&hands, vec![directive("d1", release("c1"))], 1).await;
    assert_eq!(results[0].status(), DirectiveStatus::Done, "carried out, not remembered");
}

#[tokio::test(start_paused = true)]
async fn a_directive_expires_by_how_long_it_has_waited_here() {
    // By the clock of the host that sent it, its time has been over for decades.
    let expire_time = Some(prost_types::Timestamp { seconds: 1, nanos: 0 });
    let directive = Directive { expire_time, ..Directive::default() };
    let lasting = Arrived { directive: Directive::default(), at: Instant::now() };
    let arrived = Arrived { directive, at: Instant::now() };
    assert!(!arrived.is_expired(0));
    tokio::time::advance(WAIT_MAX + Duration::from_millis(1)).await;
    assert!(arrived.is_expired(0));
    assert!(!lasting.is_expired(0), "one without a time waits as long as it takes");
}

#[tokio::test(start_paused = true)]
async fn no_pod_waits_for_a_claim_that_could_not_be_made() {
    let hands = hands();
    let claim = NodeClaim {
        name: "c1".to_owned(),
        launch_id: "l-1".to_owned(),
        node_class: "EC2NodeClass/default".to_owned(),
        ..NodeClaim::default()
    };
    let pods = vec!["p-1".to_owned()];
    let create = CreateClaim { claim: Some(claim), pods, ..CreateClaim::default() };
    assert!(hands.create_claim(&create).await.is_err(), "the API server has no such kind");
    let waits = hands.store.read(|index| index.planned_claims().map(str::to_owned).last());
    assert_eq!(waits, None);
}
