//! Random early detection (Floyd and Jacobson 1993), with the gentle variant (Floyd 2000) and ECN (RFC 3168).

use rand_pcg::Pcg64Mcg;

use super::{Occupancy, Verdict};
use crate::config::Model;
use crate::packet::DropReason;
use crate::random::uniform;

pub(super) const MODEL: Model = Model {
    name: "red",
    summary: "random early detection: drops or marks with a probability that grows with the average queue",
    source: "Floyd and Jacobson 1993, Random Early Detection Gateways for Congestion Avoidance",
    parameters: &[
        "min",
        "max",
        "probability",
        "weight",
        "gentle",
        "limit",
        "ecn",
    ],
};

/// With `ecn`, an ECN-capable packet is marked wherever another would be dropped early, also above `max`; only `limit` drops it
/// (Linux's default). The queue length is that of the waiting packets.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    pub min: f64,
    pub max: f64,
    pub probability: f64,
    pub weight: f64,
    pub gentle: bool,
    pub limit: u64,
    pub ecn: bool,
    pub average: f64,
    /// Packets since the last one that was dropped or marked; `None` below `min`.
    pub since_last: Option<u64>,
}

impl Red {
    pub fn admit(&mut self, ecn_capable: bool, queue: Occupancy, rng: &mut Pcg64Mcg) -> Verdict {
        self.update(queue);
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
        match (drop, self.ecn && ecn_capable) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop(DropReason::Red),
        }
    }

    fn update(&mut self, queue: Occupancy) {
        if queue.idle {
            self.average *= power(1.0 - self.weight, queue.idle_packets);
        } else {
            self.average += self.weight * (queue.packets as f64 - self.average);
        }
    }

    fn base_probability(&self) -> f64 {
        let above = self.average - self.max;
        if self.average < self.min {
            0.0
        } else if above < 0.0 {
            self.probability * (self.average - self.min) / (self.max - self.min)
        } else if self.gentle && above < self.max {
            self.probability + (1.0 - self.probability) * above / self.max
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
    use crate::random::stream;

    fn red(gentle: bool, ecn: bool) -> Red {
        Red {
            min: 5.0,
            max: 15.0,
            probability: 0.1,
            weight: 1.0,
            gentle,
            limit: 100,
            ecn,
            average: 0.0,
            since_last: None,
        }
    }

    fn waiting(packets: u64) -> Occupancy {
        Occupancy {
            idle: false,
            idle_packets: 0,
            packets,
            bytes: packets * 1500,
        }
    }

    fn drop_rate(red: &mut Red, packets: u64) -> f64 {
        let mut rng = stream(1, "test", 0, "red");
        let n = 50_000;
        let drops = (0..n)
            .filter(|_| red.admit(false, waiting(packets), &mut rng) != Verdict::Pass)
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
            red(false, true).admit(true, waiting(20), &mut rng),
            Verdict::Mark
        );
        assert_eq!(
            red(false, true).admit(false, waiting(20), &mut rng),
            Verdict::Drop(DropReason::Red)
        );
    }

    #[test]
    fn the_average_decays_while_the_queue_is_idle() {
        let mut red = red(false, false);
        red.weight = 0.5;
        red.average = 8.0;
        red.update(Occupancy {
            idle: true,
            idle_packets: 3,
            packets: 0,
            bytes: 0,
        });
        assert_eq!(red.average, 1.0);
        red.update(waiting(5));
        assert_eq!(red.average, 3.0);
    }
}
