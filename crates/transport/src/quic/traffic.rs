//! The traffic of a path, for recordings and for decisions about acknowledgements.

use polypath_wire::quic::Frame;

use crate::path::Totals;

/// Counts of a path.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    totals: Totals,
    /// Frames that came which ask to be acknowledged, and neither carry stream bytes nor only ask.
    other_frames: u64,
    /// What came on all paths when a packet of acknowledgements on this one last asked for an answer.
    asked_after: u64,
}

impl Traffic {
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Bytes leave that no path carried before.
    pub fn on_new(&mut self, bytes: u32) {
        self.totals.sent += u64::from(bytes);
    }

    /// Bytes leave that this path carried before.
    pub fn on_again(&mut self, bytes: u32) {
        self.totals.retransmitted += u64::from(bytes);
        self.totals.retransmitted_segments += 1;
    }

    /// Bytes leave that another path carried before.
    pub fn on_reinjected(&mut self, bytes: u32) {
        self.totals.sent += u64::from(bytes);
        self.totals.reinjected += u64::from(bytes);
    }

    pub fn on_received(&mut self, bytes: u32) {
        self.totals.received += u64::from(bytes);
    }

    /// A frame came that carries no stream bytes. A PING is answered, but nobody has to know whether the answer arrives.
    pub fn note_frame(&mut self, frame: &Frame) {
        let asks_only = matches!(frame, Frame::Ping | Frame::ImmediateAck);
        self.other_frames += u64::from(frame.ack_eliciting() && !asks_only);
    }

    /// Grows with everything that came and whose sender waits for the acknowledgement.
    pub fn came_for_acks(&self) -> u64 {
        self.totals.received + self.other_frames
    }

    /// The peer was asked after so much had come.
    pub fn asked_after(&self) -> u64 {
        self.asked_after
    }

    pub fn note_asked(&mut self, came: u64) {
        self.asked_after = came;
    }
}
