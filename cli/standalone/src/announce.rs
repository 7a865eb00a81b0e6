//! Which of several copies answers: the one that works puts itself behind the Service.
//!
//! Invariant: written by the holder of the Lease alone, and over whatever the holder before has
//! written. A copy that stands by is ready and does not answer, so readiness cannot lead there.

use std::net::SocketAddr;

use anyhow::Context as _;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// Who writes it.
const MANAGER: &str = "longshore";

/// A Service, and where this copy answers for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Service without a selector.
    pub service: String,
    /// Its namespace.
    pub namespace: String,
    /// Address of this copy, as others in the cluster reach it.
    pub address: SocketAddr,
}

impl Announcement {
    /// Puts this copy behind the Service, in place of whichever was there.
    ///
    /// # Errors
    /// When the API server does not take it.
    pub async fn publish(&self, client: &Client) -> anyhow::Result<()> {
        let slices = Api::<EndpointSlice>::namespaced(client.clone(), &self.namespace);
        let params = PatchParams::apply(MANAGER).force();
        let written = slices.patch(&self.service, &params, &Patch::Apply(self.slice())).await;
        let named = || format!("cannot write EndpointSlice {}/{}", self.namespace, self.service);
        written.map(drop).with_context(named)
    }

    fn slice(&self) -> Value {
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": self.service,
                "labels": {
                    "kubernetes.io/service-name": self.service,
                    "endpointslice.kubernetes.io/managed-by": MANAGER,
                },
            },
            "addressType": if self.address.is_ipv4() { "IPv4" } else { "IPv6" },
            "endpoints": [{
                "addresses": [self.address.ip().to_string()],
                "conditions": { "ready": true },
            }],
            "ports": [{ "name": "grpc", "port": self.address.port(), "protocol": "TCP" }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_behind_its_service_at_its_own_address() {
        let told = |address: &str| {
            let [service, namespace] = ["longshore-scheduler", "longshore"].map(str::to_owned);
            let address = address.parse().unwrap();
            serde_json::from_value(Announcement { service, namespace, address }.slice())
        };
        let slice: EndpointSlice = told("10.1.2.3:7400").unwrap();
        assert_eq!(slice.address_type, "IPv4");
        assert_eq!(slice.endpoints[0].addresses, ["10.1.2.3"]);
        assert_eq!(slice.ports.unwrap()[0].port, Some(7400));
        let slice: EndpointSlice = told("[fd00::1]:7400").unwrap();
        assert_eq!(
            (slice.address_type.as_str(), &slice.endpoints[0].addresses[0][..]),
            ("IPv6", "fd00::1")
        );
    }
}
