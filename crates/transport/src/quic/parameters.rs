//! The declarations of both ends: transport parameters, and how often acknowledgements leave (RFC 9000 section 7.4,
//! draft-ietf-quic-ack-frequency-14).

use polypath_wire::quic::{AckFrequency, Frame, TransportParameters};

use super::ack_frequency::{Frequency, Policy};
use crate::{MILLISECOND, Nanos, settings};

/// The parameters of both ends.
pub(super) struct Parameters {
    own: TransportParameters,
    /// Defaults of the RFC until the peer's have come.
    peer: TransportParameters,
    peer_came: bool,
    frequency: Frequency,
}

impl Parameters {
    pub fn new(own: TransportParameters) -> Self {
        let peer = TransportParameters::default();
        Self {
            frequency: Frequency::new(&own, &peer),
            own,
            peer,
            peer_came: false,
        }
    }

    pub fn own(&self) -> &TransportParameters {
        &self.own
    }

    pub fn peer(&self) -> &TransportParameters {
        &self.peer
    }

    pub fn peer_came(&self) -> bool {
        self.peer_came
    }

    /// The peer's came; [`Parameters::take`] follows if nothing speaks against them.
    pub fn note_peer(&mut self) {
        self.peer_came = true;
    }

    pub fn take(&mut self, peer: TransportParameters) {
        self.frequency.peer_delay = peer.max_ack_delay * MILLISECOND;
        self.peer = peer;
    }

    /// This side speaks RFC 10069.
    pub fn offers_multipath(&self) -> bool {
        self.own.initial_max_path_id.is_some()
    }

    /// Both sides do.
    pub fn multipath(&self) -> bool {
        self.offers_multipath() && self.peer.initial_max_path_id.is_some()
    }

    /// How long the peer may hold an acknowledgement back, as far as this side knows.
    pub fn peer_delay(&self) -> Nanos {
        self.frequency.peer_delay
    }

    pub fn assume_peer_delay(&mut self, delay: Nanos) {
        self.frequency.peer_delay = delay;
    }

    /// How long this side holds an acknowledgement back.
    pub fn ack_delay(&self) -> Nanos {
        self.frequency.delay
    }

    pub fn ack_policy(&self) -> Policy {
        self.frequency.policy
    }

    /// What the peer is asked next, if it takes requests.
    pub fn ask_for_acks(&mut self, wanted: &settings::AckFrequency) -> Option<AckFrequency> {
        self.frequency.ask(wanted, &self.peer)
    }

    /// The peer was asked for something, and takes IMMEDIATE_ACK.
    pub fn asks_for_acks(&self) -> bool {
        self.frequency.asks()
    }

    /// A request in place of which a newer one was sent.
    pub fn is_outdated(&self, frame: &Frame) -> bool {
        self.frequency.is_outdated(frame)
    }

    /// Takes a request of the peer; as [`Frequency::take`].
    pub fn take_request(&mut self, asked: &AckFrequency) -> Result<Option<Nanos>, &'static str> {
        let least = self.own.min_ack_delay.unwrap_or(0);
        self.frequency.take(asked, least)
    }
}
