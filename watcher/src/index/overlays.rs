//! NodeOverlays in the index.
//!
//! Invariant: one that makes no sense by itself is not in the view, and says so in its status;
//! whether overlays contradict each other is for the scheduler to see.

use longshore_proto::types::v1::ObjectKind;
use longshore_proto::types::v1::object::Kind;

use super::{Index, Key, Name, Source, Watched};
use crate::api::NodeOverlay;
use crate::project::{Fault, overlay};

impl Watched for NodeOverlay {
    const SOURCE: Source = Source::NodeOverlay;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        index.view.put(Kind::NodeOverlay(overlay::overlay(&self)?));
        Ok(())
    }

    fn forget(index: &mut Index, (_, name): &Name) {
        index.view.remove(&Key::new(ObjectKind::NodeOverlay, name));
    }
}
