//! HyStart++ (RFC 9406): slow start goes on at a quarter of its pace while a rising delay is doubted, and resumes where it falls again.

use super::{Ack, slow_start};
use crate::Nanos;
use crate::path::{INFINITE_SSTHRESH, Path};

const MS: Nanos = 1_000_000;

/// RFC 9406 section 4.3.
const MIN_RTT_THRESH: Nanos = 4 * MS;
const MAX_RTT_THRESH: Nanos = 16 * MS;
const MIN_RTT_DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// What an acknowledgement adds at most, in packets, without pacing.
const L: u32 = 8;

/// The delay of the present round and of the last (section 4.2).
#[derive(Default)]
pub(super) struct HyStartPlus {
    /// What was next to be sent as the round began; none before the first acknowledgement.
    end: Option<u64>,
    last: Option<Nanos>,
    least: Option<Nanos>,
    samples: u32,
    /// Conservative slow start, while there is doubt.
    doubt: Option<Doubt>,
}

struct Doubt {
    baseline: Nanos,
    /// Rounds that are over.
    rounds: u32,
    /// Packets acknowledged that make no whole one more yet.
    rest: u32,
}

impl HyStartPlus {
    /// Slow start as on each path that never reduced its window (section 4.2: the initial one only), ordinary slow start later. Gives the
    /// packets left for congestion avoidance.
    pub fn grow(&mut self, path: &mut Path, ack: &Ack) -> u32 {
        if path.ssthresh != INFINITE_SSTHRESH {
            return slow_start(path, ack.packets);
        }
        self.begin_round(path, ack);
        self.sample(ack);
        let most = if path.paces { u32::MAX } else { L };
        let mut packets = ack.packets.min(most);
        if let Some(doubt) = &mut self.doubt {
            doubt.rest += packets;
            packets = doubt.rest / CSS_GROWTH_DIVISOR;
            doubt.rest %= CSS_GROWTH_DIVISOR;
        }
        let left = slow_start(path, packets);
        self.judge();
        left
    }

    fn begin_round(&mut self, path: &mut Path, ack: &Ack) {
        let end = *self.end.get_or_insert(ack.next_seq);
        if ack.una < end {
            return;
        }
        self.end = Some(ack.next_seq);
        self.last = self.least.take();
        self.samples = 0;
        if let Some(doubt) = &mut self.doubt {
            doubt.rounds += 1;
            if doubt.rounds >= CSS_ROUNDS {
                path.ssthresh = path.cwnd;
                self.doubt = None;
            }
        }
    }

    fn sample(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
    }

    /// Whether the delay rises, or has fallen again.
    fn judge(&mut self) {
        let Some(least) = self.least.filter(|_| self.samples >= SAMPLES) else {
            return;
        };
        match (&self.doubt, self.last) {
            (Some(doubt), _) if least < doubt.baseline => self.doubt = None,
            (None, Some(last)) => {
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if least >= last + threshold {
                    self.doubt = Some(Doubt {
                        baseline: least,
                        rounds: 0,
                        rest: 0,
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path whose round trips are told one by one: each has as many packets as the window, acknowledged one at a time.
    struct Rounds {
        slow_start: HyStartPlus,
        path: Path,
        sent: u64,
    }

    impl Rounds {
        fn new(paces: bool) -> Self {
            let path = Path {
                paces,
                ..Path::new(1448, 10)
            };
            Self {
                slow_start: HyStartPlus::default(),
                path,
                sent: 10,
            }
        }

        fn round(&mut self, rtt: Nanos) -> u32 {
            let before = self.path.cwnd;
            let first = self.sent - u64::from(before);
            for number in 1..=before {
                let una = first + u64::from(number);
                self.sent += 1;
                let ack = Ack {
                    now: 0,
                    packets: 1,
                    marked: 0,
                    rtt: Some(rtt),
                    cwnd_limited: true,
                    next_seq: self.sent,
                    una,
                };
                self.slow_start.grow(&mut self.path, &ack);
            }
            self.sent = self.sent.max(first + u64::from(before + self.path.cwnd));
            self.path.cwnd - before
        }
    }

    /// Section 4.2: 4 ms or an eighth of the last round's least RTT, up to 16 ms, begin conservative slow start; five rounds of it end at
    /// the window then.
    #[test]
    fn a_rising_delay_slows_growth_and_five_rounds_end_it() {
        let mut rounds = Rounds::new(true);
        assert_eq!(rounds.round(40 * MS), 10);
        assert_eq!(rounds.round(44 * MS), 20);
        assert_eq!(rounds.round(49 * MS), 40);
        // An eighth of 49 ms more. The eighth sample of the round tells, after seven at the full pace and its own.
        let grown = rounds.round(56 * MS);
        assert_eq!(grown, 8 + 72 / 4);
        let mut last = rounds.path.cwnd;
        for _ in 0..4 {
            let grown = rounds.round(60 * MS);
            assert!(grown.abs_diff(last / 4) <= 1, "{grown} {last}");
            last = rounds.path.cwnd;
        }
        assert_eq!(rounds.path.ssthresh, INFINITE_SSTHRESH);
        rounds.round(60 * MS);
        assert!(rounds.path.ssthresh.abs_diff(last) <= 1);
    }

    #[test]
    fn slow_start_resumes_where_the_delay_falls() {
        let mut rounds = Rounds::new(true);
        rounds.round(40 * MS);
        rounds.round(50 * MS);
        assert!(rounds.slow_start.doubt.is_some());
        rounds.round(49 * MS);
        assert!(rounds.slow_start.doubt.is_none());
        let window = rounds.path.cwnd;
        assert_eq!(rounds.round(50 * MS), window);
        assert_eq!(rounds.path.ssthresh, INFINITE_SSTHRESH);
    }

    /// Section 4.2: L packets for an acknowledgement, any number where they are paced.
    #[test]
    fn an_acknowledgement_of_many_adds_eight_unless_they_are_paced() {
        for (paces, grown) in [(false, 8), (true, 30)] {
            let mut slow_start = HyStartPlus::default();
            let mut path = Path {
                paces,
                ..Path::new(1448, 40)
            };
            let ack = Ack {
                now: 0,
                packets: 30,
                marked: 0,
                rtt: None,
                cwnd_limited: true,
                next_seq: 100,
                una: 30,
            };
            slow_start.grow(&mut path, &ack);
            assert_eq!(path.cwnd, 40 + grown);
        }
    }

    /// Section 4.2: where a threshold is known, slow start is the ordinary one.
    #[test]
    fn only_the_first_slow_start_is_watched() {
        let mut rounds = Rounds::new(true);
        rounds.path.ssthresh = 1000;
        rounds.round(40 * MS);
        assert_eq!(rounds.round(80 * MS), 20);
        assert_eq!(rounds.round(160 * MS), 40);
    }
}
