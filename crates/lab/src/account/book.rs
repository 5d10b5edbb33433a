//! The account of one end of a connection: the links that bound it, and its subflows over them.

use std::collections::BTreeMap;

use polypath_net::{ChannelId, Nanos, Packet};
use polypath_transport::{Purpose, RangeSet};
use polypath_wire::quic::Frame;

use super::cause::{Cause, Charge, Kind};
use super::control::Control;
use super::line::Line;
use super::window::Window;
use crate::flow::{Body, Content};

/// A subflow or path, by its number in the connection.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The link that it is charged to, of the book's.
    pub line: Option<usize>,
    /// From the end to that link.
    pub delay: Nanos,
    /// The channels behind it.
    behind: Vec<ChannelId>,
    pub window: Window,
    /// What holds it, as the end knows.
    pub held: Option<Charge>,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    pub lines: Vec<Line>,
    lanes: BTreeMap<u32, Lane>,
    /// What passed one of the links, by stream.
    passed: BTreeMap<u64, RangeSet>,
    control: Control,
    pub established: bool,
    pub closed: bool,
}

impl Book {
    pub fn new(control: Control) -> Self {
        Self {
            control,
            ..Self::default()
        }
    }

    /// A subflow takes these channels, and is charged to the first of the book's links among them; to none where there is none.
    pub fn place(
        &mut self,
        number: u32,
        path: &[ChannelId],
        delay: impl Fn(&[ChannelId]) -> Nanos,
    ) {
        let lane = self.lanes.entry(number).or_default();
        let own = |channel: &ChannelId| self.lines.iter().position(|it| it.channel == *channel);
        let found = path.iter().enumerate();
        let found = found.filter_map(|(hop, channel)| Some((hop, own(channel)?)));
        let Some((hop, line)) = found.min_by_key(|(hop, _)| *hop) else {
            return;
        };
        lane.line = Some(line);
        lane.delay = delay(&path[..hop]);
        lane.behind = path[hop + 1..].to_vec();
    }

    /// A subflow, the link that it is charged to, and what controls its window.
    pub fn lane_and_line(&mut self, number: u32) -> (Control, &mut Lane, Option<&Line>) {
        let lane = self.lanes.entry(number).or_default();
        let line = lane.line.map(|line| &self.lines[line]);
        (self.control, lane, line)
    }

    /// A packet of its own arrived at the far end of one of the links.
    pub fn on_own(&mut self, line: usize, number: u32, packet: &Packet<Body>) {
        let length = u64::from(packet.len + self.lines[line].overhead);
        self.lines[line].waiting.leave(name(packet));
        let lane = self.lanes.get(&number);
        if lane.is_none_or(|lane| lane.line != Some(line)) {
            return self.lines[line].arrive(Cause::of(Kind::OtherPaths), length);
        }
        let (mut data, mut fresh) = (0, 0);
        if !packet.corrupted {
            for (stream, begin, end) in stretches(&packet.body) {
                data += end - begin;
                let passed = self.passed.entry(stream).or_default();
                passed.insert(begin, end, |from, to| fresh += to - from);
            }
        }
        let again = match packet.body.purpose {
            Purpose::Reinjection => Kind::Reinjected,
            _ => Kind::Retransmitted,
        };
        let line = &mut self.lines[line];
        line.arrive(Cause::of(Kind::Delivered), fresh);
        line.arrive(Cause::of(again), data - fresh);
        line.arrive(Cause::of(Kind::Headers), length - data);
    }

    /// A packet of its own was lost.
    pub fn on_lost(
        &mut self,
        number: u32,
        channel: ChannelId,
        cause: Cause,
        packet: &Packet<Body>,
    ) {
        if let Some(line) = self.lines.iter_mut().find(|it| it.channel == channel) {
            line.waiting.leave(name(packet));
        }
        let Some(lane) = self.lanes.get_mut(&number) else {
            return;
        };
        let behind = lane.behind.contains(&channel);
        let mut data = false;
        for (stream, begin, end) in stretches(&packet.body) {
            data = true;
            if let (true, Some(line), Some(link)) = (behind, lane.line, cause.link) {
                let mut lost = 0;
                let passed = self.passed.entry(stream).or_default();
                passed.remove(begin, end, |from, to| lost += to - from);
                self.lines[line].lose_behind(link, lost);
            }
        }
        if data {
            lane.window.on_lost(cause);
        }
    }
}

/// What tells a packet from the others of its end.
pub(super) fn name(packet: &Packet<Body>) -> (u32, u16) {
    (packet.flow, packet.body.identification)
}

/// The stretches of streams that a packet carries. TCP has one.
fn stretches(body: &Body) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
    let segment = match &body.content {
        Content::Tcp(segment) if segment.payload.len > 0 => Some(&segment.payload),
        _ => None,
    };
    let segment = segment.map(|it| (0, it.offset, it.offset + u64::from(it.len)));
    let datagram = match &body.content {
        Content::Quic(sealed) => sealed.datagram.as_ref(),
        _ => None,
    };
    let packets = datagram.into_iter().flat_map(|it| &it.packets);
    let frames = packets.flat_map(|it| &it.frames);
    let frames = frames.filter_map(|frame| match frame {
        Frame::Stream {
            stream,
            offset,
            len,
            ..
        } if *len > 0 => Some((*stream, *offset, offset + u64::from(*len))),
        _ => None,
    });
    segment.into_iter().chain(frames)
}
