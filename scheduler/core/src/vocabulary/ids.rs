//! Names and identifiers, one type for each kind so that they cannot be mixed up.
//!
//! Invariant: an id is an immutable string; cloning one is a reference count.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// An id of this text.
            #[must_use]
            pub fn new(text: &str) -> Self {
                Self(Arc::from(text))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// True when the text is empty, which means "none" wherever an id is optional.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new("")
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// Kubernetes UID of a pod.
    PodUid
}
id! {
    /// Name of a Kubernetes node.
    NodeName
}
id! {
    /// Name of a NodePool.
    PoolName
}
id! {
    /// Name of a NodeOverlay.
    OverlayName
}
id! {
    /// Name of a NodeClaim.
    ClaimName
}
id! {
    /// Content hash of a pod shape; equal ids mean equal shapes.
    ShapeId
}
id! {
    /// Name of an instance type, for example `m7g.large`.
    InstanceTypeName
}
id! {
    /// Content hash of a catalogue.
    CatalogueId
}
id! {
    /// Name of a zone in one account, for example `us-east-1a`.
    Zone
}
id! {
    /// Id of a zone, the same place in every account, for example `use1-az1`.
    ZoneId
}
id! {
    /// Id of a capacity reservation.
    ReservationId
}

/// Namespace and name of a namespaced object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Namespace and name of a pod.
pub type PodKey = ObjectKey;

impl ObjectKey {
    /// The key of `name` in `namespace`.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
