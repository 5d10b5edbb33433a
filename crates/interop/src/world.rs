//! Links between a client with several addresses and a server with one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use polypath_transport::quic::Codepoint;
use polypath_transport::{NEVER, Nanos, SECOND, Tuple};

use crate::end::{Arrival, Departure, End, Side};

/// IPv4 and UDP.
const HEADERS: u64 = 28;

/// The client's address on link `index`.
pub fn client_address(index: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, index as u8, 1).into()
}

pub fn server_address() -> IpAddr {
    Ipv4Addr::new(10, 1, 0, 1).into()
}

fn link_of(client: IpAddr) -> usize {
    match client {
        IpAddr::V4(address) => address.octets()[2].into(),
        IpAddr::V6(_) => unreachable!("addresses are of IPv4"),
    }
}

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

/// The two directions of a link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub one_way: Nanos,
    /// Bit/s; 0: no serialisation.
    pub rate: u64,
    /// Bytes that wait at most.
    pub queue: u64,
}

/// A datagram that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub at: Nanos,
    pub from: Side,
    pub link: usize,
    pub len: u32,
}

struct Flight {
    from: Side,
    /// As the receiver sees it.
    tuple: Tuple,
    bytes: Vec<u8>,
    ecn: Codepoint,
}

pub type Hook = Box<dyn FnMut(Seen) -> Fate>;

pub struct World<C, S> {
    pub now: Nanos,
    pub client: C,
    pub server: S,
    pub fate: Hook,
    pub seen: Vec<Seen>,
    /// Datagrams that found their queue full.
    pub overflowed: u64,
    links: Vec<Link>,
    /// The port that a translator on each link gives the client's packets from now on is higher by so much.
    shift: Vec<u16>,
    /// On their way: by time and order.
    flying: BTreeMap<(Nanos, u64), Flight>,
    order: u64,
    free_at: BTreeMap<(Side, usize), Nanos>,
}

impl<C: End, S: End> World<C, S> {
    pub fn new(client: C, server: S, links: Vec<Link>) -> Self {
        Self {
            now: 0,
            client,
            server,
            fate: Box::new(|_| Fate::Pass),
            seen: Vec::new(),
            overflowed: 0,
            shift: vec![0; links.len()],
            links,
            flying: BTreeMap::new(),
            order: 0,
            free_at: BTreeMap::new(),
        }
    }

    /// The translator on a link forgets its mappings: the client appears from other ports, and what goes to the former ones is lost.
    pub fn rebind(&mut self, link: usize) {
        self.shift[link] += 1000;
    }

    fn put_on_link(&mut self, from: Side, departure: Departure) {
        let Departure { tuple, bytes, ecn } = departure;
        let mut seen_as = Tuple {
            local: tuple.remote,
            remote: tuple.local,
        };
        let link = match from {
            Side::Client => {
                let link = link_of(tuple.local.ip());
                let port = tuple.local.port() + self.shift[link];
                seen_as.remote = SocketAddr::new(tuple.local.ip(), port);
                link
            }
            Side::Server => link_of(tuple.remote.ip()),
        };
        let len = bytes.len() as u32;
        let seen = Seen {
            at: self.now,
            from,
            link,
            len,
        };
        self.seen.push(seen);
        let fate = (self.fate)(seen);
        if fate == Fate::Drop {
            return;
        }
        let Link {
            one_way,
            rate,
            queue,
        } = self.links[link];
        let time = |bytes: u64| (bytes * 8 * SECOND).checked_div(rate).unwrap_or(0);
        let free_at = self.free_at.entry((from, link)).or_insert(0);
        if free_at.saturating_sub(self.now) > time(queue) {
            self.overflowed += 1;
            return;
        }
        *free_at = (*free_at).max(self.now) + time(u64::from(len) + HEADERS);
        let mut at = *free_at + one_way;
        let mut codepoint = ecn;
        match fate {
            Fate::Late(more) => at += more,
            Fate::Marked if ecn == Codepoint::Ect0 => codepoint = Codepoint::Ce,
            _ => {}
        }
        for _ in 0..=usize::from(fate == Fate::Twice) {
            self.order += 1;
            let flight = Flight {
                from,
                tuple: seen_as,
                bytes: bytes.clone(),
                ecn: codepoint,
            };
            self.flying.insert((at, self.order), flight);
        }
    }

    fn collect(&mut self) {
        for departure in self.client.take(self.now) {
            self.put_on_link(Side::Client, departure);
        }
        for departure in self.server.take(self.now) {
            self.put_on_link(Side::Server, departure);
        }
    }

    fn deliver(&mut self, flight: Flight) {
        let mut tuple = flight.tuple;
        if flight.from == Side::Server {
            // Back through the translator, which knows only its newest mapping.
            let link = link_of(tuple.local.ip());
            let Some(port) = tuple.local.port().checked_sub(self.shift[link]) else {
                return;
            };
            let inside = SocketAddr::new(tuple.local.ip(), port);
            tuple.local = inside;
        }
        let arrival = Arrival {
            tuple,
            bytes: &flight.bytes,
            ecn: flight.ecn,
        };
        match flight.from {
            Side::Client => self.server.receive(&arrival, self.now),
            Side::Server => self.client.receive(&arrival, self.now),
        }
    }

    /// Runs until `until`, or until `done` says so; whether it did.
    pub fn run_until(&mut self, until: Nanos, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let mut steps = 0u32;
        loop {
            self.collect();
            if done(self) {
                return true;
            }
            self.collect();
            let flight = self.flying.keys().next().map_or(NEVER, |key| key.0);
            let timers = self.client.deadline().min(self.server.deadline());
            let at = flight.min(timers);
            if at > until {
                self.now = until;
                return false;
            }
            steps = if at <= self.now { steps + 1 } else { 0 };
            assert!(steps < 100_000, "time stands still at {at}");
            self.now = self.now.max(at);
            if flight <= timers {
                let (_, flight) = self.flying.pop_first().expect("something flies");
                self.deliver(flight);
                continue;
            }
            if self.client.deadline() <= self.now {
                self.client.on_time(self.now);
            }
            if self.server.deadline() <= self.now {
                self.server.on_time(self.now);
            }
        }
    }
}
