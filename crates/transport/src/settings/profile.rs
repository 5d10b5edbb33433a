//! The choices of implementations that specifications leave open.

use polypath_settings::{Parameter, choice};
use serde::Serialize;

use super::{Buffer, Config};
use crate::{MILLISECOND, Nanos};

choice! {
    /// Which implementation to follow where specifications leave room or implementations differ.
    Profile {
        /// The RFCs to the letter.
        Rfc = "rfc",
        /// The out-of-tree kernel of multipath-tcp.org, v0.9x.
        MptcpOrg = "mptcp.org",
        /// Upstream Linux.
        Linux = "linux",
    }
}

/// What a profile sets, as a registry says it.
#[derive(Debug, Serialize)]
pub struct ProfileEntry {
    pub name: Profile,
    pub description: &'static str,
    pub source: &'static str,
    /// The declared settings, with what they are in this profile as their defaults.
    pub parameters: Vec<Parameter>,
    /// All of them, as in a Plan.
    pub settings: Config,
}

const MIB: u64 = 1 << 20;

impl Profile {
    pub const ALL: [Self; 3] = [Self::Rfc, Self::MptcpOrg, Self::Linux];

    /// What a host of this profile has that says nothing else.
    pub fn config(self) -> Config {
        let base = Config {
            profile: self,
            ..Config::default()
        };
        match self {
            Self::Rfc => Config {
                congestion: "lia".into(),
                checksum: true,
                ..base
            },
            Self::MptcpOrg => Config {
                congestion: "olia".into(),
                receive_buffer: Buffer {
                    minimum: 10_240,
                    default: 87_380,
                    maximum: 16 * MIB,
                },
                checksum: true,
                rto_min_ns: 200 * MILLISECOND,
                ..base
            },
            Self::Linux => Config {
                scheduler: "linux".into(),
                path_manager: "default".into(),
                rto_min_ns: 200 * MILLISECOND,
                ..base
            },
        }
    }

    /// What a registry says of it.
    pub fn describe(self) -> ProfileEntry {
        let (description, source) = match self {
            Self::Rfc => (
                "the specifications' algorithms and retransmission timeout, with Linux's other timers and its buffers",
                "RFC 8684, RFC 6356 (lia), RFC 5681, RFC 6928, RFC 6298",
            ),
            Self::MptcpOrg => (
                "the out-of-tree kernel that the literature of 2012-2020 measured, as minitopo sets it up",
                "mptcp.org v0.9x; minitopo's defaults",
            ),
            Self::Linux => (
                "the upstream kernel; without configured endpoints it opens no further subflows by itself",
                "Linux, net/mptcp, Documentation/networking/mptcp-sysctl.rst, ip-sysctl.rst",
            ),
        };
        let settings = self.config();
        ProfileEntry {
            name: self,
            description,
            source,
            parameters: settings.described(),
            settings,
        }
    }

    /// Whether a subflow that the path manager opens from an endpoint takes only what arrives at its address's interface (Linux
    /// `__mptcp_subflow_connect`, `sk_bound_dev_if`, for endpoints with a device, as `ip mptcp endpoint add .. dev ..` makes them).
    pub(crate) fn binds_subflows(self) -> bool {
        self == Self::Linux
    }

    /// Whether RTO is srtt plus a variance of at least the minimum RTO (Linux), or the larger of minimum and RFC 6298's sum.
    pub fn rto_adds_minimum(self) -> bool {
        self != Self::Rfc
    }

    /// After how many timeouts of a SYN each doubles the next, and how many more SYNs therefore leave (Linux `tcp_syn_linear_timeouts`, since 6.5);
    /// RFC 6298 section 5.5 doubles from the first on.
    pub(crate) fn linear_syn_timeouts(self) -> u32 {
        match self {
            Self::Linux => 4,
            Self::Rfc | Self::MptcpOrg => 0,
        }
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

    /// Whether a search for the path's MTU heeds its bounds from the peer's next larger window, its first probe or a timeout on (Linux
    /// `tcp_mtup_init`, which no `tcp_sync_mss` follows), or from the beginning (RFC 4821 section 7.2).
    pub(crate) fn heeds_bounds_late(self) -> bool {
        self == Self::Linux
    }

    /// Whether no segment is longer than half of the largest window that the peer offered (Linux `tcp_bound_to_half_wnd`).
    pub(crate) fn halves_windows(self) -> bool {
        self != Self::Rfc
    }

    /// Whether a full queue of the own host is congestion and the segment stays unsent (Linux `tcp_write_xmit`), or a loss like any other.
    pub fn hears_local_drops(self) -> bool {
        self != Self::Rfc
    }

    /// Whether a socket hands over no more while a queue of its host holds enough of it (TCP small queues).
    pub fn keeps_small_queues(self) -> bool {
        self == Self::Linux
    }

    /// Whether a connection outlives its last subflow for a while, so that another may join it (Linux net.mptcp.close_timeout), or ends at once.
    pub(crate) fn outlives_subflows(self) -> bool {
        self == Self::Linux
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

    /// Whether a subflow that the peer opened takes no round-trip time from its handshake but by timestamps (Linux `tcp_check_req`, which
    /// is done with an MP_JOIN before it measures).
    pub(crate) fn leaves_joins_untimed(self) -> bool {
        self == Self::Linux
    }

    /// Whether a connection from an address whose interface is down fails at once (Linux `tcp_v4_connect`), or its SYNs are lost.
    pub fn connects_by_route(self) -> bool {
        self != Self::Rfc
    }

    /// Whether the fourth ACK of a join leaves before all data, and the host then sends nothing on its own account, as a join says nothing of the
    /// stream (Linux `check_fully_established`, `ack_update_msk`).
    pub(crate) fn confirms_joins_alone(self) -> bool {
        self == Self::Linux
    }

    /// Whether an MP_JOIN is taken only at a port where a server listens (Linux `subflow_check_req`, which a SYN reaches by its listener), so that
    /// none leads to a client; or wherever the token is known (RFC 8684 section 3.2, mptcp.org `mptcp_lookup_join`).
    pub fn joins_at_listeners(self) -> bool {
        self == Self::Linux
    }

    /// Whether a DATA_FIN leaves on every subflow at once (Linux `mptcp_check_send_data_fin`), not on one until it has to be repeated.
    pub(crate) fn finishes_everywhere(self) -> bool {
        self == Self::Linux
    }

    /// Whether a connection of which a direction was closed takes no further subflow (Linux `mptcp_is_fully_established`).
    pub(crate) fn joins_while_open(self) -> bool {
        self == Self::Linux
    }

    /// Whether a host whose SYNs with MP_CAPABLE were lost leaves that out of later connections for a while (Linux `mptcp_active_disable`).
    pub(crate) fn remembers_black_holes(self) -> bool {
        self == Self::Linux
    }

    /// How often a SYN is sent again with MP_CAPABLE, before the client goes on without it, as a box on its path may drop what has the option: RFC
    /// 8684 section 3.1 leaves the number open (Linux `syn_retrans_before_tcp_fallback`, mptcp.org `mptcp_syn_retries`).
    pub(crate) fn capable_repetitions(self) -> u32 {
        match self {
            Self::Linux => 2,
            Self::Rfc | Self::MptcpOrg => 3,
        }
    }

    /// Whether a SYN/ACK echoes the first SYN's timestamp, however often that was repeated (Linux `tcp_check_req`), or the last one's
    /// (RFC 7323 section 4.3).
    pub(crate) fn echoes_first_syn(self) -> bool {
        self != Self::Rfc
    }

    /// Whether a loss reduces what is in flight, but for what limited transmit added (FlightSize: RFC 5681 section 3.1, equation 4; RFC 6937's
    /// RecoverFS; RFC 9438 section 4.6), or the window (Linux `tcp_reno_ssthresh`, `tcp_init_cwnd_reduction`).
    pub(crate) fn reduces_flight(self) -> bool {
        self == Self::Rfc
    }

    /// Whether a recovery that begins while the window shrinks for a mark ends where that reduction does (Linux `tcp_enter_recovery`), or with
    /// all that is in flight as it begins (RFC 6675 section 5).
    pub(crate) fn recovers_within_reductions(self) -> bool {
        self != Self::Rfc
    }

    /// Whether idleness of more than a timeout leaves the initial window at once (RFC 5681 section 4.1), or halves the window for each timeout
    /// and keeps in the threshold what was learnt (RFC 2861 section 2.1, Linux `tcp_cwnd_restart`).
    pub(crate) fn restarts_at_once(self) -> bool {
        self == Self::Rfc
    }

    /// Whether an announcement and its echo take the place of the DSS on their acknowledgement (Linux
    /// `mptcp_established_options_add_addr`), or have it beside them where there is room.
    pub(crate) fn announces_alone(self) -> bool {
        self == Self::Linux
    }

    /// Whether an address is announced when the one before it was echoed, another subflow is there, or one has ended (Linux
    /// `mptcp_pm_create_subflow_or_signal_addr`), or all at once.
    pub(crate) fn announces_one_by_one(self) -> bool {
        self == Self::Linux
    }

    /// Whether a server's path manager has its first turn before the program takes the connection, so that an announcement goes before the program's
    /// data (Linux `mptcp_pm_fully_established`, whose worker wakes first).
    pub(crate) fn manages_before_programs(self) -> bool {
        self == Self::Linux
    }

    /// Whether the path manager `default` is the one of `endpoints` with nothing to do, which tells of a first address that is a backup as soon as
    /// it wakes (Linux `mptcp_mpc_endpoint_setup`).
    pub(crate) fn manages_without_tasks(self) -> bool {
        self == Self::Linux
    }

    /// Whether an address that becomes a backup tells the peer on the first of its subflows alone (Linux `mptcp_pm_mp_prio_send_ack`), so that the
    /// others stay as they are, or on each (RFC 8684 section 3.3.8).
    pub(crate) fn prioritises_first_alone(self) -> bool {
        self == Self::Linux
    }

    /// Whether subflows of an address that was withdrawn end by FINs (Linux `mptcp_pm_rm_addr_or_subflow`), and by resets where the peer withdrew it
    /// (RFC 8684 section 3.4.2). Of one that no subflow is from and that was never announced, the former tells nothing
    /// (`mptcp_pm_remove_announced`).
    pub(crate) fn finishes_withdrawn_subflows(self) -> bool {
        self == Self::Linux
    }

    /// Whether a subflow that the peer finishes while both directions of the connection are open ends at once, and what it has not delivered goes to
    /// the others (Linux `__mptcp_close_subflow`), or goes on sending (RFC 8684 section 3.3.3).
    pub(crate) fn leaves_finished_subflows(self) -> bool {
        self == Self::Linux
    }

    /// Whether a first address that takes no joins is joined once the peer announces it again (Linux `mptcp_pm_nl_add_addr_received`, which asks for
    /// the flag C of other addresses alone), or never (RFC 8684 section 3.1).
    pub(crate) fn joins_announced_first(self) -> bool {
        self == Self::Linux
    }

    /// Whether a join that is refused at its third ACK is reset by the listener, which counts no MP_TCPRST (Linux `subflow_syn_recv_sock`), and a
    /// client answers a reset in place of the fourth ACK by one of its own (`check_fully_established`).
    pub(crate) fn refuses_joins_at_listeners(self) -> bool {
        self == Self::Linux
    }

    /// Whether a reset with MP_FAIL or MP_FASTCLOSE has MP_TCPRST, too (Linux `mptcp_established_options`).
    pub(crate) fn explains_all_resets(self) -> bool {
        self == Self::Linux
    }

    /// Whether MP_FAIL that comes without a reset while there are several subflows changes nothing (Linux `mptcp_pm_mp_fail_received`).
    pub(crate) fn ignores_late_failures(self) -> bool {
        self == Self::Linux
    }

    /// Addresses of a host that a connection of Multipath TCP takes at most, of IPv4 and of IPv6 each (mptcp.org `MPTCP_MAX_ADDR`, the width of its
    /// bit fields).
    pub(crate) fn most_addresses(self) -> usize {
        match self {
            Self::MptcpOrg => 8,
            Self::Rfc | Self::Linux => usize::MAX,
        }
    }

    /// Whether a SYN/ACK that cannot be sent again for want of a route ends the handshake (Linux `reqsk_timer_handler`).
    pub(crate) fn needs_route_for_syn_ack(self) -> bool {
        self == Self::Linux
    }

    /// Whether what is sent behind an unanswered tail loss probe sets a probe timeout, at which nothing leaves and the retransmission timeout counts
    /// from the oldest segment (Linux `tcp_send_loss_probe`, `tcp_rearm_rto`), and a probe that repeats a segment takes no room in the
    /// window (`__tcp_retransmit_skb`).
    pub(crate) fn times_tails_anew(self) -> bool {
        self == Self::Linux
    }

    /// Whether a reset is taken that has the number of the peer's FIN, which others find outside of the window (Linux `tcp_reset_check`).
    pub(crate) fn takes_resets_behind_fin(self) -> bool {
        self == Self::Linux
    }

    /// Whether nothing of addresses concerns a connection any more once both ends of its stream are acknowledged (Linux `__mptcp_destroy_sock`).
    pub(crate) fn forgets_at_its_end(self) -> bool {
        self == Self::Linux
    }

    /// Whether a tail loss probe for which there is no route does not count as sent (Linux `__tcp_retransmit_skb`, `tcp_write_xmit`).
    pub(crate) fn probes_by_route(self) -> bool {
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
