//! Pools and the node classes that they name.
//!
//! Invariant: objects are read as the watcher reads them; one that cannot be read is another
//! check's finding.

use longshore_proto::types::v1::{NodeClass, NodePool, Operator, Requirement};
use longshore_watcher::api::keys::labels::CAPACITY_TYPE;
use longshore_watcher::api::{self, AWSNodeTemplate, EC2NodeClass, Provisioner, crd};
use longshore_watcher::project::{legacy, node_class, node_template, pool};
use serde_json::Value;

use super::facts::{Facts, Kind, name};
use super::{Finding, Severity};

/// All pools, with the kind and name of their object.
pub fn pools(facts: &Facts) -> Vec<(String, NodePool)> {
    let read = |object: &Value| {
        let read = crd::decode::<api::NodePool>(object.clone()).ok()?;
        Some((name("NodePool", object), pool::pool(&read).ok()?))
    };
    let v1 = facts.of(Kind::NodePool).filter_map(read);
    let first = provisioners(facts).map(|(name, legacy)| (name, legacy.pool));
    v1.chain(first).collect()
}

/// All node classes, those written inside Provisioners included.
pub fn classes(facts: &Facts) -> Vec<NodeClass> {
    let v1 = facts.of(Kind::EC2NodeClass).filter_map(|object| {
        node_class::ec2_node_class(&crd::decode::<EC2NodeClass>(object.clone()).ok()?).ok()
    });
    let templates = templates(facts);
    let templates = templates.iter().filter_map(|it| node_template::node_template(it).ok());
    let inline = provisioners(facts).filter_map(|(_, legacy)| legacy.class);
    v1.chain(templates).chain(inline).collect()
}

fn templates(facts: &Facts) -> Vec<AWSNodeTemplate> {
    facts.of(Kind::AWSNodeTemplate).filter_map(|it| crd::decode(it.clone()).ok()).collect()
}

fn provisioners(facts: &Facts) -> impl Iterator<Item = (String, legacy::LegacyPool)> {
    let templates = templates(facts);
    facts.of(Kind::Provisioner).filter_map(move |object| {
        let read: Provisioner = crd::decode(object.clone()).ok()?;
        let named = legacy::template_name(&read.spec);
        let template = templates.iter().find(|it| it.metadata.name.as_deref() == named);
        Some((name("Provisioner", object), legacy::provisioner(&read, template).ok()?))
    })
}

/// Pools whose requirements name spot.
pub fn naming_spot(facts: &Facts) -> Vec<String> {
    let names_spot = |it: &Requirement| {
        it.key == CAPACITY_TYPE
            && it.operator() == Operator::In
            && it.values.iter().any(|value| value == "spot")
    };
    let named =
        pools(facts).into_iter().filter(|(_, pool)| pool.requirements.iter().any(names_spot));
    named.map(|(name, _)| name).collect()
}

/// Pools that name a node class which is not there.
pub fn missing_classes(facts: &Facts) -> Vec<Finding> {
    if !facts.read(Kind::EC2NodeClass) || !facts.read(Kind::AWSNodeTemplate) {
        return Vec::new();
    }
    let known: Vec<String> = classes(facts).into_iter().map(|class| class.name).collect();
    let pools = pools(facts).into_iter().filter(|(_, pool)| !known.contains(&pool.node_class));
    let found = pools.map(|(object, pool)| {
        let legacy = object.starts_with("Provisioner/");
        let field = if legacy { "spec.providerRef" } else { "spec.template.spec.nodeClassRef" };
        let there =
            if known.is_empty() { "no node class is there".to_owned() } else { known.join(", ") };
        Finding {
            severity: Severity::Problem,
            message: format!(
                "{field} names {}, which is not there: the pool makes no nodes",
                pool.node_class
            ),
            evidence: format!("node classes: {there}"),
            remedy: format!(
                "kubectl edit {}   # name one of those in {field}, or apply {}",
                object.to_lowercase(),
                pool.node_class
            ),
            object,
        }
    });
    found.collect()
}
