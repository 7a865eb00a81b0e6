//! A panic in each loop and each task of the leader: the term ends where the loop is the region's,
//! the launch waits where it is a launch's own, and all launches are made once.

use std::sync::Arc;
use std::time::Duration;

use longshore_lab::instance::InstanceSource;
use longshore_lab::region::{CLUSTER, CONTROLLER_KEY, Region, RegionConfig};
use longshore_lab::trap::Trap;
use longshore_lab::tripwire::Tripwire;
use longshore_proto::capacity::v1::LaunchPhase;
use longshore_proto::types::v1::{CapacityType, ClusterFacts, Termination};
use longshore_runtime::clock::Clock;
use longshore_runtime::platform::{Confine, Platform, Work};

use crate::world::{Actuator, Client, class, facts};

const TYPES: [&str; 1] = ["t4g.small"];
/// Longest wait for a loop to ask for the time, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Loops whose panic ends the term: whoever watches is told, and finds the next term.
const OF_THE_REGION: [&str; 3] = [
    "longshore_actuator::work::reconciling::",
    "longshore_actuator::work::catalogues::",
    "longshore_actuator::work::offerings::",
];
/// Loops that ask AWS as soon as a term begins, or as a cluster is described: their panic ends the
/// term.
const THAT_LOOK: [&str; 5] = [
    "longshore_actuator::work::instances::",
    "longshore_actuator::work::market::listing",
    "longshore_actuator::work::market::spot",
    "longshore_actuator::work::market::on_demand",
    "longshore_actuator::work::classes::",
];
/// Work of one of many, whose panic is its own.
const OF_ONE: [&str; 2] =
    ["longshore_actuator::work::launch::attempt::", "longshore_actuator::service::apply::"];

/// The task of one launch: its panic ends no term, and it may be over by the time that it is looked
/// for.
const OF_A_LAUNCH: &str = "launch";
/// Tasks of the process, not of a term: their end is the end of the process.
const OF_THE_PROCESS: [&str; 3] = ["actuator", "grpc", "readiness"];

/// Tasks with a wire across them.
struct Wired(Tripwire);

impl Confine for Wired {
    fn work<'a>(&self, task: &'static str, work: Work<'a>) -> Work<'a> {
        self.0.work(task, work)
    }
}

/// A region with an actuator whose clock and tasks panic.
struct Scene {
    region: longshore_lab::region::RegionHandle,
    actuator: Actuator,
    trap: Trap,
    tripwire: Tripwire,
    /// Sessions and launches so far.
    epoch: u64,
    launches: u64,
}

impl Scene {
    async fn new() -> Self {
        Self::with(Trap::default()).await
    }

    /// A scene in which the trap may be set already.
    async fn with(trap: Trap) -> Self {
        let region = Region::start(RegionConfig::simple("us-east-1").unwrap()).await.unwrap();
        let reader = trap.clone();
        let clock = Clock::reading(move || reader.now_ms());
        let tripwire = Tripwire::default();
        let confinement: Option<Arc<dyn Confine>> = Some(Arc::new(Wired(tripwire.clone())));
        let platform = Platform { clock, confinement, ..Platform::system() };
        let actuator = Actuator::start_on(platform, &region, CONTROLLER_KEY, &[]).await;
        Self { region, actuator, trap, tripwire, epoch: 0, launches: 0 }
    }

    /// A client that may launch, as the scheduler is one after each loss of its stream.
    async fn client(&mut self) -> Client {
        self.epoch += 1;
        let mut client = Client::connect(&self.actuator.address, self.epoch).await;
        client.put_cluster(facts(), vec![class()]).await.unwrap();
        client.until("class ready", |shown| shown.class_ready()).await;
        client
    }

    /// Asks for one more launch with this client, until it is taken.
    async fn launch(&mut self, client: &mut Client) -> String {
        self.launches += 1;
        let id = format!("l-{}", self.launches);
        let launch = client.shown.launch(&id, client.shown.candidates(&TYPES, CapacityType::Spot));
        // A panic in the handler breaks the call: the scheduler, too, asks again.
        while client.apply(self.launches, vec![launch.clone()], vec![]).await.is_err() {
            *client = self.client().await;
        }
        id
    }

    /// Launches once more, and says with which client, id and instance.
    async fn launched(&mut self) -> (Client, String, String) {
        let mut client = self.client().await;
        let id = self.launch(&mut client).await;
        self.settled(&mut client).await;
        let instance_id = client.shown.launches[&id].instance_id.clone();
        (client, id, instance_id)
    }

    /// Waits until the loop has panicked.
    async fn sprung(&self, place: &str) {
        let waiting = async {
            let mut looks = tokio::time::interval(Duration::from_millis(20));
            while self.trap.is_set() {
                looks.tick().await;
            }
        };
        tokio::time::timeout(LIMIT, waiting).await.unwrap_or_else(|_| panic!("{place}: no panic"));
    }

    /// Lets a task panic that is at work, and waits until it begins again in another term, or the
    /// process has ended.
    async fn panics(&self, task: &str) {
        // Another task of the term shows that it is another one.
        let witness = if task == "ledger" { "reconcile" } else { "ledger" };
        let begun = || [task, witness].map(|it| self.tripwire.begun(it));
        let before = begun();
        let again = || begun().iter().zip(before).all(|(now, before)| *now > before);
        let over = async {
            let mut looks = tokio::time::interval(Duration::from_millis(20));
            // One that waits after an error is at work again soon.
            while !self.tripwire.trip(task) {
                looks.tick().await;
            }
            while !again() && self.actuator.goes_on() {
                looks.tick().await;
            }
        };
        let over = tokio::time::timeout(LIMIT, over).await;
        over.unwrap_or_else(|_| panic!("{task}: no other term"));
    }

    /// All launches are launched, each with one instance.
    async fn settled(&self, client: &mut Client) {
        for number in 1..=self.launches {
            let id = format!("l-{number}");
            client.until(&id, |shown| shown.phase(&id) == LaunchPhase::Launched).await;
        }
        assert_eq!(u64::try_from(self.region.instances().len()).unwrap(), self.launches);
        assert!(self.actuator.goes_on(), "the process has ended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_loop_of_the_region_ends_the_term_and_the_next_one_goes_on() {
    let mut scene = Scene::new().await;
    for place in OF_THE_REGION {
        let mut client = scene.client().await;
        scene.trap.set(place);
        scene.launch(&mut client).await;
        scene.sprung(place).await;
        client.end().await;
        scene.launched().await;
    }
    scene.actuator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_a_loop_that_looks_at_ec2_ends_the_term_and_the_next_one_looks() {
    for place in THAT_LOOK {
        let trap = Trap::default();
        trap.set(place);
        let mut scene = Scene::with(trap).await;
        scene.epoch += 1;
        let mut client = Client::connect(&scene.actuator.address, scene.epoch).await;
        // The term may be over already.
        let described = client.put_cluster(facts(), vec![class()]).await;
        scene.sprung(place).await;
        if described.is_err() || place.contains("classes") {
            client.end().await;
        }
        scene.launched().await;
        scene.actuator.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_while_an_instance_is_ended_leaves_it_to_the_next_term() {
    let (mut scene, place) = (Scene::new().await, "longshore_actuator::work::terminate::");
    let (mut client, id, instance_id) = scene.launched().await;
    let end = Termination { launch_id: id.clone(), instance_id, ..Termination::default() };
    scene.trap.set(place);
    client.apply(scene.launches + 1, vec![], vec![end]).await.unwrap();
    scene.sprung(place).await;
    client.end().await;
    let mut client = scene.client().await;
    client.until("ended", |shown| shown.phase(&id) == LaunchPhase::Terminated).await;
    assert!(scene.actuator.goes_on(), "the process has ended");
    scene.actuator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_while_the_queue_is_read_loses_no_announcement() {
    let (mut scene, place) = (Scene::new().await, "longshore_actuator::interruptions::queue::");
    let (mut client, _, instance_id) = scene.launched().await;
    scene.region.interrupt_spot(&instance_id).unwrap();
    scene.trap.set(place);
    let queue = CLUSTER.to_owned();
    let queued = ClusterFacts { interruption_queue: queue, ..facts() };
    client.put_cluster(queued, vec![class()]).await.unwrap();
    scene.sprung(place).await;
    client.end().await;
    scene.epoch += 1;
    let mut client = Client::connect(&scene.actuator.address, scene.epoch).await;
    client.until("announced", |shown| !shown.interruptions.is_empty()).await;
    assert_eq!(client.shown.interruptions[0].instance_id, instance_id);
    scene.actuator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_any_task_ends_the_term_or_the_process() {
    let mut scene = Scene::new().await;
    let (mut client, ..) = scene.launched().await;
    let of_the_term = |task: &&str| *task != OF_A_LAUNCH && !OF_THE_PROCESS.contains(task);
    for task in scene.tripwire.running().into_iter().filter(of_the_term) {
        scene.panics(task).await;
        assert!(scene.actuator.goes_on(), "{task} has ended the process");
    }
    client.end().await;
    scene.launched().await;
    for task in OF_THE_PROCESS {
        scene.panics(task).await;
        assert_eq!(
            scene.actuator.ended().await,
            format!("task {task}: panicked: a trap in {task}")
        );
        scene = Scene::new().await;
        scene.launched().await;
    }
    scene.actuator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_one_launch_or_one_call_is_its_own() {
    let mut scene = Scene::new().await;
    for place in OF_ONE {
        let mut client = scene.client().await;
        scene.trap.set(place);
        scene.launch(&mut client).await;
        scene.sprung(place).await;
        scene.launched().await;
    }
    scene.actuator.stop().await;
}
