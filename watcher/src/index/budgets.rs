//! Disruption budgets and DaemonSets in the index.
//!
//! Invariant: a DaemonSet holds on to the shape of its pods as a pod would. One whose pods claim
//! devices is not in the view: they run where a driver is, and not every node to come has one.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use longshore_proto::types::v1::ObjectKind;
use longshore_proto::types::v1::object::Kind;

use super::{Index, Key, Name, Source, Watched, name_of};
use crate::project::{Fault, budget, daemon_set, devices};

fn joined((namespace, name): &Name) -> String {
    format!("{namespace}/{name}")
}

impl Watched for PodDisruptionBudget {
    const SOURCE: Source = Source::PodDisruptionBudget;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        index.view.put(Kind::DisruptionBudget(budget::disruption_budget(&self)?));
        Ok(())
    }

    fn forget(index: &mut Index, name: &Name) {
        index.view.remove(&Key::new(ObjectKind::DisruptionBudget, joined(name)));
    }
}

impl Watched for DaemonSet {
    const SOURCE: Source = Source::DaemonSet;
    const QUOTABLE: bool = false;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let (row, shape) = daemon_set::daemon_set(&self, &index.around)?;
        let name = name_of(&self.metadata);
        let template = self.spec.as_ref().and_then(|set| set.template.spec.as_ref());
        if template.is_some_and(devices::are_claimed) {
            Self::forget(index, &name);
            return Ok(());
        }
        let old = index.daemon_shapes.insert(name, row.shape_id.clone());
        index.use_shape(shape);
        index.view.put(Kind::DaemonSet(row));
        if let Some(old) = old {
            index.drop_shape(&old);
        }
        Ok(())
    }

    fn forget(index: &mut Index, name: &Name) {
        index.view.remove(&Key::new(ObjectKind::DaemonSet, joined(name)));
        if let Some(shape) = index.daemon_shapes.remove(name) {
            index.drop_shape(&shape);
        }
    }
}
