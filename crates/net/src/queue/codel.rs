//! Controlled delay (CoDel, RFC 8289).

use super::Verdict;
use crate::config::Model;
use crate::ids::Nanos;
use crate::packet::DropReason;

pub(super) const MODEL: Model = Model {
    name: "codel",
    summary: "controlled delay: drops or marks on leaving while packets have waited longer than the target for an interval",
    source: "RFC 8289",
    parameters: &["target", "interval", "limit", "ecn"],
};

#[derive(Clone, Debug)]
pub(crate) struct Codel {
    target: Nanos,
    interval: Nanos,
    pub limit: u64,
    ecn: bool,
    /// When the sojourn time will have been above target for an interval; `None` while it is below (section 5.3).
    first_above: Option<Nanos>,
    dropping: bool,
    next_drop: Nanos,
    /// Drops since the dropping state was entered.
    count: u32,
    /// `count` when the dropping state was last entered.
    last_count: u32,
    /// The longest packet so far, in bytes: with no more than that waiting there is no standing queue.
    longest: u32,
}

impl Codel {
    pub fn new(target: Nanos, interval: Nanos, limit: u64, ecn: bool) -> Self {
        Self {
            target,
            interval,
            limit,
            ecn,
            first_above: None,
            dropping: false,
            next_drop: 0,
            count: 0,
            last_count: 0,
            longest: 0,
        }
    }

    /// One packet of the dequeue routine of RFC 8289 section 5.6; it is called again for the next packet when this one is dropped.
    pub fn release(
        &mut self,
        now: Nanos,
        size: u32,
        ecn_capable: bool,
        sojourn: Nanos,
        bytes: u64,
    ) -> Verdict {
        self.longest = self.longest.max(size);
        let standing = self.stands(now, sojourn, bytes);
        if !standing {
            self.dropping = false;
            return Verdict::Pass;
        }
        if !self.dropping {
            self.dropping = true;
            self.enter(now);
        } else if now >= self.next_drop {
            self.count = self.count.saturating_add(1);
            self.next_drop = self.control_law(self.next_drop);
        } else {
            return Verdict::Pass;
        }
        if self.ecn && ecn_capable {
            Verdict::Mark
        } else {
            Verdict::Drop(DropReason::Codel)
        }
    }

    /// Whether the sojourn time has been above target for an interval (`dodequeue` of section 5.5).
    fn stands(&mut self, now: Nanos, sojourn: Nanos, bytes: u64) -> bool {
        if sojourn < self.target || bytes <= u64::from(self.longest) {
            self.first_above = None;
            return false;
        }
        let first_above = *self
            .first_above
            .get_or_insert(now.saturating_add(self.interval));
        now >= first_above
    }

    /// Resumes near the last dropping rate if that ended recently (section 5.4).
    fn enter(&mut self, now: Nanos) {
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.next_drop) < self.interval.saturating_mul(16);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.next_drop = self.control_law(now);
    }

    fn control_law(&self, from: Nanos) -> Nanos {
        from.saturating_add((self.interval as f64 / f64::from(self.count).sqrt()) as Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn drops_start_after_an_interval_and_come_faster_and_faster() {
        let mut codel = Codel::new(5 * MS, 100 * MS, 1000, false);
        let drops: Vec<Nanos> = (0..400)
            .filter(|ms| codel.release(ms * MS, 1500, false, 20 * MS, 30_000) != Verdict::Pass)
            .collect();
        // 100 ms above target, then gaps of 100 ms / sqrt(1, 2, 3, ..), seen at whole milliseconds.
        assert_eq!(drops[..5], [100, 200, 271, 329, 379]);
    }

    #[test]
    fn a_queue_below_target_or_of_one_packet_is_left_alone() {
        let mut codel = Codel::new(5 * MS, 100 * MS, 1000, false);
        for ms in 0..400 {
            assert_eq!(
                codel.release(ms * MS, 1500, false, 4 * MS, 30_000),
                Verdict::Pass
            );
            assert_eq!(
                codel.release(ms * MS, 1500, false, 20 * MS, 1500),
                Verdict::Pass
            );
        }
    }

    #[test]
    fn ecn_capable_packets_are_marked() {
        let mut codel = Codel::new(5 * MS, 100 * MS, 1000, true);
        codel.release(0, 1500, true, 20 * MS, 30_000);
        assert_eq!(
            codel.release(100 * MS, 1500, true, 20 * MS, 30_000),
            Verdict::Mark
        );
    }
}
