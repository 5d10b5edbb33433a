//! One end of an application's connection: the transport, its flows in the network, its timer.

use std::collections::VecDeque;
use std::net::SocketAddr;

use polypath_net::TimerId;
use polypath_transport::{Connection, NEVER, Nanos, Segment};

use crate::alarm::Alarm;
use crate::application::Side;
use crate::carrier::Carrier;
use crate::plan::Plan;
use crate::quic::Quic;

/// What an application reads that has no bound.
pub(crate) const ALL: u64 = u64::MAX;

pub(crate) struct Endpoint {
    /// Absent until the connection begins on this side.
    pub connection: Option<Carrier>,
    pub node: usize,
    pub application: usize,
    pub side: Side,
    /// Flow of each subflow or path in the direction from here.
    pub flows: Vec<u32>,
    /// The number of each subflow or path in its connection, the same at both ends.
    pub numbers: Vec<u32>,
    /// Has it called when its connection's deadline comes, or its application wants it.
    pub alarm: Alarm,
    /// When the application wants to be called.
    pub wake: Nanos,
    /// Bytes that the application reads at most; [`ALL`] of one that reads all that there is.
    pub holds: u64,
    /// The peer admitted no further stream when the application wanted one.
    pub wants_stream: bool,
    /// Bytes that the application wrote.
    pub written: u64,
    pub received: Received,
    /// The application was told that the peer's stream ended.
    pub end_seen: bool,
    pub established_at: Option<Nanos>,
    pub ended_at: Option<Nanos>,
    /// What the host's queues still hold.
    pub leaving: Leaving,
}

/// In-order bytes that an application read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub bytes: u64,
    pub first_at: Option<Nanos>,
    pub last_at: Option<Nanos>,
}

impl Received {
    #[inline(always)]
    pub fn add(&mut self, bytes: u64, now: Nanos) {
        if bytes > 0 {
            self.bytes += bytes;
            self.first_at.get_or_insert(now);
            self.last_at = Some(now);
        }
    }
}

/// Segments in queues of their host, by when they leave them.
#[derive(Debug)]
pub(crate) struct Leaving {
    queue: VecDeque<(Nanos, Held)>,
    /// When the first of them leaves.
    first_at: Nanos,
}

impl Default for Leaving {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            first_at: NEVER,
        }
    }
}

/// A segment in the queue of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub subflow: usize,
    /// Of its payload.
    pub bytes: u32,
}

impl Leaving {
    /// Of those that leave at the same time the first to be added leaves first.
    pub fn add(&mut self, at: Nanos, held: Held) {
        let place = self.queue.partition_point(|(other, _)| *other <= at);
        self.queue.insert(place, (at, held));
        self.first_at = self.first_at.min(at);
    }

    pub fn first_at(&self) -> Nanos {
        self.first_at
    }

    /// The next that has left by `now`.
    pub fn pop(&mut self, now: Nanos) -> Option<Held> {
        if self.first_at > now {
            return None;
        }
        let (_, held) = self.queue.pop_front()?;
        self.first_at = self.queue.front().map_or(NEVER, |(at, _)| *at);
        Some(held)
    }
}

impl Endpoint {
    pub fn new(node: usize, side: Side, timer: TimerId, application: usize) -> Self {
        Self {
            connection: None,
            node,
            application,
            side,
            flows: Vec::new(),
            numbers: Vec::new(),
            alarm: Alarm::new(timer),
            wake: NEVER,
            holds: ALL,
            wants_stream: false,
            written: 0,
            received: Received::default(),
            end_seen: false,
            established_at: None,
            ended_at: None,
            leaving: Leaving::default(),
        }
    }

    /// The number of a subflow or path in its connection; its place here where it has none yet.
    pub fn number(&self, place: usize) -> u32 {
        self.numbers.get(place).copied().unwrap_or(place as u32)
    }

    /// The place here of the subflow or path with this number.
    pub fn numbered(&self, number: u32) -> Option<usize> {
        self.numbers.iter().position(|&known| known == number)
    }

    /// Whether it is a server's at this port of a node.
    pub fn listens(&self, plan: &Plan, node: usize, port: u16) -> bool {
        self.side == Side::Server
            && self.node == node
            && plan.applications[self.application].port == port
    }

    /// Whether the token of its connection is known: in Linux a client's from its SYN on, a server's once the handshake is done.
    pub fn holds_token(&self) -> bool {
        self.tcp().is_some_and(|connection| {
            connection.ended().is_none() && (self.side == Side::Client || connection.established())
        })
    }

    /// Whether an MP_JOIN to `local` needs a server at its port, as any other SYN, although the token says whose it is.
    pub fn needs_listener(&self, local: SocketAddr) -> bool {
        self.tcp().is_some_and(|connection| {
            connection.config().profile.joins_at_listeners() && !connection.listens(local)
        })
    }

    /// Whether its connection of TCP has not begun, or failed before it was established.
    pub fn is_free(&self) -> bool {
        self.tcp()
            .is_none_or(|connection| connection.ended().is_some() && !connection.established())
    }

    /// Whether a segment was taken back because one before it on its subflow was refused.
    pub fn took_back(&self, subflow: usize, segment: &Segment) -> bool {
        self.tcp()
            .is_some_and(|it| !it.subflows()[subflow].socket().has_sent(segment))
    }

    /// Tells the connection what the host's queue holds no longer.
    pub fn tell_left(&mut self, now: Nanos) {
        while let Some(held) = self.leaving.pop(now) {
            if let Some(connection) = self.tcp_mut() {
                connection.on_left_host(held.subflow, held.bytes, now);
            }
        }
    }

    /// The connection where it is QUIC's.
    pub fn quic(&self) -> Option<&Quic> {
        self.connection.as_ref().and_then(Carrier::quic)
    }

    pub fn quic_mut(&mut self) -> Option<&mut Quic> {
        self.connection.as_mut().and_then(Carrier::quic_mut)
    }

    /// The connection where it is TCP's.
    #[inline(always)]
    pub fn tcp(&self) -> Option<&Connection> {
        self.connection.as_ref().and_then(Carrier::tcp)
    }

    #[inline(always)]
    pub fn tcp_mut(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().and_then(Carrier::tcp_mut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_several_queues_leave_in_order() {
        let mut leaving = Leaving::default();
        let held = |subflow, bytes| Held { subflow, bytes };
        leaving.add(20, held(0, 1));
        leaving.add(30, held(0, 2));
        leaving.add(20, held(1, 3));
        leaving.add(10, held(1, 4));
        assert_eq!(leaving.first_at(), 10);
        assert_eq!(leaving.pop(9), None);
        let out: Vec<u32> = std::iter::from_fn(|| leaving.pop(20).map(|held| held.bytes)).collect();
        assert_eq!(out, [4, 1, 3]);
        assert_eq!(leaving.first_at(), 30);
    }
}
