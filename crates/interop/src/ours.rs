//! Our endpoint.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polypath_transport::quic::bytes::Protector;
use polypath_transport::quic::{Codepoint, Connection, Greeting, Listener, ResetKey, answer_bytes};
use polypath_transport::{
    Accept, Algorithms, BlackHoles, CloseReason, Config, NEVER, Nanos, Ports, Retained, Sessions,
    Tuple,
};
use polypath_wire::payload;
use polypath_wire::quic::{Carried, Frame};
use rand_pcg::Pcg64Mcg;

use crate::end::{Arrival, Departure, End, Outcome, Received, Side};
use crate::world::{client_address, server_address};

/// The tokens of every server are made of the same.
const RESET_KEY: [u8; 32] = [7; 32];
const CLIENT_PORT: u16 = 20_000;
pub(crate) const SERVER_PORT: u16 = 80;

/// A connection of ours and the bytes that it looks like.
pub struct Ours {
    side: Side,
    config: Config,
    seed: u64,
    /// Certificates that follow a server's own.
    intermediates: usize,
    sessions: Sessions,
    both: Option<(Connection, Protector)>,
    received: BTreeMap<u64, Received>,
    /// What a server says before it has a connection.
    answers: Vec<Departure>,
    /// Its application closed it.
    closed: bool,
}

impl Ours {
    /// A client with an address on each of so many links.
    ///
    /// # Panics
    /// An algorithm of the configuration does not exist.
    pub fn client(config: &Config, links: usize, seed: u64) -> Self {
        Self::client_with(config, links, seed, &Sessions::default())
    }

    /// A client that keeps its sessions there, if its configuration says that it resumes any.
    ///
    /// # Panics
    /// As [`Ours::client`].
    pub fn client_with(config: &Config, links: usize, seed: u64, sessions: &Sessions) -> Self {
        let addresses = (0..links).map(client_address).collect();
        let tuple = Tuple {
            local: SocketAddr::new(client_address(0), CLIENT_PORT),
            remote: SocketAddr::new(server_address(), SERVER_PORT),
        };
        let host = host(config, addresses, seed, sessions);
        let connection = Connection::connect(host, tuple, 0).expect("algorithms exist");
        let protector = Protector::new(&connection);
        Self {
            both: Some((connection, protector)),
            ..Self::new(Side::Client, config, seed)
        }
    }

    pub fn server(config: &Config, seed: u64) -> Self {
        Self::new(Side::Server, config, seed)
    }

    fn new(side: Side, config: &Config, seed: u64) -> Self {
        Self {
            side,
            config: config.clone(),
            seed,
            intermediates: 0,
            sessions: Sessions::default(),
            both: None,
            received: BTreeMap::new(),
            answers: Vec::new(),
            closed: false,
        }
    }

    /// A server whose certificate is followed by so many others.
    #[must_use]
    pub fn with_intermediates(self, intermediates: usize) -> Self {
        Self {
            intermediates,
            ..self
        }
    }

    /// A server that keeps its sessions there, as [`Ours::client_with`].
    #[must_use]
    pub fn with_sessions(self, sessions: Sessions) -> Self {
        Self { sessions, ..self }
    }

    /// Nothing at a server to which no client came.
    pub(crate) fn both_mut(&mut self) -> Option<&mut (Connection, Protector)> {
        self.both.as_mut()
    }

    /// # Panics
    /// It is a server to which no client came.
    pub fn connection(&self) -> &Connection {
        &self.both.as_ref().expect("a connection").0
    }

    /// # Panics
    /// As [`Ours::connection`].
    pub fn parts(&mut self) -> (&mut Connection, &mut Protector) {
        let (connection, protector) = self.both.as_mut().expect("a connection");
        (connection, protector)
    }

    fn read(&mut self, now: Nanos) {
        let Some((connection, _)) = &mut self.both else {
            return;
        };
        for stream in connection.streams().readable() {
            let received = self.received.entry(stream).or_default();
            received.bytes += connection.read_from(stream, u64::MAX, now);
            received.ended = connection.stream_at_end(stream);
        }
    }
}

fn host(config: &Config, addresses: Vec<IpAddr>, seed: u64, sessions: &Sessions) -> Accept {
    let addresses = addresses.into_iter().map(|address| (address, false));
    Accept {
        config: Arc::new(config.clone()),
        algorithms: Algorithms::default(),
        addresses: addresses.collect(),
        mtus: Vec::new(),
        ports: Ports::default(),
        black_holes: BlackHoles::default(),
        random: Pcg64Mcg::new(u128::from(seed) << 1 | 1),
        sessions: sessions.clone(),
        retained: Retained::default(),
        isn: None,
    }
}

impl End for Ours {
    fn receive(&mut self, arrival: &Arrival<'_>, now: Nanos) {
        let first = self.both.is_none() && self.side == Side::Server;
        if first {
            let listener = Listener::new(self.config.retry, self.seed)
                .resetting(ResetKey::new(RESET_KEY))
                .with_intermediates(self.intermediates);
            let admission = match listener.greet_bytes(arrival.tuple, arrival.bytes, now) {
                Greeting::Accept(admission) => admission,
                Greeting::Answer(answer) => {
                    self.answers.push(Departure {
                        tuple: arrival.tuple,
                        bytes: answer_bytes(&answer),
                        ecn: Codepoint::NotEct,
                    });
                    return;
                }
                Greeting::Ignore => {
                    self.answers
                        .extend(listener.reset(arrival.bytes).map(|bytes| Departure {
                            tuple: arrival.tuple,
                            bytes,
                            ecn: Codepoint::NotEct,
                        }));
                    return;
                }
            };
            let addresses = vec![server_address()];
            let host = host(&self.config, addresses, self.seed, &self.sessions);
            let connection =
                Connection::admit(host, arrival.tuple, admission, now).expect("algorithms exist");
            let protector = Protector::new(&connection);
            self.both = Some((connection, protector));
        }
        let from = self.side.other();
        let Some((connection, protector)) = &mut self.both else {
            return;
        };
        let mut compare = |frame: &mut Frame, bytes: &[u8]| {
            if let Frame::Stream { stream, offset, .. } = frame {
                payload::check(from.content(*stream), *offset, bytes)
                    .unwrap_or_else(|at| panic!("stream {stream} has another byte at {at}"));
            }
        };
        let Arrival { tuple, bytes, ecn } = *arrival;
        protector.receive(connection, tuple, bytes, ecn, now, &mut compare);
        if first && connection.transmits().is_empty() {
            // A first packet that cannot be opened makes no connection: what can be is acknowledged.
            self.both = None;
        }
        self.read(now);
    }

    fn on_time(&mut self, now: Nanos) {
        if let Some((connection, _)) = &mut self.both {
            connection.on_time(now);
        }
    }

    fn deadline(&self) -> Nanos {
        let connection = self.both.as_ref().map(|both| &both.0);
        connection.map_or(NEVER, Connection::next_deadline)
    }

    fn take(&mut self, _: Nanos) -> Vec<Departure> {
        let Some((connection, protector)) = &mut self.both else {
            return std::mem::take(&mut self.answers);
        };
        let side = self.side;
        let transmits = std::mem::take(connection.transmits());
        let seal = |transmit: polypath_transport::quic::Transmit| {
            let mut fill = |carried: Carried, bytes: &mut [u8]| {
                if let Carried::Stream { stream, offset } = carried {
                    payload::fill(side.content(stream), offset, bytes);
                }
            };
            let bytes = protector.seal(connection, &transmit.datagram, &mut fill);
            assert_eq!(bytes.len(), transmit.len as usize);
            let ecn = transmit.ecn;
            let tuple = transmit.tuple;
            Departure { tuple, bytes, ecn }
        };
        transmits.into_iter().map(seal).collect()
    }

    fn established(&self) -> bool {
        self.both.as_ref().is_some_and(|both| both.0.established())
    }

    fn outcome(&self) -> Option<Outcome> {
        let reason = self.both.as_ref()?.0.ended()?;
        Some(match reason {
            CloseReason::Finished => Outcome::Closed,
            CloseReason::Aborted if self.closed => Outcome::Closed,
            CloseReason::TimedOut => Outcome::TimedOut,
            other => Outcome::Error(format!("{other:?}")),
        })
    }

    fn open(&mut self, bidirectional: bool, _: Nanos) -> Option<u64> {
        self.parts().0.open(bidirectional)
    }

    fn send(&mut self, stream: u64, bytes: u64, now: Nanos) {
        let connection = self.parts().0;
        connection.write_to(stream, bytes, now);
        connection.finish(stream, now);
    }

    fn received(&self) -> &BTreeMap<u64, Received> {
        &self.received
    }

    fn close(&mut self, now: Nanos) {
        if self.outcome().is_none() {
            self.closed = true;
            self.parts().0.abort(now);
        }
    }
}
