//! How often acknowledgements leave: what this side asks of its peer, and what the peer asks of it (draft-ietf-quic-ack-frequency-14).
//!
//! What is asked holds for the connection, and so for the number space of each of its paths.

use polypath_wire::quic::{AckFrequency, Frame, TransportError, TransportParameters};

use super::connection::Connection;
use super::rtt::GRANULARITY;
use crate::settings::Config;
use crate::{MICROSECOND, MILLISECOND, NEVER, Nanos};

/// No delay is as long (RFC 9000 section 18.2, section 4 of the draft), in microseconds.
const TOO_LONG: u64 = (1 << 14) * 1000;

/// When a packet is acknowledged at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Ack-eliciting packets that wait for an acknowledgement at most.
    pub eliciting: u32,
    /// Numbers by which a packet may be overtaken; 0: however many.
    pub reordering: u64,
}

impl Policy {
    /// Until a peer asks for another one (RFC 9000 sections 13.2.1 and 13.2.2).
    pub const USUAL: Self = Self {
        eliciting: 1,
        reordering: 1,
    };

    fn of(asked: &AckFrequency) -> Self {
        Self {
            eliciting: u32::try_from(asked.eliciting_threshold).unwrap_or(u32::MAX),
            reordering: asked.reordering_threshold,
        }
    }
}

/// What both sides have asked for.
#[derive(Debug)]
pub(super) struct Frequency {
    /// How long this side holds an acknowledgement back.
    pub delay: Nanos,
    pub policy: Policy,
    /// The largest sequence number that came.
    seen: Option<u64>,
    /// How long the peer may hold an acknowledgement back, as far as this side knows.
    pub peer_delay: Nanos,
    /// Requests that were made of the peer, who offered to take them.
    asked: u64,
}

impl Frequency {
    pub fn new(own: &TransportParameters, peer: &TransportParameters) -> Self {
        Self {
            delay: own.max_ack_delay * MILLISECOND,
            policy: Policy::USUAL,
            seen: None,
            peer_delay: peer.max_ack_delay * MILLISECOND,
            asked: 0,
        }
    }

    /// The peer was asked for something, and takes IMMEDIATE_ACK.
    pub fn asks(&self) -> bool {
        self.asked > 0
    }
}

/// The `min_ack_delay` of a side that takes ACK_FREQUENCY, in microseconds (section 3).
pub(super) fn offer(config: &Config) -> Option<u64> {
    config
        .ack_frequency
        .as_ref()
        .map(|_| GRANULARITY / MICROSECOND)
}

impl Connection {
    /// Asks the peer for fewer acknowledgements, if it takes that: as each path opens, for a peer may apply a request to the number spaces that it
    /// has when this comes, as noq does.
    pub(super) fn ask_for_acks(&mut self) {
        let (Some(asked), Some(least)) = (self.config.ack_frequency, self.peer.min_ack_delay)
        else {
            return;
        };
        let delay = asked
            .max_delay
            .unwrap_or(self.peer.max_ack_delay * MILLISECOND);
        let max_delay = (delay / MICROSECOND).max(least);
        let frame = AckFrequency {
            sequence: self.frequency.asked,
            eliciting_threshold: asked.packets.saturating_sub(1).into(),
            max_delay,
            reordering_threshold: asked.reordering.into(),
        };
        self.frequency.asked += 1;
        // Until the frame is acknowledged, the longer delay of the two counts (section 7).
        let longest = self.frequency.peer_delay.max(max_delay * MICROSECOND);
        self.assume_peer_delay(longest);
        self.control.push(Frame::AckFrequency(frame));
    }

    /// A request in place of which a newer one was sent: it need not be repeated (section 4).
    pub(super) fn is_outdated(&self, frame: &Frame) -> bool {
        matches!(frame, Frame::AckFrequency(made) if made.sequence + 1 < self.frequency.asked)
    }

    /// The peer has what it was asked for.
    pub(super) fn on_ack_frequency_delivered(&mut self, asked: AckFrequency) {
        self.assume_peer_delay(asked.max_delay * MICROSECOND);
    }

    fn assume_peer_delay(&mut self, delay: Nanos) {
        self.frequency.peer_delay = delay;
        self.compare_timeouts();
    }

    /// The peer asks for fewer or more acknowledgements (section 4).
    pub(super) fn on_ack_frequency(&mut self, asked: AckFrequency) {
        if self.frequency.seen >= Some(asked.sequence) {
            // It was overtaken by a newer one.
            return;
        }
        let least = self.local_parameters.min_ack_delay.unwrap_or(0);
        if asked.max_delay < least || asked.max_delay >= TOO_LONG {
            let frame_type = Frame::AckFrequency(asked).frame_type();
            let reason = "a delay of acknowledgements that is out of bounds";
            return self.fail(TransportError::PROTOCOL_VIOLATION, frame_type, reason);
        }
        let before = self.frequency.delay;
        let delay = asked.max_delay * MICROSECOND;
        let policy = Policy::of(&asked);
        self.frequency.seen = Some(asked.sequence);
        self.frequency.delay = delay;
        self.frequency.policy = policy;
        for member in &mut self.members {
            let received = &mut member.space.received;
            received.set_policy(policy);
            received.change_delay(before, delay, self.now);
        }
    }

    /// The peer wants to know at once what came (section 5): on `path`, whose packet says so, and on the others.
    pub(super) fn on_immediate_ack(&mut self, path: usize) {
        let now = self.now;
        for (index, member) in self.members.iter_mut().enumerate() {
            let received = &mut member.space.received;
            if index == path || received.deadline() < NEVER {
                received.expedite(now);
            }
        }
    }
}
