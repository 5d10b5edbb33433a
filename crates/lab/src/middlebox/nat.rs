//! Network address and port translation: many hosts behind one address.
//!
//! If a router's report passes, the packet that it quotes is translated back. A report neither makes a mapping nor
//! keeps one alive (RFC 5508 sections 4.2 and 4.3).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use polypath_settings::{Algorithm, algorithm, choice};
use polypath_transport::{Nanos, SECOND};

use super::work::{Middlebox, Passing, Work};
use crate::flow::Content;

/// RFC 5382 REQ-5: a mapping of an established connection lives at least 2 hours and 4 minutes.
const IDLE_S: f64 = 7_440.0;

/// The first port that is given out where the inner one is not kept.
const FIRST_PORT: u16 = 1_024;

algorithm! {
    "nat",
    "Translates addresses and ports of what is behind it; what nobody inside asked for does not get in",
    "RFC 4787 and 5382 (endpoint-independent mapping, address and port-dependent filtering), RFC 5508 section 4 (reports)";
    /// Settings of address translation.
    NatConfig {
        /// its address outside; empty: one of 203.0.113.0/24 (RFC 5737)
        address: String as Text = Text(""),
        /// the end of the link that is behind it
        inside: Side as Text = Text("first"),
        /// seconds after which it forgets a flow that is idle (RFC 5382: 7440 at least)
        timeout_s: f64 as Number.within(1.0, 1e6) = Number(IDLE_S),
        /// translate to the same port if it is free; off: to ports in turn
        keep_ports: bool as Boolean = Boolean(true),
    }
}

choice! {
    /// An end of a link.
    Side {
        First = "first",
        Second = "second",
    }
}

impl Algorithm<dyn Middlebox> for NatConfig {
    fn make(self) -> Box<dyn Middlebox> {
        Box::new(Nat {
            text: self.address,
            address: None,
            first_inside: self.inside == Side::First,
            timeout: (self.timeout_s * SECOND as f64) as Nanos,
            keep_ports: self.keep_ports,
            next_port: FIRST_PORT,
            bindings: BTreeMap::new(),
            ports: BTreeMap::new(),
        })
    }
}

/// An address inside, of a protocol.
type Inner = (Protocol, SocketAddr);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Protocol {
    Tcp,
    Udp,
    Echo,
}

impl Protocol {
    fn of(content: &Content) -> Self {
        match content {
            Content::Tcp(_) => Self::Tcp,
            Content::Udp { .. } | Content::Quic(_) => Self::Udp,
            Content::Echo { .. } | Content::TooBig { .. } | Content::Frame(_) => Self::Echo,
        }
    }
}

/// What an inner address is translated to, and with whom it spoke when.
struct Binding {
    port: u16,
    sessions: BTreeMap<SocketAddr, Nanos>,
}

struct Nat {
    text: String,
    address: Option<IpAddr>,
    first_inside: bool,
    timeout: Nanos,
    keep_ports: bool,
    next_port: u16,
    bindings: BTreeMap<Inner, Binding>,
    /// Inner addresses by the port outside.
    ports: BTreeMap<(Protocol, u16), SocketAddr>,
}

impl Nat {
    /// Forgets an inner address that has spoken with nobody for the timeout.
    fn expire(&mut self, inner: Inner, now: Nanos) {
        let timeout = self.timeout;
        if let Some(binding) = self.bindings.get_mut(&inner) {
            binding.sessions.retain(|_, last| now - *last <= timeout);
            if binding.sessions.is_empty() {
                self.ports.remove(&(inner.0, binding.port));
                self.bindings.remove(&inner);
            }
        }
    }

    fn is_free(&mut self, protocol: Protocol, port: u16, now: Nanos) -> bool {
        if let Some(&holder) = self.ports.get(&(protocol, port)) {
            self.expire((protocol, holder), now);
        }
        !self.ports.contains_key(&(protocol, port))
    }

    fn free_port(&mut self, (protocol, inner): Inner, now: Nanos) -> Option<u16> {
        if self.keep_ports && self.is_free(protocol, inner.port(), now) {
            return Some(inner.port());
        }
        (FIRST_PORT..=u16::MAX).find_map(|_| {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            self.is_free(protocol, port, now).then_some(port)
        })
    }

    /// The port outside of a packet that goes out.
    fn outward(&mut self, inner: Inner, remote: SocketAddr, now: Nanos) -> Option<u16> {
        self.expire(inner, now);
        if !self.bindings.contains_key(&inner) {
            let port = self.free_port(inner, now)?;
            self.ports.insert((inner.0, port), inner.1);
            let sessions = BTreeMap::new();
            self.bindings.insert(inner, Binding { port, sessions });
        }
        let binding = self.bindings.get_mut(&inner)?;
        binding.sessions.insert(remote, now);
        Some(binding.port)
    }

    /// The address inside of a packet that comes in, if somebody there spoke with its sender lately.
    fn inward(
        &mut self,
        protocol: Protocol,
        port: u16,
        remote: SocketAddr,
        now: Nanos,
    ) -> Option<SocketAddr> {
        let inner = *self.ports.get(&(protocol, port))?;
        self.expire((protocol, inner), now);
        let binding = self.bindings.get_mut(&(protocol, inner))?;
        *binding.sessions.get_mut(&remote)? = now;
        Some(inner)
    }

    /// A report about a packet that it translated goes to the packet's sender, as what that sent. False: it knows of no such packet.
    #[cold]
    fn report(&self, packet: &mut Passing, address: IpAddr, now: Nanos) -> bool {
        let Some(about) = &mut packet.about else {
            return false;
        };
        let protocol = Protocol::of(&about.content);
        let speaks = |inner: SocketAddr, remote: SocketAddr| {
            let binding = self.bindings.get(&(protocol, inner))?;
            let last = *binding.sessions.get(&remote)?;
            (now - last <= self.timeout).then_some(binding.port)
        };
        if packet.forward == self.first_inside {
            // About what came in from outside: the router inside shows as the box itself.
            let Some(port) = speaks(about.destination, about.source) else {
                return false;
            };
            about.destination = (address, port).into();
            packet.source.set_ip(address);
            return true;
        }
        let inner = self.ports.get(&(protocol, about.source.port()));
        let known = |inner: &SocketAddr| speaks(*inner, about.destination).is_some();
        let ours = (packet.destination.ip(), about.source.ip()) == (address, address);
        let Some(&inner) = inner.filter(|inner| ours && known(inner)) else {
            return false;
        };
        about.source = inner;
        packet.destination.set_ip(inner.ip());
        true
    }
}

impl Middlebox for Nat {
    fn settle(&mut self, spare: IpAddr) -> Result<Option<IpAddr>, String> {
        let address = match &*self.text {
            "" => spare,
            text => text
                .parse()
                .map_err(|_| format!("nat: address must be an IP address, not \"{text}\""))?,
        };
        self.address = Some(address);
        Ok(self.address)
    }

    fn outside(&self) -> Option<(IpAddr, bool)> {
        Some((self.address?, self.first_inside))
    }

    fn pass(&mut self, mut packet: Passing, work: &mut Work<'_>) {
        let Some(address) = self
            .address
            .filter(|own| own.is_ipv4() == packet.source.is_ipv4())
        else {
            return work.send(packet);
        };
        let protocol = Protocol::of(&packet.body.content);
        let translated = if packet.about.is_some() {
            self.report(&mut packet, address, work.now)
        } else if packet.forward == self.first_inside {
            let port = self.outward((protocol, packet.source), packet.destination, work.now);
            port.map(|port| packet.source = (address, port).into())
                .is_some()
        } else if packet.destination.ip() == address {
            let inner = self.inward(protocol, packet.destination.port(), packet.source, work.now);
            inner.map(|inner| packet.destination = inner).is_some()
        } else {
            false
        };
        if translated {
            work.tally.changed += 1;
            work.send(packet);
        } else {
            work.tally.dropped += 1;
        }
    }
}
