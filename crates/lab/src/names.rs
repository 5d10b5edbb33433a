//! The bytes that the ends of a connection send. A receiver can check whether they are right.

use polypath_net::random;
use polypath_wire::payload;

/// Names of the payload that each end of a connection sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    own: u64,
    peers: u64,
}

impl Names {
    /// Those of an endpoint by its number; endpoints come in pairs.
    pub fn of(endpoint: usize) -> Self {
        let name = |endpoint: usize| random::mix(endpoint as u64);
        Self {
            own: name(endpoint),
            peers: name(endpoint ^ 1),
        }
    }

    fn stream(name: u64, stream: u64) -> u64 {
        random::mix(name ^ stream << 32)
    }

    /// Fills in bytes that this end sends.
    pub fn fill(self, stream: u64, offset: u64, bytes: &mut [u8]) {
        payload::fill(Self::stream(self.own, stream), offset, bytes);
    }

    /// Holds bytes that came against those that the peer sends.
    pub fn came(self, stream: u64, offset: u64, bytes: &[u8]) {
        let sent = payload::check(Self::stream(self.peers, stream), offset, bytes);
        debug_assert_eq!(sent, Ok(()), "stream {stream} from {offset} on");
    }

    /// Fills in the bytes of a datagram, by its number.
    pub fn fill_datagram(self, number: u64, bytes: &mut [u8]) {
        payload::fill(self.own, number * u64::from(u16::MAX), bytes);
    }
}
