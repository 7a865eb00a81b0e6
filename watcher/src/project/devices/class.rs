//! DeviceClasses as extended resources: what a count of devices of a class is a count of.
//!
//! Invariant: a class stands for a resource only when all of what it selects is understood, so that
//! devices are counted as kube-scheduler will choose them.

use k8s_openapi::api::resource::v1::DeviceClass;

use super::expression::{Attribute, Expressions, Selection};

/// Devices of a driver that instance types give as an extended resource.
struct Common {
    driver: &'static str,
    /// Text of the driver's attribute `type`, where the driver has devices of several types.
    type_: Option<&'static str>,
    resource: &'static str,
}

/// The drivers of devices that the catalogue knows by the resources of their device plug-ins.
const COMMON: [Common; 3] = [
    Common { driver: "gpu.nvidia.com", type_: Some("gpu"), resource: "nvidia.com/gpu" },
    Common { driver: "gpu.amd.com", type_: None, resource: "amd.com/gpu" },
    Common { driver: "neuron.aws.com", type_: None, resource: "aws.amazon.com/neuron" },
];

/// The part of a DeviceClass that placement needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The driver of all its devices; none when that is not understood.
    pub driver: Option<String>,
    /// What it stands for, or why its devices cannot be counted.
    pub standing: Result<Standing, ClassFault>,
}

/// What a class stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The extended resource.
    pub resource: String,
    /// Its devices.
    pub selection: Selection,
}

/// Why devices of a class cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassFault {
    /// What it selects is not understood.
    #[error(
        "spec.selectors: only device.driver == \"…\" and device.attributes[\"…\"].name == \"…\", \
         joined by &&, are understood; use a class that selects in this way"
    )]
    Selectors,
    /// It stands for no resource.
    #[error(
        "spec.extendedResourceName: is missing; set it to the resource by which instance types, or \
         a NodeOverlay, have these devices"
    )]
    NoResource,
    /// Only some of the devices behind the resource are selected.
    #[error(
        "spec.selectors: select other devices than those that instance types have as {0}; give the \
         class an extendedResourceName of its own, and say with a NodeOverlay which types have it"
    )]
    OtherDevices(String),
}

impl From<&DeviceClass> for Class {
    fn from(from: &DeviceClass) -> Self {
        let selectors = from.spec.selectors.iter().flatten();
        let texts = selectors.map(|s| s.cel.as_ref().map_or("", |cel| cel.expression.as_str()));
        let expressions = Expressions::read(texts);
        let named = from.spec.extended_resource_name.as_deref().filter(|name| !name.is_empty());
        let selection = expressions.selection().ok_or(ClassFault::Selectors);
        Self {
            driver: expressions.driver().map(str::to_owned),
            standing: selection.and_then(|selection| standing(selection, named)),
        }
    }
}

/// What a selection stands for whose class names `named`.
fn standing(selection: Selection, named: Option<&str>) -> Result<Standing, ClassFault> {
    let common = COMMON.iter().find(|common| common.covers(&selection));
    let resource = match (named, common) {
        (None, None) => return Err(ClassFault::NoResource),
        (None, Some(common)) => common.resource,
        (Some(name), common) => {
            let taken = COMMON.iter().any(|other| other.resource == name);
            if taken && common.is_none_or(|common| common.resource != name) {
                return Err(ClassFault::OtherDevices(name.to_owned()));
            }
            name
        }
    };
    Ok(Standing { resource: resource.to_owned(), selection })
}

impl Standing {
    /// True when a device of this class is one of the other class, too. Where neither names all
    /// attributes of the other, the devices of a common resource are taken to be all there are.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let (own, others) = (&self.selection, &other.selection);
        let common = COMMON.iter().any(|common| common.resource == other.resource);
        let agrees = |(key, text): (&Attribute, &String)| match own.attributes.get(key) {
            Some(own) => own == text,
            None => common,
        };
        own.driver == others.driver && others.attributes.iter().all(agrees)
    }
}

impl Common {
    /// True when the selection is of all the devices that the resource counts.
    fn covers(&self, selection: &Selection) -> bool {
        let is_own = |key: &Attribute, value: &str| {
            key.0 == self.driver && key.1 == "type" && Some(value) == self.type_
        };
        selection.driver == self.driver
            && selection.attributes.iter().all(|(key, value)| is_own(key, value))
    }
}
