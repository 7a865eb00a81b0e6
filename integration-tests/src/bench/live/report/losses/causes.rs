//! Why Karpenter is ahead where it is, by hand.
//!
//! Invariant: the first that matches counts; each says a cause and what was tried.

use crate::bench::live::args::CaseName;

/// A cause, of a row in a phase of some cases; an empty list stands for all of them.
struct Cause {
    cases: &'static [CaseName],
    phases: &'static [&'static str],
    rows: &'static [&'static str],
    text: &'static str,
}

/// Rows that count nodes, and what comes with each.
const NODES: &[&str] =
    &["calls of CreateFleet until all run", "nodes then", "nodes in the end", "instances launched"];
const WRITES: &[&str] = &["API writes until all run", "API writes in all", "Events written"];
const PRICES: &[&str] = &["$/h then", "$/h in the end"];
/// Cases of pods that do not share a node.
const ALONE: &[CaseName] =
    &[CaseName::Storm, CaseName::Rollout, CaseName::Blocked, CaseName::Repair];
const MOVES: &[&str] = &["settled after, s", "evictions"];

const CAUSES: &[Cause] = &[
    Cause {
        cases: &[CaseName::Hundred, CaseName::W2],
        phases: &["out"],
        rows: NODES,
        text: "An m5a.4xlarge, an m5a.2xlarge and a c6a.large cost 9 % less than the one node, and are \
               proven to be within 1.4 % of the least price. Each node counts for $0.001 an hour beside \
               its price; with a `--node-fee` of more than $0.058 one node is the cheaper plan, and the \
               one bought. Equal types share a call; these differ.",
    },
    Cause {
        cases: &[CaseName::W2],
        phases: &["back"],
        rows: NODES,
        text: "Counted when the last pod has gone, before anything could follow from it. One node is left 11.9 s \
               later: two go, by the budget of 10 % one after the other, and load balancers have five seconds to \
               see that each is closed. With Karpenter it is 38 s later.",
    },
    Cause {
        cases: &[CaseName::W2],
        phases: &["back"],
        rows: &["API writes until all run"],
        text: "What is said of NodeClaims within the third of a second in which pods end. In all it is 27 writes, and \
               36 with Karpenter.",
    },
    Cause {
        cases: &[CaseName::Drip],
        phases: &[],
        rows: NODES,
        text: "What has arrived is bought every half second, and not after ten seconds: a pod waits 10.2 s \
               for its place in the middle, instead of 16.6 s, most of it the boot. Twenty purchases are \
               twenty nodes. Launches are held for at most `--burst-max-ms`, a second unless given.",
    },
    Cause {
        cases: &[CaseName::Drip],
        phases: &[],
        rows: WRITES,
        text: "Each of the twenty nodes has a claim, and takes six writes until it is ready, and its Events; \
               the one node has as many once.",
    },
    Cause {
        cases: &[CaseName::Drip],
        phases: &[],
        rows: &["processor time until all run, s"],
        text: "Twenty plans and twenty nodes within the ten seconds in which Karpenter waits for the burst to end. With \
               what follows it is less than Karpenter's.",
    },
    Cause {
        cases: &[CaseName::Drip],
        phases: &[],
        rows: PRICES,
        text: "Five pods at a time fit small nodes, which reserve more of themselves. Watched for 100 s, past \
               the time after which they may be bettered: the pool's budget of 10 % lets two nodes go at a \
               time, and for no two of them there is anything cheaper.",
    },
    Cause {
        cases: &[CaseName::TwoThousandThere],
        phases: &["none"],
        rows: WRITES,
        text: "Of each of the 134 nodes it is noted once that pods came or went, for whoever asks and for a scheduler \
               that takes over. Karpenter notes it later, most of it in the next phase, in which it writes 193 times, \
               and Longshore 134 times.",
    },
    Cause {
        cases: &[CaseName::W2Example],
        phases: &["out"],
        rows: NODES,
        text: "Seventeen nodes of a t3.medium cost 35 % less than eight larger ones.",
    },
    Cause {
        cases: &[CaseName::W2Example],
        phases: &["out"],
        rows: WRITES,
        text: "Sixteen claims and nodes instead of seven. With what follows it is 103 writes, and 114 with Karpenter.",
    },
    Cause {
        cases: &[CaseName::W2Example],
        phases: &["back"],
        rows: NODES,
        text: "Counted when the last pod has gone, before anything could follow from it. One node is left 41 s later, \
               and 60 s with Karpenter.",
    },
    Cause {
        cases: &[CaseName::W2Example],
        phases: &["back"],
        rows: WRITES,
        text: "Sixteen nodes go instead of seven, by thirteen writes each with either.",
    },
    Cause {
        cases: &[CaseName::PerfBasic],
        phases: &["out"],
        rows: NODES,
        text: "Fifty nodes cost 10 % less than 42, and are proven to be within 0.1 % of the least price.",
    },
    Cause {
        cases: &[CaseName::PerfBasic],
        phases: &["out"],
        rows: WRITES,
        text: "Pods of many sizes reach the places that they were planned for by a toleration each, one write \
               for a pod: without it they run in other places than those that were paid for. Where pods are \
               alike none is written (two-thousand). Tried: leaving the most numerous size without, which then waits \
               for all others: 230 writes fewer, and all run seven seconds later.",
    },
    Cause {
        cases: &[CaseName::PerfBasic],
        phases: &["back"],
        rows: &["nodes then", "nodes in the end"],
        text: "More and smaller nodes from the way out.",
    },
    Cause {
        cases: &[CaseName::PerfBasic],
        phases: &["back"],
        rows: &["evictions"],
        text: "Everything that pays is moved within 23 to 37 s, and then nothing: pods that were moved once rest for \
               their pay-back time before the last per cent is looked for, and $89.03 to $90.92 an hour are left in \
               the three runs. Karpenter comes to $89.04 to $89.50, and was still at it when the watch ended.",
    },
    Cause {
        cases: &[CaseName::Mixed],
        phases: &[],
        rows: NODES,
        text: "Three to four times the nodes, smaller ones, cost 10 % less when all run and 3 % less in the end, with \
               a fee of $0.001 an hour for each. A greater `--node-fee` buys fewer.",
    },
    Cause {
        cases: &[CaseName::Mixed],
        phases: &[],
        rows: &["settled after, s"],
        text: "Of Karpenter's three runs one moves nothing while it is watched, and is left with $178.70 an hour; the \
               others move 407 and 577 pods, until 305 s and until after the watch. With Longshore the last of 51 to \
               75 pods is moved half a minute to a minute after all run.",
    },
    Cause {
        cases: &[CaseName::Mixed],
        phases: &[],
        rows: WRITES,
        text: "As in perf-basic, a write for each pod and its place; and three times the claims and nodes. Tried: \
               leaving pods under a spread over zones without, which has them take the room of others, for whom \
               more nodes are bought.",
    },
    Cause {
        cases: &[CaseName::Settle],
        phases: &[],
        rows: NODES,
        text: "Eighteen nodes cost 28 % less than two large ones. A greater `--node-fee` buys fewer.",
    },
    Cause {
        cases: &[CaseName::Settle],
        phases: &[],
        rows: MOVES,
        text: "In two runs of three one of the nodes goes after a minute and a half, when it is known what their types \
               really hold: two or three of the 615 pods are moved, once each. After that nothing moves for five \
               minutes.",
    },
    Cause {
        cases: &[CaseName::Settle],
        phases: &[],
        rows: WRITES,
        text: "As in perf-basic, a write for each pod and its place; and nine times the claims and nodes.",
    },
    Cause {
        cases: &[CaseName::Rolling],
        phases: &["out"],
        rows: NODES,
        text: "Three nodes, and two in the end, cost 2 % and 5 % less than the one.",
    },
    Cause {
        cases: &[CaseName::Rolling],
        phases: &["out"],
        rows: MOVES,
        text: "The first node of a type shows that it holds more than was known before; the thirteen pods of the \
               third then fit on the two others and are moved there, once. What a type holds is known from \
               then on.",
    },
    Cause {
        cases: &[CaseName::Rolling],
        phases: &["out"],
        rows: WRITES,
        text: "Three claims and nodes instead of one, and the move of thirteen pods.",
    },
    Cause {
        cases: &[CaseName::Rolling],
        phases: &["update"],
        rows: &[],
        text: "The 125 pods that are deleted first leave their room to as many new ones. The update lets 125 more run \
               beside all others, and these are bought a node for within a second. Karpenter waits for the burst \
               to end, by which time the update is over: here pods are ready, and end, at once. All run a second \
               sooner for the node, which goes after half a minute. Before the room of pods about to end was \
               counted on it was four nodes for $2.69 an hour, and 109 writes.",
    },
    Cause {
        cases: &[CaseName::Expiry],
        phases: &["expire"],
        rows: &[],
        text: "From the first node that expires to the end it is 78 s, and 34 s with Karpenter, which deletes what \
               has expired, with all twenty pods away at once. Longshore buys first and keeps the pool's budget, \
               four nodes at a time: no more than three pods are away. Nothing is to be tried: an age limit is no \
               emergency.",
    },
    Cause {
        cases: &[CaseName::Repair],
        phases: &["repair"],
        rows: &[],
        text: "The condition says that it has been so for an hour, which Karpenter believes at once. Longshore has to \
               have seen it for five minutes itself: the time is the word of a node that ails. Not tried: fewer \
               minutes.",
    },
    Cause {
        cases: ALONE,
        phases: &[],
        rows: &["calls of CreateFleet until all run"],
        text: "Pods are bought nodes for as they come, within half a second; Karpenter waits for the burst to end, \
               and makes its only call three to seven seconds later.",
    },
];

/// The cause of a loss; none when nobody has written it down.
#[must_use]
pub fn of(case: CaseName, phase: &str, row: &str) -> Option<&'static str> {
    let fits = |cause: &&Cause| {
        let has = |all: &[&str], one| all.is_empty() || all.contains(&one);
        (cause.cases.is_empty() || cause.cases.contains(&case))
            && has(cause.phases, phase)
            && has(cause.rows, row)
    };
    CAUSES.iter().find(fits).map(|cause| cause.text)
}
