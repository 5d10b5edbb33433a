//! Data that was written into an upstream MPTCP connection: data fragments in pages, kept until they are acknowledged
//! (Linux net/mptcp/protocol.c `mptcp_sendmsg`, `struct mptcp_data_frag`, `__mptcp_clean_una`).
//!
//! The scheduler is asked once for each (`__subflow_push_pending`).

use std::collections::VecDeque;

use super::CALL;

/// Bytes of a page (`SKB_FRAG_PAGE_ORDER`), of a fragment's own record in it, and what must fit behind that.
const PAGE: u64 = 32_768;
const RECORD: u64 = 40;
const LEAST: u64 = 32;

#[derive(Debug)]
struct Fragment {
    /// Where it ends in the stream.
    end: u64,
    /// What it costs besides its data: its record, and the padding before that.
    record: u64,
    page: u64,
}

/// How far the stream is acknowledged, sent and written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub una: u64,
    pub sent: u64,
    pub written: u64,
}

/// A decision: from the byte at `since` on up to the end of a fragment everything goes to one subflow.
#[derive(Clone, Copy, Debug)]
struct Holder {
    subflow: usize,
    since: u64,
    end: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Fragments {
    kept: VecDeque<Fragment>,
    /// Cost of their records.
    records: u64,
    /// The page that is being filled, how far, and where in the stream it begins.
    page: u64,
    filled: u64,
    began: u64,
    /// Subflows hold parts of the stream up to here, whatever the connection's peer has acknowledged.
    held: u64,
    /// The writer found no room and waits for a third of a full buffer.
    waits: bool,
    /// A writer that polls finds no such room (SOCK_NOSPACE).
    full: bool,
    /// What the subflows that are through their handshakes had for buffers when the connection's was last summed up.
    buffers: u64,
    holder: Option<Holder>,
    /// It sends once all packets of the instant are taken in; until then the scheduler is not asked again (`mptcp_sched_get_send`).
    delegated: bool,
}

impl Fragments {
    pub fn full(&self) -> bool {
        self.full
    }

    /// Whether they have another sum now.
    pub fn buffers_changed(&mut self, sum: u64) -> bool {
        std::mem::replace(&mut self.buffers, sum) != sum
    }

    /// Subflows await acknowledgements of their own for parts of the stream up to `end`: their buffers keep the page.
    pub fn note_held(&mut self, end: u64) {
        self.held = end;
    }

    /// Everything up to `una` was acknowledged.
    fn acknowledge(&mut self, una: u64) {
        while let Some(first) = self.kept.front()
            && first.end <= una
        {
            self.records -= first.record;
            self.kept.pop_front();
        }
    }

    /// What of a writer's `waiting` bytes a call gets into a send buffer of `room` bytes. 0: it waits, until a third of a full buffer is free
    /// (`sk_stream_write_space`), or has none.
    pub fn write(&mut self, waiting: u64, mut at: Progress, room: u64) -> u64 {
        self.acknowledge(at.una);
        let queued = self.queued(at);
        let space = room.saturating_sub(queued);
        self.full = space == 0 || space < queued / 2;
        self.waits &= self.full;
        if self.waits {
            return 0;
        }
        let mut left = waiting.min(CALL);
        let before = at.written;
        while left > 0 {
            if self.queued(at) >= room {
                self.full = true;
                self.waits = true;
                break;
            }
            let taken = left.min(self.open(at));
            if let Some(last) = self.kept.back_mut() {
                last.end += taken;
            }
            self.filled += taken;
            at.written += taken;
            left -= taken;
        }
        at.written - before
    }

    /// Payload and records of all (`sk_wmem_queued`).
    fn queued(&self, at: Progress) -> u64 {
        at.written - at.una + self.records
    }

    /// How much goes into the last fragment, or a new one: only one that has not left in whole is filled up (`mptcp_frag_can_collapse_to`).
    /// A page that nobody holds any more is filled from its beginning (`skb_page_frag_refill`).
    fn open(&mut self, at: Progress) -> u64 {
        if at.sent < at.written && self.filled < PAGE {
            return PAGE - self.filled;
        }
        let kept = self.kept.back().is_some_and(|last| last.page == self.page);
        let in_use = kept || self.held > self.began;
        if !in_use {
            self.filled = 0;
            self.began = at.written;
        } else if self.filled + RECORD + LEAST > PAGE {
            self.page += 1;
            self.filled = 0;
            self.began = at.written;
        }
        let record = self.filled.next_multiple_of(8) - self.filled + RECORD;
        self.filled += record;
        self.records += record;
        self.kept.push_back(Fragment {
            end: at.written,
            record,
            page: self.page,
        });
        PAGE - self.filled
    }

    /// Where the fragment ends that has the byte at `offset`.
    pub fn end(&self, offset: u64) -> u64 {
        let index = self.kept.partition_point(|kept| kept.end <= offset);
        self.kept.get(index).map_or(u64::MAX, |kept| kept.end)
    }

    /// The subflow that the byte at `offset` goes to because the fragment's beginning did.
    pub fn holder(&self, offset: u64) -> Option<usize> {
        let holder = self.holder?;
        (holder.since..holder.end)
            .contains(&offset)
            .then_some(holder.subflow)
    }

    /// The subflow that took everything up to `offset`, and how much of it.
    pub fn held(&self, offset: u64) -> Option<(usize, u64)> {
        let holder = self.holder.filter(|it| it.end == offset)?;
        Some((holder.subflow, holder.end - holder.since))
    }

    /// What is left of the fragment where a subflow has it, else no limit.
    pub fn rest(&self, offset: u64) -> u64 {
        self.holder
            .map_or(u64::MAX, |holder| holder.end.saturating_sub(offset))
    }

    /// The fragment at `offset` goes to a subflow as a whole; `goes_on`: by the decision before.
    pub fn hold(&mut self, subflow: usize, offset: u64, goes_on: bool) {
        let before = self.holder.filter(|_| goes_on);
        self.holder = Some(Holder {
            subflow,
            since: before.map_or(offset, |it| it.since),
            end: self.end(offset),
        });
    }

    pub fn delegated(&self) -> bool {
        self.delegated
    }

    pub fn delegate(&mut self, delegated: bool) {
        self.delegated = delegated;
    }

    pub fn release(&mut self) {
        self.holder = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Progress = Progress {
        una: 0,
        sent: 0,
        written: 0,
    };

    #[test]
    fn a_call_fills_pages_and_the_next_goes_on_in_what_has_not_left() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.write(1 << 20, FRESH, 1 << 20), CALL);
        let ends: Vec<u64> = fragments.kept.iter().map(|kept| kept.end).collect();
        assert_eq!(ends, [32_728, 65_456, CALL]);
        let unsent = Progress {
            written: CALL,
            ..FRESH
        };
        fragments.write(1_000, unsent, 1 << 20);
        assert_eq!(fragments.kept.len(), 3);
        let all_sent = Progress {
            una: 0,
            sent: CALL + 1_000,
            written: CALL + 1_000,
        };
        fragments.write(1_000, all_sent, 1 << 20);
        assert_eq!(fragments.kept.len(), 4);
        assert_eq!(fragments.records, 4 * RECORD);
        assert_eq!(fragments.end(CALL + 999), CALL + 1_000);
        assert_eq!(fragments.end(CALL + 1_000), CALL + 2_000);
    }

    #[test]
    fn a_page_is_filled_anew_once_no_subflow_holds_it() {
        let mut fragments = Fragments::default();
        let mut at = FRESH;
        at.written = fragments.write(1_000, at, 1 << 20);
        (at.una, at.sent) = (1_000, 1_000);
        fragments.note_held(1_000);
        at.written += fragments.write(1 << 20, at, 1 << 20);
        let lengths =
            |it: &Fragments| -> Vec<u64> { it.kept.iter().map(|kept| kept.end).collect() };
        let first = 1_000 + PAGE - 1_000 - 2 * RECORD;
        assert_eq!(lengths(&fragments)[0], first, "behind what a subflow holds");
        (at.una, at.sent) = (at.written, at.written);
        fragments.note_held(at.una - CALL);
        let before = at.written;
        fragments.write(1 << 20, at, 1 << 20);
        assert_eq!(lengths(&fragments)[0], before + PAGE - RECORD, "anew");
    }

    #[test]
    fn a_writer_without_room_waits_for_a_third() {
        let mut fragments = Fragments::default();
        let room = 60_000;
        let mut at = FRESH;
        at.written = fragments.write(1 << 20, at, room);
        assert_eq!(at.written, 2 * 32_728, "whole pages until it is full");
        assert_eq!(fragments.write(1 << 20, at, room), 0);
        at.sent = at.written;
        at.una = 20_000;
        assert_eq!(fragments.write(1 << 20, at, room), 0);
        at.una = 32_728;
        assert_eq!(fragments.write(1 << 20, at, room), 32_728);
        assert!(fragments.full());
    }
}
