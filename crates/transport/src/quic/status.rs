//! Whether a path is a backup, as each side declares it (RFC 10069 section 4.3).

use polypath_wire::quic::Frame;

/// The status of a path.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// This side wants it to be a backup, and the peer does.
    local: bool,
    remote: bool,
    /// Status frames that this side sent, and the newest of the peer's.
    sent: u64,
    received: Option<u64>,
}

impl Status {
    pub fn is_backup(&self) -> bool {
        self.local || self.remote
    }

    /// This side wants it to be a backup.
    pub fn local(&self) -> bool {
        self.local
    }

    /// Whether that is another wish than before.
    pub fn set_local(&mut self, backup: bool) -> bool {
        std::mem::replace(&mut self.local, backup) != backup
    }

    /// Takes what the peer says. False: something newer came before.
    pub fn take(&mut self, sequence: u64, backup: bool) -> bool {
        let newer = self.received.is_none_or(|known| sequence > known);
        if newer {
            self.received = Some(sequence);
            self.remote = backup;
        }
        newer
    }

    /// Tells the peer of the path with this id.
    pub fn tell(&mut self, path: u64) -> Frame {
        let sequence = self.sent;
        self.sent += 1;
        Frame::PathStatus {
            path,
            sequence,
            backup: self.local,
        }
    }

    /// In place of the frame with this number a newer one was sent.
    pub fn is_outdated(&self, sequence: u64) -> bool {
        sequence + 1 < self.sent
    }
}
