//! Equal-cost multipath by a central controller. The flow's hash chooses among all shortest paths, as RipL-POX's
//! `hashed` does.

use polypath_net::{ChannelId, NodeId, Topology};
use polypath_settings::{Algorithm, algorithm};

use super::routing::with_last;
use super::{Asked, Graph, Routing, Standing};

algorithm! {
    "hashed",
    "One of the paths with fewest links by a hash of addresses, ports and protocol",
    "RipL-POX, HashedStructuredRouting; RFC 2992";
    Hashed
}

impl Algorithm<dyn Routing> for Hashed {
    fn make(self) -> Box<dyn Routing> {
        Box::new(self)
    }
}

#[derive(Default)]
pub(super) struct Hashed;

impl Routing for Hashed {
    fn path(
        &mut self,
        graph: &mut Graph,
        _: &Topology,
        from: NodeId,
        flow: &Asked,
    ) -> Option<Vec<ChannelId>> {
        let home = graph.home(flow.destination.ip())?;
        let count = graph.count(from, home.switch);
        let number = flow.hash.checked_rem(count)?;
        with_last(graph.way(from, home.switch, number), home.channel)
    }

    fn standing(&self) -> Standing {
        Standing::Hashed
    }
}
