//! Routing among the shortest paths by a choice from outside. A controller outside of the registry is written this way.

use std::net::SocketAddr;

use polypath_net::{ChannelId, Nanos, NodeId, Topology};
use polypath_settings::RegistryError;
use polypath_transport::Choice;

use super::routing::with_last;
use super::{Asked, Graph, Routing, Standing};

/// The most ways that are offered, the first in the order of their links.
const MOST_WAYS: u64 = 256;

/// A flow that has to be given a way.
#[derive(Clone, Copy, Debug)]
pub struct NewFlow {
    pub at: Nanos,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub protocol: u8,
    /// Of its addresses, ports and protocol and the run's seed: what `hashed` goes by.
    pub hash: u64,
}

/// Chooses ways for flows.
pub trait Chooser: Send + Sync {
    /// The index of the way that a flow takes; `ways` has the names of each one's switches in order. Nothing: its packets are dropped.
    fn choose(&mut self, flow: &NewFlow, ways: &[Vec<&str>]) -> Option<usize>;
}

/// Where choosers come from of which the registry knows nothing.
pub trait Choosers: Send + Sync {
    /// The one chosen; nothing where the name is none of its own.
    fn chooser(&self, choice: &Choice) -> Option<Result<Box<dyn Chooser>, RegistryError>>;
}

pub(crate) struct Chosen {
    chooser: Box<dyn Chooser>,
    /// By node.
    names: Vec<String>,
}

impl Chosen {
    pub fn new(chooser: Box<dyn Chooser>, names: Vec<String>) -> Self {
        Self { chooser, names }
    }

    /// The switches of a way from one.
    fn name(&self, topology: &Topology, from: NodeId, way: &[ChannelId]) -> Vec<&str> {
        let ends = way.iter().filter_map(|channel| topology.ends(*channel));
        let nodes = ends.filter_map(|(_, to)| topology.node_of(to).ok());
        let all = [from].into_iter().chain(nodes);
        all.filter_map(|node| self.names.get(node.index()).map(String::as_str))
            .collect()
    }
}

impl Routing for Chosen {
    fn path(
        &mut self,
        graph: &mut Graph,
        topology: &Topology,
        from: NodeId,
        flow: &Asked,
    ) -> Option<Vec<ChannelId>> {
        let home = graph.home(flow.destination.ip())?;
        let count = graph.count(from, home.switch).min(MOST_WAYS);
        let ways = (0..count).map(|number| graph.way(from, home.switch, number));
        let mut ways: Vec<Vec<ChannelId>> = ways.collect::<Option<_>>()?;
        let mut chooser = std::mem::replace(&mut self.chooser, Box::new(Nobody));
        let names: Vec<Vec<&str>> = ways
            .iter()
            .map(|way| self.name(topology, from, way))
            .collect();
        let new = NewFlow {
            at: flow.at,
            source: flow.source,
            destination: flow.destination,
            protocol: flow.protocol,
            hash: flow.hash,
        };
        let index = chooser.choose(&new, &names);
        self.chooser = chooser;
        let index = index.filter(|index| *index < ways.len())?;
        with_last(Some(ways.swap_remove(index)), home.channel)
    }

    fn standing(&self) -> Standing {
        Standing::Nothing
    }
}

/// Stands in while a chooser is asked.
struct Nobody;

impl Chooser for Nobody {
    fn choose(&mut self, _: &NewFlow, _: &[Vec<&str>]) -> Option<usize> {
        None
    }
}
