//! Images of EKS nodes and the SSM parameters that point at the newest of them.
//!
//! Invariant: names and parameter paths are those that AWS publishes; ids are derived from names.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::config::{ImageConfig, Tags};

/// Kubernetes versions with images.
pub const KUBERNETES_VERSIONS: [&str; 7] = ["1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36"];

const ARCHITECTURES: [&str; 2] = ["x86_64", "arm64"];
const EKS_OWNER: &str = "602401143452";
const BOTTLEROCKET_OWNER: &str = "092701018921";

/// One release of both families: AL2023 by date, Bottlerocket by version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// AL2023 release, `vYYYYMMDD`.
    pub al2023: &'static str,
    /// Bottlerocket release, without a leading `v`.
    pub bottlerocket: &'static str,
    /// Creation time of its images.
    pub created: &'static str,
}

/// Releases a region starts with, oldest first; the last is what `recommended` points at.
pub const RELEASES: [Release; 2] = [
    Release { al2023: "v20260801", bottlerocket: "1.45.0", created: "2026-08-01T04:12:00.000Z" },
    Release { al2023: "v20260901", bottlerocket: "1.46.0", created: "2026-09-01T04:12:00.000Z" },
];

/// Images of every release, Kubernetes version, family and architecture.
pub fn released() -> Vec<ImageConfig> {
    RELEASES.iter().flat_map(images_of).collect()
}

/// Parameters of every release, and the moving ones pointing at the newest.
pub fn parameters() -> BTreeMap<String, String> {
    RELEASES.iter().flat_map(parameters_of).collect()
}

/// Images of one release.
pub fn images_of(release: &Release) -> Vec<ImageConfig> {
    variants()
        .flat_map(|(version, arch)| {
            [
                image(al2023_name(version, arch, release), EKS_OWNER, arch, release),
                image(bottlerocket_name(version, arch, release), BOTTLEROCKET_OWNER, arch, release),
            ]
        })
        .collect()
}

/// Parameters of one release: its own, and the moving ones turned to it.
pub fn parameters_of(release: &Release) -> Vec<(String, String)> {
    variants()
        .flat_map(|(version, arch)| {
            let al2023 = al2023_name(version, arch, release);
            let al2023_id = image_id(&al2023);
            let eks = format!(
                "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{arch}/standard"
            );
            let bottlerocket_id = image_id(&bottlerocket_name(version, arch, release));
            let rocket = format!("/aws/service/bottlerocket/aws-k8s-{version}/{arch}");
            [
                (format!("{eks}/recommended/image_id"), al2023_id.clone()),
                (format!("{eks}/{al2023}/image_id"), al2023_id),
                (format!("{rocket}/latest/image_id"), bottlerocket_id.clone()),
                (format!("{rocket}/{}/image_id", release.bottlerocket), bottlerocket_id),
            ]
        })
        .collect()
}

/// The newest AL2023 images for machines with NVIDIA's GPUs, each with the moving parameter that
/// points at it. A region has them only when it is given them.
pub fn nvidia() -> Vec<(ImageConfig, String)> {
    let [.., release] = &RELEASES;
    let each = variants().map(|(version, arch)| {
        let name = al2023_name(version, arch, release).replace("-standard-", "-nvidia-");
        let family = format!("/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{arch}");
        (image(name, EKS_OWNER, arch, release), format!("{family}/nvidia/recommended/image_id"))
    });
    each.collect()
}

fn variants() -> impl Iterator<Item = (&'static str, &'static str)> {
    KUBERNETES_VERSIONS
        .into_iter()
        .flat_map(|version| ARCHITECTURES.into_iter().map(move |arch| (version, arch)))
}

fn al2023_name(version: &str, arch: &str, release: &Release) -> String {
    format!("amazon-eks-node-al2023-{arch}-standard-{version}-{}", release.al2023)
}

fn bottlerocket_name(version: &str, arch: &str, release: &Release) -> String {
    let number = release.bottlerocket;
    let commit = &hex(&format!("bottlerocket {number}"))[..8];
    format!("bottlerocket-aws-k8s-{version}-{arch}-v{number}-{commit}")
}

fn image(name: String, owner: &str, arch: &str, release: &Release) -> ImageConfig {
    ImageConfig {
        id: image_id(&name),
        name,
        owner_id: owner.to_owned(),
        owner_alias: Some("amazon".to_owned()),
        architecture: arch.to_owned(),
        creation_date: release.created.to_owned(),
        deprecation_time: None,
        tags: Tags::new(),
    }
}

fn image_id(name: &str) -> String {
    format!("ami-{}", &hex(name)[..17])
}

fn hex(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_names_an_image_and_recommended_is_the_newest() {
        let images = released();
        let parameters = parameters();
        assert!(parameters.values().all(|id| images.iter().any(|image| image.id == *id)));
        let path = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard";
        assert_eq!(
            parameters[&format!("{path}/recommended/image_id")],
            parameters
                [&format!("{path}/amazon-eks-node-al2023-arm64-standard-1.36-v20260901/image_id")]
        );
    }
}
