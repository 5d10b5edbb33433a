//! The application's calls on a connection: streams, datagrams, and the plain calls of one byte stream (RFC 9000
//! section 2.4).

use polypath_wire::quic::Frame;

use super::closed::Close;
use super::connection::Connection;
use super::datagram_size::payload;
use super::transfer::Transfer;
use crate::{CloseReason, EventKind, Nanos};

/// How an application closes a connection that served it.
const DONE: Close = Close {
    error: 0,
    frame_type: None,
    reason: "",
};

impl Transfer {
    /// The stream of the plain calls.
    fn own_stream(&mut self) -> Option<u64> {
        self.streams
            .open_own(&self.packets.parameters, &mut self.packets.control)
    }

    /// The client ends a connection on which both sides said everything.
    pub(super) fn finish_if_done(&mut self) {
        if self.is_done() {
            self.close_with(DONE, CloseReason::Finished);
        }
    }

    fn is_done(&self) -> bool {
        self.packets.identity.client()
            && !self.packets.lifetime.over()
            && self.packets.lifetime.established()
            && self.streams.done()
    }
}

impl Connection {
    /// Opens a stream, if the peer admits another one.
    pub fn open(&mut self, bidirectional: bool) -> Option<u64> {
        self.transfer.streams.open(
            bidirectional,
            &self.transfer.packets.parameters,
            &mut self.transfer.packets.control,
        )
    }

    /// The application writes `bytes` to the connection's one stream.
    pub fn write(&mut self, bytes: u64, now: Nanos) {
        if let Some(stream) = self.transfer.own_stream() {
            self.write_to(stream, bytes, now);
        }
    }

    /// The application writes `bytes` to a stream. What the send buffer has no room for waits.
    pub fn write_to(&mut self, stream: u64, bytes: u64, now: Nanos) {
        self.transfer.packets.now = now;
        if !self.transfer.packets.lifetime.over()
            && self.transfer.streams.outgoing_mut().write(stream, bytes)
        {
            self.flush();
        }
    }

    /// The application writes the last `bytes` of a stream.
    pub fn write_last(&mut self, stream: u64, bytes: u64, now: Nanos) {
        self.transfer.packets.now = now;
        if !self.transfer.packets.lifetime.over()
            && self.transfer.streams.outgoing_mut().write(stream, bytes)
        {
            self.transfer.streams.outgoing_mut().finish(stream);
            self.flush();
        }
    }

    /// From now on a stream is served before all of lower priority, and in turn with its equals (RFC 9000 section 2.3). It has 0 to begin with.
    pub fn set_priority(&mut self, stream: u64, priority: i32) {
        self.transfer
            .streams
            .outgoing_mut()
            .set_priority(stream, priority);
    }

    /// Nothing follows on a stream.
    pub fn finish(&mut self, stream: u64, now: Nanos) {
        self.transfer.packets.now = now;
        self.transfer.streams.outgoing_mut().finish(stream);
        self.flush();
    }

    /// Gives up sending on a stream: what is not acknowledged is not repeated (RFC 9000 section 3.1).
    pub fn reset_stream(&mut self, stream: u64, error: u64, now: Nanos) {
        self.transfer.packets.now = now;
        if let Some(final_size) = self.transfer.streams.outgoing_mut().reset(stream) {
            self.transfer.packets.control.push(Frame::ResetStream {
                stream,
                error,
                final_size,
            });
            self.flush();
        }
    }

    /// Sends a datagram, unreliably (RFC 9221). False: the peer takes none of this length, or no packet of a path has room for it (section 5).
    pub fn send_datagram(&mut self, len: u32, now: Nanos) -> bool {
        self.transfer.packets.now = now;
        let longest = longest_frame(self);
        if !self.transfer.datagrams.take_in(len, longest) {
            self.transfer.packets.event(EventKind::DatagramRefused(len));
            return false;
        }
        self.flush();
        true
    }

    /// Whether [`Connection::received_datagrams`] gives any.
    pub fn has_datagrams(&self) -> bool {
        self.transfer.datagrams.any_arrived()
    }

    /// Datagrams that arrived: the sender's numbers and lengths.
    pub fn received_datagrams(&mut self) -> Vec<(u64, u32)> {
        self.transfer.datagrams.take_arrived()
    }

    /// Takes back what was written to the one stream and lies beyond the send buffer; returns how much.
    pub fn cancel_writes(&mut self) -> u64 {
        let Some(stream) = self.transfer.streams.own() else {
            return 0;
        };
        let buffer = self.transfer.packets.config.send_buffer.maximum;
        let in_flight = self.transfer.streams.outgoing().unacknowledged()
            - self.transfer.streams.outgoing().unsent();
        self.transfer
            .streams
            .outgoing_mut()
            .cancel(stream, buffer.saturating_sub(in_flight))
    }

    /// Reads up to `bytes` of a stream.
    pub fn read_from(&mut self, stream: u64, bytes: u64, now: Nanos) -> u64 {
        self.transfer.packets.now = now;
        let taken = self.transfer.streams.read(stream, bytes);
        self.transfer
            .streams
            .tell_limits(&mut self.transfer.packets.control);
        taken
    }

    /// Tells the peer of limits that reading has moved, and of the end if nothing is left to read.
    pub fn announce_limits(&mut self, now: Nanos) {
        self.transfer.packets.now = now;
        if self.transfer.is_done() || !self.transfer.packets.control.is_empty() {
            self.flush();
        }
    }

    /// Reads all that there is of every stream: adds streams and bytes, a stream at its end with none.
    pub fn read_all(&mut self, now: Nanos, into: &mut Vec<(u64, u64)>) {
        if let Some(only) = self.transfer.streams.incoming().only() {
            if self.transfer.streams.incoming().is_readable(only) {
                into.push((only, self.read_from(only, u64::MAX, now)));
            }
        } else {
            for stream in self.transfer.streams.readable() {
                into.push((stream, self.read_from(stream, u64::MAX, now)));
            }
        }
        self.announce_limits(now);
    }

    /// Whether a stream's end was reached and everything was read.
    pub fn stream_at_end(&self, stream: u64) -> bool {
        self.transfer.streams.was_read(stream)
    }

    /// Reads up to `bytes` of whatever streams have any.
    pub fn read(&mut self, bytes: u64, now: Nanos) -> u64 {
        let mut left = bytes;
        for stream in self.transfer.streams.readable() {
            left -= self.read_from(stream, left, now);
        }
        if left < bytes || self.transfer.is_done() {
            self.flush();
        }
        bytes - left
    }

    /// The peer ended a stream, everything was read, and no other is open.
    pub fn at_end(&self) -> bool {
        self.transfer.packets.lifetime.over() || self.transfer.streams.at_end()
    }

    /// Ends every stream that this side sends on. The client closes the connection when both sides have ended theirs.
    pub fn close(&mut self, now: Nanos) {
        self.transfer.packets.now = now;
        if self.transfer.streams.own().is_none() && self.transfer.packets.lifetime.established() {
            self.transfer.own_stream();
        }
        self.transfer.streams.close();
        self.flush();
    }

    /// Ends the connection at once (RFC 9000 section 10.2).
    pub fn abort(&mut self, now: Nanos) {
        self.transfer.packets.now = now;
        if !self.transfer.packets.lifetime.over() {
            self.transfer.close_with(DONE, CloseReason::Aborted);
            self.flush();
        }
    }
}

/// The longest DATAGRAM frame that every open path takes now, and that the peer admits (RFC 9221 sections 3 and 5).
fn longest_frame(connection: &Connection) -> u64 {
    let paths = connection.transfer.packets.paths.iter();
    let open = paths.filter(|member| !member.closed());
    let room = open.map(|member| payload(member.datagram())).min();
    u64::from(room.unwrap_or(0)).min(
        connection
            .transfer
            .packets
            .parameters
            .peer()
            .max_datagram_frame_size,
    )
}

/// Bytes that the longest datagram may have which [`Connection::send_datagram`] takes now.
pub fn longest_datagram(connection: &Connection) -> u32 {
    let longest = longest_frame(connection) as u32;
    let frame = |len| Frame::Datagram { number: 0, len }.len();
    // The length has one byte up to 63, and two from there on (RFC 9000 section 16).
    let candidates = [longest.saturating_sub(3), longest.saturating_sub(2)];
    let fitting = candidates.into_iter().filter(|&len| frame(len) <= longest);
    fitting.max().unwrap_or(0)
}

/// Datagrams that no packet has carried yet.
pub fn waiting_datagrams(connection: &Connection) -> usize {
    connection.transfer.datagrams.waiting()
}

/// Whether the scheduler sends each datagram on several paths.
pub fn repeats_datagrams(connection: &mut Connection) -> bool {
    connection.transfer.policy.scheduler().repeats_datagrams()
}
