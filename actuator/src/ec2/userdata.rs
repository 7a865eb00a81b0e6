//! User data: what a machine is told at boot so that it joins its cluster.
//!
//! Invariant: pure and deterministic: equal input gives equal bytes, since a launch template's name
//! hashes them. The taint `karpenter.sh/unregistered` is always among the taints, except in images
//! of the user's own, whose user data is passed on as it is.

mod al2;
mod al2023;
mod bottlerocket;
mod mime;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_ec2_data::AmiFamily;
use longshore_proto::types::v1::{ClusterFacts, Kubelet, Launch, Taint, TaintEffect};
use thiserror::Error;

/// Most bytes of user data that EC2 takes, before base64.
pub const USER_DATA_BYTES_MAX: usize = 16_384;

/// Taint that keeps pods away until the node is registered.
const UNREGISTERED: &str = "karpenter.sh/unregistered";

/// Domains whose labels a kubelet may not give itself.
const RESTRICTED_DOMAINS: [&str; 3] = ["kubernetes.io", "k8s.io", "node-restriction.kubernetes.io"];

/// What user data is made from.
#[derive(Clone, Debug)]
pub struct Boot<'a> {
    /// Operating system family.
    pub family: AmiFamily,
    /// The cluster to join.
    pub cluster: &'a ClusterFacts,
    /// Kubelet settings of the node class.
    pub kubelet: Kubelet,
    /// Labels the kubelet registers with.
    pub labels: BTreeMap<String, String>,
    /// Taints the kubelet registers with.
    pub taints: Vec<Taint>,
    /// User data of the node class; may be empty.
    pub custom: &'a str,
    /// Whether instance stores become one RAID 0 array.
    pub raid0: bool,
}

/// Why no user data can be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UserDataError {
    /// The user's part cannot be merged.
    #[error("spec.userData is not {expected}: {problem}")]
    Unreadable {
        /// What the family takes.
        expected: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// EC2 would refuse it.
    #[error(
        "user data has {bytes} bytes and EC2 takes {USER_DATA_BYTES_MAX}; shorten spec.userData, \
         for example by fetching a script at boot"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

impl<'a> Boot<'a> {
    /// What a launch's machines are told.
    #[must_use]
    pub fn new(
        family: AmiFamily,
        cluster: &'a ClusterFacts,
        class: &'a longshore_proto::types::v1::NodeClass,
        launch: &Launch,
    ) -> Self {
        let mut labels: BTreeMap<_, _> = launch
            .labels
            .iter()
            .filter(|(key, _)| !restricted(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        labels.insert("karpenter.sh/do-not-sync-taints".to_owned(), "true".to_owned());
        let unregistered = Taint {
            key: UNREGISTERED.to_owned(),
            value: String::new(),
            effect: TaintEffect::NoExecute.into(),
        };
        let taints = launch.taints.iter().chain(&launch.startup_taints).cloned();
        Self {
            family,
            cluster,
            kubelet: class.kubelet.clone().unwrap_or_default(),
            labels,
            taints: taints.chain([unregistered]).collect(),
            custom: &class.user_data,
            raid0: class.instance_store_policy == "RAID0",
        }
    }

    /// The user data in base64, as EC2 wants it.
    ///
    /// # Errors
    /// When the user's part cannot be merged or the whole is too large.
    pub fn encode(&self) -> Result<String, UserDataError> {
        let text = self.render()?;
        if text.len() > USER_DATA_BYTES_MAX {
            return Err(UserDataError::TooLarge { bytes: text.len() });
        }
        Ok(STANDARD.encode(text))
    }

    /// The user data as the machine reads it.
    ///
    /// # Errors
    /// When the user's part cannot be merged.
    pub fn render(&self) -> Result<String, UserDataError> {
        match self.family {
            AmiFamily::Al2 => Ok(al2::render(self)),
            AmiFamily::Al2023 => al2023::render(self),
            AmiFamily::Bottlerocket => bottlerocket::render(self),
            AmiFamily::Custom
            | AmiFamily::Windows2019
            | AmiFamily::Windows2022
            | AmiFamily::Windows2025 => Ok(self.custom.to_owned()),
        }
    }

    /// Address of the cluster's DNS that kubelets are told; empty leaves it to the image.
    fn cluster_dns(&self) -> Vec<String> {
        if !self.kubelet.cluster_dns.is_empty() {
            return self.kubelet.cluster_dns.clone();
        }
        let known = Some(self.cluster.dns_ip.clone()).filter(|address| !address.is_empty());
        known.into_iter().collect()
    }
}

fn restricted(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else { return false };
    RESTRICTED_DOMAINS.iter().any(|restricted| {
        domain == *restricted
            || domain.strip_suffix(restricted).is_some_and(|rest| rest.ends_with('.'))
    })
}

/// A taint's effect in Kubernetes' words.
fn effect(taint: &Taint) -> &'static str {
    match taint.effect() {
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
        TaintEffect::NoSchedule | TaintEffect::Unspecified => "NoSchedule",
    }
}

/// `key=value:effect` of each taint; `key:effect` without a value.
fn taints_line(taints: &[Taint]) -> String {
    let shown = taints.iter().map(|taint| match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, effect(taint)),
        value => format!("{}={value}:{}", taint.key, effect(taint)),
    });
    shown.collect::<Vec<_>>().join(",")
}

/// `key=value` of each label, sorted.
fn labels_line(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
