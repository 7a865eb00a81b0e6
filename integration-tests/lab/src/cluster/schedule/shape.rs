//! What the scheduler needs to know of a pod's spec, parsed once.
//!
//! Invariant: pods with equal fingerprints are interchangeable for every node filter, apart from
//! what other pods on the nodes do to their spread and affinity.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::quantity::Resources;
use crate::cluster::object;
use crate::cluster::selector::LabelSelector;

/// A pod's demands.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Resources requested, with `pods` as one of them.
    pub requests: Resources,
    /// `spec.nodeSelector`.
    pub node_selector: LabelSelector,
    /// Required node affinity: any term may hold; none when not demanded.
    pub node_terms: Option<Vec<NodeTerm>>,
    /// Preferred node affinity.
    pub preferred_node_terms: Vec<(i64, NodeTerm)>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Topology spread constraints.
    pub spread: Vec<Spread>,
    /// Required pod affinity.
    pub affinity: Vec<PodTerm>,
    /// Required pod anti-affinity.
    pub anti_affinity: Vec<PodTerm>,
    /// Preferred pod affinity, anti-affinity with negative weights.
    pub preferred_pod_terms: Vec<(i64, PodTerm)>,
    /// Host ports, as `PROTOCOL/NUMBER`.
    pub host_ports: Vec<String>,
    /// True while scheduling gates hold the pod back.
    pub is_gated: bool,
    /// `spec.schedulerName`.
    pub scheduler_name: String,
    /// Equal for specs that are equal to the scheduler.
    pub fingerprint: u64,
}

/// One node selector term.
#[derive(Clone, Debug, Default)]
pub struct NodeTerm {
    labels: LabelSelector,
    fields: LabelSelector,
    is_empty: bool,
}

impl NodeTerm {
    fn of(term: &Value) -> Self {
        let (labels, fields) = (&term["matchExpressions"], &term["matchFields"]);
        Self {
            labels: LabelSelector::of_expressions(labels),
            fields: LabelSelector::of_expressions(fields),
            is_empty: object::items(labels).is_empty() && object::items(fields).is_empty(),
        }
    }

    /// True when the node satisfies the term; an empty term matches nothing.
    pub fn matches(&self, node: &Value) -> bool {
        !self.is_empty
            && self.labels.matches_object(node)
            && self.fields.matches(|field| (field == "metadata.name").then(|| object::name(node)))
    }
}

/// One toleration.
#[derive(Clone, Debug, Default)]
pub struct Toleration {
    key: String,
    value: String,
    effect: String,
    exists: bool,
    /// Seconds a NoExecute taint is tolerated; forever when none.
    pub seconds: Option<i64>,
}

impl Toleration {
    fn of(toleration: &Value) -> Self {
        let text = |field: &str| toleration[field].as_str().unwrap_or_default().to_owned();
        Self {
            key: text("key"),
            value: text("value"),
            effect: text("effect"),
            exists: toleration["operator"] == "Exists",
            seconds: toleration["tolerationSeconds"].as_i64(),
        }
    }

    /// True when it tolerates the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        (self.effect.is_empty() || self.effect == taint.effect)
            && (self.key == taint.key || (self.key.is_empty() && self.exists))
            && (self.exists || self.value == taint.value)
    }
}

/// One taint of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value, may be empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

impl Taint {
    /// All taints of a node.
    pub fn of_node(node: &Value) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        object::items(&node["spec"]["taints"])
            .iter()
            .map(|taint| Self {
                key: text(&taint["key"]),
                value: text(&taint["value"]),
                effect: text(&taint["effect"]),
            })
            .collect()
    }
}

/// One topology spread constraint.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Largest difference allowed.
    pub max_skew: i64,
    /// Node label that makes the domains.
    pub topology_key: String,
    /// True for `DoNotSchedule`.
    pub is_required: bool,
    /// Pods counted.
    pub selector: LabelSelector,
    /// Domains below which the smallest count reads as zero.
    pub min_domains: usize,
    /// True when only nodes that the pod's affinity allows make domains.
    pub honours_affinity: bool,
    /// True when only nodes whose taints are tolerated make domains.
    pub honours_taints: bool,
}

/// One pod affinity or anti-affinity term.
#[derive(Clone, Debug)]
pub struct PodTerm {
    /// Node label that makes the domains.
    pub topology_key: String,
    selector: LabelSelector,
    namespaces: Vec<String>,
    all_namespaces: bool,
}

impl PodTerm {
    fn of(term: &Value, pod: &Value) -> Self {
        let mut namespaces: Vec<String> = object::items(&term["namespaces"])
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let selects_namespaces = term["namespaceSelector"].is_object();
        if namespaces.is_empty() && !selects_namespaces {
            namespaces.push(object::namespace(pod).to_owned());
        }
        Self {
            topology_key: term["topologyKey"].as_str().unwrap_or_default().to_owned(),
            selector: with_label_keys(&term["labelSelector"], &term["matchLabelKeys"], pod),
            namespaces,
            all_namespaces: selects_namespaces,
        }
    }

    /// True when the pod is one of those the term is about.
    pub fn matches(&self, pod: &Value) -> bool {
        let namespace = object::namespace(pod);
        (self.all_namespaces || self.namespaces.iter().any(|name| name == namespace))
            && self.selector.matches_object(pod)
    }
}

impl Shape {
    /// Parses a pod.
    pub fn of(pod: &Value) -> Self {
        let spec = &pod["spec"];
        let affinity = &spec["affinity"];
        let (near, far) = (&affinity["podAffinity"], &affinity["podAntiAffinity"]);
        let required = |side: &Value| {
            let terms = object::items(&side["requiredDuringSchedulingIgnoredDuringExecution"]);
            terms.iter().map(|term| PodTerm::of(term, pod)).collect::<Vec<_>>()
        };
        let preferred = |side: &Value, sign: i64| {
            let terms = object::items(&side["preferredDuringSchedulingIgnoredDuringExecution"]);
            let weighted = |term: &Value| {
                let weight = sign * term["weight"].as_i64().unwrap_or(1);
                (weight, PodTerm::of(&term["podAffinityTerm"], pod))
            };
            terms.iter().map(weighted).collect::<Vec<_>>()
        };
        let node_affinity = &affinity["nodeAffinity"];
        Self {
            requests: requests(spec),
            node_selector: LabelSelector::of_map(&object::string_map(&spec["nodeSelector"])),
            node_terms: required_node_terms(node_affinity),
            preferred_node_terms: preferred_node_terms(node_affinity),
            tolerations: object::items(&spec["tolerations"]).iter().map(Toleration::of).collect(),
            spread: object::items(&spec["topologySpreadConstraints"])
                .iter()
                .map(|constraint| spread(constraint, pod))
                .collect(),
            affinity: required(near),
            anti_affinity: required(far),
            preferred_pod_terms: [preferred(near, 1), preferred(far, -1)].concat(),
            host_ports: host_ports(spec),
            is_gated: !object::items(&spec["schedulingGates"]).is_empty(),
            scheduler_name: spec["schedulerName"].as_str().unwrap_or_default().to_owned(),
            fingerprint: fingerprint(pod),
        }
    }

    /// True when where other pods run matters to this pod.
    pub fn minds_other_pods(&self) -> bool {
        !self.affinity.is_empty()
            || !self.anti_affinity.is_empty()
            || self.spread.iter().any(|constraint| constraint.is_required)
    }

    /// True when node selector and required node affinity hold.
    pub fn selects(&self, node: &Value) -> bool {
        self.node_selector.matches_object(node)
            && self.node_terms.as_ref().is_none_or(|terms| terms.iter().any(|t| t.matches(node)))
    }

    /// True when some toleration covers the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }
}

fn required_node_terms(affinity: &Value) -> Option<Vec<NodeTerm>> {
    let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = object::items(&required["nodeSelectorTerms"]);
    required.is_object().then(|| terms.iter().map(NodeTerm::of).collect())
}

fn preferred_node_terms(affinity: &Value) -> Vec<(i64, NodeTerm)> {
    let terms = object::items(&affinity["preferredDuringSchedulingIgnoredDuringExecution"]);
    let weighted =
        |term: &Value| (term["weight"].as_i64().unwrap_or(1), NodeTerm::of(&term["preference"]));
    terms.iter().map(weighted).collect()
}

fn spread(constraint: &Value, pod: &Value) -> Spread {
    let min_domains = constraint["minDomains"].as_u64().unwrap_or(1);
    Spread {
        max_skew: constraint["maxSkew"].as_i64().unwrap_or(1),
        topology_key: constraint["topologyKey"].as_str().unwrap_or_default().to_owned(),
        is_required: constraint["whenUnsatisfiable"] != "ScheduleAnyway",
        selector: with_label_keys(&constraint["labelSelector"], &constraint["matchLabelKeys"], pod),
        min_domains: usize::try_from(min_domains).unwrap_or(usize::MAX),
        honours_affinity: constraint["nodeAffinityPolicy"] != "Ignore",
        honours_taints: constraint["nodeTaintsPolicy"] == "Honor",
    }
}

/// A selector that also demands the pod's own values of some labels.
fn with_label_keys(selector: &Value, keys: &Value, pod: &Value) -> LabelSelector {
    let mut selector = selector.clone();
    for key in object::items(keys).iter().filter_map(Value::as_str) {
        if let Some(value) = object::label(pod, key) {
            selector["matchLabels"][key] = Value::from(value);
        }
    }
    if selector.is_null() {
        // An absent selector selects nothing, an empty one everything.
        selector = serde_json::json!({ "matchExpressions": [{ "key": "", "operator": "Exists" }] });
    }
    LabelSelector::of_object(&selector)
}

/// Effective requests: the larger of all containers together and each step of initialisation,
/// sidecars counted with both, plus the overhead of the runtime class.
fn requests(spec: &Value) -> Resources {
    let of = |container: &Value| Resources::of_json(&container["resources"]["requests"]);
    let mut running = Resources::default();
    object::items(&spec["containers"]).iter().for_each(|container| running.add(&of(container)));
    let mut sidecars = Resources::default();
    let mut peak = Resources::default();
    for container in object::items(&spec["initContainers"]) {
        let mut step = of(container);
        if container["restartPolicy"] == "Always" {
            sidecars.add(&step);
            peak.raise_to(&sidecars);
        } else {
            step.add(&sidecars);
            peak.raise_to(&step);
        }
    }
    running.add(&sidecars);
    running.raise_to(&peak);
    let whole = Resources::of_json(&spec["resources"]["requests"]);
    for (name, amount) in whole.entries().filter(|(_, amount)| *amount > 0) {
        *running.slot(name) = amount;
    }
    running.add(&Resources::of_json(&spec["overhead"]));
    *running.slot("pods") = 1_000;
    running
}

fn host_ports(spec: &Value) -> Vec<String> {
    let on_host = spec["hostNetwork"] == true;
    let containers = object::items(&spec["containers"]).iter();
    let ports = containers.flat_map(|container| object::items(&container["ports"]));
    ports
        .filter_map(|port| {
            let host = port["hostPort"].as_i64().filter(|number| *number > 0);
            let number = host.or_else(|| port["containerPort"].as_i64().filter(|_| on_host))?;
            Some(format!("{}/{number}", port["protocol"].as_str().unwrap_or("TCP")))
        })
        .collect()
}

/// Digest of everything in a pod that any filter reads.
fn fingerprint(pod: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    let spec = pod["spec"].as_object().into_iter().flatten();
    for (field, value) in spec.filter(|(field, _)| *field != "nodeName") {
        field.hash(&mut hasher);
        value.hash(&mut hasher);
    }
    object::namespace(pod).hash(&mut hasher);
    pod["metadata"]["labels"].hash(&mut hasher);
    hasher.finish()
}
