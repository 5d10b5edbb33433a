//! Tunnels: packets between their entry and their exit, and what became of them.

mod reorder;
mod turns;

use std::collections::{BTreeMap, VecDeque};

use polypath_net::{ChannelId, Packet};
use polypath_transport::{Nanos, SECOND};

use crate::alarm::Alarm;
use crate::application::TunnelConfig;
use crate::flow::Body;
pub(crate) use reorder::Arrived;
use reorder::Reorder;
use turns::Turns;

/// How long a packet may be under way (RFC 9293 section 3.4.1: MSL). What has not come by then was lost.
const LONGEST_LIFE: Nanos = 120 * SECOND;

/// Totals of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Packets that were routed into it.
    pub entered: u64,
    /// Those that its connection took.
    pub carried: u64,
    pub carried_bytes: u64,
    /// Those that came out.
    pub left: u64,
    pub left_bytes: u64,
    /// Not carried: the connection did not stand, the queue was full, it was too long, or of a kind that is not carried.
    pub unconnected: u64,
    pub queue_full: u64,
    pub too_long: u64,
    pub unfit: u64,
    /// Arrived behind one that was sent later.
    pub reordered: u64,
    /// Went on behind one that was sent later.
    pub late: u64,
}

/// A packet under way.
struct Inside {
    entered_at: Nanos,
    packet: Packet<Body>,
}

/// The lines of a tunnel without a connection, by turns.
#[derive(Default)]
struct Lines {
    flows: Vec<u32>,
    turns: Turns,
    /// Longest IP packet that all of them take.
    mtu: u32,
}

/// One direction of a tunnel.
pub(crate) struct Direction {
    pub tally: Tally,
    /// The channel of the link whose packets these are.
    pub channel: ChannelId,
    /// Fires when a packet has waited long enough at the exit.
    pub alarm: Alarm,
    /// The flows behind the exit, by those before the entry.
    pub onward: BTreeMap<u32, u32>,
    /// Packets in DATAGRAM frames, by number.
    framed: BTreeMap<u64, Inside>,
    frames: u64,
    /// Packets in a stream, by where each ends.
    written: VecDeque<(u64, Packet<Body>)>,
    writes_to: u64,
    reads_to: u64,
    /// Requests of CONNECT-UDP, by flow.
    requests: BTreeMap<u32, u64>,
    lines: Lines,
    highest: Option<u64>,
    reorder: Reorder<Packet<Body>>,
}

impl Direction {
    /// Of which the first `ahead` bytes of the stream are no packet's.
    pub fn new(config: &TunnelConfig, channel: ChannelId, alarm: Alarm, ahead: u64) -> Self {
        let most = usize::try_from(config.reorder_packets).unwrap_or(usize::MAX);
        Self {
            tally: Tally::default(),
            channel,
            alarm,
            onward: BTreeMap::new(),
            framed: BTreeMap::new(),
            frames: 0,
            written: VecDeque::new(),
            writes_to: ahead,
            reads_to: 0,
            requests: BTreeMap::new(),
            lines: Lines::default(),
            highest: None,
            reorder: Reorder::new(config.reorder_ns, most),
        }
    }

    /// The request of CONNECT-UDP that carries a flow.
    pub fn request(&mut self, flow: u32) -> u64 {
        let next = self.requests.len() as u64;
        *self.requests.entry(flow).or_insert(next)
    }

    fn carry(&mut self, bytes: u32) {
        self.tally.carried += 1;
        self.tally.carried_bytes += u64::from(bytes);
    }

    /// It goes over these flows from now on, with a weight for each.
    pub fn go_over(&mut self, flows: Vec<u32>, weights: impl Iterator<Item = u32>, mtu: u32) {
        let turns = Turns::new(weights);
        self.lines = Lines { flows, turns, mtu };
    }

    /// The longest packet of the lines, if there are any.
    pub fn lines_take(&self) -> Option<u32> {
        (!self.lines.flows.is_empty()).then_some(self.lines.mtu)
    }

    /// The line of the next packet, by its flow.
    pub fn next_line(&mut self) -> Option<u32> {
        let line = self.lines.turns.next()?;
        self.lines.flows.get(line).copied()
    }

    /// The number of the next frame.
    pub fn next_frame(&self) -> u64 {
        self.frames
    }

    /// The connection took a packet in its next DATAGRAM frame, or a line in its next datagram.
    pub fn frame(&mut self, packet: Packet<Body>, now: Nanos) {
        self.carry(packet.len);
        let entered_at = now;
        self.framed
            .insert(self.frames, Inside { entered_at, packet });
        self.frames += 1;
        let lost = |inside: &Inside| now - inside.entered_at > LONGEST_LIFE;
        while self.framed.first_entry().is_some_and(|it| lost(it.get())) {
            self.framed.pop_first();
        }
    }

    /// The connection took a packet in so many bytes of its stream.
    pub fn write(&mut self, packet: Packet<Body>, bytes: u32) {
        self.carry(packet.len);
        self.writes_to += u64::from(bytes);
        self.written.push_back((self.writes_to, packet));
    }

    /// Whether anything of the stream came.
    pub fn stream_came(&self) -> bool {
        self.reads_to > 0
    }

    /// Packets of the stream of which `unsent` bytes at its end have not left.
    pub fn unsent(&self, unsent: u64) -> usize {
        let sent = self.writes_to.saturating_sub(unsent);
        self.written.len() - self.written.partition_point(|(end, _)| *end <= sent)
    }

    /// A DATAGRAM frame came; packets that go on are added to `out`. False: it is a copy of one that came before, and dropped.
    pub fn on_frame(&mut self, number: u64, now: Nanos, out: &mut Vec<Packet<Body>>) -> bool {
        let Some(Inside { packet, .. }) = self.framed.remove(&number) else {
            return false;
        };
        if self.highest.is_some_and(|highest| number < highest) {
            self.tally.reordered += 1;
        }
        self.highest = self.highest.max(Some(number));
        if self.reorder.arrive(number, packet, now, out) == Arrived::Late {
            self.tally.late += 1;
        }
        true
    }

    /// In-order bytes of the stream came.
    pub fn on_bytes(&mut self, bytes: u64, out: &mut Vec<Packet<Body>>) {
        self.reads_to += bytes;
        while let Some((end, _)) = self.written.front()
            && *end <= self.reads_to
        {
            out.extend(self.written.pop_front().map(|(_, packet)| packet));
        }
    }

    /// When a packet goes on although others before it are missing.
    pub fn deadline(&self) -> Nanos {
        self.reorder.deadline()
    }

    pub fn on_time(&mut self, now: Nanos, out: &mut Vec<Packet<Body>>) {
        self.reorder.on_time(now, out);
    }
}
