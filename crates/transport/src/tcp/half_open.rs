//! Segments that do not fit a connection's state:
//!
//! - any at a server whose SYN/ACK is unacknowledged (RFC 9293 section 3.10.7.4, Linux `tcp_check_req`)
//! - SYNs and resets in synchronised states (RFC 5961)
//! - a SYN that may replace a finished connection

use polypath_wire::tcp::{Flags, Segment};

use super::transfer::Transfer;
use super::{Socket, State};
use crate::tcp::context::{Context, Options, Shared};
use crate::{MILLISECOND, Mib, Nanos};

/// A SYN that is refused by an acknowledgement of an older connection goes again after this, once its reset is there (TCP_TIMEOUT_MIN).
const SYN_AFTER_RESET: Nanos = 2 * MILLISECOND;

/// How far a connection's own numbers lie below those of the one that follows it on the same addresses and ports: beyond the largest
/// window without scaling (Linux `tcp_timewait_state_process`).
const BEYOND_TIME_WAIT: u32 = 65_535 + 2;

/// What a segment does to a server's half of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalfOpen {
    /// It acknowledges the SYN/ACK.
    Acknowledged,
    /// It was answered, or is of no use.
    Waits,
    /// It ends the attempt.
    Ends,
}

/// Whether a segment of `len` sequence numbers, `ahead` of the next one expected, has something in the window (RFC 9293 section
/// 3.10.7.4, first step).
fn overlaps_window(shared: &Shared, ahead: i64, len: u32) -> bool {
    match u64::try_from(ahead) {
        Ok(ahead) => ahead == 0 || shared.receive.reaches(ahead),
        Err(_) => ahead + i64::from(len) > 0,
    }
}

impl Transfer {
    /// Where a connection's numbers begin that follows this one on the same addresses and ports: beyond those that it used.
    pub(crate) fn successor_isn(&self) -> u32 {
        let next = self.flight.number(self.flight.next());
        next.wrapping_add(BEYOND_TIME_WAIT)
    }
}

impl Socket {
    /// Takes a segment while our SYN/ACK is unacknowledged.
    pub(crate) fn on_half_open(
        &mut self,
        cx: &mut Context<impl Options>,
        segment: &Segment,
    ) -> HalfOpen {
        let flags = segment.flags & (Flags::SYN | Flags::RST | Flags::ACK);
        if flags == Flags::SYN && segment.seq == self.receiver.initial() {
            if let Some(value) = self.negotiated.timestamp_of(segment)
                && !cx.shared.config.profile.echoes_first_syn()
                && !self
                    .receiver
                    .outdates(self.negotiated.timestamp_of(segment))
            {
                self.receiver.take_first_timestamp(value);
            }
            if self.receiver.may_answer(cx.shared.now) {
                self.retransmit(cx, 0);
                self.transfer.arm_retransmission(cx.shared);
            }
            return HalfOpen::Waits;
        }
        let reset = flags.contains(Flags::RST);
        if flags.contains(Flags::ACK) && !reset && segment.ack != self.transfer.flight.number(1) {
            cx.refuse(segment);
            return HalfOpen::Waits;
        }
        let ahead = self.receiver.ahead(segment);
        if self
            .receiver
            .outdates(self.negotiated.timestamp_of(segment))
            || !overlaps_window(cx.shared, ahead, segment.seq_len())
        {
            if !reset && self.receiver.may_answer(cx.shared.now) {
                self.answer_half_open(cx);
            }
            return HalfOpen::Waits;
        }
        if reset && ahead != 0 {
            self.challenge_half_open(cx);
            return HalfOpen::Waits;
        }
        if reset {
            return HalfOpen::Ends;
        }
        if flags.contains(Flags::SYN) {
            cx.refuse(segment);
            return HalfOpen::Ends;
        }
        if flags.contains(Flags::ACK) {
            HalfOpen::Acknowledged
        } else {
            HalfOpen::Waits
        }
    }

    fn answer_half_open(&mut self, cx: &mut Context<impl Options>) {
        let mut segment = self.header(cx.shared.now, self.transfer.flight.next());
        let shift = self.negotiated.receive_shift;
        segment.window = self.receiver.offer(&mut cx.shared.receive, shift);
        cx.shared.counters.increment(Mib::TcpOutSegs);
        cx.emit(segment);
    }

    fn challenge_half_open(&mut self, cx: &mut Context<impl Options>) {
        if self.receiver.may_answer(cx.shared.now) {
            cx.shared.counters.increment(Mib::TcpExtTCPChallengeACK);
            self.answer_half_open(cx);
        }
    }

    /// Whether a reset or a SYN in a synchronised state belongs to this connection; one that may not draws a challenge ACK, which a true
    /// peer answers at the right number (RFC 5961 sections 3.2 and 4.2).
    #[cold]
    pub(super) fn acceptable_control(
        &mut self,
        cx: &mut Context<impl Options>,
        segment: &Segment,
    ) -> bool {
        let (seq, next) = (self.receiver.position(segment), self.receiver.next());
        let syn = !segment.flags.contains(Flags::RST);
        if !syn && seq == next {
            return true;
        }
        cx.shared
            .counters
            .add(Mib::TcpExtTCPSYNChallenge, u32::from(syn));
        let challenged = syn || seq > next && cx.shared.receive.reaches(seq - next);
        if challenged {
            self.challenge(cx);
        }
        false
    }

    /// Whether the sequence number lies in the window or, as a late segment's may, a buffer below it, and the acknowledgement between the
    /// largest window below what is acknowledged and what was sent (RFC 9293 section 3.10.7.4, RFC 5961 section 5.2). The answer to one
    /// that does not fit is limited as challenge ACKs are (RFC 5961 section 7, Linux `tcp_oow_rate_limited`).
    #[inline]
    pub(super) fn acceptable_numbers(
        &mut self,
        cx: &mut Context<impl Options>,
        segment: &Segment,
    ) -> bool {
        // Almost every segment is the next one, and acknowledges what is in flight.
        let news = self.transfer.flight.beyond_una(segment.ack);
        let usual =
            segment.seq == self.receiver.number() && u64::from(news) <= self.transfer.flight.span();
        usual || self.fits(cx, segment)
    }

    #[inline(never)]
    fn fits(&mut self, cx: &mut Context<impl Options>, segment: &Segment) -> bool {
        let ahead = self.receiver.ahead(segment);
        let news = self.transfer.flight.beyond_una(segment.ack) as i32;
        let (below, above) = cx.shared.receive.reach(cx.options.maps_data());
        let fits = ahead <= above
            && ahead >= -below
            && i64::from(news) <= self.transfer.flight.span() as i64
            && i64::from(news) >= -(self.window.largest() as i64);
        if !fits {
            self.challenge(cx);
        }
        fits
    }

    #[cold]
    fn challenge(&mut self, cx: &mut Context<impl Options>) {
        if self.receiver.may_answer(cx.shared.now) {
            cx.shared.counters.increment(Mib::TcpExtTCPChallengeACK);
            self.send_ack(cx);
        }
    }

    /// The SYN/ACK of the handshake again, nothing having followed it: our third ACK was lost.
    pub(crate) fn repeats_syn_ack(&self, segment: &Segment) -> bool {
        !segment.flags.contains(Flags::RST)
            && self.receiver.next() <= 1
            && segment.seq == self.receiver.initial()
            && segment.ack == self.transfer.flight.number(1)
    }

    /// A segment acknowledges what this host, which only sent its SYN, never sent: the peer holds an older connection of these addresses
    /// and ports. The reset ends that one, and the SYN follows soon (RFC 9293 section 3.5.1, Linux `tcp_rcv_synsent_state_process`).
    pub(crate) fn on_foreign_ack(&mut self, cx: &mut Context<impl Options>, segment: &Segment) {
        cx.refuse(segment);
        if self.transfer.flight.syn_repeats() == 0 {
            self.transfer
                .timers
                .no_later_than(cx.shared.now + SYN_AFTER_RESET);
        }
    }

    /// Whether a SYN of these addresses and ports begins a new connection rather than belonging to this one: it is over, or it is in
    /// TIME-WAIT and the SYN is newer by its sequence number or its timestamp (RFC 9293 section 3.10.7.4, RFC 6191, Linux
    /// `tcp_timewait_state_process`).
    pub(crate) fn gives_way(&self, syn: &Segment) -> bool {
        match self.lifetime.state() {
            State::Closed => true,
            State::TimeWait if !self.receiver.outdates(self.negotiated.timestamp_of(syn)) => {
                let stamp = self.negotiated.timestamp_of(syn);
                self.receiver.position(syn) > self.receiver.next()
                    || stamp.is_some_and(|value| self.receiver.newer_by(value) > 0)
            }
            _ => false,
        }
    }
}
