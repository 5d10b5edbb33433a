//! Reassembly by data sequence number, and the one receive window of a connection (RFC 8684 sections 3.3.4 and 3.3.5).

use crate::Nanos;
use crate::config::Config;
use crate::ranges::RangeSet;

/// The receiving half of a connection. Positions are offsets in the peer's application stream.
#[derive(Debug)]
pub(crate) struct DataReceiver {
    /// The next byte expected in order.
    pub next: u64,
    reassembly: RangeSet,
    /// Bytes that wait out of order inside the subflows.
    pub held: u64,
    unread: u64,
    /// What of it the last segment brought, under upstream's rules: the reader has it before the window is told (`tcp_cleanup_rbuf`).
    fresh: u64,
    /// Where the stream ends, once known.
    pub end: Option<u64>,
    /// Receive buffer in bytes, and the share of it offered as window.
    buffer: u64,
    share: u64,
    largest_buffer: u64,
    out_of_order_counts: bool,
    autotuning: bool,
    /// Right edge of the window that was offered.
    edge: u64,
    /// The window grows no faster than data arrives (Linux `rcv_ssthresh`).
    slow_start: u64,
    scaling: bool,
    shift: u8,
    mss: u32,
    upstream: Option<Upstream>,
    rtt: Nanos,
    tuning: Tuning,
}

/// What upstream Linux measures of arriving segments.
#[derive(Debug)]
struct Upstream {
    multipath: bool,
    /// Largest segment so far and the part of its memory that is payload, over 256.
    segment: u32,
    share: u64,
    /// The connection's share follows once in a window's worth of data.
    next_update: u64,
    /// Round trips of each subflow.
    rtts: Vec<Nanos>,
    /// The window grew with the last segment.
    grew: bool,
}

/// Largest window that every host can offer whatever its buffers (net.core.rmem_max).
const LARGEST_BUFFER: u64 = 4 << 20;

/// Memory of a received segment: its head in a power of two with what belongs to it, and the buffer's description (`SKB_TRUESIZE`).
fn memory(len: u32) -> u64 {
    (u64::from(len) + 512).next_power_of_two() + 256
}

/// Dynamic right-sizing (Feng et al. 2003; Linux `tcp_rcv_space_adjust`): bytes read in the last round trip, and the present one's start.
#[derive(Debug, Default)]
struct Tuning {
    space: u64,
    began_at: Nanos,
    read_then: u64,
    read: u64,
}

impl DataReceiver {
    pub fn new(config: &Config) -> Self {
        let buffer = config.receive_buffer.default;
        let share = config.profile.window_share();
        let largest = config.receive_buffer.maximum.max(buffer);
        let upstream = config.profile.measures_segments().then(|| Upstream {
            multipath: config.mptcp,
            segment: 0,
            share,
            next_update: 0,
            rtts: Vec::new(),
            grew: false,
        });
        let mut shift = 0;
        if upstream.is_some() {
            shift = (largest.max(LARGEST_BUFFER).ilog2() as u8 - 15).min(14);
        }
        while shift < 14 && largest >> shift > 65_535 && upstream.is_none() {
            shift += 1;
        }
        let mut receiver = Self {
            next: 0,
            reassembly: RangeSet::default(),
            held: 0,
            unread: 0,
            fresh: 0,
            end: None,
            buffer,
            share,
            largest_buffer: largest,
            out_of_order_counts: config.profile.out_of_order_counts(),
            autotuning: config.autotuning && largest > buffer,
            edge: 0,
            slow_start: (buffer * share / 256).min(65_535),
            scaling: config.window_scaling,
            shift: if config.window_scaling { shift } else { 0 },
            mss: 536,
            upstream,
            rtt: 0,
            tuning: Tuning::default(),
        };
        receiver.round_first_window(config.mtu.saturating_sub(40));
        receiver
    }

    /// The first window holds full segments only (Linux `tcp_select_initial_window`).
    fn round_first_window(&mut self, mss: u32) {
        let mss = u64::from(mss.max(1));
        let first = self.capacity().min(65_535);
        if self.upstream.is_some() && self.edge == 0 && first > mss {
            self.slow_start = first / mss * mss;
        }
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
        self.round_first_window(mss);
        if self.tuning.space == 0 {
            self.tuning.space = self.window().min(10 * u64::from(mss));
        }
    }

    pub fn mss(&self) -> u32 {
        self.mss
    }

    fn capacity(&self) -> u64 {
        self.buffer * self.share / 256
    }

    /// The window opens by no less: a segment, or half the buffer where that is smaller (RFC 9293 section 3.8.6.2.2).
    fn smallest_step(&self) -> u64 {
        u64::from(self.mss).min(self.capacity() / 2)
    }

    /// The window to offer: the right edge never moves back, and does not move in steps smaller than a segment (RFC 9293 section 3.8.6.2.2).
    pub fn window(&mut self) -> u64 {
        let used = self.unread.saturating_sub(self.fresh)
            + if self.out_of_order_counts {
                self.reassembly.bytes() + self.held
            } else {
                0
            };
        let free = self.capacity().saturating_sub(used);
        if free >= self.smallest_step() {
            let mut offered = free.min(self.slow_start);
            if self.upstream.is_some() {
                offered = offered.next_multiple_of(1 << self.shift);
            }
            self.edge = self.edge.max(self.next + offered);
        }
        self.edge.saturating_sub(self.next)
    }

    /// Whether data up to `end` lies within the window that was offered.
    pub fn admits(&self, end: u64) -> bool {
        end <= self.edge
    }

    /// Whether a position this far beyond the next byte lies within the window that was offered.
    pub fn reaches(&self, distance: u64) -> bool {
        self.next + distance < self.edge
    }

    /// Takes `len` bytes from `offset` on. Returns how many of them are new.
    pub fn deliver(&mut self, offset: u64, len: u64) -> u64 {
        let end = offset + len;
        if end <= self.next {
            return 0;
        }
        let before = self.next + self.reassembly.bytes();
        if offset <= self.next && self.reassembly.is_empty() {
            self.advance(end);
        } else {
            self.reassembly
                .insert(offset.max(self.next), end, |_, _| {});
            let reached = self.reassembly.contiguous_end(self.next);
            if reached > self.next {
                self.reassembly.remove_below(reached);
                self.advance(reached);
            }
        }
        self.next + self.reassembly.bytes() - before
    }

    fn advance(&mut self, end: u64) {
        let fresh = end - self.next;
        self.unread += fresh;
        self.next = end;
        let grown = (self.slow_start + 2 * u64::from(self.mss)).min(self.capacity());
        if let Some(upstream) = &mut self.upstream {
            self.fresh += fresh;
            upstream.grew |= grown > self.slow_start;
        }
        self.slow_start = grown;
    }

    /// Whether the window grew since this was last asked (Linux sends quick ACKs for longer then, `tcp_grow_window`).
    pub fn grew(&mut self) -> bool {
        self.upstream
            .as_mut()
            .is_some_and(|upstream| std::mem::take(&mut upstream.grew))
    }

    /// The application took everything before the last segment.
    pub fn reader_waits(&self) -> bool {
        self.upstream.is_some() && self.unread <= self.fresh
    }

    /// Learns from the largest segments what part of the buffer is payload (`tcp_measure_rcv_mss`, `mptcp_rcv_rtt_update`). Returns the
    /// largest so far, where segments are measured.
    pub fn measure(&mut self, len: u32) -> Option<u32> {
        let upstream = self.upstream.as_mut()?;
        let window = self.edge.saturating_sub(self.next);
        self.fresh = 0;
        if len > upstream.segment {
            upstream.segment = len;
            upstream.share = u64::from(len) * 256 / memory(len);
        }
        if !upstream.multipath {
            self.share = upstream.share;
        } else if self.next >= upstream.next_update {
            upstream.next_update = self.next + window;
            self.share = (7 * self.share + upstream.share) / 8;
        }
        Some(upstream.segment)
    }

    /// A receiver-side RTT of a subflow.
    pub fn sample_rtt(&mut self, me: usize, rtt: Nanos) {
        let smooth = |old: Nanos| {
            if old == 0 { rtt } else { (7 * old + rtt) / 8 }
        };
        let Some(upstream) = &mut self.upstream else {
            self.rtt = smooth(self.rtt);
            return;
        };
        if upstream.rtts.len() <= me {
            upstream.rtts.resize(me + 1, 0);
        }
        // A shorter one counts at once, and the shortest subflow for all (`tcp_rcv_rtt_update`, `mptcp_rtt_us_est`).
        let old = &mut upstream.rtts[me];
        *old = smooth(*old).min(rtt);
        let measured = upstream.rtts.iter().copied().filter(|&rtt| rtt > 0);
        self.rtt = measured.min().unwrap_or(0);
    }

    pub fn available(&self) -> u64 {
        self.unread
    }

    /// The application reads `bytes`. True: the window should be announced (Linux `tcp_cleanup_rbuf`).
    pub fn read(&mut self, bytes: u64, now: Nanos) -> bool {
        let bytes = bytes.min(self.unread);
        let before = self.edge.saturating_sub(self.next);
        self.unread -= bytes;
        self.fresh = 0;
        self.tuning.read += bytes;
        self.tune(now);
        if 2 * before > self.capacity() {
            return false;
        }
        let after = self.window();
        after >= 2 * before.max(1) && after >= self.smallest_step().min(self.slow_start)
    }

    fn tune(&mut self, now: Nanos) {
        if self.rtt == 0 || now - self.tuning.began_at < self.rtt {
            return;
        }
        let copied = self.tuning.read - self.tuning.read_then;
        if copied > self.tuning.space {
            if self.autotuning {
                // Twice what was read; older kernels leave room for sixteen segments more.
                let slack = if self.upstream.is_some() { 0 } else { 16 };
                let window = 2 * copied + slack * u64::from(self.mss);
                let growth = (u128::from(window) * u128::from(copied - self.tuning.space)
                    / u128::from(self.tuning.space.max(1))) as u64;
                let wanted = (window + 2 * growth) * 256 / self.share;
                self.buffer = self.buffer.max(wanted.min(self.largest_buffer));
            }
            self.tuning.space = copied;
        }
        self.tuning.began_at = now;
        self.tuning.read_then = self.tuning.read;
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
mod tests {
    use super::*;
    use crate::config::{Buffer, Profile};

    fn receiver(profile: Profile, buffer: u64) -> DataReceiver {
        let receive_buffer = Buffer {
            minimum: buffer,
            default: buffer,
            maximum: buffer,
        };
        let mut receiver = DataReceiver::new(&Config {
            profile,
            receive_buffer,
            ..Config::default()
        });
        receiver.set_mss(1000);
        receiver
    }

    #[test]
    fn the_window_is_what_the_buffer_has_left() {
        let mut receiver = receiver(Profile::Rfc, 20_000);
        assert_eq!(receiver.window(), 20_000);
        receiver.deliver(0, 5_000);
        assert_eq!(receiver.window(), 15_000);
        receiver.read(5_000, 1);
        assert_eq!(receiver.window(), 20_000);
    }

    #[test]
    fn out_of_order_data_holds_the_edge_in_the_kernels_only() {
        for (profile, window) in [(Profile::Rfc, 20_000), (Profile::MptcpOrg, 20_000 - 4_000)] {
            let mut receiver = receiver(profile, 20_000 * 256 / profile.window_share());
            assert_eq!(receiver.window(), 20_000);
            assert_eq!(receiver.deliver(8_000, 4_000), 4_000);
            assert_eq!(receiver.deliver(0, 4_000), 4_000);
            receiver.read(4_000, 1);
            assert_eq!(receiver.window(), window.max(16_000));
            assert_eq!(receiver.deliver(2_000, 10_000), 4_000);
            assert_eq!(receiver.next, 12_000);
            assert_eq!(receiver.reassembly_bytes(), 0);
        }
    }

    /// A full segment of 1448 bytes costs 2048 and 256: 160/256 of 128 KiB are 81,920 bytes, as the kernel's ACKs say.
    #[test]
    fn upstream_offers_the_payload_part_of_what_segments_cost() {
        let mut config = Config {
            profile: Profile::Linux,
            mptcp: false,
            ..Config::default()
        };
        config.receive_buffer.maximum = config.receive_buffer.default;
        let mut receiver = DataReceiver::new(&config);
        receiver.set_mss(1448);
        assert_eq!(receiver.scale(), 7);
        assert!(receiver.window() < 66_000);
        for _ in 0..20 {
            receiver.measure(1448);
            receiver.deliver(receiver.next, 1448);
            assert!(receiver.grew() || receiver.window() > 78_000);
            receiver.read(1448, 1);
        }
        assert_eq!(receiver.window(), 81_920);
        assert!(!receiver.grew());
    }

    /// As in the kernel's SYN and SYN/ACK over Ethernet: 44 segments of 1460 bytes, 45 of 1448.
    #[test]
    fn upstreams_first_window_holds_full_segments() {
        let mut receiver = DataReceiver::new(&Config {
            profile: Profile::Linux,
            ..Config::default()
        });
        receiver.shift = 0;
        receiver.set_mss(1448);
        assert_eq!(receiver.window(), 65_160);
        let mut receiver = DataReceiver::new(&Config {
            profile: Profile::Linux,
            ..Config::default()
        });
        receiver.shift = 0;
        assert_eq!(receiver.window(), 64_240);
    }

    #[test]
    fn upstream_takes_the_shortest_subflow_for_the_round_trip() {
        let config = Config {
            profile: Profile::Linux,
            ..Config::default()
        };
        let mut receiver = DataReceiver::new(&config);
        receiver.sample_rtt(1, 100_000_000);
        receiver.sample_rtt(0, 40_000_000);
        receiver.sample_rtt(0, 20_000_000);
        receiver.sample_rtt(1, 100_000_000);
        assert_eq!(receiver.rtt, 20_000_000);
        receiver.sample_rtt(0, 100_000_000);
        assert_eq!(receiver.rtt, 30_000_000);
    }

    #[test]
    fn the_buffer_grows_with_the_rate_of_reading() {
        let mut receiver = DataReceiver::new(&Config::default());
        receiver.set_mss(1448);
        receiver.sample_rtt(0, 10_000_000);
        let before = receiver.buffer();
        for round in 1..20u64 {
            let bytes = 20_000 * round;
            receiver.deliver(receiver.next, bytes);
            receiver.read(bytes, round * 10_000_000);
        }
        assert!(receiver.buffer() > 2 * before, "{}", receiver.buffer());
    }
}
