//! A path of a connection of QUIC: a pair of addresses and ports, and what client and server sent on it.

use std::net::SocketAddr;
use std::ops::Range;

use super::connection::Opened;
use crate::half::RoundTrip;
use crate::packet::Tap;

/// A packet on its way.
#[derive(Debug)]
pub struct Sent {
    pub at: i64,
    pub path: usize,
    pub eliciting: bool,
    /// Of streams.
    pub data: Vec<(u64, Range<u64>)>,
}

/// What one side sent on a path.
#[derive(Debug, Default)]
pub struct Side {
    /// Where its datagrams were seen.
    pub tap: Option<Tap>,
    pub datagrams: u64,
    /// Payload of UDP.
    pub bytes: u64,
    /// Of streams: for the first time, again, and after another path had carried it.
    pub sent_bytes: u64,
    pub again_bytes: u64,
    pub reinjected_bytes: u64,
    pub acked_bytes: u64,
    pub in_flight: u32,
    pub lost: u64,
    /// From the place of capture to the other side and back.
    pub round_trip: RoundTrip,
    first_ns: Option<i64>,
}

#[derive(Debug)]
pub struct Path {
    pub client: SocketAddr,
    pub server: SocketAddr,
    /// The client's and the server's.
    pub sides: [Side; 2],
    /// When the answer to an answer passed: the place of capture divides the first round trip.
    answered_ns: Option<i64>,
}

impl Path {
    pub fn new(client: SocketAddr, server: SocketAddr) -> Self {
        Self {
            client,
            server,
            sides: Default::default(),
            answered_ns: None,
        }
    }

    /// When both sides had sent something.
    pub fn answered(&self) -> Option<i64> {
        let [first, second] = [0, 1].map(|side| self.sides[side].first_ns);
        Some(first?.max(second?))
    }

    pub fn on_datagram(&mut self, from: usize, len: usize, tap: Tap, now: i64) {
        if let (None, Some(asked), Some(answered)) = (
            self.answered_ns,
            self.sides[from].first_ns,
            self.sides[1 - from].first_ns,
        ) && asked < answered
        {
            self.answered_ns = Some(now);
            self.sides[from].round_trip.sample(answered - asked);
            self.sides[1 - from].round_trip.sample(now - answered);
        }
        let side = &mut self.sides[from];
        side.first_ns.get_or_insert(now);
        side.tap.get_or_insert(tap);
        side.datagrams += 1;
        side.bytes += len as u64;
    }

    pub fn on_packet(&mut self, from: usize, opened: &Opened, eliciting: bool) {
        let side = &mut self.sides[from];
        let new = opened.data - opened.again - opened.reinjected;
        side.sent_bytes += new;
        side.again_bytes += opened.again;
        side.reinjected_bytes += opened.reinjected;
        side.in_flight += u32::from(eliciting);
    }

    pub fn on_acked(&mut self, from: usize, sent: &Sent) {
        self.sides[from].leave(sent);
        let data = sent.data.iter().map(|(_, range)| range.end - range.start);
        self.sides[from].acked_bytes += data.sum::<u64>();
    }

    pub fn on_lost(&mut self, from: usize, sent: &Sent) {
        self.sides[from].leave(sent);
        self.sides[from].lost += 1;
    }

    pub fn round_trip(&mut self, from: usize, ns: i64) {
        self.sides[from].round_trip.sample(ns);
    }

    /// How much of a round trip lies beyond the place of capture, of the client's packets: 1 at the client.
    pub fn nearness(&self) -> Option<f64> {
        let [client, server] = [0, 1].map(|side| self.sides[side].round_trip.smoothed_ns as f64);
        (client + server > 0.0).then(|| client / (client + server))
    }
}

impl Side {
    fn leave(&mut self, sent: &Sent) {
        self.in_flight -= u32::from(sent.eliciting).min(self.in_flight);
    }
}
