//! Writing to nodes, which their kubelets write to all the time.
//!
//! Invariant: a write is refused when what it rests on has changed since, and then decided again
//! from the node as it is. It is not refused for a heartbeat.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::Value;

use super::guarded::operations;
use super::{Part, code, edit, found, operate};

/// What of a node has to be as it was seen, beside the values that are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// It is this very node.
    Itself,
    /// It repels the same pods, is as ready as it was and has the same to give, too.
    Service,
}

/// Edits a node as [`edit`] does, with a first try that holds what it replaces and `precondition`
/// against the node, not its version. When that is refused the node is read, and edited as it then
/// is.
///
/// # Errors
/// As [`edit`].
pub async fn edit_node(
    api: &Api<Node>,
    name: &str,
    known: Option<Node>,
    precondition: Precondition,
    change: impl Fn(&mut Node) + Send,
) -> kube::Result<Option<Node>> {
    // Who writes to nodes keeps a pointer, not two ways of writing.
    let written = Box::pin(async move {
        let before = match known {
            Some(node) => node,
            None => match api.get_opt(name).await? {
                Some(node) => node,
                None => return Ok(None),
            },
        };
        let Some(patch) = patch_of(&before, precondition, &change)? else {
            return Ok(Some(before));
        };
        match operate(api, name, patch).await {
            Err(error) if is_contested(&error) => edit(api, name, Part::Main, None, change).await,
            other => found(other),
        }
    });
    written.await
}

fn patch_of(
    before: &Node,
    precondition: Precondition,
    change: &impl Fn(&mut Node),
) -> kube::Result<Option<Value>> {
    let mut after = before.clone();
    change(&mut after);
    let value = |node: &Node| serde_json::to_value(node).map_err(kube::Error::SerdeError);
    let old = value(before)?;
    Ok(operations(&old, &value(&after)?, &precondition.of(&old)))
}

/// True when the node is not as it was seen, or others wrote to it too fast for the API server. It
/// answers 422 to a test that fails, and to what it holds invalid; the latter it says again.
fn is_contested(error: &kube::Error) -> bool {
    matches!(code(error), Some(409 | 422))
}

impl Precondition {
    /// Where that is to be found in a node.
    fn of(self, node: &Value) -> Vec<String> {
        let mut paths = vec!["/metadata/uid".to_owned()];
        if self == Self::Service {
            paths.extend(["/spec/taints", "/status/allocatable"].map(str::to_owned));
            paths.extend(readiness(node));
        }
        paths
    }
}

/// The Ready condition's type and status: it is known by its place, and the times in it change with
/// each heartbeat.
fn readiness(node: &Value) -> Vec<String> {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let place = conditions.and_then(|all| all.iter().position(|it| it["type"] == "Ready"));
    match place {
        Some(place) => {
            let field = |field| format!("/status/conditions/{place}/{field}");
            vec![field("type"), field("status")]
        }
        // Whoever says first that it is ready adds it somewhere.
        None => vec!["/status/conditions".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_heartbeat_is_no_precondition() {
        let conditions = json!([{ "type": "DiskPressure" }, { "type": "Ready", "status": "True" }]);
        let node = json!({ "status": { "conditions": conditions } });
        let itself = ["/metadata/uid"];
        let service = [
            "/metadata/uid",
            "/spec/taints",
            "/status/allocatable",
            "/status/conditions/1/type",
            "/status/conditions/1/status",
        ];
        assert_eq!(Precondition::Itself.of(&node), itself);
        assert_eq!(Precondition::Service.of(&node), service);
        let silent = Precondition::Service.of(&json!({}));
        assert!(silent.contains(&"/status/conditions".to_owned()), "{silent:?}");
    }
}
