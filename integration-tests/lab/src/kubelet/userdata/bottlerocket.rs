//! Bottlerocket settings.
//!
//! Invariant: the three settings without which the image cannot join are demanded.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{Bootstrap, OperatingSystem, Taint, UserDataError};

pub(super) fn parse(text: &str) -> Result<Bootstrap, UserDataError> {
    let document: Table = text.parse().map_err(|error: toml::de::Error| {
        UserDataError::Malformed { format: "TOML", problem: error.message().to_owned() }
    })?;
    let kubernetes = document
        .get("settings")
        .and_then(|settings| settings.get("kubernetes"))
        .and_then(Value::as_table)
        .ok_or(UserDataError::NoConfiguration)?;
    let text = |key: &str| kubernetes.get(key).and_then(Value::as_str).unwrap_or_default();
    for (key, path) in [
        ("api-server", "settings.kubernetes.api-server"),
        ("cluster-certificate", "settings.kubernetes.cluster-certificate"),
    ] {
        if text(key).is_empty() {
            return Err(UserDataError::Missing(path));
        }
    }
    Ok(Bootstrap {
        system: OperatingSystem::Bottlerocket,
        cluster_name: text("cluster-name").to_owned(),
        endpoint: text("api-server").to_owned(),
        labels: strings(kubernetes, "node-labels"),
        taints: taints(kubernetes),
        max_pods: kubernetes
            .get("max-pods")
            .and_then(Value::as_integer)
            .and_then(|number| u32::try_from(number).ok()),
        kube_reserved: strings(kubernetes, "kube-reserved"),
        system_reserved: strings(kubernetes, "system-reserved"),
        eviction_hard: strings(kubernetes, "eviction-hard"),
        ..Bootstrap::default()
    })
}

fn entries<'a>(kubernetes: &'a Table, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    kubernetes.get(key).and_then(Value::as_table).into_iter().flatten()
}

fn strings(kubernetes: &Table, key: &str) -> BTreeMap<String, String> {
    let pairs = entries(kubernetes, key);
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// `key = ["value:Effect"]`, or a single string in older images.
fn taints(kubernetes: &Table) -> Vec<Taint> {
    let of = |(key, value): (&String, &Value)| {
        let texts: Vec<String> = match value.as_array() {
            Some(list) => list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
            None => value.as_str().map(str::to_owned).into_iter().collect(),
        };
        texts.iter().filter_map(|text| taint(key, text)).collect::<Vec<_>>()
    };
    entries(kubernetes, "node-taints").flat_map(of).collect()
}

fn taint(key: &str, text: &str) -> Option<Taint> {
    let (value, effect) = text.rsplit_once(':')?;
    Some(Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() })
}
