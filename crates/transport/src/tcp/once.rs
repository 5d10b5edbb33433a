//! Which bytes of the stream have left, whatever socket sent them: what tells a reinjection from data that only waited elsewhere.

use crate::ranges::RangeSet;

/// What the sockets of a connection have sent of its stream.
#[derive(Debug, Default)]
pub(crate) struct Once {
    /// Behind the last byte that was sent.
    end: u64,
    /// Stretches before it that were not: they wait in a socket's queue, or did when it was closed.
    holes: RangeSet,
    /// Sent by a second socket, too.
    again: RangeSet,
    /// Bytes of which the first copy was taken back: the second, which a socket counts as a reinjection, is the first now.
    pub outrun: u64,
}

impl Once {
    /// A socket sends a stretch that it did not send before. Returns how many bytes of it another one had sent.
    #[inline(always)]
    pub fn send(&mut self, offset: u64, len: u32) -> u64 {
        let end = offset + u64::from(len);
        if offset == self.end {
            self.end = end;
            return 0;
        }
        self.send_out_of_turn(offset, end)
    }

    #[inline(never)]
    fn send_out_of_turn(&mut self, offset: u64, end: u64) -> u64 {
        if offset > self.end {
            self.holes.insert(self.end, offset, |_, _| {});
            self.end = end;
            return 0;
        }
        let known = end.min(self.end);
        self.end = self.end.max(end);
        let (mut at, mut again) = (offset, 0);
        let repeated = &mut self.again;
        let mut repeat = |from: u64, to: u64| {
            again += to - from;
            repeated.insert(from, to, |_, _| {});
        };
        self.holes.remove(offset, known, |from, to| {
            repeat(at, from);
            at = to;
        });
        repeat(at, known);
        again
    }

    /// A stretch was not sent after all. Returns how many bytes of it another socket has sent, as `send` did.
    #[cold]
    pub fn take_back(&mut self, offset: u64, len: u32) -> u64 {
        let end = offset + u64::from(len);
        let (mut at, mut elsewhere) = (offset, 0);
        let holes = &mut self.holes;
        self.again.remove(offset, end, |from, to| {
            holes.insert(at, from, |_, _| {});
            elsewhere += to - from;
            at = to;
        });
        holes.insert(at, end, |_, _| {});
        elsewhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Sockets that send stretches of their own in any order, some of which are taken back at once.
        #[test]
        fn counts_what_another_socket_has_sent(
            sent in prop::collection::vec((0u64..50, 1u32..12, any::<bool>()), 1..40)
        ) {
            let mut once = Once::default();
            let mut times = BTreeMap::<u64, u32>::new();
            for (offset, len, stays) in sent {
                let stretch = offset..offset + u64::from(len);
                // A third copy is not told from a second when it is taken back.
                if stretch.clone().any(|byte| times.get(&byte).is_some_and(|&count| count > 1)) {
                    continue;
                }
                let before = stretch.clone().filter(|byte| times.contains_key(byte)).count() as u64;
                prop_assert_eq!(once.send(offset, len), before);
                if stays {
                    stretch.for_each(|byte| *times.entry(byte).or_default() += 1);
                } else {
                    prop_assert_eq!(once.take_back(offset, len), before);
                }
            }
        }
    }
}
