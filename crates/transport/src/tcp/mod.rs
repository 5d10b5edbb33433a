//! One TCP connection, or one subflow of an MPTCP connection (RFC 9293).
//!
//! A socket keeps the subflow's sequence space: data in flight, lost data, out-of-order data, its timers and its
//! congestion control. The layer above decides which data it carries.

pub(crate) mod context;
mod controller;
mod cork;
mod delayed_ack;
mod ecn;
mod flight;
pub(crate) mod group;
mod half_open;
mod handshake;
mod holes;
mod host_queue;
mod info;
mod keepalive;
mod lifetime;
mod mss;
mod mtu_probing;
mod once;
mod path_mtu;
mod peer_window;
mod receiver;
mod recovery;
mod send_queue;
mod sender;
mod timer;
mod transfer;
mod unrepaired;
mod window_usage;

use polypath_wire::tcp::{Flags, Segment};

use crate::congestion::CongestionControl;
use crate::linux::send_memory;
use crate::path::Path;
use crate::settings::Config;
use crate::tcp::context::{Context, Options, Shared};
use crate::{Codepoint, MILLISECOND, Mib, Nanos, Purpose};

use ecn::Ecn;
pub(crate) use group::Front;
pub(crate) use half_open::HalfOpen;
use host_queue::HostLink;
pub use info::{Info, Sequence};
use lifetime::Lifetime;
pub use lifetime::State;
use mss::Mss;
pub(crate) use mss::most_of_window;
pub(crate) use mtu_probing::Advice;
use peer_window::PeerWindow;
pub(crate) use receiver::{Arrived, Receiver};
pub(crate) use recovery::probes_tail;
pub(crate) use send_queue::Reckoning;
use send_queue::SendQueue;
pub(crate) use sender::{Chunk, Kind, Push};
pub(crate) use timer::Fired;
use transfer::Transfer;

/// What was negotiated in the SYNs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Negotiated {
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

impl Negotiated {
    /// Bytes of options that every segment has.
    #[inline(always)]
    pub fn fixed_options(&self) -> u32 {
        if self.timestamps { TIMESTAMP_OPTION } else { 0 }
    }

    /// The timestamp of a segment, where both ends use them.
    #[inline(always)]
    fn timestamp_of(&self, segment: &Segment) -> Option<u32> {
        let (value, _) = segment.timestamps.filter(|_| self.timestamps)?;
        Some(value)
    }
}

pub use crate::path::Totals;

pub struct Socket {
    pub(crate) lifetime: Lifetime,
    pub(crate) negotiated: Negotiated,
    pub(crate) mss: Mss,

    pub(crate) queue: SendQueue,
    pub(crate) transfer: Transfer,
    pub(crate) window: PeerWindow,
    pub(crate) host: HostLink,
    ecn: Ecn,

    pub(crate) receiver: Receiver,
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
        let echoes_each = congestion.needs_ecn();
        let low_latency = congestion.low_latency();
        let upstream = config.multipath && config.profile.buffers_by_subflow();
        let limits = config.send_buffer;
        let largest = if upstream {
            0
        } else {
            limits.maximum.max(limits.default)
        };
        Self {
            lifetime: Lifetime::new(),
            negotiated: Negotiated {
                timestamps: config.timestamps,
                ecn: config.ecn || config.accurate_ecn || echoes_each || low_latency,
                echoes_each,
                low_latency,
                send_shift: 0,
                receive_shift: 0,
            },
            mss: Mss::new(announced),
            queue: SendQueue::new(upstream, largest, reckoning),
            transfer: Transfer::new(config, iss, congestion),
            window: PeerWindow::default(),
            host: HostLink::default(),
            ecn: Ecn::new(config.accurate_ecn || low_latency),
            receiver: Receiver::new(config),
        }
    }

    /// Payload of a segment that has no options but those of TCP itself (`mss_cache`).
    pub(super) fn plain_mss(&self) -> u32 {
        u32::from(self.mss.usable()) - self.negotiated.fixed_options()
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
        if let Some(value) = self.negotiated.timestamp_of(segment)
            && !self.receiver.takes_timestamp(segment, value)
        {
            cx.shared.counters.increment(Mib::TcpExtPAWSEstab);
            self.receiver.request_ack();
            self.flush_ack(cx);
            return false;
        }
        true
    }

    /// A bare segment of this socket: sequence number, ACK, timestamps, ECN echo.
    #[inline(always)]
    fn header(&mut self, now: Nanos, seq: u64) -> Segment {
        let mut segment = Segment {
            seq: self.transfer.flight.number(seq),
            ack: self.receiver.number(),
            flags: Flags::ACK,
            ..Segment::default()
        };
        if self.negotiated.timestamps {
            segment.timestamps = Some((timestamp(now), self.receiver.timestamp()));
        }
        if self.ecn.tells {
            self.ecn.tell(&mut segment.flags);
        }
        segment
    }

    #[inline(always)]
    fn stamp(&mut self, cx: &mut Context<impl Options>, segment: &mut Segment) {
        let shift = self.negotiated.receive_shift;
        segment.window = self.receiver.acknowledge(&mut cx.shared.receive, shift);
    }

    /// Sends an ACK without data.
    pub(crate) fn send_ack(&mut self, cx: &mut Context<impl Options>) {
        if matches!(
            self.lifetime.state(),
            State::Closed | State::SynSent | State::SynReceived | State::TimeWait
        ) {
            return self.send_ack_in_time_wait(cx);
        }
        self.acknowledge(cx, true);
    }

    /// Where nothing is left of it but what acknowledges a FIN, without options of the layer above.
    #[cold]
    fn send_ack_in_time_wait(&mut self, cx: &mut Context<impl Options>) {
        if self.lifetime.state() == State::TimeWait {
            let forgets = self.lifetime.is_reduced() && cx.shared.config.profile.forgets_subflows();
            self.acknowledge(cx, !forgets);
        }
    }

    #[inline(always)]
    fn acknowledge(&mut self, cx: &mut Context<impl Options>, with_options: bool) {
        let header = self.header(cx.shared.now, self.transfer.flight.next());
        let mut transmit = cx.transmit(header, Purpose::Control);
        let segment = &mut transmit.segment;
        self.stamp(cx, segment);
        if with_options {
            let space = cx.options.add_to_ack(cx.shared, segment);
            let sack = self.transfer.sack;
            self.receiver.add_sack(&mut segment.sack, space, sack);
        }
        cx.shared.counters.increment(Mib::TcpOutSegs);
        cx.shared.out.push(transmit);
    }

    /// Sends an ACK that repeats an old sequence number, to draw an answer (RFC 9293 sections 3.8.4 and 3.8.6.1), and counts it as `kind`.
    pub(crate) fn send_probe(&mut self, cx: &mut Context<impl Options>, kind: Mib) {
        let mut segment = self.header(cx.shared.now, self.transfer.flight.una().saturating_sub(1));
        self.stamp(cx, &mut segment);
        cx.options.add_to_ack(cx.shared, &mut segment);
        cx.shared.counters.increment(kind);
        cx.shared.counters.increment(Mib::TcpOutSegs);
        cx.emit(segment);
    }

    /// Sends an ACK if one is due.
    pub(crate) fn flush_ack(&mut self, cx: &mut Context<impl Options>) {
        if self.receiver.owes_ack() {
            self.send_ack(cx);
        }
    }

    /// The delayed ACK's time came.
    pub(crate) fn on_delayed_ack(&mut self, cx: &mut Context<impl Options>) {
        if self.receiver.ack_deadline() <= cx.shared.now {
            if self.receiver.compressed_acks() > 0 {
                return self.send_compressed(cx);
            }
            cx.shared.counters.increment(Mib::TcpExtDelayedACKs);
            self.send_ack(cx);
        }
    }

    /// Sends the one ACK that several became (`tcp_sack_compress_send_ack`).
    fn send_compressed(&mut self, cx: &mut Context<impl Options>) {
        let more = u32::from(self.receiver.compressed_acks()) - 1;
        cx.shared.counters.add(Mib::TcpExtTCPAckCompressed, more);
        self.send_ack(cx);
    }

    /// Takes payload.
    pub(crate) fn on_payload(&mut self, cx: &mut Context<impl Options>, arrived: Arrived) {
        if self.receiver.is_ahead(&arrived) {
            self.on_payload_ahead(cx, arrived);
        } else {
            self.receiver.take(cx, arrived, &self.transfer.rtt);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_payload_ahead(&mut self, cx: &mut Context<impl Options>, arrived: Arrived) {
        let sack = self.transfer.sack;
        let told = sack && self.receiver.tells_first(&arrived);
        if told {
            self.send_compressed(cx);
        }
        self.receiver.take_ahead(cx, arrived, (sack, told));
    }

    /// Takes a FIN whose sequence number is `at`.
    pub(crate) fn on_fin(&mut self, shared: &mut Shared, at: u64) {
        self.receiver.note_fin(at);
        shared.fin_seen = true;
        self.advance_fin(shared);
    }

    /// Steps over the FIN when everything before it has arrived (RFC 9293 section 3.10.7.4, eighth step).
    pub(crate) fn advance_fin(&mut self, shared: &mut Shared) {
        if !self.receiver.advance_fin() {
            return;
        }
        if self.lifetime.receive_fin() {
            self.transfer.enter_time_wait(shared);
        }
    }

    /// A segment of the peer's FIN came again.
    pub(crate) fn repeated_fin(&mut self, shared: &mut Shared) {
        self.receiver.repeat_fin();
        if self.lifetime.receive_fin_again() {
            self.transfer.enter_time_wait(shared);
        }
    }

    /// Reads the ECN field of an arriving packet.
    pub(crate) fn on_ecn(
        &mut self,
        cx: &mut Context<impl Options>,
        field: Codepoint,
        segment: &Segment,
    ) {
        if self.negotiated.ecn {
            ecn::on_field(self, cx, field, segment);
        }
    }

    /// The ECN field of a segment that is sent.
    #[inline]
    pub(crate) fn ecn_field(&self, segment: &Segment, purpose: Purpose) -> Codepoint {
        if !self.negotiated.ecn {
            return Codepoint::NotEct;
        }
        ecn::field(self, segment, purpose)
    }

    /// Resets the peer.
    pub(crate) fn send_reset(&mut self, cx: &mut Context<impl Options>) {
        let mut segment = self.header(cx.shared.now, self.transfer.flight.next());
        segment.flags = Flags::RST | Flags::ACK;
        cx.options.add_to_ack(cx.shared, &mut segment);
        segment.dss = None;
        cx.shared.counters.increment(Mib::TcpOutRsts);
        cx.emit(segment);
    }

    /// Forgets everything: closed by reset, timeout or the end of TIME-WAIT.
    pub(crate) fn abandon(&mut self, path: &mut Path) {
        self.lifetime.end();
        self.transfer.abandon();
        self.queue.clear();
        self.host.resume();
        self.receiver.stop();
        path.established = false;
        path.buffer = 0;
        self.publish(path);
    }

    /// Brings the state that schedulers and controllers see up to date.
    pub(crate) fn publish(&self, path: &mut Path) {
        path.in_flight = self.transfer.flight.in_flight();
        path.queued = self.queue.bytes();
        path.srtt = self.transfer.rtt.srtt();
        path.rttvar = self.transfer.rtt.deviation();
        path.min_rtt = self.transfer.rtt.min();
        path.acked = self.transfer.flight.una().saturating_sub(1);
        path.state = self.transfer.recovery.state();
        if self.queue.reckons() {
            self.publish_reckoning(path);
        }
    }

    /// The same after segments have left, which changes no more than this.
    #[inline]
    pub(crate) fn publish_sent(&self, path: &mut Path) {
        path.in_flight = self.transfer.flight.in_flight();
        path.queued = self.queue.bytes();
        if self.queue.reckons() {
            self.publish_reckoning(path);
        }
    }

    fn publish_reckoning(&self, path: &mut Path) {
        if !self.transfer.controller.paces() {
            let packets = self.transfer.flight.packets().into();
            path.pacing_rate = send_memory::pacing_rate(path, self.plain_mss(), packets);
        }
        self.queue.publish_memory(path, &self.transfer.flight);
    }

    /// After everything that could leave has left: `dry` when the application has less than a segment more.
    pub(crate) fn settle_pacing(&mut self, cx: &mut Context<impl Options>, dry: bool) {
        let dry = dry && self.queue.is_empty();
        let Transfer {
            controller, flight, ..
        } = &mut self.transfer;
        controller.end_burst(&mut cx.path, flight, cx.shared.now, dry);
    }

    /// Bytes that wait at subflow level because something before them is missing.
    pub fn out_of_order_bytes(&self) -> u64 {
        self.receiver.out_of_order_bytes()
    }

    /// Internal variables of the congestion controller.
    pub fn observe(&self) -> Vec<(&'static str, f64)> {
        self.transfer.controller.observe()
    }

    pub fn state(&self) -> State {
        self.lifetime.state()
    }

    /// Running totals for recordings.
    pub fn totals(&self) -> Totals {
        Totals {
            received: self.receiver.bytes(),
            ..self.transfer.totals
        }
    }

    /// Next sequence number expected from the peer, relative to its initial one.
    pub fn received(&self) -> u64 {
        self.receiver.next()
    }

    pub fn initial_sequence(&self) -> u32 {
        self.transfer.flight.initial()
    }

    pub fn peer_initial_sequence(&self) -> u32 {
        self.receiver.initial()
    }
}
