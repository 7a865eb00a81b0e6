//! Nodes with which something is wrong, by what they say of themselves.
//!
//! Invariant: a condition of EKS's node monitoring agent only, so that no other fault mends it;
//! when the fault ends, all that are left are well.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::act::Turn;
use crate::clock::EPOCH_MS;
use crate::random::Random;
use crate::world::World;

/// Conditions of which one turns false.
const CONDITIONS: [&str; 5] = [
    "AcceleratedHardwareReady",
    "StorageReady",
    "NetworkingReady",
    "KernelReady",
    "ContainerRuntimeReady",
];
/// So long ago, at most, a node says that it began, in milliseconds: half of the time longer than
/// is put up with.
const BEGAN_MS: u64 = 3_600_000;
/// Of many that ail at once: how many of a pool, in percent.
const OF_MANY_PERCENT: u64 = 60;
/// How often more begin to ail while some of the cluster do, in percent.
const MORE_PERCENT: u64 = 10;

impl World {
    /// One node of a pool begins to ail, or many of one pool, or they are well again. Says which,
    /// and by what condition.
    pub(super) async fn turn_ailing(
        &self,
        cluster: usize,
        many: bool,
        turn: Turn<'_>,
        random: &mut Random,
    ) -> String {
        let now_ms = EPOCH_MS + self.journal.elapsed_ms();
        if !turn.on {
            let (kind, nodes) = turn.subject.split_once(' ').unwrap_or_default();
            for node in nodes.split_whitespace() {
                self.set_condition(cluster, node, condition(kind, true, now_ms)).await;
            }
            return String::new();
        }
        let kind = CONDITIONS[random.index(CONDITIONS.len())];
        let ago_ms = random.between(0, BEGAN_MS);
        let nodes = self.who_ails(cluster, many, random);
        if nodes.is_empty() {
            return String::new();
        }
        let began_ms = now_ms - i64::try_from(ago_ms).unwrap_or_default();
        let mut subject = kind.to_owned();
        for node in nodes {
            self.set_condition(cluster, &node, condition(kind, false, began_ms)).await;
            subject = format!("{subject} {node}");
        }
        let label = &self.clusters[cluster].label;
        self.journal.note(&format!("of {label} ail, for {ago_ms} ms already: {subject}"));
        subject
    }

    /// Whom it befalls; mostly nobody more while some ail, or so many would that none may go.
    fn who_ails(&self, cluster: usize, many: bool, random: &mut Random) -> Vec<String> {
        let (mut nodes, mut some) = (Vec::new(), false);
        self.clusters[cluster].handle.visit("nodes", |node| {
            let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
            let metadata = &node["metadata"];
            let pool = text(&metadata["labels"]["karpenter.sh/nodepool"]);
            nodes.extend(text(&metadata["name"]).zip(pool));
            let mut said = node["status"]["conditions"].as_array().into_iter().flatten();
            some |= said.any(|one| one["status"] == "False" && is_ours(&one["type"]));
        });
        let Some((first, pool)) = random.one(&nodes).cloned() else { return Vec::new() };
        if some && !random.chance(MORE_PERCENT) {
            return Vec::new();
        }
        let of_pool = nodes.iter().filter(|(name, of)| *of == pool && *name != first);
        let others = of_pool.filter(|_| many && random.chance(OF_MANY_PERCENT));
        let others: Vec<String> = others.map(|(name, _)| name.clone()).collect();
        std::iter::once(first).chain(others).collect()
    }
}

fn is_ours(kind: &Value) -> bool {
    CONDITIONS.iter().any(|known| kind == *known)
}

/// A condition that is true or false since a moment.
fn condition(kind: &str, well: bool, since_ms: i64) -> Value {
    let since = Timestamp::from_millisecond(since_ms).unwrap_or_default();
    json!({
        "type": kind,
        "status": if well { "True" } else { "False" },
        "reason": if well { "Recovered" } else { "FoundByTheAgent" },
        "lastTransitionTime": since.strftime("%FT%TZ").to_string(),
    })
}
