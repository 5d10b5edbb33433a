//! The routes that packets take by a plan, before anything runs.

use std::net::IpAddr;

use polypath_net::{ChannelConfig, ChannelId, NodeId, Topology};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::PlanError;
use crate::account;
use crate::build::Layout;
use crate::control;
use crate::plan::{self, Attachment, Direction, Routing};

/// What a plan says of ways. The rest is not read: a plan that another engine ran has more than this one takes.
#[derive(Deserialize)]
struct Ground {
    nodes: Vec<Node>,
    links: Vec<Link>,
    #[serde(default)]
    routes: Vec<plan::Route>,
    #[serde(default)]
    routing: Routing,
    controller: Option<Controller>,
    bridging: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Node {
    name: String,
    kind: plan::NodeKind,
    #[serde(default)]
    forwards: bool,
    interfaces: Vec<plan::Interface>,
}

#[derive(Deserialize)]
struct Link {
    name: String,
    a: Attachment,
    b: Attachment,
    forward: Channel,
    backward: Channel,
}

#[derive(Deserialize)]
struct Channel {
    #[serde(default)]
    delay_ns: u64,
    #[serde(default = "plan::yes")]
    up: bool,
    rate_bps: Option<u64>,
}

#[derive(Deserialize)]
struct Controller {
    routing: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// How far flows differ in their ways.
#[derive(Clone, Copy)]
enum Freedom {
    /// Not at all.
    None,
    /// Each takes one of the paths of fewest hops.
    Shortest,
    /// Each takes any path.
    AnyPath,
    /// Routers and switches decide among themselves.
    AnyForwarding,
}

impl Freedom {
    fn of(ground: &Ground) -> Self {
        if ground.bridging.is_some() {
            return Self::AnyForwarding;
        }
        let mut links = ground.links.iter();
        match &ground.controller {
            Some(Controller { routing: None }) => Self::AnyForwarding,
            // A controller goes round what is down.
            Some(_) if links.any(|link| !(link.forward.up && link.backward.up)) => {
                Self::AnyForwarding
            }
            Some(Controller {
                routing: Some(routing),
            }) => match control::strays(&routing.name) {
                true => Self::AnyForwarding,
                false => Self::Shortest,
            },
            None => match ground.routing {
                Routing::ShortestPath => Self::None,
                Routing::Ecmp | Routing::InTurn => Self::Shortest,
                Routing::Spread => Self::AnyPath,
            },
        }
    }
}

/// Which of several ways a packet takes is up to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("which of several paths is taken is up to the run")]
pub struct Undetermined;

/// Links in order, and in which direction each is crossed.
pub type Way = Vec<(usize, Direction)>;

/// The ways in a plan's network.
pub struct Ways {
    topology: Topology,
    freedom: Freedom,
    /// By channel.
    rates: Vec<Option<u64>>,
}

impl Ways {
    /// Reads the network of a plan in JSON: nodes, links and what it says of routes.
    ///
    /// # Errors
    /// Why there is no such network.
    pub fn new(plan: &str) -> Result<Self, PlanError> {
        let ground: Ground = serde_json::from_str(plan)?;
        let mut layout = Layout::default();
        for node in &ground.nodes {
            let interfaces = node.interfaces.iter();
            let interfaces = interfaces.map(|own| (&*own.name, &*own.addresses));
            layout.node(&node.name, node.kind, node.forwards, interfaces)?;
        }
        for link in &ground.links {
            let [forward, backward] = [&link.forward, &link.backward].map(|side| ChannelConfig {
                delay: side.delay_ns,
                ..ChannelConfig::default()
            });
            layout.link(&link.name, (link.a, link.b), forward, backward)?;
        }
        for route in &ground.routes {
            layout.route(route)?;
        }
        let topology = layout.finish();
        let sides = |link: &Link| [link.forward.rate_bps, link.backward.rate_bps];
        Ok(Self {
            topology,
            freedom: Freedom::of(&ground),
            rates: ground.links.iter().flat_map(sides).collect(),
        })
    }

    /// The links that a packet from `source` at a node crosses to `destination`, in order; nothing where none lead there.
    ///
    /// # Errors
    /// The plan lets each flow choose, and here there is a choice.
    pub fn way(
        &mut self,
        node: usize,
        source: IpAddr,
        destination: IpAddr,
    ) -> Result<Option<Way>, Undetermined> {
        let node = NodeId(u32::try_from(node).unwrap_or(u32::MAX));
        let topology = &mut self.topology;
        let Ok(route) = topology.route(node, source, destination, 0) else {
            return Ok(None);
        };
        let path: Vec<_> = topology.path(route).collect();
        let choice = match self.freedom {
            Freedom::None => false,
            Freedom::Shortest => topology.has_choice(node, source, destination) == Ok(true),
            Freedom::AnyPath => {
                let cost = |channel| if path.contains(&channel) { 1 << 64 } else { 1 };
                topology.cheapest(node, source, destination, cost).as_ref() != Some(&path)
            }
            Freedom::AnyForwarding => path.len() > 1,
        };
        if choice {
            return Err(Undetermined);
        }
        Ok(Some(path.into_iter().map(link).collect()))
    }

    /// The links that bound what can be sent over these ways, as an account has them: each way's narrowest, or one that several share and that is
    /// narrower than their own together.
    pub fn narrowest(&self, ways: &[Way]) -> Way {
        let path = |way: &Way| way.iter().copied().map(channel).collect();
        let paths: Vec<Vec<ChannelId>> = ways.iter().map(path).collect();
        let rate = |channel: ChannelId| self.rates.get(channel.index()).copied().flatten();
        let found = account::narrowest(&paths, rate);
        found.into_iter().map(link).collect()
    }
}

/// Links are laid out in the plan's order, with two channels each.
fn link(channel: ChannelId) -> (usize, Direction) {
    match channel.index() % 2 {
        0 => (channel.index() / 2, Direction::Forward),
        _ => (channel.index() / 2, Direction::Backward),
    }
}

fn channel((link, direction): (usize, Direction)) -> ChannelId {
    let side = usize::from(direction == Direction::Backward);
    ChannelId((2 * link + side) as u32)
}
