//! One path of any transport: the view of congestion controls and schedulers, and the parts of a sender on it.

mod delivery_rate;
mod member;
mod mtu;
mod pacer;
pub mod rtt;

pub use delivery_rate::{Acknowledged, DeliveryRate, Interval, LostPacket, RateSample};
pub use member::Member;
pub use mtu::MtuDiscovery;
pub use pacer::Pacer;
pub use pacer::burst;

use crate::Nanos;

/// States of loss recovery (Linux `enum tcp_ca_state`), in order of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    #[default]
    Open,
    /// Something was selectively acknowledged, nothing is known to be lost.
    Disorder,
    /// The window shrinks because of ECN or a tail loss probe.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// Running totals for recordings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Payload bytes sent, each once.
    pub sent: u64,
    pub retransmitted: u64,
    /// Bytes sent here after another path had carried them.
    pub reinjected: u64,
    /// Payload bytes received: of TCP each once on its subflow, of QUIC those of each frame.
    pub received: u64,
    pub retransmitted_segments: u64,
}

/// No slow-start threshold yet.
pub const INFINITE_SSTHRESH: u32 = u32::MAX;

/// One path of a connection, as congestion control and scheduler see it. Windows count packets of `mss` bytes, as in Linux.
#[derive(Clone, Debug)]
pub struct Path {
    /// The handshake is done (for MP_JOIN including the fourth ACK) and the path not over.
    pub established: bool,
    /// This side has closed it: nothing new goes there (Linux `__mptcp_subflow_active`).
    pub closing: bool,
    /// The path belongs to a Multipath TCP connection, even if only one of its paths is left; not to plain TCP.
    pub multipath: bool,
    /// The host asked its peer, or the peer asked the host, to use this path as a backup.
    pub backup: bool,
    /// Out of service: a retransmission timeout fired and nothing was acknowledged since (mptcp.org), or it was silent for several
    /// periods while others were not (Linux `subflow->stale`).
    pub potentially_failed: bool,
    pub state: CaState,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Acknowledged packets counted towards the next increase.
    pub cwnd_count: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Packets that have left and are neither acknowledged nor taken for lost.
    pub in_flight: u32,
    /// Smoothed RTT; 0 before the first sample.
    pub srtt: Nanos,
    pub rttvar: Nanos,
    /// What the timeout is beyond the smoothed RTT where Linux's rule sets it (`rttvar_us`), at least the minimum timeout; 0 elsewhere.
    pub timeout_margin: Nanos,
    pub min_rtt: Nanos,
    pub latest_rtt: Nanos,
    /// Bytes given to this path and not yet sent.
    pub queued: u64,
    /// Memory that the path's queue holds, unsent and in flight, as Linux charges it (`sk_wmem_queued`), and what it may hold
    /// (`sk_sndbuf`); in bytes. Reckoned where the scheduler fills queues or the profile charges a writer for it, 0 elsewhere.
    pub memory: u64,
    pub buffer: u64,
    /// Bytes a second at which the path is paced where its controller sets a rate; where the scheduler fills queues, at which Linux
    /// would pace (`tcp_update_pacing_rate`); 0 elsewhere.
    pub pacing_rate: u64,
    /// Segments that leave together at least where Linux groups them (tcp_min_tso_segs).
    pub least_burst: u32,
    /// Its packets are paced whatever controls the window (RFC 9002 section 7.7; Linux `sk_pacing_status`).
    pub paces: bool,
    /// Pacing holds the next packet back for the moment.
    pub paced: bool,
    /// Bytes acknowledged on this path so far.
    pub acked: u64,
    /// Bytes acknowledged between the last two losses or since the last, whichever is more (OLIA's l_r).
    pub between_losses: u64,
    /// What a coupled controller keeps here for those of the other paths. LIA (variant mptcp.org): the alpha of the connection, the same on
    /// each path; 0 if it must be computed again. wVegas: the packets a second in the last round trip, as the bits of an `f64`.
    pub coupled: u64,
}

// Paths are indexed for each packet, which takes longer where their size is no power of two.
const _: () = assert!(size_of::<Path>() == 128);

impl Path {
    pub fn new(mss: u32, initial_window: u32) -> Self {
        Self {
            established: false,
            closing: false,
            multipath: false,
            backup: false,
            potentially_failed: false,
            state: CaState::Open,
            mss,
            cwnd: initial_window,
            cwnd_count: 0,
            ssthresh: INFINITE_SSTHRESH,
            in_flight: 0,
            srtt: 0,
            rttvar: 0,
            timeout_margin: 0,
            min_rtt: 0,
            latest_rtt: 0,
            queued: 0,
            memory: 0,
            buffer: 0,
            pacing_rate: 0,
            least_burst: crate::settings::Limits::default().least_burst,
            paces: false,
            paced: false,
            acked: 0,
            between_losses: 0,
            coupled: 0,
        }
    }

    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Halves the window, but not below `least`, because this path blocks the others (Raiciu et al. 2012, penalisation; slow start is spared
    /// as in Paasch et al. 2013).
    pub(crate) fn penalise(&mut self, least: u32) {
        if !self.in_slow_start() {
            self.ssthresh = (self.ssthresh / 2).max(2);
        }
        self.cwnd = (self.cwnd / 2).max(least);
    }

    /// The congestion window admits no more.
    #[inline]
    pub fn window_full(&self) -> bool {
        self.cwnd <= self.in_flight
    }

    /// Whether it is established and [`Path::room`] is not zero. What is false of most paths comes first.
    #[inline]
    pub fn takes_packet(&self) -> bool {
        !self.window_full() && self.established && !self.paced
    }

    /// Packets that the congestion window still admits; none while pacing holds them back.
    pub fn room(&self) -> u32 {
        if self.paced {
            return 0;
        }
        self.cwnd.saturating_sub(self.in_flight)
    }
}
