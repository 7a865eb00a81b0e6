//! A panic in each loop and each task of watcher and scheduler: it is told, it ends its task or its
//! process as the task's policy says, and the work goes on.
//!
//! Invariant: the service runs in this process, as its `main` starts it, with a clock and tasks
//! that panic; everything else is as for other tests. The actuator's loops have the same test
//! beside its own.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use longshore_it::parts::poll;
use longshore_lab::region::CLUSTER;
use longshore_lab::trap::Trap;
use longshore_lab::tripwire::Tripwire;
use longshore_runtime::clock::Clock;
use longshore_runtime::platform::{Confine, Platform, Work};
use longshore_runtime::tasks::Supervisor;
use longshore_watcher::{Config, Watcher};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::unharmed;
use crate::kill::crowd::{Crowd, LIMIT};

/// Pods at the start.
const PODS: u32 = 2;
/// How long a service may take to end.
const GRACE: Duration = Duration::from_secs(20);

/// What a panic of a loop does.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// The process ends, in the name of this task.
    Ends(&'static str),
    /// The task starts anew, or the next session has another.
    GoesOn,
}

/// Loops of the watcher.
const WATCHER: [(&str, Then); 5] = [
    ("longshore_watcher::observe::", Then::GoesOn),
    ("longshore_watcher::lease::", Then::Ends("lead")),
    ("longshore_watcher::session::", Then::Ends("lead")),
    ("longshore_watcher::directives::", Then::Ends("lead")),
    ("longshore_watcher::lifecycle::", Then::Ends("lead")),
];
/// Loops of the scheduler.
const SCHEDULER: [(&str, Then); 4] = [
    ("longshore_scheduler::session::Session::pass", Then::GoesOn),
    ("longshore_scheduler::session::commit::", Then::GoesOn),
    ("longshore_scheduler::session::live::", Then::GoesOn),
    ("longshore_scheduler::session::dispatch::", Then::GoesOn),
];

/// Tasks of the watcher whose end is the end of the process; all others start anew.
const WATCHER_ENDS: [&str; 3] = ["events", "events of a standby", "lead"];
/// The same of the scheduler.
const SCHEDULER_ENDS: [&str; 1] = ["grpc"];

/// Tasks with a wire across them.
struct Wired(Tripwire);

impl Confine for Wired {
    fn work<'a>(&self, task: &'static str, work: Work<'a>) -> Work<'a> {
        self.0.work(task, work)
    }
}

/// A service in this process.
struct Inside {
    trap: Trap,
    tripwire: Tripwire,
    supervisor: Supervisor,
}

impl Inside {
    fn new() -> Self {
        let (trap, tripwire) = (Trap::default(), Tripwire::default());
        let reader = trap.clone();
        let clock = Clock::reading(move || reader.now_ms());
        let confinement: Option<Arc<dyn Confine>> = Some(Arc::new(Wired(tripwire.clone())));
        let platform = Platform { clock, confinement, ..Platform::system() };
        let supervisor = Supervisor::new(CancellationToken::new(), platform);
        Self { trap, tripwire, supervisor }
    }

    async fn watcher(crowd: &Crowd) -> Result<Self> {
        let inside = Self::new();
        let mut config = Config::new(CLUSTER, &crowd.fleet.scheduler_url());
        "us-east-1".clone_into(&mut config.region);
        // The same in every life: the Lease need not run out first.
        "inside".clone_into(&mut config.identity);
        let client = crowd.fleet.client.clone();
        let mut watcher = Watcher::start(config, client, &inside.supervisor).await?;
        let connected = watcher.connected.wait_for(|connected| *connected);
        tokio::time::timeout(LIMIT, connected).await.context("the watcher has no session")??;
        Ok(inside)
    }

    async fn scheduler(crowd: &Crowd) -> Result<Self> {
        let inside = Self::new();
        let listener = TcpListener::bind(crowd.fleet.scheduler_address(0)?).await?;
        let config = longshore_scheduler::args::Config {
            actuator_endpoints: crowd.fleet.actuator_urls(),
            settings: longshore_scheduler::settings::Settings::default(),
            memory_mib: longshore_scheduler::memory::MIB_DEFAULT,
            access: longshore_runtime::server::AccessArgs::default(),
        };
        longshore_scheduler::start(config, listener, &inside.supervisor)?;
        Ok(inside)
    }

    /// Lets a loop panic, with pods to come, and sees that the process does what it should. True
    /// when it has ended.
    async fn panics(&self, crowd: &mut Crowd, (place, then): (&str, Then)) -> Result<bool> {
        self.trap.set(place);
        crowd.grow(1).await?;
        poll::until(&format!("{place} panics"), LIMIT, || async {
            ensure!(!self.trap.is_set(), "it has not asked for the time");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let Then::Ends(task) = then else {
            unharmed(crowd).await?;
            ensure!(!self.supervisor.token().is_cancelled(), "{place}: the process has ended");
            return Ok(false);
        };
        self.ends(task, place).await?;
        Ok(true)
    }

    /// The process ends and says that this task has panicked in this place.
    async fn ends(&self, task: &str, place: &str) -> Result<()> {
        let over = self.supervisor.token().cancelled();
        tokio::time::timeout(LIMIT, over).await.with_context(|| format!("{place}: it goes on"))?;
        let ended = self.supervisor.clone().join(GRACE).await.err();
        let told = format!("{:#}", ended.with_context(|| format!("{place}: a clean end"))?);
        let wanted = format!("task {task}: panicked: {}", Trap::cry(place));
        ensure!(told == wanted, "{told:?} instead of {wanted:?}");
        Ok(())
    }

    /// Lets each task panic that is at work, but for those whose end is the process's, all at once;
    /// sees that each begins again, and that the process goes on.
    async fn all_begin_again(&self, but: &[&str]) -> Result<()> {
        let running = self.tripwire.running();
        let tasks = running.into_iter().filter(|task| !but.contains(task));
        let tasks: Vec<_> = tasks.map(|task| (task, self.tripwire.begun(task))).collect();
        for (task, _) in &tasks {
            // One that waits after an error is at work again soon.
            poll::until(&format!("{task} is at work"), LIMIT, || async {
                ensure!(self.tripwire.trip(task), "it is not");
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        for (task, begun) in tasks {
            poll::until(&format!("{task} begins again"), LIMIT, || async {
                ensure!(self.tripwire.begun(task) > begun, "it has not");
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        ensure!(!self.supervisor.token().is_cancelled(), "the process has ended");
        Ok(())
    }

    /// Lets a task panic whose end is the process's.
    async fn ends_with(&self, task: &str) -> Result<()> {
        ensure!(self.tripwire.trip(task), "no {task} is at work");
        self.ends(task, task).await
    }

    async fn stop(self) -> Result<()> {
        self.supervisor.token().cancel();
        self.supervisor.join(GRACE).await
    }
}

/// A crowd that runs.
async fn crowd(name: &str) -> Result<Crowd> {
    let crowd = Box::pin(Crowd::start(name, PODS, |_| {})).await?;
    crowd.arrive().await?;
    unharmed(&crowd).await?;
    Ok(crowd)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_each_loop_of_the_watcher() -> Result<()> {
    let mut crowd = crowd("panics-watcher").await?;
    crowd.fleet.watcher(0)?.terminate()?;
    crowd.fleet.watcher(0)?.wait_for_exit(GRACE).await?;
    let mut inside = Box::pin(Inside::watcher(&crowd)).await?;
    for case in WATCHER {
        if inside.panics(&mut crowd, case).await? {
            inside = Box::pin(Inside::watcher(&crowd)).await?;
            unharmed(&crowd).await?;
        }
    }
    inside.all_begin_again(&WATCHER_ENDS).await?;
    crowd.grow(1).await?;
    unharmed(&crowd).await?;
    for task in WATCHER_ENDS {
        inside.ends_with(task).await?;
        inside = Box::pin(Inside::watcher(&crowd)).await?;
    }
    crowd.grow(1).await?;
    unharmed(&crowd).await?;
    inside.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_each_loop_of_a_session() -> Result<()> {
    let mut crowd = crowd("panics-scheduler").await?;
    crowd.fleet.scheduler(0)?.terminate()?;
    crowd.fleet.scheduler(0)?.wait_for_exit(GRACE).await?;
    let inside = Inside::scheduler(&crowd).await?;
    unharmed(&crowd).await?;
    for case in SCHEDULER {
        ensure!(!inside.panics(&mut crowd, case).await?, "a session's panic ends the scheduler");
        told(&mut crowd, case.0)?;
    }
    inside.all_begin_again(&SCHEDULER_ENDS).await?;
    crowd.grow(1).await?;
    unharmed(&crowd).await?;
    for task in SCHEDULER_ENDS {
        inside.ends_with(task).await?;
    }
    Ok(())
}

/// The watcher has been told why its session ended.
fn told(crowd: &mut Crowd, place: &str) -> Result<()> {
    let log = crowd.fleet.watcher(0)?.log()?;
    let cry = Trap::cry(place);
    let mut lines = log.lines().filter(|line| line.contains("session ended"));
    ensure!(lines.any(|line| line.contains(&cry)), "no line of the watcher says {cry:?}");
    Ok(())
}
