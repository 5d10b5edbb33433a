//! Stream data to send: new bytes, and lost bytes again (RFC 9000 sections 2.2, 3.1 and 4).

use std::collections::VecDeque;

use super::chunks::{Chunk, Chunks};
use crate::scheduler::{Head, PathSet};

/// The sending part of a stream (RFC 9000 section 3.1).
#[derive(Debug)]
struct Stream {
    id: u64,
    priority: i32,
    written: u64,
    sent: u64,
    /// What the peer admits of it.
    max: u64,
    finishing: bool,
    fin_sent: bool,
    /// Bytes acknowledged, and the end.
    acked: u64,
    fin_acked: bool,
    /// The limit that STREAM_DATA_BLOCKED named last.
    blocked_at: Option<u64>,
}

impl Stream {
    fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    fn admitted(&self) -> u64 {
        self.unsent().min(self.max - self.sent)
    }

    /// It has something to send that its own limit admits.
    fn ready(&self, credit: u64) -> bool {
        self.admitted().min(credit) > 0 || (self.finishing && !self.fin_sent && self.unsent() == 0)
    }

    fn done(&self) -> bool {
        self.fin_acked && self.acked == self.written
    }
}

/// The sending half of all streams.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    streams: Vec<Stream>,
    chunks: Chunks,
    /// Positions of chunks to be sent again, and what they hold.
    again: VecDeque<u64>,
    /// The next position, and the sum of all streams' bytes that left.
    sent: u64,
    data: u64,
    /// Bytes written to streams and never sent.
    unsent: u64,
    /// What the peer admits of that sum (MAX_DATA).
    max: u64,
    /// That, or what it admits of some stream, is used up.
    at_limit: bool,
    blocked_at: Option<u64>,
    /// Some stream ended with everything acknowledged.
    finished: bool,
    /// The stream that comes after the one served last.
    turn: usize,
}

impl Outgoing {
    /// A stream on which this side may send up to `max` bytes for the time being.
    pub fn open(&mut self, id: u64, max: u64) {
        let at = self.streams.partition_point(|stream| stream.id < id);
        self.streams.insert(
            at,
            Stream {
                id,
                priority: 0,
                written: 0,
                sent: 0,
                max,
                finishing: false,
                fin_sent: false,
                acked: 0,
                fin_acked: false,
                blocked_at: None,
            },
        );
        self.compare_limits();
    }

    fn stream(&mut self, id: u64) -> Option<&mut Stream> {
        let at = self.streams.binary_search_by_key(&id, |stream| stream.id);
        at.ok().map(|at| &mut self.streams[at])
    }

    pub fn is_open(&self, id: u64) -> bool {
        self.streams
            .binary_search_by_key(&id, |stream| stream.id)
            .is_ok()
    }

    /// False: there is no such stream, or it was closed.
    pub fn write(&mut self, id: u64, bytes: u64) -> bool {
        let at = self.streams.binary_search_by_key(&id, |stream| stream.id);
        match at.ok().map(|at| &mut self.streams[at]) {
            Some(stream) if !stream.finishing => {
                stream.written += bytes;
                self.unsent += bytes;
                true
            }
            _ => false,
        }
    }

    /// Streams of a higher priority are served first; a stream has 0 to begin with.
    pub fn set_priority(&mut self, id: u64, priority: i32) {
        if let Some(stream) = self.stream(id) {
            stream.priority = priority;
        }
    }

    /// Nothing follows what was written.
    pub fn finish(&mut self, id: u64) {
        if let Some(stream) = self.stream(id) {
            stream.finishing = true;
        }
    }

    /// Nothing follows on any stream.
    pub fn finish_all(&mut self) {
        for stream in &mut self.streams {
            stream.finishing = true;
        }
    }

    /// Bytes that the application wrote to all streams, and those of them that were never sent.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Bytes written and not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.streams
            .iter()
            .map(|stream| stream.written - stream.acked)
            .sum()
    }

    /// The path that carried the first unacknowledged byte last.
    pub fn first_holder(&self) -> Option<usize> {
        self.chunks.front().map(|chunk| chunk.holder.into())
    }

    /// Takes back what was written to a stream and never sent; returns how much.
    pub fn cancel(&mut self, id: u64, keep: u64) -> u64 {
        let Some(stream) = self.stream(id) else {
            return 0;
        };
        let taken = stream.unsent().saturating_sub(keep);
        stream.written -= taken;
        self.unsent -= taken;
        taken
    }

    /// The peer admits more of everything (MAX_DATA).
    pub fn raise_max(&mut self, max: u64) {
        self.max = self.max.max(max);
        self.compare_limits();
    }

    /// To be called when a limit, or what is used of it, has changed.
    fn compare_limits(&mut self) {
        let used_up = |stream: &Stream| stream.sent == stream.max;
        self.at_limit = self.credit() == 0 || self.streams.iter().any(used_up);
    }

    /// The peer admits more of a stream (MAX_STREAM_DATA).
    pub fn raise_stream_max(&mut self, id: u64, max: u64) {
        if let Some(stream) = self.stream(id) {
            stream.max = stream.max.max(max);
        }
        self.compare_limits();
    }

    fn credit(&self) -> u64 {
        self.max - self.data
    }

    /// The stream to be served: the highest priority, and in turn among equals.
    #[inline(always)]
    fn chosen(&self) -> Option<usize> {
        if let [only] = &self.streams[..] {
            return only.ready(self.credit()).then_some(0);
        }
        self.chosen_of_several()
    }

    #[inline(never)]
    fn chosen_of_several(&self) -> Option<usize> {
        let credit = self.credit();
        let count = self.streams.len();
        (0..count)
            .map(|step| (self.turn + step) % count)
            .filter(|&at| self.streams[at].ready(credit))
            .rev()
            .max_by_key(|&at| self.streams[at].priority)
    }

    /// What would be new: its position, and the bytes from there that the peer's limits admit of its stream. An end alone counts one.
    pub fn next_new(&self) -> Option<(u64, u64)> {
        let stream = &self.streams[self.chosen()?];
        let len = stream.admitted().min(self.credit());
        Some((self.sent, len.max(1)))
    }

    /// Takes new bytes into a frame with room for `room` bytes of them, given the length of its fields for a stream and an offset.
    #[inline(always)]
    pub fn take_new(
        &mut self,
        path: usize,
        room: u32,
        fields: impl Fn(u64, u64) -> u32,
    ) -> Option<Chunk> {
        let at = self.chosen()?;
        let credit = self.credit();
        let stream = &mut self.streams[at];
        let room = room.checked_sub(fields(stream.id, stream.sent))?;
        let len = stream.admitted().min(credit).min(room.into());
        let fin = stream.finishing && len == stream.unsent();
        if len == 0 && !fin {
            return None;
        }
        let mut carried = PathSet::default();
        carried.insert(path);
        let chunk = Chunk {
            position: self.sent,
            stream: stream.id,
            offset: stream.sent,
            len: len as u32,
            fin,
            carried,
            holder: path as u16,
            acked: false,
            again: false,
        };
        stream.sent += len;
        stream.fin_sent |= fin;
        // Limits that are compared again when they rise.
        self.at_limit |= stream.sent == stream.max;
        self.data += len;
        self.unsent -= len;
        self.at_limit |= self.data == self.max;
        self.sent = chunk.end();
        self.turn = if at + 1 < self.streams.len() {
            at + 1
        } else {
            0
        };
        self.chunks.push(chunk);
        Some(chunk)
    }

    /// The oldest chunk that waits to be sent again: position, length, paths that carried it.
    pub fn next_again(&mut self) -> Option<(u64, u64, PathSet)> {
        while let Some(&position) = self.again.front() {
            if let Some(chunk) = self.chunks.find(position).filter(|chunk| chunk.again) {
                return Some((position, chunk.places(), chunk.carried));
            }
            self.again.pop_front();
        }
        None
    }

    /// Takes a chunk that was sent before into a frame of at most `room` bytes; what does not fit stays.
    pub fn take_again(
        &mut self,
        position: u64,
        path: usize,
        room: u32,
        fields: impl Fn(u64, u64) -> u32,
    ) -> Option<Chunk> {
        let chunk = *self.chunks.find(position)?;
        if chunk.acked {
            return None;
        }
        let room = room.checked_sub(fields(chunk.stream, chunk.offset))?;
        if chunk.len > room {
            if room == 0 {
                return None;
            }
            self.split(position, room);
        }
        let chunk = self.chunks.find_mut(position)?;
        chunk.carried.insert(path);
        chunk.holder = path as u16;
        chunk.again = false;
        Some(*chunk)
    }

    /// Cuts the chunk that holds a position in two, the first of `len` bytes.
    fn split(&mut self, position: u64, len: u32) {
        if let Some(rest) = self.chunks.cut(position, len)
            && rest.again
        {
            let after = self.again.partition_point(|&other| other < rest.position);
            self.again.insert(after, rest.position);
        }
    }

    /// The paths that carried what lies at a position, and where it ends.
    pub fn carried(&self, position: u64) -> PathSet {
        let chunk = self.chunks.find(position);
        chunk.map_or(PathSet::default(), |chunk| chunk.carried)
    }

    pub fn end_of(&self, position: u64) -> Option<u64> {
        self.chunks.find(position).map(Chunk::end)
    }

    /// The peer wants no more of a stream: nothing of it is sent or repeated from now on. Returns its final size.
    pub fn reset(&mut self, id: u64) -> Option<u64> {
        let at = self
            .streams
            .binary_search_by_key(&id, |stream| stream.id)
            .ok()?;
        let stream = self.streams.remove(at);
        self.unsent -= stream.unsent();
        let final_size = stream.sent;
        self.turn = 0;
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.stream == id) {
            chunk.acked = true;
            chunk.again = false;
        }
        self.chunks.drop_acked();
        Some(final_size)
    }

    /// What lies between two positions arrived. Returns the bytes that are news.
    #[inline(always)]
    pub fn on_acked(&mut self, position: u64, end: u64) -> u64 {
        let (streams, finished) = (&mut self.streams, &mut self.finished);
        let mut bytes = 0;
        self.chunks.visit(position, end, |chunk| {
            chunk.acked = true;
            chunk.again = false;
            bytes += u64::from(chunk.len);
            let place = match &streams[..] {
                [only] if only.id == chunk.stream => Ok(0),
                _ => streams.binary_search_by_key(&chunk.stream, |stream| stream.id),
            };
            if let Ok(at) = place {
                let stream = &mut streams[at];
                stream.acked += u64::from(chunk.len);
                stream.fin_acked |= chunk.fin;
                *finished |= stream.done();
            }
        });
        self.chunks.drop_acked();
        bytes
    }

    /// What lies between two positions was lost on `path`, or is not waited for there any longer: it is sent again unless another path carries it.
    pub fn on_lost(&mut self, position: u64, end: u64, path: usize) {
        let mut lost: Vec<u64> = Vec::new();
        self.chunks.visit(position, end, |chunk| {
            if !chunk.again && usize::from(chunk.holder) == path {
                chunk.again = true;
                lost.push(chunk.position);
            }
        });
        for position in lost {
            let after = self.again.partition_point(|&other| other < position);
            self.again.insert(after, position);
        }
    }

    /// The first chunk that is not known to have arrived.
    pub fn head(&self) -> Option<Head> {
        self.chunks.front().map(|chunk| Head {
            offset: chunk.position,
            carried: chunk.carried,
            holder: chunk.holder.into(),
        })
    }

    /// The lowest position not acknowledged, and the next new one.
    pub fn positions(&self) -> (u64, u64) {
        let una = self
            .chunks
            .front()
            .map_or(self.sent, |chunk| chunk.position);
        (una, self.sent)
    }

    /// Bytes that the peer's limits admit beyond those sent.
    pub fn window(&self) -> u64 {
        self.credit()
    }

    /// A limit of the peer's is used up, so that [`Outgoing::take_blocked`] may have something.
    pub fn at_limit(&self) -> bool {
        self.at_limit
    }

    /// New limits that hold data back and that the peer has not been told of: of the connection, and of streams (RFC 9000 section 4.1).
    pub fn take_blocked(&mut self) -> (Option<u64>, Vec<(u64, u64)>) {
        let mut connection = None;
        let waiting = self.streams.iter().any(|stream| stream.admitted() > 0);
        if waiting && self.credit() == 0 && self.blocked_at != Some(self.max) {
            self.blocked_at = Some(self.max);
            connection = self.blocked_at;
        }
        let mut streams = Vec::new();
        for stream in &mut self.streams {
            let held = stream.unsent() > 0 && stream.sent == stream.max;
            if held && stream.blocked_at != Some(stream.max) {
                stream.blocked_at = Some(stream.max);
                streams.push((stream.id, stream.max));
            }
        }
        (connection, streams)
    }

    /// The peer was not told of a limit after all: of a stream, or of the connection.
    pub fn forget_blocked(&mut self, stream: Option<u64>, limit: u64) {
        let told = match stream {
            Some(id) => self.stream(id).map(|stream| &mut stream.blocked_at),
            None => Some(&mut self.blocked_at),
        };
        if let Some(told) = told {
            told.take_if(|told| *told == limit);
        }
    }

    /// Forgets streams that ended with everything acknowledged.
    #[inline]
    pub fn forget_finished(&mut self) {
        if self.finished {
            self.finished = false;
            self.streams.retain(|stream| !stream.done());
            self.turn = 0;
        }
    }

    /// There is no data in flight, nor any that was never sent.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && !self.wants_to_send() && self.unsent() == 0
    }

    /// Everything written was acknowledged, the ends too.
    pub fn idle(&self) -> bool {
        self.chunks.is_empty() && !self.streams.iter().any(|stream| stream.ready(u64::MAX))
    }

    /// Data or an end waits that the limits admit.
    pub fn wants_to_send(&self) -> bool {
        !self.again.is_empty() || self.chosen().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn no_fields(_: u64, _: u64) -> u32 {
        0
    }

    fn outgoing(streams: &[(u64, u64)]) -> Outgoing {
        let mut outgoing = Outgoing::default();
        outgoing.raise_max(1 << 40);
        for &(id, bytes) in streams {
            outgoing.open(id, 1 << 40);
            outgoing.write(id, bytes);
            outgoing.finish(id);
        }
        outgoing
    }

    #[test]
    fn streams_of_one_priority_take_turns() {
        let mut outgoing = outgoing(&[(0, 250), (4, 100)]);
        let order: Vec<(u64, u32, bool)> = std::iter::from_fn(|| {
            let chunk = outgoing.take_new(0, 100, no_fields)?;
            Some((chunk.stream, chunk.len, chunk.fin))
        })
        .collect();
        assert_eq!(
            order,
            [
                (0, 100, false),
                (4, 100, true),
                (0, 100, false),
                (0, 50, true)
            ]
        );
    }

    #[test]
    fn a_higher_priority_goes_first() {
        let mut outgoing = outgoing(&[(0, 200), (4, 200)]);
        outgoing.set_priority(4, 1);
        for stream in [4, 4, 0, 0] {
            let chunk = outgoing.take_new(0, 100, no_fields).expect("there is more");
            assert_eq!(chunk.stream, stream);
        }
    }

    #[test]
    fn limits_hold_back_and_are_told_once() {
        let mut outgoing = Outgoing::default();
        outgoing.raise_max(150);
        outgoing.open(0, 100);
        outgoing.open(4, 100);
        outgoing.write(0, 500);
        outgoing.write(4, 500);
        assert_eq!(
            outgoing.take_new(0, 1000, no_fields).map(|c| c.len),
            Some(100)
        );
        assert_eq!(
            outgoing.take_new(0, 1000, no_fields).map(|c| c.len),
            Some(50)
        );
        assert_eq!(outgoing.take_new(0, 1000, no_fields), None);
        assert_eq!(outgoing.take_blocked(), (Some(150), vec![(0, 100)]));
        assert_eq!(outgoing.take_blocked(), (None, vec![]));
        outgoing.raise_max(400);
        outgoing.raise_stream_max(0, 300);
        assert_eq!(
            outgoing.take_new(0, 1000, no_fields).map(|c| c.stream),
            Some(0)
        );
    }

    #[test]
    fn an_end_alone_is_sent_and_awaited() {
        let mut outgoing = outgoing(&[]);
        outgoing.open(0, 100);
        outgoing.finish(0);
        let chunk = outgoing.take_new(0, 1000, no_fields).expect("the end");
        assert_eq!((chunk.len, chunk.fin), (0, true));
        assert!(!outgoing.idle());
        outgoing.on_acked(chunk.position, chunk.end());
        assert!(outgoing.idle());
        outgoing.forget_finished();
        assert!(!outgoing.is_open(0));
    }

    #[test]
    fn what_one_path_lost_is_not_sent_again_while_another_carries_it() {
        let mut outgoing = outgoing(&[(0, 100)]);
        let chunk = outgoing.take_new(0, 100, no_fields).expect("new");
        outgoing.take_again(chunk.position, 1, 100, no_fields);
        outgoing.on_lost(chunk.position, chunk.end(), 0);
        assert_eq!(outgoing.next_again(), None);
        outgoing.on_lost(chunk.position, chunk.end(), 1);
        assert_eq!(
            outgoing.next_again().map(|again| again.0),
            Some(chunk.position)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

        /// Whatever is lost, acknowledged late or cut for smaller packets: in the end each byte of each stream was acknowledged once.
        #[test]
        fn everything_arrives(
            sizes in prop::collection::vec(0u64..3000, 1..5),
            fates in prop::collection::vec((0u8..4, 1u32..700), 20..200),
        ) {
            let streams: Vec<(u64, u64)> =
                sizes.iter().enumerate().map(|(i, &bytes)| (4 * i as u64, bytes)).collect();
            let mut outgoing = outgoing(&streams);
            let mut flight = VecDeque::new();
            let mut acked = 0;
            let mut fates = fates.into_iter().chain(std::iter::repeat((0, 700)));
            while !outgoing.idle() {
                let (fate, room) = fates.next().expect("endless");
                let path = usize::from(fate % 2);
                let again = outgoing.next_again();
                let chunk = match again {
                    Some((position, ..)) => outgoing.take_again(position, path, room, no_fields),
                    None => outgoing.take_new(path, room, no_fields),
                };
                if let Some(chunk) = chunk {
                    flight.push_back((chunk.position, chunk.end(), path));
                }
                if fate < 2 || chunk.is_none() {
                    if let Some((position, end, _)) = flight.pop_front() {
                        acked += outgoing.on_acked(position, end);
                    }
                } else if fate == 3
                    && let Some((position, end, path)) = flight.pop_front()
                {
                    outgoing.on_lost(position, end, path);
                }
            }
            prop_assert_eq!(acked, sizes.iter().sum::<u64>());
            outgoing.forget_finished();
            prop_assert!(outgoing.streams.is_empty());
        }
    }
}
