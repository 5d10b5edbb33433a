//! The subflows of one connection on paths that share as few links as possible. The handshakes of Multipath TCP show
//! which flows belong together.

use polypath_net::{ChannelId, NodeId, Topology};
use polypath_settings::{Algorithm, algorithm};
use polypath_transport::Segment;

use super::{Asked, Graph, Routing, Standing};
use crate::spreading::Spreading;

algorithm! {
    "spread",
    "Paths with as few links in common as can be for the subflows of one connection, which it knows from their handshakes; longer ones, too",
    "RFC 8684 sections 3.1 and 3.2";
    Spread
}

impl Algorithm<dyn Routing> for Spread {
    fn make(self) -> Box<dyn Routing> {
        Box::new(self)
    }
}

#[derive(Default)]
pub(super) struct Spread {
    spreading: Spreading,
}

impl Routing for Spread {
    fn read(&mut self, flow: &Asked, segment: &Segment) {
        self.spreading.read(flow.source, flow.destination, segment);
    }

    fn path(
        &mut self,
        graph: &mut Graph,
        topology: &Topology,
        from: NodeId,
        flow: &Asked,
    ) -> Option<Vec<ChannelId>> {
        let (source, destination) = (flow.source, flow.destination);
        let begin = |channel: &ChannelId| {
            let (interface, _) = topology.ends(*channel)?;
            topology.node_of(interface).ok()
        };
        // A switch that lost its entry asks again: the flow stays where it is.
        let kept = self.spreading.placed(source, destination);
        let kept = kept.filter(|path| path.iter().all(|channel| graph.is_up(*channel)));
        let path = match kept {
            Some(path) => path.to_vec(),
            None => {
                self.spreading.displace(source, destination);
                let interface = topology.owner(source.ip())?;
                let host = topology.node_of(interface).ok()?;
                let up = |channel: ChannelId| graph.is_up(channel);
                (self.spreading).place(topology, up, host, source, destination)?
            }
        };
        let here = path
            .iter()
            .position(|channel| begin(channel) == Some(from))?;
        Some(path[here..].to_vec())
    }

    fn standing(&self) -> Standing {
        Standing::Nothing
    }

    fn strays(&self) -> bool {
        true
    }

    fn displace(&mut self, flow: &Asked) {
        self.spreading.displace(flow.source, flow.destination);
    }
}
