//! When packets leave a channel: one after the other at a rate, or as a token bucket allows.

use std::num::NonZeroU64;

use crate::ids::Nanos;

/// Work is counted in nanobits: a rate of r bit/s does r of them in a nanosecond.
const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

fn work(size: u32) -> u64 {
    u64::from(size) * NANOBITS_PER_BYTE
}

/// Time that bytes take at a rate in bit/s, rounded down.
pub(crate) fn duration(bytes: u64, rate: NonZeroU64) -> Nanos {
    let work = u128::from(bytes) * u128::from(NANOBITS_PER_BYTE);
    u64::try_from(work / u128::from(rate.get())).unwrap_or(Nanos::MAX)
}

/// Sends one packet after the other. Departures round down to the nanosecond; what the rounding left over is carried to the next
/// packet as long as the sender stays busy, so that there is no drift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Serializer {
    /// Bits per second.
    rate: NonZeroU64,
    /// When the last packet has left.
    pub free_at: Nanos,
    /// Nanobits still to be sent at `free_at`; less than a nanosecond's worth.
    carry: u64,
}

impl Serializer {
    pub fn new(rate: NonZeroU64) -> Self {
        Self {
            rate,
            free_at: 0,
            carry: 0,
        }
    }

    pub fn rate(&self) -> NonZeroU64 {
        self.rate
    }

    /// Sends a packet of `size` bytes after all others: when it has left.
    #[inline(always)]
    pub fn send(&mut self, now: Nanos, size: u32) -> Nanos {
        if now > self.free_at {
            self.free_at = now;
            self.carry = 0;
        }
        self.send_work(work(size))
    }

    #[inline(always)]
    fn send_work(&mut self, work: u64) -> Nanos {
        let total = self.carry + work;
        let time = total / self.rate;
        self.carry = total - time * self.rate.get();
        self.free_at = self.free_at.saturating_add(time);
        self.free_at
    }

    /// When so many bytes more would have left, in however many packets.
    pub fn free_after(&self, bytes: u64) -> Nanos {
        let work = bytes.saturating_mul(NANOBITS_PER_BYTE);
        self.free_at
            .saturating_add(self.carry.saturating_add(work) / self.rate)
    }

    /// Changes the rate. `rest` gives the sizes of what is queued behind the packet being sent; the new departures are handed to
    /// `departs`, the packet being sent first. The caller says whether anything is queued at all.
    pub fn change_rate(
        &mut self,
        now: Nanos,
        rate: NonZeroU64,
        rest: impl Iterator<Item = u32> + Clone,
        mut departs: impl FnMut(Nanos),
    ) {
        if self.free_at <= now {
            self.rate = rate;
            return;
        }
        let current = self.current(now, rest.clone());
        *self = Self {
            rate,
            free_at: now,
            carry: 0,
        };
        departs(self.send_work(current));
        for size in rest {
            departs(self.send_work(work(size)));
        }
    }

    /// Takes back all but the packet being sent. `rest` gives the sizes of what is queued behind it.
    pub fn keep_first(&mut self, now: Nanos, rest: impl Iterator<Item = u32>) {
        if self.free_at > now {
            let current = self.current(now, rest);
            self.free_at = now;
            self.carry = 0;
            self.send_work(current);
        }
    }

    /// Nanobits left of the packet being sent.
    fn current(&self, now: Nanos, rest: impl Iterator<Item = u32>) -> u64 {
        let all =
            u128::from(self.free_at - now) * u128::from(self.rate.get()) + u128::from(self.carry);
        let behind: u128 = rest.map(|size| u128::from(work(size))).sum();
        u64::try_from(all.saturating_sub(behind)).unwrap_or(u64::MAX)
    }

    /// Forgets what is queued.
    pub fn abandon(&mut self, now: Nanos) {
        self.free_at = self.free_at.min(now);
        self.carry = 0;
    }
}

/// A bucket of tokens that fills at a rate (tc-tbf). A packet leaves when the bucket holds its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    rate: NonZeroU64,
    /// Nanobits, as is `level`.
    depth: u64,
    level: u64,
    /// When `level` was true.
    at: Nanos,
    /// What was sent and has not come in again, also in nanobits.
    owed: u64,
    /// Time that tokens took to come in for what was sent, up to `at`.
    busy: Nanos,
}

impl Bucket {
    /// A full bucket.
    pub fn new(now: Nanos, rate: NonZeroU64, burst: u64) -> Self {
        let depth = burst.saturating_mul(NANOBITS_PER_BYTE);
        Self {
            rate,
            depth,
            level: depth,
            at: now,
            owed: 0,
            busy: 0,
        }
    }

    fn fill(&mut self, now: Nanos) {
        self.busy = self.busy(now);
        let gained = u128::from(now.saturating_sub(self.at)) * u128::from(self.rate.get());
        self.level = (u128::from(self.level) + gained).min(u128::from(self.depth)) as u64;
        self.owed = u128::from(self.owed).saturating_sub(gained) as u64;
        self.at = self.at.max(now);
    }

    pub fn holds(&self, size: u32) -> bool {
        work(size) <= self.depth
    }

    /// The first nanosecond from `now` on at which there are tokens for a packet.
    pub fn ready_at(&mut self, now: Nanos, size: u32) -> Nanos {
        self.fill(now);
        let missing = work(size).saturating_sub(self.level);
        now.saturating_add(missing.div_ceil(self.rate.get()))
    }

    pub fn spend(&mut self, now: Nanos, size: u32) {
        self.fill(now);
        self.level = self.level.saturating_sub(work(size));
        self.owed = self.owed.saturating_add(work(size));
    }

    /// Time in which tokens came in for what was sent. A packet that finds them in the bucket leaves in no time, so that it is the tokens
    /// that tell how long the rate was in use.
    pub fn busy(&self, now: Nanos) -> Nanos {
        let since = now.saturating_sub(self.at);
        self.busy + since.min(self.owed.div_ceil(self.rate.get()))
    }

    pub fn change(&mut self, now: Nanos, rate: NonZeroU64, burst: u64) {
        self.fill(now);
        self.rate = rate;
        self.depth = burst.saturating_mul(NANOBITS_PER_BYTE);
        self.level = self.level.min(self.depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits_per_second: u64) -> NonZeroU64 {
        NonZeroU64::new(bits_per_second).expect("a rate")
    }

    #[test]
    fn back_to_back_departures_do_not_drift() {
        // 1514 bytes at 3 Mbit/s take 4,037,333 1/3 ns.
        let mut line = Serializer::new(rate(3_000_000));
        let departures: Vec<Nanos> = (0..3).map(|_| line.send(0, 1514)).collect();
        assert_eq!(departures, [4_037_333, 8_074_666, 12_112_000]);
    }

    #[test]
    fn idleness_forgets_the_fraction() {
        let mut line = Serializer::new(rate(3_000_000));
        line.send(0, 1514);
        assert_eq!(line.send(5_000_000, 1514), 9_037_333);
    }

    #[test]
    fn a_bucket_is_busy_until_the_tokens_for_what_was_sent_have_come() {
        let mut bucket = Bucket::new(0, rate(8_000_000), 3000);
        bucket.spend(1_000_000, 3000);
        assert_eq!(bucket.busy(1_000_000), 0);
        assert_eq!(bucket.busy(2_500_000), 1_500_000);
        bucket.spend(2_500_000, 500);
        // 3500 bytes in all, at a microsecond each, however deep the bucket is.
        bucket.change(3_000_000, rate(8_000_000), 10_000);
        assert_eq!(bucket.busy(100_000_000), 3_500_000);
        bucket.spend(200_000_000, 1000);
        assert_eq!(bucket.busy(300_000_000), 4_500_000);
    }

    #[test]
    fn a_bucket_passes_its_depth_at_once_and_then_the_rate() {
        let mut bucket = Bucket::new(0, rate(8_000_000), 3000);
        let mut leave = |now| {
            let at = bucket.ready_at(now, 1500);
            bucket.spend(at, 1500);
            at
        };
        assert_eq!(leave(0), 0);
        assert_eq!(leave(0), 0);
        assert_eq!(leave(0), 1_500_000);
        assert_eq!(leave(1_500_000), 3_000_000);
        // Idle for 10 ms: full again, not more than full.
        assert_eq!(leave(13_000_000), 13_000_000);
        assert_eq!(leave(13_000_000), 13_000_000);
        assert_eq!(leave(13_000_000), 14_500_000);
    }
}
