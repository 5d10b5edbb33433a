//! A connection of QUIC as its datagrams show it: by path; and by packet where its secrets are known.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use polypath_wire::quic::{Ack, ConnectionId, Frame, Frames, Header, Kind, Packet};

use super::datagram::{Datagram, Opening};
use super::keys::{KeyLog, Level};
use super::opener::{Opener, Outcome, Space};
use super::path::{Path, Sent};
use crate::ranges::Ranges;

/// A packet is lost if one that was sent so many later was acknowledged (RFC 9002 section 6.1.1).
const REORDERING: u64 = 3;
/// What an end shifts its delays of acknowledgements by, unless it says otherwise (RFC 9000 section 18.2).
const DELAY_EXPONENT: u32 = 3;

/// What came of a datagram.
#[derive(Debug, Default)]
pub struct News {
    /// Ids that the sender will be addressed by, and the path that each is for.
    pub ids: Vec<(ConnectionId, u64)>,
    /// Packets that could be opened.
    pub packets: Vec<Opened>,
    /// Packets that are lost, with the path that they were sent on.
    pub lost: Vec<(Space, u64, usize)>,
    pub acked: Vec<Acked>,
}

/// A packet that was acknowledged.
#[derive(Debug)]
pub struct Acked {
    pub space: Space,
    pub number: u64,
    /// Since when the peer had it, of the largest.
    pub delay_ns: Option<i64>,
}

/// A packet that was opened.
#[derive(Debug)]
pub struct Opened {
    pub packet: Packet,
    pub space: Space,
    /// On the wire.
    pub bytes: usize,
    /// Bytes of streams, and of these what had been sent before, on the same path and on another.
    pub data: u64,
    pub again: u64,
    pub reinjected: u64,
}

pub struct Connection {
    /// The first path's are the connection's. Ends are the client's and the server's.
    pub paths: Vec<Path>,
    pub first_ns: i64,
    /// When client and server knew that it is established.
    pub established: [Option<i64>; 2],
    pub closed: Option<i64>,
    /// What the receivers of client's and server's data have of it, by the acknowledgements.
    pub delivered: [u64; 2],
    pub first_byte: Option<i64>,
    pub last_byte: Option<i64>,
    /// A packet behind the handshake was opened.
    pub opened: bool,
    /// Packets behind the handshake that were not, though its secrets are known.
    pub refused: u64,
    /// Datagrams of which only the begin was captured.
    pub cut: u64,
    /// The last instant with a sample; none before the first datagram.
    pub sampled: Option<i64>,
    opener: Opener,
    ledger: Ledger,
}

/// What was sent, and what of it was acknowledged.
#[derive(Default)]
struct Ledger {
    outstanding: BTreeMap<Space, BTreeMap<u64, Sent>>,
    /// What client and server have sent of each stream, and what was acknowledged.
    sent: [BTreeMap<u64, Ranges>; 2],
    acked: [BTreeMap<u64, Ranges>; 2],
    /// By stream and begin, where the end of a piece is and which path carried it first, until it is acknowledged.
    carried: [BTreeMap<(u64, u64), (u64, usize)>; 2],
}

impl Connection {
    pub fn new(client: SocketAddr, server: SocketAddr, at: i64) -> Self {
        Self {
            paths: vec![Path::new(client, server)],
            first_ns: at,
            established: [None; 2],
            closed: None,
            delivered: [0; 2],
            first_byte: None,
            last_byte: None,
            opened: false,
            refused: 0,
            cut: 0,
            sampled: None,
            opener: Opener::default(),
            ledger: Ledger::default(),
        }
    }

    /// What recordings call it.
    pub fn transport(&self) -> &'static str {
        if self.opener.knows_several_paths() && self.paths.len() > 1 {
            "mpquic"
        } else {
            "quic"
        }
    }

    /// Whether its secrets are known, so that bytes are those of streams and not of datagrams.
    pub fn is_known(&self, log: &KeyLog) -> bool {
        self.opener.is_known(log)
    }

    /// A datagram of a side passes on a path.
    pub fn see(
        &mut self,
        datagram: &Datagram,
        opening: Option<&Opening>,
        (at, from): (usize, usize),
        log: &KeyLog,
        now: i64,
    ) -> News {
        let mut news = News::default();
        self.paths[at].on_datagram(from, datagram.len, datagram.tap, now);
        if let Some(opening) = opening {
            self.opener.on_opening(opening, from);
            news.ids.push((opening.source, 0));
        }
        if !datagram.is_whole() {
            self.cut += 1;
            return news;
        }
        for protected in self.opener.packets(&datagram.payload, from) {
            if matches!(protected.kind, Kind::Handshake | Kind::OneRtt { .. }) {
                self.established[from].get_or_insert(now);
            }
            let bytes = &datagram.payload[protected.range.clone()];
            match self.opener.open(&protected, bytes, from, log) {
                Outcome::Opened(space, header, payload) => {
                    self.opened |= space.0 == Level::OneRtt;
                    self.frames(space, (at, bytes.len()), header, &payload, now, &mut news);
                }
                Outcome::Refused => self.refused += 1,
                Outcome::Sealed => {}
            }
        }
        news
    }

    /// The frames of a packet of so many bytes, which a path carried.
    pub fn frames(
        &mut self,
        space: Space,
        (at, bytes): (usize, usize),
        header: Header,
        payload: &[u8],
        now: i64,
        news: &mut News,
    ) {
        let (level, path, from) = space;
        let number = header.number;
        let frames: Vec<Frame> = Frames::new(payload)
            .map_while(Result::ok)
            .map(|it| it.0)
            .collect();
        let mut opened = Opened {
            packet: Packet {
                header,
                path,
                frames,
            },
            space,
            bytes,
            data: 0,
            again: 0,
            reinjected: 0,
        };
        let mut sent = Sent {
            at: now,
            path: at,
            eliciting: opened.packet.frames.iter().any(Frame::ack_eliciting),
            data: Vec::new(),
        };
        for frame in &opened.packet.frames {
            match frame {
                Frame::Stream {
                    stream,
                    offset,
                    len,
                    ..
                } if *len > 0 => {
                    let range = *offset..offset.saturating_add(u64::from(*len));
                    let len = range.end - range.start;
                    let before = self.ledger.sent[from].entry(*stream).or_default();
                    let again = len - before.insert(range.clone());
                    opened.data += len;
                    if again == 0 {
                        self.ledger.carried[from].insert((*stream, range.start), (range.end, at));
                    } else if self
                        .carrier(from, *stream, range.start)
                        .is_some_and(|it| it != at)
                    {
                        opened.reinjected += again;
                    } else {
                        opened.again += again;
                    }
                    sent.data.push((*stream, range));
                }
                Frame::Ack(ack) => {
                    let of = match level {
                        Level::OneRtt => (level, ack.path.unwrap_or(0), 1 - from),
                        _ => (level, 0, 1 - from),
                    };
                    self.acknowledge(of, ack, now, news);
                }
                Frame::NewConnectionId(new) => {
                    let path = new.path.unwrap_or(0);
                    self.opener.on_new_id(new.id, path);
                    news.ids.push((new.id, path));
                }
                Frame::Crypto { offset, data } if level == Level::Initial && from == 0 => {
                    self.opener.hello(*offset, data);
                }
                Frame::ConnectionClose { .. } => {
                    self.closed.get_or_insert(now);
                }
                _ => {}
            }
        }
        self.paths[at].on_packet(from, &opened, sent.eliciting);
        self.ledger
            .outstanding
            .entry(space)
            .or_default()
            .insert(number, sent);
        news.packets.push(opened);
    }

    /// The path that carried a byte of a stream first, as long as it is not acknowledged.
    fn carrier(&self, from: usize, stream: u64, position: u64) -> Option<usize> {
        let before = self.ledger.carried[from]
            .range(..=(stream, position))
            .next_back();
        let (&(of, _), &(end, path)) = before?;
        (of == stream && position < end).then_some(path)
    }

    fn acknowledge(&mut self, space: Space, ack: &Ack, now: i64, news: &mut News) {
        let from = space.2;
        let Some(outstanding) = self.ledger.outstanding.get_mut(&space) else {
            return;
        };
        let largest = ack.ranges.first().map_or(0, |range| range.1);
        let mut arrived = Vec::new();
        for &(low, high) in &ack.ranges {
            let numbers: Vec<u64> = outstanding.range(low..=high).map(|(&it, _)| it).collect();
            for number in numbers {
                arrived.extend(outstanding.remove(&number).map(|sent| (number, sent)));
            }
        }
        let lost: Vec<u64> = outstanding
            .range(..largest.saturating_sub(REORDERING - 1))
            .map(|(&it, _)| it)
            .collect();
        for number in lost {
            if let Some(sent) = outstanding.remove(&number) {
                self.paths[sent.path].on_lost(from, &sent);
                news.lost.push((space, number, sent.path));
            }
        }
        let eliciting = arrived.iter().any(|(_, sent)| sent.eliciting);
        for (number, sent) in arrived {
            let mut delay_ns = None;
            if number == largest && eliciting {
                let delay = ack
                    .delay
                    .saturating_mul(1 << DELAY_EXPONENT)
                    .saturating_mul(1000);
                let waited = now - sent.at;
                let delay = i64::try_from(delay).unwrap_or(i64::MAX).min(waited);
                self.paths[sent.path].round_trip(from, waited - delay);
                delay_ns = Some(delay);
            }
            news.acked.push(Acked {
                space,
                number,
                delay_ns,
            });
            self.paths[sent.path].on_acked(from, &sent);
            for (stream, range) in sent.data {
                let acked = self.ledger.acked[from].entry(stream).or_default();
                let new = acked.insert(range.clone());
                self.ledger.carried[from].remove(&(stream, range.start));
                self.delivered[from] += new;
                if new > 0 {
                    self.first_byte.get_or_insert(now);
                    self.last_byte = Some(now);
                }
            }
        }
    }
}
