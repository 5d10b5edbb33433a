//! What follows from the keys of Multipath TCP: tokens, initial data sequence numbers, HMACs.

use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Of the protocol: 0 hashes with SHA-1 (RFC 6824), 1 with SHA-256 (RFC 8684).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Zero,
    One,
}

impl Version {
    pub fn of(number: u8) -> Self {
        if number == 0 { Self::Zero } else { Self::One }
    }

    /// The most significant 32 bits of the key's hash (RFC 8684 section 3.2, RFC 6824 section 3.2).
    pub fn token(self, key: u64) -> u32 {
        let word = |hash: &[u8]| u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
        match self {
            Self::Zero => word(&Sha1::digest(key.to_be_bytes())),
            Self::One => word(&Sha256::digest(key.to_be_bytes())),
        }
    }

    /// The least significant 64 bits of the key's hash (RFC 8684 section 3.1, RFC 6824 section 3.1).
    pub fn initial_data_sequence(self, key: u64) -> u64 {
        let last = |hash: &[u8]| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&hash[hash.len() - 8..]);
            u64::from_be_bytes(bytes)
        };
        match self {
            Self::Zero => last(&Sha1::digest(key.to_be_bytes())),
            Self::One => last(&Sha256::digest(key.to_be_bytes())),
        }
    }

    /// The HMAC of a sender of MP_JOIN, its own key and nonce first (RFC 8684 section 3.2, RFC 6824 section 3.2).
    pub fn hmac(self, keys: (u64, u64), nonces: (u32, u32)) -> [u8; 20] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&keys.0.to_be_bytes());
        key[8..].copy_from_slice(&keys.1.to_be_bytes());
        let mut message = [0; 8];
        message[..4].copy_from_slice(&nonces.0.to_be_bytes());
        message[4..].copy_from_slice(&nonces.1.to_be_bytes());
        let mut leftmost = [0; 20];
        match self {
            Self::Zero => {
                let mut mac = Hmac::<Sha1>::new_from_slice(&key).expect("a key of any length");
                mac.update(&message);
                leftmost.copy_from_slice(&mac.finalize().into_bytes());
            }
            Self::One => {
                let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length");
                mac.update(&message);
                leftmost.copy_from_slice(&mac.finalize().into_bytes()[..20]);
            }
        }
        leftmost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digests of eight zero bytes as sha1sum and sha256sum give them.
    #[test]
    fn tokens_and_sequence_numbers_are_ends_of_the_hash() {
        assert_eq!(Version::Zero.token(0), 0x05fe_4057);
        assert_eq!(Version::One.token(0), 0xaf55_70f5);
        assert_eq!(
            Version::Zero.initial_data_sequence(0),
            0xac55_8654_f107_c7e9
        );
        assert_eq!(Version::One.initial_data_sequence(0), 0xe5b2_328d_e0e8_3dfc);
    }

    /// Of the keys 1 and 2 over the nonces 3 and 4, as Python's hmac gives them.
    #[test]
    fn the_own_key_and_nonce_come_first() {
        let start = |version: Version| version.hmac((1, 2), (3, 4))[..4].to_vec();
        assert_eq!(start(Version::Zero), [0x3e, 0x9d, 0x3c, 0x46]);
        assert_eq!(start(Version::One), [0xe5, 0xc5, 0x26, 0x5e]);
        assert_ne!(
            Version::One.hmac((2, 1), (3, 4)),
            Version::One.hmac((1, 2), (3, 4))
        );
    }
}
