//! Keys of packets from a key log, as a network analyser makes them (RFC 9001 sections 5 and 6).

use std::collections::BTreeMap;

use polypath_wire::quic::{ConnectionId, Header, Kind, Protected, TAG_LEN};
use ring::aead::quic::{AES_128, HeaderProtectionKey};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

use crate::end::Side;

/// Of RFC 9001 section 5.2.
const INITIAL_SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
/// Sampling begins where a packet number of four bytes would end (RFC 9001 section 5.4.2).
const SAMPLE_OFFSET: usize = 4;
const LONG: u8 = 0x80;
const NUMBER_LEN: u8 = 0x03;

/// The secrets of a connection by their label in SSLKEYLOGFILE.
#[derive(Clone, Debug, Default)]
pub struct KeyLog(BTreeMap<String, Vec<u8>>);

impl KeyLog {
    /// From lines of a label, the client's random and the secret. Other lines are left out.
    pub fn new(lines: &[String]) -> Self {
        let secret = |line: &String| {
            let mut words = line.split_whitespace();
            let (label, _, secret) = (words.next()?, words.next()?, words.next()?);
            Some((label.to_string(), from_hex(secret)?))
        };
        Self(lines.iter().filter_map(secret).collect())
    }

    pub fn handshake(&self, side: Side) -> Option<&[u8]> {
        self.get(match side {
            Side::Client => "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            Side::Server => "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        })
    }

    pub fn one_rtt(&self, side: Side) -> Option<&[u8]> {
        self.get(match side {
            Side::Client => "CLIENT_TRAFFIC_SECRET_0",
            Side::Server => "SERVER_TRAFFIC_SECRET_0",
        })
    }

    fn get(&self, label: &str) -> Option<&[u8]> {
        self.0.get(label).map(Vec::as_slice)
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect()
}

/// The secrets of Initial packets, the client's first.
pub fn initial_secrets(client_destination: &ConnectionId) -> [Vec<u8>; 2] {
    let extracted = Salt::new(HKDF_SHA256, &INITIAL_SALT).extract(client_destination.as_slice());
    [&b"client in"[..], b"server in"].map(|label| expand(&extracted, label, 32))
}

/// The secret of the next key phase.
fn next_secret(secret: &[u8]) -> Vec<u8> {
    expand(&Prk::new_less_safe(HKDF_SHA256, secret), b"quic ku", 32)
}

/// Header protection of one side and level; a key update does not change it.
pub struct HeaderKey(HeaderProtectionKey);

impl HeaderKey {
    fn new(secret: &[u8]) -> Self {
        let secret = Prk::new_less_safe(HKDF_SHA256, secret);
        let key = HeaderProtectionKey::new(&AES_128, &expand(&secret, b"quic hp", 16));
        Self(key.expect("a key of 16 bytes"))
    }

    /// The header of a packet, and where in it the frames begin; the packet is left without header protection.
    fn header(
        &self,
        protected: &Protected,
        packet: &mut [u8],
        largest: Option<u64>,
    ) -> Option<(Header, usize)> {
        let (first, number) = packet.split_at_mut_checked(protected.number_offset)?;
        let first = first.first_mut()?;
        let sample = number.get(SAMPLE_OFFSET..SAMPLE_OFFSET + TAG_LEN as usize)?;
        let mask = self.0.new_mask(sample).ok()?;
        *first ^= mask[0] & if *first & LONG != 0 { 0x0f } else { 0x1f };
        let len = usize::from(*first & NUMBER_LEN) + 1;
        for (byte, mask) in number[..len].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        Some(protected.header(packet, largest))
    }
}

/// Packet protection of one side, level and key phase.
pub struct PacketKey {
    key: LessSafeKey,
    iv: [u8; 12],
}

impl PacketKey {
    fn new(secret: &[u8]) -> Self {
        let secret = Prk::new_less_safe(HKDF_SHA256, secret);
        let key = UnboundKey::new(&AES_128_GCM, &expand(&secret, b"quic key", 16));
        let iv = expand(&secret, b"quic iv", 12).try_into();
        Self {
            key: LessSafeKey::new(key.expect("a key of 16 bytes")),
            iv: iv.expect("12 bytes"),
        }
    }

    /// The frames of a packet without header protection. Nothing: it is not authentic.
    fn open(&self, packet: &[u8], payload_at: usize, number: u64) -> Option<Vec<u8>> {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= number;
        }
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (header, payload) = packet.split_at_checked(payload_at)?;
        let mut payload = payload.to_vec();
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(header), &mut payload);
        let len = plain.ok()?.len();
        payload.truncate(len);
        Some(payload)
    }
}

/// What opens the packets of one side and level, and follows its key updates.
pub struct Keys {
    header: HeaderKey,
    secret: Vec<u8>,
    previous: Option<PacketKey>,
    current: PacketKey,
    phase: bool,
}

impl Keys {
    pub fn new(secret: &[u8]) -> Self {
        Self {
            header: HeaderKey::new(secret),
            secret: secret.to_vec(),
            previous: None,
            current: PacketKey::new(secret),
            phase: false,
        }
    }

    /// The header and the frames of a packet. Nothing: it is not authentic.
    pub fn open(
        &mut self,
        protected: &Protected,
        packet: &[u8],
        largest: Option<u64>,
    ) -> Option<(Header, Vec<u8>)> {
        let packet = &mut packet.to_vec();
        let (header, at) = self.header.header(protected, packet, largest)?;
        let number = header.number;
        let phase = match header.kind {
            Kind::OneRtt { key_phase, .. } => key_phase,
            _ => false,
        };
        if phase == self.phase {
            let payload = self.current.open(packet, at, number)?;
            return Some((header, payload));
        }
        let before = self.previous.as_ref();
        if let Some(payload) = before.and_then(|key| key.open(packet, at, number)) {
            return Some((header, payload));
        }
        let secret = next_secret(&self.secret);
        let next = PacketKey::new(&secret);
        let payload = next.open(packet, at, number)?;
        self.previous = Some(std::mem::replace(&mut self.current, next));
        self.secret = secret;
        self.phase = phase;
        Some((header, payload))
    }
}

struct Len(usize);

impl KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label without context (RFC 8446 section 7.1).
fn expand(secret: &Prk, label: &[u8], len: usize) -> Vec<u8> {
    let label = [b"tls13 ", label].concat();
    let mut info = (len as u16).to_be_bytes().to_vec();
    info.push(label.len() as u8);
    info.extend(label);
    info.push(0);
    let mut out = vec![0; len];
    secret
        .expand(&[&info], Len(len))
        .and_then(|okm| okm.fill(&mut out))
        .expect("a short key");
    out
}
