//! Connections of QUIC in captures: their datagrams by path, and their packets where the secrets of TLS are at hand.
//!
//! A connection begins with an Initial packet (RFC 9000 section 17.2.2). Its other paths are known by the ids that its packets name, or else by
//! the server's address. What is sealed shows bytes and times alone.

mod connection;
mod datagram;
pub mod keys;
mod opener;
mod path;
mod rows;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use polypath_trace::{EventRow, HeaderRow, PacketRow, Recording, SegmentRow, StreamFrameRow};
use polypath_wire::quic::{ConnectionId, Frame};

pub use connection::Connection;
pub use datagram::Datagram;
pub use keys::{KeyLog, Level};
pub use path::Path;

use crate::analysis::{SIDES, Settings};
use crate::hosts::Hosts;
use crate::instants;
use crate::packet::Tap;
use connection::{News, Opened};
use datagram::Opening;
use opener::Space;
use rows::Rows;

/// Datagrams whose copies at other places are waited for.
const MARKS: usize = 1 << 16;
/// Ports below this one are servers'.
const SERVERS: u16 = 1024;

/// An id, and whom datagrams to it go to: a connection's client or server.
#[derive(Clone, Copy)]
struct Addressed {
    connection: usize,
    side: usize,
}

/// Follows every connection.
pub struct Quic<'a> {
    settings: &'a Settings,
    log: KeyLog,
    zero_ns: Option<i64>,
    pub connections: Vec<Connection>,
    flows: HashMap<(SocketAddr, SocketAddr), (usize, usize)>,
    ids: HashMap<ConnectionId, Addressed>,
    /// Lengths of ids, the longest first.
    lengths: BTreeSet<std::cmp::Reverse<usize>>,
    servers: HashMap<SocketAddr, usize>,
    marks: HashMap<u64, ()>,
    order: VecDeque<u64>,
    rows: Rows,
    /// Rows of packets that were not acknowledged yet, of a connection by number space and number.
    under_way: HashMap<(usize, Space, u64), usize>,
    /// Connections of others, which have the numbers before.
    first: usize,
    pub datagrams: u64,
    pub end_ns: i64,
}

impl<'a> Quic<'a> {
    /// `first`: connections of others, which have the numbers before; `zero_ns`: the Recording's time 0 as far as they know it.
    pub fn new(settings: &'a Settings, log: KeyLog, first: usize, zero_ns: Option<i64>) -> Self {
        Self {
            settings,
            log,
            zero_ns,
            connections: Vec::new(),
            flows: HashMap::new(),
            ids: HashMap::new(),
            lengths: BTreeSet::new(),
            servers: HashMap::new(),
            marks: HashMap::new(),
            order: VecDeque::new(),
            rows: Rows::default(),
            under_way: HashMap::new(),
            first,
            datagrams: 0,
            end_ns: 0,
        }
    }

    /// Absolute time of the Recording's 0; nothing where there is no connection.
    pub fn zero_ns(&self) -> Option<i64> {
        self.zero_ns
    }

    pub fn see(&mut self, datagram: &Datagram) {
        let opening = datagram.opening();
        if opening.is_none() && !datagram.is_short() {
            return;
        }
        let Some((number, at, from)) = self.locate(datagram, opening.as_ref()) else {
            return;
        };
        self.datagrams += 1;
        let zero = *self.zero_ns.get_or_insert(datagram.time_ns);
        let zero = zero.min(datagram.time_ns);
        self.zero_ns = Some(zero);
        let now = datagram.time_ns - zero;
        self.end_ns = self.end_ns.max(now);
        if self.is_copy(datagram.mark()) {
            return;
        }
        self.sample_before(number, now);
        let connection = &mut self.connections[number];
        let before = connection.established;
        let closed = connection.closed;
        let news = connection.see(datagram, opening.as_ref(), (at, from), &self.log, now);
        self.tell(number, at, from, before, closed, &news, now);
        for &(id, _) in &news.ids {
            self.address(id, number, from);
        }
    }

    /// Whether the same datagram was seen before, at this place or another.
    fn is_copy(&mut self, mark: u64) -> bool {
        if self.marks.insert(mark, ()).is_some() {
            return true;
        }
        self.order.push_back(mark);
        if self.order.len() > MARKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.marks.remove(&oldest);
        }
        false
    }

    fn address(&mut self, id: ConnectionId, connection: usize, side: usize) {
        if !id.is_empty() {
            self.lengths.insert(std::cmp::Reverse(id.len()));
            self.ids.insert(id, Addressed { connection, side });
        }
    }

    /// The connection of a datagram, its path there, and which side sent it.
    fn locate(
        &mut self,
        datagram: &Datagram,
        opening: Option<&Opening>,
    ) -> Option<(usize, usize, usize)> {
        let (source, destination) = (datagram.source, datagram.destination);
        let ends = if source <= destination {
            (source, destination)
        } else {
            (destination, source)
        };
        let known = self.flows.get(&ends).copied();
        let begins = opening.filter(|it| {
            it.initial
                && !self.ids.contains_key(&it.destination)
                && !self.ids.contains_key(&it.source)
        });
        if let (Some((number, at)), None) = (known, begins) {
            let from = usize::from(self.connections[number].paths[at].client != source);
            return Some((number, at, from));
        }
        if let Some((number, at)) = known
            && self.connections[number].closed.is_none()
            && self.connections[number].paths[at].server == source
        {
            // The server's first answer, to a client without an id.
            return Some((number, at, 1));
        }
        if datagram.may_begin() && (begins.is_some() || (opening.is_some() && known.is_none())) {
            return Some(self.begin(datagram, ends));
        }
        let (number, from) = self.addressed(datagram)?;
        let connection = &mut self.connections[number];
        let (client, server) = match from {
            0 => (source, destination),
            _ => (destination, source),
        };
        connection.paths.push(Path::new(client, server));
        let at = connection.paths.len() - 1;
        self.flows.insert(ends, (number, at));
        Some((number, at, from))
    }

    fn begin(
        &mut self,
        datagram: &Datagram,
        ends: (SocketAddr, SocketAddr),
    ) -> (usize, usize, usize) {
        let (source, destination) = (datagram.source, datagram.destination);
        let answers = source.port() < SERVERS && destination.port() >= SERVERS;
        let (client, server) = if answers {
            (destination, source)
        } else {
            (source, destination)
        };
        let number = self.connections.len();
        let at = self
            .zero_ns
            .map_or(0, |zero| (datagram.time_ns - zero).max(0));
        self.connections.push(Connection::new(client, server, at));
        self.flows.insert(ends, (number, 0));
        self.servers.insert(server, number);
        (number, 0, usize::from(answers))
    }

    /// The connection of a short header on a path that was not seen before, by its destination's id or else by the server's address.
    fn addressed(&self, datagram: &Datagram) -> Option<(usize, usize)> {
        let named = self.lengths.iter().find_map(|len| {
            let id = datagram.payload.get(1..1 + len.0)?;
            self.ids.get(&ConnectionId::new(id))
        });
        if let Some(found) = named {
            return Some((found.connection, 1 - found.side));
        }
        let to = self.servers.get(&datagram.destination).map(|&it| (it, 0));
        let from = || self.servers.get(&datagram.source).map(|&it| (it, 1));
        to.or_else(from)
            .filter(|&(number, _)| !self.connections[number].opened)
    }

    #[allow(clippy::too_many_arguments)]
    fn tell(
        &mut self,
        number: usize,
        at: usize,
        from: usize,
        before: [Option<i64>; 2],
        closed: Option<i64>,
        news: &News,
        now: i64,
    ) {
        let connection = &self.connections[number];
        let ends = [
            connection.paths[0].client.ip(),
            connection.paths[0].server.ip(),
        ];
        let path = &connection.paths[at];
        if before[from].is_none() && connection.established[from].is_some() {
            self.event(number, ends[from], "connection-established", None, now);
            self.event(number, ends[from], "subflow-established", Some(at), now);
        } else if at > 0 && path.answered() == Some(now) {
            self.event(number, ends[from], "subflow-established", Some(at), now);
        }
        for &(space, _, path) in &news.lost {
            self.event(number, ends[space.2], "loss", Some(path), now);
        }
        if closed.is_none() && self.connections[number].closed.is_some() {
            self.event(number, ends[1 - from], "connection-closed", None, now);
        }
        if !self.settings.segments {
            return;
        }
        self.acknowledge(number, news, now);
        for opened in &news.packets {
            self.segment(number, at, from, opened, now);
        }
    }

    /// What became of packets whose rows are there.
    fn acknowledge(&mut self, number: usize, news: &News, now: i64) {
        for &(space, lost, _) in &news.lost {
            if let Some(&row) = self.under_way.get(&(number, space, lost)) {
                self.rows.segments[row].2.lost = true;
            }
        }
        for acked in &news.acked {
            let key = (number, acked.space, acked.number);
            if let Some(row) = self.under_way.remove(&key) {
                let packet = &mut self.rows.segments[row].2;
                packet.acked_ns = Some(now);
                packet.ack_delay_ns = acked.delay_ns;
            }
        }
    }

    fn event(
        &mut self,
        number: usize,
        host: IpAddr,
        kind: &'static str,
        path: Option<usize>,
        now: i64,
    ) {
        let detail = if kind == "connection-closed" {
            "finished"
        } else {
            ""
        };
        let row = EventRow {
            time_ns: now,
            kind: kind.into(),
            host: "".into(),
            connection: Some((self.first + number) as u32),
            subflow: path.map(|it| it as u32),
            link: None,
            value: None,
            detail: detail.into(),
        };
        self.rows.events.push((host, row));
    }

    fn segment(&mut self, number: usize, at: usize, from: usize, opened: &Opened, now: i64) {
        let kind = match opened {
            it if it.reinjected > 0 => "reinjection",
            it if it.again > 0 => "retransmission",
            it if it.data > 0 => "data",
            _ => "ack",
        };
        let mut row = SegmentRow {
            time_ns: now,
            connection: (self.first + number) as u32,
            side: SIDES[from].into(),
            subflow: at as u32,
            seq: opened.packet.header.number,
            ack: 0,
            dsn: None,
            payload_bytes: opened.data as u32,
            kind: kind.into(),
        };
        for frame in &opened.packet.frames {
            match frame {
                Frame::Ack(ack) => row.ack = ack.ranges.first().map_or(0, |range| range.1),
                Frame::Stream {
                    stream,
                    offset,
                    len,
                    ..
                } => {
                    row.dsn.get_or_insert(*offset);
                    if *len > 0 {
                        self.rows.frames.push(StreamFrameRow {
                            segment: self.rows.segments.len() as u32,
                            stream: *stream,
                            offset: *offset,
                            bytes: *len,
                        });
                    }
                }
                _ => {}
            }
        }
        let header = HeaderRow::of_packet(0, &opened.packet);
        let packet = PacketRow {
            segment: 0,
            path: opened.space.1,
            bytes: opened.bytes as u32,
            acked_ns: None,
            ack_delay_ns: None,
            lost: false,
        };
        let key = (number, opened.space, opened.packet.header.number);
        self.under_way.insert(key, self.rows.segments.len());
        self.rows.segments.push((row, header, packet));
    }

    /// Samples of a connection at the instants since its last datagram.
    fn sample_before(&mut self, number: usize, now: i64) {
        let interval = self.settings.interval_ns;
        let sampled = &mut self.connections[number].sampled;
        for at in instants::since(sampled, now, interval) {
            self.sample(number, at);
        }
    }

    fn sample(&mut self, number: usize, at: i64) {
        let connection = &self.connections[number];
        let known = connection.is_known(&self.log);
        rows::sample(&mut self.rows, connection, self.first + number, known, at);
    }

    /// The last samples; then everything is added to what other connections have.
    pub fn finish(&mut self, into: &mut Recording, hosts: &Hosts, end_ns: i64) {
        for number in 0..self.connections.len() {
            if let Some(sampled) = self.connections[number].sampled {
                let next = sampled.saturating_add(self.settings.interval_ns);
                if next <= end_ns {
                    self.sample(number, next);
                }
            }
        }
        let known = self.connections.iter().map(|it| it.is_known(&self.log));
        let known: Vec<bool> = known.collect();
        rows::totals(into, &self.connections, &known, self.first, hosts);
        rows::append(into, std::mem::take(&mut self.rows), hosts);
    }

    /// The ends of each connection's paths, the client's first.
    pub fn ends(&self) -> Vec<Vec<(SocketAddr, SocketAddr)>> {
        let ends = |it: &Connection| it.paths.iter().map(|it| (it.client, it.server)).collect();
        self.connections.iter().map(ends).collect()
    }

    /// Addresses at which a tap stood, and which.
    pub fn places(&self) -> Vec<(IpAddr, Tap)> {
        let paths = self.connections.iter().flat_map(|it| &it.paths);
        paths.flat_map(place).collect()
    }

    /// What is to be said of them, a line each.
    pub fn notes(&self) -> Vec<String> {
        let total = self.connections.len();
        let sealed = self.connections.iter().filter(|it| !it.opened).count();
        let cut: u64 = self.connections.iter().map(|it| it.cut).sum();
        let refused: u64 = self.connections.iter().map(|it| it.refused).sum();
        let mut notes = Vec::new();
        if sealed > 0 {
            notes.push(format!(
                "{sealed} of {total} connections of QUIC are sealed: their bytes are those of datagrams, a round trip is the handshake's, and losses are not told; \
                 a key log opens them (SSLKEYLOGFILE, --keys)"
            ));
        }
        if cut > 0 {
            notes.push(format!(
                "{cut} datagrams of QUIC were not captured whole and cannot be opened; tcpdump -s 0 keeps them whole"
            ));
        }
        if refused > 0 {
            notes.push(format!(
                "{refused} packets of QUIC could not be opened with their connection's secrets"
            ));
        }
        notes
    }
}

/// A tap from which so much of a round trip lies beyond stands at this end: hosts take some time of their own.
const AT_THE_END: f64 = 0.95;

/// The ends of a path that a tap stood at, and which: the place of capture divides its round trips, and each of two places is near the end
/// whose datagrams it saw first.
fn place(path: &Path) -> Vec<(IpAddr, Tap)> {
    let [Some(client), Some(server)] = [0, 1].map(|side| path.sides[side].tap) else {
        return Vec::new();
    };
    let ends = [(path.client.ip(), client), (path.server.ip(), server)];
    match path.nearness() {
        _ if client.file != server.file => ends.to_vec(),
        Some(at) if at > AT_THE_END => vec![ends[0]],
        Some(at) if at < 1.0 - AT_THE_END => vec![ends[1]],
        _ => Vec::new(),
    }
}
