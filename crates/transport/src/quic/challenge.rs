//! Challenges to the address of a path (RFC 9000 section 8.2).

use crate::{NEVER, Nanos};

/// Challenges in flight; the oldest are forgotten.
const MOST_ASKED: usize = 8;

/// What the address of a path was asked, and is to be asked.
#[derive(Debug, Default)]
pub(super) struct Challenges {
    /// Those in flight, and whether each went in a datagram of the least length that every path takes.
    asked: Vec<(u64, bool)>,
    /// When the last and the first were sent.
    last_at: Nanos,
    first_at: Option<Nanos>,
    due: bool,
}

impl Challenges {
    /// One is to be sent.
    pub fn due(&self) -> bool {
        self.due
    }

    /// Another one is to be sent; any answer will do (RFC 9000 section 8.2.3).
    pub fn ask(&mut self) {
        self.due = true;
    }

    /// Another address is to be asked.
    pub fn begin(&mut self) {
        *self = Self {
            due: true,
            ..Self::default()
        };
    }

    /// The validation begins anew at the same address.
    pub fn persist(&mut self) {
        self.first_at = None;
        self.due = true;
    }

    /// Nothing is to be asked any more.
    pub fn settle(&mut self) {
        *self = Self::default();
    }

    /// One leaves; `full`: in a datagram of the least length that every path takes.
    pub fn on_sent(&mut self, data: u64, full: bool, now: Nanos) {
        if self.asked.len() == MOST_ASKED {
            self.asked.remove(0);
        }
        self.asked.push((data, full));
        self.last_at = now;
        self.first_at.get_or_insert(now);
        self.due = false;
    }

    /// Of an answer to one of them: whether that one was of full length.
    pub fn answered(&self, data: u64) -> Option<bool> {
        let (_, full) = self.asked.iter().find(|(asked, _)| *asked == data)?;
        Some(*full)
    }

    /// When the first was sent.
    pub fn begun_at(&self) -> Option<Nanos> {
        self.first_at
    }

    /// When the next one is sent, since none was answered: as seldom as probes are (RFC 9000 section 8.2.1).
    pub fn next_at(&self, timeout: Nanos) -> Nanos {
        match self.asked.len() {
            0 => NEVER,
            _ if self.due => NEVER,
            so_many => self.last_at + (timeout << (so_many - 1)),
        }
    }
}
