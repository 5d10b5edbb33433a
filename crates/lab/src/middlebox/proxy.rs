//! A transparent proxy. It ends TCP connections in the host's name, and opens connections of its own to their
//! destinations.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use polypath_net::{Ecn, random};
use polypath_settings::{Algorithm, algorithm};
use polypath_transport::{
    Accept, Algorithms, Arrival, BlackHoles, CloseReason, Config, Connection, NEVER, Nanos, Ports,
    Retained, Segment, Sessions, Tuple,
};
use polypath_wire::tcp::Flags;
use rand_pcg::rand_core::RngCore;

use super::work::{Conversation, Middlebox, Passing, Work};
use crate::flow::{Body, Content, End, codepoint};

algorithm! {
    "proxy",
    "Ends each TCP connection, and relays it over a TCP connection of its own that it opens once the first is there",
    "RFC 8684 section 6; RFC 3135 (split connections); Honda et al., Is it still possible to extend TCP? (IMC 2011)";
    Proxy
}

impl Algorithm<dyn Middlebox> for Proxy {
    fn make(self) -> Box<dyn Middlebox> {
        Box::new(self)
    }
}

pub(super) struct Proxy {
    config: Arc<Config>,
    relays: Vec<Relay>,
    /// By client and server: the relay.
    known: BTreeMap<(SocketAddr, SocketAddr), usize>,
}

impl Default for Proxy {
    fn default() -> Self {
        let config = Config {
            multipath: false,
            ..Config::default()
        };
        Self {
            config: Arc::new(config),
            relays: Vec::new(),
            known: BTreeMap::new(),
        }
    }
}

/// A connection that was cut in two.
struct Relay {
    client: SocketAddr,
    server: SocketAddr,
    /// Towards the client, then towards the server.
    ends: [Option<Connection>; 2],
    /// Whether the server is at the link's second end.
    forward: bool,
    /// Of what the client sends, and of what the server sends.
    conversations: [Conversation; 2],
    sent: u16,
    /// The end of the stream was passed on to the client, to the server.
    closed: [bool; 2],
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl Proxy {
    fn host(&self, random: &mut impl RngCore) -> Accept {
        Accept {
            config: self.config.clone(),
            algorithms: Algorithms::default(),
            addresses: Vec::new(),
            mtus: Vec::new(),
            ports: Ports::default(),
            black_holes: BlackHoles::default(),
            random: random::stream(random.next_u64(), "proxy", 0, "transport"),
            sessions: Sessions::default(),
            retained: Retained::default(),
            isn: None,
        }
    }

    /// A SYN begins a relay.
    fn begin(&mut self, packet: &Passing, syn: &Segment, work: &mut Work<'_>) -> Option<usize> {
        let tuple = Tuple {
            local: packet.destination,
            remote: packet.source,
        };
        let accepted = Connection::accept(
            self.host(work.random),
            tuple,
            (syn, codepoint(packet.ecn)),
            work.now,
        )
        .ok()?;
        let answers = Conversation {
            sender: packet.conversation.sender.opposite(),
            stream: stream_of(packet.conversation.sender.opposite()),
            first_dsn: None,
        };
        self.relays.push(Relay {
            client: packet.source,
            server: packet.destination,
            ends: [Some(accepted), None],
            forward: packet.forward,
            conversations: [packet.conversation, answers],
            sent: 0,
            closed: [false; 2],
        });
        let index = self.relays.len() - 1;
        self.known
            .insert((packet.source, packet.destination), index);
        Some(index)
    }

    /// Moves bytes and ends of streams across, and sends what there is to send.
    fn follow_up(&mut self, index: usize, work: &mut Work<'_>) {
        let (now, relay) = (work.now, &self.relays[index]);
        let ready = relay.ends[CLIENT]
            .as_ref()
            .is_some_and(Connection::established);
        if ready && relay.ends[SERVER].is_none() {
            let tuple = Tuple {
                local: relay.client,
                remote: relay.server,
            };
            let opened = Connection::connect(self.host(work.random), tuple, now).ok();
            self.relays[index].ends[SERVER] = opened;
        }
        let relay = &mut self.relays[index];
        let [Some(client), server] = &mut relay.ends else {
            return;
        };
        if let Some(server) = server {
            relay_bytes(client, server, &mut relay.closed[SERVER], now);
            relay_bytes(server, client, &mut relay.closed[CLIENT], now);
        }
        relay.flush(work);
    }
}

/// From what one end received to what the other sends, as far as there is room; the end of the stream and resets too.
fn relay_bytes(from: &mut Connection, to: &mut Connection, closed: &mut bool, now: Nanos) {
    let (unacknowledged, unsent) = to.send_queue();
    let room = to.buffers().0.saturating_sub(unacknowledged + unsent);
    let bytes = from.read(from.available().min(room), now);
    if bytes > 0 {
        to.write(bytes, now);
    }
    if from.at_end() && !*closed {
        *closed = true;
        to.close(now);
    }
    let broken = from
        .ended()
        .is_some_and(|reason| reason != CloseReason::Finished);
    if broken && to.ended().is_none() {
        to.abort(now);
    }
}

impl Relay {
    fn flush(&mut self, work: &mut Work<'_>) {
        for (side, end) in self.ends.iter_mut().enumerate() {
            let Some(connection) = end else { continue };
            connection.events().clear();
            for transmit in std::mem::take(connection.transmits()) {
                let to_server = side == SERVER;
                let (source, destination) = if to_server {
                    (self.client, self.server)
                } else {
                    (self.server, self.client)
                };
                self.sent = self.sent.wrapping_add(1);
                work.tally.made += 1;
                work.send(Passing {
                    forward: to_server == self.forward,
                    source,
                    destination,
                    ecn: Ecn::NotEct,
                    body: Body {
                        identification: self.sent,
                        altered: false,
                        purpose: transmit.purpose,
                        content: Content::Tcp(transmit.segment),
                    },
                    flow: None,
                    conversation: self.conversations[usize::from(!to_server)],
                    about: None,
                });
            }
        }
    }

    fn deadline(&self) -> Nanos {
        let times = self.ends.iter().flatten().map(Connection::next_deadline);
        times.min().unwrap_or(NEVER)
    }
}

impl Proxy {
    /// A router's report about a segment of its own. False: it is about something else.
    #[cold]
    fn take_report(&mut self, packet: &Passing, work: &mut Work<'_>) -> bool {
        let (Content::TooBig { mtu, .. }, Some(about)) = (&packet.body.content, &packet.about)
        else {
            return false;
        };
        let Content::Tcp(segment) = &about.content else {
            return false;
        };
        let to_server = self.known.get(&(about.source, about.destination));
        let to_client = self.known.get(&(about.destination, about.source));
        let (index, side) = match (to_server, to_client) {
            (Some(&index), _) => (index, SERVER),
            (_, Some(&index)) => (index, CLIENT),
            _ => return false,
        };
        if let Some(connection) = &mut self.relays[index].ends[side] {
            connection.on_packet_too_big(0, segment.seq, *mtu, work.now);
        }
        work.tally.absorbed += 1;
        self.follow_up(index, work);
        true
    }
}

fn stream_of(sender: End) -> u64 {
    match sender {
        End::Subflow { endpoint, .. } => random::mix(u64::from(endpoint)),
        _ => 0,
    }
}

impl Middlebox for Proxy {
    fn pass(&mut self, mut packet: Passing, work: &mut Work<'_>) {
        let (source, destination) = packet.ends();
        let Some(segment) = packet.segment().cloned() else {
            if !self.take_report(&packet, work) {
                work.send(packet);
            }
            return;
        };
        let fresh = segment.flags & (Flags::SYN | Flags::ACK) == Flags::SYN;
        let known = match self.known.get(&(source, destination)) {
            Some(&index) => Some((index, CLIENT)),
            None => self
                .known
                .get(&(destination, source))
                .map(|&index| (index, SERVER)),
        };
        let Some((index, side)) = known else {
            if fresh && self.begin(&packet, &segment, work).is_some() {
                work.tally.absorbed += 1;
                return self.follow_up(self.relays.len() - 1, work);
            }
            work.tally.dropped += 1;
            return;
        };
        work.tally.absorbed += 1;
        if let Some(connection) = &mut self.relays[index].ends[side] {
            let arrival = Arrival {
                ecn: codepoint(packet.ecn),
                corrupted: false,
                purpose: packet.body.purpose,
            };
            connection.on_segment(0, &segment, arrival, work.now);
        }
        self.follow_up(index, work);
    }

    fn deadline(&self) -> Nanos {
        self.relays
            .iter()
            .map(Relay::deadline)
            .min()
            .unwrap_or(NEVER)
    }

    fn on_time(&mut self, work: &mut Work<'_>) {
        for index in 0..self.relays.len() {
            if self.relays[index].deadline() > work.now {
                continue;
            }
            for connection in self.relays[index].ends.iter_mut().flatten() {
                if connection.next_deadline() <= work.now {
                    connection.on_time(work.now);
                }
            }
            self.follow_up(index, work);
        }
    }
}
