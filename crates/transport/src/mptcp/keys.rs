//! Keys, tokens, initial data sequence numbers and HMACs (RFC 8684 sections 3.1 and 3.2).

use std::net::IpAddr;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// The token: the most significant 32 bits of the key's hash (section 3.2).
pub fn token(key: u64) -> u32 {
    let digest = Sha256::digest(key.to_be_bytes());
    u32::from_be_bytes(digest[..4].try_into().expect("four of 32 bytes"))
}

/// The initial data sequence number: the least significant 64 bits of the key's hash (section 3.1).
pub fn initial_dsn(key: u64) -> u64 {
    let digest = Sha256::digest(key.to_be_bytes());
    u64::from_be_bytes(digest[24..].try_into().expect("eight of 32 bytes"))
}

/// HMAC-SHA256 with the sender's key followed by the receiver's.
fn hmac(sender_key: u64, receiver_key: u64, message: &[&[u8]]) -> [u8; 32] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&sender_key.to_be_bytes());
    key[8..].copy_from_slice(&receiver_key.to_be_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    for part in message {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// The HMAC of MP_JOIN (section 3.2): over the sender's nonce, then the receiver's.
pub fn join_hmac(
    sender_key: u64,
    receiver_key: u64,
    sender_nonce: u32,
    receiver_nonce: u32,
) -> [u8; 32] {
    hmac(
        sender_key,
        receiver_key,
        &[&sender_nonce.to_be_bytes(), &receiver_nonce.to_be_bytes()],
    )
}

/// The leftmost 64 bits, as on the SYN/ACK.
pub fn leading_64(hmac: &[u8; 32]) -> u64 {
    u64::from_be_bytes(hmac[..8].try_into().expect("eight of 32 bytes"))
}

/// The leftmost 160 bits, as on the third ACK.
pub fn leading_160(hmac: &[u8; 32]) -> [u8; 20] {
    hmac[..20].try_into().expect("20 of 32 bytes")
}

/// The truncated HMAC of ADD_ADDR (section 3.4.1): the rightmost 64 bits over address id, address and port.
pub fn add_addr_hmac(
    sender_key: u64,
    receiver_key: u64,
    id: u8,
    address: IpAddr,
    port: u16,
) -> u64 {
    let port = port.to_be_bytes();
    let digest = match address {
        IpAddr::V4(v4) => hmac(sender_key, receiver_key, &[&[id], &v4.octets(), &port]),
        IpAddr::V6(v6) => hmac(sender_key, receiver_key, &[&[id], &v6.octets(), &port]),
    };
    u64::from_be_bytes(digest[24..].try_into().expect("eight of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of eight zero bytes begins with af5570f5 and ends with e5b2328de0e83dfc.
    #[test]
    fn token_and_idsn_are_the_ends_of_the_hash() {
        assert_eq!(token(0), 0xaf55_70f5);
        assert_eq!(initial_dsn(0), 0xe5b2_328d_e0e8_3dfc);
    }

    #[test]
    fn both_sides_compute_different_hmacs() {
        let (a, b) = (join_hmac(1, 2, 3, 4), join_hmac(2, 1, 4, 3));
        assert_ne!(a, b);
        assert_eq!(leading_64(&a).to_be_bytes(), leading_160(&a)[..8]);
    }
}
