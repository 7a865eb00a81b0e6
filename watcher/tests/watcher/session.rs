//! The session: what a scheduler is told, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use http::Uri;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::DeleteParams;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::sync_response::Message as Answer;
use longshore_proto::cluster::v1::{Directive, GoAway, Welcome};
use longshore_proto::reason::Reason;
use longshore_runtime::net::{Network, Stream, Transport};
use longshore_runtime::platform::Platform;
use longshore_runtime::tasks::Supervisor;
use longshore_runtime::telemetry::{self, LogFormat, TelemetryArgs};
use longshore_watcher::api::crd::Kind;
use longshore_watcher::api::{NodeClaim, NodePool};
use longshore_watcher::{Config, Watcher};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::support::{World, create, create_claim, install, node_pool, pod, pool, within};

#[tokio::test]
async fn a_session_holds_what_the_cluster_holds() {
    let account = |config| Config { account_id: "012345678901".to_owned(), ..config };
    let mut world = World::with(account, &Kind::ALL).await;
    create(&world.pods(), pod("before")).await;
    let (hello, mut session) = world.scheduler.session().await;
    assert_eq!((hello.cluster_id.as_str(), hello.protocol_version), ("test", 1));
    assert_eq!((hello.account_id.as_str(), hello.region.as_str()), ("012345678901", "us-east-1"));
    let namespaces = world.all::<k8s_openapi::api::core::v1::Namespace>();
    let uid = namespaces.get("kube-system").await.unwrap().metadata.uid.unwrap();
    assert_eq!(hello.cluster_uid, uid);
    session.until("the pod", |view| view.pod("before").is_some()).await;
    let facts = session.view.cluster().unwrap();
    assert_eq!((facts.name.as_str(), facts.region.as_str()), ("test", "us-east-1"));
    assert_eq!(facts.kubernetes_version, "1.35");
    assert_eq!((&facts.uid, facts.account_id.as_str()), (&uid, "012345678901"));
    create(&world.pods(), pod("after")).await;
    session.until("the new pod", |view| view.pod("after").is_some()).await;
    world.pods().delete("before", &DeleteParams::default().grace_period(0)).await.unwrap();
    session.until("its end", |view| view.pod("before").is_none()).await;
    session.view.bookmarks.clear();
    session.until("a bookmark", |view| !view.bookmarks.is_empty()).await;
    world.stop().await;
}

#[tokio::test]
async fn the_epoch_is_in_the_lease_and_grows_with_each_session() {
    let mut world = World::start().await;
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), "kube-system");
    let epoch = |lease: Option<&Lease>| -> Option<u64> {
        lease?.metadata.annotations.as_ref()?.get("longshore.dev/session-epoch")?.parse().ok()
    };
    let (first, session) = world.scheduler.session().await;
    let lease = leases.get("longshore-watcher").await.unwrap();
    assert_eq!(epoch(Some(&lease)), Some(first.session_epoch));
    drop(session);
    let (second, session) = world.scheduler.session().await;
    assert!(second.session_epoch > first.session_epoch);
    session.send(Answer::GoAway(GoAway::default())).await;
    let (third, _session) = world.scheduler.session().await;
    assert!(third.session_epoch > second.session_epoch);
    world.stop().await;
}

#[tokio::test]
async fn a_resync_brings_everything_again() {
    let mut world = World::start().await;
    create(&world.pods(), pod("a")).await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pod", |view| view.pod("a").is_some()).await;
    session.resync().await;
    session.until("the pod again", |view| view.pod("a").is_some()).await;
    create(&world.pods(), pod("b")).await;
    session.until("deltas go on", |view| view.pod("b").is_some()).await;
    world.stop().await;
}

#[tokio::test]
async fn a_scheduler_that_remembers_is_sent_what_it_missed() {
    let mut world = World::start().await;
    create(&world.pods(), pod("a")).await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pod", |view| view.pod("a").is_some()).await;
    session.view.bookmarks.clear();
    session.until("it is quiet", |view| !view.bookmarks.is_empty()).await;
    let view = std::mem::take(&mut session.view);
    drop(session);
    let (hello, mut session) = world.scheduler.hello().await;
    let revision = view.revision.unwrap();
    assert_eq!(hello.resume_token, format!("at-{revision}").into_bytes());
    session.view = view;
    let resumed =
        Welcome { resumed: true, resume_revision: revision, window: 8, ..Welcome::default() };
    session.welcome(resumed).await;
    create(&world.pods(), pod("b")).await;
    session.until("the new pod", |view| view.pod("b").is_some()).await;
    assert!(session.view.pod("a").is_some());
    world.stop().await;
}

/// Counts connections on their way.
struct Counting(Arc<AtomicUsize>);

impl Transport for Counting {
    fn connect(&self, uri: Uri) -> BoxFuture<'static, std::io::Result<Stream>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let address = uri.authority().map(ToString::to_string).unwrap_or_default();
        Box::pin(async move { Ok(Stream::new(TcpStream::connect(address).await?)) })
    }
}

#[tokio::test]
async fn each_session_has_a_connection_of_its_own_which_may_lead_elsewhere() {
    let connections = Arc::new(AtomicUsize::new(0));
    let transport: Arc<dyn Transport> = Arc::new(Counting(Arc::clone(&connections)));
    let mut platform = Platform::system();
    platform.network = Network::Given(transport);
    let supervisor = Supervisor::new(CancellationToken::new(), platform);
    let mut world = World::on(supervisor, |config| config, &Kind::ALL).await;
    let (_, session) = world.scheduler.session().await;
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    session.send(Answer::GoAway(GoAway::default())).await;
    let (_, _session) = world.scheduler.session().await;
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    world.stop().await;
}

#[tokio::test]
async fn a_scheduler_of_a_distant_version_is_not_worked_with() {
    let mut world = World::start().await;
    let (_, session) = world.scheduler.hello().await;
    let distant = Welcome { window: 8, protocol_version: 99, ..Welcome::default() };
    session.welcome(distant).await;
    // The watcher ends that session and tries again; an older scheduler does not tell its version.
    let (_, _session) = world.scheduler.session().await;
    world.stop().await;
}

#[tokio::test]
async fn another_protocol_version_is_not_the_end() {
    let mut world = World::start().await;
    let (_, session) = world.scheduler.hello().await;
    session.refuse(Reason::ProtocolVersion.status("too new")).await;
    let (_, _session) = world.scheduler.session().await;
    world.stop().await;
}

/// Spans have contexts from here on, in every test of this process; none leaves it.
fn record_traces() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let args = TelemetryArgs {
            log_format: LogFormat::Human,
            log: "off".to_owned(),
            otlp_endpoint: None,
            otlp_traces_endpoint: None,
            otel_disabled: "false".to_owned(),
        };
        // The guard only flushes, and there is nothing to flush to.
        std::mem::forget(telemetry::init("watcher-test", &args).unwrap());
    });
}

/// Trace id of a W3C traceparent.
fn trace_id(traceparent: &str) -> &str {
    traceparent.split('-').nth(1).unwrap_or_default()
}

#[tokio::test]
async fn one_trace_goes_from_the_waiting_pod_to_its_claim() {
    record_traces();
    let mut world = World::start().await;
    pool(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pool", |view| view.pool("default").is_some()).await;
    session.view.traceparents.clear();
    create(&world.pods(), pod("a")).await;
    session.until("the pod", |view| view.pod("a").is_some()).await;
    let traced = session.view.traceparents.iter().find(|t| !t.is_empty()).cloned().unwrap();
    let mut action = create_claim("c1", &[]);
    if let Action::CreateClaim(create) = &mut action {
        create.claim.as_mut().unwrap().traceparent.clear();
    }
    let directive = Directive {
        directive_id: "d".to_owned(),
        traceparent: traced.clone(),
        action: Some(action),
        ..Directive::default()
    };
    session.send_directive(directive).await;
    let claim = world.all::<NodeClaim>().get("c1").await.unwrap();
    let kept = &claim.metadata.annotations.unwrap()["longshore.dev/traceparent"];
    assert_eq!(trace_id(kept), trace_id(&traced));
    assert_ne!(*kept, traced, "the claim's own span is a child of the observation");
    world.stop().await;
}

#[tokio::test]
async fn a_standby_takes_over_when_the_holder_ends() {
    let mut world = World::start().await;
    let (_, session) = world.scheduler.session().await;
    let standby =
        Supervisor::new(CancellationToken::new(), longshore_runtime::platform::Platform::system());
    let config = Config {
        region: "us-east-1".to_owned(),
        identity: "standby".to_owned(),
        ..Config::new("test", &world.scheduler.endpoint)
    };
    let mut second = Watcher::start(config, world.client.clone(), &standby).await.unwrap();
    assert!(!*second.connected.borrow_and_update());
    world.supervisor.token().cancel();
    drop(session);
    let (_, _session) = world.scheduler.session().await;
    within("the standby is connected", second.connected.wait_for(|c| *c)).await.unwrap();
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), "kube-system");
    let lease = leases.get("longshore-watcher").await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("standby"));
    standby.token().cancel();
    standby.join(super::scheduler::DEADLINE).await.unwrap();
    world.stop().await;
}

#[tokio::test]
async fn kinds_may_be_installed_late() {
    let mut world = World::with(|config| config, &[Kind::NodeClaim, Kind::EC2NodeClass]).await;
    let (_, mut session) = world.scheduler.session().await;
    install(&world.client, &[Kind::NodePool]).await;
    create(&world.all::<NodePool>(), node_pool("late")).await;
    session.until("the pool", |view| view.pool("late").is_some()).await;
    world.stop().await;
}
