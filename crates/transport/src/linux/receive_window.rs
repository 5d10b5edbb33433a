//! The receive window as upstream Linux offers it.
//!
//! Each subflow grows a window of its own. The connection's right edge is the furthest that any of them offered. An
//! MPTCP subflow's window may fall behind it; a TCP window never shrinks (net/ipv4/tcp_output.c `tcp_select_window`,
//! net/mptcp/options.c `mptcp_set_rwin`, `mptcp_established_options_dss`). Memory is counted as the cost of buffers,
//! not as bytes.

use super::send_memory::BUFFER_OVERHEAD;
use crate::{MILLISECOND, Nanos};

/// A peer's segments are taken for this small until larger ones come (`TCP_MSS_DEFAULT`).
const FIRST_SEGMENT: u32 = 536;
/// Segments of this length and more open the window (`tcp_event_data_recv`).
const COUNTS: u32 = 128;
/// Round trips shorter than this let the buffer grow in proportion only (`tcp_rcvbuf_low_rtt`).
const LOW_RTT: Nanos = MILLISECOND;
/// Segments whose payload one buffer takes over at most (`MAX_SKB_FRAGS`), and the part of the connection's buffer that they fill
/// (`__mptcp_try_coalesce`).
const MOST_PIECES: u64 = 17;
pub(crate) const MOST_OF_BUFFER: u64 = 8;
/// Round trips of which the shortest counts (`MPTCP_RTT_SAMPLES`).
const SAMPLES: usize = 5;

/// Memory of a received segment whose payload lies in pages, as hosts on one machine hand it to each other.
pub(crate) fn memory(len: u32) -> u64 {
    u64::from(len) + BUFFER_OVERHEAD
}

/// Memory of `bytes` in sequence that came in segments of `len`: a buffer takes over the payload of those that follow
/// (`skb_try_coalesce`), up to `most` bytes.
pub(crate) fn memory_of_run(bytes: u64, len: u32, most: u64) -> u64 {
    let len = u64::from(len.max(1));
    let pieces = (most / len).clamp(1, MOST_PIECES);
    bytes + bytes.div_ceil(pieces * len) * BUFFER_OVERHEAD
}

/// What the connection has to offer: in windows' terms what is free and all there is.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    pub free: u64,
    pub full: u64,
}

/// The receive window of one socket (`tcp_sock`).
#[derive(Clone, Copy, Debug)]
pub struct SocketWindow {
    /// The window told last, and the position that it was counted from (`rcv_wnd`, `rcv_wup`).
    window: u64,
    told_at: u64,
    /// The window grows no faster than data arrives (`rcv_ssthresh`), nor beyond the payload that the subflow's buffer holds.
    slow_start: u64,
    buffer: u64,
    /// Largest segment so far (`rcv_mss`), the last one's length if it was smaller, and the payload's part of its memory over 256.
    pub segment: u32,
    smaller: u32,
    pub share: u64,
    /// The smoothed round trip (`rcv_rtt_est`), and since when and up to where a window's worth of data is timed.
    rtt: Nanos,
    timed_from: Nanos,
    timed_to: u64,
    last_echo: u32,
    /// Bytes read in the round trip before (`rcvq_space.space`).
    space: u64,
    /// From the next byte expected to the end of what waits out of order in the subflow; 0 while nothing does.
    span: u64,
}

impl SocketWindow {
    pub fn new(buffer: u64, share: u64) -> Self {
        Self {
            window: 0,
            told_at: 0,
            slow_start: 0,
            buffer,
            segment: FIRST_SEGMENT,
            smaller: 0,
            share,
            rtt: 0,
            timed_from: 0,
            timed_to: 0,
            last_echo: 0,
            space: 0,
            span: 0,
        }
    }

    fn clamp(&self) -> u64 {
        self.buffer * self.share / 256
    }

    /// What is left of the window told last.
    fn left(&self, received: u64) -> u64 {
        self.window.saturating_sub(received - self.told_at)
    }

    /// The window in a SYN: as many segments of `mss` as the buffer holds (`tcp_select_initial_window`). One segment stays in reserve for a
    /// reader (`tcp_init_buffer_space`).
    pub fn first(&mut self, mss: u32) -> u64 {
        let mss = u64::from(mss.max(1));
        let room = self.clamp();
        self.window = if room > mss { room / mss * mss } else { room };
        let reserved = if room > 2 * mss {
            (2 * mss).max(room - mss)
        } else {
            room
        };
        self.slow_start = self.window.min(reserved);
        self.told_at = 1;
        self.space = self.window.min(10 * mss);
        self.window
    }

    /// What the window may be now, whatever was told before (`__tcp_select_window`).
    fn select(&self, space: Space, shift: u8) -> (u64, bool) {
        let full = self.clamp().min(space.full);
        let segment = u64::from(self.segment).min(full);
        let unit = 1 << shift;
        let mut free = space.free;
        let short = free < full / 2;
        if short {
            free = free / unit * unit;
            if free < space.full / 16 || free < segment {
                return (0, true);
            }
        }
        (free.min(self.slow_start).next_multiple_of(unit), short)
    }

    /// The window to tell where everything before `received` was received, in the socket's own sequence space; and whether little was free.
    /// `multipath`: of a subflow only what its SYN told stands.
    pub fn tell(&mut self, received: u64, space: Space, shift: u8, multipath: bool) -> (u64, bool) {
        let left = self.left(received);
        let (mut window, short) = self.select(space, shift);
        if window < left && (!multipath || received == 1) {
            window = left.next_multiple_of(1 << shift);
        }
        self.window = window;
        self.told_at = received;
        (window, short)
    }

    /// Another subflow offered more: this one's window is `window`.
    pub fn raise(&mut self, window: u64) {
        self.window = window;
    }

    /// The window would be no smaller than the one told last.
    pub fn moves_on(&self, space: Space, shift: u8) -> bool {
        self.select(space, shift).0 >= self.window
    }

    /// A reader freed space: the subflow's window would be at least twice what is left of it (`__tcp_cleanup_rbuf`).
    pub fn reopens(&self, received: u64, space: Space, shift: u8) -> bool {
        let left = self.left(received);
        let (window, _) = self.select(space, shift);
        2 * left <= self.clamp() && window > 0 && window >= 2 * left
    }

    /// Quick ACKs in a row, `most` at the most (`tcp_incr_quickack`).
    pub fn quick_acks(&self, most: u8) -> u8 {
        let half = self.window / (2 * u64::from(self.segment.max(1)));
        (if half == 0 { 2 } else { half.min(most.into()) }) as u8
    }

    /// A segment in sequence: its length tells what the peer's are like and what they cost (`tcp_measure_rcv_mss`). True: it is shorter
    /// than others were.
    pub fn measure(&mut self, len: u32, pushed: bool) -> bool {
        let before = std::mem::take(&mut self.smaller);
        if len >= self.segment {
            if len > self.segment {
                self.segment = len;
                self.share = (u64::from(len) * 256 / memory(len)).max(1);
                self.space = self.space.min(self.clamp());
            }
            return false;
        }
        if len >= FIRST_SEGMENT || (len >= 88 && !pushed) {
            self.smaller = len;
            if len == before {
                self.segment = len;
                return false;
            }
        }
        true
    }

    /// Takes the time of a window's worth of data, up to `received`. Once in each it gives the round trip, if there is one
    /// (`tcp_rcv_rtt_measure`).
    pub fn time_window(&mut self, received: u64, now: Nanos) -> Option<Nanos> {
        if self.timed_from > 0 && received < self.timed_to {
            return None;
        }
        let elapsed = now - self.timed_from;
        if self.timed_from > 0 && (self.rtt == 0 || elapsed < self.rtt) {
            self.rtt = elapsed;
        }
        self.timed_from = now;
        self.timed_to = received + self.window;
        (self.rtt > 0).then_some(self.rtt)
    }

    /// A full segment that echoes a timestamp: each echo counts once (`tcp_rcv_rtt_measure_ts`).
    pub fn sample_echo(&mut self, len: u32, echo: u32, elapsed: u32) {
        if echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        if len >= self.segment && elapsed > 0 {
            self.smooth(u64::from(elapsed) * MILLISECOND);
        }
    }

    /// The round trip as the receiver measures it; 0 while there is none.
    pub fn round_trip(&self) -> Nanos {
        self.rtt
    }

    /// A segment of `len` bytes came, while what waits in the socket takes `held` bytes of memory: its window may grow by two segments
    /// (`tcp_grow_window`). True: it grew.
    pub fn grow(&mut self, mss: u32, len: u32, held: u64) -> bool {
        if len < COUNTS {
            return false;
        }
        let step = 2 * u64::from(mss.max(len));
        let free = self.buffer.saturating_sub(held) * self.share / 256;
        let room = self.clamp().min(free).saturating_sub(self.slow_start);
        self.slow_start += room.min(step);
        room > 0
    }

    /// What waits out of order ends `span` bytes beyond the next that is expected.
    pub fn holds(&mut self, span: u64) {
        self.span = span;
    }

    /// A segment came out of order: the buffer makes room for what will fill the hole (`tcp_data_queue_ofo`).
    pub fn make_room(&mut self, largest: u64) {
        self.grow_buffer(self.space, largest);
    }

    pub fn buffer(&self) -> u64 {
        self.buffer
    }

    /// Room for a sender of whom `read` bytes were read in a round trip, and for what waits out of order (`tcp_rcvbuf_grow`).
    pub fn grow_buffer(&mut self, read: u64, largest: u64) {
        let before = std::mem::replace(&mut self.space, read);
        let wanted = (wanted_window_at(self.rtt, read, before) + self.span) * 256 / self.share;
        self.buffer = self.buffer.max(wanted.min(largest));
    }

    fn smooth(&mut self, sample: Nanos) {
        let smoothed = (7 * self.rtt + sample) / 8;
        self.rtt = if self.rtt == 0 {
            sample
        } else {
            smoothed.min(sample)
        };
    }
}

/// The round trips by which a Multipath TCP connection tunes its buffer (`mptcp_rcv_rtt_update`, `mptcp_rtt_us_est`).
#[derive(Debug, Default)]
pub(crate) struct RoundTrips {
    samples: [Nanos; SAMPLES],
    sampled: usize,
}

impl RoundTrips {
    pub fn add(&mut self, rtt: Nanos) {
        self.samples[self.sampled % SAMPLES] = rtt;
        self.sampled += 1;
    }

    /// The least of the last; 0 while there is none.
    pub fn least(&self) -> Nanos {
        let samples = self.samples.iter().copied().filter(|&rtt| rtt > 0);
        samples.min().unwrap_or(0)
    }
}

/// The window for a sender of whom `read` bytes were read in a round trip, `before` in the one before.
pub(crate) fn wanted_window(read: u64, before: u64) -> u64 {
    2 * read + 2 * growth(2 * read, read, before)
}

/// The same of a subflow, also where round trips are short.
fn wanted_window_at(rtt: Nanos, read: u64, before: u64) -> u64 {
    let growth = if rtt < LOW_RTT {
        2 * read * rtt / LOW_RTT
    } else {
        growth(4 * read, read, before)
    };
    2 * read + growth
}

fn growth(window: u64, read: u64, before: u64) -> u64 {
    let more = u128::from(read.saturating_sub(before));
    (u128::from(window) * more / u128::from(before.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for what is read in two round trips, and for a sender that doubles in each; over short round trips, in which nothing can be
    /// said of growth, for that in proportion to them (Linux `tcp_rcvbuf_grow`).
    #[test]
    fn a_window_is_twice_what_is_read_and_what_it_grows_by() {
        let read = 10_000;
        assert_eq!(wanted_window(read, read), 2 * read);
        assert_eq!(wanted_window(2 * read, read), 12 * read);
        assert_eq!(wanted_window(read, 2 * read), 2 * read);
        assert_eq!(wanted_window_at(LOW_RTT, read, read), 2 * read);
        assert_eq!(wanted_window_at(LOW_RTT, 2 * read, read), 12 * read);
        assert_eq!(wanted_window_at(LOW_RTT / 2, read, read), 3 * read);
        assert_eq!(wanted_window_at(LOW_RTT / 10, read, 1), 2 * read + read / 5);
        assert_eq!(wanted_window(read, 0), 2 * read + 4 * read * read);
    }
}
