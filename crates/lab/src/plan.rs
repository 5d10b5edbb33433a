//! The Plan: a scenario resolved to ids, SI numbers, addresses and timed events.
//!
//! It is the only input of every engine. Ids are positions in the lists. Times are in nanoseconds from the start of the
//! run, rates in bit/s, and sizes in bytes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod page;
mod transport;
mod video;
mod wifi;

pub use crate::application::{
    BulkConfig as Bulk, CbrConfig as Cbr, Delivery, FetchConfig as Fetch,
    MessagesConfig as Messages, OnOffConfig as OnOff, PingConfig as Ping,
    PingPongConfig as PingPong, Relay, RequestResponseConfig as RequestResponse,
    StreamConfig as Stream, Streams, Tls, TunnelConfig as Tunnel, Work,
};
pub use page::{Object, Page};
pub use polypath_net::{LossConfig as Loss, QueueConfig as Queue};
use polypath_transport::Config;
pub use polypath_transport::{AckFrequency, Choice, Keepalive};
pub use transport::Transport;
pub use video::{Video, VideoRule};
pub use wifi::{Medium, Wifi, WifiState};

/// The version of this format; an engine refuses another one.
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub version: u32,
    pub name: String,
    pub seed: u64,
    /// The run ends here at the latest, or when every application has ended.
    pub duration_ns: u64,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// Channels of the air that links over Wi-Fi share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Medium>,
    /// Static routes; where none matches, the shortest path (fewest hops, then least delay) is taken.
    #[serde(default)]
    pub routes: Vec<Route>,
    #[serde(default)]
    pub routing: Routing,
    /// What rules the routers and switches, which then forward by flow tables; absent: nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// Routers and switches are Ethernet bridges; absent: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridging: Option<Bridging>,
    pub applications: Vec<Application>,
    #[serde(default)]
    pub events: Vec<Event>,
    #[serde(default)]
    pub record: Record,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    Host,
    Router,
    Switch,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub name: String,
    pub kind: NodeKind,
    /// A host that forwards packets for others, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forwards: bool,
    pub interfaces: Vec<Interface>,
    /// Present on hosts.
    #[serde(default)]
    pub stack: Option<Box<Stack>>,
}

impl Node {
    /// Whether it forwards at layer 3, and so tells senders of packets that are too long.
    pub fn routes(&self) -> bool {
        self.kind == NodeKind::Router || self.forwards
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    pub name: String,
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// Subflows that the host opens from this interface ask the peer to be backups (RFC 8684 section 3.3.8).
    #[serde(default)]
    pub backup: bool,
}

/// A bidirectional link between two interfaces; `forward` carries from a to b.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub name: String,
    pub a: Attachment,
    pub b: Attachment,
    pub forward: Channel,
    pub backward: Channel,
    /// What stands at the link's end that is not a host's, or at `b` if both or none are, in order from `a` to `b`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub middleboxes: Vec<Choice>,
    /// What 10^9 bytes cost, in any currency. Results read it; it changes nothing of the run, and nor does the cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_gb: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_bytes: Option<u64>,
}

impl Link {
    /// Whether the queue of a direction is that of a host.
    pub fn has_host_queue(&self) -> bool {
        [&self.forward, &self.backward]
            .iter()
            .any(|side| !side.queue_at.is_link())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Index into `nodes`.
    pub node: usize,
    /// Index into the node's `interfaces`.
    pub interface: usize,
}

/// One direction of a link.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// Absent: no serialisation time and no queue.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// In place of a rate; `rate_bps`, if present, is what it gives on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<Trace>>,
    /// In place of a rate; `rate_bps`, if present, is what is sent while data is sent, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<Box<Wifi>>,
    #[serde(default)]
    pub delay_ns: u64,
    /// Link-layer bytes that each packet takes besides its IP length, in rate and byte limits.
    #[serde(default = "ethernet")]
    pub overhead_bytes: u32,
    /// Token-bucket depth; 0: packets leave one after the other at the rate.
    #[serde(default)]
    pub burst_bytes: u64,
    #[serde(default)]
    pub queue: Queue,
    #[serde(default, skip_serializing_if = "QueueAt::is_link")]
    pub queue_at: QueueAt,
    /// Packets of up to this IP length neither wait nor take time to send.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bypass_bytes: u32,
    #[serde(default)]
    pub loss: Loss,
    /// Normally distributed extra delay around `delay_ns`, standard deviation; packets keep their order unless `reorder` says otherwise.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Probability that a packet is sent at once, past those delayed (netem's reorder).
    #[serde(default)]
    pub reorder: f64,
    #[serde(default)]
    pub duplicate: f64,
    /// Probability that a packet arrives with a wrong checksum.
    #[serde(default)]
    pub corrupt: f64,
    /// Longest IP packet in bytes; absent: any.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Whether senders of longer ones are told, where the link begins at a router.
    #[serde(default = "yes")]
    pub icmp: bool,
    #[serde(default = "yes")]
    pub up: bool,
}

/// Delivery opportunities of 1500 bytes (and `overhead_bytes`) each, over and over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// What it is called, for people.
    pub name: String,
    /// Pairs of a gap in ms and how many opportunities follow one another at it, the first one after 0; their sum is the period.
    pub gaps_ms: Vec<(u64, u64)>,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn ethernet() -> u32 {
    14
}

pub(crate) fn yes() -> bool {
    true
}

/// Where the queue of a direction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueAt {
    #[default]
    Link,
    /// In netem on the interface of the host that sends: the host's stack hears what it refuses.
    HostNetem,
    /// In tbf there: packets count as the sender's own until they leave the queue, too.
    HostTbf,
}

impl QueueAt {
    pub fn is_link(&self) -> bool {
        *self == Self::Link
    }
}

/// How a path is chosen among those of fewest hops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// Least propagation delay, then lowest id.
    #[default]
    ShortestPath,
    /// By a hash of the flow's addresses and ports (equal-cost multipath).
    Ecmp,
    /// At each node the next one for each new flow.
    InTurn,
    /// By a controller that keeps the flows of one Multipath TCP connection apart, over whatever way there is.
    Spread,
}

/// How routers and switches are Ethernet bridges.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bridging {
    /// By which they find their tree, of registry `spanning-tree`.
    pub protocol: Choice,
    /// How long an address is known without a frame from there.
    pub ageing_ns: u64,
    /// Of bridges that have another one than 32768.
    #[serde(default)]
    pub priorities: Vec<BridgePriority>,
}

/// A bridge's priority, the lower the more likely it is the root.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BridgePriority {
    pub node: usize,
    pub priority: u16,
}

/// A controller of all routers and switches, each of which has a control link to it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Present unless there is an application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Choice>,
    #[serde(default)]
    pub mode: Mode,
    /// What rules in place of a routing: a program outside of the simulator that speaks OpenFlow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<App>,
    /// Of each control link, in each direction; absent: messages take no time to send.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    #[serde(default)]
    pub delay_ns: u64,
    /// How long the controller works on one message.
    #[serde(default)]
    pub processing_ns: u64,
    /// How long an entry for a flow stays without a packet; absent: for good.
    #[serde(default)]
    pub idle_timeout_ns: Option<u64>,
}

/// A controller as an os-ken application. The engine's owner runs it; the engine has the switches' ends of the control links.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    pub file: String,
    pub source: String,
    /// The modules beside it that it uses, by file.
    #[serde(default)]
    pub modules: BTreeMap<String, String>,
}

/// When a controller fills the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Before the run, for every destination.
    Proactive,
    /// When a flow's first packet comes to a switch that does not know it.
    #[default]
    Reactive,
    /// Reactively at the switches that hosts are at, proactively at the others.
    Hybrid,
}

/// A static route: packets at `node` whose source and destination match leave by `interface`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub node: usize,
    /// Absent: any source.
    #[serde(default)]
    pub source: Option<Prefix>,
    pub destination: Prefix,
    pub interface: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    pub address: IpAddr,
    pub length: u8,
}

/// Who speaks for a host, and its transport settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Who speaks QUIC: `polypath`, `noq` or a stack that is written elsewhere; absent: `polypath`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    #[serde(flatten)]
    pub config: Config,
}

/// An application between two hosts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Application {
    pub name: String,
    /// Index into `nodes`.
    pub client: usize,
    pub server: usize,
    pub transport: Transport,
    /// The address that the client connects from; absent: its first.
    #[serde(default)]
    pub source: Option<IpAddr>,
    /// The address that the client connects to; absent: the server's first.
    #[serde(default)]
    pub destination: Option<IpAddr>,
    pub port: u16,
    pub start_ns: u64,
    /// Where this application differs from its hosts' stacks.
    #[serde(default)]
    pub client_stack: Option<Box<Stack>>,
    #[serde(default)]
    pub server_stack: Option<Box<Stack>>,
    /// The program that plays it where programs run; the simulator has its own model of it. Absent: the project's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Whose figures it counts for, with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub work: Work,
}

/// A program of others that can play an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    Iperf3,
}

/// A change at a time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    pub at_ns: u64,
    pub action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Forward,
    Backward,
    Both,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// Changes what is given of a link; the rest stays.
    Link {
        link: usize,
        direction: Direction,
        #[serde(default)]
        rate_bps: Option<u64>,
        #[serde(default)]
        delay_ns: Option<u64>,
        #[serde(default)]
        loss: Option<Loss>,
        #[serde(default)]
        queue: Option<Queue>,
        #[serde(default)]
        up: Option<bool>,
    },
    /// Takes a host's interface down or up; its host is told (unlike a link that fails further away).
    Interface {
        node: usize,
        interface: usize,
        up: bool,
    },
    /// Changes the backup flag of the subflows of an interface, announced by MP_PRIO.
    Priority {
        node: usize,
        interface: usize,
        backup: bool,
    },
    /// Gives the endpoints of an interface's addresses flag `fullmesh` or takes it away (`ip mptcp endpoint change`).
    #[serde(rename = "fullmesh")]
    FullMesh {
        node: usize,
        interface: usize,
        fullmesh: bool,
    },
    /// Takes the endpoints of an interface's addresses away, which stay, or adds them again (`ip mptcp endpoint delete`, `add`).
    Endpoint {
        node: usize,
        interface: usize,
        endpoint: bool,
    },
    /// The host's path manager forgets all of its endpoints (`ip mptcp endpoint flush`).
    Flush { node: usize },
    /// Moves the paths of a host's clients of QUIC from an interface to another one of the host (RFC 9000 section 9.2).
    Migrate {
        node: usize,
        interface: usize,
        to: usize,
    },
}

/// What is recorded.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Sampling interval.
    pub interval_ns: u64,
    /// One row for each segment sent, for time-sequence plots.
    #[serde(default)]
    pub segments: bool,
    /// One event for each scheduler decision.
    #[serde(default)]
    pub decisions: bool,
    /// Of each end that sends, what the links that bound it could carry, and why they did not.
    #[serde(default)]
    pub account: bool,
    /// A run that takes more memory is stopped.
    #[serde(default = "default_memory")]
    pub memory_bytes: u64,
    /// Of each frame, captures keep so many bytes; 0: all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub snaplen: u32,
}

fn default_memory() -> u64 {
    4_000_000_000
}

impl Default for Record {
    fn default() -> Self {
        Self {
            interval_ns: 100_000_000,
            segments: false,
            decisions: false,
            account: false,
            memory_bytes: default_memory(),
            snaplen: 0,
        }
    }
}

/// The stacks of a plan's hosts and applications.
#[derive(Debug)]
pub(crate) struct Stacks {
    nodes: Vec<Option<Box<Stack>>>,
    applications: Vec<[Option<Box<Stack>>; 2]>,
}

impl Stacks {
    /// The stack of an application's end on a node: its own, or its host's.
    pub fn of(&self, application: usize, end: usize, node: usize) -> Option<&Stack> {
        let own = self.applications[application][end].as_deref();
        own.or_else(|| self.nodes[node].as_deref())
    }
}

impl Plan {
    /// Takes the stacks out: their room is large, and they are looked at once.
    pub(crate) fn take_stacks(&mut self) -> Stacks {
        let nodes = self.nodes.iter_mut().map(|node| node.stack.take());
        let applications = self
            .applications
            .iter_mut()
            .map(|each| [each.client_stack.take(), each.server_stack.take()]);
        Stacks {
            nodes: nodes.collect(),
            applications: applications.collect(),
        }
    }
}
