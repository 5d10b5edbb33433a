//! Control frames that wait to be sent, for the first time or again (RFC 9000 section 13.3). They are neither data nor
//! acknowledgements.

use std::collections::VecDeque;

use polypath_wire::quic::Frame;

/// Frames of the application space in the order in which they leave.
#[derive(Debug, Default)]
pub(super) struct Control {
    pending: VecDeque<Frame>,
}

impl Control {
    pub fn push(&mut self, frame: Frame) {
        if !self.pending.contains(&frame) {
            self.pending.push_back(frame);
        }
    }

    /// The next frame, if it has room.
    pub fn take(&mut self, room: u32) -> Option<Frame> {
        let fits = self
            .pending
            .front()
            .is_some_and(|frame| frame.len() <= room);
        if fits { self.pending.pop_front() } else { None }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.pending.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

/// What takes a frame's place when its packet was lost: newer limits for limits, nothing for what is only of use at once.
pub(super) fn repeated(frame: Frame, incoming: &super::incoming::Incoming) -> Option<Frame> {
    match frame {
        Frame::MaxData(_) => Some(Frame::MaxData(incoming.max())),
        Frame::MaxStreamData { stream, .. } => incoming
            .stream_max(stream)
            .map(|max| Frame::MaxStreamData { stream, max }),
        // Another challenge is drawn, and a response waits for it (section 13.3).
        Frame::PathChallenge(_) | Frame::PathResponse(_) | Frame::Ping | Frame::Padding(_) => None,
        Frame::ImmediateAck => None,
        // A limit that was told may have been raised since.
        Frame::DataBlocked(_) | Frame::StreamDataBlocked { .. } => None,
        other => Some(other),
    }
}
