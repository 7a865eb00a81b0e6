//! What kube-scheduler checks of one pod against one node, for every pod that the plan brings.
//!
//! Invariant: a node is judged with all its pods on it and the DaemonSet pods still to come.

use crate::check::nodes::{Form, NodeAfter, Nodes};
use crate::check::{Findings, Part, Rule};
use crate::vocabulary::ids::PodUid;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::resources::Resources;
use crate::world::shape::PodShape;

pub(super) fn check(nodes: &Nodes<'_>, findings: &mut Findings) {
    for node in nodes.all.values().filter(|node| !node.arrived.is_empty()) {
        findings.require(node.takes_pods, Rule::Target, || {
            (vec![Part::Place(node.target.clone())], format!("{} takes no pods", node.name))
        });
        resources(nodes, node, findings);
        ports(node, findings);
        for (uid, shape) in node.pods.iter().filter(|(uid, _)| node.arrived.contains(uid)) {
            for taint in &node.taints {
                let covered = shape.tolerations.iter().any(|toleration| toleration.covers(taint));
                findings.require(covered || !taint.repels(), Rule::Taints, || {
                    let detail = format!("pod {uid} on {} does not tolerate {taint}", node.name);
                    (vec![Part::Pod((*uid).clone())], detail)
                });
            }
            let everywhere = node.forms.iter().all(|form| affinity_holds(shape, form));
            findings.require(everywhere, Rule::NodeAffinity, || {
                let detail = format!("pod {uid} does not match every form of {}", node.name);
                (vec![Part::Pod((*uid).clone())], detail)
            });
        }
    }
}

fn resources(nodes: &Nodes<'_>, node: &NodeAfter<'_>, findings: &mut Findings) {
    // What runs is not moved to where it would have to wait.
    let stays = |uid: &PodUid| node.moved_to || !node.frees.contains(uid);
    let pods = node.pods.iter().filter(|(uid, _)| stays(uid)).map(|(_, shape)| &shape.requests);
    let sum = pods.fold(Resources::default(), |sum, request| sum.plus(request));
    let arrived = node.pods.iter().filter(|(uid, _)| node.arrived.contains(uid));
    let brought = arrived.fold(Resources::default(), |sum, (_, pod)| sum.plus(&pod.requests));
    for form in node.forms.iter() {
        let mut all = sum.clone();
        for (daemon, owner) in &nodes.daemons {
            let here = |(_, pod): &(_, &PodShape)| {
                pod.is_daemon && pod.owner == *owner && pod.namespace == daemon.namespace
            };
            if !node.pods.iter().any(here) && runs_on(daemon, node, form) {
                all = all.plus(&daemon.requests);
            }
        }
        if let Some(requests) =
            node.requests.filter(|requests| !requests.fits_in(&form.allocatable))
        {
            let short = requests.first_misfit(&form.allocatable).unwrap_or_default();
            let detail = format!("{} is launched for more {short} than it has", node.name);
            findings.add(Rule::Resources, (vec![Part::Place(node.target.clone())], detail));
        }
        // kube-scheduler looks at the resources that a pod asks for; what was short before stays
        // so.
        let short = |name: &&str| all.get(name) > form.allocatable.available(name);
        if let Some(resource) = brought.names().find(short) {
            let (need, have) = (all.get(resource), form.allocatable.get(resource));
            let detail = format!("{} needs {resource} {need}, has {have}", node.name);
            findings.add(Rule::Resources, (vec![Part::Place(node.target.clone())], detail));
        }
    }
}

fn runs_on(daemon: &PodShape, node: &NodeAfter<'_>, form: &Form) -> bool {
    let tolerates = |taint| daemon.tolerations.iter().any(|t| t.covers(taint));
    node.taints.iter().all(|taint| !taint.repels() || tolerates(taint))
        && affinity_holds(daemon, form)
}

/// Node selector, any required term, any volume term.
fn affinity_holds(shape: &PodShape, form: &Form) -> bool {
    let any = |terms: &[Requirements]| {
        terms.is_empty() || terms.iter().any(|term| term.allow(&form.labels))
    };
    shape.node_selector.iter().all(|(key, value)| form.labels.get(key) == Some(value))
        && any(&shape.required_node_terms)
        && any(&shape.volume_terms)
}

fn ports(node: &NodeAfter<'_>, findings: &mut Findings) {
    let open: Vec<_> = node
        .pods
        .iter()
        .flat_map(|(uid, shape)| shape.host_ports.iter().map(move |port| (uid, port)))
        .collect();
    for (at, (uid, port)) in open.iter().enumerate() {
        for (other, taken) in open.iter().skip(at + 1).filter(|(other, _)| other != uid) {
            findings.require(!port.conflicts(taken), Rule::HostPorts, || {
                let detail =
                    format!("pods {uid} and {other} on {} share port {}", node.name, port.port);
                // Of two that the plan brings the later in order goes.
                let arrival = if node.arrived.contains(**other) { other } else { uid };
                (vec![Part::Pod((**arrival).clone())], detail)
            });
        }
    }
}
