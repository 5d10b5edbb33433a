//! Congestion control: the size of each path's window.
//!
//! A controller belongs to one path and sees all paths of its connection. Loss recovery calls it at fixed points, those
//! of Linux's `struct tcp_congestion_ops`.

mod balia;
mod bbr;
mod bbr3;
mod careful_resume;
mod cdg;
mod copa;
mod coupled;
mod cubic;
mod dctcp;
mod ewtcp;
mod htcp;
mod hystart;
mod hystart_plus;
mod illinois;
mod lia;
mod linked;
mod mpcc;
mod olia;
mod pcc;
mod prague;
mod reno;
mod scalable;
mod semicoupled;
mod vegas;
mod vivace;
mod westwood;
mod wvegas;
mod xmp;

use polypath_settings::{Entry, Registry};

use crate::Nanos;
use crate::path::{CaState, Member, Path};

pub(crate) use careful_resume::CarefulResume;

pub use crate::path::{Interval, LostPacket, RateSample};

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub now: Nanos,
    /// Packets newly acknowledged, cumulatively or selectively.
    pub packets: u32,
    /// Those of them that the peer reports as marked (ECN): over TCP all of an acknowledgement that echoes a mark, as Linux counts them.
    pub marked: u32,
    /// RTT of the newest of them, if unambiguous.
    pub rtt: Option<Nanos>,
    /// Whether the window, not the application, limited the sender.
    pub cwnd_limited: bool,
    /// Next sequence number to be sent on this path, for algorithms that count rounds.
    pub next_seq: u64,
    /// Lowest unacknowledged sequence number on this path.
    pub una: u64,
}

/// How a path sends that has nothing in flight.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    pub now: Nanos,
    /// Since the last transmission.
    pub idle: Nanos,
    /// That was longer than a timeout (Linux `CA_EVENT_CWND_RESTART`).
    pub outdated: bool,
    /// Next sequence number to be sent on this path.
    pub next_seq: u64,
    /// Where the rate is measured: the application had nothing more to send (Linux `tp->app_limited`).
    pub app_limited: bool,
}

/// A congestion controller. Every call has its own path, and all of the connection as `path.paths`.
pub trait CongestionControl: Send {
    /// The path can send from now on.
    fn on_established(&mut self, _path: &mut Member) {}

    /// The slow-start threshold after a loss.
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        (path.cwnd / 2).max(2)
    }

    /// Called for every acknowledgement of new data, before the window may grow.
    fn on_sample(&mut self, _path: &mut Member, _ack: &Ack) {}

    /// Grows the window. Not called while recovery shrinks it. A controller that sets `path.state` to [`CaState::Cwr`] has the window reduced
    /// at once, unless it is being reduced (Linux `tcp_enter_cwr`).
    fn on_ack(&mut self, path: &mut Member, ack: &Ack);

    /// Whether the controller sets a rate. The sender then paces at the path's `pacing_rate`, measures the delivery rate and calls `control`
    /// in place of `on_ack`; loss recovery leaves the window to it.
    fn paces(&self) -> bool {
        false
    }

    /// Whether the window grows by what the connection's other paths do, so that all together take no more than one.
    fn couples(&self) -> bool {
        false
    }

    /// Whether it wants an echo of each packet's mark (RFC 8257 section 3.2). ECN is then asked for, and every packet carries ECT; over TCP
    /// a peer that does not agree gets Reno (Linux `TCP_CONG_NEEDS_ECN`).
    fn needs_ecn(&self) -> bool {
        false
    }

    /// Whether it is one for low latency (RFC 9331 section 4): every packet carries ECT(1), and the peer is to tell how many were marked. Over
    /// TCP that is accurate feedback (RFC 9768), and a peer that does not agree gets Reno (Linux `TCP_CONG_NEEDS_ACCECN`).
    fn low_latency(&self) -> bool {
        false
    }

    /// Whether bursts last a quarter of a millisecond at most where it sets a rate: what it goes by are delays shorter than a usual burst.
    fn paces_shortly(&self) -> bool {
        self.low_latency()
    }

    /// Whether it draws anything at random, and is seeded.
    fn draws(&self) -> bool {
        self.paces()
    }

    /// Seeds what the controller draws at random.
    fn seed(&mut self, _seed: u64) {}

    /// Whether it is told of each packet that is lost. Only a controller that sets a rate can be.
    fn weighs_losses(&self) -> bool {
        false
    }

    /// A packet is lost, as the acknowledgement shows whose `sample` goes to `control` next.
    fn on_lost(&mut self, _path: &mut Member, _lost: &LostPacket, _sample: &RateSample) {}

    /// Sets rate and window after an ACK. True: what is in flight says nothing of what the path carries, as if the application had had
    /// nothing more to send.
    fn control(&mut self, _path: &mut Member, _ack: &Ack, _sample: &RateSample) -> bool {
        false
    }

    /// Loss recovery enters `state`.
    fn on_state(&mut self, _path: &mut Member, _state: CaState) {}

    /// A timeout began an episode and its threshold, which is [`CongestionControl::ssthresh`], may be another (Linux `CA_EVENT_LOSS`).
    fn on_timeout(&mut self, _path: &mut Member) {}

    /// A reduction that no timeout began is over, and the window is its threshold unless it was undone (Linux `CA_EVENT_COMPLETE_CWR`).
    /// Not called where the controller sets a rate.
    fn on_reduced(&mut self, _path: &mut Member) {}

    /// The path sends while it has nothing in flight, after idleness or because all of it was lost (Linux `CA_EVENT_TX_START`).
    fn on_restart(&mut self, _path: &mut Member, _restart: &Restart) {}

    /// The window after a reduction that proved unnecessary; `prior` is the one before it.
    fn undo(&mut self, path: &Member, prior: u32) -> u32 {
        path.cwnd.max(prior)
    }

    /// Internal variables for recordings.
    fn observe(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// What controls the window where the peer does not agree to what a controller needs.
pub(crate) fn fallback() -> Box<dyn CongestionControl> {
    Box::new(reno::Reno::default())
}

/// Slow start (RFC 5681 section 3.1): one packet a packet acknowledged. Returns the packets left for congestion avoidance.
pub fn slow_start(path: &mut Path, acked: u32) -> u32 {
    let target = path.cwnd.saturating_add(acked).min(path.ssthresh);
    let left = acked - (target - path.cwnd);
    path.cwnd = target;
    left
}

/// Additive increase: one packet for every `per_packet` acknowledged (Linux `tcp_cong_avoid_ai`).
pub fn additive_increase(path: &mut Path, per_packet: u32, acked: u32) {
    let per_packet = per_packet.max(1);
    if path.cwnd_count >= per_packet {
        path.cwnd_count = 0;
        path.cwnd += 1;
    }
    path.cwnd_count += acked;
    if path.cwnd_count >= per_packet {
        path.cwnd += path.cwnd_count / per_packet;
        path.cwnd_count %= per_packet;
    }
}

/// Every controller.
pub static REGISTRY: Registry<dyn CongestionControl> = Registry::new(
    "congestion control",
    &[
        Entry::of::<reno::RenoConfig>(),
        Entry::of::<cubic::CubicConfig>(),
        Entry::of::<lia::LiaConfig>(),
        Entry::of::<olia::OliaConfig>(),
        Entry::of::<balia::BaliaConfig>(),
        Entry::of::<ewtcp::EwtcpConfig>(),
        Entry::of::<coupled::Coupled>(),
        Entry::of::<semicoupled::SemicoupledConfig>(),
        Entry::of::<wvegas::WeightedVegasConfig>(),
        Entry::of::<vegas::VegasConfig>(),
        Entry::of::<scalable::ScalableConfig>(),
        Entry::of::<westwood::WestwoodConfig>(),
        Entry::of::<htcp::HtcpConfig>(),
        Entry::of::<illinois::IllinoisConfig>(),
        Entry::of::<cdg::CdgConfig>(),
        Entry::of::<dctcp::DctcpConfig>(),
        Entry::of::<prague::PragueConfig>(),
        Entry::of::<bbr::Bbr>(),
        Entry::of::<bbr3::Bbr3>(),
        Entry::of::<copa::CopaConfig>(),
        Entry::of::<xmp::XmpConfig>(),
        Entry::of::<vivace::VivaceConfig>(),
        Entry::of::<mpcc::MpccConfig>(),
    ],
);
