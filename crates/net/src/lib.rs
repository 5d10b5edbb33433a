//! The network core: topology, routes, links with their queues and faults, clock, timers and random streams.
//!
//! It knows packets by length, flow and route, and no transport. Build a [`Topology`], make a [`Network`] of it, then alternate
//! between [`Network::inject`] and [`Network::poll`]. The network never owns the loop: `poll` runs internal hops until something
//! concerns the owner, and a real-time owner uses [`Network::step_until`] and [`Network::drain_egress`] instead.
//!
//! # Model of one direction of a link
//! A packet that enters a channel passes, in this order:
//!
//! - link state, loss model, duplication and corruption
//! - the draws for reordering and jitter
//! - the queue discipline
//! - serialisation at the rate (or a token bucket), and propagation delay
//!
//! Processing in nodes takes no time. Rates and byte limits count the IP length and the channel's overhead.
//!
//! Instead of a rate, a channel may follow a [`Trace`] of delivery opportunities, each for 1500 bytes and the overhead.
//! It may also send over the air ([`WifiConfig`]). It then takes turns with the other stations of its medium, sends
//! several packets at a time, and repeats failed ones.
//!
//! # Determinism
//! Pending events are ordered by (time, entity): scheduled changes, then channels by id, then timers by id. Every channel and
//! purpose draws from a random stream of its own ([`random::stream`]). The same topology, seed and calls give the same results
//! on every machine.
//!
//! # What it leaves out
//! Links are point to point; only Wi-Fi has a medium that links share. Routes do not react to links that fail, but their owner may cut them. Switches do not learn or
//! flood. Link layers other than Wi-Fi do not retransmit. Packets are not fragmented.

#![forbid(unsafe_code)]

mod channel;
mod cheapest;
mod config;
pub mod events;
mod ids;
mod loss;
mod network;
mod packet;
mod queue;
pub mod random;
mod routing;
mod stats;
mod topology;
mod wifi;

pub use channel::{OPPORTUNITY_BYTES, Trace, TraceError};
pub use config::{Change, ChannelConfig, ConfigError};
pub use ids::{ChannelId, InterfaceId, Nanos, NodeId, NodeKind, RouteId, TimerId};
pub use loss::{
    GilbertElliottConfig, LossConfig, LossModel, PeriodicConfig, REGISTRY as LOSS_MODELS,
    RandomConfig, TimedGilbertElliottConfig, models as loss_models,
};
pub use network::busy::busy;
pub use network::{ChangeError, Network, Occurrence, Output, Parcel};
pub use packet::{DropReason, Ecn, MAX_LEN, Observer, Packet};
pub use queue::{
    CodelConfig, DropTailConfig, Dropped, DrrConfig, DualPi2Config, FqCodelConfig, FqPieConfig,
    Marks, PieConfig, QueueConfig, QueueDiscipline, Queued, REGISTRY as QUEUE_DISCIPLINES,
    RedConfig, StepConfig, Travel, models as queue_models,
};
pub use routing::{EqualPaths, Prefix, PrefixError, RouteError};
pub use stats::{ChannelStats, Totals};
pub use topology::{Topology, TopologyError};
pub use wifi::{Phy, Rate, STANDARDS as WIFI_STANDARDS, Standard, State, WifiConfig};
