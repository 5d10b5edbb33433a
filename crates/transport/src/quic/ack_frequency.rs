//! How often acknowledgements leave: this side's requests to its peer, and the peer's to it
//! (draft-ietf-quic-ack-frequency-14).
//!
//! A request holds for the connection, and so for the number space of each of its paths.

use polypath_wire::quic::{AckFrequency, Frame, TransportParameters};

use super::rtt::GRANULARITY;
use crate::settings::{self, Config};
use crate::{MICROSECOND, MILLISECOND, Nanos};

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

    /// What the peer is asked next, if it takes requests.
    pub fn ask(
        &mut self,
        wanted: &settings::AckFrequency,
        peer: &TransportParameters,
    ) -> Option<AckFrequency> {
        let least = peer.min_ack_delay?;
        let delay = wanted.max_delay.unwrap_or(peer.max_ack_delay * MILLISECOND);
        let sequence = self.asked;
        self.asked += 1;
        Some(AckFrequency {
            sequence,
            eliciting_threshold: wanted.packets.saturating_sub(1).into(),
            max_delay: (delay / MICROSECOND).max(least),
            reordering_threshold: wanted.reordering.into(),
        })
    }

    /// A request in place of which a newer one was sent: it need not be repeated (section 4).
    pub fn is_outdated(&self, frame: &Frame) -> bool {
        matches!(frame, Frame::AckFrequency(made) if made.sequence + 1 < self.asked)
    }

    /// Takes a request of the peer (section 4), of whom no delay below `least` is taken. Gives the delay that was in force before; nothing
    /// where a newer request overtook this one.
    ///
    /// # Errors
    /// The delay is out of bounds.
    pub fn take(
        &mut self,
        asked: &AckFrequency,
        least: u64,
    ) -> Result<Option<Nanos>, &'static str> {
        if self.seen >= Some(asked.sequence) {
            return Ok(None);
        }
        if asked.max_delay < least || asked.max_delay >= TOO_LONG {
            return Err("a delay of acknowledgements that is out of bounds");
        }
        self.seen = Some(asked.sequence);
        self.policy = Policy::of(asked);
        Ok(Some(std::mem::replace(
            &mut self.delay,
            asked.max_delay * MICROSECOND,
        )))
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
