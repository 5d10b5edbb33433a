//! The data stream on its way out: positions, and what is in flight at connection level.

mod buffer;
mod closing;
mod host_queue;
mod loss_probe;
mod path_mtu;
pub(crate) mod plain;
mod reinjection;
mod repair;
mod schedule;
pub(crate) mod standing;
mod zero_window_probe;

pub(in crate::mptcp) use schedule::push_left;

use std::collections::VecDeque;

use crate::scheduler::PathSet;
use crate::settings::Config;
use crate::{NEVER, Nanos};

use crate::linux::fragments::{Fragments, Progress};
use crate::linux::write_queue::WriteQueue;

/// A stretch of the stream in flight at connection level, as it was first cut.
#[derive(Clone, Copy, Debug)]
struct Record {
    offset: u64,
    len: u32,
    carried: PathSet,
    holder: u16,
}

/// The sending half of a connection. Positions are offsets in this side's application stream.
pub(in crate::mptcp) struct DataSender {
    /// Acknowledged, sent and written so far.
    una: u64,
    sent: u64,
    written: u64,
    buffer: u64,
    largest_buffer: u64,
    /// Upstream MPTCP's: each subflow has a buffer then, and the connection's is their sum and `least_buffer` more.
    fragments: Option<Fragments>,
    least_buffer: u64,
    /// Upstream TCP's buffers.
    buffers: Option<WriteQueue>,
    /// Bytes that the application waits to write.
    waiting: u64,
    /// More follows what waits (MSG_MORE).
    more: bool,
    /// Where in the stream records end that are not in the buffer yet.
    records: VecDeque<u64>,
    /// As much is unsent at most (TCP_NOTSENT_LOWAT).
    unsent_limit: u64,
    /// The scheduler fills the subflows' queues.
    queues: bool,
    /// A writer that filled the buffer waits for a third of it.
    bursts: bool,
    closing: bool,
    /// The DATA_FIN, or in plain TCP the FIN, was handed over; and acknowledged.
    fin_sent: bool,
    fin_acked: bool,
    in_flight: VecDeque<Record>,
    reinject: VecDeque<(u64, u32)>,
    /// Some of the stream was sent a second time.
    repeated: bool,
    /// When DATA_FIN or a zero-window probe is due, and how often it was sent.
    fin_at: Nanos,
    fin_count: u32,
    probe_at: Nanos,
    probes: u32,
    /// When the first of them left.
    probed_since: Nanos,
    /// Probes since the peer was last heard of.
    unanswered: u32,
}

impl DataSender {
    pub fn new(config: &Config, queues: bool) -> Self {
        let buffer = config.send_buffer;
        Self {
            una: 0,
            sent: 0,
            written: 0,
            buffer: buffer.default,
            largest_buffer: if buffer.minimum == buffer.maximum {
                buffer.default
            } else {
                buffer.maximum.max(buffer.default)
            },
            fragments: (config.multipath && config.profile.buffers_by_subflow())
                .then(Fragments::default),
            least_buffer: buffer.minimum,
            buffers: (!config.multipath && config.profile.writes_in_bursts())
                .then(WriteQueue::default),
            waiting: 0,
            more: false,
            records: VecDeque::new(),
            unsent_limit: u64::MAX,
            queues,
            bursts: config.profile.writes_in_bursts(),
            closing: false,
            fin_sent: false,
            fin_acked: false,
            in_flight: VecDeque::new(),
            reinject: VecDeque::new(),
            repeated: false,
            fin_at: NEVER,
            fin_count: 0,
            probe_at: NEVER,
            probes: 0,
            probed_since: 0,
            unanswered: 0,
        }
    }

    /// Everything written was acknowledged, and nothing more waits.
    fn idle(&self) -> bool {
        self.una == self.written && self.waiting == 0
    }

    /// Upstream TCP: the peer's window may shrink.
    pub fn follows_windows(&self) -> bool {
        self.buffers.is_some()
    }

    /// Whether some of the stream was sent a second time: what a subflow carried is not contiguous then.
    pub fn repeated(&self) -> bool {
        self.repeated
    }

    pub fn fills_queues(&self) -> bool {
        self.queues
    }

    pub fn una(&self) -> u64 {
        self.una
    }

    /// The largest data ACK that makes sense: everything sent, and the DATA_FIN.
    pub fn highest_ack(&self) -> u64 {
        self.sent + u64::from(self.fin_sent)
    }

    pub fn acknowledge(&mut self, ack: u64) {
        if self.fin_sent && ack > self.written {
            self.fin_acked = true;
            self.fin_at = NEVER;
        }
        let ack = ack.min(self.sent);
        if ack <= self.una {
            return;
        }
        self.una = ack;
        self.probes = 0;
        self.probe_at = NEVER;
        while self
            .in_flight
            .front()
            .is_some_and(|record| record.offset + u64::from(record.len) <= ack)
        {
            self.in_flight.pop_front();
        }
    }

    /// The peer is alive: while it answers probes, its window may stay closed for ever (RFC 9293 section 3.8.6.1).
    pub fn peer_heard(&mut self) {
        self.unanswered = 0;
    }

    /// Something that was written is not acknowledged yet.
    pub fn outstanding(&self) -> bool {
        self.una < self.written
    }

    /// No subflow waits any more for an instant's packets to be taken in.
    pub fn end_delegation(&mut self) {
        if let Some(fragments) = &mut self.fragments {
            fragments.delegate(false);
        }
    }

    /// What was sent of the first fragment that waits for its data ACK, in pieces of `mss`.
    pub fn head(&self, mss: u32) -> Vec<(u64, u32)> {
        let fragment = |it: &Fragments| it.end(self.una);
        let end = self.sent.min(self.fragments.as_ref().map_or(0, fragment));
        let mss = u64::from(mss.max(1));
        (self.una..end)
            .step_by(mss as usize)
            .map(|offset| (offset, mss.min(end - offset) as u32))
            .collect()
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    pub fn unacknowledged(&self) -> u64 {
        self.written - self.una
    }

    pub fn close(&mut self) {
        self.closing = true;
    }

    pub fn closing(&self) -> bool {
        self.closing
    }

    /// Nothing will follow what is in the buffer.
    pub(in crate::mptcp) fn finishing(&self) -> bool {
        self.closing && self.waiting == 0
    }

    /// Everything including the end of the stream was acknowledged.
    pub fn closed(&self) -> bool {
        self.fin_acked
    }

    pub fn stop(&mut self) {
        self.fin_at = NEVER;
        self.probe_at = NEVER;
    }

    pub fn deadline(&self) -> Nanos {
        self.fin_at.min(self.probe_at)
    }

    /// The connection is plain TCP from now on: its socket has what is in flight, and a FIN in place of the DATA_FIN.
    pub fn fall_back(&mut self) {
        self.in_flight.clear();
        self.reinject.clear();
        self.fin_at = NEVER;
    }

    fn record(&mut self, offset: u64) -> Option<&mut Record> {
        let index = self
            .in_flight
            .partition_point(|record| record.offset <= offset);
        self.in_flight
            .get_mut(index.checked_sub(1)?)
            .filter(|record| offset < record.offset + u64::from(record.len))
    }
}
