//! The fastest of the shortest paths, for every flow.

use polypath_net::{ChannelId, NodeId, Topology};
use polypath_settings::{Algorithm, algorithm};

use super::routing::with_last;
use super::{Asked, Graph, Routing, Standing};

algorithm! {
    "shortest-path",
    "Of the paths with fewest links the one of least delay, for all flows to a destination",
    "Dijkstra 1959; fast failover: OpenFlow 1.3.5 section 5.6.1";
    ShortestPath
}

impl Algorithm<dyn Routing> for ShortestPath {
    fn make(self) -> Box<dyn Routing> {
        Box::new(self)
    }
}

#[derive(Default)]
pub(super) struct ShortestPath;

impl Routing for ShortestPath {
    fn path(
        &mut self,
        graph: &mut Graph,
        _: &Topology,
        from: NodeId,
        flow: &Asked,
    ) -> Option<Vec<ChannelId>> {
        let home = graph.home(flow.destination.ip())?;
        let (mut node, mut path) = (from, Vec::new());
        while node != home.switch {
            let (channel, next) = graph.quickest(node, home.switch)?;
            path.push(channel);
            node = next;
        }
        with_last(Some(path), home.channel)
    }

    fn standing(&self) -> Standing {
        Standing::Shortest
    }
}
