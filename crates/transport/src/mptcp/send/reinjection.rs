//! The stream's bytes sent a second time, on another subflow.

use crate::mptcp::connection::Connection;
use crate::scheduler::{Blocked, PathSet};
use crate::tcp::{Chunk, Kind, Push};
use crate::{EventKind, Mib};

impl Connection {
    /// Sends on another path the segment that begins at `offset`.
    pub(super) fn repeat(&mut self, subflow: usize, offset: u64) -> bool {
        let mss = self.paths[subflow].mss;
        let Some(record) = self.send.record(offset) else {
            return false;
        };
        let rest = (record.offset + u64::from(record.len) - offset) as u32;
        if !self.subflows[subflow].socket.state().sends() {
            return false;
        }
        self.send_again(subflow, offset, rest.min(mss), false);
        true
    }

    /// Sends a stretch of the stream once more; `timed`: as nothing acknowledged it for long.
    pub(in crate::mptcp) fn send_again(
        &mut self,
        subflow: usize,
        offset: u64,
        len: u32,
        timed: bool,
    ) {
        if let Some(record) = self.send.record(offset) {
            record.carried.insert(subflow);
            record.holder = subflow as u16;
        }
        // Linux counts what its own timer repeats, not what a subflow left that was closed (`__mptcp_retransmit_pending_data`).
        let counted = timed || self.shared.config.profile.reinjects_on_timeout();
        (self.shared.counters).add(Mib::MPTcpExtMPTCPRetrans, u32::from(counted));
        self.send.repeated = true;
        let chunk = Chunk {
            offset,
            len,
            kind: Kind::New,
            push: Push::No,
            // Nagle's algorithm holds back the rest of what is sent again, too (`__mptcp_push_pending`, `__mptcp_retrans`: `tcp_push`).
            waits: self.send.queues
                && (self.shared.config.cork
                    || self.send.fragments.is_some() && !self.send.finishing()),
        };
        self.with(subflow, |socket, cx| socket.enqueue(cx, chunk));
        self.note_deadline(subflow);
        self.tell_scheduler(subflow, offset, len, false);
    }

    /// Nothing can be scheduled although a path has room: helps as the scheduler's parameters say (NSDI 2012, section 4.2).
    pub(super) fn rescue(&mut self) -> bool {
        let cause = if self.send.unsent() > 0 {
            Blocked::ReceiveWindow
        } else if self.send.waiting > 0 {
            Blocked::SendBuffer
        } else {
            return false;
        };
        let view = Self::view(&self.shared, &self.paths, &self.send, None);
        let rescue = self.policy.rescue(&view, cause);
        if let Some(subflow) = rescue.penalise {
            self.paths[subflow].penalise(1);
            self.shared.event(EventKind::Penalised(subflow));
        }
        let Some(subflow) = rescue.repeat_head_on else {
            return false;
        };
        let Some(offset) = self.send.in_flight.front().map(|record| record.offset) else {
            return false;
        };
        self.repeat(subflow, offset)
    }

    /// A working path has the byte at `offset` in its care: it will repeat it until it is acknowledged. What it delivered before counts
    /// no more: the data ACK may have been on its way on a path that failed.
    pub(super) fn under_way(&self, subflow: usize, offset: u64) -> bool {
        self.paths[subflow].established
            && !self.paths[subflow].potentially_failed
            && self.subflows[subflow]
                .socket
                .undelivered()
                .any(|(start, len)| (start..start + u64::from(len)).contains(&offset))
    }

    /// A subflow timed out or died: what only failed paths carried goes to the others (RFC 8684 section 3.3.6).
    pub(in crate::mptcp) fn reinject(&mut self, subflow: usize) {
        if self.session.multipath.is_none() {
            return;
        }
        if !self.shared.config.profile.reinjects_on_timeout() {
            return self.reinject_everything(subflow);
        }
        let stranded: Vec<(u64, u32)> = self.subflows[subflow]
            .socket
            .undelivered()
            .filter(|(offset, len)| offset + u64::from(*len) > self.send.una)
            .collect();
        let mut bytes = 0;
        for (offset, len) in stranded {
            let carried = self
                .send
                .record(offset)
                .map_or(PathSet::default(), |record| record.carried);
            let elsewhere = (0..self.paths.len()).any(|index| {
                index != subflow && carried.contains(index) && self.under_way(index, offset)
            });
            if !elsewhere && self.send.reinject.iter().all(|entry| entry.0 != offset) {
                bytes += u64::from(len);
                self.send.reinject.push_back((offset, len));
            }
        }
        if bytes > 0 {
            self.send.reinject.make_contiguous().sort_unstable();
            self.shared.event(EventKind::Reinjection { subflow, bytes });
        }
    }

    /// Everything in flight at connection level is scheduled anew, whoever carried it (Linux `__mptcp_retransmit_pending_data`).
    pub(in crate::mptcp) fn reinject_everything(&mut self, subflow: usize) {
        let bytes = self.send.sent - self.send.una;
        if bytes > 0 {
            self.send.reinject.clear();
            self.send.reinject.push_back((self.send.una, bytes as u32));
            self.shared.event(EventKind::Reinjection { subflow, bytes });
        }
    }

    /// The peer answered a probe and still lacks the first segment in flight.
    pub(super) fn reinject_head(&mut self) {
        if let Some(head) = self.send.in_flight.front()
            && self.send.reinject.is_empty()
        {
            self.shared.event(EventKind::Reinjection {
                subflow: usize::from(head.holder),
                bytes: u64::from(head.len),
            });
            self.send.reinject.push_back((head.offset, head.len));
        }
    }
}
