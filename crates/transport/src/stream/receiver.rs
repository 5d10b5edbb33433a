//! Reassembly by data sequence number, and the one receive window of a connection (RFC 8684 sections 3.3.4 and 3.3.5).

use crate::linux::receive_window::{self, RoundTrips, SocketWindow, Space};
use crate::ranges::RangeSet;
use crate::settings::Config;
use crate::{MILLISECOND, Nanos};

/// The receiving half of a connection. Positions are offsets in the peer's application stream.
#[derive(Debug)]
pub struct Receiver {
    /// The next byte expected in order.
    pub next: u64,
    reassembly: RangeSet,
    /// Bytes that wait out of order inside the subflows.
    pub held: u64,
    unread: u64,
    /// What of it the last segment brought, under upstream's rules, and what of that the reader has before a window is told.
    fresh: u64,
    taken: u64,
    /// Where the stream ends, once known.
    pub end: Option<u64>,
    /// Receive buffer in bytes, and the share of it offered as window.
    buffer: u64,
    share: u64,
    largest_buffer: u64,
    out_of_order_counts: bool,
    multipath: bool,
    autotuning: bool,
    /// Right edge of the window that was offered.
    edge: u64,
    /// The window grows no faster than data arrives (Linux `rcv_ssthresh`).
    slow_start: u64,
    scaling: bool,
    shift: u8,
    mss: u32,
    /// Length of the largest segments, by which memory is reckoned.
    segment: u32,
    upstream: Option<Upstream>,
    rtt: Nanos,
    tuning: Tuning,
}

/// Largest window that every host can offer whatever its buffers (net.core.rmem_max).
const LARGEST_BUFFER: u64 = 4 << 20;

/// What upstream Linux keeps for the connection beside its sockets' windows.
#[derive(Debug)]
struct Upstream {
    round_trips: RoundTrips,
    /// The window grew with the last segment.
    grew: bool,
    /// Less than half of what there is was free when a window was last told.
    short: bool,
}

/// What a read leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The window should be announced.
    pub announces: bool,
    /// The buffers of the sockets follow: for so many bytes in a round trip, up to so large.
    pub grows: Option<(u64, u64)>,
}

/// Dynamic right-sizing (Feng et al. 2003; Linux `tcp_rcv_space_adjust`): bytes read in the last round trip, and the present one's start.
#[derive(Debug, Default)]
struct Tuning {
    space: u64,
    began_at: Nanos,
    read_then: u64,
    read: u64,
}

impl Receiver {
    pub fn new(config: &Config) -> Self {
        let buffer = config.receive_buffer.default;
        let share = config.profile.window_share();
        let largest = config.receive_buffer.maximum.max(buffer);
        let upstream = config.profile.measures_segments().then(|| Upstream {
            round_trips: RoundTrips::default(),
            grew: false,
            short: false,
        });
        let mut shift = 0;
        if upstream.is_some() {
            shift = (largest.max(LARGEST_BUFFER).ilog2() as u8 - 15).min(14);
        }
        while shift < 14 && largest >> shift > 65_535 && upstream.is_none() {
            shift += 1;
        }
        Self {
            next: 0,
            reassembly: RangeSet::default(),
            held: 0,
            unread: 0,
            fresh: 0,
            taken: 0,
            end: None,
            buffer,
            share,
            largest_buffer: largest,
            out_of_order_counts: config.profile.out_of_order_counts(),
            multipath: config.multipath,
            autotuning: config.autotuning && largest > buffer,
            edge: 0,
            slow_start: (buffer * share / 256).min(65_535),
            scaling: config.window_scaling,
            shift: if config.window_scaling { shift } else { 0 },
            mss: 536,
            segment: 536,
            upstream,
            rtt: 0,
            tuning: Tuning::default(),
        }
    }

    /// Ranges that wait out of order.
    pub fn ranges(&self) -> usize {
        self.reassembly.count()
    }

    pub fn scale(&self) -> u8 {
        self.shift
    }

    pub fn scaling(&self) -> bool {
        self.scaling
    }

    /// The peer does not scale windows, so neither do we (RFC 7323 section 2.2).
    pub fn forbid_scaling(&mut self) {
        self.scaling = false;
        self.shift = 0;
    }

    pub fn set_mss(&mut self, mss: u32) {
        self.mss = mss;
        if self.tuning.space == 0 {
            let first = self.capacity().min(self.slow_start);
            self.tuning.space = first.min(10 * u64::from(mss));
        }
    }

    fn capacity(&self) -> u64 {
        self.buffer * self.share / 256
    }

    /// The window opens by no less: a segment, or half the buffer where that is smaller (RFC 9293 section 3.8.6.2.2).
    fn smallest_step(&self) -> u64 {
        u64::from(self.mss).min(self.capacity() / 2)
    }

    /// The window in the SYN of a socket that takes segments of `mss`; `first`: it is the connection's first.
    pub fn first_window(&mut self, own: Option<&mut SocketWindow>, mss: u32, first: bool) -> u64 {
        let Some(own) = own else {
            return self.window(None, 0);
        };
        let window = own.first(mss);
        if first {
            self.edge = self.edge.max(self.next + window);
            self.tuning.space = window.min(10 * u64::from(mss));
        }
        window
    }

    /// The window to offer on a socket that received everything before `received`, with its `own` under upstream's rules: the right edge never moves back, and does not move in
    /// steps smaller than a segment (RFC 9293 section 3.8.6.2.2).
    #[inline]
    pub fn window(&mut self, own: Option<&mut SocketWindow>, received: u64) -> u64 {
        if let Some(own) = own {
            return self.upstream_window(own, received);
        }
        self.edge = self.next + self.would_offer();
        self.edge - self.next
    }

    /// The window that the next segment would offer, of a profile that has one rule for all subflows.
    #[inline(always)]
    fn would_offer(&self) -> u64 {
        let full = self.capacity();
        let free = self.free_of(full);
        let offered = if free >= u64::from(self.mss).min(full / 2) {
            free.min(self.slow_start)
        } else {
            0
        };
        self.edge.max(self.next + offered) - self.next
    }

    #[inline(never)]
    fn upstream_window(&mut self, own: &mut SocketWindow, received: u64) -> u64 {
        let space = self.space();
        let mut offered = 0;
        if let Some(upstream) = &mut self.upstream {
            (offered, upstream.short) = own.tell(received, space, self.shift, self.multipath);
        }
        self.edge = self.edge.max(self.next + offered);
        let window = self.edge - self.next;
        own.raise(window);
        window
    }

    /// What there is in the buffer for windows, and what of it is free.
    fn space(&self) -> Space {
        let full = self.capacity();
        if self.upstream.is_none() {
            let free = self.free_of(full);
            return Space { free, full };
        }
        let unread = self.unread - self.taken;
        let used = self.memory_of_run(unread) + self.memory_of_run(self.waiting());
        let free = self.buffer.saturating_sub(used) * self.share / 256;
        Space { free, full }
    }

    /// What is free of a window of `full` bytes, where memory is not reckoned.
    fn free_of(&self, full: u64) -> u64 {
        let waiting = if self.out_of_order_counts {
            self.waiting()
        } else {
            0
        };
        full.saturating_sub(self.unread + waiting)
    }

    /// What waits out of order in the buffer. What waits inside a subflow is in that socket's and takes nothing from an MPTCP connection
    /// (mptcp.org `mptcp_queue_skb`, Linux `__mptcp_space`).
    fn waiting(&self) -> u64 {
        if self.multipath {
            self.reassembly.bytes()
        } else {
            self.held
        }
    }

    fn memory_of_run(&self, bytes: u64) -> u64 {
        let most = if self.multipath {
            self.buffer / receive_window::MOST_OF_BUFFER
        } else {
            u64::MAX
        };
        receive_window::memory_of_run(bytes, self.segment, most)
    }

    /// The window that was offered last.
    pub fn offered(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// The receive window as a recording shows it; looking at it changes nothing.
    pub fn shown_window(&self) -> u64 {
        if self.by_subflow() {
            self.offered()
        } else {
            self.would_offer()
        }
    }

    /// Little was free when a window was last told: quick ACKs end (Linux `__tcp_select_window`).
    pub fn short(&self) -> bool {
        self.upstream
            .as_ref()
            .is_some_and(|upstream| upstream.short)
    }

    /// Whether data up to `end` lies within the window that was offered.
    pub fn admits(&self, end: u64) -> bool {
        end <= self.edge
    }

    /// How many of `len` bytes from `offset` on, which end beyond the window, are taken: those within it (RFC 9293 section 3.10.7.4, "trimming off
    /// any portions that lie outside the window"). Upstream takes all of what is next in sequence, as long as the window is open and nothing
    /// waits to be read, and of others none (`tcp_sequence`).
    #[cold]
    pub fn taken_beyond(&self, offset: u64, len: u32) -> u32 {
        if self.edge <= self.next.max(offset) {
            return 0;
        }
        match self.upstream {
            Some(_) if offset <= self.next && self.unread == 0 => len,
            Some(_) => 0,
            None => len.min(u32::try_from(self.edge - offset).unwrap_or(u32::MAX)),
        }
    }

    /// Whether a position this far beyond the next byte lies within the window that was offered.
    pub fn reaches(&self, distance: u64) -> bool {
        self.next + distance < self.edge
    }

    /// The peer says where its stream ends: once, not before what came, and within the window.
    pub fn ends_at(&mut self, end: Option<u64>) {
        if self.end.is_none() {
            self.end = end.filter(|&end| end >= self.next && self.admits(end));
        }
    }

    /// How far below and above the next number of a socket a segment of the peer may begin. One more than the window for a FIN; the numbers
    /// of subflows are not those of the stream, whose window a subflow may pass while it waits for what others brought in its place.
    pub fn reach(&self, of_subflow: bool) -> (i64, i64) {
        let window = self.edge.saturating_sub(self.next) + 1;
        let above = if of_subflow {
            window.max(2 * self.largest_buffer)
        } else {
            window
        };
        (self.buffer.max(65_536) as i64, above as i64)
    }

    /// Takes `len` bytes from `offset` on if they are the next and nothing waits for them.
    #[inline]
    pub fn deliver_next(&mut self, offset: u64, len: u64) -> bool {
        let next = offset == self.next && self.reassembly.is_empty();
        if next {
            self.advance(offset + len);
        }
        next
    }

    /// Takes `len` bytes from `offset` on. Returns how many of them are new.
    pub fn deliver(&mut self, offset: u64, len: u64) -> u64 {
        let end = offset + len;
        if end <= self.next {
            return 0;
        }
        let before = self.next + self.reassembly.bytes();
        if offset <= self.next {
            let reached = self.reassembly.take_up_to(end);
            self.advance(reached);
        } else {
            self.reassembly.insert(offset, end, |_, _| {});
        }
        self.next + self.reassembly.bytes() - before
    }

    fn advance(&mut self, end: u64) {
        let fresh = end - self.next;
        self.unread += fresh;
        self.next = end;
        if self.upstream.is_some() {
            self.fresh += fresh;
        } else {
            self.slow_start = (self.slow_start + 2 * u64::from(self.mss)).min(self.capacity());
        }
    }

    /// Whether the window grew since this was last asked (Linux sends quick ACKs for longer then, `tcp_grow_window`).
    pub fn grew(&mut self) -> bool {
        let upstream = self.upstream.as_mut();
        upstream.is_some_and(|upstream| std::mem::take(&mut upstream.grew))
    }

    /// What the last segment brought is next in the stream, and wakes a reader, under upstream's rules.
    pub fn reader_wakes(&self) -> bool {
        0 < self.fresh
    }

    /// A window told now would be no smaller than the last one, or nothing is to be read: more than a segment is acknowledged at once then,
    /// and otherwise by the reader (Linux `__tcp_ack_snd_check`, `subflow_data_ready`).
    #[inline]
    pub fn window_moves_on(&self, own: Option<&SocketWindow>) -> bool {
        self.unread == 0 || own.is_none_or(|own| own.moves_on(self.space(), self.shift))
    }

    /// The application took everything before the last segment, and will have emptied the buffer with what this brought: out-of-order data
    /// of an MPTCP connection lies in it too (Linux `mptcp_cleanup_rbuf`).
    pub fn reader_leaves_nothing(&self) -> bool {
        self.reader_wakes() && self.unread <= self.fresh && self.reassembly.is_empty()
    }

    /// The reader ran after the packets of an instant.
    pub fn end_instant(&mut self) {
        self.fresh = 0;
        self.taken = 0;
    }

    /// The reader, who waits, has what the last segment brought before the next window is told.
    pub fn reader_takes(&mut self) {
        self.taken = self.fresh.min(self.unread);
    }

    /// A segment came in sequence on a socket that has everything before `received` now. True: it ends what the peer had to send.
    #[inline(always)]
    pub fn in_sequence(
        &mut self,
        own: Option<&mut SocketWindow>,
        len: u32,
        pushed: bool,
        received: u64,
        waiting: u64,
        now: Nanos,
    ) -> bool {
        self.upstream.is_some() && self.measure(own, len, pushed, received, waiting, now)
    }

    #[inline(never)]
    fn measure(
        &mut self,
        own: Option<&mut SocketWindow>,
        len: u32,
        pushed: bool,
        received: u64,
        waiting: u64,
        now: Nanos,
    ) -> bool {
        let (Some(upstream), Some(own)) = (&mut self.upstream, own) else {
            return false;
        };
        let short = own.measure(len, pushed);
        let share = own.share;
        if !self.multipath {
            self.share = share;
        }
        if let Some(rtt) = own.time_window(received, now) {
            upstream.round_trips.add(rtt);
            if self.multipath {
                self.share = (7 * self.share + share) / 8;
            }
        }
        self.segment = own.segment;
        let held =
            receive_window::memory_of_run(waiting, len, u64::MAX) + receive_window::memory(len);
        upstream.grew |= own.grow(self.mss, len, held);
        short || pushed
    }

    /// A segment came out of sequence on a socket where `waiting` bytes do already, the last of all `span` beyond the next expected. One that
    /// `joined` another lies in its buffer by now; one that begins a buffer is not charged yet (`tcp_data_queue_ofo`).
    pub fn out_of_sequence(
        &mut self,
        own: Option<&mut SocketWindow>,
        len: u32,
        waiting: u64,
        span: u64,
        joined: bool,
    ) {
        let (Some(upstream), Some(own)) = (&mut self.upstream, own) else {
            return;
        };
        let charged = waiting + if joined { u64::from(len) } else { 0 };
        let held = receive_window::memory_of_run(charged, len, u64::MAX);
        upstream.grew |= own.grow(self.mss, len, held);
        own.holds(span);
        if self.autotuning {
            own.make_room(self.largest_buffer);
        }
        if !self.multipath {
            self.buffer = own.buffer();
        }
    }

    /// More than this is acknowledged at once.
    pub fn acknowledges_beyond(&self, own: Option<&SocketWindow>) -> u64 {
        own.map_or(self.mss, |own| own.segment).into()
    }

    /// A segment echoes a timestamp that is `elapsed` milliseconds old.
    pub fn sample_rtt(
        &mut self,
        own: Option<&mut SocketWindow>,
        len: u32,
        echo: u32,
        elapsed: u32,
    ) {
        if let Some(own) = own {
            return own.sample_echo(len, echo, elapsed);
        }
        if len >= self.mss / 2 {
            let rtt = u64::from(elapsed.max(1)) * MILLISECOND;
            let smoothed = (7 * self.rtt + rtt) / 8;
            self.rtt = if self.rtt == 0 { rtt } else { smoothed };
        }
    }

    pub fn available(&self) -> u64 {
        self.unread
    }

    /// The application reads `bytes` (Linux `tcp_cleanup_rbuf`). `only`: the socket of a connection that has just one, under upstream's rules.
    pub fn read(&mut self, bytes: u64, only: Option<&SocketWindow>, now: Nanos) -> Read {
        let bytes = bytes.min(self.unread);
        let before = self.offered();
        self.unread -= bytes;
        self.fresh = 0;
        self.taken = 0;
        self.tuning.read += bytes;
        let grows = self.tune(only, now);
        let announces = if self.upstream.is_some() {
            true
        } else if 2 * before > self.capacity() {
            false
        } else {
            let after = self.window(None, 0);
            after >= 2 * before.max(1) && after >= self.smallest_step().min(self.slow_start)
        };
        Read { announces, grows }
    }

    /// Whether a socket should tell its window again after a read. `received`: up to where it received everything.
    pub fn reopens(&self, own: &SocketWindow, received: u64) -> bool {
        own.reopens(received, self.space(), self.shift)
    }

    /// The buffer of the only socket has grown.
    pub fn follow(&mut self, only: &SocketWindow) {
        if self.upstream.is_some() && !self.multipath {
            self.buffer = only.buffer();
        }
    }

    /// Whether each socket has a window of its own.
    pub fn by_subflow(&self) -> bool {
        self.upstream.is_some()
    }

    /// The connection is there: the first round trip begins under upstream's rules (`tcp_init_buffer_space`), otherwise with what is read
    /// first.
    pub fn begin(&mut self, now: Nanos) {
        if self.upstream.is_some() {
            self.tuning.began_at = now;
        }
    }

    /// Upstream does not count what was read while more was there to be read (`mptcp_inq_hint`).
    fn tune(&mut self, only: Option<&SocketWindow>, now: Nanos) -> Option<(u64, u64)> {
        if let Some(upstream) = &self.upstream {
            self.rtt = match only.filter(|_| !self.multipath) {
                Some(only) => only.round_trip(),
                None => upstream.round_trips.least(),
            };
        }
        if self.rtt == 0 || now - self.tuning.began_at < self.rtt {
            return None;
        }
        let mut copied = self.tuning.read - self.tuning.read_then;
        if self.upstream.is_some() {
            copied = copied.saturating_sub(self.unread);
        }
        let mut grows = None;
        if copied > self.tuning.space {
            if self.autotuning {
                grows = self.grow_buffer(copied);
            }
            self.tuning.space = copied;
        }
        self.tuning.began_at = now;
        self.tuning.read_then = self.tuning.read;
        grows
    }

    /// Room for a sender of whom `copied` bytes were read in a round trip: twice that and what it grew by. Older kernels leave room for
    /// sixteen segments more. Gives what the sockets' buffers grow by.
    fn grow_buffer(&mut self, copied: u64) -> Option<(u64, u64)> {
        let before = self.tuning.space;
        let follow = self
            .upstream
            .as_ref()
            .map(|_| (copied, self.largest_buffer));
        let wanted = match &self.upstream {
            None => {
                let window = 2 * copied + 16 * u64::from(self.mss);
                let growth = u128::from(window) * u128::from(copied - before);
                window + 2 * (growth / u128::from(before.max(1))) as u64
            }
            Some(_) if self.multipath => receive_window::wanted_window(copied, before),
            Some(_) => return follow,
        };
        let buffer = (wanted * 256 / self.share).min(self.largest_buffer);
        if buffer <= self.buffer {
            return None;
        }
        self.buffer = buffer;
        follow
    }

    /// The stream ended and everything was read in order.
    pub fn at_end(&self) -> bool {
        self.end == Some(self.next)
    }

    /// Bytes that wait for others at connection level.
    pub fn reassembly_bytes(&self) -> u64 {
        self.reassembly.bytes()
    }

    pub fn buffer(&self) -> u64 {
        self.buffer
    }
}

#[cfg(test)]
mod tests;
