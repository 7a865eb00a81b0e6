//! Which lists of built-in kinds merge by key, and by which.
//!
//! Invariant: a list not named here is replaced whole, as the API's atomic lists are.

use serde_json::Value;

/// How a list merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// Replaced whole.
    Atomic,
    /// Elements are maps told apart by this field.
    Keyed(&'static str),
    /// Elements are scalars; union.
    Set,
}

/// How the list under `field` merges. `sample` is any of its elements: ports are told apart by
/// `containerPort` in containers and by `port` in services.
pub fn merging_of(field: &str, sample: Option<&Value>, custom: bool) -> Merging {
    match field {
        "ownerReferences" => Merging::Keyed("uid"),
        "finalizers" => Merging::Set,
        _ if custom => Merging::Atomic,
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "resourceClaims" => Merging::Keyed("name"),
        "volumeMounts" => Merging::Keyed("mountPath"),
        "volumeDevices" => Merging::Keyed("devicePath"),
        "conditions" | "addresses" => Merging::Keyed("type"),
        "topologySpreadConstraints" => Merging::Keyed("topologyKey"),
        "hostAliases" => Merging::Keyed("ip"),
        "ports" if sample.is_some_and(|port| port["containerPort"].is_number()) => {
            Merging::Keyed("containerPort")
        }
        "ports" => Merging::Keyed("port"),
        _ => Merging::Atomic,
    }
}
