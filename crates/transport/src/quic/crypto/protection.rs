//! Packet protection and header protection (RFC 9001 section 5), with the nonce of RFC 10069 section 2.4.

use std::ops::Range;

use polypath_wire::quic::{
    ConnectionId, Header, Protected, TAG_LEN, reserved_bits_clear, retry_pseudo_packet,
};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::Side;
use rustls::quic::{DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, Version};

use super::provider::SUITE;

/// Sampling begins where a packet number of four bytes would end (RFC 9001 section 5.4.2).
const SAMPLE_OFFSET: usize = 4;

/// Keys for Initial packets, from the destination of the client's first one (RFC 9001 section 5.2).
pub fn initial_keys(client_destination: &ConnectionId, side: Side) -> Keys {
    SUITE
        .tls13()
        .and_then(|suite| suite.quic_suite())
        .expect("the suite serves QUIC")
        .keys(client_destination.as_slice(), side, Version::V1)
}

/// What a packet is sealed with.
///
/// The two keys are apart because a key update changes the packet key alone (RFC 9001 section 6).
#[derive(Clone, Copy)]
pub struct Sealer<'a> {
    pub header: &'a dyn HeaderProtectionKey,
    pub packet: &'a dyn PacketKey,
    /// The path id, for 1-RTT packets once multipath is negotiated; absent otherwise.
    pub path: Option<u32>,
}

impl<'a> Sealer<'a> {
    /// Without a path.
    pub fn new(keys: &'a DirectionalKeys) -> Self {
        Self {
            header: keys.header.as_ref(),
            packet: keys.packet.as_ref(),
            path: None,
        }
    }

    /// Protects the packet that begins at `start` of `datagram` and reaches to its end, and appends the tag.
    ///
    /// `number_offset` counts from `start`, `number` is the whole packet number.
    ///
    /// # Panics
    /// If number and frames together have less than 4 bytes: there is no sample (RFC 9001 section 5.4.2).
    pub fn seal(&self, datagram: &mut Vec<u8>, start: usize, number_offset: usize, number: u64) {
        let number_len = number_len(datagram[start]);
        let (header, payload) = datagram[start..].split_at_mut(number_offset + number_len);
        let tag = match self.path {
            Some(path) => self
                .packet
                .encrypt_in_place_for_path(path, number, header, payload),
            None => self.packet.encrypt_in_place(number, header, payload),
        };
        let tag = tag.expect("a datagram is shorter than what the AEAD takes");
        datagram.extend_from_slice(tag.as_ref());

        let (first, number, sample) =
            parts(&mut datagram[start..], number_offset).expect("a packet with a sample");
        self.header
            .encrypt_in_place(sample, first, &mut number[..number_len])
            .expect("a sample of the right length");
    }
}

/// Why a packet is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// To be discarded (RFC 9001 section 5.5).
    #[error("the packet is not authentic")]
    NotAuthentic,
    /// A PROTOCOL_VIOLATION (RFC 9000 section 17.2).
    #[error("reserved bits of the header are set")]
    ReservedBits,
}

/// Removes header protection from a packet. [`Protected::header`] then reads the header, and its key phase says which packet key
/// is for [`decrypt`].
pub fn remove_header_protection(
    key: &dyn HeaderProtectionKey,
    packet: &mut [u8],
    number_offset: usize,
) -> Result<(), OpenError> {
    let (first, number, sample) = parts(packet, number_offset).ok_or(OpenError::NotAuthentic)?;
    key.decrypt_in_place(sample, first, number)
        .map_err(|_| OpenError::NotAuthentic)
}

/// Decrypts a packet whose header is without protection and ends at `payload_at`. Returns where the frames are.
pub fn decrypt(
    key: &dyn PacketKey,
    packet: &mut [u8],
    payload_at: usize,
    number: u64,
    path: Option<u32>,
) -> Result<Range<usize>, OpenError> {
    let (header, payload) = packet
        .split_at_mut_checked(payload_at)
        .ok_or(OpenError::NotAuthentic)?;
    let plain = match path {
        Some(path) => key.decrypt_in_place_for_path(path, number, header, payload),
        None => key.decrypt_in_place(number, header, payload),
    };
    let len = plain.map_err(|_| OpenError::NotAuthentic)?.len();
    if !reserved_bits_clear(packet[0]) {
        return Err(OpenError::ReservedBits);
    }
    Ok(payload_at..payload_at + len)
}

/// Opens a packet with the keys of its level. `largest` is the largest packet number received in its space.
pub fn open(
    keys: &DirectionalKeys,
    protected: &Protected,
    packet: &mut [u8],
    largest: Option<u64>,
    path: Option<u32>,
) -> Result<(Header, Range<usize>), OpenError> {
    remove_header_protection(keys.header.as_ref(), packet, protected.number_offset)?;
    let (header, payload_at) = protected.header(packet, largest);
    let payload = decrypt(
        keys.packet.as_ref(),
        packet,
        payload_at,
        header.number,
        path,
    )?;
    Ok((header, payload))
}

/// The integrity tag of a Retry packet, which is given without it (RFC 9001 section 5.8).
pub fn retry_tag(original_destination: &ConnectionId, untagged: &[u8]) -> [u8; TAG_LEN as usize] {
    const KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
    const NONCE: [u8; 12] = [
        0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
    ];
    let key = UnboundKey::new(&AES_128_GCM, &KEY).expect("a key of 16 bytes");
    let nonce = Nonce::assume_unique_for_key(NONCE);
    let pseudo = retry_pseudo_packet(original_destination, untagged);
    let tag = LessSafeKey::new(key)
        .seal_in_place_separate_tag(nonce, Aad::from(pseudo), &mut [])
        .expect("a packet is shorter than what the AEAD takes");
    tag.as_ref().try_into().expect("a tag of 16 bytes")
}

/// The first byte, the bytes that may be the packet number, and the sample.
fn parts(packet: &mut [u8], number_offset: usize) -> Option<(&mut u8, &mut [u8], &[u8])> {
    let (header, rest) = packet.split_at_mut_checked(number_offset)?;
    let (number, rest) = rest.split_at_mut_checked(SAMPLE_OFFSET)?;
    let sample = rest.get(..TAG_LEN as usize)?;
    Some((header.first_mut()?, number, sample))
}

fn number_len(first: u8) -> usize {
    usize::from(first & 0x03) + 1
}
