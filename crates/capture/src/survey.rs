//! The first reading: which flows there are, who opened them, what their handshakes say, and how near each tap was to either end.

use std::net::SocketAddr;

use polypath_wire::mptcp::{DataAck, Dsn, MpJoin, MptcpOption};
use polypath_wire::tcp::{Flags, Segment};

use crate::STEP;
use crate::flows::{FlowId, Flows};
use crate::half::Mark;
use crate::packet::{Merged, Packet, Tap};
use crate::places::{self, Apart, Places, Witnesses};

/// A segment without a SYN before it that is so many bytes below the first is a straggler; what is further off has wrapped.
pub const STRAGGLE: u32 = 1 << 24;

/// A value for each direction: of what the end with the lower address sends, and of what the other does.
pub type Both<T> = [T; 2];

/// What MP_CAPABLE of a flow said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capable {
    pub version: Option<u8>,
    /// On the SYN, on the SYN/ACK.
    pub asked: bool,
    pub answered: bool,
    /// Of the sender of each direction.
    pub keys: Both<Option<u64>>,
}

/// What MP_JOIN of a flow said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Join {
    pub token: Option<u32>,
    pub backup: bool,
    pub nonces: Both<Option<u32>>,
    /// The answer's, cut to 64 bits, and the opener's.
    pub answered: Option<u64>,
    pub confirmed: Option<[u8; 20]>,
}

/// A flow as the handshake shows it.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// The lower address first.
    pub ends: (SocketAddr, SocketAddr),
    pub first_ns: i64,
    /// Direction of the end that sent the SYN.
    pub opener: Option<usize>,
    pub initial: Both<Option<u32>>,
    pub capable: Option<Capable>,
    pub join: Option<Join>,
    /// Any option of Multipath TCP.
    pub multipath: bool,
    /// The least sequence number of each direction, where no SYN was seen.
    pub lowest: Both<Option<u32>>,
    /// What was acknowledged first of each direction: where it begins if nothing of it was seen.
    pub acked: Both<Option<u32>>,
    /// The number of the SYN as mappings tell it, where none was seen: a segment lies at the begin of its mapping or behind it.
    pub mapped_from: Both<Option<u32>>,
    /// A data sequence number of each direction: of 64 bits, or else of 32.
    pub data: Both<Option<u64>>,
    pub short_data: Both<Option<u32>>,
    pub taps: Vec<Seen>,
    /// Taps of one file that are places of their own.
    pub apart: Vec<Apart>,
}

/// A flow as one place saw it: one tap, or several that share it or saw it one after the other.
#[derive(Clone, Debug)]
pub struct Seen {
    pub tap: Tap,
    /// The place's other taps.
    pub others: Vec<Tap>,
    pub witnesses: Witnesses,
    /// Packets of each direction.
    sent: Both<u64>,
    first_ns: i64,
    last_ns: i64,
    /// Time from a segment of each direction to the first acknowledgement of it, the least.
    waits: Both<Option<i64>>,
    /// A segment whose acknowledgement is awaited: what acknowledges it, and when it passed.
    probes: Both<Option<(u32, i64, Mark)>>,
    begins: Both<Option<u32>>,
    highest: Both<Option<u32>>,
    /// Time from a timestamp of each direction to its first echo, the least; the newest timestamp; one whose echo is awaited.
    echo_waits: Both<Option<i64>>,
    stamps: Both<Option<u32>>,
    echoes: Both<Option<(u32, i64)>>,
    /// When the SYN of each direction passed first.
    opened: Both<Option<i64>>,
    /// Whole segments of each direction, and how many of them have a wrong checksum.
    whole: Both<u64>,
    wrong: Both<u64>,
}

impl Seen {
    /// 1 at the first end, 0 at the other: an answer takes as long as the way to the end that gives it. What sends no data
    /// is answered by the echoes of its timestamps.
    pub fn nearness(&self) -> Option<f64> {
        match [0, 1].map(|direction| self.waits[direction].or(self.echo_waits[direction])) {
            [Some(first), Some(second)] if first.saturating_add(second) > 0 => {
                let first = first as f64;
                Some(first / (first + second as f64))
            }
            _ => None,
        }
    }

    /// The direction of which most packets are: 0 of the end with the lower address.
    pub fn sender(&self) -> usize {
        usize::from(self.sent[1] > self.sent[0])
    }

    /// When SYN and SYN/ACK of a flow passed that `opener` opened.
    pub fn handshake(&self, opener: usize) -> Option<(i64, i64)> {
        Some((self.opened[opener]?, self.opened[1 - opener]?))
    }

    /// Whether the checksums of a direction are yet to be filled in by the sender's interface, and say nothing.
    pub fn offloads(&self, direction: usize) -> bool {
        2 * self.wrong[direction] >= self.whole[direction]
    }

    pub fn taps(&self) -> impl Iterator<Item = Tap> {
        std::iter::once(self.tap).chain(self.others.iter().copied())
    }

    /// Whether `next` goes on where this ends, as the next of the files does into which a capture was cut: it begins later, and
    /// behind the middle of what was seen here. What saw the same traffic by another clock begins before it.
    fn is_continued_by(&self, next: &Self) -> bool {
        let apart = match (self.nearness(), next.nearness()) {
            (Some(here), Some(there)) => (here - there).abs(),
            _ => 0.0,
        };
        if next.first_ns < self.last_ns || apart > 0.5 {
            return false;
        }
        let mut told = [0, 1].into_iter().filter_map(|direction| {
            let (from, to) = (self.begins[direction]?, self.highest[direction]?);
            let middle = from.wrapping_add(to.wrapping_sub(from).div_ceil(2));
            Some(!before(next.begins[direction]?, middle))
        });
        told.next().is_some_and(|first| first && told.all(|it| it))
    }

    fn continue_with(&mut self, next: Self) {
        self.others.extend(next.taps());
        self.last_ns = next.last_ns;
        for direction in 0..2 {
            self.sent[direction] += next.sent[direction];
            for (own, other) in [
                (&mut self.waits, next.waits),
                (&mut self.echo_waits, next.echo_waits),
            ] {
                own[direction] = own[direction].into_iter().chain(other[direction]).min();
            }
            self.highest[direction] = next.highest[direction].or(self.highest[direction]);
            self.opened[direction] = self.opened[direction].or(next.opened[direction]);
            self.whole[direction] += next.whole[direction];
            self.wrong[direction] += next.wrong[direction];
        }
    }

    fn see(&mut self, direction: usize, packet: &Packet) {
        self.sent[direction] += 1;
        self.last_ns = packet.time_ns;
        self.witnesses.see(direction, packet);
        let segment = &packet.segment;
        if let Some(intact) = packet.intact {
            self.whole[direction] += 1;
            self.wrong[direction] += u64::from(!intact);
        }
        if segment.flags.contains(Flags::SYN) {
            self.opened[direction].get_or_insert(packet.time_ns);
        }
        if segment.flags.contains(Flags::ACK)
            && let Some((awaited, since, _)) = self.probes[1 - direction]
            && !before(segment.ack, awaited)
        {
            lessen(
                &mut self.waits[1 - direction],
                packet.time_ns.saturating_sub(since),
            );
            self.probes[1 - direction] = None;
        }
        self.see_timestamps(direction, packet);
        let len = segment.seq_len();
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.begins[direction].get_or_insert(segment.seq);
        if len == 0 {
            return;
        }
        let end = segment.seq.wrapping_add(len);
        let again = self.highest[direction].is_some_and(|highest| !before(highest, end));
        let mark = Mark::of(segment, packet.identification);
        if !again {
            self.highest[direction] = Some(end);
            self.probes[direction].get_or_insert((end, packet.time_ns, mark));
        } else if self.probes[direction]
            .is_some_and(|(awaited, _, first)| awaited == end && first != mark)
        {
            // Which of the two is acknowledged nobody can tell.
            self.probes[direction] = None;
        }
    }

    fn see_timestamps(&mut self, direction: usize, packet: &Packet) {
        let Some((value, echo)) = packet.segment.timestamps else {
            return;
        };
        if let Some((awaited, since)) = self.echoes[1 - direction]
            && !before(echo, awaited)
        {
            if echo == awaited {
                lessen(
                    &mut self.echo_waits[1 - direction],
                    packet.time_ns.saturating_sub(since),
                );
            }
            self.echoes[1 - direction] = None;
        }
        let newest = self.stamps[direction];
        if newest.is_none_or(|newest| before(newest, value)) {
            self.stamps[direction] = Some(value);
            // The first that is seen may have passed before.
            if newest.is_some() {
                self.echoes[direction].get_or_insert((value, packet.time_ns));
            }
        }
    }
}

fn lessen(least: &mut Option<i64>, wait: i64) {
    *least = Some(least.map_or(wait, |least| least.min(wait)));
}

/// Whether a sequence number is before another (RFC 9293 section 3.4).
pub fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Surveys every flow.
#[derive(Debug, Default)]
pub struct Survey {
    pub flows: Flows,
    pub found: Vec<Surveyed>,
    pub packets: u64,
    /// As far as an earlier survey knows them.
    places: Places,
}

impl Survey {
    /// A survey that takes those taps together which this one found to be one place; absent if there are none.
    pub fn again(&self) -> Option<Self> {
        let places = places::places(&self.found);
        (!places.is_empty()).then(|| Self {
            places,
            ..Self::default()
        })
    }

    /// Surveys at most so many packets. `progress` is told how many, and ends it by giving false; whether it did not.
    pub fn read(
        &mut self,
        files: &mut Merged,
        most: u64,
        mut progress: impl FnMut(u64) -> bool,
    ) -> bool {
        while self.packets < most
            && let Some(packet) = files.next()
        {
            self.see(&packet);
            if self.packets % STEP == 0 && !progress(self.packets) {
                return false;
            }
        }
        true
    }

    fn see(&mut self, packet: &Packet) {
        self.packets += 1;
        let (flow, forward) = self.flows.locate(packet);
        let direction = usize::from(!forward);
        if flow == self.found.len() {
            let ends = if forward {
                (packet.source, packet.destination)
            } else {
                (packet.destination, packet.source)
            };
            self.found.push(Surveyed::new(ends, packet.time_ns));
        }
        let tap = places::standing_for(&self.places, flow, packet.tap);
        self.found[flow].see(direction, packet, tap);
    }

    /// Sets the times of files right whose clocks are ahead, and takes together the taps that saw a flow one after the other.
    pub fn settle(&mut self, ahead: &[i64]) {
        for flow in &mut self.found {
            for seen in &mut flow.taps {
                let ahead = ahead[usize::from(seen.tap.file)];
                seen.first_ns = seen.first_ns.saturating_sub(ahead);
                seen.last_ns = seen.last_ns.saturating_sub(ahead);
            }
            let first = flow.taps.iter().map(|seen| seen.first_ns).min();
            flow.first_ns = first.unwrap_or(flow.first_ns);
            let mut places: Vec<Seen> = Vec::with_capacity(flow.taps.len());
            for seen in std::mem::take(&mut flow.taps) {
                let before = places
                    .iter_mut()
                    .filter(|place| place.is_continued_by(&seen))
                    .max_by_key(|place| place.last_ns);
                match before {
                    Some(place) => place.continue_with(seen),
                    None => places.push(seen),
                }
            }
            flow.taps = places;
        }
    }

    pub fn flow(&self, flow: FlowId) -> &Surveyed {
        &self.found[flow]
    }
}

impl Surveyed {
    fn new(ends: (SocketAddr, SocketAddr), first_ns: i64) -> Self {
        Self {
            ends,
            first_ns,
            opener: None,
            initial: [None; 2],
            capable: None,
            join: None,
            multipath: false,
            lowest: [None; 2],
            acked: [None; 2],
            mapped_from: [None; 2],
            data: [None; 2],
            short_data: [None; 2],
            taps: Vec::new(),
            apart: Vec::new(),
        }
    }

    /// `tap` stands for the place that has the packet.
    fn see(&mut self, direction: usize, packet: &Packet, tap: Tap) {
        for pair in places::apart(&self.taps, direction, packet, tap) {
            let known = |&(a, b): &Apart| (a, b) == pair || (b, a) == pair;
            if !self.apart.iter().any(known) {
                self.apart.push(pair);
            }
        }
        let seen = match self.taps.iter_mut().find(|seen| seen.tap == tap) {
            Some(seen) => seen,
            None => {
                self.taps.push(Seen {
                    tap,
                    others: Vec::new(),
                    witnesses: Witnesses::default(),
                    sent: [0; 2],
                    first_ns: packet.time_ns,
                    last_ns: packet.time_ns,
                    waits: [None; 2],
                    probes: [None; 2],
                    begins: [None; 2],
                    highest: [None; 2],
                    echo_waits: [None; 2],
                    stamps: [None; 2],
                    echoes: [None; 2],
                    opened: [None; 2],
                    whole: [0; 2],
                    wrong: [0; 2],
                });
                self.taps.last_mut().expect("pushed above")
            }
        };
        if packet.tap != tap && !seen.others.contains(&packet.tap) {
            seen.others.push(packet.tap);
        }
        seen.see(direction, packet);
        let segment = &packet.segment;
        if segment.flags.contains(Flags::SYN) {
            self.initial[direction] = Some(segment.seq);
            self.opener = Some(if segment.flags.contains(Flags::ACK) {
                1 - direction
            } else {
                direction
            });
        } else if !segment.flags.contains(Flags::RST) {
            let lowest = self.lowest[direction].get_or_insert(segment.seq);
            let earlier = lowest.wrapping_sub(segment.seq);
            if before(segment.seq, *lowest) && earlier < STRAGGLE {
                *lowest = segment.seq;
            }
        }
        if segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::RST) {
            self.acked[1 - direction].get_or_insert(segment.ack);
        }
        if let Some(dss) = segment.dss {
            self.multipath = true;
            match dss.mapping.map(|mapping| mapping.dsn) {
                Some(Dsn::Long(number)) => self.see_data(direction, Some(number.get()), 0),
                Some(Dsn::Short(number)) => self.see_data(direction, None, number),
                None => {}
            }
            match dss.data_ack {
                Some(DataAck::Long(number)) => self.see_data(1 - direction, Some(number.get()), 0),
                Some(DataAck::Short(number)) => self.see_data(1 - direction, None, number),
                None => {}
            }
            if let Some(mapping) = dss.mapping
                && mapping.subflow_seq != 0
                && segment.payload.len > 0
            {
                let begins = segment.seq.wrapping_sub(mapping.subflow_seq);
                let known = self.mapped_from[direction].get_or_insert(begins);
                if before(begins, *known) {
                    *known = begins;
                }
            }
        }
        if segment.rare.is_some() {
            self.options(direction, segment);
        }
    }

    fn see_data(&mut self, direction: usize, whole: Option<u64>, short: u32) {
        if let Some(whole) = whole {
            self.data[direction].get_or_insert(whole);
        }
        self.short_data[direction].get_or_insert(whole.map_or(short, |whole| whole as u32));
    }

    fn options(&mut self, direction: usize, segment: &Segment) {
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        let answers = segment.flags.contains(Flags::SYN | Flags::ACK);
        for option in segment.mptcp() {
            self.multipath = true;
            match option {
                MptcpOption::Capable(option) => {
                    let capable = self.capable.get_or_insert_default();
                    // The answer's version is the one that is spoken (RFC 8684 section 3.1).
                    if !opens || capable.version.is_none() {
                        capable.version = Some(option.version);
                    }
                    capable.asked |= opens;
                    capable.answered |= answers;
                    if option.sender_key.is_some() {
                        capable.keys[direction] = option.sender_key;
                    }
                    if option.receiver_key.is_some() {
                        capable.keys[1 - direction] = option.receiver_key;
                    }
                }
                MptcpOption::Join(option) => {
                    let join = self.join.get_or_insert_default();
                    match *option {
                        MpJoin::Syn {
                            backup,
                            token,
                            nonce,
                            ..
                        } => {
                            join.token = Some(token);
                            join.backup |= backup;
                            join.nonces[direction] = Some(nonce);
                        }
                        MpJoin::SynAck {
                            backup,
                            hmac,
                            nonce,
                            ..
                        } => {
                            join.backup |= backup;
                            join.answered = Some(hmac);
                            join.nonces[direction] = Some(nonce);
                        }
                        MpJoin::Ack { hmac } => join.confirmed = Some(hmac),
                    }
                }
                _ => {}
            }
        }
    }
}
