//! How a packet under construction is filled: with stream data, datagrams, control frames (RFC 9000 sections 2.2 and
//! 13, RFC 9221).

use polypath_wire::quic::Frame;

use super::chunks::Chunk;
use super::contents::Carried;
use super::control::Control;
use super::datagrams::Datagrams;
use super::draft::Draft;
use super::outgoing::Outgoing;
use super::traffic::Traffic;
use crate::Purpose;

/// No STREAM frame is shorter, as [`stream_fields`] has it.
const LEAST_STREAM: u32 = 4;

/// Bytes of a STREAM frame beside its data, where the data may be as long as a packet.
fn stream_fields(stream: u64, offset: u64) -> u32 {
    // The length takes two bytes from 64 on.
    Frame::stream_len(stream, offset, 0) + 1
}

impl Draft {
    /// Adds stream data: what is sent again first, and what lies at `first` before that. Whether there was any.
    #[inline(always)]
    pub fn fill(
        &mut self,
        outgoing: &mut Outgoing,
        traffic: &mut Traffic,
        first: Option<u64>,
    ) -> bool {
        let mut any = false;
        let mut again = first;
        loop {
            let position = again
                .take()
                .or_else(|| outgoing.next_again().map(|(position, ..)| position));
            if any && self.room < LEAST_STREAM {
                return true;
            }
            let added = match position {
                Some(position) => {
                    self.add_again(outgoing, traffic, position, Purpose::Retransmission)
                }
                None => self.add_new(outgoing, traffic),
            };
            if !added {
                return any;
            }
            any = true;
        }
    }

    #[inline(always)]
    fn add_new(&mut self, outgoing: &mut Outgoing, traffic: &mut Traffic) -> bool {
        let Some(chunk) = outgoing.take_new(self.path, self.room, stream_fields) else {
            return false;
        };
        traffic.on_new(chunk.len);
        if self.purpose == Purpose::Control {
            self.purpose = Purpose::Data;
        }
        self.add_chunk(chunk);
        true
    }

    /// Adds what lies at a position and was sent before; `purpose`: if by the same path.
    pub fn add_again(
        &mut self,
        outgoing: &mut Outgoing,
        traffic: &mut Traffic,
        position: u64,
        purpose: Purpose,
    ) -> bool {
        let before = outgoing.carried(position);
        let Some(chunk) = outgoing.take_again(position, self.path, self.room, stream_fields) else {
            return false;
        };
        if before.contains(self.path) {
            traffic.on_again(chunk.len);
            self.purpose = purpose;
        } else {
            traffic.on_reinjected(chunk.len);
            self.purpose = Purpose::Reinjection;
        }
        self.add_chunk(chunk);
        true
    }

    #[inline(always)]
    fn add_chunk(&mut self, chunk: Chunk) {
        let frame = Frame::Stream {
            stream: chunk.stream,
            offset: chunk.offset,
            len: chunk.len,
            fin: chunk.fin,
        };
        let len = Frame::stream_len(chunk.stream, chunk.offset, chunk.len);
        self.push_measured(frame, len);
        self.carried.add_data(chunk.position, chunk.end());
    }

    /// Adds as many datagrams as have room; gives the bytes in them. One that has none in an empty packet was let in while packets were longer
    /// (RFC 9221 section 5): it is `refused`.
    #[inline]
    pub fn add_datagrams(
        &mut self,
        datagrams: &mut Datagrams,
        mut refused: impl FnMut(u32),
    ) -> u32 {
        let mut bytes = 0;
        while let Some((number, len)) = datagrams.first() {
            let frame = Frame::Datagram { number, len };
            let fits = frame.len() <= self.room;
            if !fits && !self.is_empty() {
                break;
            }
            datagrams.drop_first();
            if fits {
                self.purpose = Purpose::Data;
                self.push(frame);
                bytes += len;
            } else {
                refused(len);
            }
        }
        bytes
    }

    /// Adds the control frames that have room.
    #[inline]
    pub fn add_control(&mut self, control: &mut Control) {
        while let Some(frame) = control.take(self.room) {
            self.carried.add(Carried::Control(frame.clone()));
            self.push(frame);
        }
    }
}
