//! One run: a world, its users, its faults, and the quiet after them.
//!
//! Invariant: nothing here depends on the machine but `wall_ms`, which is no part of the journal.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use longshore_lab::trap::Trap;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::args::How;
use crate::faults::{self, Begun, Fault};
use crate::journal::Journal;
use crate::random::Random;
use crate::settling::{Settled, Settling};
use crate::users::Users;
use crate::verdict::Judge;
use crate::world::{Size, World};

/// Pause between two looks of the world at itself.
const STEP: Duration = Duration::from_millis(250);
/// How long the world may be busy with one thing after the other, as with what a fleet costs too
/// much.
const QUIET: Duration = Duration::from_secs(20 * 60);
/// The world counts as at rest when it has been for this long.
const CALM: Duration = Duration::from_secs(10);
/// How long a service that has ended stays away, in steps.
const AWAY_STEPS: u64 = 8;

/// What came of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Seed.
    pub seed: u64,
    /// Simulated time.
    pub simulated_seconds: u64,
    /// Time that it took.
    pub wall_ms: u64,
    /// Looks of the world at itself.
    pub steps: u64,
    /// Faults by name.
    pub faults: BTreeMap<String, u64>,
    /// Rules that were broken.
    pub violations: Vec<Broken>,
    /// From the last fault to rest; none when it did not come to rest.
    pub rested_seconds: Option<u64>,
    /// What was moved, when users only looked on.
    pub settled: Option<Settled>,
    /// Digest of the journal.
    pub digest: String,
}

/// A rule that was broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// Which.
    pub rule: String,
    /// When, in milliseconds since the beginning.
    pub at_ms: i64,
    /// Looks until then.
    pub step: u64,
    /// What happened.
    pub text: String,
}

/// Runs a seed. The journal comes along.
///
/// # Errors
/// When the world cannot be made, which is a bug.
pub fn run(seed: u64, how: &How) -> Result<(Outcome, Journal, Vec<Fault>)> {
    longshore_planted::plant(how.plant.iter().cloned());
    // What kube's watches wait after errors; it would be seeded from the wall clock.
    fastrand::seed(seed);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(live(seed, how))
}

async fn live(seed: u64, how: &How) -> Result<(Outcome, Journal, Vec<Fault>)> {
    let wall = std::time::Instant::now();
    anyhow::ensure!(
        longshore_sim_entropy::asked() > 0,
        "the system's own randomness is in use: a run could not be repeated"
    );
    let size = Size::of(if how.settling { 1 } else { how.clusters }, how.standalone);
    let world = World::start(seed, &size).await?;
    let journal = world.journal.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(journal.clone())
        .with_timer(journal.clone())
        .with_ansi(false)
        .with_max_level(tracing::Level::INFO)
        .finish();
    tell_of_panics(journal.clone());
    // Already set when a test runs two seeds in one process; the journals then lack the services'
    // lines.
    let _ = tracing::subscriber::set_global_default(subscriber);
    let faults_end_ms = how.minutes * 60_000;
    let mut faults = faults::draw(seed, &world, faults_end_ms, &how.faults);
    faults.retain(|fault| !how.is_calm() && !how.skip.contains(&fault.number));
    let users_end = Instant::now() + Duration::from_millis(faults_end_ms);
    let settling = begin_users(&world, (seed, how), users_end).await?;
    let begun = Vec::new();
    let mut course = Course { world, faults: faults.clone(), begun, seed, steps: 0, settling };
    course.through(users_end).await;
    let settled = course.settling.as_ref().map(|settling| settling.verdict(&course.world.judge));
    let rested = course.rest().await;
    course.world.judge.plans();
    course.world.judge.sessions(&course.world.aged_sessions());
    let counted = faults.iter().map(|fault| fault.what.name());
    let mut outcome = Outcome {
        seed,
        simulated_seconds: u64::try_from(journal.elapsed_ms() / 1000).unwrap_or_default(),
        steps: course.steps,
        violations: course.broken(),
        rested_seconds: rested,
        settled,
        ..Outcome::default()
    };
    counted.for_each(|name| *outcome.faults.entry(name.to_owned()).or_default() += 1);
    let (digest, lines) = journal.digest();
    outcome.digest = format!("{digest:016x}/{lines}");
    outcome.wall_ms = u64::try_from(wall.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok((outcome, journal, faults))
}

/// Users begin; those who only look on are returned.
async fn begin_users(
    world: &World,
    (seed, how): (u64, &How),
    end: Instant,
) -> Result<Option<Settling>> {
    if how.settling {
        return Settling::begin(world, seed).await.map(Some);
    }
    for cluster in &world.clusters {
        let users = Users::new(cluster, seed, (how.pods, &world.judge), &world.journal);
        crate::process::start(users.act(end));
    }
    Ok(None)
}

/// Panics that a fault brings about are told in the journal; all others end a run's process loudly.
fn tell_of_panics(journal: Journal) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = longshore_runtime::panics::panic_text(info.payload());
        if text.starts_with(&Trap::cry("")) {
            journal.note(&format!("panic: {text}"));
        } else {
            before(info);
        }
    }));
}

struct Course {
    world: World,
    faults: Vec<Fault>,
    begun: Vec<Begun>,
    seed: u64,
    steps: u64,
    settling: Option<Settling>,
}

impl Course {
    /// Lives through users and faults.
    async fn through(&mut self, end: Instant) {
        let mut random = Random::stream(self.seed, "subjects");
        self.faults.reverse();
        while Instant::now() < end || !self.begun.is_empty() {
            self.step().await;
            let now_ms = u64::try_from(self.world.journal.elapsed_ms()).unwrap_or_default();
            let over = |begun: &mut Begun| begun.fault.at_ms + begun.fault.for_ms <= now_ms;
            let over: Vec<Begun> = self.begun.extract_if(.., over).collect();
            for begun in over {
                self.world.end(begun, &mut random).await;
            }
            while self.faults.last().is_some_and(|fault| fault.at_ms <= now_ms) {
                let Some(fault) = self.faults.pop() else { break };
                let begun = self.world.begin(fault, &mut random).await;
                self.begun.push(begun);
            }
        }
        self.world.cure();
        self.world.journal.note("faults and users have ended");
    }

    /// Waits for rest; how long that took, in seconds. What has not been as it must be for longer
    /// than that may take breaks a rule, and so does a world that is never done with one thing or
    /// another.
    async fn rest(&mut self) -> Option<u64> {
        let began = Instant::now();
        let mut calm_since = None;
        let mut unrest: BTreeMap<String, Instant> = BTreeMap::new();
        // A moment without matters is waited out: it turns into calm, or into a matter to name.
        while began.elapsed() <= QUIET || unrest.is_empty() {
            self.step().await;
            let found = self.world.judge.unrest().into_iter();
            unrest = found
                .map(|matter| {
                    let since = unrest.get(&matter).copied().unwrap_or_else(Instant::now);
                    (matter, since)
                })
                .collect();
            let outlasts =
                |(matter, since): (&String, &Instant)| since.elapsed() > Judge::patience(matter);
            if unrest.iter().any(outlasts) {
                break;
            }
            if !unrest.is_empty() {
                calm_since = None;
                continue;
            }
            let since = *calm_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= CALM {
                return Some((since - began).as_secs());
            }
        }
        let mut matters: Vec<(Instant, String)> =
            unrest.into_iter().map(|(matter, since)| (since, matter)).collect();
        matters.sort();
        let matters: Vec<String> = matters.into_iter().map(|(_, matter)| matter).collect();
        self.world.judge.restless(&matters);
        None
    }

    async fn step(&mut self) {
        tokio::time::sleep(STEP).await;
        self.steps += 1;
        self.world.judge.look();
        if let Some(settling) = &mut self.settling {
            settling.look();
        }
        for index in self.world.ended() {
            self.world
                .journal
                .note(&format!("{} has ended by itself", self.world.services[index].machine.name));
            self.world.kill(index);
            self.world.away.insert(index, self.steps + AWAY_STEPS);
        }
        let back: Vec<usize> = {
            let due = self.world.away.iter().filter(|(_, until)| **until <= self.steps);
            due.map(|(index, _)| *index).collect()
        };
        for index in back {
            self.world.away.remove(&index);
            if self.world.services[index].process.is_none() {
                self.world.boot(index);
            }
        }
    }

    fn broken(&self) -> Vec<Broken> {
        let step_ms = i64::try_from(STEP.as_millis()).unwrap_or(i64::MAX);
        let violations = self.world.judge.violations().into_iter();
        violations
            .map(|violation| Broken {
                rule: violation.rule.to_owned(),
                at_ms: violation.at_ms,
                step: u64::try_from(violation.at_ms / step_ms).unwrap_or_default(),
                text: violation.text,
            })
            .collect()
    }
}
