//! Random early detection (Floyd and Jacobson 1993), with the gentle variant (Floyd 2000) and ECN (RFC 3168).

use rand_pcg::Pcg64Mcg;

use super::{Occupancy, Verdict};
use crate::ids::Nanos;
use crate::packet::DropReason;
use crate::random::uniform;
use polypath_settings::{ModelError, model};

model! {
    "red",
    "random early detection: drops or marks with a probability that grows with the average queue",
    "Floyd and Jacobson 1993, Random Early Detection Gateways for Congestion Avoidance";
    /// Settings of RED.
    RedConfig {
        /// Average length from which packets are dropped.
        min: f64 as Packets.at_least(0),
        /// Average length at which `probability` is reached.
        max: f64 as Packets.at_least(0),
        /// Drop probability at `max`.
        probability: f64 as Share = Number(0.1),
        /// Weight of a new sample in the moving average; 1 takes the present length.
        weight: f64 as Number.above(0).at_most(1) = Number(0.002),
        /// Above `max` the probability rises to 100 % at twice `max` instead of at once.
        gentle: bool as Boolean = Boolean(true),
        /// Longest queue.
        limit: u64 as Packets = Integer(1000),
        /// Mark packets of ECN-capable transports instead of dropping them.
        #[serde(default)]
        ecn: bool as Boolean = Boolean(false),
    }
}

impl RedConfig {
    pub(super) fn check(&self) -> Result<(), ModelError> {
        self.within_bounds()?;
        if self.max <= self.min {
            return Err(ModelError::Order {
                model: MODEL.name,
                less: "min",
                greater: "max",
            });
        }
        Ok(())
    }
}

/// With `ecn`, an ECN-capable packet is marked wherever another would be dropped early, also above `max`; only `limit` drops it
/// (Linux's default). The queue length is that of the waiting packets.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    average: f64,
    /// Packets since the last one that was dropped or marked; `None` below `min`.
    since_last: Option<u64>,
    /// Up to when idle time is in the average.
    counted: Nanos,
}

impl Red {
    pub fn new(config: RedConfig) -> Self {
        Self {
            config,
            average: 0.0,
            since_last: None,
            counted: 0,
        }
    }

    /// `red_restart`.
    pub fn reset(&mut self) {
        self.average = 0.0;
        self.since_last = None;
    }

    pub fn limit(&self) -> u64 {
        self.config.limit
    }

    pub fn admit(
        &mut self,
        now: Nanos,
        ecn_capable: bool,
        queue: Occupancy,
        rng: &mut Pcg64Mcg,
    ) -> Verdict {
        self.update(now, queue);
        let base = self.base_probability();
        if base <= 0.0 {
            self.since_last = None;
            return Verdict::Pass;
        }
        let count = self.since_last.map_or(0, |count| count + 1);
        // Spreads the drops evenly: uniform instead of geometric gaps (section 7 of the paper).
        let spread = count as f64 * base;
        let drop = base >= 1.0 || spread >= 1.0 || uniform(rng) < base / (1.0 - spread);
        self.since_last = Some(if drop { 0 } else { count });
        match (drop, self.config.ecn && ecn_capable) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop(DropReason::Red),
        }
    }

    /// A packet that is dropped leaves the sender idle, so that a stretch of idle time may be seen several times; it counts once.
    fn update(&mut self, now: Nanos, queue: Occupancy) {
        if let Some(idle) = queue.idle {
            let from = idle.since.max(self.counted);
            let packets = now.saturating_sub(from) / idle.packet_time;
            self.average *= power(1.0 - self.config.weight, packets);
            // What is left of a packet's time counts with what follows.
            self.counted = from + packets * idle.packet_time;
        } else {
            self.average += self.config.weight * (queue.packets as f64 - self.average);
        }
    }

    fn base_probability(&self) -> f64 {
        let RedConfig {
            min,
            max,
            probability,
            gentle,
            ..
        } = self.config;
        let above = self.average - max;
        if self.average < min {
            0.0
        } else if above < 0.0 {
            probability * (self.average - min) / (max - min)
        } else if gentle && above < max {
            probability + (1.0 - probability) * above / max
        } else {
            1.0
        }
    }
}

/// By squaring, because the library's power differs between machines.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 && result > 0.0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Idle;
    use crate::random::stream;

    fn red(gentle: bool, ecn: bool) -> Red {
        Red::new(RedConfig {
            min: 5.0,
            max: 15.0,
            probability: 0.1,
            weight: 1.0,
            gentle,
            limit: 100,
            ecn,
        })
    }

    fn waiting(packets: u64) -> Occupancy {
        Occupancy {
            idle: None,
            packets,
            bytes: packets * 1500,
        }
    }

    fn idle(since: Nanos, packet_time: Nanos) -> Occupancy {
        Occupancy {
            idle: Some(Idle { since, packet_time }),
            ..waiting(0)
        }
    }

    fn drop_rate(red: &mut Red, packets: u64) -> f64 {
        let mut rng = stream(1, "test", 0, "red");
        let n = 50_000;
        let drops = (0..n)
            .filter(|_| red.admit(0, false, waiting(packets), &mut rng) != Verdict::Pass)
            .count();
        drops as f64 / f64::from(n)
    }

    #[test]
    fn the_rate_of_drops_follows_the_average() {
        assert_eq!(drop_rate(&mut red(false, false), 4), 0.0);
        // The gaps are uniform on 1 .. 1/p - 1, so that their mean is 1/2p.
        let rate = drop_rate(&mut red(false, false), 10);
        assert!((rate - 0.1).abs() < 0.003, "{rate}");
        assert_eq!(drop_rate(&mut red(false, false), 15), 1.0);
        let gentle = drop_rate(&mut red(true, false), 16);
        assert!(gentle > 0.16 && gentle < 0.4, "{gentle}");
        assert_eq!(drop_rate(&mut red(true, false), 30), 1.0);
    }

    #[test]
    fn ecn_capable_packets_are_marked_instead() {
        let mut rng = stream(1, "test", 0, "red");
        assert_eq!(
            red(false, true).admit(0, true, waiting(20), &mut rng),
            Verdict::Mark
        );
        assert_eq!(
            red(false, true).admit(0, false, waiting(20), &mut rng),
            Verdict::Drop(DropReason::Red)
        );
    }

    #[test]
    fn the_average_decays_while_the_queue_is_idle() {
        let mut red = red(false, false);
        red.config.weight = 0.5;
        red.average = 8.0;
        red.update(30, idle(0, 10));
        assert_eq!(red.average, 1.0);
        red.update(30, waiting(5));
        assert_eq!(red.average, 3.0);
    }

    #[test]
    fn idle_time_counts_once_however_many_packets_find_it() {
        let mut red = red(false, false);
        red.config.weight = 0.5;
        red.average = 8.0;
        for now in [10, 10, 15, 19, 20, 27] {
            red.update(now, idle(0, 10));
        }
        assert_eq!(red.average, 2.0);
        red.update(30, idle(0, 10));
        assert_eq!(red.average, 1.0);
        // Another stretch of idle time.
        red.update(59, idle(40, 10));
        assert_eq!(red.average, 0.5);
    }
}
