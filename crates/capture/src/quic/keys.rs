//! Packet protection keys from TLS secrets, as a network analyser derives them (RFC 9001 sections 5 and 6).
//! Versions 1 and 2 are supported.

use std::collections::BTreeMap;

use polypath_wire::quic::{ConnectionId, Header, Kind, Protected, TAG_LEN, VERSION_2};
use ring::aead::quic as header_protection;
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{self, KeyType, Prk, Salt};

/// What keys of a version are made with.
struct Recipe {
    salt: [u8; 20],
    key: &'static [u8],
    iv: &'static [u8],
    header: &'static [u8],
    update: &'static [u8],
}

/// RFC 9001 sections 5.1, 5.2 and 6.1.
static FIRST: Recipe = Recipe {
    salt: [
        0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c,
        0xad, 0xcc, 0xbb, 0x7f, 0x0a,
    ],
    key: b"quic key",
    iv: b"quic iv",
    header: b"quic hp",
    update: b"quic ku",
};

/// RFC 9369 sections 3.3.1 and 3.3.2.
static SECOND: Recipe = Recipe {
    salt: [
        0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d,
        0xcb, 0xf9, 0xbd, 0x2e, 0xd9,
    ],
    key: b"quicv2 key",
    iv: b"quicv2 iv",
    header: b"quicv2 hp",
    update: b"quicv2 ku",
};

impl Recipe {
    fn of(version: u32) -> &'static Self {
        match version {
            VERSION_2 => &SECOND,
            _ => &FIRST,
        }
    }
}

/// Sampling begins where a packet number of four bytes would end (RFC 9001 section 5.4.2).
const SAMPLE_OFFSET: usize = 4;
const LONG: u8 = 0x80;
const NUMBER_LEN: u8 = 0x03;
/// Of TLS's hash with AES-128 and ChaCha20; with AES-256 it is SHA-384.
const SHORT_SECRET: usize = 32;

/// What tells the secrets of connections apart: the random of the ClientHello.
pub type Random = [u8; 32];

/// The encryption levels, each with keys and packet numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Initial,
    Handshake,
    OneRtt,
}

/// The secrets of many connections, from a key log (SSLKEYLOGFILE).
#[derive(Clone, Debug, Default)]
pub struct KeyLog(BTreeMap<(Random, Level, usize), Vec<u8>>);

impl KeyLog {
    /// Takes lines of a label, the random and the secret. Others are left out.
    pub fn read(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(label), Some(random), Some(secret)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let place = match label {
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => (Level::Handshake, 0),
                "SERVER_HANDSHAKE_TRAFFIC_SECRET" => (Level::Handshake, 1),
                "CLIENT_TRAFFIC_SECRET_0" => (Level::OneRtt, 0),
                "SERVER_TRAFFIC_SECRET_0" => (Level::OneRtt, 1),
                _ => continue,
            };
            let random = from_hex(random).and_then(|it| Random::try_from(it).ok());
            if let (Some(random), Some(secret)) = (random, from_hex(secret)) {
                self.0.insert((random, place.0, place.1), secret);
            }
        }
    }

    /// A connection that it has secrets of.
    pub fn random(&self) -> Option<Random> {
        self.0.keys().next().map(|&(random, _, _)| random)
    }

    /// Of a side: 0 the client, 1 the server.
    pub fn secret(&self, random: &Random, level: Level, side: usize) -> Option<&[u8]> {
        self.0.get(&(*random, level, side)).map(Vec::as_slice)
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair.len() {
        2 => u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok(),
        _ => None,
    };
    digits.map(byte).collect()
}

/// The secrets of a version's Initial packets, the client's first.
pub fn initial_secrets(client_destination: &ConnectionId, version: u32) -> [Vec<u8>; 2] {
    let salt = Salt::new(hkdf::HKDF_SHA256, &Recipe::of(version).salt);
    let extracted = salt.extract(client_destination.as_slice());
    [&b"client in"[..], b"server in"].map(|label| expand(&extracted, label, 32))
}

/// The algorithms of a cipher suite (RFC 9001 section 5.3).
#[derive(Clone, Copy)]
struct Suite {
    hash: hkdf::Algorithm,
    packet: &'static aead::Algorithm,
    header: &'static header_protection::Algorithm,
}

impl Suite {
    /// Those that go with a secret of this length: which of them it is, a packet tells.
    fn fitting(secret: &[u8]) -> Vec<Self> {
        if secret.len() == SHORT_SECRET {
            let suite = |packet, header| Self {
                hash: hkdf::HKDF_SHA256,
                packet,
                header,
            };
            vec![
                suite(&aead::AES_128_GCM, &header_protection::AES_128),
                suite(&aead::CHACHA20_POLY1305, &header_protection::CHACHA20),
            ]
        } else {
            vec![Self {
                hash: hkdf::HKDF_SHA384,
                packet: &aead::AES_256_GCM,
                header: &header_protection::AES_256,
            }]
        }
    }

    fn prk(self, secret: &[u8]) -> Prk {
        Prk::new_less_safe(self.hash, secret)
    }
}

/// Packet protection of one side, level and key phase.
struct PacketKey {
    key: LessSafeKey,
    iv: [u8; 12],
}

impl PacketKey {
    fn new(suite: Suite, recipe: &Recipe, secret: &[u8]) -> Option<Self> {
        let secret = suite.prk(secret);
        let key = expand(&secret, recipe.key, suite.packet.key_len());
        Some(Self {
            key: LessSafeKey::new(UnboundKey::new(suite.packet, &key).ok()?),
            iv: expand(&secret, recipe.iv, 12).try_into().ok()?,
        })
    }

    /// The frames of a packet without header protection. Nothing: it is not authentic. The path is part of the nonce (RFC 10069
    /// section 2.4); 0 is as if it was none.
    fn open(&self, packet: &[u8], payload_at: usize, number: u64, path: u64) -> Option<Vec<u8>> {
        let mut nonce = self.iv;
        let path = u32::try_from(path).ok()?;
        let place = path.to_be_bytes().into_iter().chain(number.to_be_bytes());
        for (byte, other) in nonce.iter_mut().zip(place) {
            *byte ^= other;
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
    suite: Suite,
    recipe: &'static Recipe,
    header: header_protection::HeaderProtectionKey,
    secret: Vec<u8>,
    previous: Option<PacketKey>,
    current: PacketKey,
    phase: bool,
}

impl Keys {
    /// Keys for each suite that a secret may be of.
    pub fn fitting(secret: &[u8], version: u32) -> Vec<Self> {
        let suites = Suite::fitting(secret).into_iter();
        suites
            .filter_map(|suite| Self::new(suite, Recipe::of(version), secret))
            .collect()
    }

    fn new(suite: Suite, recipe: &'static Recipe, secret: &[u8]) -> Option<Self> {
        let key = expand(&suite.prk(secret), recipe.header, suite.header.key_len());
        Some(Self {
            suite,
            recipe,
            header: header_protection::HeaderProtectionKey::new(suite.header, &key).ok()?,
            secret: secret.to_vec(),
            previous: None,
            current: PacketKey::new(suite, recipe, secret)?,
            phase: false,
        })
    }

    /// The header and the frames of a packet of a path. Nothing: it is not authentic.
    pub fn open(
        &mut self,
        protected: &Protected,
        packet: &[u8],
        largest: Option<u64>,
        path: u64,
    ) -> Option<(Header, Vec<u8>)> {
        let packet = &mut packet.to_vec();
        let (header, at) = self.unmask(protected, packet, largest)?;
        let number = header.number;
        let phase = match header.kind {
            Kind::OneRtt { key_phase, .. } => key_phase,
            _ => false,
        };
        if phase == self.phase {
            let payload = self.current.open(packet, at, number, path)?;
            return Some((header, payload));
        }
        let before = self.previous.as_ref();
        if let Some(payload) = before.and_then(|key| key.open(packet, at, number, path)) {
            return Some((header, payload));
        }
        let prk = self.suite.prk(&self.secret);
        let secret = expand(&prk, self.recipe.update, self.secret.len());
        let next = PacketKey::new(self.suite, self.recipe, &secret)?;
        let payload = next.open(packet, at, number, path)?;
        self.previous = Some(std::mem::replace(&mut self.current, next));
        self.secret = secret;
        self.phase = phase;
        Some((header, payload))
    }

    /// The header of a packet, and where in it the frames begin; the packet is left without header protection.
    fn unmask(
        &self,
        protected: &Protected,
        packet: &mut [u8],
        largest: Option<u64>,
    ) -> Option<(Header, usize)> {
        let (first, number) = packet.split_at_mut_checked(protected.number_offset)?;
        let first = first.first_mut()?;
        let sample = number.get(SAMPLE_OFFSET..SAMPLE_OFFSET + TAG_LEN as usize)?;
        let mask = self.header.new_mask(sample).ok()?;
        *first ^= mask[0] & if *first & LONG != 0 { 0x0f } else { 0x1f };
        let len = usize::from(*first & NUMBER_LEN) + 1;
        for (byte, mask) in number[..len].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
        }
        Some(protected.header(packet, largest))
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

#[cfg(test)]
mod tests {
    use polypath_wire::quic::{VERSION, split};

    use super::*;

    /// RFC 9001 and RFC 9369 appendix A.1.
    #[test]
    fn initial_secrets_are_those_of_the_rfcs() {
        let id = ConnectionId::new(&from_hex("8394c8f03e515708").unwrap());
        for (version, client, server) in [
            (
                VERSION,
                "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea",
                "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b",
            ),
            (
                VERSION_2,
                "14ec9d6eb9fd7af83bf5a668bc17a7e283766aade7ecd0891f70f9ff7f4bf47b",
                "0263db1782731bf4588e7e4d93b7463907cb8cd8200b5da55a8bd488eafc37c1",
            ),
        ] {
            let expected = [client, server].map(|it| from_hex(it).unwrap());
            assert_eq!(initial_secrets(&id, version), expected);
        }
    }

    /// RFC 9001 and RFC 9369 appendix A.5: a PING, sealed by ChaCha20-Poly1305.
    #[test]
    fn the_suite_is_found_by_opening_a_packet() {
        let secret = "9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b";
        for (version, packet) in [
            (VERSION, "4cfe4189655e5cd55c41f69080575d7999c25a5bfb"),
            (VERSION_2, "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba"),
        ] {
            let packet = from_hex(packet).unwrap();
            let protected = split(&packet, 0).next().unwrap().unwrap();
            let opened: Vec<_> = Keys::fitting(&from_hex(secret).unwrap(), version)
                .iter_mut()
                .map(|keys| keys.open(&protected, &packet, Some(654_360_563), 0))
                .collect();
            assert!(opened[0].is_none());
            let (header, frames) = opened[1].as_ref().unwrap();
            assert_eq!((header.number, frames.as_slice()), (654_360_564, &[1][..]));
        }
    }

    #[test]
    fn a_key_log_is_read_line_by_line() {
        let random = "01".repeat(32);
        let mut log = KeyLog::default();
        log.read(&format!(
            "# by hand\nCLIENT_TRAFFIC_SECRET_0 {random} 0a0b\nSERVER_TRAFFIC_SECRET_0 {random} 0\nCLIENT_RANDOM {random} 00\nshort\n"
        ));
        assert_eq!(log.secret(&[1; 32], Level::OneRtt, 0), Some(&[10, 11][..]));
        assert_eq!(log.secret(&[1; 32], Level::OneRtt, 1), None);
        assert_eq!(log.secret(&[2; 32], Level::OneRtt, 0), None);
    }
}
