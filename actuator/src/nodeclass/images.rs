//! Images of a class.
//!
//! Invariant: for each architecture and variant the newest image that is not deprecated comes
//! first.

use std::collections::BTreeMap;

use longshore_ec2_data::InstanceType;
use longshore_proto::types::v1::{ClusterFacts, SelectorTerm};

use super::{Explainer, LOOKUP_FAILED, Problem};
use crate::cloud::{CloudError, Image};
use crate::ec2::{Alias, ImageParameter, Variant};

/// Field that selects images.
const FIELD: &str = "spec.amiSelectorTerms";
/// Owner of images that AWS publishes, by its alias.
const ALIASES_OWNER: &str = "amazon";

/// An image and the machines it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassImage {
    /// Image id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Kubernetes architecture.
    pub arch: String,
    /// Machines it is for; none means all of the architecture.
    pub variant: Option<Variant>,
    /// Its owner, as account and as alias; empty when unknown.
    pub owners: Vec<String>,
}

impl ClassImage {
    /// True when a type of machine boots it.
    #[must_use]
    pub fn boots(&self, instance_type: &InstanceType) -> bool {
        let gpu = !instance_type.gpus.is_empty();
        let neuron = !instance_type.neuron_devices.is_empty()
            || !instance_type.inference_accelerators.is_empty();
        let fits = match self.variant {
            None => true,
            Some(Variant::Standard) => !gpu && !neuron,
            Some(Variant::Nvidia) => gpu,
            Some(Variant::Neuron) => neuron,
        };
        fits && self.arch == instance_type.arch.as_str()
    }
}

/// Images of the class.
pub async fn find(
    explainer: &Explainer<'_>,
    facts: &ClusterFacts,
) -> Result<Vec<ClassImage>, Problem> {
    let class = explainer.class;
    if !class.launch_template.is_empty() {
        return Ok(template_images());
    }
    let terms = terms_of(explainer);
    let mut found = Vec::new();
    let mut direct = Vec::new();
    for term in &terms {
        if !term.alias.is_empty() {
            found.extend(by_alias(explainer, &term.alias, facts).await?);
        } else if !term.ssm_parameter.is_empty() {
            direct.extend(by_parameter(explainer, &term.ssm_parameter).await?);
        } else {
            direct.push(term.clone());
        }
    }
    if !direct.is_empty() {
        let images = asked(explainer, explainer.cloud.images(&direct).await).await?;
        found.extend(preferred(images));
    }
    if found.is_empty() {
        let message = format!(
            "{} {FIELD}: no image in {} matches; check owner, name and tags, or take an alias such \
             as al2023@latest",
            class.name, explainer.place.region
        );
        return Err(Problem::new("AMINotFound", message));
    }
    Ok(found)
}

/// A launch template of the user's own names its image itself; types of either architecture pass.
fn template_images() -> Vec<ClassImage> {
    let image = |arch: &str| ClassImage {
        id: String::new(),
        name: "of the launch template".to_owned(),
        arch: arch.to_owned(),
        variant: None,
        owners: Vec::new(),
    };
    vec![image("amd64"), image("arm64")]
}

/// Terms of the class; a legacy class without any means its family's newest image.
fn terms_of(explainer: &Explainer<'_>) -> Vec<SelectorTerm> {
    let class = explainer.class;
    if !class.ami_terms.is_empty() {
        return class.ami_terms.clone();
    }
    let family = if class.ami_family.is_empty() { "AL2" } else { &class.ami_family };
    let alias = format!("{}@latest", family.to_lowercase());
    vec![SelectorTerm { alias, ..SelectorTerm::default() }]
}

async fn by_alias(
    explainer: &Explainer<'_>,
    alias: &str,
    facts: &ClusterFacts,
) -> Result<Vec<ClassImage>, Problem> {
    let bad = |error: crate::ec2::AliasError| {
        let message = format!("{} {FIELD}: {error}", explainer.class.name);
        Problem::new("UnsupportedAlias", message)
    };
    let parameters = Alias::parse(alias).map_err(bad)?;
    let parameters = parameters.parameters(&facts.kubernetes_version).map_err(bad)?;
    let mut named: Vec<(ImageParameter, String)> = Vec::new();
    for parameter in parameters {
        let value = asked(explainer, explainer.cloud.parameter(&parameter.name).await).await?;
        named.extend(value.map(|id| (parameter, id)));
    }
    if named.is_empty() {
        let message = format!(
            "{} {FIELD}: alias {alias:?} names no published image for Kubernetes {:?}; check the \
             version in the alias",
            explainer.class.name, facts.kubernetes_version
        );
        return Err(Problem::new("AMINotFound", message));
    }
    Ok(with_names(explainer, named).await)
}

/// Images of an alias with their names, as far as they can be looked up.
async fn with_names(
    explainer: &Explainer<'_>,
    named: Vec<(ImageParameter, String)>,
) -> Vec<ClassImage> {
    let term = |(_, id): &(ImageParameter, String)| SelectorTerm {
        id: id.clone(),
        ..SelectorTerm::default()
    };
    let terms: Vec<_> = named.iter().map(term).collect();
    let images = explainer.cloud.images(&terms).await.unwrap_or_default();
    let mut known: BTreeMap<_, _> =
        images.into_iter().map(|image| (image.id, (image.name, image.owners))).collect();
    let classed = named.into_iter().map(|(parameter, id)| {
        // What AWS publishes under an alias is its own.
        let unnamed = || (String::new(), vec![ALIASES_OWNER.to_owned()]);
        let (name, owners) = known.remove(&id).unwrap_or_else(unnamed);
        let (arch, variant) = (parameter.arch.to_owned(), Some(parameter.variant));
        ClassImage { id, name, arch, variant, owners }
    });
    classed.collect()
}

async fn by_parameter(
    explainer: &Explainer<'_>,
    parameter: &str,
) -> Result<Option<SelectorTerm>, Problem> {
    let value = asked(explainer, explainer.cloud.parameter(parameter).await).await?;
    let id = value.filter(|value| value.starts_with("ami-"));
    Ok(id.map(|id| SelectorTerm { id, ..SelectorTerm::default() }))
}

/// The preferred image of each architecture: not deprecated, then newest. They come newest first.
fn preferred(mut images: Vec<Image>) -> Vec<ClassImage> {
    images.sort_by_key(|image| image.deprecated);
    let mut by_arch: BTreeMap<String, ClassImage> = BTreeMap::new();
    for image in images {
        let arch = image.arch.clone();
        let Image { id, name, owners, .. } = image;
        let classed = ClassImage { id, name, arch: image.arch, variant: None, owners };
        by_arch.entry(arch).or_insert(classed);
    }
    by_arch.into_values().collect()
}

async fn asked<T>(explainer: &Explainer<'_>, answer: Result<T, CloudError>) -> Result<T, Problem> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(error) => {
            let why = explainer.explain(&error).await;
            let message = format!("{} {FIELD}: {why}", explainer.class.name);
            Err(Problem::new(LOOKUP_FAILED, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_ec2_data::Dataset;

    fn image(id: &str, arch: &str, created: &str, deprecated: bool) -> Image {
        Image {
            id: id.to_owned(),
            name: id.to_owned(),
            arch: arch.to_owned(),
            created: created.to_owned(),
            deprecated,
            owners: vec!["111122223333".to_owned()],
        }
    }

    #[test]
    fn the_newest_image_that_is_not_deprecated_wins() {
        let images = vec![
            image("new-but-deprecated", "amd64", "2026-09", true),
            image("newer", "amd64", "2026-08", false),
            image("old", "amd64", "2026-07", false),
            image("arm-deprecated", "arm64", "2026-07", true),
        ];
        let ids: Vec<_> = preferred(images).into_iter().map(|image| image.id).collect();
        assert_eq!(ids, ["newer", "arm-deprecated"]);
    }

    #[test]
    fn variants_are_for_their_machines() {
        let facts = Dataset::embedded().unwrap();
        let image = |variant| ClassImage {
            id: "ami".to_owned(),
            name: String::new(),
            arch: "amd64".to_owned(),
            variant,
            owners: Vec::new(),
        };
        let table = [
            ("m5.large", None, true),
            ("m5.large", Some(Variant::Standard), true),
            ("m5.large", Some(Variant::Nvidia), false),
            ("g5.xlarge", Some(Variant::Standard), false),
            ("g5.xlarge", Some(Variant::Nvidia), true),
            ("inf2.xlarge", Some(Variant::Neuron), true),
            ("m6g.large", None, false),
        ];
        for (name, variant, boots) in table {
            let facts = facts.instance_type(name).unwrap();
            assert_eq!(image(variant).boots(facts), boots, "{name} {variant:?}");
        }
    }
}
