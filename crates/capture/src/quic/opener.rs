//! What opens the packets of a connection: which secrets are its own, and the keys that follow from them.

use std::collections::BTreeMap;
use std::ops::Range;

use polypath_wire::quic::{ConnectionId, Header, Kind, Protected, VERSION, split_seen};

use super::datagram::{FIXED, Opening};
use super::keys::{KeyLog, Keys, Level, Random, initial_secrets};

/// Of a ClientHello: type, length and version stand before the random (RFC 8446 section 4.1.2).
const RANDOM: Range<usize> = 6..38;

/// Packet numbers of one side: of a level, and of a path.
pub type Space = (Level, u64, usize);

/// What came of a packet.
pub enum Outcome {
    Opened(Space, Header, Vec<u8>),
    /// Its secrets are known, and do not open it.
    Refused,
    Sealed,
}

#[derive(Default)]
pub struct Opener {
    random: Option<Random>,
    hello: BTreeMap<u64, Vec<u8>>,
    /// Destinations of the client's first packets, of which the keys of Initial packets are made.
    first_ids: Vec<ConnectionId>,
    /// How long the ids are by which client and server are addressed.
    id_len: [Option<usize>; 2],
    /// The paths that ids behind the handshake are for.
    path_of: BTreeMap<ConnectionId, u64>,
    /// Of the latest long header of client and server: the server's is the one that is agreed on (RFC 9369 section 4.1).
    versions: [Option<u32>; 2],
    /// By level, side and version.
    keys: BTreeMap<(Level, usize, u32), Vec<Keys>>,
    largest: BTreeMap<Space, u64>,
}

impl Opener {
    /// Whether the log has its secrets.
    pub fn is_known(&self, log: &KeyLog) -> bool {
        let secret = |random| log.secret(random, Level::OneRtt, 0);
        self.random.as_ref().and_then(secret).is_some()
    }

    /// Whether it has ids of several paths.
    pub fn knows_several_paths(&self) -> bool {
        self.path_of.values().any(|&path| path > 0)
    }

    /// A side says by a long header how it is addressed.
    pub fn on_opening(&mut self, opening: &Opening, from: usize) {
        self.id_len[from].get_or_insert(opening.source.len());
        self.versions[from] = Some(opening.version);
        if from == 0 && opening.initial && !self.first_ids.contains(&opening.destination) {
            self.first_ids.push(opening.destination);
            self.keys.retain(|&(level, ..), _| level != Level::Initial);
        }
    }

    pub fn on_new_id(&mut self, id: ConnectionId, path: u64) {
        self.path_of.insert(id, path);
    }

    /// The packets of a datagram that a side sent, also where the bit that is always set is not: ends may agree that it is random (RFC 9287
    /// section 3).
    pub fn packets(&self, datagram: &[u8], from: usize) -> Vec<Protected> {
        let id_len = self.id_len[1 - from].unwrap_or_default();
        let mut bytes = datagram.to_vec();
        let mut found = Vec::new();
        let mut at = 0;
        while at < bytes.len() && bytes[at] != 0 {
            bytes[at] |= FIXED;
            let Some(Ok(mut protected)) = split_seen(&bytes[at..], id_len).next() else {
                break;
            };
            protected.range = protected.range.start + at..protected.range.end + at;
            at = protected.range.end;
            found.push(protected);
        }
        found
    }

    /// Opens a packet of these bytes.
    pub fn open(
        &mut self,
        protected: &Protected,
        bytes: &[u8],
        from: usize,
        log: &KeyLog,
    ) -> Outcome {
        let level = match &protected.kind {
            Kind::Initial { .. } => Level::Initial,
            Kind::Handshake => Level::Handshake,
            Kind::OneRtt { .. } => Level::OneRtt,
            Kind::ZeroRtt | Kind::Retry { .. } | Kind::VersionNegotiation(_) => {
                return Outcome::Sealed;
            }
        };
        let path = match level {
            Level::OneRtt => self.path_of.get(&protected.destination).copied(),
            _ => None,
        };
        let path = path.unwrap_or(0);
        let space = (level, path, from);
        let largest = self.largest.get(&space).copied();
        let [client, server] = self.versions;
        let version = match level {
            Level::OneRtt => server.or(client).unwrap_or(VERSION),
            _ => protected.version,
        };
        let keys = self.keys_of(level, from, version, log);
        let known = !keys.is_empty();
        let found = keys
            .iter_mut()
            .enumerate()
            .find_map(|(place, keys)| Some((place, keys.open(protected, bytes, largest, path)?)));
        let Some((place, (header, payload))) = found else {
            return match known && level == Level::OneRtt {
                true => Outcome::Refused,
                false => Outcome::Sealed,
            };
        };
        if place > 0 && level != Level::Initial {
            // The suite is known from now on.
            let keys = keys.swap_remove(place);
            self.keys.insert((level, from, version), vec![keys]);
        }
        self.largest
            .insert(space, largest.unwrap_or(0).max(header.number));
        Outcome::Opened(space, header, payload)
    }

    /// What may open packets of a level.
    fn keys_of(&mut self, level: Level, from: usize, version: u32, log: &KeyLog) -> &mut Vec<Keys> {
        let (random, first_ids) = (&self.random, &self.first_ids);
        let make = || match level {
            Level::Initial => first_ids
                .iter()
                .flat_map(|id| Keys::fitting(&initial_secrets(id, version)[from], version))
                .collect(),
            _ => random
                .as_ref()
                .and_then(|random| log.secret(random, level, from))
                .map(|secret| Keys::fitting(secret, version))
                .unwrap_or_default(),
        };
        let keys = self.keys.entry((level, from, version)).or_insert_with(make);
        if keys.is_empty() {
            *keys = make();
        }
        keys
    }

    /// A piece of the ClientHello, whose random names the secrets. Behind a Retry it is the same one again (RFC 9000 section 17.2.5.3), but
    /// not from every client.
    pub fn hello(&mut self, offset: u64, data: &[u8]) {
        let again = data.get(RANDOM).filter(|_| offset == 0);
        if let Some(random) = again.and_then(|it| Random::try_from(it).ok()) {
            self.random = Some(random);
        }
        if self.random.is_some() || offset > RANDOM.end as u64 {
            return;
        }
        self.hello.insert(offset, data.to_vec());
        let mut whole: Vec<u8> = Vec::new();
        for (&offset, piece) in &self.hello {
            let Some(known) = (whole.len() as u64).checked_sub(offset) else {
                return;
            };
            whole.extend(piece.iter().skip(known as usize));
        }
        self.random = whole.get(RANDOM).and_then(|it| Random::try_from(it).ok());
    }
}
