//! What a socket was given to send and has not sent yet.

use std::collections::VecDeque;

use super::flight::Flight;
use super::sender::{Chunk, Kind, Push};
use crate::linux::send_memory;
use crate::linux::write_queue::WriteQueue;
use crate::path::Path;

/// What is asked for beside what every socket tells its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reckoning {
    Nothing,
    /// The rate at which segments leave, by which they are grouped.
    Rate,
    /// And what its queue costs, by which a scheduler fills it.
    RateAndMemory,
}

/// Chunks in the order in which they leave.
pub(crate) struct SendQueue {
    chunks: VecDeque<Chunk>,
    bytes: u64,
    /// What waits and is in flight of a subflow, as upstream Linux keeps it.
    buffers: Option<Box<WriteQueue>>,
    reckoning: Reckoning,
    /// What a scheduler may fill of a queue without such buffers, at most.
    largest: u64,
}

impl SendQueue {
    /// `buffered`: chunks lie in buffers as upstream Linux keeps them.
    pub fn new(buffered: bool, largest: u64, reckoning: Reckoning) -> Self {
        Self {
            chunks: VecDeque::new(),
            bytes: 0,
            buffers: buffered.then(Box::default),
            reckoning,
            largest,
        }
    }

    /// Whether more is asked for than every socket tells its path.
    #[inline(always)]
    pub fn reckons(&self) -> bool {
        self.reckoning != Reckoning::Nothing
    }

    /// Tells what the queue costs, in Linux's reckoning, where that is asked for.
    #[inline]
    pub fn publish_memory(&self, path: &mut Path, flight: &Flight) {
        if self.reckoning != Reckoning::RateAndMemory {
            return;
        }
        path.memory = match &self.buffers {
            Some(buffers) => buffers.memory(),
            None => {
                let wanted = send_memory::buffer_for(path, path.cwnd).min(self.largest);
                path.buffer = path.buffer.max(wanted);
                send_memory::charged(path, flight.bytes(), self.bytes)
            }
        };
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline(always)]
    pub fn chunks(&self) -> &VecDeque<Chunk> {
        &self.chunks
    }

    #[inline(always)]
    pub fn front(&self) -> Option<&Chunk> {
        self.chunks.front()
    }

    /// Whether its chunks lie in buffers of its own.
    #[inline(always)]
    pub fn has_buffers(&self) -> bool {
        self.buffers.is_some()
    }

    #[inline(always)]
    pub fn buffers(&self) -> Option<&WriteQueue> {
        self.buffers.as_deref()
    }

    #[inline(always)]
    pub fn buffers_mut(&mut self) -> Option<&mut WriteQueue> {
        self.buffers.as_deref_mut()
    }

    /// Lends the buffers, to be given back.
    pub fn lend_buffers(&mut self) -> Option<Box<WriteQueue>> {
        self.buffers.take()
    }

    pub fn give_back_buffers(&mut self, buffers: Box<WriteQueue>) {
        self.buffers = Some(buffers);
    }

    /// Nothing is kept in buffers any more.
    pub fn drop_buffers(&mut self) {
        self.buffers = None;
    }

    /// It was given data that was not pushed yet.
    pub fn has_new_data(&self) -> bool {
        self.buffers.as_ref().is_some_and(|buffers| buffers.grew())
    }

    pub fn clear(&mut self) {
        self.chunks.clear();
        self.bytes = 0;
        self.buffers = None;
    }

    /// The chunk goes on in the stream where the last one ends.
    pub fn is_followed_by(&self, chunk: &Chunk) -> bool {
        let last = self.chunks.back();
        last.is_some_and(|last| last.offset + u64::from(last.len) == chunk.offset)
    }

    /// Puts a chunk at the end.
    pub fn push(&mut self, chunk: Chunk) {
        self.bytes += u64::from(chunk.len);
        self.chunks.push_back(chunk);
    }

    /// Puts a chunk that waits at the end. It fills up the last to `most` bytes if that waits, too, and the chunk goes on where it ends.
    pub fn append(&mut self, chunk: Chunk, most: u32) {
        self.bytes += u64::from(chunk.len);
        let follows = self.is_followed_by(&chunk);
        self.fill_up(chunk, most, follows);
    }

    /// Puts as much of a chunk into each buffer as that holds, up to `goal` bytes. Kept out of the path of the profiles that have none.
    #[inline(never)]
    pub fn map(&mut self, mut chunk: Chunk, mss: u32, goal: u64) {
        self.bytes += u64::from(chunk.len);
        let mut follows = self.is_followed_by(&chunk);
        while let Some(buffers) = &mut self.buffers
            && chunk.len > 0
        {
            let (taken, goes_on) = buffers.map(chunk.len.into(), goal, follows);
            let len = taken as u32;
            self.fill_up(Chunk { len, ..chunk }, mss, goes_on);
            chunk.offset += taken;
            chunk.len -= len;
            follows = true;
        }
    }

    /// Puts a chunk at the end; one that waits fills up the last if that waits, too, and it `follows` on it.
    fn fill_up(&mut self, mut chunk: Chunk, most: u32, follows: bool) {
        if let Some(last) = self.chunks.back_mut()
            && follows
            && last.waits
            && chunk.waits
        {
            let taken = chunk.len.min(most.saturating_sub(last.len));
            last.len += taken;
            last.push = if taken == chunk.len {
                chunk.push
            } else {
                Push::No
            };
            chunk.offset += u64::from(taken);
            chunk.len -= taken;
        }
        if chunk.len > 0 {
            self.chunks.push_back(chunk);
        }
    }

    #[inline(always)]
    pub fn pop(&mut self) -> Option<Chunk> {
        let chunk = self.chunks.pop_front()?;
        self.bytes -= u64::from(chunk.len);
        Some(chunk)
    }

    /// A chunk was not sent after all.
    pub fn put_back(&mut self, chunk: Chunk) {
        self.bytes += u64::from(chunk.len);
        self.chunks.push_front(chunk);
    }

    /// Takes `len` bytes off the buffer at the head, which end at the sequence number `end`; absent: that holds fewer, and a segment has one
    /// mapping (`mptcp_skb_can_collapse`).
    pub fn take(&mut self, len: u32, end: u64) -> Option<Chunk> {
        let wanted = u64::from(len);
        let buffers = self.buffers.as_mut()?;
        let head = buffers.head(0).filter(|head| head.len >= wanted)?;
        buffers.leave(wanted, end);
        let mut taken = *self.chunks.front()?;
        let mut missing = len;
        while let Some(chunk) = self.chunks.front_mut() {
            let part = chunk.len.min(missing);
            chunk.offset += u64::from(part);
            chunk.len -= part;
            missing -= part;
            if chunk.len > 0 {
                break;
            }
            self.chunks.pop_front();
        }
        self.bytes -= wanted;
        taken.len = len;
        taken.push = Push::of_group(1, head.push && head.len == wanted);
        Some(taken)
    }

    /// Makes one chunk of those that wait in one buffer.
    pub fn join(&mut self) {
        let Some(buffers) = &self.buffers else {
            return;
        };
        let mut waiting = std::mem::take(&mut self.chunks).into_iter();
        for mut rest in buffers.lengths() {
            let Some(mut whole) = waiting.next() else {
                break;
            };
            rest = rest.saturating_sub(whole.len.into());
            while rest > 0
                && let Some(next) = waiting.next()
            {
                rest = rest.saturating_sub(next.len.into());
                whole.len += next.len;
                whole.push = next.push;
                whole.kind = next.kind;
            }
            self.chunks.push_back(whole);
        }
        self.chunks.extend(waiting);
    }

    /// Cuts what is longer than `mss`; the stream's first segment is shorter by `excess`.
    pub fn cut_to(&mut self, mss: u32, excess: u32) {
        self.cut(|offset| if offset == 0 { mss - excess } else { mss });
    }

    /// What waits is cut from each buffer's beginning (`tcp_set_skb_tso_segs`).
    pub fn recut(&mut self, mss: u32, excess: u32) {
        self.join();
        self.cut_to(mss, excess);
    }

    /// Cuts what is longer than `most` says of what begins at an offset of the stream.
    fn cut(&mut self, most: impl Fn(u64) -> u32) {
        let mut chunks = VecDeque::with_capacity(self.chunks.len());
        for mut chunk in std::mem::take(&mut self.chunks) {
            while chunk.len > most(chunk.offset) {
                let len = most(chunk.offset);
                chunks.push_back(Chunk {
                    len,
                    push: Push::No,
                    kind: Kind::New,
                    ..chunk
                });
                chunk.offset += u64::from(len);
                chunk.len -= len;
            }
            chunks.push_back(chunk);
        }
        self.chunks = chunks;
    }

    /// What lies in buffers may be longer than it was cut to.
    pub fn lengthen(&mut self, mss: u32) {
        let Some(buffers) = &self.buffers else {
            return;
        };
        let lengths: Vec<u64> = buffers.lengths().collect();
        let mut lengths = lengths.into_iter();
        let mut left = 0;
        for chunk in std::mem::take(&mut self.chunks) {
            let follows = left > 0;
            if !follows {
                left = lengths.next().unwrap_or(chunk.len.into());
            }
            left = left.saturating_sub(chunk.len.into());
            self.fill_up(chunk, mss, follows);
        }
    }

    /// So many bytes of the buffer at the head leave, up to the sequence number `end`.
    #[inline(always)]
    pub fn leave(&mut self, bytes: u64, end: u64) {
        if let Some(buffers) = &mut self.buffers {
            buffers.leave(bytes, end);
        }
    }

    /// Buffers below `una` are free.
    #[inline(always)]
    pub fn acknowledge(&mut self, una: u64) {
        if let Some(buffers) = &mut self.buffers {
            buffers.acknowledge(una);
        }
    }
}
