//! Requests to acknowledge more or less often, sent and received (draft-ietf-quic-ack-frequency-14).

use polypath_wire::quic::{AckFrequency, Frame, TransportError};

use super::packets::Packets;
use super::transfer::Transfer;
use crate::{MICROSECOND, Nanos};

impl Packets {
    /// Asks the peer for fewer acknowledgements, if it takes that: as each path opens, for a peer may apply a request to the number spaces that it
    /// has when this comes, as noq does.
    pub(super) fn ask_for_acks(&mut self) {
        let Some(wanted) = &self.config.ack_frequency else {
            return;
        };
        let Some(asked) = self.parameters.ask_for_acks(wanted) else {
            return;
        };
        // Until the frame is acknowledged, the longer delay of the two counts (section 7).
        let longest = self
            .parameters
            .peer_delay()
            .max(asked.max_delay * MICROSECOND);
        self.assume_peer_delay(longest);
        self.control.push(Frame::AckFrequency(asked));
    }

    /// The peer holds acknowledgements back for so long, as far as this side knows.
    pub(super) fn assume_peer_delay(&mut self, delay: Nanos) {
        self.parameters.assume_peer_delay(delay);
        self.compare_timeouts();
    }
}

impl Transfer {
    /// The peer asks for fewer or more acknowledgements (section 4).
    pub(super) fn on_ack_frequency(&mut self, asked: AckFrequency) {
        let before = match self.packets.parameters.take_request(&asked) {
            Ok(Some(before)) => before,
            Ok(None) => return,
            Err(reason) => {
                let frame_type = Frame::AckFrequency(asked).frame_type();
                return self.fail(TransportError::PROTOCOL_VIOLATION, frame_type, reason);
            }
        };
        let (policy, delay) = (
            self.packets.parameters.ack_policy(),
            self.packets.parameters.ack_delay(),
        );
        for member in self.packets.paths.iter_mut() {
            let received = &mut member.space_mut().received;
            received.set_policy(policy);
            received.change_delay(before, delay, self.packets.now);
        }
    }
}
