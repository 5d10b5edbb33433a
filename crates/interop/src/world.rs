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

/// A long header and version 0 (RFC 9000 section 17.2.1).
fn negotiates_version(datagram: &[u8]) -> bool {
    matches!(datagram, [first, 0, 0, 0, 0, ..] if first & 0x80 != 0)
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
    /// It arrives with these bits of the byte at `at` inverted, and a UDP checksum that fits. Version Negotiation is left as it is: nothing
    /// protects it, and a client believes it.
    Corrupted {
        at: usize,
        bits: u8,
    },
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

/// A datagram as one side's interface sees it: that of the sender before the links, that of the receiver after them.
#[derive(Clone, Debug)]
pub struct Captured {
    pub at: Nanos,
    pub from: Side,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub bytes: Vec<u8>,
    pub ecn: Codepoint,
}

/// How the translator at the server's end of a link shows the client's addresses. What the client has in flight when it forgets its mappings
/// shows the new ones.
#[derive(Clone, Debug, Default)]
struct Translator {
    /// Added to the port, and to the last number of the address.
    port: u16,
    host: u8,
    /// What is behind each address that it shows.
    mappings: BTreeMap<SocketAddr, SocketAddr>,
}

impl Translator {
    fn outwards(&mut self, inside: SocketAddr) -> SocketAddr {
        let address = match inside.ip() {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                Ipv4Addr::new(a, b, c, d + self.host)
            }
            IpAddr::V6(_) => unreachable!("addresses are of IPv4"),
        };
        let outside = SocketAddr::new(address.into(), inside.port() + self.port);
        self.mappings.insert(outside, inside);
        outside
    }

    /// Nothing, if it has forgotten the address.
    fn inwards(&self, outside: SocketAddr) -> Option<SocketAddr> {
        self.mappings.get(&outside).copied()
    }
}

struct Flight {
    from: Side,
    /// As the receiver would see it without a translator.
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
    translators: Vec<Translator>,
    /// What the interfaces of each side see, where that is captured.
    captures: Option<[Vec<Captured>; 2]>,
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
            translators: vec![Translator::default(); links.len()],
            captures: None,
            links,
            flying: BTreeMap::new(),
            order: 0,
            free_at: BTreeMap::new(),
        }
    }

    /// The translator on a link forgets its mappings: the client appears from other ports, and what goes to the former ones is lost.
    pub fn rebind(&mut self, link: usize) {
        let translator = &mut self.translators[link];
        translator.port += 1000;
        translator.mappings.clear();
    }

    /// As [`World::rebind`], and its address changes as well.
    pub fn rebind_address(&mut self, link: usize) {
        self.translators[link].host += 1;
        self.rebind(link);
    }

    /// Captures from now on what the interfaces of both sides see.
    pub fn capture(&mut self) {
        self.captures.get_or_insert_default();
    }

    /// What the interface of a side saw, in order.
    pub fn captured(&self, side: Side) -> &[Captured] {
        self.captures
            .as_ref()
            .map_or(&[], |both| &both[side as usize])
    }

    /// `tuple` is the sender's.
    fn note(&mut self, by: Side, from: Side, tuple: Tuple, bytes: &[u8], ecn: Codepoint) {
        if let Some(captures) = &mut self.captures {
            captures[by as usize].push(Captured {
                at: self.now,
                from,
                source: tuple.local,
                destination: tuple.remote,
                bytes: bytes.to_vec(),
                ecn,
            });
        }
    }

    fn put_on_link(&mut self, from: Side, departure: Departure) {
        let Departure {
            tuple,
            mut bytes,
            ecn,
        } = departure;
        self.note(from, from, tuple, &bytes, ecn);
        let seen_as = Tuple {
            local: tuple.remote,
            remote: tuple.local,
        };
        let link = match from {
            Side::Client => link_of(tuple.local.ip()),
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
            Fate::Corrupted { at, bits } if !negotiates_version(&bytes) => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bits;
                }
            }
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
        match flight.from {
            Side::Client => {
                let translator = &mut self.translators[link_of(tuple.remote.ip())];
                tuple.remote = translator.outwards(tuple.remote);
            }
            Side::Server => {
                let translator = &self.translators[link_of(tuple.local.ip())];
                let Some(inside) = translator.inwards(tuple.local) else {
                    return;
                };
                tuple.local = inside;
            }
        }
        let sent = Tuple {
            local: tuple.remote,
            remote: tuple.local,
        };
        let (by, bytes) = (flight.from.other(), &flight.bytes);
        self.note(by, flight.from, sent, bytes, flight.ecn);
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
