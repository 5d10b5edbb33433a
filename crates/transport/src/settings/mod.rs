//! The settings of a host's transport: plain data, which knows algorithms by name only.

mod profile;

use polypath_settings::{choice, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{MILLISECOND, Nanos, SECOND};

pub use profile::{Profile, ProfileEntry};

/// Minimum, default and maximum size of a buffer in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "[u64; 3]", into = "[u64; 3]")]
pub struct Buffer {
    pub minimum: u64,
    pub default: u64,
    pub maximum: u64,
}

impl From<[u64; 3]> for Buffer {
    fn from([minimum, default, maximum]: [u64; 3]) -> Self {
        Self {
            minimum,
            default,
            maximum,
        }
    }
}

impl From<Buffer> for [u64; 3] {
    fn from(of: Buffer) -> Self {
        [of.minimum, of.default, of.maximum]
    }
}

choice! {
    /// When a sender looks for the path's MTU itself (RFC 4821, Linux tcp_mtu_probing: 0, 1, 2).
    #[derive(Default)]
    MtuProbing {
        #[default]
        Off = "off",
        /// Once timeouts make it suspect that packets vanish for their length.
        BlackHole = "black-hole",
        /// From the first segment on.
        On = "on",
    }
}

/// Probes of an idle peer (RFC 9293 section 3.8.4; Linux tcp_keepalive_time, tcp_keepalive_intvl, tcp_keepalive_probes).
/// After `probes` unanswered ones it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keepalive {
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    #[serde(rename = "interval_ns")]
    pub interval: Nanos,
    pub probes: u32,
}

choice! {
    /// How the window shrinks in loss recovery.
    #[derive(Default)]
    WindowReduction {
        /// In proportion to what arrives (RFC 6937), as Linux does since version 3.2.
        #[default]
        Proportional = "prr",
        /// To the slow-start threshold at once (RFC 6675 section 5, RFC 6582 section 3.2).
        AtOnce = "classic",
    }
}

choice! {
    /// What widens the window in slow start.
    #[derive(Default)]
    SlowStart {
        /// Each packet that is acknowledged, as in Linux since version 3.13.
        #[default]
        Packets = "packets",
        /// Each acknowledgement, of however many packets (RFC 5681 section 3.1, equation 2), as in earlier kernels.
        Acks = "acks",
    }
}

choice! {
    /// Which path of Multipath QUIC carries an acknowledgement that no data packet takes along (RFC 10069 section 5.1 leaves it open).
    #[derive(Default)]
    AckPath {
        /// The one that it is about.
        #[default]
        Same = "same",
        /// The one of lowest smoothed RTT.
        Fastest = "fastest",
        /// The one that the packet scheduler chooses for it.
        Scheduler = "scheduler",
    }
}

choice! {
    /// Which path of Multipath QUIC carries control frames that no data packet takes along.
    #[derive(Default)]
    ControlPath {
        /// The one of lowest smoothed RTT, a backup only where there is no other.
        #[default]
        Fastest = "fastest",
        /// The one that the packet scheduler chooses for it.
        Scheduler = "scheduler",
    }
}

/// How often a peer of QUIC is asked to acknowledge (draft-ietf-quic-ack-frequency-14 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckFrequency {
    /// Ack-eliciting packets that are acknowledged together.
    pub packets: u32,
    /// Longest delay of an acknowledgement; absent: the peer's own.
    #[serde(rename = "max_delay_ns", default)]
    pub max_delay: Option<Nanos>,
    /// Packet numbers by which a packet may be overtaken before that is acknowledged at once; 0: however many.
    pub reordering: u32,
}

/// An algorithm by name, with parameters, as the registries know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    pub name: String,
    #[serde(default)]
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

/// What no scenario says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Segments that leave together at least, as far as they are there, where the profile groups them (tcp_min_tso_segs).
    pub least_burst: u32,
    pub rto_max: Nanos,
    /// Timeouts in a row until an established connection is given up (tcp_retries2).
    pub retries: u32,
    /// SYNs in a row until an attempt is given up (tcp_syn_retries).
    pub syn_retries: u32,
    /// Payload, options included, that is thought to pass everywhere (RFC 4821 section 7.2, tcp_base_mss).
    pub base_mss: u32,
    /// The MSS that is announced, if not that of the MTU (RTAX_ADVMSS).
    pub announced_mss: Option<u16>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            least_burst: 2,
            rto_max: 120 * SECOND,
            retries: 15,
            syn_retries: 6,
            base_mss: 1024,
            announced_mss: None,
        }
    }
}

/// Of TCP and Multipath TCP.
const TCP: &str = "tcp";
/// Of QUIC and Multipath QUIC.
const QUIC: &str = "quic";
const MULTIPATH_QUIC: &str = "mpquic";

settings! {
    "the stack";
    /// A host's transport settings, as a Plan has them too.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    Config {
        /// Whether the receive buffer grows by itself (tcp_moderate_rcvbuf).
        autotuning: bool as Boolean = true,
        /// Largest IP packet in bytes.
        mtu: u32 as Integer.at_least(576).at_most(65_535) = 1500,
        /// Initial congestion window in segments (RFC 6928).
        initial_window: u32 as Integer.at_least(1).at_most(1000) = 10,
        /// Selective acknowledgements (RFC 2018).
        sack: bool as Boolean.only(TCP) = true,
        /// Timestamps (RFC 7323 section 3).
        timestamps: bool as Boolean.only(TCP) = true,
        /// Window scaling (RFC 7323 section 2).
        window_scaling: bool as Boolean.only(TCP) = true,
        /// Explicit congestion notification (RFC 3168).
        ecn: bool as Boolean = false,
        /// Accurate ECN feedback (RFC 9768), which goes back to `ecn` where the peer does not have it.
        #[serde(default)]
        accurate_ecn: bool as Boolean.only(TCP) = false,
        /// Ask for DSS checksums (RFC 8684 section 3.3).
        checksum: bool as Boolean.only(TCP) = false,
        /// Nagle's algorithm (RFC 896); off is TCP_NODELAY.
        nagle: bool as Boolean.only(TCP) = true,
        /// Whether what is smaller than a segment waits for more (TCP_CORK, stronger than TCP_NODELAY): as long as something
        /// is in flight, then a retransmission timeout of at least 200 ms. The end of the stream takes it along, in the profile
        /// `linux` over TCP only.
        #[serde(default)]
        cork: bool as Boolean.only(TCP) = false,
        /// Least retransmission timeout (RFC 6298 section 2.4).
        rto_min_ns: Nanos as Period.only(TCP) = SECOND,
        /// Retransmission timeout before the first round-trip sample (RFC 6298 section 2.1).
        rto_initial_ns: Nanos as Period.only(TCP) = SECOND,
        /// Longest delay of an acknowledgement (RFC 1122 section 4.2.3.2).
        delayed_ack_ns: Nanos as Time.only(TCP) = 40 * MILLISECOND,
        /// How long retransmission, a closed window or silence under keep-alive may last (TCP_USER_TIMEOUT); 0: no limit.
        #[serde(default)]
        user_timeout_ns: Nanos as Time.only(TCP) = 0,
        /// Whether a sender looks for the path's MTU itself (RFC 4821, tcp_mtu_probing): `off`, `black-hole` (once timeouts
        /// make it suspect that packets vanish for their length) or `on` (from the first segment).
        #[serde(default, deserialize_with = "or_default")]
        mtu_probing: MtuProbing as Text.only(TCP) = MtuProbing::Off,
        /// How the window shrinks in loss recovery: `prr` (in proportion to what arrives, RFC 6937) or `classic` (to the
        /// threshold at once, so that nothing new leaves until as much has arrived; RFC 6675, RFC 6582).
        #[serde(default, deserialize_with = "or_default")]
        recovery: WindowReduction as Text.only(TCP) = WindowReduction::Proportional,
        /// What widens the window by a segment in slow start: each of the `packets` that are acknowledged, or each of the `acks`,
        /// of however many packets (RFC 5681 section 3.1, and Linux before version 3.13). `bbr` has a rule of its own.
        #[serde(default, deserialize_with = "or_default")]
        slow_start: SlowStart as Text.only(TCP).seldom() = SlowStart::Packets,
        /// Whether the peer may join at the address and port that a connection began with (flag C, RFC 8684 section 3.1;
        /// net.mptcp.allow_join_initial_addr_port).
        #[serde(default = "allowed")]
        allow_join_initial_addr_port: bool as Boolean.only(TCP).seldom() = true,
        /// Longest wait for the echo of an announced address before it is announced again (net.mptcp.add_addr_timeout); 0: it is
        /// announced once.
        #[serde(default = "longest_timeout")]
        add_addr_timeout_ns: Nanos as Time.only(TCP).seldom() = 120 * SECOND,
        /// How long a connection outlives its last subflow in the profile `linux`, so that another may join it
        /// (net.mptcp.close_timeout).
        #[serde(default = "time_wait")]
        close_timeout_ns: Nanos as Time.only(TCP).seldom() = 60 * SECOND,
        /// How long a client of the profile `linux` leaves out MP_CAPABLE once SYNs with it were lost and one without was answered
        /// (net.mptcp.blackhole_timeout): twice as long each time that this happens again, at most 64 times; 0: not at all.
        #[serde(default = "hour")]
        blackhole_timeout_ns: Nanos as Time.only(TCP).seldom() = 3600 * SECOND,
        /// How often a SYN is sent again with MP_CAPABLE before it is left out (net.mptcp.syn_retrans_before_tcp_fallback); from 128 on
        /// it never is. Left out: 2 in the profile `linux`, 3 in the others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        syn_retrans_before_tcp_fallback: Option<u32> as Integer.at_most(255).only(TCP).seldom() = None,
        /// After how many periods of the connection's timer without a sign of its peer a subflow takes no more data in the profile
        /// `linux` (net.mptcp.stale_loss_cnt); 0: after none.
        #[serde(default = "stale_losses")]
        stale_loss_cnt: u32 as Integer.at_most(1000).only(TCP).seldom() = 4,
        /// Whether timestamps are left out of a segment that announces an address of IPv6 with a port, which has no room beside them
        /// (net.mptcp.add_addr_v6_port_drop_ts); if not, such an address is not announced.
        #[serde(default = "allowed")]
        add_addr_v6_port_drop_ts: bool as Boolean.only(TCP).seldom() = true,
        /// Which path of Multipath QUIC carries acknowledgements that travel alone: the one that they are about, the one of
        /// lowest RTT, or the one that the packet scheduler gives them.
        #[serde(default, deserialize_with = "or_default")]
        ack_path: AckPath as Text.only(MULTIPATH_QUIC) = AckPath::Same,
        /// Which path of Multipath QUIC carries packets of control frames alone, such as limits, connection ids and a path's
        /// status: the one of lowest RTT, or the one that the packet scheduler gives them. Probes and challenges are of a path
        /// and stay on it.
        #[serde(default, deserialize_with = "or_default")]
        control_path: ControlPath as Text.only(MULTIPATH_QUIC).seldom() = ControlPath::Fastest,
        /// Whether a server of QUIC has each client return a token before it keeps anything of it (RFC 9000 section 8.1.2);
        /// that takes a round trip.
        #[serde(default)]
        retry: bool as Boolean.only(QUIC).seldom() = false,
        /// Whether a client of QUIC resumes its TLS session with a server that it has met before, and a server lets clients do
        /// so (RFC 8446 section 2.2): the certificate is not sent again. Both must want it.
        #[serde(default)]
        resumption: bool as Boolean.only(QUIC).seldom() = false,
        /// Whether a host of QUIC begins with half of the window that it last used on a path between the same addresses, once the
        /// first window has arrived and the round trip is alike (RFC 9959). Not with a congestion control that sets a rate.
        #[serde(default)]
        careful_resume: bool as Boolean.only(QUIC).seldom() = false,
        ..
        profile: Profile = Profile::Rfc,
        scheduler: Choice = "default".into(),
        path_manager: Choice = "fullmesh".into(),
        congestion: Choice = "cubic".into(),
        /// In bytes (tcp_rmem).
        receive_buffer: Buffer = Buffer { minimum: 4096, default: 131_072, maximum: 6_291_456 },
        /// In bytes (tcp_wmem).
        send_buffer: Buffer = Buffer { minimum: 4096, default: 16_384, maximum: 4_194_304 },
        /// Absent: no keep-alive, as sockets are by default.
        #[serde(default)]
        keepalive: Option<Keepalive> = None,
        /// Ids of the paths of Multipath QUIC that this host sends on while one of them works; none: all.
        #[serde(default)]
        send_paths: Vec<u64> = Vec::new(),
        /// QUIC offers its peer to acknowledge less often, and asks the same of a peer that offers it; absent: neither.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ack_frequency: Option<AckFrequency> = None,
        #[serde(skip)]
        limits: Limits = Limits::default(),
        /// Use several paths when the peer does too; a Plan says it of each application.
        #[serde(skip)]
        multipath: bool = true,
    }
}

impl Config {
    /// How often a SYN is sent again with MP_CAPABLE, before the client goes on without it.
    pub(crate) fn capable_repetitions(&self) -> u32 {
        let asked = self.syn_retrans_before_tcp_fallback;
        asked.unwrap_or_else(|| self.profile.capable_repetitions())
    }
}

fn allowed() -> bool {
    true
}

/// Linux `TCP_RTO_MAX`.
fn longest_timeout() -> Nanos {
    120 * SECOND
}

/// Linux `TCP_TIMEWAIT_LEN`.
fn time_wait() -> Nanos {
    60 * SECOND
}

fn hour() -> Nanos {
    3600 * SECOND
}

fn stale_losses() -> u32 {
    4
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
