//! Processes that are watcher, scheduler and actuator of their cluster: started as `longshore up`
//! starts them.
//!
//! Invariant: what `up` looks for outside is handed in: the region as its cloud, the API server,
//! two listeners that only the process itself reaches.

use std::sync::Arc;
use std::time::Duration;

use longshore_runtime::metrics::Metrics;
use longshore_runtime::server::AccessArgs;
use longshore_scheduler::settings::Settings;
use longshore_standalone::{Ground, Parts};

use super::World;
use crate::process::{Process, spawn};

/// Time between two listings of instances while any starts or ends, as `up` has it unless told
/// otherwise.
const INVENTORY_INTERVAL: Duration = Duration::from_secs(5);

impl World {
    pub(super) fn start_standalone(&self, index: usize, cluster: usize, process: &Process) {
        let machine = &self.services[index].machine;
        let parts = Parts {
            watcher: self.watcher_config(index, cluster, &machine.url()),
            settings: Settings::default(),
            inventory_interval: INVENTORY_INTERVAL,
            access: AccessArgs::default(),
        };
        let ground = Ground {
            cloud: Arc::new(self.cloud_of(index, &self.sites[self.clusters[cluster].site])),
            client: self.road_of(index, cluster, process).client(),
            scheduler: self.net.listen(machine.address()),
            actuator: self.net.listen(machine.inner_address()),
            planning: None,
            announcement: None,
            metrics: Metrics::new(),
        };
        self.judge.begins(&machine.name);
        let supervisor = process.supervisor.clone();
        spawn(&process.gate, async move {
            let started = longshore_standalone::start(parts, ground, &supervisor);
            if let Err(error) = started.await {
                tracing::error!(%error, "the process does not start");
                supervisor.token().cancel();
            }
        });
    }
}
