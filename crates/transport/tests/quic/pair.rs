//! Two endpoints over paths of given delay, rate and queue; a hook sees each datagram and may drop, delay or duplicate it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use polypath_transport::quic::{Codepoint, Connection, Transmit};
use polypath_transport::{Config, NEVER, Nanos, SECOND, Tuple};

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

pub struct Pair {
    pub now: Nanos,
    pub client: Connection,
    pub server: Option<Connection>,
    server_config: Config,
    links: Vec<Link>,
    pub fate: Hook,
    /// On their way: by time and order.
    flying: BTreeMap<(Nanos, u64), (Side, Tuple, Transmit, Codepoint)>,
    order: u64,
    free_at: BTreeMap<(Side, usize), Nanos>,
    pub read: [u64; 2],
    pub sent: Vec<(Nanos, Side, usize, Transmit)>,
}

impl Pair {
    pub fn new(client: &Config, server: &Config, links: Vec<Link>, seed: u128) -> Self {
        let addresses: Vec<IpAddr> = (0..links.len()).map(client_address).collect();
        let connection = Connection::connect(host(client, addresses, seed), first_tuple(), 0);
        Self {
            now: 0,
            client: connection.expect("algorithms exist"),
            server: None,
            server_config: server.clone(),
            links,
            fate: Box::new(|_, _, _, _| Fate::Pass),
            flying: BTreeMap::new(),
            order: 0,
            free_at: BTreeMap::new(),
            read: [0; 2],
            sent: Vec::new(),
        }
    }

    /// The link of a client's address.
    fn link_of(client: IpAddr) -> usize {
        match client {
            IpAddr::V4(address) => address.octets()[2].into(),
            IpAddr::V6(_) => unreachable!("tests use IPv4"),
        }
    }

    fn put_on_link(&mut self, from: Side, tuple: Tuple, transmit: Transmit) {
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
        let free_at = self.free_at.entry((from, link)).or_insert(0);
        if free_at.saturating_sub(self.now) > queue {
            return;
        }
        let bytes = u64::from(transmit.len) + 28;
        *free_at = (*free_at).max(self.now) + (bytes * 8 * SECOND).checked_div(rate).unwrap_or(0);
        let mut at = *free_at + one_way;
        let mut ecn = if transmit.ecn {
            Codepoint::Ect0
        } else {
            Codepoint::NotEct
        };
        match fate {
            Fate::Late(more) => at += more,
            Fate::Marked if transmit.ecn => ecn = Codepoint::Ce,
            _ => {}
        }
        for _ in 0..=usize::from(fate == Fate::Twice) {
            self.order += 1;
            let flight = (from, tuple, transmit.clone(), ecn);
            self.flying.insert((at, self.order), flight);
        }
    }

    fn collect(&mut self) {
        let tuples = |connection: &Connection| -> Vec<Tuple> {
            connection
                .members()
                .iter()
                .map(|member| member.tuple)
                .collect()
        };
        let mine = tuples(&self.client);
        for transmit in std::mem::take(self.client.transmits()) {
            self.put_on_link(Side::Client, mine[transmit.path], transmit);
        }
        if let Some(server) = &mut self.server {
            let theirs = tuples(server);
            for transmit in std::mem::take(server.transmits()) {
                self.put_on_link(Side::Server, theirs[transmit.path], transmit);
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
                let (_, (from, tuple, transmit, ecn)) =
                    self.flying.pop_first().expect("something flies");
                self.deliver(from, tuple, &transmit, ecn);
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

    fn deliver(&mut self, from: Side, tuple: Tuple, transmit: &Transmit, ecn: Codepoint) {
        let (now, len) = (self.now, transmit.len);
        let tuple = reversed(tuple);
        match from {
            Side::Server => self
                .client
                .on_datagram(tuple, &transmit.datagram, len, ecn, now),
            Side::Client => {
                let server = self.server.get_or_insert_with(|| {
                    let first = &transmit.datagram.packets[0];
                    let host = host(&self.server_config, vec![server_address(0)], 77);
                    Connection::accept(host, tuple, first.header.destination, now)
                        .expect("algorithms exist")
                });
                server.on_datagram(tuple, &transmit.datagram, len, ecn, now);
            }
        }
    }

    /// Runs until both sides have the handshake behind them.
    pub fn establish(&mut self) {
        self.run_until(10 * SECOND, |pair| {
            pair.client.established() && pair.server.as_ref().is_some_and(Connection::established)
        });
        assert!(self.client.established(), "no handshake");
    }
}
