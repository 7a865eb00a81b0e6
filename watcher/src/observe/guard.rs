//! An object as it comes from the API server: decoded, or what can be told of it all the same.
//!
//! Invariant: one object that cannot be decoded spoils no list. Its metadata is read for itself,
//! and so is the node that a pod is on: what it may be about is not more than that node then. What
//! can be decoded is read straight from the text, of which a large cluster has a gigabyte.

use std::borrow::Cow;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::index::Watched;

/// An object, or why it cannot be decoded. Like kube's `DeserializeGuard`, but for what it tells of
/// the latter.
#[derive(Clone, Debug)]
pub struct Guarded<K>(pub Result<K, Undecoded>);

/// What can be told of an object that cannot be decoded.
#[derive(Clone, Debug)]
pub struct Undecoded {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// `spec.nodeName`, empty when there is none; nothing when that much cannot be read either.
    pub node_name: Option<String>,
    /// Why it cannot be decoded.
    pub error: String,
}

impl<'de, K: Watched> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // In an event of a watch the text is there only because the type comes before the object:
        // every API server writes them so.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if let Ok(object) = K::decode(text.get()) {
            return Ok(Self(Ok(object)));
        }
        // Once more without the text: an error would name a place in it, which nobody sees and
        // which moves with every change of the object.
        let raw: Value = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let error = match K::deserialize(&raw) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) if K::QUOTABLE => error.to_string(),
            Err(error) => unquoted(&error.to_string()),
        };
        let metadata = ObjectMeta::deserialize(&raw["metadata"]).map_err(D::Error::custom)?;
        let node_name = raw["spec"].as_object().and_then(|spec| match spec.get("nodeName") {
            None | Some(Value::Null) => Some(String::new()),
            Some(name) => name.as_str().map(str::to_owned),
        });
        Ok(Self(Err(Undecoded { metadata, node_name, error })))
    }
}

/// An error without the text that it quotes.
fn unquoted(error: &str) -> String {
    match (error.find('"'), error.rfind('"')) {
        (Some(begins), Some(ends)) if begins < ends => {
            format!("{}...{}", &error[..=begins], &error[ends..])
        }
        _ => error.to_owned(),
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|undecoded| &undecoded.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.as_mut().map_or_else(|undecoded| &mut undecoded.metadata, K::meta_mut)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::DaemonSet;
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::ObjectList;
    use kube::core::WatchEvent;
    use serde_json::json;

    use super::*;
    use crate::api::NodePool;

    #[test]
    fn what_cannot_be_decoded_says_what_can_be_read_of_it() {
        let read = |spec: Value| {
            let meta = json!({ "name": "p", "namespace": "n", "uid": "u" });
            let pod = json!({ "metadata": meta, "spec": spec });
            serde_json::from_str::<Guarded<Pod>>(&pod.to_string())
        };
        let good = read(json!({ "nodeName": "a", "containers": [] })).unwrap();
        assert!(good.0.is_ok() && good.meta().uid.as_deref() == Some("u"));
        for (spec, node) in [
            (json!({ "nodeName": "a", "containers": "none" }), Some("a")),
            (json!({ "containers": "none" }), Some("")),
            (json!({ "nodeName": 7, "containers": [] }), None),
            (json!("none"), None),
        ] {
            let bad = read(spec.clone()).unwrap();
            assert_eq!(bad.meta().name.as_deref(), Some("p"), "{spec}");
            let undecoded = bad.0.unwrap_err();
            assert_eq!(undecoded.node_name.as_deref(), node, "{spec}");
            assert!(!undecoded.error.contains("column"), "{}", undecoded.error);
        }
        assert!(serde_json::from_str::<Guarded<Pod>>(r#"{ "metadata": 1 }"#).is_err());
    }

    #[test]
    fn no_value_is_quoted_that_containers_are_given() {
        fn error<K: Watched>(object: &Value) -> String {
            let read = serde_json::from_str::<Guarded<K>>(&object.to_string());
            read.unwrap().0.err().unwrap().error
        }
        let env = json!([{ "name": "PASSWORD", "valueFrom": r#"a "s3cret" one"# }]);
        let spec = json!({ "nodeName": 7, "containers": [{ "name": "c", "env": env }] });
        let pod = json!({ "metadata": { "name": "p" }, "spec": spec });
        let set =
            json!({ "metadata": { "name": "s" }, "spec": { "template": pod, "selector": {} } });
        let of_either = [error::<Pod>(&pod), error::<DaemonSet>(&set)];
        assert_eq!(of_either, [r#"invalid type: string "...", expected EnvVarSource"#; 2]);
        let pool = json!({ "metadata": { "name": "p" }, "spec": { "limits": "64" } });
        assert!(error::<NodePool>(&pool).contains(r#""64""#), "{}", error::<NodePool>(&pool));
    }

    #[test]
    fn lists_and_watches_hold_objects_of_both_sorts() {
        let (good, bad) = (r#"{"metadata":{"name":"p"}}"#, r#"{"metadata":{"name":"q"},"spec":1}"#);
        let list = format!(r#"{{"kind":"PodList","metadata":{{}},"items":[{good},{bad}]}}"#);
        let list: ObjectList<Guarded<Pod>> = serde_json::from_str(&list).unwrap();
        assert_eq!(list.items.iter().map(|pod| pod.0.is_ok()).collect::<Vec<_>>(), [true, false]);
        for (object, is_good) in [(good, true), (bad, false)] {
            let event = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
            let event: WatchEvent<Guarded<Pod>> = serde_json::from_str(&event).unwrap();
            let WatchEvent::Modified(pod) = event else { panic!("{event:?}") };
            assert_eq!(pod.0.is_ok(), is_good);
        }
    }
}
