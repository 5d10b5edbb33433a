//! The size of a path's datagrams: the limits of the peer, the interface and the path (RFC 9000 section 14, RFC 8899).

use super::id::LEN;
use crate::path::MtuDiscovery;
use crate::{Nanos, Tuple};

/// The least that a path of QUIC takes (RFC 9000 section 14), in bytes of UDP payload.
pub(super) const LEAST_DATAGRAM: u32 = 1200;
const UDP_HEADER: u32 = 8;

/// The length of datagrams, in bytes of UDP payload.
pub(super) struct DatagramSize {
    /// Longest that the interface takes.
    interface_takes: u32,
    search: MtuDiscovery,
}

/// Stream bytes in a packet full of them: without a short header with an id of eight bytes and a number of two, the fields of a STREAM
/// frame, the tag.
pub(super) fn payload(datagram: u32) -> u32 {
    datagram.saturating_sub((1 + LEN as u32 + 2) + 8 + polypath_wire::quic::TAG_LEN)
}

fn headers(tuple: Tuple) -> u32 {
    UDP_HEADER + if tuple.local.is_ipv6() { 40 } else { 20 }
}

impl DatagramSize {
    /// On an interface that takes packets of `mtu` bytes, to a peer that takes datagrams of `longest` bytes.
    pub fn new(tuple: Tuple, mtu: u32, longest: u64) -> Self {
        let headers = headers(tuple);
        let mut search = MtuDiscovery::new(true, headers, mtu);
        search.begin(LEAST_DATAGRAM, LEAST_DATAGRAM, 0);
        let mut size = Self {
            interface_takes: mtu.saturating_sub(headers),
            search,
        };
        size.limit(longest);
        size
    }

    /// The interface of its local address takes packets of so many bytes.
    pub fn set_mtu(&mut self, tuple: Tuple, mtu: u32) {
        self.interface_takes = mtu.saturating_sub(headers(tuple));
    }

    /// The peer takes datagrams of so many bytes: the search begins.
    pub fn limit(&mut self, longest: u64) {
        let longest = longest.min(u64::from(self.interface_takes)) as u32;
        self.search
            .begin(longest.max(LEAST_DATAGRAM), LEAST_DATAGRAM, 0);
    }

    /// The path is another one: the search begins again.
    pub fn restart(&mut self, longest: u64) {
        self.search.cancel();
        self.limit(longest);
    }

    /// Longest that is sent.
    pub fn longest(&self) -> u32 {
        self.search.payload(0).max(LEAST_DATAGRAM)
    }

    /// Whether a report that a datagram of `len` bytes was longer than a link's `mtu` tells anything. One below the least that a path takes is
    /// to be ignored (RFC 9000 section 14.2.1).
    pub fn on_report(&mut self, tuple: Tuple, len: u32, mtu: u32) -> bool {
        let headers = headers(tuple);
        mtu >= LEAST_DATAGRAM + headers && self.search.on_report(len + headers, mtu)
    }

    /// A longer one is to be tried.
    pub fn due(&self, now: Nanos) -> bool {
        self.search.due(now)
    }

    /// The length to try next.
    pub fn candidate(&mut self, now: Nanos) -> Option<u32> {
        let size = self.longest();
        let candidate = self.search.candidate(size, 0, now)?;
        self.search.fits(0).then_some(candidate)
    }

    /// A packet tries a length.
    pub fn on_sent(&mut self, number: u64, size: u32) {
        self.search.on_sent(number, number + 1, size, 0);
    }

    /// A packet that tried a length arrived. Gives the path's MTU if that is news.
    pub fn on_acknowledged(&mut self, number: u64) -> Option<u32> {
        self.search.on_acknowledged(number + 1)
    }

    /// A packet that tried a length was lost.
    pub fn on_lost(&mut self, number: u64) {
        self.search.on_lost(number);
    }
}
