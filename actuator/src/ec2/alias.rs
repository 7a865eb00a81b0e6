//! Image aliases (`al2023@latest`) and the SSM parameters that AWS publishes images under.
//!
//! Invariant: pure; paths are those of AWS's documentation.

use longshore_ec2_data::AmiFamily;
use thiserror::Error;

/// First Kubernetes minor version without Amazon Linux 2 images.
const AL2_ENDS_AT_MINOR: u32 = 33;

/// A parsed alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Family of the images.
    pub family: AmiFamily,
    /// `latest`, or a release as the family names it.
    pub version: String,
}

/// One parameter and the machines its image is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageParameter {
    /// Name of the parameter.
    pub name: String,
    /// Kubernetes architecture.
    pub arch: &'static str,
    /// Machines it is for.
    pub variant: Variant,
}

/// Machines that an image is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Without accelerators; in families without special images, all.
    Standard,
    /// With NVIDIA GPUs.
    Nvidia,
    /// With AWS Neuron devices.
    Neuron,
}

/// Why an alias names no images.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AliasError {
    /// It is not of the form family@version.
    #[error("alias {0:?} is not family@version; write for example al2023@latest")]
    Malformed(String),
    /// There is no such family.
    #[error(
        "alias {0:?} names no family that Longshore launches; take al2023, bottlerocket or al2"
    )]
    UnknownFamily(String),
    /// The family has no images for the cluster's version.
    #[error(
        "alias {alias:?}: there are no Amazon Linux 2 images for Kubernetes {version}; move to \
         al2023@latest"
    )]
    Ended {
        /// The alias.
        alias: String,
        /// The cluster's version.
        version: String,
    },
}

impl Alias {
    /// Reads an alias.
    ///
    /// # Errors
    /// When it is malformed or its family unknown.
    pub fn parse(text: &str) -> Result<Self, AliasError> {
        let malformed = || AliasError::Malformed(text.to_owned());
        let (family, version) = text.split_once('@').ok_or_else(malformed)?;
        if version.is_empty() {
            return Err(malformed());
        }
        let family = match family.to_lowercase().as_str() {
            "al2" => AmiFamily::Al2,
            "al2023" => AmiFamily::Al2023,
            "bottlerocket" => AmiFamily::Bottlerocket,
            _ => return Err(AliasError::UnknownFamily(text.to_owned())),
        };
        Ok(Self { family, version: version.to_owned() })
    }

    /// Parameters to ask for, for a cluster of a Kubernetes version (`major.minor`).
    ///
    /// # Errors
    /// When the family has no images for the version.
    pub fn parameters(&self, kubernetes: &str) -> Result<Vec<ImageParameter>, AliasError> {
        match self.family {
            AmiFamily::Al2 if minor(kubernetes) >= AL2_ENDS_AT_MINOR => Err(AliasError::Ended {
                alias: format!("al2@{}", self.version),
                version: kubernetes.to_owned(),
            }),
            AmiFamily::Al2 => Ok(self.al2(kubernetes)),
            AmiFamily::Bottlerocket => Ok(self.bottlerocket(kubernetes)),
            AmiFamily::Al2023
            | AmiFamily::Custom
            | AmiFamily::Windows2019
            | AmiFamily::Windows2022
            | AmiFamily::Windows2025 => Ok(self.al2023(kubernetes)),
        }
    }

    fn al2(&self, k8s: &str) -> Vec<ImageParameter> {
        let variants = [
            ("amazon-linux-2", "node", "amd64", Variant::Standard),
            ("amazon-linux-2-arm64", "arm64-node", "arm64", Variant::Standard),
            ("amazon-linux-2-gpu", "gpu-node", "amd64", Variant::Nvidia),
            ("amazon-linux-2-gpu", "gpu-node", "amd64", Variant::Neuron),
        ];
        let names = variants.into_iter().map(|(folder, infix, arch, variant)| {
            let release = self.release(|v| format!("amazon-eks-{infix}-{k8s}-{v}"));
            let name = format!("/aws/service/eks/optimized-ami/{k8s}/{folder}/{release}/image_id");
            ImageParameter { name, arch, variant }
        });
        names.collect()
    }

    fn al2023(&self, k8s: &str) -> Vec<ImageParameter> {
        let variants = [
            ("x86_64", "amd64", "standard", Variant::Standard),
            ("arm64", "arm64", "standard", Variant::Standard),
            ("x86_64", "amd64", "nvidia", Variant::Nvidia),
            ("arm64", "arm64", "nvidia", Variant::Nvidia),
            ("x86_64", "amd64", "neuron", Variant::Neuron),
        ];
        let names = variants.into_iter().map(|(machine, arch, kind, variant)| {
            let release =
                self.release(|v| format!("amazon-eks-node-al2023-{machine}-{kind}-{k8s}-{v}"));
            let name = format!(
                "/aws/service/eks/optimized-ami/{k8s}/amazon-linux-2023/{machine}/{kind}/{release}\
                 /image_id"
            );
            ImageParameter { name, arch, variant }
        });
        names.collect()
    }

    fn bottlerocket(&self, k8s: &str) -> Vec<ImageParameter> {
        let version = self.version.strip_prefix('v').unwrap_or(&self.version);
        let variants = [
            ("", "x86_64", "amd64", Variant::Standard),
            ("", "arm64", "arm64", Variant::Standard),
            ("-nvidia", "x86_64", "amd64", Variant::Nvidia),
            ("-nvidia", "arm64", "arm64", Variant::Nvidia),
            ("", "x86_64", "amd64", Variant::Neuron),
        ];
        let names = variants.into_iter().map(|(suffix, machine, arch, variant)| {
            let folder = format!("aws-k8s-{k8s}{suffix}");
            let name = format!("/aws/service/bottlerocket/{folder}/{machine}/{version}/image_id");
            ImageParameter { name, arch, variant }
        });
        names.collect()
    }

    fn release(&self, pinned: impl Fn(&str) -> String) -> String {
        if self.version == "latest" { "recommended".to_owned() } else { pinned(&self.version) }
    }
}

fn minor(kubernetes: &str) -> u32 {
    kubernetes.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standard(alias: &str, kubernetes: &str) -> Vec<String> {
        let parameters = Alias::parse(alias).unwrap().parameters(kubernetes).unwrap();
        let standard = parameters.into_iter().filter(|p| p.variant == Variant::Standard);
        standard.map(|parameter| parameter.name).collect()
    }

    #[test]
    fn parameters_are_the_published_ones() {
        let eks = "/aws/service/eks/optimized-ami";
        assert_eq!(
            standard("al2023@latest", "1.34"),
            [
                format!("{eks}/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"),
                format!("{eks}/1.34/amazon-linux-2023/arm64/standard/recommended/image_id"),
            ]
        );
        assert_eq!(
            standard("al2023@v20260801", "1.34")[1],
            format!(
                "{eks}/1.34/amazon-linux-2023/arm64/standard/\
                 amazon-eks-node-al2023-arm64-standard-1.34-v20260801/image_id"
            )
        );
        assert_eq!(
            standard("bottlerocket@v1.46.0", "1.34")[0],
            "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.46.0/image_id"
        );
        assert_eq!(
            standard("al2@latest", "1.32")[1],
            format!("{eks}/1.32/amazon-linux-2-arm64/recommended/image_id")
        );
    }

    #[test]
    fn what_names_no_image_says_the_way_out() {
        let ended = Alias::parse("al2@latest").unwrap().parameters("1.33").unwrap_err();
        assert!(ended.to_string().contains("al2023@latest"));
        for text in ["al2023", "al2023@", "windows2022@latest"] {
            assert!(Alias::parse(text).is_err(), "{text}");
        }
    }
}
