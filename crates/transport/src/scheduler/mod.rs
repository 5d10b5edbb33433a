//! Packet schedulers: which path carries what next.
//!
//! A scheduler sees a [`View`], never a connection. The same scheduler serves any multipath transport.

mod balanced;
mod blest;
mod daps;
mod ecf;
mod equal;
mod kbest;
mod linux;
mod load_balancing;
pub mod lowest_rtt;
mod otias;
mod patience;
mod priority;
mod redundant;
mod rescue;
mod roundrobin;
mod smallest_delay;
mod sttf;
mod thresholds;
mod weighted_roundrobin;

use polypath_settings::{Entry, Registry};

use crate::Nanos;
use crate::path::{CaState, Path};

pub use rescue::{Rescue, Rescuer};

/// A set of paths by index, for the first 64 of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSet(pub u64);

impl PathSet {
    pub fn contains(self, path: usize) -> bool {
        path < 64 && self.0 & (1 << path) != 0
    }

    pub fn insert(&mut self, path: usize) {
        if path < 64 {
            self.0 |= 1 << path;
        }
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What the packet holds that a scheduler is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketKind {
    /// Data of the application.
    #[default]
    Data,
    /// An acknowledgement of QUIC that no data packet took along, where the host shows these to its scheduler.
    Acknowledgement,
    /// Frames of QUIC that are neither data nor acknowledgements, such as limits and connection ids, where the host shows these.
    Control,
}

impl PacketKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Acknowledgement => "acknowledgement",
            Self::Control => "control",
        }
    }
}

/// What would be sent next.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// Offset in the connection's stream.
    pub offset: u64,
    /// Bytes available from there, at most one segment's worth is sent.
    pub len: u64,
    /// Paths that carried it already; empty for new data.
    pub carried: PathSet,
    /// Sent before on a path that failed or timed out.
    pub reinjection: bool,
}

/// The first segment that the peer has not acknowledged at connection level.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub offset: u64,
    pub carried: PathSet,
    /// The path that carried it last.
    pub holder: usize,
}

/// A read-only picture of the connection at a decision.
#[derive(Debug)]
pub struct View<'a> {
    pub now: Nanos,
    pub paths: &'a [Path],
    /// What is to be placed. A packet without data is shown as one byte after what was sent; a scheduler that answers [`Decision::Wait`] leaves it to
    /// the path that it would take otherwise.
    pub kind: PacketKind,
    /// Absent when nothing can be sent: no data, or the peer's window is closed.
    pub next: Option<Next>,
    pub head: Option<Head>,
    /// Lowest offset not acknowledged at connection level, and the first never sent.
    pub una: u64,
    pub sent: u64,
    /// Bytes written by the application and never sent.
    pub unsent: u64,
    /// Bytes beyond `sent` that the peer's window admits.
    pub window: u64,
}

/// What keeps a connection from sending although a path has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The peer's receive window is full.
    ReceiveWindow,
    /// The send buffer is full and everything in it was sent.
    SendBuffer,
}

/// A scheduler's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing now; asked again at the next acknowledgement, timer or write.
    Wait,
    /// `next` goes on this path.
    Send(usize),
    /// The segment at `offset`, sent before on another path, goes on this path too.
    Repeat { path: usize, offset: u64 },
}

/// What a decision came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    pub path: usize,
    /// Offset in the connection's stream.
    pub offset: u64,
    /// None of a packet without data.
    pub bytes: u32,
    /// Never sent before on any path.
    pub new: bool,
}

/// A packet scheduler.
pub trait Scheduler: Send {
    /// Whether it hands data to paths whose windows are full, to wait in their own queues.
    fn fills_queues(&self) -> bool {
        false
    }

    /// An acknowledgement, timer or write gives occasion to send: [`Scheduler::select`] is called next.
    fn begin(&mut self) {}

    /// Called while some path has room, or always if it fills queues, until it answers [`Decision::Wait`].
    fn select(&mut self, view: &View) -> Decision;

    /// A decision was carried out. Those that the rules on small segments held back (Nagle, silly windows) never come here, so quotas and
    /// shares are counted here.
    fn carried(&mut self, _segment: Carried) {}

    /// The packet that [`Scheduler::carried`] tells of next holds so many bytes in DATAGRAM frames of QUIC, which are no part of the stream.
    fn carries_datagrams(&mut self, _path: usize, _bytes: u32) {}

    /// What it wanted repeated, up to `end`, has arrived, as QUIC knows of each part: nothing was sent on the path. Whether it moves on and is
    /// asked again; otherwise its answer counts as [`Decision::Wait`].
    fn passes_over(&mut self, _path: usize, _end: u64) -> bool {
        false
    }

    /// Whether a DATAGRAM frame of QUIC goes on every path that has room (RFC 9221 leaves the choice to the sender).
    fn repeats_datagrams(&self) -> bool {
        false
    }

    /// There is nothing to select because the connection is blocked; what is done about it is [`Scheduler::rescuer`]'s.
    fn blocked(&mut self, _cause: Blocked) {}

    /// What helps a blocked connection beside it; nothing unless it has settings for that.
    fn rescuer(&self) -> Rescuer {
        Rescuer::default()
    }
}

/// Whether a path may carry data at all (mptcp.org `mptcp_is_def_unavailable`).
pub fn usable(path: &Path) -> bool {
    path.established && !path.closing && !path.potentially_failed
}

/// Whether a path may carry data right now (mptcp.org `mptcp_is_temp_unavailable`).
pub fn ready(path: &Path) -> bool {
    !path.paced && admits(path)
}

/// The same whatever its pacer says.
fn admits(path: &Path) -> bool {
    path.state != CaState::Loss
        && !path.window_full()
        && path.queued < u64::from(path.cwnd - path.in_flight) * u64::from(path.mss)
}

/// The congestion window admits more than what waits in the path's queue.
fn has_room(path: &Path) -> bool {
    path.queued < u64::from(path.room()) * u64::from(path.mss)
}

/// Whether the path's own queue takes more (Linux `sk_stream_memory_free`).
pub(crate) fn takes_more(path: &Path) -> bool {
    path.memory < path.buffer
}

/// The usable paths that new data may take: the normal ones, or the backups where no normal one is usable.
pub fn candidates_of_class(paths: &[Path]) -> impl Iterator<Item = usize> {
    let backup = !paths.iter().any(|path| usable(path) && !path.backup);
    (0..paths.len()).filter(move |&index| usable(&paths[index]) && paths[index].backup == backup)
}

/// The candidate of lowest smoothed RTT, with room or without.
pub fn fastest(paths: &[Path]) -> Option<usize> {
    candidates_of_class(paths).min_by_key(|&index| (paths[index].srtt, index))
}

/// Every scheduler.
pub static REGISTRY: Registry<dyn Scheduler> = Registry::new(
    "scheduler",
    &[
        Entry::of::<lowest_rtt::LowestRttConfig>(),
        Entry::of::<roundrobin::RoundRobinConfig>(),
        Entry::of::<redundant::RedundantConfig>(),
        Entry::of::<weighted_roundrobin::WeightedRoundRobinConfig>(),
        Entry::of::<blest::BlestConfig>(),
        Entry::of::<ecf::EcfConfig>(),
        Entry::of::<otias::OtiasConfig>(),
        Entry::of::<daps::DapsConfig>(),
        Entry::of::<sttf::SttfConfig>(),
        Entry::of::<kbest::KBestConfig>(),
        Entry::of::<balanced::BalancedConfig>(),
        Entry::of::<equal::EqualConfig>(),
        Entry::of::<smallest_delay::SmallestDelayConfig>(),
        Entry::of::<load_balancing::LoadBalancingConfig>(),
        Entry::of::<priority::PriorityConfig>(),
        Entry::of::<linux::LinuxConfig>(),
    ],
);
