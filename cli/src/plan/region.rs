//! Which region a plan is for.
//!
//! Invariant: the user's word counts most, then what pools, nodes and pods say of zones; only when
//! nothing says anything is a region assumed, and the answer says so.

use std::collections::BTreeSet;

use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{Object, Operator, Requirement};
use longshore_watcher::api::keys::labels::{REGION, ZONE};

/// Assumed when nothing names a region.
pub const ASSUMED: &str = "us-east-1";

/// A region, and a remark when it was not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name.
    pub region: String,
    /// Where the name comes from, unless the user gave it.
    pub remark: Option<String>,
}

/// Zones of more than one region are named.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{named_by} name more than one region: {}; choose with --region", .regions.join(", "))]
pub struct Ambiguous {
    /// Who names them.
    pub named_by: &'static str,
    /// The regions.
    pub regions: Vec<String>,
}

/// Zones and regions that an object names.
type Places = fn(&Kind) -> Vec<String>;

/// The region of a plan. `known` are the regions there is data for.
///
/// # Errors
/// When it was not given and the objects name several.
pub fn choose(
    given: Option<&str>,
    objects: &[Object],
    known: &[&str],
) -> Result<Choice, Ambiguous> {
    if let Some(region) = given {
        return Ok(Choice { region: region.to_owned(), remark: None });
    }
    let sources: [(&str, Places); 3] = [
        ("zone requirements of the pools", of_pool),
        ("zones of the nodes", of_node),
        ("zones that pods ask for", of_shape),
    ];
    for (source, places) in sources {
        let kinds = objects.iter().filter_map(|object| object.kind.as_ref());
        let regions: BTreeSet<&str> =
            kinds.flat_map(places).filter_map(|place| region_of(&place, known)).collect();
        let mut regions = regions.into_iter().map(str::to_owned).collect::<Vec<_>>();
        match regions.len() {
            0 => {}
            1 => {
                let region = regions.remove(0);
                let remark = Some(format!("region {region}, from the {source}"));
                return Ok(Choice { region, remark });
            }
            _ => return Err(Ambiguous { named_by: source, regions }),
        }
    }
    let remark = format!("region {ASSUMED}, as nothing names one; choose another with --region");
    Ok(Choice { region: ASSUMED.to_owned(), remark: Some(remark) })
}

/// The region of a zone or region name: `us-west-2` for `us-west-2-lax-1a` too.
fn region_of<'a>(place: &str, known: &[&'a str]) -> Option<&'a str> {
    let fits = known.iter().filter(|region| {
        place
            .strip_prefix(**region)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    fits.max_by_key(|region| region.len()).copied()
}

fn of_requirements<'a>(list: impl IntoIterator<Item = &'a Requirement>) -> Vec<String> {
    let places = list.into_iter().filter(|r| [ZONE, REGION].contains(&r.key.as_str()));
    let named = places.filter(|r| r.operator() == Operator::In);
    named.flat_map(|r| r.values.clone()).collect()
}

fn of_labels(labels: &std::collections::BTreeMap<String, String>) -> Vec<String> {
    [ZONE, REGION].iter().filter_map(|key| labels.get(*key).cloned()).collect()
}

fn of_pool(kind: &Kind) -> Vec<String> {
    let Kind::NodePool(pool) = kind else { return Vec::new() };
    [of_requirements(&pool.requirements), of_labels(&pool.labels)].concat()
}

fn of_node(kind: &Kind) -> Vec<String> {
    let Kind::Node(node) = kind else { return Vec::new() };
    of_labels(&node.labels)
}

fn of_shape(kind: &Kind) -> Vec<String> {
    let Kind::PodShape(shape) = kind else { return Vec::new() };
    let terms = shape.required_node_terms.iter().chain(&shape.volume_terms);
    let required = of_requirements(terms.flat_map(|term| &term.requirements));
    [required, of_labels(&shape.node_selector)].concat()
}

#[cfg(test)]
mod tests {
    use longshore_proto::types::v1::{Node, NodePool};

    use super::*;

    const KNOWN: [&str; 3] = ["us-east-1", "us-west-2", "ap-northeast-2"];

    fn pool(zones: &[&str]) -> Object {
        let values = zones.iter().map(|zone| (*zone).to_owned());
        let requirements = vec![longshore_watcher::project::requirement::within(ZONE, values)];
        Object { kind: Some(Kind::NodePool(NodePool { requirements, ..NodePool::default() })) }
    }

    fn node(zone: &str) -> Object {
        let labels = [(ZONE.to_owned(), zone.to_owned())].into();
        Object { kind: Some(Kind::Node(Node { labels, ..Node::default() })) }
    }

    #[test]
    fn the_first_source_that_names_a_region_decides() {
        let choose = |given, objects: &[Object]| choose(given, objects, &KNOWN);
        assert_eq!(choose(Some("x"), &[pool(&["us-east-1a"])]).unwrap().region, "x");
        let found = choose(None, &[node("us-east-1b"), pool(&["ap-northeast-2a"])]).unwrap();
        assert_eq!(found.region, "ap-northeast-2");
        assert!(found.remark.unwrap().contains("requirements of the pools"));
        assert_eq!(choose(None, &[node("us-west-2-lax-1a")]).unwrap().region, "us-west-2");
        let assumed = choose(None, &[node("on-context"), node("us-east-11a")]).unwrap();
        assert!(assumed.remark.unwrap().contains("nothing names one"));
    }

    #[test]
    fn two_regions_ask_for_a_choice() {
        let error = choose(None, &[pool(&["us-east-1a", "us-west-2a"])], &KNOWN).unwrap_err();
        assert!(error.to_string().contains("us-east-1, us-west-2; choose with --region"));
    }
}
