//! HyStart: when to leave slow start before packets are lost (Ha and Rhee 2011, as in Linux's CUBIC; RFC 9406's
//! predecessor).
//!
//! Times are in microseconds.

use super::Ack;
use crate::MICROSECOND;
use crate::linux::send_memory::LARGEST_BUFFER;
use crate::path::Path;

/// Linux's constants.
const LOW_WINDOW: u32 = 16;
const ACK_DELTA: u64 = 2_000;
const MIN_SAMPLES: u32 = 8;
const DELAY_MIN: u64 = 4_000;
const DELAY_MAX: u64 = 16_000;

/// HyStart's view of the present round trip.
#[derive(Default)]
pub(super) struct HyStart {
    found: bool,
    end_seq: u64,
    /// A timeout began the round: it ends with what was sent by then.
    after_timeout: bool,
    start: u64,
    last_ack: u64,
    /// None before the first sample.
    rtt: Option<u64>,
    samples: u32,
}

impl HyStart {
    /// The state after a retransmission timeout.
    pub fn after_timeout() -> Self {
        Self {
            after_timeout: true,
            ..Self::default()
        }
    }

    /// Looks for the end of slow start at a round trip of `rtt`, where the least so far took `delay_min`, and sets the threshold there.
    pub fn on_sample(&mut self, path: &mut Path, ack: &Ack, rtt: u64, delay_min: u64) {
        if self.found {
            return;
        }
        let now = ack.now / MICROSECOND;
        if std::mem::take(&mut self.after_timeout) {
            self.end_seq = ack.next_seq;
        }
        if ack.una > self.end_seq {
            *self = Self {
                found: self.found,
                end_seq: ack.next_seq,
                after_timeout: false,
                start: now,
                last_ack: now,
                rtt: None,
                samples: 0,
            };
        }
        if path.cwnd < LOW_WINDOW {
            return;
        }
        if now - self.last_ack <= ACK_DELTA {
            self.last_ack = now;
            let longest = delay_min + grouping(path);
            // Without pacing half of it is the longest train that fits the path; pacing may stretch one by as much (`hystart_update`).
            let longest = if path.paces { longest } else { longest / 2 };
            self.found |= now - self.start > longest;
        }
        let least = self.rtt.map_or(rtt, |least| least.min(rtt));
        self.rtt = Some(least);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            self.found |= least > delay_min + (delay_min / 8).clamp(DELAY_MIN, DELAY_MAX);
        }
        if self.found {
            path.ssthresh = path.cwnd;
        }
    }
}

/// What grouping segments may add to the delay, in microseconds (`hystart_ack_delay`).
fn grouping(path: &Path) -> u64 {
    let four_buffers = 4 * LARGEST_BUFFER * 1_000_000;
    four_buffers
        .checked_div(path.pacing_rate)
        .map_or(0, |delay| delay.min(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;

    /// Four of the largest buffers at the pacing rate, a millisecond at most.
    #[test]
    fn grouping_adds_up_to_a_millisecond() {
        let mut path = Path::new(1448, 10);
        for (pacing_rate, microseconds) in [
            (0, 0),
            (1_000_000, 1_000),
            (261_372_000, 1_000),
            (522_744_000, 500),
            (1 << 40, 0),
        ] {
            path.pacing_rate = pacing_rate;
            assert_eq!(grouping(&path), microseconds, "{pacing_rate}");
        }
    }

    /// ACKs one after another for longer than half of the least round trip, and of what grouping takes, end slow start; for longer than all
    /// of both, where packets are paced.
    #[test]
    fn a_train_may_be_longer_by_the_time_that_grouping_takes() {
        let length = |pacing_rate, paces| {
            let mut slow_start = HyStart::default();
            let mut path = Path {
                cwnd: 100,
                pacing_rate,
                paces,
                ..Path::new(1448, 10)
            };
            let heard = |at: u64, una| Ack {
                now: at * MICROSECOND,
                packets: 1,
                marked: 0,
                rtt: Some(20 * MILLISECOND),
                cwnd_limited: true,
                next_seq: 1_000_000,
                una,
            };
            let start = 1_000_000;
            (0..).map(|step| step * 100).find(|&after| {
                slow_start.on_sample(&mut path, &heard(start + after, 1 + after), 20_000, 20_000);
                slow_start.found
            })
        };
        assert_eq!(length(0, false), Some(10_100));
        assert_eq!(length(524_288_000, false), Some(10_300));
        assert_eq!(length(1_000_000, false), Some(10_600));
        assert_eq!(length(524_288_000, true), Some(20_500));
        assert_eq!(length(1_000_000, true), Some(21_100));
    }
}
