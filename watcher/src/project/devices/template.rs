//! ResourceClaimTemplates: what each claim made from one asks for.
//!
//! Invariant: a template without a fault asks for no more than so many devices of each class. Of
//! one with a fault it is still known how many devices its claims take, where that can be known.

use k8s_openapi::api::resource::v1::{DeviceRequest, ExactDeviceRequest, ResourceClaimTemplate};

/// The part of a ResourceClaimTemplate that placement needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Devices that a claim takes.
    pub asks: Vec<Ask>,
    /// The first field that counts cannot express.
    pub fault: Option<TemplateFault>,
}

/// Devices of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The DeviceClass.
    pub class: String,
    /// How many; none when that is not known before they are allocated.
    pub count: Option<i64>,
}

/// A field of a template that a count cannot express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.spec.devices.{field}: {problem}")]
pub struct TemplateFault {
    field: String,
    problem: Beyond,
}

/// What is more than a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Beyond {
    /// Several ways to meet a request.
    #[error("which of several alternatives will be taken cannot be foreseen; name one by exactly")]
    Alternatives,
    /// All devices of a node.
    #[error("how many devices All will be cannot be foreseen; use ExactCount with a count")]
    All,
    /// Devices chosen by expression.
    #[error(
        "which devices of a new node it will select cannot be foreseen; leave it out, and choose \
         instance types by node selector"
    )]
    Selectors,
    /// Access to devices that others use.
    #[error("access beside other claims takes no device of its own; leave it out")]
    AdminAccess,
    /// A share of a device.
    #[error("shares of a device are not counted; leave it out, and ask for whole devices")]
    Capacity,
    /// Devices that must suit each other.
    #[error("which devices of a new node will suit each other cannot be foreseen; leave it out")]
    Constraints,
}

impl From<&ResourceClaimTemplate> for Template {
    fn from(from: &ResourceClaimTemplate) -> Self {
        let devices = from.spec.spec.devices.as_ref();
        let constrained = devices.is_some_and(|d| d.constraints.iter().flatten().next().is_some());
        let mut template = Self {
            asks: Vec::new(),
            fault: constrained.then(|| TemplateFault {
                field: "constraints".to_owned(),
                problem: Beyond::Constraints,
            }),
        };
        for request in devices.iter().flat_map(|devices| devices.requests.iter().flatten()) {
            template.take(request);
        }
        template
    }
}

impl Template {
    fn take(&mut self, request: &DeviceRequest) {
        let beyond = match &request.exactly {
            Some(exactly) => {
                self.asks.push(ask(exactly));
                beyond(exactly).map(|(field, problem)| (format!("exactly.{field}"), problem))
            }
            None => {
                let classes = request.first_available.iter().flatten();
                let classes = classes.map(|request| request.device_class_name.clone());
                self.asks.extend(classes.map(|class| Ask { class, count: None }));
                Some(("firstAvailable".to_owned(), Beyond::Alternatives))
            }
        };
        if let Some((field, problem)) = beyond {
            let field = format!("requests[{}].{field}", request.name);
            self.fault.get_or_insert(TemplateFault { field, problem });
        }
    }
}

fn ask(request: &ExactDeviceRequest) -> Ask {
    let count = match request.allocation_mode.as_deref() {
        _ if request.admin_access == Some(true) => Some(0),
        None | Some("ExactCount") => Some(request.count.filter(|count| *count > 0).unwrap_or(1)),
        Some(_) => None,
    };
    Ask { class: request.device_class_name.clone(), count }
}

/// The first field of a request that a count cannot express.
fn beyond(request: &ExactDeviceRequest) -> Option<(&'static str, Beyond)> {
    let is_all = request.allocation_mode.as_deref().is_some_and(|mode| mode != "ExactCount");
    let is_selective = request.selectors.as_ref().is_some_and(|list| !list.is_empty());
    let fields = [
        (request.admin_access == Some(true), "adminAccess", Beyond::AdminAccess),
        (is_all, "allocationMode", Beyond::All),
        (is_selective, "selectors", Beyond::Selectors),
        (request.capacity.is_some(), "capacity", Beyond::Capacity),
    ];
    let (_, field, problem) = fields.into_iter().find(|(is_set, _, _)| *is_set)?;
    Some((field, problem))
}
