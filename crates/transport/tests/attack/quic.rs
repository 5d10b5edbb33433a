//! QUIC and Multipath QUIC under attack, on sealed datagrams.
//!
//! | attacker | may do | must not |
//! |---|---|---|
//! | blind | send any datagram from the right addresses and ports: Version Negotiation, Retry, Initial packets under the keys of connection IDs that it chose, short headers, stateless resets with guessed tokens | change any state or draw an answer (RFC 9000 sections 6.2, 10.3, 17.2.5.2, 21; RFC 9001 section 5) |
//! | on one path, from the end of the handshake on | alter, cut, join, drop, delay, repeat and forge its datagrams | end the connection, or have a byte delivered that was not sent (RFC 9000 section 21.1.2) |
//! | on all paths | the same | have a byte delivered that was not sent; while something gets through, stop the transfer |
//!
//! Before the handshake is over, an attacker on the path can end it (RFC 9000 section 21.1.1.3). Handshakes over
//! networks that lose and alter packets are in `quic::fuzz`.

use polypath_transport::quic::Connection;
use polypath_transport::quic::bytes::Protector;
use polypath_transport::{CloseReason, Config, MILLISECOND as MS, Nanos, SECOND, Sessions};
use rand::Rng;

use crate::attacker::Attacker;
use crate::choices::Choices;
use crate::common::{client_address, first_tuple, host, reversed};
use crate::quic_pair::{Link, Pair, Side};
use crate::{seeds, stack};

const PATIENCE: Nanos = 200 * SECOND;
/// Datagrams that an attacker may drop, so that something gets through before the idle timeout.
const LOSSES: u32 = 60;

/// What either end is.
pub type Stack = fn(&mut Choices) -> Config;

fn pair(rng: &mut Choices, paths: usize, stack: Stack) -> Pair {
    let mut stack = || Config {
        multipath: paths > 1,
        ..stack(rng)
    };
    let (client, server) = (stack(), stack());
    let links: Vec<Link> = (0..paths)
        .map(|_| Link {
            one_way: rng.random_range(1..40) * MS,
            rate: rng.random_range(5..50) * 1_000_000,
            queue: 100 * MS,
        })
        .collect();
    let sessions: [Sessions; 2] = Default::default();
    let mut meet = || {
        let (links, seed) = (links.clone(), rng.random());
        Pair::with_sessions(&client, &server, links, seed, sessions.clone()).through_bytes()
    };
    if client.resumption && server.resumption {
        // It resumes the session of a connection that nobody attacked.
        let mut first = meet();
        first.establish();
        let until = first.now + SECOND;
        first.run_until(until, |_| false);
    }
    meet()
}

#[derive(Debug, PartialEq)]
struct Snapshot {
    ended: Option<CloseReason>,
    established: bool,
    members: String,
    queue: (u64, u64),
    reassembly: u64,
    kept: (usize, usize),
    window: u64,
}

impl Snapshot {
    fn of(connection: &Connection) -> Self {
        let members = connection.members().iter();
        Self {
            ended: connection.ended(),
            established: connection.established(),
            members: members.map(|it| format!("{:?}", it.tuple())).collect(),
            queue: connection.send_queue(),
            reassembly: connection.streams().reassembly_bytes(),
            kept: connection.packets().kept(),
            window: connection.receive_window(),
        }
    }
}

fn assert_bounded(connection: &Connection) {
    let (paths, control) = connection.packets().kept();
    assert!(
        paths <= 8 && control <= 200,
        "{paths} paths, {control} frames"
    );
    assert!(connection.streams().reassembly_bytes() <= connection.buffers().1);
}

/// Any bytes after a first byte that says a kind, with connection IDs that the attacker invented.
fn invented(rng: &mut Choices) -> Vec<u8> {
    let mut bytes = Vec::new();
    match rng.random_range(0..6) {
        // Version Negotiation.
        0 => bytes.extend([0x80 | rng.random::<u8>(), 0, 0, 0, 0]),
        // Retry, Initial, 0-RTT, Handshake.
        kind @ 1..5 => bytes.extend([
            0xc0 | (4 - kind as u8) << 4 | rng.random_range(0..16),
            0,
            0,
            0,
            1,
        ]),
        _ => {
            // A short header, which also is what a stateless reset looks like.
            let len = rng.random_range(21..1_200);
            bytes.extend((0..len).map(|_| rng.random::<u8>()));
            bytes[0] = 0x40 | bytes[0] & 0x3f;
            return bytes;
        }
    }
    for _ in 0..2 {
        let len = rng.random_range(0..21u8);
        bytes.push(len);
        bytes.extend((0..len).map(|_| rng.random::<u8>()));
    }
    let rest = rng.random_range(0..1_200);
    bytes.extend((0..rest).map(|_| rng.random::<u8>()));
    bytes
}

/// The first datagram of a connection of the attacker's own: authentic, under keys of a connection ID that it chose.
fn foreign(rng: &mut Choices) -> Vec<u8> {
    let host = host(&Config::default(), vec![client_address(0)], rng.random());
    let mut connection = Connection::connect(host, first_tuple(), 0).expect("algorithms exist");
    let mut protector = Protector::new(&connection);
    let transmit = connection.transmits().pop().expect("an Initial");
    protector.seal(&mut connection, &transmit.datagram, &mut |_, _| {})
}

pub fn blind(rng: &mut Choices) {
    let paths = rng.random_range(1..3);
    let mut pair = pair(rng, paths, stack::drawn_quic);
    let bytes: [u64; 2] = [rng.random_range(1..200_000), rng.random_range(1..200_000)];
    let mut written = [false; 2];
    pair.run_until(PATIENCE, |pair| {
        write(pair, &mut written, bytes);
        for side in [Side::Client, Side::Server] {
            if !rng.random_ratio(1, 3) {
                continue;
            }
            let datagram = if rng.random_ratio(1, 8) {
                foreign(rng)
            } else {
                invented(rng)
            };
            shoot(pair, side, &datagram);
        }
        done(pair, bytes)
    });
    assert_arrived(&pair, bytes);
}

fn shoot(pair: &mut Pair, side: Side, datagram: &[u8]) {
    let state = |pair: &Pair| match side {
        Side::Client => Some(Snapshot::of(&pair.client)),
        Side::Server => pair.server.as_ref().map(Snapshot::of),
    };
    let tuple = match side {
        Side::Client => first_tuple(),
        Side::Server => reversed(first_tuple()),
    };
    // Any datagram is an occasion for what waits for one. The first says nothing.
    pair.inject(side, tuple, &[]);
    let before = state(pair);
    let answers = pair.inject(side, tuple, datagram);
    assert_eq!(before, state(pair), "{side:?} took {datagram:02x?}");
    assert_eq!(answers, 0, "{side:?} answers {datagram:02x?}");
}

fn write(pair: &mut Pair, written: &mut [bool; 2], bytes: [u64; 2]) {
    let now = pair.now;
    if pair.client.established() && !std::mem::replace(&mut written[0], true) {
        pair.client.write(bytes[0], now);
    }
    if let Some(server) = pair.server.as_mut().filter(|it| it.established()) {
        // The client's stream is there to be answered.
        if pair.read[1] > 0 && !std::mem::replace(&mut written[1], true) {
            server.write(bytes[1], now);
        }
    }
}

fn done(pair: &Pair, bytes: [u64; 2]) -> bool {
    pair.read == [bytes[1], bytes[0]]
}

#[track_caller]
fn assert_arrived(pair: &Pair, bytes: [u64; 2]) {
    let server = pair.server.as_ref().expect("the client came through");
    let ended = (pair.client.ended(), server.ended());
    assert_eq!(ended, (None, None), "after {} ms", pair.now / MS);
    assert!(done(pair, bytes), "{:?} of {bytes:?}", pair.read);
    assert_bounded(&pair.client);
    assert_bounded(server);
}

/// What an attacker on a path makes of a datagram.
fn meddle(
    rng: &mut Choices,
    seen: &mut Vec<Vec<u8>>,
    losses: &mut u32,
    bytes: &[u8],
) -> Vec<(Nanos, Vec<u8>)> {
    seen.push(bytes.to_vec());
    if seen.len() > 50 {
        seen.swap_remove(rng.random_range(0..50));
    }
    let mut out = vec![(0, bytes.to_vec())];
    match rng.random_range(0..10) {
        0 if *losses > 0 => {
            *losses -= 1;
            out.clear();
        }
        1 => out[0].0 = rng.random_range(0..200) * MS,
        2 => out.push((rng.random_range(0..500) * MS, bytes.to_vec())),
        3 => out.push((0, seen[rng.random_range(0..seen.len())].clone())),
        4 => {
            let mut altered = bytes.to_vec();
            for _ in 0..rng.random_range(1..6) {
                let bit = rng.random_range(0..8 * altered.len());
                altered[bit / 8] ^= 1 << (bit % 8);
            }
            out.insert(0, (0, altered));
        }
        5 => {
            let cut = rng.random_range(0..bytes.len());
            out.insert(0, (0, bytes[..cut].to_vec()));
        }
        6 => {
            // Another packet in front, and this one's in its tail.
            let mut joined = seen[rng.random_range(0..seen.len())].clone();
            joined.extend(bytes);
            out.insert(0, (0, joined));
        }
        7 => {
            // The right connection ID, and the rest invented.
            let mut forged = bytes.to_vec();
            for byte in forged.iter_mut().skip(9) {
                *byte = rng.random();
            }
            out.insert(0, (0, forged));
        }
        _ => {}
    }
    out
}

fn attacked(rng: &mut Choices, paths: usize, attacker: Attacker, stack: Stack) {
    let mut pair = pair(rng, paths, stack);
    let bytes: [u64; 2] = [rng.random_range(1..200_000), rng.random_range(1..200_000)];
    let mut written = [false; 2];
    pair.run_until(10 * SECOND, |pair| {
        let server = pair.server.as_ref();
        pair.client.packets().confirmed() && server.is_some_and(Connection::established)
    });
    let (mut rng, mut seen, mut losses) = (rng.clone(), Vec::new(), LOSSES);
    pair.meddler = Some(Box::new(move |_, link, bytes| {
        if attacker.sees(link) {
            meddle(&mut rng, &mut seen, &mut losses, bytes)
        } else {
            vec![(0, bytes.to_vec())]
        }
    }));
    pair.run_until(PATIENCE, |pair| {
        write(pair, &mut written, bytes);
        assert_bounded(&pair.client);
        done(pair, bytes)
    });
    assert_arrived(&pair, bytes);
}

/// The path that is not attacked carries the connection, whatever becomes of the other.
fn silenced(rng: &mut Choices) {
    let mut pair = pair(rng, 2, stack::drawn_quic);
    let bytes: [u64; 2] = [rng.random_range(1..200_000), rng.random_range(1..200_000)];
    let mut written = [false; 2];
    pair.run_until(10 * SECOND, |pair| {
        let server = pair.server.as_ref();
        let both = |it: &Connection| it.established() && it.members().len() == 2;
        pair.client.packets().confirmed() && both(&pair.client) && server.is_some_and(both)
    });
    pair.meddler = Some(Box::new(|_, link, bytes| match link {
        0 => vec![(0, bytes.to_vec())],
        _ => Vec::new(),
    }));
    pair.run_until(PATIENCE, |pair| {
        write(pair, &mut written, bytes);
        done(pair, bytes)
    });
    assert_arrived(&pair, bytes);
}

#[test]
fn a_blind_attacker_changes_nothing_over_quic() {
    seeds::run("a_blind_attacker_changes_nothing_over_quic", 40, blind);
}

#[test]
fn an_attacker_on_one_path_changes_nothing_over_quic() {
    let case = |rng: &mut Choices| {
        if rng.random_ratio(1, 4) {
            return silenced(rng);
        }
        let path = rng.random_range(0..2);
        attacked(rng, 2, Attacker::OnPath(path), stack::drawn_quic);
    };
    seeds::run(
        "an_attacker_on_one_path_changes_nothing_over_quic",
        30,
        case,
    );
}

pub fn everywhere(rng: &mut Choices, stack: Stack) {
    let paths = rng.random_range(1..3);
    attacked(rng, paths, Attacker::Everywhere, stack);
}

#[test]
fn an_attacker_on_all_paths_changes_nothing_over_quic() {
    seeds::run(
        "an_attacker_on_all_paths_changes_nothing_over_quic",
        30,
        |rng| everywhere(rng, stack::drawn_quic),
    );
}
