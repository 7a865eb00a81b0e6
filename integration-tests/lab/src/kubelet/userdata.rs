//! What user data tells a machine about the cluster it is to join.
//!
//! Invariant: reads the three formats that EKS images read (nodeadm, Bottlerocket settings,
//! bootstrap.sh) and takes from each what bears on the Node object.

mod bottlerocket;
mod mime;
mod nodeadm;
mod shell;

use std::collections::BTreeMap;

use thiserror::Error;

/// Which image reads the user data; decides how memory is reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperatingSystem {
    /// Amazon Linux 2023, configured by nodeadm.
    #[default]
    AmazonLinux2023,
    /// Amazon Linux 2, configured by bootstrap.sh.
    AmazonLinux2,
    /// Bottlerocket, configured by settings in TOML.
    Bottlerocket,
}

/// One taint a node registers with.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value, may be empty.
    pub value: String,
    /// Effect.
    pub effect: String,
}

/// What a kubelet is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bootstrap {
    /// The image's reader.
    pub system: OperatingSystem,
    /// Cluster to join.
    pub cluster_name: String,
    /// Address of its API server, empty when the image finds it.
    pub endpoint: String,
    /// Labels the node registers with.
    pub labels: BTreeMap<String, String>,
    /// Taints the node registers with.
    pub taints: Vec<Taint>,
    /// Most pods, where stated.
    pub max_pods: Option<u32>,
    /// Most pods for each core, where stated.
    pub pods_per_core: Option<u32>,
    /// Stated reservations for the kubelet, as quantities by resource.
    pub kube_reserved: BTreeMap<String, String>,
    /// Stated reservations for the system.
    pub system_reserved: BTreeMap<String, String>,
    /// Stated hard eviction thresholds by signal.
    pub eviction_hard: BTreeMap<String, String>,
}

/// Why a machine cannot join any cluster.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UserDataError {
    /// Nothing in it configures a node.
    #[error("user data holds no NodeConfig, no [settings.kubernetes] and no call of bootstrap.sh")]
    NoConfiguration,
    /// A part is malformed.
    #[error("user data is not valid {format}: {problem}")]
    Malformed {
        /// The format expected.
        format: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A field that every node needs is absent.
    #[error("user data lacks {0}")]
    Missing(&'static str),
}

/// Reads user data after base64 decoding.
///
/// # Errors
/// [`UserDataError`] says what keeps the machine from joining.
pub fn parse(bytes: &[u8]) -> Result<Bootstrap, UserDataError> {
    let text = String::from_utf8_lossy(bytes);
    let bootstrap = if let Some(parts) = mime::parts(&text) {
        of_parts(&parts)?
    } else if text.contains("[settings") {
        bottlerocket::parse(&text)?
    } else {
        of_parts(&[mime::Part::bare(&text)])?
    };
    if bootstrap.cluster_name.is_empty() {
        return Err(UserDataError::Missing("the name of the cluster"));
    }
    Ok(bootstrap)
}

/// NodeConfig parts are merged in their order; without any, the last script that calls
/// bootstrap.sh counts.
fn of_parts(parts: &[mime::Part]) -> Result<Bootstrap, UserDataError> {
    let configs: Vec<&str> =
        parts.iter().filter(|part| part.is_node_config()).map(|part| part.body.as_str()).collect();
    if !configs.is_empty() {
        return nodeadm::parse(&configs);
    }
    let mut scripts = parts.iter().rev().map(|part| part.body.as_str());
    let script = scripts.find(|body| body.contains(shell::SCRIPT));
    shell::parse(script.ok_or(UserDataError::NoConfiguration)?)
}

/// `key=value:Effect` or `key:Effect`.
fn taint(text: &str) -> Option<Taint> {
    let (key, effect) = text.trim().rsplit_once(':')?;
    let (key, value) = key.split_once('=').unwrap_or((key, ""));
    Some(Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() })
}

/// `key=value,key=value`.
fn pairs(text: &str, separator: char) -> BTreeMap<String, String> {
    let entries = text.split(',').filter_map(|entry| entry.split_once(separator));
    entries.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
}

/// Applies kubelet command line flags, `--name=value` or `--name value`, one word each.
fn apply_flags(bootstrap: &mut Bootstrap, words: &[String]) {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (word.as_str(), words.next().cloned().unwrap_or_default()),
        };
        match name {
            "--node-labels" => bootstrap.labels.extend(pairs(&value, '=')),
            "--register-with-taints" => bootstrap.taints.extend(value.split(',').filter_map(taint)),
            "--max-pods" => bootstrap.max_pods = value.parse().ok(),
            "--pods-per-core" => bootstrap.pods_per_core = value.parse().ok(),
            "--kube-reserved" => bootstrap.kube_reserved.extend(pairs(&value, '=')),
            "--system-reserved" => bootstrap.system_reserved.extend(pairs(&value, '=')),
            "--eviction-hard" => bootstrap.eviction_hard.extend(pairs(&value, '<')),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
