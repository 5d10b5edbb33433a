//! Explicit congestion notification of a socket: classic (RFC 3168), an echo of each mark (RFC 8257), or accurate (RFC 9768).
//!
//! Accurate feedback is in the ACE field of the header. The AccECN option, which RFC 9768 leaves to a sender (section 3.2.3.2), is not sent,
//! and ignored on arrival.

use polypath_wire::tcp::{Flags, Segment};

use super::Socket;
use super::context::{Context, Options};
use crate::{Codepoint, Purpose};

/// The ACE field, as bits of the header.
const ACE: Flags = Flags::AE.union(Flags::CWR).union(Flags::ECE);
/// Counters of packets start at 5, so that a field that was zeroed shows (section 3.2.1).
const FIRST_COUNT: u32 = 5;
/// What the field can count.
const MOST: u32 = 7;
/// Marks after which an acknowledgement is not put off (`TCP_ACCECN_ACE_MAX_DELTA`).
const MOST_UNTOLD: u32 = 6;
/// The average of packets acknowledged at a time is in so many parts, and weighs a new one with one of as many (`PKTS_ACKED_WEIGHT`).
const PARTS: u32 = 64;
/// Beyond so many at a time, acknowledgements were thinned out, and the field may have gone round (`ACK_COMP_THRESH`).
const THINNED: u32 = 4;

#[derive(Debug, Default)]
pub(super) struct Ecn {
    /// Segments tell of marks, by ECE or by the ACE field.
    pub tells: bool,
    /// Where accurate feedback is asked for, or was agreed to.
    accurate: Option<Box<Accurate>>,
}

/// Accurate feedback (RFC 9768 section 3.2).
#[derive(Debug, Default)]
struct Accurate {
    /// The ECN field of the peer's SYN or SYN/ACK.
    opening: Codepoint,
    /// The ECN field of the last packet.
    last: Codepoint,
    /// Packets that arrived marked (`r.cep` less 5).
    received: u32,
    /// Those of them that no segment told of yet, at most 15.
    untold: u32,
    /// Packets of our own that arrived marked, as the peer reported (`s.cep` less 5).
    reported: u32,
    /// Packets acknowledged at a time, on average, in 64ths; 0 before the first.
    average: u32,
    /// The peer's answer to our SYN or SYN/ACK is not credible: nothing is sent as ECN-capable (section 3.2.2.3).
    broken: bool,
}

impl Ecn {
    pub fn new(accurate: bool) -> Self {
        Self {
            accurate: accurate.then(Box::default),
            ..Self::default()
        }
    }

    /// Whether both ends agreed to accurate feedback, or it is still asked for.
    fn is_accurate(&self) -> bool {
        self.accurate.is_some()
    }

    /// Has a segment tell of marks.
    #[cold]
    pub fn tell(&mut self, flags: &mut Flags) {
        match &mut self.accurate {
            Some(accurate) => {
                *flags |= as_ace(accurate.received + FIRST_COUNT);
                accurate.untold = 0;
            }
            None => *flags |= Flags::ECE,
        }
    }

    /// New data may tell of a reduction (RFC 3168 section 6.1.2); accurate feedback has another use for the bit (`tcp_ecn_queue_cwr`).
    pub fn tell_of_reduction(&self, flags: &mut Flags) {
        if !self.is_accurate() {
            *flags |= Flags::CWR;
        }
    }
}

fn ace(flags: Flags) -> u32 {
    let bit = |flag, value| if flags.contains(flag) { value } else { 0 };
    bit(Flags::AE, 4) | bit(Flags::CWR, 2) | bit(Flags::ECE, 1)
}

fn as_ace(value: u32) -> Flags {
    let bit = |value, flag| if value > 0 { flag } else { Flags::empty() };
    bit(value & 4, Flags::AE) | bit(value & 2, Flags::CWR) | bit(value & 1, Flags::ECE)
}

/// What a SYN/ACK says of the ECN field of the SYN, and the third ACK of that of the SYN/ACK (tables 2 and 3).
fn reflection(field: Codepoint) -> Flags {
    as_ace(match field {
        Codepoint::NotEct => 0b010,
        Codepoint::Ect1 => 0b011,
        Codepoint::Ect0 => 0b100,
        Codepoint::Ce => 0b110,
    })
}

/// The ECN field that a reflection speaks of; none where it has no meaning.
fn reflected(ace: u32) -> Option<Codepoint> {
    match ace {
        0b010 => Some(Codepoint::NotEct),
        0b011 => Some(Codepoint::Ect1),
        0b100 => Some(Codepoint::Ect0),
        0b110 => Some(Codepoint::Ce),
        _ => None,
    }
}

/// Whether a network may make the one codepoint of the other (`tcp_ect_transition_valid`).
fn credible(sent: Codepoint, arrived: Codepoint) -> bool {
    sent == arrived
        || sent != Codepoint::NotEct && sent != Codepoint::Ce && arrived != Codepoint::NotEct
}

/// What a SYN or SYN/ACK asks for or answers. One of accurate feedback goes once more with it before ECN is given up (sections 3.1.4.1 and 3.1.4.2,
/// `__tcp_retransmit_skb`, `tcp_ecn_make_synack`), one of classic ECN is not sent again with it.
pub(super) fn offer(socket: &Socket, answers: bool, repeats: Option<u32>) -> Flags {
    let accurate = socket.ecn.accurate.as_deref();
    let most = u32::from(accurate.is_some());
    if !socket.negotiated.ecn || repeats.is_some_and(|repeats| repeats > most) {
        return Flags::empty();
    }
    match (accurate, answers) {
        (Some(accurate), true) => reflection(accurate.opening),
        (Some(_), false) => ACE,
        (None, true) => Flags::ECE,
        (None, false) => Flags::ECE | Flags::CWR,
    }
}

/// The peer's SYN came with an ECN field (section 3.1.1, table 2; `tcp_ecn_rcv_syn`).
pub(super) fn on_syn(socket: &mut Socket, flags: Flags, field: Codepoint) {
    let asked = !matches!(ace(flags), 0 | 0b011);
    match socket.ecn.accurate.as_deref_mut().filter(|_| asked) {
        Some(accurate) => {
            (accurate.opening, accurate.last) = (field, field);
            socket.ecn.tells = true;
        }
        None => {
            socket.ecn.accurate = None;
            socket.negotiated.ecn &= flags.contains(Flags::ECE | Flags::CWR);
        }
    }
}

/// The peer's SYN/ACK came (table 2, `tcp_ecn_rcv_synack`).
pub(super) fn on_syn_ack(socket: &mut Socket, flags: Flags, field: Codepoint) {
    let sent = opening_field(socket);
    let said = ace(flags);
    let Some(accurate) = socket.ecn.accurate.as_deref_mut() else {
        socket.negotiated.ecn &= flags.contains(Flags::ECE) && !flags.contains(Flags::CWR);
        return;
    };
    if matches!(said, 0 | 0b001 | 0b111) {
        socket.negotiated.ecn &= said == 0b001;
        socket.ecn.accurate = None;
        return;
    }
    // What is reserved stands for ECT(1) (section 3.1.3).
    accurate.broken = !credible(sent, reflected(said).unwrap_or(Codepoint::Ect1)) && said != 0b101;
    accurate.opening = field;
    accurate.received = u32::from(field == Codepoint::Ce);
    socket.ecn.tells = true;
}

/// The acknowledgement of our SYN/ACK came (table 4, `tcp_accecn_third_ack`).
pub(super) fn on_third_ack(socket: &mut Socket, segment: &Segment) {
    let sent = opening_field(socket);
    let said = ace(segment.flags);
    let Some(accurate) = socket.ecn.accurate.as_deref_mut() else {
        return;
    };
    match reflected(said) {
        Some(arrived) if segment.payload.len == 0 => {
            accurate.broken = !credible(sent, arrived);
            accurate.reported = u32::from(arrived == Codepoint::Ce && !accurate.broken);
        }
        None if said == 0 => accurate.broken = true,
        _ => {}
    }
}

/// The handshake is done: without what it needs, another controller takes over (`dctcp_init`, `tcp_ca_no_fallback_rfc3168`).
pub(super) fn settle(socket: &mut Socket) {
    if socket.negotiated.low_latency && !socket.ecn.is_accurate() {
        socket.negotiated.ecn = false;
    }
    let needs = socket.negotiated.echoes_each || socket.negotiated.low_latency;
    if needs && !socket.negotiated.ecn {
        socket.negotiated.echoes_each = false;
        socket.negotiated.low_latency = false;
        socket.transfer.controller.fall_back();
    }
}

/// The ACE field of a third ACK, which reflects the ECN field of the SYN/ACK (section 3.2.2.1, `tcp_accecn_reflector_flags`).
pub(super) fn answer(socket: &Socket) -> Option<Flags> {
    let accurate = socket.ecn.accurate.as_deref()?;
    Some(reflection(accurate.opening))
}

/// Has a third ACK say that instead of a count.
pub(super) fn put(flags: &mut Flags, answer: Option<Flags>) {
    if let Some(answer) = answer {
        *flags = flags.difference(ACE) | answer;
    }
}

/// What SYNs and SYN/ACKs carry (`tcp_ecn_send_syn`, `tcp_ecn_send_synack`).
fn opening_field(socket: &Socket) -> Codepoint {
    match socket.negotiated {
        it if it.low_latency => Codepoint::Ect1,
        it if it.echoes_each => Codepoint::Ect0,
        _ => Codepoint::NotEct,
    }
}

/// The ECN field of a segment of a socket that has ECN. Data, but not what is sent again, is ECN-capable (RFC 3168 sections 6.1.1, 6.1.2,
/// 6.1.4 and 6.1.5). So is each segment with accurate feedback, and where the controller needs ECN (`tcp_ecn_send`).
pub(super) fn field(socket: &Socket, segment: &Segment, purpose: Purpose) -> Codepoint {
    let accurate = socket.ecn.accurate.as_deref();
    if segment.flags.contains(Flags::SYN) {
        return opening_field(socket);
    }
    let usual = segment.payload.len > 0 && purpose.is_first();
    let capable = match accurate {
        Some(accurate) => !accurate.broken,
        None => usual || socket.negotiated.echoes_each,
    };
    match capable {
        true if socket.negotiated.low_latency => Codepoint::Ect1,
        true => Codepoint::Ect0,
        false => Codepoint::NotEct,
    }
}

/// Reads the ECN field of an arriving packet (RFC 3168 section 6.1.3).
pub(super) fn on_field(
    socket: &mut Socket,
    cx: &mut Context<impl Options>,
    field: Codepoint,
    segment: &Segment,
) {
    if socket.ecn.is_accurate() {
        return count(socket, field, segment);
    }
    let marked = field == Codepoint::Ce;
    if socket.negotiated.echoes_each {
        return echo_each(socket, cx, marked, segment);
    }
    if segment.flags.contains(Flags::CWR) {
        socket.ecn.tells = false;
    }
    if marked && !socket.receiver.came_before(segment) {
        socket.ecn.tells = true;
        socket.receiver.request_ack();
    }
}

/// All packets count, acknowledgements too. Data whose field differs from the last packet's is acknowledged at once (section 3.2.2.5.1,
/// `tcp_ecn_received_counters`).
#[cold]
fn count(socket: &mut Socket, field: Codepoint, segment: &Segment) {
    let Some(accurate) = socket.ecn.accurate.as_deref_mut() else {
        return;
    };
    if field == Codepoint::Ce {
        accurate.received = accurate.received.wrapping_add(1);
        accurate.untold = (accurate.untold + 1).min(15);
    }
    let changed = std::mem::replace(&mut accurate.last, field) != field;
    if changed && segment.payload.len > 0 {
        socket.receiver.request_ack();
    }
}

/// The echo follows the mark of the last data (RFC 8257 section 3.2, Linux `dctcp_ece_ack_update`). Where that changes, an acknowledgement
/// that was put off leaves first and tells of what came before; this segment is acknowledged at once, as is one with CWR
/// (`tcp_ecn_accept_cwr`).
#[inline(never)]
fn echo_each(socket: &mut Socket, cx: &mut Context<impl Options>, marked: bool, segment: &Segment) {
    if segment.payload.len == 0 || socket.receiver.came_before(segment) {
        return;
    }
    if socket.ecn.tells != marked {
        if socket.receiver.puts_off_ack() {
            socket.send_ack(cx);
        }
        socket.ecn.tells = marked;
        socket.receiver.request_ack();
    }
    if segment.flags.contains(Flags::CWR) {
        socket.receiver.request_ack();
    }
}

/// How many packets an acknowledgement of so many reports as marked; all of them where it only says that there was a mark (ECE). `news`: it
/// acknowledges something.
pub(super) fn reported(socket: &mut Socket, flags: Flags, packets: u32, news: bool) -> u32 {
    let Some(accurate) = socket.ecn.accurate.as_deref_mut() else {
        return if flags.contains(Flags::ECE) {
            u32::MAX
        } else {
            0
        };
    };
    if accurate.untold >= MOST_UNTOLD && socket.receiver.puts_off_ack() {
        socket.receiver.request_ack();
    }
    // One that is out of order may be old (section 3.2.2.5.2).
    if !news {
        return 0;
    }
    if packets > 0 {
        let before = match accurate.average {
            0 => packets * PARTS,
            before => before,
        };
        accurate.average = (before * (PARTS - 1) + packets * PARTS) / PARTS;
    }
    let marks = decoded(ace(flags), accurate.reported, packets, accurate.average);
    accurate.reported = accurate.reported.wrapping_add(marks);
    marks
}

/// The field counts modulo 8. Where more was acknowledged than it counts, the most that can be meant is assumed, unless acknowledgements are
/// thinned out anyway (section 3.2.2.5.2, `__tcp_accecn_process` without the option).
fn decoded(ace: u32, before: u32, packets: u32, average: u32) -> u32 {
    let least = ace.wrapping_sub(FIRST_COUNT).wrapping_sub(before) & MOST;
    if packets <= MOST || average > THINNED * PARTS {
        return least;
    }
    packets - (packets.wrapping_sub(least) & MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_ae_cwr_ece() {
        assert_eq!(as_ace(0b110), Flags::AE | Flags::CWR);
        for value in 0..8 {
            assert_eq!(ace(as_ace(value)), value);
        }
    }

    /// Table 2 of RFC 9768, and table 3 for what the third ACK says.
    #[test]
    fn a_reflection_names_the_ecn_field() {
        let fields = [
            (Codepoint::NotEct, Flags::CWR),
            (Codepoint::Ect1, Flags::CWR | Flags::ECE),
            (Codepoint::Ect0, Flags::AE),
            (Codepoint::Ce, Flags::AE | Flags::CWR),
        ];
        for (field, flags) in fields {
            assert_eq!(reflection(field), flags);
            assert_eq!(reflected(ace(flags)), Some(field));
        }
        for unused in [0, 0b001, 0b101, 0b111] {
            assert_eq!(reflected(unused), None);
        }
    }

    /// Section 3.2.2.3: what was not ECN-capable stays so, and a mark does not go away.
    #[test]
    fn only_some_changes_of_the_field_are_credible() {
        use Codepoint::{Ce, Ect0, Ect1, NotEct};
        assert!(credible(Ect0, Ce) && credible(Ect1, Ect0) && credible(NotEct, NotEct));
        for (sent, arrived) in [(NotEct, Ce), (NotEct, Ect0), (Ect0, NotEct), (Ce, Ect1)] {
            assert!(!credible(sent, arrived));
        }
    }

    /// Appendix A.1 of RFC 9768: the counter goes round at 8.
    #[test]
    fn the_count_goes_round() {
        // No mark so far: 5.
        assert_eq!(decoded(5, 0, 2, 128), 0);
        assert_eq!(decoded(7, 0, 2, 128), 2);
        assert_eq!(decoded(0, 2, 1, 64), 1);
        assert_eq!(decoded(3, 3, 7, 64), 3);
        // Ten packets and one more mark than a round tells: 9 of them, or 1 where acknowledgements are few anyway.
        assert_eq!(decoded(6, 0, 10, 2 * PARTS), 9);
        assert_eq!(decoded(6, 0, 10, 5 * PARTS), 1);
        assert_eq!(decoded(5, 0, 8, 2 * PARTS), 8);
    }
}
