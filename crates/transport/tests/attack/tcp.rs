//! TCP under attack.
//!
//! | attacker | may do | must not |
//! |---|---|---|
//! | blind | guess numbers, near the right ones and anywhere | change any state (RFC 9293 section 3.10.7.4, RFC 5961 sections 3 to 5) |
//! | blind | the same | draw more than one answer to a segment, or more than one per half second to segments without data (RFC 5961 section 7) |
//! | on the path | anything, with the numbers that it reads | make an endpoint panic, or keep and send without bound |

use std::collections::BTreeMap;

use polypath_transport::{CloseReason, Connection, Kept, Mib, Nanos, Profile, Segment};
use polypath_wire::tcp::{Flags, Payload};
use rand::Rng;

use crate::attacker::{Attacker, Target};
use crate::choices::Choices;
use crate::common::{self, Fate, Link, MS, Pair, SECOND, Side};
use crate::stack::{self, BUFFER};
use crate::{mutate, seeds};

/// Answers to segments that do not fit leave at most this often (RFC 5961 section 7).
const BETWEEN_ANSWERS: Nanos = 500 * MS;
/// Until when a transfer is over that is not attacked or survives it.
pub const PATIENCE: Nanos = 300 * SECOND;
/// Packets and timers of a transfer and of everything that an attacker does to it.
pub const MOST_STEPS: u32 = 100_000;
/// Packets that one segment may bring forth: a window of data, and its acknowledgements.
pub const MOST_ANSWERS: usize = 400;

/// What a segment that is not taken leaves as it is.
#[derive(Debug, PartialEq)]
pub struct Snapshot {
    sockets: String,
    /// At connection level; how much is written is the writer's affair.
    acknowledged: u64,
    window: u64,
    read: u64,
    kept: Kept,
    ended: Option<CloseReason>,
}

/// Any segment may be the occasion for sending data that waits, so what is sent is not part of it.
impl Snapshot {
    pub fn of(pair: &mut Pair, side: Side) -> Option<Self> {
        let read = pair.end(side).read;
        let connection = pair.end(side).connection.as_ref()?;
        let paths = connection.paths().iter();
        let sockets = paths
            .zip(connection.subflows())
            .map(|(path, subflow)| {
                let socket = subflow.socket();
                let info = socket.info(connection.config());
                let sequence = socket.sequence();
                let numbers = (socket.state(), sequence.snd_una, sequence.rcv_nxt);
                // Whoever waits for a window penalises the subflow that holds it up, on any occasion.
                let cwnd = (path.cwnd, path.ssthresh);
                let cwnd = (!connection.multipath()).then_some(cwnd);
                let window = (cwnd, path.mss, path.backup);
                let times = (path.srtt, info.rto, info.backoff, info.retransmits);
                let queue = (info.state, info.sacked, info.lost);
                let held = (socket.out_of_order_bytes(), path.established);
                format!("{numbers:?} {window:?} {times:?} {queue:?} {held:?}\n")
            })
            .collect();
        Some(Self {
            sockets,
            acknowledged: connection.written() - connection.send_queue().0,
            window: connection.receive_window(),
            read,
            kept: Kept {
                segments: 0,
                ..connection.kept()
            },
            ended: connection.ended(),
        })
    }
}

/// What it keeps is bounded by its buffers: a segment or range holds a byte at least, and in practice the half of a small segment.
pub fn assert_bounded(connection: &Connection) {
    let (send, receive) = connection.buffers();
    let kept = connection.kept();
    assert!(
        connection.reassembly_bytes() <= receive.max(BUFFER) * 2,
        "{kept:?}"
    );
    let subflows = kept.subflows as u64;
    // Upstream sums up the send buffers of subflows (`mptcp_propagate_sndbuf`).
    let most_sent = match connection.config().profile {
        Profile::Linux => (1 + subflows) * BUFFER,
        _ => 2 * BUFFER,
    };
    assert!(
        send <= most_sent && receive <= 2 * BUFFER,
        "{kept:?}, buffers {send} and {receive}"
    );
    let most = 4 * BUFFER as usize;
    assert!(
        kept.segments <= most && kept.ranges <= most,
        "{kept:?}, buffers {send} and {receive}"
    );
    assert!(kept.mappings <= 4_096 * kept.subflows, "{kept:?}");
    assert!(kept.subflows <= 270 && kept.addresses <= 1_024, "{kept:?}");
}

/// What a blind attacker sends: from the right addresses and ports, with what it guesses.
fn guess(rng: &mut Choices, target: &Target) -> Segment {
    let sequence = target.sequence;
    let edge = sequence.rcv_nxt.wrapping_add(target.window);
    let seq = mutate::near(rng, &[sequence.rcv_nxt, sequence.rcv_nxt, edge]);
    let oldest = sequence.snd_una.wrapping_sub(target.offered);
    let ack = mutate::near(rng, &[sequence.snd_una, sequence.snd_nxt, oldest]);
    let len = if rng.random() {
        0
    } else {
        rng.random_range(1..1_448)
    };
    let mut segment = Segment {
        seq,
        ack,
        flags: mutate::flags(rng),
        window: rng.random(),
        payload: Payload {
            offset: mutate::FORGED,
            len,
        },
        ..Segment::default()
    };
    if rng.random() {
        segment.timestamps = Some((rng.random(), rng.random()));
    }
    if rng.random_ratio(1, 4) {
        for _ in 0..rng.random_range(1..4) {
            let left = mutate::near(rng, &[sequence.snd_una]);
            segment.sack.push(left, left.wrapping_add(1_448));
        }
    }
    segment
}

/// The attack of a blind attacker on one end of a subflow.
pub struct Blind {
    pub rng: Choices,
    /// When each socket last answered a segment without data.
    answered: BTreeMap<(usize, usize), Nanos>,
    pub sent: u64,
}

impl Blind {
    pub fn new(rng: Choices) -> Self {
        Self {
            rng,
            answered: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Sends one segment to `side`, unless the guess would be right, and looks whether it changed anything.
    pub fn shoot(
        &mut self,
        pair: &mut Pair,
        side: Side,
        subflow: usize,
        embellish: impl FnOnce(&mut Choices, &mut Segment),
    ) {
        let Some(connection) = pair.end(side).connection.as_ref() else {
            return;
        };
        if connection.subflows().len() <= subflow || connection.ended().is_some() {
            return;
        }
        let info = &connection.subflows()[subflow];
        let (tuple, sequence) = (info.tuple, info.socket().sequence());
        // Any segment is an occasion for what waits for one: closing, and data to send. The first says nothing.
        let nothing = Segment {
            seq: sequence.rcv_nxt.wrapping_add(1 << 31),
            flags: Flags::RST,
            ..Segment::default()
        };
        pair.inject(side, tuple, nothing);
        let target = Target::of(pair.connection(side), subflow, 2 * BUFFER as u32);
        let mut segment = guess(&mut self.rng, &target);
        embellish(&mut self.rng, &mut segment);
        if target.is_hit(&segment) {
            return;
        }
        self.sent += 1;
        let mut before = Snapshot::of(pair, side);
        let answers = pair.inject(side, tuple, segment.clone());
        let after = Snapshot::of(pair, side);
        // An answer offers what has become free since the last one.
        if let (Some(before), Some(after), 1..) = (&mut before, &after, answers) {
            before.window = before.window.max(after.window);
        }
        assert_eq!(before, after, "{side:?} {target:?} took {segment:?}");
        let from = pair.log.len() - answers;
        let answers = pair.log[from..].iter().filter(|it| !it.carries_data());
        let answers = answers.count();
        assert!(
            answers <= 1,
            "{:?} of {side:?} {target:?} to {segment:?}",
            &pair.log[from..]
        );
        if answers > 0 && segment.payload.len == 0 && target.state.synchronised() {
            let now = pair.now;
            if let Some(last) = self.answered.insert((side as usize, subflow), now) {
                assert!(
                    now - last >= BETWEEN_ANSWERS,
                    "{side:?} {target:?} answers {segment:?} {} ms after the last",
                    (now - last) / MS
                );
            }
        }
    }

    /// ICMP says that a packet was too long: an attacker does not know what is in flight (RFC 5927 section 4.1).
    pub fn report_too_big(&mut self, pair: &mut Pair, side: Side, subflow: usize) {
        let Some(connection) = pair.end(side).connection.as_ref() else {
            return;
        };
        let Some(info) = connection.subflows().get(subflow) else {
            return;
        };
        let sequence = info.socket().sequence();
        let seq = mutate::near(&mut self.rng, &[sequence.snd_una, sequence.snd_nxt]);
        let flight = sequence.snd_nxt.wrapping_sub(sequence.snd_una);
        if seq.wrapping_sub(sequence.snd_una) <= flight {
            return;
        }
        let mtu = self.rng.random_range(0..1_500);
        let before = Snapshot::of(pair, side);
        let sent = pair.log.len();
        pair.act(side, |it, now| it.on_packet_too_big(subflow, seq, mtu, now));
        assert_eq!(before, Snapshot::of(pair, side), "{sequence:?} takes {seq}");
        assert_eq!(sent, pair.log.len());
    }
}

/// Both hosts, what they write, and that they close when they wrote it.
pub struct Transfer {
    pub bytes: [u64; 2],
    written: [bool; 2],
}

impl Transfer {
    pub fn new(rng: &mut Choices) -> Self {
        Self {
            bytes: [rng.random_range(1..200_000), rng.random_range(1..200_000)],
            written: [false; 2],
        }
    }

    pub fn go_on(&mut self, pair: &mut Pair) {
        for side in [Side::Client, Side::Server] {
            let established = |end: &Connection| end.established() && end.ended().is_none();
            let ready = pair.end(side).connection.as_ref().is_some_and(established);
            if ready && !std::mem::replace(&mut self.written[side as usize], true) {
                pair.write(side, self.bytes[side as usize]);
                pair.close(side);
            }
        }
    }
}

pub fn links(rng: &mut Choices, number: usize) -> Vec<Link> {
    (0..number)
        .map(|_| {
            let delay = rng.random_range(1..40) * MS;
            Link::limited(delay, rng.random_range(2..50) * 1_000_000, 40 * MS)
        })
        .collect()
}

/// How many segments the attacker sent.
fn blind(rng: &mut Choices) -> u64 {
    let (client, server) = (
        stack::drawn(rng, common::tcp()),
        stack::drawn(rng, common::tcp()),
    );
    let links = links(rng, 1);
    let mut pair = Pair::with(&client, &server, links, 1, rng.random_range(0..1 << 30));
    let mut transfer = Transfer::new(rng);
    let mut blind = Blind::new(rng.clone());
    let finished = |pair: &Pair| {
        let ended = |end: &common::pair::End| {
            let connection = end.connection.as_ref();
            connection.is_some_and(|connection| connection.ended().is_some())
        };
        ended(&pair.client) && ended(&pair.server)
    };
    pair.act(Side::Client, |_, _| {});
    while !finished(&pair) && pair.now < PATIENCE {
        for side in [Side::Client, Side::Server] {
            for _ in 0..blind.rng.random_range(0..3) {
                blind.shoot(&mut pair, side, 0, |_, _| {});
            }
            if blind.rng.random_ratio(1, 4) {
                blind.report_too_big(&mut pair, side, 0);
            }
        }
        transfer.go_on(&mut pair);
        if !pair.step() {
            break;
        }
    }
    for (side, bytes) in [
        (Side::Server, transfer.bytes[0]),
        (Side::Client, transfer.bytes[1]),
    ] {
        pair.assert_whole(side, bytes);
        assert_eq!(pair.connection(side).ended(), Some(CloseReason::Finished));
        assert_bounded(pair.connection(side));
        let challenges = u64::from(pair.counter(side, Mib::TcpExtTCPChallengeACK));
        assert!(challenges <= pair.now / BETWEEN_ANSWERS + 1);
    }
    blind.sent
}

/// What an attacker on the path does to packets that it sees, as a hook of the pair.
pub fn meddler(
    attacker: Attacker,
    mut rng: Choices,
    share: u32,
) -> impl FnMut(&mut common::pair::Packet) -> Fate {
    move |packet| {
        if !attacker.sees(packet.path) || !rng.random_ratio(share, 100) {
            return Fate::Pass;
        }
        match rng.random_range(0..8) {
            0 => Fate::Drop,
            1 => Fate::Delay(rng.random_range(0..500) * MS),
            2 => Fate::Duplicate(rng.random_range(0..500) * MS),
            3 => Fate::Corrupt,
            4 | 5 => {
                mutate::fields(&mut rng, &mut packet.segment);
                Fate::Pass
            }
            _ => match mutate::bytes(&mut rng, &packet.segment) {
                Some(segment) => {
                    packet.segment = segment;
                    Fate::Pass
                }
                None => Fate::Drop,
            },
        }
    }
}

/// A packet that an attacker made of one that it saw goes to where that one went.
pub fn forge(
    rng: &mut Choices,
    pair: &mut Pair,
    attacker: Attacker,
    spare: impl FnOnce(&Segment, &mut Segment),
) {
    let recent = pair.log.len().min(60);
    if recent == 0 {
        return;
    }
    let seen = &pair.log[pair.log.len() - 1 - rng.random_range(0..recent)];
    if !attacker.sees(seen.path) {
        return;
    }
    let (to, tuple) = (seen.from.other(), common::reversed(seen.tuple));
    let original = seen.segment.clone();
    let mut segment = original.clone();
    match rng.random_range(0..4) {
        0 => {}
        1 => {
            if let Some(read) = mutate::bytes(rng, &segment) {
                segment = read;
            }
        }
        _ => mutate::fields(rng, &mut segment),
    }
    spare(&original, &mut segment);
    let text = format!("{segment:?}");
    let answers = pair.inject(to, tuple, segment);
    assert!(answers <= MOST_ANSWERS, "{answers} answers to {text}");
    for side in [Side::Client, Side::Server] {
        if let Some(connection) = pair.end(side).connection.as_ref() {
            assert_bounded(connection);
        }
    }
}

pub fn on_path(rng: &mut Choices) {
    let (client, server) = (
        stack::drawn(rng, common::tcp()),
        stack::drawn(rng, common::tcp()),
    );
    let links = links(rng, 1);
    let mut pair = Pair::with(&client, &server, links, 1, rng.random_range(0..1 << 30));
    let mut transfer = Transfer::new(rng);
    let attacker = Attacker::OnPath(0);
    let share = rng.random_range(0..30);
    pair.hook(meddler(attacker, rng.clone(), share));
    let mut steps = 0;
    while pair.now < 20 * SECOND && steps < MOST_STEPS {
        if rng.random_ratio(1, 4) {
            forge(rng, &mut pair, attacker, |_, _| {});
        }
        transfer.go_on(&mut pair);
        if !pair.step() {
            break;
        }
        steps += 1;
    }
    assert!(steps < MOST_STEPS, "no end of packets at {} ns", pair.now);
}

/// What a fuzzer decides about, too.
pub const CASES: &[fn(&mut Choices)] = &[|rng| _ = blind(rng), on_path];

#[test]
fn a_blind_attacker_changes_nothing_of_a_connection() {
    seeds::run(
        "a_blind_attacker_changes_nothing_of_a_connection",
        250,
        |rng| assert!(blind(rng) > 0),
    );
}

#[test]
fn an_attacker_on_the_path_ends_a_connection_at_worst() {
    seeds::run(
        "an_attacker_on_the_path_ends_a_connection_at_worst",
        250,
        on_path,
    );
}
