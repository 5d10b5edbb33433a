//! An endpoint's promises to senders of arbitrary bytes, as functions that fuzz targets and tests call. They panic when
//! a promise is broken.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use polypath_wire::payload;
use polypath_wire::quic::{Carried, Frame, split};
use rand_pcg::Pcg64Mcg;

use super::bytes::{Dropped, Protector};
use super::connection::Connection;
use super::listener::{Greeting, Listener, answer_bytes};
use super::{Transmit, id};
use crate::Codepoint;
use crate::accept::Accept;
use crate::algorithms::Algorithms;
use crate::host::{BlackHoles, Ports};
use crate::settings::Config;
use crate::{CloseReason, MILLISECOND, NEVER, Nanos, Retained, SECOND, Sessions, Tuple};

/// A promise checked on some bytes.
pub type Target = fn(&[u8]);

/// Every target with its name.
pub const TARGETS: &[(&str, Target)] = &[("network", network), ("peer", peer)];

const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 7000);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), 443);
/// Whoever sends copies in the client's name.
const OTHER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9)), 9);

const ONE_WAY: Nanos = 10 * MILLISECOND;
/// What each side sends.
const BYTES: u64 = 30_000;
/// Until when an exchange is over, whatever the network did to it in its first seconds.
const PATIENCE: Nanos = 100 * SECOND;
/// Datagrams that the network may keep from arriving.
const LOSSES: u32 = 20;
const EARLY_LOSSES: u32 = 3;
/// Datagrams of the client that may come first from elsewhere. Whoever beats all of them keeps the server from the client's address for as long
/// as it likes: each has the server follow, and a path takes three probe timeouts to fail (RFC 9000 sections 9.3.3 and 8.2.4).
const FORGED: u32 = 20;
/// Probe timeouts in a row after which the next one may come after the idle timeout, which is three of them without backoff (RFC 9000
/// section 10.1).
const TRIED: u32 = 2;
/// What the network lost comes this much later at most. Its acknowledgement is a sample of the round-trip time: after one of half a minute the
/// next probe would be due later than the peer's idle timeout.
const LATEST: Nanos = SECOND;
/// Datagrams that one datagram may bring forth: a window of answers and data.
const MOST_ANSWERS: usize = 400;

/// One end with what seals its packets.
struct End {
    connection: Connection,
    protector: Protector,
    /// Stream bytes that came.
    read: u64,
    /// Probe timeouts in a row that sent something.
    probes: u32,
}

/// A datagram on its way.
#[derive(Clone)]
struct Flight {
    at: Nanos,
    to_server: bool,
    /// As its receiver sees it.
    tuple: Tuple,
    bytes: Vec<u8>,
    lost: bool,
}

struct World {
    now: Nanos,
    client: End,
    server: Option<End>,
    listener: Listener,
    multipath: bool,
    flying: VecDeque<Flight>,
    /// What flew already.
    seen: Vec<Flight>,
    losses: u32,
    forged: u32,
}

fn host(multipath: bool, address: SocketAddr, seed: u128) -> Accept {
    let config = Config {
        multipath,
        ..Config::default()
    };
    Accept {
        config: Arc::new(config),
        algorithms: Algorithms::default(),
        addresses: vec![(address.ip(), false)],
        mtus: Vec::new(),
        ports: Ports::default(),
        black_holes: BlackHoles::default(),
        random: Pcg64Mcg::new(seed),
        sessions: Sessions::default(),
        retained: Retained::default(),
        isn: None,
    }
}

impl End {
    fn new(connection: Connection) -> Self {
        let protector = Protector::new(&connection);
        Self {
            connection,
            protector,
            read: 0,
            probes: 0,
        }
    }

    /// What it sends now, sealed; its streams' bytes are named by `name`.
    fn take(&mut self, name: u64) -> Vec<(Transmit, Vec<u8>)> {
        let transmits = std::mem::take(self.connection.transmits());
        assert!(
            transmits.len() <= MOST_ANSWERS,
            "{} datagrams",
            transmits.len()
        );
        let seal = |transmit: Transmit| {
            let mut fill = |carried: Carried, bytes: &mut [u8]| {
                if let Carried::Stream { offset, .. } = carried {
                    payload::fill(name, offset, bytes);
                }
            };
            let connection = &mut self.connection;
            let bytes = self
                .protector
                .seal(connection, &transmit.datagram, &mut fill);
            (transmit, bytes)
        };
        transmits.into_iter().map(seal).collect()
    }

    /// A datagram comes whose streams' bytes are named by `name`, if they are to be compared at all.
    fn receive(&mut self, tuple: Tuple, bytes: &[u8], name: Option<u64>, now: Nanos) {
        let mut compare = |frame: &mut Frame, bytes: &[u8]| {
            if let (Frame::Stream { offset, .. }, Some(name)) = (frame, name) {
                payload::check(name, *offset, bytes).expect("bytes of an authentic packet");
            }
        };
        let connection = &mut self.connection;
        self.protector.receive(
            connection,
            tuple,
            bytes,
            Codepoint::NotEct,
            now,
            &mut compare,
        );
        self.read += connection.read(u64::MAX, now);
        let (_, window) = connection.buffers();
        assert!(connection.streams().reassembly_bytes() <= window);
        connection.events().clear();
    }

    fn on_time(&mut self, now: Nanos) {
        if self.connection.next_deadline() > now {
            return;
        }
        let before = self.timeouts();
        self.connection.on_time(now);
        let probed = self.timeouts() > before && !self.connection.transmits().is_empty();
        self.probes = if before == 0 { 0 } else { self.probes } + u32::from(probed);
    }

    fn timeouts(&self) -> u32 {
        let members = self.connection.members().iter();
        members
            .map(|path| path.probing().timeouts())
            .max()
            .unwrap_or(0)
    }

    fn timed_out(&self) -> bool {
        self.connection.ended() == Some(CloseReason::TimedOut)
    }
}

impl World {
    fn new(multipath: bool, retry: bool) -> Self {
        let tuple = Tuple {
            local: CLIENT,
            remote: SERVER,
        };
        let connection = Connection::connect(host(multipath, CLIENT, 1), tuple, 0);
        Self {
            now: 0,
            client: End::new(connection.expect("algorithms exist")),
            server: None,
            listener: Listener::new(retry, 1),
            multipath,
            flying: VecDeque::new(),
            seen: Vec::new(),
            losses: 0,
            forged: 0,
        }
    }

    fn confirmed(&self) -> bool {
        let server = self.server.as_ref();
        let established = server.is_some_and(|server| server.connection.established());
        established
            && self
                .client
                .connection
                .transfer
                .packets
                .handshake
                .confirmed()
    }

    /// Whether the network lost so much of what an end sent, or of the answers, that the end gave up at its idle timeout before its next
    /// probe; the other, which hears no more of it, may do so, too.
    fn cut_off(&self, ends: [&End; 2]) -> bool {
        let tried = |end: &End| (TRIED..=self.losses).contains(&end.probes);
        let silent = |end: &End| end.timed_out() || end.connection.ended().is_none();
        ends.iter().any(|end| end.timed_out() && tried(end)) && ends.into_iter().all(silent)
    }

    fn launch(&mut self, to_server: bool, sent: Tuple, bytes: Vec<u8>) {
        // Nobody else answers, and nobody else is answered.
        if !to_server && sent.remote != CLIENT {
            return;
        }
        self.flying.push_back(Flight {
            at: self.now + ONE_WAY,
            to_server,
            tuple: Tuple {
                local: sent.remote,
                remote: sent.local,
            },
            bytes,
            lost: false,
        });
    }

    /// A datagram of before, which comes again or late.
    fn earlier(&self, script: &mut Script<'_>) -> Option<Flight> {
        let old = self.seen.get(script.index(self.seen.len()))?;
        let comes = !old.lost || old.at + LATEST >= self.now;
        comes.then(|| old.clone())
    }

    fn collect(&mut self) {
        for (transmit, bytes) in self.client.take(1) {
            self.launch(true, transmit.tuple, bytes);
        }
        let sent = self.server.as_mut().map(|server| server.take(2));
        for (transmit, bytes) in sent.into_iter().flatten() {
            self.launch(false, transmit.tuple, bytes);
        }
    }

    fn deliver(&mut self, flight: &Flight) {
        let Flight { tuple, bytes, .. } = flight;
        let now = self.now;
        if !flight.to_server {
            return self.client.receive(*tuple, bytes, Some(2), now);
        }
        if let Some(server) = &mut self.server {
            return server.receive(*tuple, bytes, Some(1), now);
        }
        match self.listener.greet_bytes(*tuple, bytes, now) {
            Greeting::Accept(admission) => {
                let host = host(self.multipath, SERVER, 2);
                let connection = Connection::admit(host, *tuple, admission, now);
                let mut server = End::new(connection.expect("algorithms exist"));
                server.receive(*tuple, bytes, Some(1), now);
                // A server keeps nothing of a packet that is not authentic.
                if server.protector.dropped() == Dropped::default() {
                    self.server = Some(server);
                }
            }
            Greeting::Answer(answer) => {
                let back = Tuple {
                    local: tuple.local,
                    remote: tuple.remote,
                };
                self.launch(false, back, answer_bytes(&answer));
            }
            Greeting::Ignore => {}
        }
    }

    /// Takes the next datagram or the next timer. False: nothing is pending before `until`.
    fn step(&mut self, until: Nanos, meddle: &mut dyn FnMut(&mut Self, Flight)) -> bool {
        self.collect();
        let flight = self.flying.front().map_or(NEVER, |flight| flight.at);
        let server = self.server.as_ref();
        let server = server.map_or(NEVER, |server| server.connection.next_deadline());
        let timers = self.client.connection.next_deadline().min(server);
        let at = flight.min(timers);
        if at > until {
            return false;
        }
        self.now = self.now.max(at);
        if flight <= timers {
            let flight = self.flying.pop_front().expect("something flies");
            self.seen.push(flight.clone());
            meddle(self, flight);
            return true;
        }
        self.client.on_time(self.now);
        if let Some(server) = &mut self.server {
            server.on_time(self.now);
        }
        true
    }
}

/// Bytes that say what the network does.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(usize::from(*first))
    }

    fn index(&mut self, among: usize) -> usize {
        let low = self.next().unwrap_or(0);
        (self.next().unwrap_or(0) << 8 | low) % among.max(1)
    }
}

/// A network that loses, repeats, alters, cuts, delays and forges datagrams as `bytes` say takes nothing of a connection: everything
/// arrives once and in order, unless it loses so many in a row that an end hears nothing for its idle timeout.
pub fn network(bytes: &[u8]) {
    let mut script = Script(bytes);
    let kind = script.next().unwrap_or(0);
    let mut world = World::new(kind & 1 != 0, kind & 2 != 0);
    let mut written = [false; 2];
    while world.step(PATIENCE, &mut |world, flight| {
        meddle(world, flight, &mut script)
    }) {
        let now = world.now;
        let Some(server) = &mut world.server else {
            continue;
        };
        let asks = world.client.connection.established();
        if asks && !std::mem::replace(&mut written[0], true) {
            world.client.connection.write(BYTES, now);
        }
        let answers = server.read > 0;
        if answers && !std::mem::replace(&mut written[1], true) {
            server.connection.write(BYTES, now);
        }
        if (world.client.read, server.read) == (BYTES, BYTES) {
            break;
        }
    }
    let server = world.server.as_ref().expect("the client came through");
    let ends = [&world.client, server];
    if world.cut_off(ends) {
        return;
    }
    assert_eq!(
        ends.map(|end| end.connection.ended()),
        [None, None],
        "ended after {} ms",
        world.now / MILLISECOND
    );
    assert_eq!((world.client.read, server.read), (BYTES, BYTES));
}

/// Whether nothing protects the bytes, so that altered ones may end the attempt to connect (RFC 9000 section 6.2, RFC 8999 section 6).
fn negotiates_version(bytes: &[u8]) -> bool {
    matches!(bytes, [first, 0, 0, 0, 0, ..] if first & 0x80 != 0)
}

fn meddle(world: &mut World, flight: Flight, script: &mut Script<'_>) {
    let confirmed = world.confirmed();
    let protected = !negotiates_version(&flight.bytes);
    match script.next().unwrap_or(0) % 16 {
        1 => world.deliver(&flight),
        2 => {
            if let Some(old) = world.earlier(script) {
                world.deliver(&old);
            }
        }
        3 | 4 if protected => {
            let mut altered = flight.clone();
            for _ in 0..=script.next().unwrap_or(0) % 4 {
                let bit = script.index(8 * altered.bytes.len());
                altered.bytes[bit / 8] ^= 1 << (bit % 8);
            }
            world.deliver(&altered);
        }
        5 if protected => {
            let mut cut = flight.clone();
            cut.bytes.truncate(script.index(flight.bytes.len()));
            world.deliver(&cut);
        }
        6 => {
            world.seen.pop();
            let mut later = flight;
            later.at = world.now + 5 * MILLISECOND;
            let at = world.flying.partition_point(|other| other.at <= later.at);
            return world.flying.insert(at, later);
        }
        // Whoever comes first with a copy of the first packets is whom the server speaks with (RFC 9000 section 21.2).
        7 if flight.to_server && confirmed && world.forged < FORGED => {
            world.forged += 1;
            let mut forged = flight.clone();
            forged.tuple.remote = OTHER;
            world.deliver(&forged);
        }
        8 => {
            let mut noise = flight.clone();
            for byte in &mut noise.bytes {
                *byte = script.next().unwrap_or(0) as u8;
            }
            world.deliver(&noise);
        }
        // Backoff would outlast the idle timeout if a handshake lost more.
        9 if world.losses < if confirmed { LOSSES } else { EARLY_LOSSES } => {
            world.losses += 1;
            if let Some(last) = world.seen.last_mut() {
                last.lost = true;
            }
            return;
        }
        10 => {
            // Another packet follows in the same datagram.
            if let Some(old) = world.earlier(script) {
                let mut joined = flight.clone();
                joined.bytes.extend(old.bytes);
                world.deliver(&joined);
            }
        }
        _ => {}
    }
    world.deliver(&flight);
}

/// A peer that sends whatever `bytes` are as frames, under the right keys, makes an endpoint close the connection at worst. What the
/// endpoint keeps and sends stays bounded.
pub fn peer(bytes: &[u8]) {
    let mut script = Script(bytes);
    let kind = script.next().unwrap_or(0);
    let mut world = World::new(kind & 1 != 0, false);
    let at_server = kind & 2 != 0;
    while !world.confirmed() {
        let alive = world.step(SECOND, &mut |world, flight| world.deliver(&flight));
        assert!(alive, "no handshake");
    }
    let now = world.now;
    world.client.connection.write(BYTES, now);
    world.collect();
    let mut server = world.server.take().expect("established");
    let (victim, attacker, local, remote) = if at_server {
        (&mut server, &mut world.client, SERVER, CLIENT)
    } else {
        (&mut world.client, &mut server, CLIENT, SERVER)
    };
    let tuple = Tuple { local, remote };
    let mut number = 1000;
    while let Some(len) = script.next() {
        let taken = script.0.len().min(len);
        let (frames, rest) = script.0.split_at(taken);
        script = Script(rest);
        number += 1;
        let mut frames = frames.to_vec();
        // So that there is a sample.
        frames.resize(frames.len().max(4), 0);
        let connection = &mut attacker.connection;
        let Some(sealed) = attacker
            .protector
            .seal_frames(connection, 0, number, &frames)
        else {
            break;
        };
        assert!(split(&sealed, id::LEN).next().is_some_and(|it| it.is_ok()));
        victim.receive(tuple, &sealed, None, now);
        victim.take(0);
        let connection = &victim.connection;
        assert!(
            connection.members().len() <= 2,
            "paths without packets on them"
        );
        assert!(
            connection.transfer.packets.control.iter().count() <= 4_000,
            "frames that wait"
        );
    }
    // Whatever it was told, time goes on.
    for _ in 0..10_000 {
        let at = victim.connection.next_deadline();
        if at > 200 * SECOND {
            break;
        }
        victim.connection.on_time(at.max(now));
        victim.take(0);
    }
    let ended = victim.connection.ended();
    assert!(
        matches!(
            ended,
            Some(
                CloseReason::Aborted
                    | CloseReason::Reset
                    | CloseReason::Finished
                    | CloseReason::TimedOut
            )
        ),
        "{ended:?}"
    );
}
