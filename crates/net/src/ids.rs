//! Identifiers: positions in the topology's lists.

use std::fmt;

/// Time in nanoseconds from the start of the run, or a length of time.
pub type Nanos = u64;

/// A time that never comes.
pub(crate) const NEVER: Nanos = Nanos::MAX;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, " {}"), self.0)
            }
        }
    };
}

id!(NodeId, "node");
id!(
    /// An interface, numbered over all nodes.
    InterfaceId,
    "interface"
);
id!(
    /// One direction of a link. The two directions of a link have the ids 2n and 2n+1.
    ChannelId,
    "channel"
);
id!(
    /// An interned path of channels.
    RouteId,
    "route"
);
id!(TimerId, "timer");

/// What a node does with packets that are not for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Sends and receives; never forwards.
    Host,
    /// A host that forwards for others, too, as the servers of BCube do.
    ForwardingHost,
    Router,
    /// Forwards at layer 2; in routing a node like any other.
    Switch,
}

impl NodeKind {
    pub fn forwards(self) -> bool {
        self != Self::Host
    }

    /// Whether it sends and receives of its own, each interface by its own link.
    pub fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::ForwardingHost)
    }
}
