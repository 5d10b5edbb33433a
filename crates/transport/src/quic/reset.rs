//! Stateless resets: how an endpoint ends a connection whose state it has lost (RFC 9000 section 10.3).

use polypath_wire::quic::{ConnectionId, Kind, split};
use ring::hmac;

use super::id;

/// No stateless reset is shorter in bytes: it would be no packet (section 10.3).
pub(super) const LEAST: usize = 21;
/// Nor need one be longer: packets of up to one byte more may be resets themselves, and get an answer that is shorter by a byte.
const MOST: usize = 42;
const TOKEN: usize = 16;

/// The secret of which tokens are made. An endpoint that has lost a connection's state has the token of its id still (section 10.3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ResetKey([u8; 32]);

impl std::fmt::Debug for ResetKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ResetKey(..)")
    }
}

impl ResetKey {
    pub fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    pub(super) fn token(&self, id: &ConnectionId) -> [u8; TOKEN] {
        let made = self.sign(b"token", id.as_slice());
        *made.first_chunk().expect("a tag is longer")
    }

    /// The reset that answers a datagram for no connection, if it is a packet of one that may have been there and the answer is
    /// shorter than it: two endpoints that know nothing of each other end at some length (section 10.3.3).
    pub fn answer(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let len = datagram.len().saturating_sub(1).min(MOST);
        let first = split(datagram, id::LEN).next()?.ok()?;
        if len < LEAST || !matches!(first.kind, Kind::OneRtt { .. }) {
            return None;
        }
        // A short header whose other bits nobody can foretell (section 10.3, figure 10).
        let noise = self.sign(b"noise", datagram);
        let noise = noise.iter().cycle().copied();
        let mut reset: Vec<u8> = noise.take(len - TOKEN).collect();
        reset[0] = 0x40 | (reset[0] & 0x3f);
        reset.extend(self.token(&first.destination));
        Some(reset)
    }

    fn sign(&self, purpose: &[u8], of: &[u8]) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let mut context = hmac::Context::with_key(&key);
        context.update(purpose);
        context.update(of);
        let tag = context.sign();
        *tag.as_ref().first_chunk().expect("a tag of SHA-256")
    }
}
