//! Cryptography for rustls that draws from a seeded stream.
//!
//! rustls asks a static object for random bytes. So a thread-local variable holds the stream of a session while rustls
//! works for that session. At all other times it is empty: without a session there is no randomness.

use std::cell::RefCell;
use std::sync::Arc;

use rand::RngCore;
use rand_pcg::Pcg64Mcg;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::ring::default_provider;
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret,
    SupportedKxGroup,
};
use rustls::{Error, NamedGroup, PeerMisbehaved, SupportedCipherSuite};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

/// The only one: every implementation of QUIC has it (RFC 9001 section 5.2 uses it for Initial packets).
pub(super) static SUITE: SupportedCipherSuite = TLS13_AES_128_GCM_SHA256;

thread_local! {
    static STREAM: RefCell<Option<Pcg64Mcg>> = const { RefCell::new(None) };
}

/// Runs `work` with `random` as the source of what TLS draws in it.
///
/// # Panics
/// `work` panics.
pub fn drawing_from<T>(random: &mut Pcg64Mcg, work: impl FnOnce() -> T) -> T {
    let outer = STREAM.replace(Some(random.clone()));
    let result = work();
    *random = STREAM
        .replace(outer)
        .expect("nothing else takes the stream");
    result
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![SUITE],
        kx_groups: vec![&SeededX25519],
        secure_random: &Seeded,
        ..default_provider()
    })
}

#[derive(Debug)]
struct Seeded;

impl SecureRandom for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        STREAM.with_borrow_mut(|stream| {
            stream.as_mut().ok_or(GetRandomFailed)?.fill_bytes(bytes);
            Ok(())
        })
    }
}

/// RFC 7748 section 6.1.
#[derive(Debug)]
struct SeededX25519;

impl SupportedKxGroup for SeededX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut secret = [0; 32];
        Seeded.fill(&mut secret)?;
        Ok(Box::new(Exchange {
            secret,
            public: x25519(secret, X25519_BASEPOINT_BYTES),
        }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Exchange {
    secret: [u8; 32],
    public: [u8; 32],
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let refused = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);
        let peer = peer.try_into().map_err(|_| refused.clone())?;
        let shared = x25519(self.secret, peer);
        // RFC 8446 section 7.4.2: a public value of small order gives zero.
        if shared == [0; 32] {
            return Err(refused);
        }
        Ok(SharedSecret::from(shared.as_slice()))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}
