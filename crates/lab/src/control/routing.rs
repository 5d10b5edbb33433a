//! Questions to a controller, and its answers.

use std::net::SocketAddr;

use polypath_net::{ChannelId, Nanos, NodeId, Topology};
use polypath_transport::Segment;

use super::graph::Graph;

/// A flow that a controller is asked about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// When it is asked about.
    pub at: Nanos,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub protocol: u8,
    /// Of its addresses, ports and protocol.
    pub hash: u64,
}

/// What the tables say of a destination that no flow was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// One of the ways of fewest links by a hash of the flow.
    Hashed,
    /// The way of least delay among those of fewest links; the others as long as its first link is down.
    Shortest,
    /// The way over one tree.
    Tree,
    /// A way of its own for each pair of addresses.
    Pairs,
    /// Nothing: each flow has to be seen.
    Nothing,
}

/// Which way a flow takes.
pub(crate) trait Routing: Send + Sync {
    /// Sees a flow's first packet, before [`Routing::path`] is asked.
    fn read(&mut self, _flow: &Asked, _segment: &Segment) {}

    /// The channels from a switch to the flow's destination, the last of which is the one to the host.
    fn path(
        &mut self,
        graph: &mut Graph,
        topology: &Topology,
        from: NodeId,
        flow: &Asked,
    ) -> Option<Vec<ChannelId>>;

    /// The link from a switch to the next on the tree, where there is one for all flows.
    fn tree(&mut self, _graph: &mut Graph, _from: NodeId, _to: NodeId) -> Option<ChannelId> {
        None
    }

    /// What tables hold before there are flows.
    fn standing(&self) -> Standing;

    /// Whether flows may take other ways than those of fewest links.
    fn strays(&self) -> bool {
        false
    }

    /// A flow cannot stay where it was put.
    fn displace(&mut self, _flow: &Asked) {}
}

/// A way between switches and on to the host.
pub(super) fn with_last(way: Option<Vec<ChannelId>>, last: ChannelId) -> Option<Vec<ChannelId>> {
    let mut way = way?;
    way.push(last);
    Some(way)
}
