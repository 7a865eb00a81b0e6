//! The defects that once were, and which seed finds each.
//!
//! Invariant: the list names every defect that the code can commit again (a test compares). A seed
//! finds a defect when it breaks a rule with it and not without. What neither a seed nor a test
//! finds fails the command.

mod by_test;
mod find;

pub use by_test::run as run_tests;
pub use find::find;

/// Who finds a planted defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The simulation.
    Seed(Hunt),
    /// A test of this name: alone the defect breaks no rule that is judged here, because another
    /// mend covers it or because the simulated world has nothing that brings it about.
    Test(&'static str),
}

/// How the simulation looks for a defect: where it shows soonest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunt {
    /// Faults of these names; of all when there are none.
    faults: &'static [&'static str],
    /// Planted together with it, because each of these mends covers it; they stay planted in the
    /// run without the defect, which must not break the same rule.
    with: &'static [&'static str],
    /// Simulated minutes with users and faults.
    minutes: u64,
    /// Clusters. Only three have two of one name.
    clusters: u8,
    /// Pods of each cluster.
    pods: u64,
}

const fn hunt(faults: &'static [&'static str]) -> Hunt {
    Hunt { faults, with: &[], minutes: 8, clusters: 1, pods: 20 }
}

impl Hunt {
    const fn with(self, with: &'static [&'static str]) -> Self {
        Self { with, ..self }
    }

    const fn minutes(self, minutes: u64) -> Self {
        Self { minutes, ..self }
    }

    const fn clusters(self, clusters: u8) -> Self {
        Self { clusters, ..self }
    }
}

/// Names under which defects are planted, each with what it was and who finds it.
pub const PLANTED: &[(&str, &str, By)] = &[
    (
        "S1",
        "directive ids begin anew in each session, and old answers are given to new directives",
        By::Seed(hunt(&["kill", "cut"])),
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
        By::Seed(hunt(&["karpenter_before"])),
    ),
    ("S3", "what cannot be read counts as absent", By::Seed(hunt(&["kind_absent", "undecodable"]))),
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
        By::Seed(hunt(&["short_listings", "empty_listings"])),
    ),
    ("S5", "regions and clusters are keyed by name alone", By::Seed(hunt(&[]).clusters(3))),
    ("S6", "no breaker bounds what goes on absence alone", By::Seed(hunt(&["dark"]))),
    (
        "S6a",
        "a scheduler that begins does not know what the one before let go on absence alone",
        By::Test("what_went_under_another_scheduler_counts_for_the_rest_of_its_time"),
    ),
    (
        "S7",
        "an instance whose launch is recorded as failed cannot be ended",
        By::Seed(hunt(&["revoked", "killed_by_hand"]).with(&["S7a"])),
    ),
    (
        "S7a",
        "a launch is failed on an error of a repeated call",
        By::Seed(hunt(&["revoked", "killed_by_hand"])),
    ),
    (
        "S8",
        "a lost answer is followed by another token at once",
        By::Seed(hunt(&["cloud_replies_lost", "templates_deleted"])),
    ),
    ("S8a", "a second instance of a launch is left alone", By::Seed(hunt(&["copied"]))),
    (
        "S9",
        "a definite answer does not end its token; a deleted claim with a pending launch sends nothing",
        By::Seed(hunt(&["cloud_errors"])),
    ),
    ("S9a", "launches have no deadline", By::Seed(hunt(&["launches_fail"]).minutes(20))),
    (
        "S10",
        "interruptions are read before the first listing and lost",
        By::Test("nothing_is_read_from_a_queue_before_the_first_listing"),
    ),
    ("S11", "one bad instance blocks its batch of terminations", By::Seed(hunt(&["protected"]))),
    (
        "S12",
        "a launch from a template that is gone calls without end",
        By::Seed(hunt(&["templates_deleted"])),
    ),
    (
        "S13",
        "one type's permanent error faults the whole class",
        By::Test("a_type_that_is_refused_by_name_closes_and_its_class_does_not"),
    ),
    ("S13a", "one failed look-up empties a class", By::Seed(hunt(&["cloud_errors"]))),
    (
        "S13b",
        "a class that AWS did not answer about fails launches for good",
        By::Seed(hunt(&["lookups_fail"])),
    ),
    (
        "S13c",
        "a profile that EC2 has not learned of fails launches for good",
        By::Seed(hunt(&["leases_end"])),
    ),
    (
        "S14",
        "clusters never leave the ledger",
        By::Test("a_cluster_is_old_when_nobody_wrote_for_it_and_nothing_is_left"),
    ),
    (
        "S14a",
        "old catalogues stay in memory",
        By::Test("a_catalogue_that_no_class_names_is_forgotten"),
    ),
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
        By::Test("every_scenario_gives_its_plan"),
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
        By::Test("an_empty_node_goes_in_two_steps"),
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
    ("S20", "a failed task keeps the leadership", By::Seed(hunt(&["panic"]))),
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
    (
        "S20q",
        "what the planner fails on stalls its cluster",
        By::Test("what_the_planner_fails_on_is_found_and_the_rest_is_planned"),
    ),
    (
        "S20w",
        "nobody hears of a loop that has stalled",
        By::Test("what_does_not_come_round_is_named"),
    ),
    (
        "S21",
        "what etcd refuses for good counts as out of reach",
        By::Test("what_etcd_refuses_for_good_is_refused_and_the_rest_is_out_of_reach"),
    ),
    (
        "S21a",
        "a cluster's record over the store's size is tried without end",
        By::Test("a_record_over_the_stores_size_is_refused_with_what_to_shorten"),
    ),
    ("S22", "a Lease is over by another host's clock", By::Seed(hunt(&["skew"]))),
    ("S22a", "writes go on without the Lease", By::Test("nothing_is_written_without_the_lease")),
    ("S22b", "calls of the API server have no end", By::Seed(hunt(&["silent"]))),
    ("S23", "plans and directives expire by other hosts' clocks", By::Seed(hunt(&["skew"]))),
    ("S23a", "a pod counts as stuck by another host's clock", By::Seed(hunt(&["skew"]))),
    ("S23b", "a drain's deadline is past by another host's clock", By::Seed(hunt(&["skew"]))),
    ("S24", "cluster facts are read once", By::Seed(hunt(&["upgraded"]).minutes(30))),
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
    ("S28", "sessions stay where they landed", By::Seed(hunt(&["frenzy"]).minutes(60))),
    (
        "S29",
        "failed dispatches are tried without growth; a pool that goes still launches",
        By::Seed(hunt(&["pool_goes"])),
    ),
    (
        "S29b",
        "a node class that goes still launches",
        By::Test("a_class_that_is_being_deleted_supplies_nothing_however_the_region_resolves_it"),
    ),
    (
        "S29a",
        "planned pods of a failed create stay planned",
        By::Test("no_pod_waits_for_a_claim_that_could_not_be_made"),
    ),
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
    (
        "S33",
        "an instance that a launch has already is given away when its call is resumed",
        By::Test(
            "an_instance_that_a_launch_has_already_is_not_given_away_when_its_call_is_resumed",
        ),
    ),
    (
        "S33a",
        "a call for several launches whose answer was lost is forgotten",
        By::Seed(hunt(&["cloud_replies_lost", "templates_deleted"])),
    ),
    (
        "S33b",
        "an instance of a call for several launches is surplus while they wait for the answer",
        By::Seed(hunt(&["cloud_replies_lost"])),
    ),
    (
        "S34",
        "an instance without a node is ended as soon as its claim's deletion is asked for, and that may fail",
        By::Test("nothing_is_ended_before_its_claim_is_seen_to_go"),
    ),
    (
        "S35",
        "a call whose answer only the ledger lacks is made again for as long as that is so",
        By::Test("an_answer_that_the_ledger_cannot_take_down_is_kept_until_it_can"),
    ),
    (
        "S36",
        "a repeated call that was refused is made again for as long as its instance may yet show",
        By::Test("a_refused_repetition_is_not_made_again_while_the_instance_may_yet_show"),
    ),
    (
        "S36a",
        "what is found of a refused call is forgotten when the ledger fails",
        By::Test("what_was_found_of_a_refused_call_is_found_again_until_the_ledger_knows_it"),
    ),
    (
        "S37",
        "a claim is called as it should be before it is measured, though it says that it has drifted",
        By::Test(
            "a_node_made_from_nothing_counts_as_made_from_what_there_is_unless_it_has_drifted",
        ),
    ),
    (
        "S37a",
        "a rollout that was stopped goes on while it is not known what nodes are to become",
        By::Test("what_was_stopped_stays_so_while_it_is_not_known_what_is_asked_for"),
    ),
    (
        "S38",
        "the turn of a node whose disruption was called off is nobody else's",
        By::Test("the_turn_of_a_node_that_is_left_alone_is_anothers"),
    ),
    (
        "S39",
        "a node that says that it has ailed for long is believed at once",
        By::Seed(hunt(&["nodes_ail"]).minutes(20)),
    ),
    (
        "S39a",
        "nodes are replaced however many of their pool ail",
        By::Seed(hunt(&["nodes_ail"]).minutes(20)),
    ),
];
