//! A connection whose datagrams and streams are bytes.

use std::collections::BTreeMap;
use std::io;
use std::mem;

use polypath_transport::quic::bytes::Protector;
use polypath_transport::quic::{Codepoint, Connection};
use polypath_transport::{Nanos, Tuple};
use polypath_wire::quic::{Carried, Frame};

use super::PathReport;
use super::content::{Pieces, Source};
use super::request::error;
use super::sockets::Sockets;
use crate::LiveError;

pub(super) struct Peer {
    connection: Connection,
    protector: Protector,
    outgoing: BTreeMap<u64, Box<dyn Source>>,
    incoming: BTreeMap<u64, Pieces>,
}

impl Peer {
    pub fn new(connection: Connection) -> Self {
        Self {
            protector: Protector::new(&connection),
            connection,
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
        }
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Ends the connection at once.
    pub fn close(&mut self, now: Nanos) {
        self.connection.abort(now);
    }

    pub fn receive(&mut self, tuple: Tuple, datagram: &[u8], now: Nanos) {
        let incoming = &mut self.incoming;
        let mut take = |frame: &mut Frame, bytes: &[u8]| {
            if let Frame::Stream { stream, offset, .. } = frame {
                incoming.entry(*stream).or_default().put(*offset, bytes);
            }
        };
        let connection = &mut self.connection;
        self.protector.receive(
            connection,
            tuple,
            datagram,
            Codepoint::NotEct,
            now,
            &mut take,
        );
    }

    /// Does what is due at `now`.
    pub fn on_time(&mut self, now: Nanos) {
        if self.connection.next_deadline() <= now {
            self.connection.on_time(now);
        }
    }

    /// When something is due next. A connection that this side closed answers for a while.
    pub fn deadline(&self) -> Nanos {
        if self.connection.ended().is_some() {
            self.connection.lifetime().closing_until()
        } else {
            self.connection.next_deadline()
        }
    }

    /// It ended, and answers no more.
    pub fn over(&self, now: Nanos) -> bool {
        self.connection.ended().is_some() && now >= self.connection.lifetime().closing_until()
    }

    /// Opens a stream and sends all of it, if the peer admits one.
    pub fn request(&mut self, bytes: Vec<u8>, now: Nanos) -> Option<u64> {
        let stream = self.connection.open(true)?;
        let len = bytes.len() as u64;
        self.send(stream, Box::new(bytes), len, now);
        Some(stream)
    }

    /// Sends `len` bytes on a stream, and its end.
    pub fn send(&mut self, stream: u64, source: Box<dyn Source>, len: u64, now: Nanos) {
        self.outgoing.insert(stream, source);
        self.connection.write_last(stream, len, now);
    }

    pub fn give_up(&mut self, stream: u64, error: u64, now: Nanos) {
        self.connection.reset_stream(stream, error, now);
    }

    /// Hands over what can be read of a stream. Whether it is at its end.
    pub fn read(
        &mut self,
        stream: u64,
        now: Nanos,
        into: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<bool> {
        let count = self.connection.read_from(stream, u64::MAX, now);
        if count > 0 {
            let pieces = self.incoming.entry(stream).or_default();
            pieces.take(count, into)?;
        }
        let ended = self.connection.stream_at_end(stream);
        if ended {
            self.incoming.entry(stream).or_default().end();
        }
        self.connection.announce_limits(now);
        Ok(ended)
    }

    /// Seals what is to be sent and puts it on the sockets.
    pub fn depart(&mut self, sockets: &mut Sockets, now: Nanos) -> Result<(), LiveError> {
        self.connection.events().clear();
        while !self.connection.transmits().is_empty() {
            for transmit in mem::take(self.connection.transmits()) {
                let outgoing = &mut self.outgoing;
                let mut unreadable = None;
                let mut fill = |carried: Carried, bytes: &mut [u8]| {
                    let Carried::Stream { stream, offset } = carried else {
                        return;
                    };
                    let source = outgoing.get_mut(&stream);
                    let filled = source.is_some_and(|source| source.fill(offset, bytes).is_ok());
                    if !filled && !bytes.is_empty() {
                        unreadable = Some(stream);
                    }
                };
                let connection = &mut self.connection;
                let bytes = self
                    .protector
                    .seal(connection, &transmit.datagram, &mut fill);
                match unreadable {
                    None => sockets.send(transmit.tuple, bytes)?,
                    // What cannot be filled in does not leave.
                    Some(stream) => connection.reset_stream(stream, error::UNREADABLE, now),
                }
            }
        }
        if self.connection.send_queue() == (0, 0) {
            self.outgoing.clear();
        }
        Ok(())
    }

    pub fn paths(&self, sockets: &Sockets) -> Vec<PathReport> {
        let members = self.connection.members().iter();
        members
            .zip(self.connection.paths())
            .map(|(member, path)| PathReport {
                id: member.id(),
                local: sockets.bound(member.tuple().local),
                remote: member.tuple().remote,
                acked: path.acked,
                received: member.totals().received,
            })
            .collect()
    }
}
