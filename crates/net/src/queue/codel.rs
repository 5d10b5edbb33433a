//! Controlled delay (CoDel, RFC 8289).

use super::Verdict;
use crate::ids::Nanos;
use crate::packet::DropReason;
use polypath_settings::model;

const MS: Nanos = 1_000_000;

model! {
    "codel",
    "controlled delay: drops or marks on leaving while packets have waited longer than the target for an interval",
    "RFC 8289";
    /// Settings of CoDel.
    CodelConfig {
        /// Acceptable standing delay.
        target_ns: Nanos as Period = Integer(5 * MS),
        /// Time in which the delay must come down.
        interval_ns: Nanos as Period = Integer(100 * MS),
        /// Longest queue.
        limit: u64 as Packets = Integer(1000),
        /// Mark packets of ECN-capable transports instead of dropping them.
        #[serde(default)]
        ecn: bool as Boolean = Boolean(false),
    }
}

/// What the control of a queue is to reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub target: Nanos,
    pub interval: Nanos,
    pub ecn: bool,
    /// The link's longest packet: with no more than that waiting there is no standing queue (`codel_should_drop`).
    pub longest: u64,
}

/// A packet on leaving, and what it leaves behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub ecn_capable: bool,
    pub sojourn: Nanos,
    /// Bytes that wait behind it.
    pub behind: u64,
}

/// What the control knows of one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// When the sojourn time will have been above target for an interval; `None` while it is below (section 5.3).
    first_above: Option<Nanos>,
    dropping: bool,
    next_drop: Nanos,
    /// A packet was dropped at `next_drop`, which moves on if the next one stands.
    law_due: bool,
    /// Drops since the dropping state was entered.
    count: u32,
    /// `count` when the dropping state was last entered.
    last_count: u32,
}

impl Control {
    /// One packet of the dequeue routine of section 5.6; it is called again for the next packet when this one is dropped.
    pub fn release(&mut self, goal: Goal, now: Nanos, packet: Leaving) -> Verdict {
        let law_due = std::mem::take(&mut self.law_due);
        if !self.stands(goal, now, packet) {
            self.dropping = false;
            return Verdict::Pass;
        }
        if law_due {
            self.next_drop = self.control_law(goal, self.next_drop);
        }
        let marks = goal.ecn && packet.ecn_capable;
        if !self.dropping {
            self.dropping = true;
            self.enter(goal, now);
        } else if now >= self.next_drop {
            self.count = self.count.saturating_add(1);
            if marks {
                self.next_drop = self.control_law(goal, self.next_drop);
            }
            self.law_due = !marks;
        } else {
            return Verdict::Pass;
        }
        if marks {
            Verdict::Mark
        } else {
            Verdict::Drop(DropReason::Codel)
        }
    }

    /// Nothing is left that could leave (`dodequeue` of section 5.5, on an empty queue).
    pub fn empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
        self.law_due = false;
    }

    /// Counts packets that something else dropped, so that the next drop comes sooner.
    pub fn count_drops(&mut self, drops: u32) {
        self.count = self.count.saturating_add(drops);
    }

    /// Whether the sojourn time has been above target for an interval (`dodequeue` of section 5.5).
    fn stands(&mut self, goal: Goal, now: Nanos, packet: Leaving) -> bool {
        if packet.sojourn < goal.target || packet.behind <= goal.longest {
            self.first_above = None;
            return false;
        }
        let first_above = *self
            .first_above
            .get_or_insert(now.saturating_add(goal.interval));
        now >= first_above
    }

    /// Resumes near the last dropping rate if that ended recently (section 5.4).
    fn enter(&mut self, goal: Goal, now: Nanos) {
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.next_drop) < goal.interval.saturating_mul(16);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.next_drop = self.control_law(goal, now);
    }

    fn control_law(&self, goal: Goal, from: Nanos) -> Nanos {
        from.saturating_add((goal.interval as f64 / f64::from(self.count).sqrt()) as Nanos)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Codel {
    goal: Goal,
    pub limit: u64,
    control: Control,
}

impl Codel {
    pub fn new(config: CodelConfig, longest: u64) -> Self {
        Self {
            goal: Goal {
                target: config.target_ns,
                interval: config.interval_ns,
                ecn: config.ecn,
                longest,
            },
            limit: config.limit,
            control: Control::default(),
        }
    }

    /// `codel_change`: the control goes on.
    pub fn change(&mut self, config: CodelConfig) {
        let control = std::mem::take(&mut self.control);
        *self = Self {
            control,
            ..Self::new(config, self.goal.longest)
        };
    }

    /// `codel_vars_init`.
    pub fn reset(&mut self) {
        self.control = Control::default();
    }

    /// Decides on a packet that would leave; see [`Control::release`].
    pub fn release(
        &mut self,
        now: Nanos,
        ecn_capable: bool,
        sojourn: Nanos,
        behind: u64,
    ) -> Verdict {
        let packet = Leaving {
            ecn_capable,
            sojourn,
            behind,
        };
        self.control.release(self.goal, now, packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codel(ecn: bool) -> Codel {
        let config = CodelConfig {
            target_ns: 5 * MS,
            interval_ns: 100 * MS,
            limit: 1000,
            ecn,
        };
        Codel::new(config, 1500)
    }

    #[test]
    fn drops_start_after_an_interval_and_come_faster_and_faster() {
        let mut codel = codel(false);
        let drops: Vec<Nanos> = (0..400)
            .filter(|ms| codel.release(ms * MS, false, 20 * MS, 30_000) != Verdict::Pass)
            .collect();
        // 100 ms above target, then gaps of 100 ms / sqrt(1, 2, 3, ..), seen at whole milliseconds.
        assert_eq!(drops[..5], [100, 200, 271, 329, 379]);
    }

    #[test]
    fn a_queue_below_target_or_of_one_packet_is_left_alone() {
        let mut codel = codel(false);
        for ms in 0..400 {
            assert_eq!(codel.release(ms * MS, false, 4 * MS, 30_000), Verdict::Pass);
            assert_eq!(codel.release(ms * MS, false, 20 * MS, 1500), Verdict::Pass);
        }
    }

    #[test]
    fn ecn_capable_packets_are_marked() {
        let mut codel = codel(true);
        codel.release(0, true, 20 * MS, 30_000);
        assert_eq!(
            codel.release(100 * MS, true, 20 * MS, 30_000),
            Verdict::Mark
        );
    }

    /// Section 5.5: the law is applied after a drop if the next packet stands, too. After 16 intervals nothing is recent (`enter`).
    #[test]
    fn the_drop_that_ends_dropping_does_not_put_off_the_next() {
        let mut codel = codel(false);
        let mut released = |at: Nanos, sojourn| codel.release(at, false, sojourn, 30_000);
        let (stands, passes) = (20 * MS, 4 * MS);
        let dropped = Verdict::Drop(DropReason::Codel);
        released(0, stands);
        assert_eq!(released(100 * MS, stands), dropped);
        assert_eq!(released(100 * MS, stands), Verdict::Pass);
        assert_eq!(released(200 * MS, stands), dropped);
        assert_eq!(released(200 * MS, stands), Verdict::Pass);
        assert_eq!(released(271 * MS, stands), dropped);
        assert_eq!(released(271 * MS, passes), Verdict::Pass);
        // The last drop was due 270.7 ms from the start, the next one would have been 57.7 ms later.
        released(1780 * MS, stands);
        assert_eq!(released(1880 * MS, stands), dropped);
        assert_eq!(released(1880 * MS, stands), Verdict::Pass);
        // An interval after the first of a new series, not 1 / sqrt(2) of it.
        assert_eq!(released(1960 * MS, stands), Verdict::Pass);
        assert_eq!(released(1980 * MS, stands), dropped);
    }
}
