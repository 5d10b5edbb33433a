//! The buffers in which upstream Linux keeps a TCP stream until it is acknowledged (`sk_write_queue`, `tcp_rtx_queue`).
//!
//! The end of a buffer decides what leaves together and is pushed. The cost of buffers decides when the writer
//! continues.

use std::collections::VecDeque;

use super::send_memory::BUFFER_OVERHEAD;

/// A buffer that has not left.
#[derive(Debug, Default)]
struct Waiting {
    len: u64,
    /// Its last segment is pushed.
    push: bool,
    /// Some of it has left: an MPTCP mapping is fixed then.
    cut: bool,
    /// A record ends with it.
    record: bool,
}

/// A buffer that has.
#[derive(Debug)]
struct Left {
    /// Where it ends in the stream.
    end: u64,
    len: u64,
}

/// The head of what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub len: u64,
    pub push: bool,
    pub last: bool,
}

#[derive(Debug, Default)]
pub(crate) struct WriteQueue {
    waiting: VecDeque<Waiting>,
    left: VecDeque<Left>,
    /// Payload of all.
    bytes: u64,
    /// Position in the stream up to which a push was asked for (`pushed_seq`).
    pushed: u64,
    /// The writer waits for room (SOCK_NOSPACE).
    blocked: bool,
    /// The last buffer grew since this was last pushed.
    grew: bool,
}

/// What a call gets into a buffer at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub bytes: u64,
    /// The buffer has no room left.
    pub full: bool,
}

impl WriteQueue {
    pub fn blocked(&self) -> bool {
        self.blocked
    }

    /// Puts up to `bytes` into the last buffer, or a new one, of `goal` bytes; `room`: the size of the send buffer; `first` of a call: what was
    /// there is no longer pushed (`tcp_sendmsg_locked`). None: there is no room for a new one, and the writer waits.
    pub fn append(&mut self, bytes: u64, goal: u64, room: u64, first: bool) -> Option<Taken> {
        let done = |last: &Waiting| last.len >= goal || last.record;
        if self.waiting.back().is_none_or(done) {
            if self.memory() >= room {
                self.blocked = true;
                return None;
            }
            self.waiting.push_back(Waiting::default());
        }
        let last = self.waiting.back_mut()?;
        let taken = bytes.min(goal.saturating_sub(last.len));
        last.push &= !first;
        last.len += taken;
        self.bytes += taken;
        Some(Taken {
            bytes: taken,
            full: last.len >= goal,
        })
    }

    /// Puts up to `bytes` into the last buffer if they follow on it, it holds less than `goal` and its mapping has not left
    /// (`mptcp_skb_can_collapse_to`), and otherwise into a new one (`mptcp_sendmsg_frag`). How many, and whether they went on in the last.
    pub fn map(&mut self, bytes: u64, goal: u64, follows: bool) -> (u64, bool) {
        let takes_more = |last: &Waiting| follows && !last.cut && last.len < goal;
        let goes_on = self.waiting.back().is_some_and(takes_more);
        if !goes_on {
            if let Some(last) = self.waiting.back_mut() {
                last.push |= last.len < goal;
            }
            self.waiting.push_back(Waiting::default());
        }
        let Some(last) = self.waiting.back_mut() else {
            return (bytes, false);
        };
        let taken = bytes.min(goal - last.len);
        last.push = false;
        last.len += taken;
        self.bytes += taken;
        self.grew = true;
        (taken, goes_on)
    }

    pub fn grew(&self) -> bool {
        self.grew
    }

    /// Pushes what was put in last (`mptcp_push_release`).
    pub fn push_new(&mut self) {
        if let Some(last) = self.waiting.back_mut()
            && std::mem::take(&mut self.grew)
        {
            last.push = true;
        }
    }

    /// Payload and overhead of all (`sk_wmem_queued`).
    pub fn memory(&self) -> u64 {
        self.bytes + (self.waiting.len() + self.left.len()) as u64 * BUFFER_OVERHEAD
    }

    /// No more than one is unacknowledged of those that left.
    pub fn at_most_one_left(&self) -> bool {
        self.left.len() <= 1
    }

    /// Bytes that have not left.
    pub fn unsent(&self) -> u64 {
        self.lengths().sum()
    }

    /// Asks for a push of all up to `written` (`tcp_mark_push`).
    pub fn push(&mut self, written: u64) {
        if let Some(last) = self.waiting.back_mut() {
            last.push = true;
            self.pushed = written;
        }
    }

    /// What follows on the last is put into another (MSG_EOR, `tcp_skb_can_collapse_to`).
    pub fn end_record(&mut self) {
        if let Some(last) = self.waiting.back_mut() {
            last.record = true;
        }
    }

    /// Pushes the head.
    pub fn push_head(&mut self) {
        if let Some(head) = self.waiting.front_mut() {
            head.push = true;
        }
    }

    /// More than half of the largest window waits for a push (`forced_push`).
    pub fn must_push(&self, written: u64, largest_window: u64) -> bool {
        written > self.pushed + largest_window / 2
    }

    pub fn one_waits(&self) -> bool {
        self.waiting.len() == 1
    }

    /// The head, grown to `bytes` from what follows on it (`tcp_grow_skb`).
    pub fn head(&mut self, bytes: u64) -> Option<Head> {
        let front = self.waiting.front()?;
        let missing = if front.record {
            0
        } else {
            bytes.saturating_sub(front.len)
        };
        let mut eaten = false;
        if missing > 0
            && let Some(next) = self.waiting.get_mut(1)
        {
            let moved = missing.min(next.len);
            next.len -= moved;
            let push = next.len == 0 && next.push;
            let record = next.len == 0 && next.record;
            eaten = next.len == 0;
            let head = &mut self.waiting[0];
            head.len += moved;
            head.push |= push;
            head.record = record;
        }
        if eaten {
            self.waiting.remove(1);
        }
        let head = &self.waiting[0];
        Some(Head {
            len: head.len,
            push: head.push,
            last: self.waiting.len() == 1,
        })
    }

    /// The head, grown to `bytes` from as many as that takes (`tcp_mtu_probe`).
    pub fn gather(&mut self, bytes: u64) -> Option<Head> {
        let mut head = self.head(bytes)?;
        while head.len < bytes && !head.last && !self.waiting[0].record {
            head = self.head(bytes)?;
        }
        Some(head)
    }

    /// Bytes in each buffer that has not left.
    pub fn lengths(&self) -> impl Iterator<Item = u64> + '_ {
        self.waiting.iter().map(|waiting| waiting.len)
    }

    /// The head's first `bytes` have left, up to `end` in the stream: a buffer of their own (`tso_fragment`).
    pub fn leave(&mut self, bytes: u64, end: u64) {
        let Some(head) = self.waiting.front_mut() else {
            debug_assert_eq!(bytes, 0, "nothing waits");
            return;
        };
        debug_assert!(bytes <= head.len, "{bytes} of {}", head.len);
        let bytes = bytes.min(head.len);
        if head.len > bytes {
            head.len -= bytes;
            head.cut = true;
        } else {
            self.waiting.pop_front();
        }
        self.left.push_back(Left { end, len: bytes });
    }

    /// Where the buffer ends, of those that left, that has the byte at `at`.
    pub fn end_of(&self, at: u64) -> Option<u64> {
        let index = self.left.partition_point(|left| left.end <= at);
        self.left.get(index).map(|left| left.end)
    }

    /// The buffer of those that left that has the byte before `at` ends there; what follows is one of its own (`tcp_fragment`).
    pub fn split(&mut self, at: u64) {
        let index = self.left.partition_point(|left| left.end < at);
        let Some(whole) = self.left.get_mut(index) else {
            return;
        };
        let rest = whole.end - at;
        if (1..whole.len).contains(&rest) {
            let end = whole.end;
            whole.end = at;
            whole.len -= rest;
            self.left.insert(index + 1, Left { end, len: rest });
        }
    }

    /// What left last did not: its segments, the last first, each with its length and whether it is pushed.
    pub fn take_back(&mut self, segments: impl Iterator<Item = (u64, bool)>) {
        let mut goes_on = false;
        for (len, push) in segments {
            let Some(last) = self.left.back_mut() else {
                debug_assert!(false, "nothing left");
                return;
            };
            debug_assert!(len <= last.len, "{len} of {}", last.len);
            last.len -= len;
            last.end -= len;
            let rest = last.len;
            match self.waiting.front_mut().filter(|_| goes_on) {
                Some(front) => front.len += len,
                None => self.waiting.push_front(Waiting {
                    len,
                    push,
                    cut: true,
                    record: false,
                }),
            }
            goes_on = rest > 0;
            if rest == 0 {
                self.left.pop_back();
            }
        }
    }

    /// The stream was acknowledged up to `una`.
    pub fn acknowledge(&mut self, una: u64) {
        while let Some(first) = self.left.front_mut() {
            let rest = first.end.saturating_sub(una).min(first.len);
            self.bytes -= first.len - rest;
            first.len = rest;
            if rest > 0 {
                break;
            }
            self.left.pop_front();
        }
    }

    /// Lets a writer that waits get on once a third of a full buffer is free (`sk_stream_write_space`).
    pub fn unblock(&mut self, room: u64) {
        let memory = self.memory();
        self.blocked &= room.saturating_sub(memory) < memory / 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(bytes: u64) -> Option<Taken> {
        let full = true;
        Some(Taken { bytes, full })
    }

    fn part(bytes: u64) -> Option<Taken> {
        let full = false;
        Some(Taken { bytes, full })
    }

    #[test]
    fn what_leaves_is_a_buffer_of_its_own_until_it_is_acknowledged() {
        let mut queue = WriteQueue::default();
        assert_eq!(queue.append(5_000, 3_000, 10_000, true), full(3_000));
        assert_eq!(queue.append(2_000, 3_000, 10_000, false), part(2_000));
        queue.push(5_000);
        assert_eq!(queue.memory(), 5_000 + 2 * BUFFER_OVERHEAD);
        queue.leave(2_000, 2_000);
        assert_eq!(queue.memory(), 5_000 + 3 * BUFFER_OVERHEAD);
        queue.acknowledge(1_000);
        assert_eq!(queue.memory(), 4_000 + 3 * BUFFER_OVERHEAD);
        queue.acknowledge(2_000);
        assert_eq!(queue.memory(), 3_000 + 2 * BUFFER_OVERHEAD);
        let head = queue.head(4_000);
        assert_eq!(
            head,
            Some(Head {
                len: 3_000,
                push: true,
                last: true
            })
        );
        assert_eq!(queue.memory(), 3_000 + BUFFER_OVERHEAD);
        queue.leave(3_000, 5_000);
        queue.acknowledge(5_000);
        assert_eq!(queue.memory(), 0);
    }

    /// Where a push was asked for decides what is pushed: only what holds the end of a pushed buffer.
    #[test]
    fn a_head_that_grows_is_pushed_once_it_holds_the_end_of_a_pushed_buffer() {
        let mut queue = WriteQueue::default();
        queue.append(3_000, 3_000, 10_000, true);
        queue.append(3_000, 3_000, 10_000, false);
        queue.push(6_000);
        let head = |len, push, last| Some(Head { len, push, last });
        assert_eq!(queue.head(2_000), head(3_000, false, false));
        assert_eq!(queue.head(4_000), head(4_000, false, false));
        assert_eq!(queue.head(6_000), head(6_000, true, true));
        assert_eq!(queue.head(9_000), head(6_000, true, true));
    }

    #[test]
    fn a_buffer_that_left_is_split_where_it_is_cut() {
        let mut queue = WriteQueue::default();
        queue.append(3_000, 3_000, 10_000, true);
        queue.append(3_000, 3_000, 10_000, false);
        queue.leave(3_000, 3_000);
        queue.leave(3_000, 6_000);
        assert_eq!(queue.end_of(0), Some(3_000));
        assert_eq!(queue.end_of(3_000), Some(6_000));
        assert_eq!(queue.end_of(6_000), None);
        queue.split(6_000);
        assert_eq!(queue.memory(), 6_000 + 2 * BUFFER_OVERHEAD);
        queue.split(5_000);
        assert_eq!(queue.memory(), 6_000 + 3 * BUFFER_OVERHEAD);
        assert_eq!(queue.end_of(4_999), Some(5_000));
        assert_eq!(queue.end_of(5_000), Some(6_000));
        queue.acknowledge(5_000);
        assert_eq!(queue.memory(), 1_000 + BUFFER_OVERHEAD);
        queue.acknowledge(6_000);
        assert_eq!(queue.memory(), 0);
    }

    #[test]
    fn what_was_refused_waits_again_at_the_front() {
        let mut queue = WriteQueue::default();
        assert_eq!(queue.map(3_000, 3_000, true), (3_000, false));
        assert_eq!(queue.map(2_000, 3_000, true), (2_000, false));
        queue.push_new();
        queue.leave(2_000, 2_000);
        queue.leave(1_000, 3_000);
        queue.leave(1_000, 4_000);
        let memory = queue.memory();
        // The last buffer, all of the one before, and half of the first, which is a buffer of its own then.
        queue.take_back([(1_000, true), (1_000, false), (1_000, false)].into_iter());
        assert_eq!(queue.memory(), memory + BUFFER_OVERHEAD);
        assert!(queue.lengths().eq([1_000, 1_000, 1_000, 1_000]));
        assert_eq!(queue.unsent(), 4_000);
        queue.acknowledge(1_000);
        for end in [2_000, 3_000, 4_000, 5_000] {
            queue.leave(1_000, end);
        }
        queue.acknowledge(5_000);
        assert_eq!(queue.memory(), 0);
    }

    #[test]
    fn a_probe_is_gathered_from_as_many_buffers_as_it_takes() {
        let mut queue = WriteQueue::default();
        for _ in 0..3 {
            assert_eq!(queue.append(1_000, 1_000, 10_000, true), full(1_000));
        }
        let len = |head: Option<Head>| head.map(|head| (head.len, head.last));
        assert_eq!(len(queue.gather(2_500)), Some((2_500, false)));
        assert!(queue.lengths().eq([2_500, 500]));
        assert_eq!(queue.memory(), 3_000 + 2 * BUFFER_OVERHEAD);
        assert_eq!(
            len(queue.gather(4_000)),
            Some((3_000, true)),
            "all there is"
        );
    }

    #[test]
    fn a_writer_that_found_no_room_waits_for_a_third() {
        let mut queue = WriteQueue::default();
        let room = 3 * (3_000 + BUFFER_OVERHEAD);
        for _ in 0..3 {
            assert_eq!(queue.append(3_000, 3_000, room, true), full(3_000));
        }
        assert_eq!(queue.append(3_000, 3_000, room, true), None);
        queue.leave(3_000, 3_000);
        queue.acknowledge(2_999);
        queue.unblock(room);
        assert!(queue.blocked());
        queue.acknowledge(3_000);
        queue.unblock(room);
        assert!(!queue.blocked());
    }
    #[test]
    fn a_mapping_grows_until_it_is_full_or_leaves() {
        let mut queue = WriteQueue::default();
        assert_eq!(queue.map(1_000, 3_000, true), (1_000, false));
        queue.push_new();
        assert_eq!(queue.map(1_000, 3_000, true), (1_000, true));
        assert!(
            !queue.head(0).is_some_and(|head| head.push),
            "it goes on where it was pushed"
        );
        queue.leave(1_000, 1_000);
        assert_eq!(queue.map(1_000, 3_000, true), (1_000, false));
        assert_eq!(queue.memory(), 3_000 + 3 * BUFFER_OVERHEAD);
        assert!(
            queue.head(0).is_some_and(|head| head.push),
            "nothing is put behind what left in part"
        );
        assert_eq!(queue.map(2_500, 3_000, true), (2_000, true));
        assert_eq!(queue.map(500, 3_000, true), (500, false));
        assert_eq!(
            queue.map(500, 3_000, false),
            (500, false),
            "elsewhere in the stream"
        );
        assert_eq!(queue.memory(), 6_000 + 5 * BUFFER_OVERHEAD);
    }
}
