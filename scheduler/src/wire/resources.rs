//! Resources on the wire and in the planner.

use longshore_core::vocabulary::resources::Resources;
use longshore_proto::types::v1;

use super::WireError;

/// Reads an amount; absent means zero.
///
/// # Errors
/// When any part is negative.
pub fn from_wire(wire: Option<&v1::Resources>) -> Result<Resources, WireError> {
    let Some(wire) = wire else { return Ok(Resources::default()) };
    let parts = [
        ("cpu_millis", wire.cpu_millis),
        ("memory_bytes", wire.memory_bytes),
        ("ephemeral_storage_bytes", wire.ephemeral_storage_bytes),
        ("pods", wire.pods),
    ];
    let extended = wire.extended.iter().map(|(name, amount)| (name.as_str(), *amount));
    for (name, amount) in parts.into_iter().chain(extended) {
        if amount < 0 {
            return Err(WireError::field(name, format!("{amount} is negative; use 0 or more")));
        }
    }
    Ok(Resources {
        cpu_millis: wire.cpu_millis,
        memory_bytes: wire.memory_bytes,
        ephemeral_storage_bytes: wire.ephemeral_storage_bytes,
        pods: wire.pods,
        extended: wire.extended.clone(),
    })
}

/// Writes an amount.
#[must_use]
pub fn to_wire(resources: &Resources) -> v1::Resources {
    v1::Resources {
        cpu_millis: resources.cpu_millis,
        memory_bytes: resources.memory_bytes,
        ephemeral_storage_bytes: resources.ephemeral_storage_bytes,
        pods: resources.pods,
        extended: resources.extended.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_survive_and_negative_ones_are_named() {
        let wire = v1::Resources { cpu_millis: 5, pods: 1, ..Default::default() };
        assert_eq!(to_wire(&from_wire(Some(&wire)).unwrap()), wire);
        let wrong = v1::Resources { memory_bytes: -1, ..Default::default() };
        assert_eq!(from_wire(Some(&wrong)).unwrap_err().field, "memory_bytes");
    }
}
