//! Two endpoints over paths of given delay, rate and queue; a hook sees each datagram and may drop, delay or duplicate it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use polypath_transport::quic::bytes::Protector;
use polypath_transport::quic::{
    Codepoint, Connection, Greeting, Listener, ResetKey, Transmit, answer_bytes,
};
use polypath_transport::{
    Accept, Algorithms, Config, NEVER, Nanos, Purpose, Retained, SECOND, Sessions, Tuple,
};
use polypath_wire::payload;
use polypath_wire::quic::{Carried, Datagram, Frame};

use crate::common::{client_address, first_tuple, host, reversed, server_address};

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Drop,
    /// It arrives so much later.
    Late(Nanos),
    Twice,
    /// Marked with ECN-CE.
    Marked,
    /// Its ECN field is cleared.
    Cleared,
}

/// A datagram on its way.
struct Flight {
    from: Side,
    tuple: Tuple,
    transmit: Transmit,
    /// What it looks like, where bytes are exchanged.
    bytes: Option<Vec<u8>>,
    ecn: Codepoint,
}

/// The two directions of a path.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub one_way: Nanos,
    /// Bit/s; 0: no serialisation.
    pub rate: u64,
    /// Longest queue, in nanoseconds of its own draining.
    pub queue: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Client,
    Server,
}

type Hook = Box<dyn FnMut(Side, usize, Nanos, &Transmit) -> Fate>;

/// Makes of a datagram on a link what arrives, each so much later.
pub type Meddler = Box<dyn FnMut(Side, usize, &[u8]) -> Vec<(Nanos, Vec<u8>)>>;

/// How a host is set, and what makes its algorithms.
#[derive(Clone)]
pub struct Settings {
    pub config: Config,
    pub algorithms: Algorithms,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            config: config.clone(),
            algorithms: Algorithms::default(),
        }
    }
}

impl Settings {
    fn host(&self, addresses: Vec<IpAddr>, seed: u128) -> Accept {
        Accept {
            algorithms: self.algorithms.clone(),
            ..host(&self.config, addresses, seed)
        }
    }
}

pub struct Pair {
    pub now: Nanos,
    pub client: Connection,
    pub server: Option<Connection>,
    server_settings: Settings,
    server_sessions: Sessions,
    /// Of its server, where that sends stateless resets.
    pub reset_key: Option<ResetKey>,
    links: Vec<Link>,
    pub fate: Hook,
    /// Where bytes are exchanged.
    pub meddler: Option<Meddler>,
    /// On their way: by time and order.
    flying: BTreeMap<(Nanos, u64), Flight>,
    order: u64,
    free_at: BTreeMap<(Side, usize), Nanos>,
    pub read: [u64; 2],
    pub sent: Vec<(Nanos, Side, usize, Transmit)>,
    /// Of client and server, where bytes are exchanged.
    pub protectors: Option<[Option<Protector>; 2]>,
    /// A translator gives the client's packets a port that is higher by so much.
    pub shift: u16,
    /// What was sent to an address that the client has left arrives all the same.
    pub hears_former: bool,
    /// Stream bytes that were compared with what was sent.
    pub compared: u64,
}

/// Names the bytes that a side sends on a stream.
fn content(from: Side, stream: u64) -> u64 {
    stream << 1 | from as u64
}

impl Pair {
    /// The server's end, once it took the connection on.
    #[track_caller]
    pub fn server(&self) -> &Connection {
        self.server.as_ref().expect("established")
    }

    #[track_caller]
    pub fn server_mut(&mut self) -> &mut Connection {
        self.server.as_mut().expect("established")
    }

    pub fn new(
        client: impl Into<Settings>,
        server: impl Into<Settings>,
        links: Vec<Link>,
        seed: u128,
    ) -> Self {
        Self::with_sessions(client, server, links, seed, Default::default())
    }

    /// The same between hosts that keep these sessions.
    pub fn with_sessions(
        client: impl Into<Settings>,
        server: impl Into<Settings>,
        links: Vec<Link>,
        seed: u128,
        sessions: [Sessions; 2],
    ) -> Self {
        Self::between(client, server, links, seed, sessions, Retained::default())
    }

    /// The same from a client whose host keeps this of its paths.
    pub fn retaining(config: &Config, links: Vec<Link>, seed: u128, retained: &Retained) -> Self {
        let sessions = Default::default();
        Self::between(config, config, links, seed, sessions, retained.clone())
    }

    fn between(
        client: impl Into<Settings>,
        server: impl Into<Settings>,
        links: Vec<Link>,
        seed: u128,
        [at_client, at_server]: [Sessions; 2],
        retained: Retained,
    ) -> Self {
        let addresses: Vec<IpAddr> = (0..links.len()).map(client_address).collect();
        let client = Accept {
            sessions: at_client,
            retained,
            ..client.into().host(addresses, seed)
        };
        let connection = Connection::connect(client, first_tuple(), 0);
        Self {
            now: 0,
            client: connection.expect("algorithms exist"),
            server: None,
            server_settings: server.into(),
            server_sessions: at_server,
            reset_key: None,
            links,
            fate: Box::new(|_, _, _, _| Fate::Pass),
            meddler: None,
            flying: BTreeMap::new(),
            order: 0,
            free_at: BTreeMap::new(),
            read: [0; 2],
            sent: Vec::new(),
            protectors: None,
            shift: 0,
            hears_former: false,
            compared: 0,
        }
    }

    /// Datagrams travel as sealed bytes from now on, which is before the first has left.
    pub fn through_bytes(mut self) -> Self {
        self.protectors = Some([Some(Protector::new(&self.client)), None]);
        self
    }

    fn seal(&mut self, from: Side, transmit: &Transmit) -> Option<Vec<u8>> {
        let connection = match (from, &mut self.server) {
            (Side::Client, _) => &mut self.client,
            (Side::Server, Some(server)) => server,
            (Side::Server, None) => {
                let bytes = self.protectors.is_some();
                return bytes.then(|| answer_bytes(&transmit.datagram));
            }
        };
        let protector = self.protectors.as_mut()?[from as usize].as_mut()?;
        let bytes = protector.seal(connection, &transmit.datagram, &mut |carried, bytes| {
            if let Carried::Stream { stream, offset } = carried {
                payload::fill(content(from, stream), offset, bytes);
            }
        });
        assert_eq!(bytes.len(), transmit.len as usize);
        Some(bytes)
    }

    /// The link of a client's address.
    fn link_of(client: IpAddr) -> usize {
        match client {
            IpAddr::V4(address) => address.octets()[2].into(),
            IpAddr::V6(_) => unreachable!("tests use IPv4"),
        }
    }

    fn put_on_link(&mut self, from: Side, transmit: Transmit) {
        let mut tuple = transmit.tuple;
        for packet in &transmit.datagram.packets {
            let sampled = packet.payload_len() + u32::from(packet.header.number_len);
            let sampled = sampled >= 4 || !packet.header.kind.is_protected();
            assert!(sampled, "RFC 9001 section 5.4.2: {packet:?}");
        }
        let client = match from {
            Side::Client => tuple.local.ip(),
            Side::Server => tuple.remote.ip(),
        };
        let link = Self::link_of(client);
        self.sent.push((self.now, from, link, transmit.clone()));
        let Link {
            one_way,
            rate,
            queue,
        } = self.links[link];
        let fate = (self.fate)(from, link, self.now, &transmit);
        if fate == Fate::Drop {
            return;
        }
        if from == Side::Client {
            let port = tuple.local.port() + self.shift;
            tuple.local.set_port(port);
        }
        let free_at = self.free_at.entry((from, link)).or_insert(0);
        if free_at.saturating_sub(self.now) > queue {
            return;
        }
        let bytes = u64::from(transmit.len) + 28;
        *free_at = (*free_at).max(self.now) + (bytes * 8 * SECOND).checked_div(rate).unwrap_or(0);
        let mut at = *free_at + one_way;
        let bytes = self.seal(from, &transmit);
        let mut ecn = transmit.ecn;
        match fate {
            Fate::Late(more) => at += more,
            Fate::Marked if transmit.ecn != Codepoint::NotEct => ecn = Codepoint::Ce,
            Fate::Cleared => ecn = Codepoint::NotEct,
            _ => {}
        }
        if let (Some(meddler), Some(bytes)) = (&mut self.meddler, &bytes) {
            for (more, bytes) in meddler(from, link, bytes) {
                self.order += 1;
                let flight = Flight {
                    from,
                    tuple,
                    transmit: transmit.clone(),
                    bytes: Some(bytes),
                    ecn,
                };
                self.flying.insert((at + more, self.order), flight);
            }
            return;
        }
        for _ in 0..=usize::from(fate == Fate::Twice) {
            self.order += 1;
            let flight = Flight {
                from,
                tuple,
                transmit: transmit.clone(),
                bytes: bytes.clone(),
                ecn,
            };
            self.flying.insert((at, self.order), flight);
        }
    }

    /// A datagram that nobody here sent comes to `to` now, from the addresses of `tuple` as its receiver sees them. How many answer it.
    #[allow(dead_code, reason = "the tests of attacks use it")]
    pub fn inject(&mut self, to: Side, tuple: Tuple, bytes: &[u8]) -> usize {
        self.collect();
        let now = self.now;
        let connection = match (to, &mut self.server) {
            (Side::Client, _) => &mut self.client,
            (Side::Server, Some(server)) => server,
            (Side::Server, None) => return 0,
        };
        let protectors = self.protectors.as_mut().expect("bytes are exchanged");
        let protector = protectors[to as usize].as_mut().expect("made");
        let mut check = |frame: &mut Frame, bytes: &[u8]| {
            if let Frame::Stream { stream, offset, .. } = frame {
                let from = match to {
                    Side::Client => Side::Server,
                    Side::Server => Side::Client,
                };
                payload::check(content(from, *stream), *offset, bytes)
                    .expect("the bytes that were sent");
            }
        };
        protector.receive(connection, tuple, bytes, Codepoint::NotEct, now, &mut check);
        let answers = connection.transmits().len();
        self.collect();
        answers
    }

    fn collect(&mut self) {
        for transmit in std::mem::take(self.client.transmits()) {
            self.put_on_link(Side::Client, transmit);
        }
        if let Some(server) = &mut self.server {
            for transmit in std::mem::take(server.transmits()) {
                self.put_on_link(Side::Server, transmit);
            }
        }
    }

    /// Reads whatever can be read on both sides.
    fn read_all(&mut self) {
        let now = self.now;
        self.read[0] += self.client.read(u64::MAX, now);
        if let Some(server) = &mut self.server {
            self.read[1] += server.read(u64::MAX, now);
        }
    }

    /// Runs until `until`, or until nothing is pending, or `done` says so.
    pub fn run_until(&mut self, until: Nanos, mut done: impl FnMut(&mut Self) -> bool) {
        let mut idle_steps = 0u32;
        loop {
            self.collect();
            if done(self) {
                return;
            }
            self.collect();
            let flight = self.flying.keys().next().map_or(NEVER, |key| key.0);
            let timers = self.client.next_deadline().min(
                self.server
                    .as_ref()
                    .map_or(NEVER, Connection::next_deadline),
            );
            let at = flight.min(timers);
            if at > until {
                self.now = until;
                return;
            }
            idle_steps = if at == self.now { idle_steps + 1 } else { 0 };
            assert!(idle_steps < 100_000, "time stands still at {at}");
            self.now = self.now.max(at);
            if flight <= timers {
                let (_, flight) = self.flying.pop_first().expect("something flies");
                self.deliver(&flight);
            } else {
                if self.client.next_deadline() <= self.now {
                    self.client.on_time(self.now);
                }
                if let Some(server) = &mut self.server
                    && server.next_deadline() <= self.now
                {
                    server.on_time(self.now);
                }
            }
            self.read_all();
        }
    }

    fn deliver(&mut self, flight: &Flight) {
        let (now, mut tuple) = (self.now, reversed(flight.tuple));
        if flight.from == Side::Server {
            // The translator knows only its newest mapping.
            let Some(port) = tuple.local.port().checked_sub(self.shift) else {
                return;
            };
            tuple.local.set_port(port);
            let known = self
                .client
                .members()
                .iter()
                .any(|it| it.tuple().local == tuple.local);
            if !known && !self.hears_former {
                return;
            }
        }
        if flight.from == Side::Client && self.server.is_none() {
            let mut listener = Listener::new(self.server_settings.config.retry, 77);
            if let Some(key) = self.reset_key {
                listener = listener.resetting(key);
            }
            let datagram = &flight.transmit.datagram;
            let greeting = match &flight.bytes {
                Some(bytes) => listener.greet_bytes(tuple, bytes, now),
                None => listener.greet(tuple, datagram, flight.transmit.len, now),
            };
            let admission = match greeting {
                Greeting::Accept(admission) => admission,
                Greeting::Answer(answer) => return self.answer(tuple, answer),
                Greeting::Ignore => return,
            };
            let host = Accept {
                sessions: self.server_sessions.clone(),
                ..self.server_settings.host(vec![server_address(0)], 77)
            };
            let server = Connection::admit(host, tuple, admission, now).expect("algorithms exist");
            if let Some(protectors) = &mut self.protectors {
                protectors[1] = Some(Protector::new(&server));
            }
            self.server = Some(server);
        }
        let (to, connection) = match flight.from {
            Side::Server => (Side::Client, &mut self.client),
            Side::Client => (Side::Server, self.server.as_mut().expect("just made")),
        };
        let Some(bytes) = &flight.bytes else {
            let transmit = &flight.transmit;
            connection.expect_purpose(transmit.purpose);
            connection.on_datagram(tuple, &transmit.datagram, transmit.len, flight.ecn, now);
            return;
        };
        let protectors = self.protectors.as_mut().expect("bytes are exchanged");
        let protector = protectors[to as usize]
            .as_mut()
            .expect("made with its side");
        let compared = &mut self.compared;
        protector.receive(
            connection,
            tuple,
            bytes,
            flight.ecn,
            now,
            &mut |frame, bytes| {
                if let Frame::Stream { stream, offset, .. } = frame {
                    payload::check(content(flight.from, *stream), *offset, bytes)
                        .expect("the bytes that were sent");
                    *compared += bytes.len() as u64;
                }
            },
        );
    }

    /// A server without a connection answers.
    fn answer(&mut self, tuple: Tuple, datagram: Datagram) {
        let transmit = Transmit {
            path: 0,
            tuple,
            len: datagram.len(),
            datagram,
            purpose: Purpose::Control,
            ecn: Codepoint::NotEct,
            steady: true,
        };
        self.put_on_link(Side::Server, transmit);
    }

    /// Runs until both sides have the handshake behind them.
    pub fn establish(&mut self) {
        self.run_until(10 * SECOND, |pair| {
            pair.client.established() && pair.server.as_ref().is_some_and(Connection::established)
        });
        assert!(self.client.established(), "no handshake");
    }
}
