//! One machine's life: boot, join, serve, go.
//!
//! Invariant: straight-line; each step happens once, and the end of the instance ends every wait.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::client::KubeletClient;
use super::devices;
use super::dispatch::Served;
use super::node::{begun, bootstrap, object, readiness};
use super::refusals::Refusals;
use super::{KubeletConfig, StaticNode};
use crate::instance::{Instance, InstanceState};

/// What the machines of one cluster share.
#[derive(Clone)]
pub struct Surroundings {
    /// The way to the API server.
    pub client: KubeletClient,
    /// How kubelets behave.
    pub config: Arc<KubeletConfig>,
    /// Tells the dispatcher whose pods are run.
    pub served: mpsc::Sender<Served>,
    /// Machines that never join, and why.
    pub refusals: Arc<Refusals>,
}

/// Lives one instance's life, following its state.
pub async fn live(mut instance: watch::Receiver<Instance>, around: Surroundings) {
    if reached(&mut instance, InstanceState::Running).await != Some(InstanceState::Running) {
        return;
    }
    let machine = instance.borrow_and_update().clone();
    let node = machine.private_dns_name.clone();
    let joined = match bootstrap(&machine, &around.config) {
        Ok(bootstrap) => {
            let object = object(&machine, &bootstrap, &around.config);
            let life = async {
                join(&around, object).await;
                if around.config.lists_devices {
                    list_devices(&around, &node, &machine.instance_type).await;
                }
                if around.config.sick_images.contains(&machine.image_id) {
                    renew(&around, &node).await;
                }
                serve(&around, &node, &machine.private_ip).await;
            };
            tokio::select! {
                () = life => true,
                _ = reached(&mut instance, InstanceState::ShuttingDown) => true,
            }
        }
        Err(reason) => {
            around.refusals.record(&machine.instance_id, reason);
            false
        }
    };
    if !joined {
        return;
    }
    leave(&around, &node).await;
    let end = reached(&mut instance, InstanceState::Terminated).await;
    if end == Some(InstanceState::Terminated) && around.config.removes_nodes_of_terminated_instances
    {
        around.client.delete_node(&node).await;
    }
}

/// Keeps a node that is no instance, until the task is ended.
pub async fn live_static(node: StaticNode, around: Surroundings) {
    let object = node.object(&around.config.kubelet_version);
    join(&around, object).await;
    serve(&around, &node.name, &node.ip).await;
}

/// Waits until the state is at least this; none when the instance is not listed any more.
async fn reached(
    instance: &mut watch::Receiver<Instance>,
    state: InstanceState,
) -> Option<InstanceState> {
    instance.wait_for(|instance| instance.state >= state).await.ok().map(|found| found.state)
}

/// Makes the node known.
async fn join(around: &Surroundings, object: serde_json::Value) {
    sleep(around.config.register_delay).await;
    around.client.register(&begun(object, &around.client.now())).await;
}

/// Lists the devices of a node that is known, as the driver on it would.
async fn list_devices(around: &Surroundings, node: &str, instance_type: &str) {
    let Some(uid) = around.client.node_uid(node).await else { return };
    if let Some(slice) = devices::slice(instance_type, node, &uid) {
        around.client.publish(&slice).await;
    }
}

/// Serves; ends only by being dropped.
async fn serve(around: &Surroundings, node: &str, ip: &str) {
    around.client.renew_lease(node).await;
    sleep(around.config.ready_delay).await;
    let message = "kubelet is posting ready status";
    around
        .client
        .patch_node(node, &readiness(true, "KubeletReady", message, &around.client.now()))
        .await;
    let started = Served::From { node: node.to_owned(), ip: ip.to_owned() };
    if around.served.send(started).await.is_err() {
        return;
    }
    renew(around, node).await;
}

/// Keeps a node's lease; ends only by being dropped.
async fn renew(around: &Surroundings, node: &str) {
    loop {
        sleep(around.config.lease_interval).await;
        around.client.renew_lease(node).await;
    }
}

/// Stops serving and says so.
async fn leave(around: &Surroundings, node: &str) {
    let ended = Served::Until { node: node.to_owned() };
    if around.served.send(ended).await.is_err() {
        return;
    }
    let message = "node is shutting down";
    around
        .client
        .patch_node(node, &readiness(false, "KubeletNotReady", message, &around.client.now()))
        .await;
}
