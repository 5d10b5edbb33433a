//! The second reading: every segment at the tap nearest to its sender, and at the one nearest to its receiver.

use std::ops::Range;

use polypath_trace::{EventRow, HeaderRow, Recording, SackBlockRow, SegmentRow, Text};
use polypath_wire::tcp::{Flags, Segment};

use crate::blocking::Cause;
use crate::connection::Connection;
use crate::flows::Flows;
use crate::half::{Half, Mark, Sent};
use crate::hosts::Hosts;
use crate::instants;
use crate::join;
use crate::packet::Packet;
use crate::survey::Survey;

pub const SIDES: [&str; 2] = ["client", "server"];

/// What is wanted of an analysis.
pub struct Settings {
    pub interval_ns: i64,
    pub segments: bool,
}

pub struct Analysis<'a> {
    settings: &'a Settings,
    hosts: &'a Hosts,
    zero_ns: i64,
    flows: Flows,
    /// Connection and subflow of each flow, but of those that another flow stands for.
    places: Vec<Option<(usize, usize)>>,
    pub connections: Vec<Connection>,
    pub recording: Recording,
    pub end_ns: i64,
    /// Segments that arrived with a wrong checksum.
    pub corrupted: u64,
    /// Packets with data that passed one place twice.
    pub copies: u64,
}

impl<'a> Analysis<'a> {
    pub fn new(
        survey: &mut Survey,
        joined: Vec<join::Connection>,
        hosts: &'a Hosts,
        settings: &'a Settings,
        zero_ns: i64,
    ) -> Self {
        let mut places = vec![None; survey.found.len()];
        let connections: Vec<_> = joined
            .into_iter()
            .enumerate()
            .map(|(number, info)| {
                for (at, subflow) in info.subflows.iter().enumerate() {
                    places[subflow.flow] = Some((number, at));
                }
                Connection::new(info, survey)
            })
            .collect();
        let mut flows = std::mem::take(&mut survey.flows);
        flows.rewind();
        Self {
            settings,
            hosts,
            zero_ns,
            flows,
            places,
            connections,
            recording: Recording::default(),
            end_ns: 0,
            corrupted: 0,
            copies: 0,
        }
    }

    /// Absolute time of the Recording's 0.
    pub fn zero_ns(&self) -> i64 {
        self.zero_ns
    }

    /// Time of the Recording.
    pub fn relative(&self, time_ns: i64) -> i64 {
        time_ns.saturating_sub(self.zero_ns).max(0)
    }

    pub fn see(&mut self, packet: &Packet) {
        let now = self.relative(packet.time_ns);
        self.end_ns = self.end_ns.max(now);
        let (flow, forward) = self.flows.locate(packet);
        let Some((number, at)) = self.places[flow] else {
            return;
        };
        self.sample_before(number, now);
        let subflow = &self.connections[number].subflows[at].info;
        // 0: the client sends.
        let from = usize::from(usize::from(!forward) != subflow.client_direction);
        let leaves = subflow.taps[from].contains(&packet.tap);
        let comes = subflow.taps[1 - from].contains(&packet.tap);
        if leaves {
            let mark = Mark::of(&packet.segment, packet.identification);
            self.on_sent(number, at, from, &packet.segment, mark, now);
        }
        if comes {
            if packet.intact == Some(false)
                && !self.connections[number].subflows[at].info.offloads[from]
            {
                self.corrupted += 1;
                return;
            }
            self.on_received(number, at, from, &packet.segment, now);
        }
    }

    fn on_sent(
        &mut self,
        number: usize,
        at: usize,
        from: usize,
        segment: &Segment,
        mark: Mark,
        now: i64,
    ) {
        let connection = &mut self.connections[number];
        let plain = connection.is_plain();
        let near = connection.subflows[at].info.near[from];
        connection.map(at, from, segment);
        let subflow = &mut connection.subflows[at];
        if near {
            subflow.halves[1 - from].receiver_says(segment);
        }
        // Where the data is not sent, the answers' round trip is the same.
        let round_trips = [from, 1 - from].map(|side| subflow.halves[side].round_trip.smoothed_ns);
        let round_trip = round_trips.into_iter().find(|&it| it > 0).unwrap_or(0);
        let half = &mut subflow.halves[from];
        if segment.flags.contains(Flags::RST) {
            return self.row(number, at, from, segment, "ack", None, now);
        }
        let purpose = half.on_sent(segment, mark, now, round_trip);
        let payload = half.payload(segment);
        let mut kind = match &purpose {
            Sent::Copy => {
                self.copies += 1;
                return;
            }
            Sent::Nothing => "ack",
            Sent::New(_) => "data",
            Sent::Again => "retransmission",
        };
        let mut offset = None;
        if let Some(payload) = payload.filter(|payload| !payload.is_empty()) {
            offset = pieces(half, payload, plain).first().map(|(_, data)| *data);
            let mut reinjected = 0;
            if let Sent::New(fresh) = purpose {
                for (range, data) in pieces(half, fresh, plain) {
                    let data = data..data + (range.end - range.start);
                    let again = connection.streams[from].on_sent(data.clone(), at);
                    if again > 0 {
                        reinjected += again;
                        half.reinjected.insert(data);
                    }
                }
            }
            if reinjected > 0 {
                kind = "reinjection";
                half.reinjected_bytes += reinjected;
                self.event(number, from, now, "reinjection", |row| {
                    row.subflow = Some(at as u32);
                    row.value = Some(reinjected as f64);
                });
            }
        }
        self.row(number, at, from, segment, kind, offset, now);
        self.catch_up(number, at, from, segment, now);
    }

    /// A receiver near the tap acknowledges what was not seen to arrive.
    fn catch_up(&mut self, number: usize, at: usize, side: usize, segment: &Segment, now: i64) {
        let connection = &mut self.connections[number];
        if !connection.subflows[at].info.near[side] {
            return;
        }
        let plain = connection.is_plain();
        let from = 1 - side;
        let half = &connection.subflows[at].halves[from];
        let up_to = match segment.dss.and_then(|dss| dss.data_ack) {
            Some(ack) => connection.streams[from].acknowledged(ack),
            None if plain && segment.flags.contains(Flags::ACK) => half
                .position(segment.ack)
                .map(|ack| half.continued(half.fin.map_or(ack, |fin| ack.min(fin)))),
            None => None,
        };
        if let Some(offset) = up_to.filter(|&offset| connection.streams[from].lacks(offset)) {
            self.deliver(number, from, offset, now);
        }
    }

    /// A row of the table `segments`.
    #[allow(clippy::too_many_arguments)]
    fn row(
        &mut self,
        number: usize,
        at: usize,
        from: usize,
        segment: &Segment,
        kind: &'static str,
        dsn: Option<u64>,
        now: i64,
    ) {
        if !self.settings.segments {
            return;
        }
        let connection = &mut self.connections[number];
        let dss = segment.dss.unwrap_or_default();
        let ack = dss.data_ack;
        let data_ack = ack.and_then(|ack| connection.streams[1 - from].acknowledged(ack));
        let mapping = dss.mapping;
        let data_seq = mapping.and_then(|mapping| connection.streams[from].offset(mapping.dsn));
        let row = self.recording.segments.len();
        let header = HeaderRow::of_segment(row, segment, data_ack, data_seq);
        self.recording.headers.push(header);
        let halves = &connection.subflows[at].halves;
        let acknowledges = segment.flags.contains(Flags::ACK);
        let ack = halves[1 - from].position(segment.ack);
        self.recording.segments.push(SegmentRow {
            time_ns: now,
            connection: number as u32,
            side: SIDES[from].into(),
            subflow: at as u32,
            seq: halves[from].position(segment.seq).unwrap_or_default(),
            ack: ack.filter(|_| acknowledges).unwrap_or_default(),
            dsn,
            payload_bytes: segment.payload.len,
            kind: kind.into(),
        });
        for (place, &(begin, end)) in segment.sack.as_slice().iter().enumerate() {
            let answered = &halves[1 - from];
            let (Some(ack), Some(begin), Some(end)) =
                (ack, answered.position(begin), answered.position(end))
            else {
                continue;
            };
            self.recording.sack_blocks.push(SackBlockRow {
                time_ns: now,
                connection: number as u32,
                side: SIDES[from].into(),
                subflow: at as u32,
                ack,
                begin,
                end,
                duplicate: place == 0 && segment.sack.reports_duplicate(segment.ack),
            });
        }
    }

    fn on_received(&mut self, number: usize, at: usize, from: usize, segment: &Segment, now: i64) {
        let to = 1 - from;
        self.handshake(number, at, from, segment, now);
        self.signals(number, at, from, segment, now);
        self.acknowledge(number, at, from, segment, now);
        self.arrive(number, at, from, segment, now);
        let connection = &mut self.connections[number];
        let subflow = &mut connection.subflows[at];
        if segment.flags.contains(Flags::RST) && subflow.closed.is_none() {
            subflow.closed = Some(now);
            subflow.reset = true;
            self.event(number, to, now, "reset", |row| {
                row.subflow = Some(at as u32);
            });
        } else if subflow.closed.is_none() && subflow.halves.iter().all(Half::is_closed) {
            subflow.closed = Some(now);
            self.event(number, to, now, "subflow-closed", |row| {
                row.subflow = Some(at as u32);
            });
        }
        self.close(number, to, now);
    }

    fn acknowledge(&mut self, number: usize, at: usize, from: usize, segment: &Segment, now: i64) {
        let to = 1 - from;
        let connection = &mut self.connections[number];
        let plain = connection.is_plain();
        let subflow = &mut connection.subflows[at];
        let near = subflow.info.near;
        if let Some((value, echo)) = segment.timestamps
            && !near[from]
        {
            // Seen from the receiver: from an ACK of its until what is sent on it.
            if let Some(since) = subflow.halves[to].echoed(echo) {
                subflow.halves[from].sample(now - since);
            }
            let _ = value;
        }
        if let Some((value, _)) = segment.timestamps
            && !near[to]
        {
            subflow.halves[from].await_echo(value, now);
        }
        if !segment.flags.contains(Flags::ACK) || segment.flags.contains(Flags::RST) {
            return;
        }
        let half = &mut subflow.halves[to];
        let news = half.on_ack(segment, now, near[to]);
        if let Some(ack) = news
            && !near[from]
        {
            // Nothing tells when it arrived there.
            half.arrived = half.arrived.max(ack);
            half.forget(ack);
        }
        let data = segment.dss.and_then(|dss| dss.data_ack);
        let acknowledged = match data {
            Some(ack) => connection.streams[to].acknowledged(ack),
            None if plain => news.map(|ack| {
                let half = &connection.subflows[at].halves[to];
                half.continued(half.fin.map_or(ack, |fin| ack.min(fin)))
            }),
            None => None,
        };
        if let Some(offset) = acknowledged {
            connection.streams[to].on_ack(offset);
            if !near[from] {
                self.deliver(number, to, offset, now);
            }
        }
    }

    /// The receiver of `from`'s stream has everything up to an offset.
    fn deliver(&mut self, number: usize, from: usize, offset: u64, now: i64) {
        let connection = &mut self.connections[number];
        let before = connection.streams[from].delivered();
        connection.streams[from].received_up_to(offset, now);
        if connection.streams[from].delivered() > before {
            connection.first_byte.get_or_insert(now);
            connection.last_byte = Some(now);
        }
    }

    /// Payload comes to a receiver that is near the tap.
    fn arrive(&mut self, number: usize, at: usize, from: usize, segment: &Segment, now: i64) {
        let connection = &mut self.connections[number];
        let plain = connection.is_plain();
        let to = 1 - from;
        if !connection.subflows[at].info.near[to] || segment.flags.contains(Flags::RST) {
            return;
        }
        let subflow = &mut connection.subflows[at];
        let half = &mut subflow.halves[from];
        let Some(payload) = half.payload(segment) else {
            return;
        };
        let syn = u64::from(segment.flags.contains(Flags::SYN));
        let fin = u64::from(segment.flags.contains(Flags::FIN));
        let (start, end) = (payload.start - syn, payload.end + fin);
        if end <= half.arrived || start == end {
            return;
        }
        if start > half.arrived {
            half.waiting.insert(payload);
            let waits = half.waiting.total();
            subflow.queues[from].hold(waits, now);
            return;
        }
        let cause = half.cause(start);
        let first = half.arrived;
        half.arrived = end;
        while let Some(end) = half.waiting.take_from(half.arrived) {
            half.arrived = half.arrived.max(end);
        }
        let (waits, last) = (half.waiting.total(), half.arrived);
        let waited = subflow.queues[from].release(waits, now);
        subflow.waits[from][cause as usize].add(waited);
        self.bring(number, at, from, first..last, cause, plain, now);
    }

    /// A range of positions came in sequence.
    #[allow(clippy::too_many_arguments)]
    fn bring(
        &mut self,
        number: usize,
        at: usize,
        from: usize,
        range: Range<u64>,
        cause: Cause,
        plain: bool,
        now: i64,
    ) {
        let connection = &mut self.connections[number];
        let half = &mut connection.subflows[at].halves[from];
        let end = half.fin.map_or(range.end, |fin| range.end.min(fin));
        let payload = range.start.max(1)..end;
        let before = connection.streams[from].delivered();
        for (piece, data) in pieces(half, payload, plain) {
            let data = data..data + (piece.end - piece.start);
            let cause = if half.reinjected.contains(data.start) {
                Cause::Reinjected
            } else {
                cause
            };
            connection.streams[from].receive(data, at, cause, now);
        }
        half.forget(half.arrived.min(half.acked()));
        let after = connection.streams[from].delivered();
        half.reinjected.prune(after);
        if after > before {
            connection.first_byte.get_or_insert(now);
            connection.last_byte = Some(now);
        }
    }

    pub fn event(
        &mut self,
        number: usize,
        side: usize,
        now: i64,
        kind: &'static str,
        fill: impl FnOnce(&mut EventRow),
    ) {
        let first = &self.connections[number].subflows[0].info;
        let address = [first.client, first.server][side].ip();
        let mut row = EventRow {
            time_ns: now,
            kind: kind.into(),
            host: Text::from(self.hosts.name(address).to_owned()),
            connection: Some(number as u32),
            subflow: None,
            link: None,
            value: None,
            detail: "".into(),
        };
        fill(&mut row);
        self.recording.events.push(row);
    }

    /// Samples of a connection at the instants since its last packet.
    fn sample_before(&mut self, number: usize, now: i64) {
        let interval = self.settings.interval_ns;
        let sampled = &mut self.connections[number].sampled;
        for at in instants::since(sampled, now, interval) {
            self.sample(number, at);
        }
    }

    fn sample(&mut self, number: usize, at: i64) {
        crate::tables::sample(&mut self.recording, &self.connections[number], number, at);
    }

    /// The last samples and the totals.
    pub fn finish(&mut self) {
        for number in 0..self.connections.len() {
            let interval = self.settings.interval_ns;
            if let Some(sampled) = self.connections[number].sampled
                && sampled.saturating_add(interval) <= self.end_ns
            {
                self.sample(number, sampled.saturating_add(interval));
            }
            for subflow in &mut self.connections[number].subflows {
                for from in 0..2 {
                    let waited = subflow.queues[from].release(0, self.end_ns);
                    subflow.waits[from][Cause::Missing as usize].add(waited);
                }
            }
            if let (Some((at, side)), None) = (
                self.connections[number].over,
                self.connections[number].closed,
            ) {
                self.end(number, side, at);
            }
            if self.connections[number].closed.is_none() {
                for stream in &mut self.connections[number].streams {
                    stream.end(self.end_ns);
                }
            }
        }
        crate::tables::totals(&mut self.recording, &self.connections, self.hosts, |time| {
            time.saturating_sub(self.zero_ns).max(0)
        });
    }
}

/// The stream's offsets of a range of positions, piece by piece.
fn pieces(half: &Half, payload: Range<u64>, plain: bool) -> Vec<(Range<u64>, u64)> {
    if payload.is_empty() {
        return Vec::new();
    }
    if !plain {
        return half.mapped(payload);
    }
    let mapped = half.mapped(payload.clone());
    if mapped.is_empty() {
        let data = half.continued(payload.start);
        vec![(payload, data)]
    } else {
        mapped
    }
}
