//! Pods and their shapes on the wire and in the planner.

use longshore_core::vocabulary::ids::ObjectKey;
use longshore_core::world::buffer::CapacityBuffer;
use longshore_core::world::pod::{DoNotDisrupt, Pod, PodPhase};
use longshore_core::world::shape::{
    HostPort, Namespaces, PodAffinityTerm, PodShape, PreferredTerm, TopologySpread,
};
use longshore_proto::types::v1;

use super::requirement::{requirements, selector, toleration};
use super::{WireError, optional, resources, time_ms};

/// Reads a shape.
///
/// # Errors
/// When one of its parts cannot be read.
pub fn shape(wire: &v1::PodShape) -> Result<PodShape, WireError> {
    read_shape(wire).map_err(|error| {
        let owner = if wire.owner.is_empty() { &wire.shape_id } else { &wire.owner };
        error.of("pods of", &format!("{}/{owner}", wire.namespace))
    })
}

fn read_shape(wire: &v1::PodShape) -> Result<PodShape, WireError> {
    if wire.shape_id.is_empty() {
        return Err(WireError::field("shape_id", "is empty"));
    }
    let terms = |field: &str, terms: &[v1::RequirementTerm]| {
        let each = terms.iter().map(|term| requirements(&term.requirements));
        each.collect::<Result<Vec<_>, _>>().map_err(|error| error.within(field))
    };
    let affinity = |field: &str, terms: &[v1::PodAffinityTerm]| {
        let each = terms.iter().map(affinity_term);
        each.collect::<Result<Vec<_>, _>>().map_err(|error| error.within(field))
    };
    let requests = resources::from_wire(wire.requests.as_ref());
    Ok(PodShape {
        id: wire.shape_id.as_str().into(),
        namespace: wire.namespace.clone(),
        labels: wire.labels.clone(),
        requests: requests.map_err(|error| error.within("requests"))?,
        node_selector: wire.node_selector.clone(),
        required_node_terms: terms("required_node_terms", &wire.required_node_terms)?,
        preferred_node_terms: preferred(&wire.preferred_node_terms)?,
        tolerations: wire.tolerations.iter().map(toleration).collect(),
        topology_spread: wire.topology_spread.iter().map(spread).collect::<Result<_, _>>()?,
        required_affinity: affinity("required_affinity", &wire.required_affinity)?,
        required_anti_affinity: affinity("required_anti_affinity", &wire.required_anti_affinity)?,
        preferred_affinity: affinity("preferred_affinity", &wire.preferred_affinity)?,
        preferred_anti_affinity: affinity(
            "preferred_anti_affinity",
            &wire.preferred_anti_affinity,
        )?,
        host_ports: wire.host_ports.iter().map(host_port).collect::<Result<_, _>>()?,
        volume_terms: terms("volume_terms", &wire.volume_terms)?,
        priority: wire.priority,
        owner: wire.owner.clone(),
        is_daemon: wire.daemon,
        unschedulable: optional(&wire.unschedulable_reason),
        scheduler: wire.scheduler_name.clone(),
    })
}

fn preferred(wire: &[v1::PreferredTerm]) -> Result<Vec<PreferredTerm>, WireError> {
    let each = wire.iter().map(|term| {
        let requirements = requirements(&term.requirements)?;
        Ok(PreferredTerm { weight: term.weight, requirements })
    });
    each.collect::<Result<_, _>>().map_err(|error: WireError| error.within("preferred_node_terms"))
}

fn spread(wire: &v1::TopologySpread) -> Result<TopologySpread, WireError> {
    if wire.max_skew < 1 {
        let problem = format!("{} is less than 1", wire.max_skew);
        return Err(WireError::field("topology_spread.max_skew", problem));
    }
    let all = v1::LabelSelector::default();
    let selector = selector(wire.selector.as_ref().unwrap_or(&all));
    Ok(TopologySpread {
        max_skew: i64::from(wire.max_skew),
        topology_key: wire.topology_key.clone(),
        schedule_anyway: wire.schedule_anyway,
        selector: selector.map_err(|error| error.within("topology_spread"))?,
        min_domains: wire.min_domains.map(i64::from),
        honor_node_affinity: wire.honor_node_affinity,
        honor_node_taints: wire.honor_node_taints,
    })
}

fn affinity_term(wire: &v1::PodAffinityTerm) -> Result<PodAffinityTerm, WireError> {
    let namespaces = match (wire.all_namespaces, wire.namespaces.is_empty()) {
        (true, _) => Namespaces::All,
        (false, true) => Namespaces::Own,
        (false, false) => Namespaces::Listed(wire.namespaces.clone()),
    };
    Ok(PodAffinityTerm {
        topology_key: wire.topology_key.clone(),
        selector: wire.selector.as_ref().map(selector).transpose()?,
        namespaces,
        weight: wire.weight,
    })
}

fn host_port(wire: &v1::HostPort) -> Result<HostPort, WireError> {
    let port = u16::try_from(wire.port).ok().filter(|port| *port > 0).ok_or_else(|| {
        WireError::field("host_ports.port", format!("{} is not in 1..65535", wire.port))
    })?;
    Ok(HostPort { port, protocol: wire.protocol.clone(), host_ip: wire.host_ip.clone() })
}

/// Reads a capacity buffer.
#[must_use]
pub fn buffer(wire: &v1::CapacityBuffer) -> CapacityBuffer {
    CapacityBuffer {
        key: ObjectKey::new(&wire.namespace, &wire.name),
        shape: wire.shape_id.as_str().into(),
        replicas: wire.replicas.max(0),
    }
}

/// Reads a pod.
///
/// # Errors
/// When it has no UID, shape or phase.
pub fn pod(wire: &v1::Pod) -> Result<Pod, WireError> {
    let name = format!("{}/{}", wire.namespace, wire.name);
    read_pod(wire).map_err(|error| error.of("Pod", &name))
}

fn read_pod(wire: &v1::Pod) -> Result<Pod, WireError> {
    if wire.uid.is_empty() || wire.shape_id.is_empty() {
        return Err(WireError::field("uid, shape_id", "must not be empty"));
    }
    let phase = match wire.phase() {
        v1::PodPhase::Pending => PodPhase::Pending,
        v1::PodPhase::Running => PodPhase::Running,
        v1::PodPhase::Unspecified => {
            return Err(WireError::field("phase", "is missing; use PENDING or RUNNING"));
        }
    };
    let nominated = optional(&wire.nominated_node);
    Ok(Pod {
        key: longshore_core::vocabulary::ids::ObjectKey::new(&wire.namespace, &wire.name),
        uid: wire.uid.as_str().into(),
        shape: wire.shape_id.as_str().into(),
        node: optional(&wire.node_name).map(Into::into),
        phase,
        created_ms: wire.create_time.as_ref().map_or(0, time_ms),
        unschedulable: wire.unschedulable,
        preempting: nominated.is_some() && !wire.nominated_by_us,
        nominated_node: nominated.map(Into::into),
        deleting: wire.deleting,
        ends_ms: wire.end_time.as_ref().map(time_ms),
        do_not_disrupt: match (wire.do_not_disrupt, &wire.do_not_disrupt_until) {
            (false, _) => DoNotDisrupt::No,
            (true, None) => DoNotDisrupt::Always,
            (true, Some(until)) => DoNotDisrupt::UntilMs(time_ms(until)),
        },
        deletion_cost: wire.deletion_cost,
        failing: wire.failing,
        surges: wire.surges,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nominations_by_others_are_preemption() {
        let wire = v1::Pod {
            uid: "u".to_owned(),
            shape_id: "s".to_owned(),
            phase: v1::PodPhase::Pending.into(),
            nominated_node: "n".to_owned(),
            ..Default::default()
        };
        assert!(pod(&wire).unwrap().preempting);
        let ours = v1::Pod { nominated_by_us: true, ..wire };
        assert!(!pod(&ours).unwrap().preempting);
    }

    #[test]
    fn a_malformed_shape_is_named_by_its_owner() {
        let wire = v1::PodShape {
            shape_id: "s".to_owned(),
            namespace: "shop".to_owned(),
            owner: "Deployment/web".to_owned(),
            topology_spread: vec![v1::TopologySpread::default()],
            ..Default::default()
        };
        let error = shape(&wire).unwrap_err().to_string();
        assert!(
            error.starts_with("pods of shop/Deployment/web: topology_spread.max_skew"),
            "{error}"
        );
    }
}
