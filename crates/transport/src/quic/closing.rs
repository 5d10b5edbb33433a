//! How a connection is closed and stays closed (RFC 9000 section 10.2).

use polypath_wire::quic::{Frame, TransportError};

use super::closed::Close;
use super::connection::Connection;
use super::crypto::Level;
use super::datagram_size::LEAST_DATAGRAM;
use super::packets::Packets;
use crate::CloseReason;

impl Packets {
    /// Tells the peer, at every level that it may be able to read (RFC 9000 section 10.2.3).
    pub(super) fn send_close(&mut self) {
        let Some(close) = self.lifetime.take_close(self.now) else {
            return;
        };
        let highest = [Level::OneRtt, Level::Handshake, Level::Initial]
            .into_iter()
            .find(|&level| self.handshake.writes(level));
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            let needed = !self.handshake.confirmed() || Some(level) == highest;
            if needed && self.handshake.writes(level) {
                self.send_close_at(level, close);
            }
        }
    }

    fn send_close_at(&mut self, level: Level, close: Close) {
        let path = match level {
            Level::OneRtt => {
                let timeout = self.lifetime.closing_timeout();
                let remote = self.identity.remote();
                let best = self.paths.best_for_close(remote, timeout);
                best.unwrap_or(0)
            }
            _ => 0,
        };
        let allowance = self.paths[path].reach().allowance(self.identity.client());
        let limit = allowance.min(LEAST_DATAGRAM.into()) as u32;
        let Some(mut draft) = self.draft(level, path, limit) else {
            return;
        };
        // An application's reason would show its state before the handshake is over.
        let Close {
            error,
            frame_type,
            reason,
        } = match close.frame_type {
            None if level != Level::OneRtt => Close {
                error: TransportError::APPLICATION_ERROR.0,
                frame_type: Some(0),
                reason: "",
            },
            _ => close,
        };
        let frame = Frame::ConnectionClose {
            error,
            frame_type,
            reason: reason.as_bytes().to_vec(),
        };
        if frame.len() > draft.room {
            return;
        }
        draft.push(frame);
        if level == Level::Initial && self.identity.client() {
            draft.pad_datagram();
        }
        self.send(draft);
    }

    /// A datagram came after the end: the peer was not told, or does not know yet.
    pub(super) fn answer_after_close(&mut self) {
        if self.lifetime.answers(self.now) {
            self.send_close();
        }
    }
}

impl Connection {
    /// The peer lost its state of the connection (RFC 9000 section 10.3). Nothing is sent to it any more.
    pub(super) fn on_stateless_reset(&mut self) {
        self.transfer.end(CloseReason::Reset);
        self.flush();
    }
}
