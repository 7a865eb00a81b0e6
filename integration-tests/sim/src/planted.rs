//! The defects that once were, and which seed finds each.
//!
//! Invariant: the list names every defect that the code can commit again (a test compares). A seed finds a
//! defect when it breaks a rule with it and none without. What neither a seed nor a test finds fails the
//! command.

use anyhow::Result;
use serde_json::json;

use crate::args::{How, Output};
use crate::children::{self, Going};
use crate::run::{Broken, Outcome};

/// Who finds a planted defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The simulation, soonest under faults of these names; under none when it needs no fault.
    Faults(&'static [&'static str]),
    /// A test of this name: alone the defect breaks no rule that is judged here, because another mend
    /// covers it or because the simulated world has nothing that brings it about.
    Test(&'static str),
    /// Nobody yet.
    Nobody,
}

/// Names under which defects are planted, each with what it was and who finds it.
pub const PLANTED: &[(&str, &str, By)] = &[
    (
        "S1",
        "directive ids begin anew in each session, and old answers are given to new directives",
        By::Faults(&["kill", "cut"]),
    ),
    (
        "S1a",
        "a view counts as settled at once after a snapshot",
        By::Test("absence_means_nothing_until_the_view_has_settled_and_not_after_a_stall"),
    ),
    (
        "S1b",
        "a session that follows another plans at once",
        By::Test("a_session_that_follows_another_waits_for_what_that_one_asked"),
    ),
    (
        "S2",
        "claims and instances that another autoscaler made count as gone or unowned by their age",
        By::Faults(&["karpenter_before"]),
    ),
    ("S3", "what cannot be read counts as absent", By::Faults(&["kind_absent", "undecodable"])),
    (
        "S3a",
        "a drain counts as done though a pod on the node cannot be read",
        By::Test("a_node_is_not_drained_while_something_on_it_cannot_be_read"),
    ),
    (
        "S3b",
        "a buffer whose reference cannot be read gives its room away",
        By::Test("a_buffer_keeps_its_room_while_its_reference_cannot_be_read"),
    ),
    (
        "S3c",
        "a kind that every cluster has counts as empty when it is not served at the start",
        By::Test("a_kind_that_every_cluster_has_is_never_taken_for_empty"),
    ),
    (
        "S4",
        "one listing that lacks an instance ends it",
        By::Faults(&["short_listings", "empty_listings"]),
    ),
    ("S5", "regions and clusters are keyed by name alone", By::Faults(&[])),
    ("S6", "no breaker bounds what goes on absence alone", By::Faults(&["dark"])),
    (
        "S6a",
        "a scheduler that begins does not know what the one before let go on absence alone",
        By::Test("what_went_under_another_scheduler_counts_for_the_rest_of_its_time"),
    ),
    (
        "S7",
        "an instance whose launch is recorded as failed cannot be ended",
        By::Test("an_instance_that_lives_is_ended_whatever_its_launch_is_recorded_as"),
    ),
    (
        "S7a",
        "a launch is failed on an error of a repeated call",
        By::Test("a_refused_repetition_fails_nothing_before_the_instance_must_show"),
    ),
    (
        "S8",
        "a lost answer is followed by another token at once",
        By::Faults(&["cloud_replies_lost", "templates_deleted"]),
    ),
    (
        "S8a",
        "a second instance of a launch is left alone",
        By::Test("an_instance_beside_the_one_a_launch_led_to_is_ended"),
    ),
    (
        "S9",
        "a definite answer does not end its token; a deleted claim with a pending launch sends nothing",
        By::Faults(&["cloud_errors"]),
    ),
    (
        "S9a",
        "launches have no deadline",
        By::Test("a_launch_that_cannot_go_on_leaves_its_slot_and_ends_at_its_deadline"),
    ),
    (
        "S10",
        "interruptions are read before the first listing and lost",
        By::Test("nothing_is_read_from_a_queue_before_the_first_listing"),
    ),
    ("S11", "one bad instance blocks its batch of terminations", By::Faults(&["protected"])),
    (
        "S12",
        "a launch from a template that is gone calls without end",
        By::Faults(&["templates_deleted"]),
    ),
    (
        "S13",
        "one type's permanent error faults the whole class",
        By::Test("a_type_that_is_refused_by_name_closes_and_its_class_does_not"),
    ),
    (
        "S13a",
        "one failed look-up empties a class",
        By::Test("a_look_up_that_fails_keeps_what_was_found_before"),
    ),
    ("S13b", "a class that AWS did not answer about fails launches for good", By::Nobody),
    ("S13c", "a profile that EC2 has not learned of fails launches for good", By::Nobody),
    (
        "S14",
        "clusters never leave the ledger",
        By::Test("a_cluster_is_old_when_nobody_wrote_for_it_and_nothing_is_left"),
    ),
    ("S14a", "old catalogues stay in memory", By::Nobody),
    (
        "S15",
        "a sleeping launch holds its slot",
        By::Test("a_launch_that_cannot_go_on_leaves_its_slot_and_ends_at_its_deadline"),
    ),
    (
        "S15a",
        "clusters do not take turns for slots",
        By::Test("clusters_take_turns_and_each_has_its_own_bound"),
    ),
    (
        "S16",
        "a refused plan is dropped whole",
        By::Test("a_launch_that_is_not_on_offer_goes_and_the_others_stay"),
    ),
    (
        "S16a",
        "the bound takes an absent label for allowed",
        By::Test("the_check_refuses_no_plan_of_the_planner"),
    ),
    (
        "S16b",
        "planner and check count a pool's limit differently",
        By::Test("the_check_refuses_no_plan_of_the_planner"),
    ),
    (
        "S16c",
        "planner and check spend disruption budgets in different orders",
        By::Test("a_disruption_is_checked_against_budgets_and_promises"),
    ),
    (
        "S16d",
        "a DaemonSet that selects karpenter.sh/initialized is reserved by the check only",
        By::Test("every_scenario_gives_its_plan"),
    ),
    (
        "S16e",
        "a DaemonSet of only some outcomes of a claim is reserved for none",
        By::Test("every_scenario_gives_its_plan"),
    ),
    ("S16f", "replicas are launched below minValues", By::Test("every_scenario_gives_its_plan")),
    (
        "S16g",
        "the bound ignores labels that a pool leaves open",
        By::Test("every_scenario_gives_its_plan"),
    ),
    (
        "S17",
        "disruptions run on the view they were decided on",
        By::Test("a_decision_stands_as_long_as_what_it_rests_on"),
    ),
    (
        "S17a",
        "a disruption that failed half-way leaves its taint for good",
        By::Test("a_mark_without_its_taint_or_a_taint_without_its_mark_is_taken_off"),
    ),
    (
        "S18",
        "half-started nodes, replacements and broken classes are waited for without end",
        By::Test("a_disruption_that_leads_nowhere_is_called_off"),
    ),
    ("S19", "DaemonSets leave negative room", By::Test("every_scenario_gives_its_plan")),
    ("S20", "a failed task keeps the leadership", By::Nobody),
    (
        "S20a",
        "a task that panics is started again with what it broke",
        By::Test("a_panic_ends_the_term"),
    ),
    (
        "S20s",
        "a planner that panicked is not asked again",
        By::Test("a_planner_that_fails_is_asked_again_by_itself_and_ever_later"),
    ),
    ("S21", "what etcd refuses for good counts as out of reach", By::Nobody),
    (
        "S21a",
        "a cluster's record over the store's size is tried without end",
        By::Test("a_record_over_the_stores_size_is_refused_with_what_to_shorten"),
    ),
    ("S22", "a Lease is over by another host's clock", By::Faults(&["skew"])),
    ("S22a", "writes go on without the Lease", By::Test("nothing_is_written_without_the_lease")),
    ("S22b", "calls of the API server have no end", By::Test("a_silent_api_server_is_an_error")),
    ("S23", "plans and directives expire by other hosts' clocks", By::Faults(&["skew"])),
    (
        "S23a",
        "a pod counts as stuck by another host's clock",
        By::Test("a_pod_is_not_stuck_because_the_own_clock_is_ahead"),
    ),
    (
        "S23b",
        "a drain's deadline is past by another host's clock",
        By::Test("a_deadline_is_not_past_because_the_own_clock_is_ahead_or_jumps"),
    ),
    ("S24", "cluster facts are read once", By::Test("facts_are_read_again_while_the_watcher_runs")),
    (
        "S25",
        "deletions wait behind registrations",
        By::Test("deletions_wait_neither_for_nodes_that_open_nor_for_other_writes"),
    ),
    (
        "S25s",
        "what is urgent waits behind a plan that fills the stream",
        By::Test("what_is_urgent_overtakes_a_plan_that_fills_the_stream"),
    ),
    (
        "S26",
        "any region's change wakes every session",
        By::Test("a_change_wakes_only_those_who_are_in_the_region"),
    ),
    (
        "S27",
        "tables fed from outside have no bound",
        By::Test("a_snapshot_that_never_ends_is_refused"),
    ),
    ("S28", "sessions stay where they landed", By::Test("an_old_session_is_asked_to_move")),
    (
        "S29",
        "failed dispatches are tried without growth; a pool that goes still launches",
        By::Test("a_pool_that_is_being_deleted_gets_no_more_nodes"),
    ),
    (
        "S29b",
        "a node class that goes still launches",
        By::Test("a_class_that_is_being_deleted_supplies_nothing_however_the_region_resolves_it"),
    ),
    ("S29a", "planned pods of a failed create stay planned", By::Nobody),
    (
        "S31",
        "a fresh node is emptied before the pods that are promised to it arrive",
        By::Test("every_scenario_gives_its_plan"),
    ),
    (
        "S32",
        "what was just moved is moved again for any saving",
        By::Test("every_scenario_gives_its_plan"),
    ),
];

/// Looks for each planted defect; the number of those that were not found.
///
/// # Errors
/// When a child cannot be started.
#[allow(clippy::print_stdout, reason = "the report is what the command is for")]
pub fn find(
    within: u64,
    only: &[String],
    how: &How,
    (output, jobs): (Output, usize),
) -> Result<usize> {
    let mut rows = Vec::new();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    for (name, what, by) in PLANTED.iter().filter(|(name, ..)| wanted(name)) {
        let found = match by {
            By::Faults(faults) => first_seed(name, within, &under(how, faults), jobs)?,
            By::Test(_) | By::Nobody => None,
        };
        let first =
            found.as_ref().and_then(|outcome| Some((outcome.seed, outcome.violations.first()?)));
        if output == Output::Text {
            println!("{name}: {}: {what}", finder(*by, within, first));
        }
        rows.push(json!({
            "name": name,
            "what": what,
            "test": match by { By::Test(test) => Some(test), By::Faults(_) | By::Nobody => None },
            "seed": first.as_ref().map(|(seed, _)| seed),
            "rule": first.as_ref().map(|(_, broken)| &broken.rule),
            "text": first.as_ref().map(|(_, broken)| &broken.text),
        }));
    }
    let missing = rows.iter().filter(|row| row["seed"].is_null() && row["test"].is_null()).count();
    if output == Output::Json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(missing)
}

/// How a defect is looked for: under the faults that show it soonest, unless others are asked for. Only three
/// clusters have two of one name.
fn under(how: &How, faults: &[&str]) -> How {
    let mut how = how.clone();
    if how.faults.is_empty() {
        how.faults = faults.iter().map(|name| (*name).to_owned()).collect();
    }
    if faults.is_empty() {
        how.clusters = 3;
    }
    how
}

fn finder(by: By, within: u64, first: Option<(u64, &Broken)>) -> String {
    match (by, first) {
        (By::Test(test), _) => format!("found by the test {test}"),
        (By::Nobody, _) => "found by nobody".to_owned(),
        (By::Faults(_), Some((seed, broken))) => {
            format!("seed {seed}: {} ({})", broken.rule, broken.text)
        }
        (By::Faults(_), None) => format!("not found within {within} seeds"),
    }
}

/// The first seed that breaks a rule with a defect planted and none without it.
fn first_seed(name: &str, within: u64, how: &How, jobs: usize) -> Result<Option<Outcome>> {
    let mut planted = how.clone();
    planted.plant.push(name.to_owned());
    let seeds: Vec<u64> = (0..within).collect();
    for seeds in seeds.chunks(jobs.max(1)) {
        let mut broken = Vec::new();
        children::run(seeds.iter().copied(), &planted, jobs, |outcome| {
            broken.extend((!outcome.violations.is_empty()).then(|| outcome.clone()));
            Going::On
        })?;
        for outcome in broken {
            let mut innocent = false;
            children::run([outcome.seed], how, 1, |without| {
                innocent = without.violations.is_empty();
                Going::On
            })?;
            if innocent {
                return Ok(Some(outcome));
            }
        }
    }
    Ok(None)
}
