//! Linux's accounting of send memory and of the rate at which it drains.

use crate::path::Path;
use crate::settings::Config;
use crate::{MICROSECOND, Nanos, SECOND};

/// Memory of a full segment beside its payload, and the rounding to powers of two, as buffers are sized for the worst case
/// (`tcp_sndbuf_expand`).
const SEGMENT_OVERHEAD: u64 = 320;
const BOOKKEEPING: u64 = 256;

/// What a buffer costs beside its payload (`SKB_TRUESIZE` of an empty one from `tcp_stream_alloc_skb`).
pub(crate) const BUFFER_OVERHEAD: u64 = 832;
/// Payload of one buffer at most, the longest headers left out (`sk_gso_max_size`, MAX_TCP_HEADER), and the part of a second's worth that it
/// holds once it is sent (`sk_pacing_shift`).
pub(crate) const LARGEST_BUFFER: u64 = 65_536 - 192 - 1;
const PACING_SHIFT: u32 = 10;
/// Each 512 us of RTT halve what a buffer may hold beside (`tcp_tso_rtt_log`).
const CLOSE_SHIFT: u32 = 9;
/// Before the first sample the rate is that of the smallest RTT which can be written, an eighth of a microsecond.
const NO_RTT: Nanos = 125;

/// A send buffer for two windows (`tcp_sndbuf_expand`).
pub(crate) fn wanted_buffer(path: &Path, initial_window: u32) -> u64 {
    buffer_for(path, path.cwnd.max(initial_window))
}

/// The same for so many packets.
pub(crate) fn buffer_for(path: &Path, packets: u32) -> u64 {
    let segment = (u64::from(path.mss) + SEGMENT_OVERHEAD).next_power_of_two() + BOOKKEEPING;
    2 * segment * u64::from(packets)
}

/// What a new subflow may hold, to begin with (`tcp_init_buffer_space`).
pub(crate) fn first_buffer(path: &mut Path, config: &Config) {
    let most = config.send_buffer.maximum.max(config.send_buffer.default);
    let first = buffer_for(path, config.initial_window).min(most);
    path.buffer = path.buffer.max(first);
}

/// Twice the window in each RTT, 1.2 times it from half the slow-start threshold on, in segments of `mss` (`tcp_update_pacing_rate`).
/// Bytes a second.
pub(crate) fn pacing_rate(path: &Path, mss: u32, packets_out: u64) -> u64 {
    let percent = if path.cwnd < path.ssthresh / 2 {
        200
    } else {
        120
    };
    let packets = packets_out.max(path.cwnd.into());
    let bytes = u128::from(packets * u64::from(mss)) * percent / 100;
    (bytes * u128::from(SECOND) / u128::from(path.srtt.max(NO_RTT))) as u64
}

/// What Linux charges for bytes that wait in large buffers and for bytes in flight, whose buffers were cut as they were sent
/// (`tcp_tso_autosize`).
pub(crate) fn charged(path: &Path, in_flight: u64, unsent: u64) -> u64 {
    let cut = cut(path);
    let buffers = in_flight.div_ceil(cut) + unsent.div_ceil(LARGEST_BUFFER);
    in_flight + unsent + buffers * BUFFER_OVERHEAD
}

/// Segments of one buffer while it waits, for a peer that offered at most `window` (`tcp_bound_to_half_wnd`).
pub(crate) fn most_segments(mss: u32, window: u64) -> usize {
    let most = LARGEST_BUFFER.min(window / 2) / u64::from(mss.max(1));
    most.max(1) as usize
}

/// Segments of one buffer when it is sent (`tcp_tso_segs`).
pub(crate) fn segments_sent(path: &Path) -> u64 {
    cut(path) / u64::from(path.mss.max(1))
}

/// What a buffer holds when it is sent: more the closer the peer is (`tcp_tso_autosize`).
fn cut(path: &Path) -> u64 {
    let fewest = u64::from(path.least_burst) * u64::from(path.mss.max(1));
    let halvings = (path.min_rtt / MICROSECOND) >> CLOSE_SHIFT;
    let close = match u32::try_from(halvings) {
        Ok(halvings) if path.min_rtt > 0 => LARGEST_BUFFER.checked_shr(halvings).unwrap_or(0),
        _ => 0,
    };
    ((path.pacing_rate >> PACING_SHIFT) + close).clamp(fewest.min(LARGEST_BUFFER), LARGEST_BUFFER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A millisecond's worth, and more the closer the peer is: the largest buffer halved for each 512 us of the least round trip.
    #[test]
    fn a_buffer_holds_more_for_a_close_peer() {
        let mut path = Path::new(1448, 10);
        path.pacing_rate = 10 << 20;
        let millisecond = 10 << 10;
        let mut holds = |min_rtt: Nanos| {
            path.min_rtt = min_rtt;
            cut(&path)
        };
        for (microseconds, close) in [
            (1, LARGEST_BUFFER - millisecond),
            (511, LARGEST_BUFFER - millisecond),
            (512, LARGEST_BUFFER >> 1),
            (1_023, LARGEST_BUFFER >> 1),
            (1_024, LARGEST_BUFFER >> 2),
            (5_120, LARGEST_BUFFER >> 10),
            (15 * 512, 1),
            (16 * 512, 0),
            (32 * 512, 0),
            (64 * 512, 0),
            (40_000, 0),
        ] {
            let held = holds(microseconds * MICROSECOND);
            assert_eq!(held, millisecond + close, "{microseconds} us");
        }
        // Before the first sample nobody is close.
        assert_eq!(holds(0), millisecond);
    }

    #[test]
    fn a_buffer_holds_some_segments_at_least_and_the_largest_at_most() {
        let mut path = Path::new(1448, 10);
        path.min_rtt = 40 * crate::MILLISECOND;
        for (least, pacing_rate, segments) in [
            (2, 0, 2),
            (2, 3 << 20, 2),
            (2, 5 << 20, 3),
            (2, 1 << 40, 45),
            (10, 5 << 20, 10),
            (100, 0, 45),
        ] {
            (path.least_burst, path.pacing_rate) = (least, pacing_rate);
            assert_eq!(segments_sent(&path), segments, "{least} {pacing_rate}");
        }
    }
}
