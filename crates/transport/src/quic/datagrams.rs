//! DATAGRAM frames in both directions (RFC 9221).

use std::collections::VecDeque;

use polypath_wire::quic::Frame;

/// Longest DATAGRAM frame that is accepted.
pub(super) const LONGEST: u64 = 65_535;

/// Datagrams by number and length.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    next: u64,
    waiting: VecDeque<(u64, u32)>,
    arrived: Vec<(u64, u32)>,
}

impl Datagrams {
    /// Takes one to be sent of so many bytes, unless its frame would be longer than `longest`.
    pub fn take_in(&mut self, len: u32, longest: u64) -> bool {
        let number = self.next;
        let frame = Frame::Datagram { number, len };
        if u64::from(frame.len()) > longest {
            return false;
        }
        self.next += 1;
        self.waiting.push_back((number, len));
        true
    }

    pub fn any_wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The next to be sent: its number and length.
    pub fn first(&self) -> Option<(u64, u32)> {
        self.waiting.front().copied()
    }

    /// The next was sent, or cannot be.
    pub fn drop_first(&mut self) {
        self.waiting.pop_front();
    }

    pub fn on_arrival(&mut self, number: u64, len: u32) {
        self.arrived.push((number, len));
    }

    pub fn any_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    pub fn take_arrived(&mut self) -> Vec<(u64, u32)> {
        std::mem::take(&mut self.arrived)
    }
}
