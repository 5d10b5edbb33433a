//! One TCP connection, or one subflow of an MPTCP connection (RFC 9293).
//!
//! A socket keeps the subflow's sequence space: data in flight, lost data, out-of-order data, its timers and its
//! congestion control. The layer above decides which data it carries.

pub(crate) mod context;
mod cork;
mod delayed_ack;
mod ecn;
mod flight;
mod group;
mod half_open;
mod handshake;
mod holes;
mod host_queue;
mod info;
mod keepalive;
mod mss;
mod mtu_probing;
mod once;
mod paced;
mod path_mtu;
mod peer_window;
mod receiver;
mod recovery;
mod sender;
mod timer;
mod window_usage;

use std::collections::VecDeque;

use polypath_wire::tcp::{Flags, Payload, Segment};

use crate::congestion::CongestionControl;
use crate::linux::receive_window::SocketWindow;
use crate::linux::send_memory;
use crate::linux::small_queue::HostQueue;
use crate::linux::write_queue::WriteQueue;
use crate::path::rtt::RttEstimator;
use crate::path::{MtuDiscovery, Path};
use crate::seq::{unwrap, wrap};
use crate::settings::{Config, WindowReduction};
use crate::tcp::context::{Context, Options, Shared};
use crate::{MILLISECOND, Mib, NEVER, Nanos, Purpose};

use delayed_ack::AckPolicy;
use ecn::Ecn;
pub(crate) use group::Front;
pub(crate) use half_open::HalfOpen;
use holes::Holes;
pub use info::{Info, Sequence};
use keepalive::Probes;
use mss::Mss;
pub(crate) use mss::most_of_window;
pub(crate) use mtu_probing::Advice;
use paced::Paced;
use peer_window::PeerWindow;
pub(crate) use receiver::Arrived;
pub(crate) use recovery::probes_tail;
use recovery::{Rack, Recovery, Refused};
use sender::Sent;
pub(crate) use sender::{Chunk, Kind, Push};
pub(crate) use timer::Fired;
use timer::Timers;
use window_usage::WindowUsage;

/// Connection states (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Closed,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::SynSent => "syn-sent",
            Self::SynReceived => "syn-received",
            Self::Established => "established",
            Self::FinWait1 => "fin-wait-1",
            Self::FinWait2 => "fin-wait-2",
            Self::CloseWait => "close-wait",
            Self::Closing => "closing",
            Self::LastAck => "last-ack",
            Self::TimeWait => "time-wait",
        }
    }

    /// Whether both SYNs were exchanged and acknowledged.
    pub fn synchronised(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

    /// Whether the peer may still send data.
    pub fn receives(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}

/// What was negotiated in the SYNs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Negotiated {
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    /// The mark of each packet is echoed, and every segment is sent as ECN-capable transport, since this end's controller needs it.
    pub echoes_each: bool,
    /// Segments are sent as ECT(1), for the same reason.
    pub low_latency: bool,
    /// Shift of the windows that the peer sends and of ours.
    pub send_shift: u8,
    pub receive_shift: u8,
}

/// What is asked for beside what every socket tells its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reckoning {
    Nothing,
    /// The rate at which segments leave, by which they are grouped.
    Rate,
    /// And what its queue costs, by which a scheduler fills it.
    RateAndMemory,
}

pub use crate::path::Totals;

pub struct Socket {
    pub(crate) state: State,
    pub(crate) negotiated: Negotiated,
    pub(crate) totals: Totals,

    mss: Mss,

    // Sending. Sequence numbers count from the initial one: 0 is the SYN, 1 the first byte.
    iss: u32,
    una: u64,
    next: u64,
    window: PeerWindow,
    sent: VecDeque<Sent>,
    unsent: VecDeque<Chunk>,
    unsent_bytes: u64,
    /// Repetitions of the SYN or SYN/ACK.
    syn_repeats: u32,
    /// What waits and is in flight of a subflow, as upstream Linux keeps it.
    buffers: Option<Box<WriteQueue>>,
    /// What a queue of the own host holds, where it keeps packets on the socket's account.
    host_queue: Option<Box<HostQueue>>,
    /// What a scheduler may fill of a queue that is not kept so, at most.
    largest_queue: u64,
    fin: FinState,
    /// Its FIN was acknowledged before the peer's came: upstream, what is left of it knows nothing of the layer above (`tcp_time_wait`).
    reduced: bool,
    refused: Refused,
    /// End of the last segment smaller than the MSS, for Nagle's rule (Minshall's variant).
    last_small: u64,
    last_sent_at: Nanos,
    /// When the peer last acknowledged anything.
    heard_at: Nanos,
    keepalive: Probes,
    /// Before this, segments that do not fit go unanswered.
    answer_after: Nanos,
    recovery: Recovery,
    window_reduction: WindowReduction,
    reduces_flight: bool,
    rack: Rack,
    pub(crate) rtt: RttEstimator,
    congestion: Box<dyn CongestionControl>,
    /// Rate samples and pacing, for a controller that sets a rate.
    paced: Option<Box<Paced>>,
    reckoning: Reckoning,
    /// The search for the path's MTU, where it is asked for, or what the path takes where its route was replaced.
    search: Option<Box<MtuDiscovery>>,
    usage: WindowUsage,
    ecn: Ecn,

    // Receiving.
    irs: u32,
    received: u64,
    /// Absent while everything came in order so far.
    holes: Option<Box<Holes>>,
    fin_at: Option<u64>,
    timestamp_recent: u32,
    /// The window as upstream Linux keeps it for each socket.
    pub(crate) receive_window: Option<Box<SocketWindow>>,
    ack: AckPolicy,
    timers: Timers,
}

/// How far closing has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinState {
    None,
    /// To be sent after the data.
    Queued,
    /// Sent with this sequence number.
    Sent(u64),
}

/// The clock of the timestamp option: milliseconds (RFC 7323 section 5.4). One is added so that 0 means none.
pub(crate) fn timestamp(now: Nanos) -> u32 {
    (now / MILLISECOND) as u32 + 1
}

/// How long ago a timestamp was sent that the peer echoes; absent: it cannot be ours, or is none. Never less than a tick
/// (`tcp_rtt_tsopt_us`).
pub(crate) fn age(now: Nanos, echo: u32) -> Option<Nanos> {
    let ticks = timestamp(now).wrapping_sub(echo);
    (echo != 0 && ticks < 1 << 20).then(|| u64::from(ticks.max(1)) * MILLISECOND)
}

/// TCP header without options.
const HEADER: u32 = 20;
const TIMESTAMP_OPTION: u32 = 12;

/// A smaller MSS in a SYN is taken for this one, so that the options of every segment fit (Linux `TCP_MIN_MSS`).
const SMALLEST_MSS: u16 = 88;

/// The MSS that a host with this MTU announces (RFC 9293 section 3.7.1).
pub(crate) fn announced_mss(mtu: u32, ipv6: bool) -> u16 {
    let ip = if ipv6 { 40 } else { 20 };
    (mtu.saturating_sub(ip + HEADER)).clamp(SMALLEST_MSS.into(), 65_495) as u16
}

/// The answer to a segment for which there is no connection: a reset, but none to a reset (RFC 9293 section 3.10.7.1).
pub fn refusal(segment: &Segment) -> Option<Segment> {
    if segment.flags.contains(Flags::RST) {
        return None;
    }
    Some(if segment.flags.contains(Flags::ACK) {
        Segment {
            flags: Flags::RST,
            seq: segment.ack,
            ..Segment::default()
        }
    } else {
        Segment {
            flags: Flags::RST | Flags::ACK,
            ack: segment.seq.wrapping_add(segment.seq_len()),
            ..Segment::default()
        }
    })
}

impl Socket {
    pub(crate) fn new(
        config: &Config,
        announced: u16,
        iss: u32,
        mut congestion: Box<dyn CongestionControl>,
        reckoning: Reckoning,
    ) -> Self {
        if congestion.draws() {
            congestion.seed(iss.into());
        }
        let paced = (congestion.paces()).then(|| Box::new(Paced::new(&*congestion)));
        let echoes_each = congestion.needs_ecn();
        let low_latency = congestion.low_latency();
        let upstream = config.multipath && config.profile.buffers_by_subflow();
        let limits = config.send_buffer;
        Self {
            reckoning,
            search: None,
            state: State::Closed,
            negotiated: Negotiated {
                sack: config.sack,
                timestamps: config.timestamps,
                ecn: config.ecn || config.accurate_ecn || echoes_each || low_latency,
                echoes_each,
                low_latency,
                send_shift: 0,
                receive_shift: 0,
            },
            totals: Totals::default(),
            mss: Mss::new(announced),
            iss,
            una: 0,
            next: 0,
            window: PeerWindow::default(),
            sent: VecDeque::new(),
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            syn_repeats: 0,
            buffers: upstream.then(Box::default),
            host_queue: None,
            largest_queue: if upstream {
                0
            } else {
                limits.maximum.max(limits.default)
            },
            fin: FinState::None,
            reduced: false,
            refused: Refused::default(),
            last_small: 0,
            last_sent_at: 0,
            heard_at: 0,
            keepalive: Probes::default(),
            answer_after: 0,
            recovery: Recovery::default(),
            window_reduction: config.recovery,
            reduces_flight: config.profile.reduces_flight(),
            rack: Rack::default(),
            rtt: RttEstimator::default(),
            congestion,
            paced,
            usage: WindowUsage::default(),
            ecn: Ecn::new(config.accurate_ecn || low_latency),
            irs: 0,
            received: 0,
            holes: None,
            fin_at: None,
            timestamp_recent: 0,
            receive_window: config.profile.measures_segments().then(|| {
                let share = config.profile.window_share();
                Box::new(SocketWindow::new(config.receive_buffer.default, share))
            }),
            ack: AckPolicy::default(),
            timers: Timers::default(),
        }
    }

    /// Payload of a segment that has no options but those of TCP itself (`mss_cache`).
    pub(super) fn plain_mss(&self) -> u32 {
        u32::from(self.mss.usable()) - self.fixed_options()
    }

    /// Whether the segment may belong to this connection in its present state, and what to do with one that may not (RFC 9293
    /// section 3.10.7.4, first and fifth steps, and RFC 7323 section 5.3).
    #[inline(always)]
    pub(crate) fn acceptable(&mut self, cx: &mut Context<impl Options>, segment: &Segment) -> bool {
        if segment.flags.intersects(Flags::RST | Flags::SYN) {
            return self.acceptable_control(cx, segment);
        }
        if !segment.flags.contains(Flags::ACK) || !self.acceptable_numbers(cx, segment) {
            return false;
        }
        let seq = unwrap(self.irs, segment.seq, self.received);
        if let Some((value, _)) = segment.timestamps.filter(|_| self.negotiated.timestamps) {
            let older = value.wrapping_sub(self.timestamp_recent) as i32;
            if older < -1 && segment.seq_len() > 0 {
                cx.shared.counters.increment(Mib::TcpExtPAWSEstab);
                self.ack.immediately();
                self.flush_ack(cx);
                return false;
            }
            if older >= 0 && seq <= self.ack.acknowledged() {
                self.timestamp_recent = value;
            }
        }
        true
    }

    /// A bare segment of this socket: sequence number, ACK, timestamps, ECN echo.
    #[inline(always)]
    fn header(&mut self, now: Nanos, seq: u64) -> Segment {
        let mut segment = Segment {
            seq: wrap(self.iss, seq),
            ack: wrap(self.irs, self.received),
            flags: Flags::ACK,
            ..Segment::default()
        };
        if self.negotiated.timestamps {
            segment.timestamps = Some((timestamp(now), self.timestamp_recent));
        }
        if self.ecn.tells {
            self.ecn.tell(&mut segment.flags);
        }
        segment
    }

    #[inline(always)]
    fn stamp(&mut self, cx: &mut Context<impl Options>, segment: &mut Segment) {
        if self.ack.reader_sends() {
            cx.shared.receive.reader_takes();
        }
        let window = (cx.shared.receive).window(self.receive_window.as_deref_mut(), self.received)
            >> self.negotiated.receive_shift;
        segment.window = window.min(65_535) as u16;
        if cx.shared.receive.short() {
            self.ack.end_quick();
        }
        self.ack.sent(self.received);
    }

    /// Sends an ACK without data.
    pub(crate) fn send_ack(&mut self, cx: &mut Context<impl Options>) {
        if matches!(
            self.state,
            State::Closed | State::SynSent | State::SynReceived | State::TimeWait
        ) {
            return self.send_ack_in_time_wait(cx);
        }
        self.acknowledge(cx, true);
    }

    /// Where nothing is left of it but what acknowledges a FIN, without options of the layer above.
    #[cold]
    fn send_ack_in_time_wait(&mut self, cx: &mut Context<impl Options>) {
        if self.state == State::TimeWait {
            let forgets = self.reduced && cx.shared.config.profile.forgets_subflows();
            self.acknowledge(cx, !forgets);
        }
    }

    #[inline(always)]
    fn acknowledge(&mut self, cx: &mut Context<impl Options>, with_options: bool) {
        let header = self.header(cx.shared.now, self.next);
        let mut transmit = cx.transmit(header, Purpose::Control);
        let segment = &mut transmit.segment;
        self.stamp(cx, segment);
        if with_options {
            let space = cx.options.add_to_ack(cx.shared, segment);
            self.add_sack(&mut segment.sack, space);
        }
        cx.shared.counters.increment(Mib::TcpOutSegs);
        cx.shared.out.push(transmit);
    }

    /// Sends an ACK that repeats an old sequence number, to draw an answer (RFC 9293 sections 3.8.4 and 3.8.6.1), and counts it as `kind`.
    pub(crate) fn send_probe(&mut self, cx: &mut Context<impl Options>, kind: Mib) {
        let mut segment = self.header(cx.shared.now, self.una.saturating_sub(1));
        self.stamp(cx, &mut segment);
        cx.options.add_to_ack(cx.shared, &mut segment);
        cx.shared.counters.increment(kind);
        cx.shared.counters.increment(Mib::TcpOutSegs);
        cx.emit(segment);
    }

    /// Resets the peer.
    pub(crate) fn send_reset(&mut self, cx: &mut Context<impl Options>) {
        let mut segment = self.header(cx.shared.now, self.next);
        segment.flags = Flags::RST | Flags::ACK;
        cx.options.add_to_ack(cx.shared, &mut segment);
        segment.dss = None;
        cx.shared.counters.increment(Mib::TcpOutRsts);
        cx.emit(segment);
    }

    /// Resets a peer that still sends to a closed socket.
    pub(crate) fn refuse(&self, cx: &mut Context<impl Options>, segment: &Segment) {
        if let Some(reset) = refusal(segment) {
            cx.shared.counters.increment(Mib::TcpOutRsts);
            cx.emit(reset);
        }
    }

    /// Forgets everything: closed by reset, timeout or the end of TIME-WAIT.
    pub(crate) fn abandon(&mut self, path: &mut Path) {
        self.state = State::Closed;
        self.sent.clear();
        self.unsent.clear();
        self.unsent_bytes = 0;
        self.buffers = None;
        self.refused = Refused::default();
        self.holes = None;
        self.recovery = Recovery::default();
        self.timers = Timers::default();
        self.ack.stop();
        path.established = false;
        path.buffer = 0;
        self.publish(path);
    }

    /// Brings the state that schedulers and controllers see up to date.
    pub(crate) fn publish(&self, path: &mut Path) {
        path.in_flight = self.in_flight();
        path.queued = self.unsent_bytes;
        path.srtt = self.rtt.srtt();
        path.rttvar = self.rtt.deviation();
        path.min_rtt = self.rtt.min();
        path.acked = self.una.saturating_sub(1);
        path.state = self.recovery.state;
        if self.reckoning != Reckoning::Nothing {
            self.publish_reckoning(path);
        }
    }

    /// The same after segments have left, which changes no more than this.
    #[inline]
    pub(crate) fn publish_sent(&self, path: &mut Path) {
        path.in_flight = self.in_flight();
        path.queued = self.unsent_bytes;
        if self.reckoning != Reckoning::Nothing {
            self.publish_reckoning(path);
        }
    }

    /// How fast the queue drains and what it costs, in Linux's reckoning.
    fn publish_reckoning(&self, path: &mut Path) {
        if self.paced.is_none() {
            path.pacing_rate =
                send_memory::pacing_rate(path, self.plain_mss(), self.sent.len() as u64);
        }
        if self.reckoning == Reckoning::Rate {
            return;
        }
        path.memory = match &self.buffers {
            Some(buffers) => buffers.memory(),
            None => {
                let wanted = send_memory::buffer_for(path, path.cwnd).min(self.largest_queue);
                path.buffer = path.buffer.max(wanted);
                let in_flight = self.sent.back().map_or(0, |last| last.end() - self.una);
                send_memory::charged(path, in_flight, self.unsent_bytes)
            }
        };
    }

    /// When the transmission timer fires, if it runs.
    pub(crate) fn transmission_timer(&self) -> Option<Nanos> {
        (self.timers.transmission != NEVER).then_some(self.timers.transmission)
    }

    /// A segment of the peer is being taken.
    pub(crate) fn hears(&self, shared: &Shared) -> bool {
        self.heard_at == shared.now
    }

    /// The scheduler gave it data that was not pushed yet.
    pub(crate) fn has_new_data(&self) -> bool {
        self.buffers.as_ref().is_some_and(|buffers| buffers.grew())
    }

    /// When the peer was last heard of, to the millisecond (Linux `rcv_tstamp`).
    pub(crate) fn heard_at(&self) -> Nanos {
        self.heard_at / MILLISECOND * MILLISECOND
    }

    /// Bytes that wait at subflow level because something before them is missing.
    pub fn out_of_order_bytes(&self) -> u64 {
        self.holes.as_ref().map_or(0, |holes| holes.bytes())
    }

    /// Internal variables of the congestion controller.
    pub fn observe(&self) -> Vec<(&'static str, f64)> {
        self.congestion.observe()
    }

    /// Whether the congestion controller sets a rate.
    pub(crate) fn is_paced(&self) -> bool {
        self.paced.is_some()
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Running totals for recordings.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Next sequence number expected from the peer, relative to its initial one.
    pub fn received(&self) -> u64 {
        self.received
    }

    pub fn initial_sequence(&self) -> u32 {
        self.iss
    }

    pub fn peer_initial_sequence(&self) -> u32 {
        self.irs
    }

    /// The peer's FIN was received in order.
    pub(crate) fn peer_finished(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.received > fin)
    }

    pub(crate) fn payload(offset: u64, len: u32) -> Payload {
        Payload { offset, len }
    }
}
