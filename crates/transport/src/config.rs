//! How a host's transport is set.

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::congestion::{self, CongestionControl};
use crate::path_manager::{self, PathManager};
use crate::registry::RegistryError;
use crate::scheduler::{self, Rescuer, Scheduler};
use crate::{MILLISECOND, Nanos, SECOND};

/// Which implementation to follow where specifications leave room or implementations differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The RFCs to the letter.
    Rfc,
    /// The out-of-tree kernel of multipath-tcp.org, v0.9x.
    MptcpOrg,
    /// Upstream Linux.
    Linux,
}

impl Profile {
    pub const NAMES: [(&'static str, Self); 3] = [
        ("rfc", Self::Rfc),
        ("mptcp.org", Self::MptcpOrg),
        ("linux", Self::Linux),
    ];

    pub fn by_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, profile)| *profile)
    }

    /// Whether a subflow of the path manager's takes only what arrives at its address's interface (Linux `__mptcp_subflow_connect`,
    /// `sk_bound_dev_if`, for endpoints with a device, as `ip mptcp endpoint add .. dev ..` makes them).
    pub(crate) fn binds_subflows(self) -> bool {
        self == Self::Linux
    }

    /// Whether RTO is srtt plus a variance of at least the minimum RTO (Linux), or the larger of minimum and RFC 6298's sum.
    pub fn rto_adds_minimum(self) -> bool {
        self != Self::Rfc
    }

    /// How long a peer may hold back the acknowledgement of a single segment, as far as a tail loss probe allows for it: 200 ms where RFC 8985
    /// section 7.2 leaves the budget to the sender, the least timeout in Linux (`tcp_schedule_loss_probe`).
    pub(crate) fn ack_delay_budget(self, rto_min: Nanos) -> Nanos {
        if self == Self::Rfc {
            200 * MILLISECOND
        } else {
            rto_min
        }
    }

    /// Whether a probe timeout that new data sets is limited by the time since the oldest segment in flight left (Linux `tcp_rto_delta_us`), or
    /// since the last acknowledgement (RFC 8985 section 7.2 with RFC 6298 section 5.3).
    pub(crate) fn times_oldest_segment(self) -> bool {
        self != Self::Rfc
    }

    /// Whether the only subflow ever may fall back in mid-stream, as long as it carried nothing twice (Linux `allow_infinite_fallback`), at the
    /// price that what a peer repeats at connection level, and no option marks, is taken for new data. RFC 8684 section 3.7 has such a subflow
    /// reset.
    pub(crate) fn falls_back_late(self) -> bool {
        self == Self::Linux
    }

    /// Whether a subflow's timeout puts it out of service and hands its data to the others (mptcp.org, RFC 8684 section 3.3.6), or the
    /// connection has a timer of its own (upstream Linux).
    pub fn reinjects_on_timeout(self) -> bool {
        self != Self::Linux
    }

    /// Whether a full queue of the own host is congestion and the segment stays unsent (Linux `tcp_write_xmit`), or a loss like any other.
    pub fn hears_local_drops(self) -> bool {
        self != Self::Rfc
    }

    /// Whether a socket hands over no more while a queue of its host holds enough of it (TCP small queues).
    pub fn keeps_small_queues(self) -> bool {
        self == Self::Linux
    }

    /// How long a connection outlives its last subflow, so that another may join it: upstream Linux waits (net.mptcp.close_timeout), the
    /// others end it at once.
    pub(crate) fn close_timeout(self) -> Nanos {
        if self == Self::Linux { 60 * SECOND } else { 0 }
    }

    /// Repetitions of a SYN or SYN/ACK that leave the initial window as it is: none by RFC 5681 section 3.1, one in Linux since the initial
    /// timeout is a second (`tcp_init_transfer`).
    pub(crate) fn forgiven_syns(self) -> u32 {
        u32::from(self == Self::Linux)
    }

    /// Whether each subflow has a send buffer, and the connection the sum of them (upstream Linux), or the connection one buffer.
    pub fn buffers_by_subflow(self) -> bool {
        self == Self::Linux
    }

    /// Whether a subflow in TIME-WAIT acknowledges without options of Multipath TCP (Linux `tcp_time_wait`).
    pub(crate) fn forgets_subflows(self) -> bool {
        self == Self::Linux
    }

    /// Whether a plain TCP sender follows a right edge of the peer's window that moves left, and sends less than a segment of what waits only
    /// when the timer of window probes says so (Linux `tcp_may_update_window`, `tcp_snd_wnd_test`, `tcp_write_wakeup`).
    pub(crate) fn follows_windows(self) -> bool {
        self == Self::Linux
    }

    /// Whether, without SACK, a packet that a duplicate ACK stood for is not counted again once it is acknowledged (Linux
    /// `tcp_remove_reno_sacks`).
    pub(crate) fn counts_duplicates_once(self) -> bool {
        self == Self::Linux
    }

    /// Whether the acknowledgement that reports a mark is the first by which the window shrinks (Linux `tcp_fastretrans_alert`,
    /// `tcp_try_to_open`), or the one after it.
    pub(crate) fn reduces_at_the_mark(self) -> bool {
        self == Self::Linux
    }

    /// Whether data ACKs and data sequence numbers take eight bytes.
    pub fn long_dsn(self) -> bool {
        self == Self::Linux
    }

    /// The part of the receive buffer that is offered as window, numerator over 256 (Linux tcp_adv_win_scale 1, scaling_ratio 128).
    pub fn window_share(self) -> u64 {
        if self == Self::Rfc { 256 } else { 128 }
    }

    /// Whether that part follows what segments cost, and windows and round trips are taken as upstream Linux takes them today
    /// (`scaling_ratio`, `tcp_measure_rcv_mss`, `tcp_rcvbuf_grow`).
    pub fn measures_segments(self) -> bool {
        self == Self::Linux
    }

    /// Whether a writer that filled the buffer waits until a third of it is free (Linux `sk_stream_write_space`), and TCP charges what
    /// the data costs in memory.
    pub fn writes_in_bursts(self) -> bool {
        self == Self::Linux
    }

    /// Whether packets that arrive at one instant are all taken in before readers and writers run, and before a subflow sends what another
    /// one's packet gives it (Linux softirq, `MPTCP_DELEGATE_SEND`).
    pub fn processes_run_last(self) -> bool {
        self == Self::Linux
    }

    /// Whether out-of-order data shrinks the window although it lies inside it (Linux `tcp_space`).
    pub fn out_of_order_counts(self) -> bool {
        self != Self::Rfc
    }
}

/// Minimum, default and maximum size of a buffer in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub minimum: u64,
    pub default: u64,
    pub maximum: u64,
}

/// When a sender looks for the path's MTU itself (RFC 4821, Linux tcp_mtu_probing: 0, 1, 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuProbing {
    #[default]
    Off,
    /// Once timeouts make it suspect that packets vanish for their length.
    BlackHole,
    /// From the first segment on.
    On,
}

impl MtuProbing {
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "off" => Some(Self::Off),
            "black-hole" => Some(Self::BlackHole),
            "on" => Some(Self::On),
            _ => None,
        }
    }
}

/// Probes of an idle peer (RFC 9293 section 3.8.4): after how long, then how often, and how many unanswered mean that it is gone
/// (Linux tcp_keepalive_time, tcp_keepalive_intvl, tcp_keepalive_probes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    pub time: Nanos,
    pub interval: Nanos,
    pub probes: u32,
}

/// How the window shrinks in loss recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowReduction {
    /// In proportion to what arrives (RFC 6937), as Linux does since version 3.2.
    #[default]
    Proportional,
    /// To the slow-start threshold at once (RFC 6675 section 5, RFC 6582 section 3.2).
    AtOnce,
}

impl WindowReduction {
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "prr" => Some(Self::Proportional),
            "classic" => Some(Self::AtOnce),
            _ => None,
        }
    }
}

/// Which path of Multipath QUIC carries an acknowledgement that no data packet takes along (RFC 10069 section 5.1 leaves it open).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckPath {
    /// The one that it is about.
    #[default]
    Same,
    /// The one of lowest smoothed RTT.
    Fastest,
    /// The one that the packet scheduler chooses for it.
    Scheduler,
}

impl AckPath {
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "same" => Some(Self::Same),
            "fastest" => Some(Self::Fastest),
            "scheduler" => Some(Self::Scheduler),
            _ => None,
        }
    }
}

/// Which path of Multipath QUIC carries control frames that no data packet takes along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlPath {
    /// The one of lowest smoothed RTT, a backup only where there is no other.
    #[default]
    Fastest,
    /// The one that the packet scheduler chooses for it.
    Scheduler,
}

impl ControlPath {
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "fastest" => Some(Self::Fastest),
            "scheduler" => Some(Self::Scheduler),
            _ => None,
        }
    }
}

/// How often a peer of QUIC is asked to acknowledge (draft-ietf-quic-ack-frequency-14 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Ack-eliciting packets that are acknowledged together.
    pub packets: u32,
    /// Longest delay of an acknowledgement; absent: the peer's own.
    pub max_delay: Option<Nanos>,
    /// Packet numbers by which a packet may be overtaken before that is acknowledged at once; 0: however many.
    pub reordering: u32,
}

/// An algorithm by name, with parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub name: String,
    pub parameters: Map<String, Value>,
}

impl From<&str> for Choice {
    fn from(name: &str) -> Self {
        Self {
            name: name.into(),
            parameters: Map::new(),
        }
    }
}

/// Makes algorithms that are written elsewhere, for example in Python.
pub trait Foreign: Debug + Send + Sync {
    /// The scheduler chosen; nothing where the name is none of its own.
    fn scheduler(&self, choice: &Choice) -> Option<Result<Box<dyn Scheduler>, RegistryError>>;

    /// The path manager chosen; nothing where the name is none of its own.
    fn path_manager(&self, choice: &Choice) -> Option<Result<Box<dyn PathManager>, RegistryError>>;
}

/// tcp_min_tso_segs, as it is by default.
pub(crate) const LEAST_BURST: u32 = 2;

/// A host's transport settings.
#[derive(Clone, Debug)]
pub struct Config {
    pub profile: Profile,
    pub scheduler: Choice,
    pub path_manager: Choice,
    pub congestion: Choice,
    pub receive_buffer: Buffer,
    pub send_buffer: Buffer,
    /// The receive buffer grows with the rate at which the application reads (dynamic right-sizing).
    pub autotuning: bool,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Initial window in packets (RFC 6928).
    pub initial_window: u32,
    pub sack: bool,
    pub timestamps: bool,
    pub window_scaling: bool,
    pub ecn: bool,
    /// Ask for DSS checksums.
    pub checksum: bool,
    pub nagle: bool,
    /// Segments that leave together at least, as far as they are there, where the profile groups them (tcp_min_tso_segs).
    pub least_burst: u32,
    /// What is smaller than a segment waits for more to be written, until nothing is in flight and a timeout has passed (TCP_CORK).
    pub cork: bool,
    pub rto_min: Nanos,
    pub rto_initial: Nanos,
    pub rto_max: Nanos,
    /// Longest delay of an ACK.
    pub delayed_ack: Nanos,
    /// Timeouts in a row until an established connection is given up (tcp_retries2).
    pub retries: u32,
    /// SYNs in a row until an attempt is given up (tcp_syn_retries).
    pub syn_retries: u32,
    /// Absent: no keep-alive, as sockets are by default.
    pub keepalive: Option<Keepalive>,
    /// How long data may stay unacknowledged after its first retransmission, a window closed or keep-alive unanswered until the peer is
    /// given up (Linux TCP_USER_TIMEOUT, of RFC 5482's kind); 0: as long as the retries take.
    pub user_timeout: Nanos,
    /// Whether the sender looks for the path's MTU itself.
    pub mtu_probing: MtuProbing,
    pub window_reduction: WindowReduction,
    pub ack_path: AckPath,
    /// As `ack_path`, of control frames.
    pub control_path: ControlPath,
    /// Ids of the paths of Multipath QUIC that this host sends on while one of them works; none: all.
    pub send_paths: Vec<u64>,
    /// Whether a server of QUIC has each client return a token first (RFC 9000 section 8.1.2).
    pub retry: bool,
    /// QUIC offers its peer to acknowledge less often, and asks the same of a peer that offers it; absent: neither.
    pub ack_frequency: Option<AckFrequency>,
    /// Use several paths when the peer does too.
    pub mptcp: bool,
    /// Asked for a scheduler or path manager before the registries.
    pub foreign: Option<Arc<dyn Foreign>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            profile: Profile::Rfc,
            scheduler: "default".into(),
            path_manager: "fullmesh".into(),
            congestion: "cubic".into(),
            receive_buffer: Buffer {
                minimum: 4096,
                default: 131_072,
                maximum: 6_291_456,
            },
            send_buffer: Buffer {
                minimum: 4096,
                default: 16_384,
                maximum: 4_194_304,
            },
            autotuning: true,
            mtu: 1500,
            initial_window: 10,
            sack: true,
            timestamps: true,
            window_scaling: true,
            ecn: false,
            checksum: false,
            nagle: true,
            least_burst: LEAST_BURST,
            cork: false,
            rto_min: SECOND,
            rto_initial: SECOND,
            rto_max: 120 * SECOND,
            delayed_ack: 40 * MILLISECOND,
            retries: 15,
            syn_retries: 6,
            keepalive: None,
            user_timeout: 0,
            mtu_probing: MtuProbing::Off,
            window_reduction: WindowReduction::Proportional,
            ack_path: AckPath::Same,
            control_path: ControlPath::Fastest,
            send_paths: Vec::new(),
            retry: false,
            ack_frequency: None,
            mptcp: true,
            foreign: None,
        }
    }
}

impl Config {
    pub fn make_congestion(&self) -> Result<Box<dyn CongestionControl>, RegistryError> {
        congestion::REGISTRY.make(&self.congestion.name, &self.congestion.parameters)
    }

    /// Whether subflows take more than their windows admit: with a scheduler that fills queues, and in upstream MPTCP with any, since there a
    /// data fragment goes to a subflow as a whole.
    pub(crate) fn fills_queues(&self, scheduler: &dyn Scheduler) -> bool {
        scheduler.fills_queues() || (self.mptcp && self.profile.buffers_by_subflow())
    }

    pub fn make_scheduler(&self) -> Result<Box<dyn Scheduler>, RegistryError> {
        let elsewhere = self.foreign.as_ref();
        elsewhere
            .and_then(|foreign| foreign.scheduler(&self.scheduler))
            .unwrap_or_else(|| {
                scheduler::REGISTRY.make(&self.scheduler.name, &self.scheduler.parameters)
            })
    }

    /// What helps a blocked connection: as the scheduler's parameters say, nothing beside one that is written elsewhere.
    pub fn make_rescuer(&self) -> Result<Rescuer, RegistryError> {
        let elsewhere = self.foreign.as_ref();
        if elsewhere.is_some_and(|foreign| foreign.scheduler(&self.scheduler).is_some()) {
            return Ok(Rescuer::default());
        }
        scheduler::rescuer(&self.scheduler.name, &self.scheduler.parameters)
    }

    pub fn make_path_manager(&self) -> Result<Box<dyn PathManager>, RegistryError> {
        let elsewhere = self.foreign.as_ref();
        elsewhere
            .and_then(|foreign| foreign.path_manager(&self.path_manager))
            .unwrap_or_else(|| {
                path_manager::REGISTRY.make(&self.path_manager.name, &self.path_manager.parameters)
            })
    }

    /// Checks that every algorithm and parameter exists.
    pub fn check(&self) -> Result<(), RegistryError> {
        self.make_congestion()?;
        self.make_scheduler()?;
        self.make_path_manager()?;
        Ok(())
    }
}
