//! A random path for each new flow.

use polypath_net::{ChannelId, NodeId, Topology, random};
use polypath_settings::{Algorithm, algorithm};

use super::routing::with_last;
use super::{Asked, Graph, Routing, Standing};

algorithm! {
    "random",
    "One of the paths with fewest links at random, drawn for each new flow; in mode proactive for each pair of addresses",
    "RipL-POX, RandomStructuredRouting";
    Random
}

impl Algorithm<dyn Routing> for Random {
    fn make(self) -> Box<dyn Routing> {
        Box::new(self)
    }
}

#[derive(Default)]
pub(super) struct Random {
    drawn: u64,
}

impl Routing for Random {
    fn path(
        &mut self,
        graph: &mut Graph,
        _: &Topology,
        from: NodeId,
        flow: &Asked,
    ) -> Option<Vec<ChannelId>> {
        let home = graph.home(flow.destination.ip())?;
        let count = graph.count(from, home.switch);
        self.drawn += 1;
        // The hash has the run's seed in it.
        let number = random::mix(flow.hash ^ random::mix(self.drawn)).checked_rem(count)?;
        with_last(graph.way(from, home.switch, number), home.channel)
    }

    fn standing(&self) -> Standing {
        Standing::Pairs
    }
}
