//! The RTT without a queue, and when the queue is drained to measure it (section 5.3.4).

use crate::{MILLISECOND, Nanos, SECOND};

/// How long the lowest RTT counts, how often ProbeRTT comes at most, and how long it lasts (section 2.16).
const FILTER: Nanos = 10 * SECOND;
const INTERVAL: Nanos = 5 * SECOND;
const DURATION: Nanos = 200 * MILLISECOND;

#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    /// The lowest of the last ten seconds.
    pub least: Option<Nanos>,
    least_at: Nanos,
    /// The lowest of the last five.
    recent: Option<Nanos>,
    recent_at: Nanos,
    /// That is outdated.
    pub expired: bool,
    until: Option<Nanos>,
    round_over: bool,
}

impl RoundTrip {
    pub fn begin(&mut self, rtt: Option<Nanos>) {
        (self.least, self.recent) = (rtt, rtt);
    }

    /// `UpdateMinRTT` (section 5.3.4.3).
    pub fn take(&mut self, now: Nanos, rtt: Option<Nanos>) {
        if self.recent_at == 0 {
            (self.recent_at, self.least_at) = (now, now);
        }
        self.expired = now > self.recent_at + INTERVAL;
        if let Some(rtt) = rtt
            && (self.expired || self.recent.is_none_or(|recent| rtt < recent))
        {
            self.recent = Some(rtt);
            self.recent_at = now;
        }
        let outdated = now > self.least_at + FILTER;
        if let Some(recent) = self.recent
            && (outdated || self.least.is_none_or(|least| recent < least))
        {
            self.least = Some(recent);
            self.least_at = self.recent_at;
        }
    }

    /// ProbeRTT begins.
    pub fn drain(&mut self) {
        self.until = None;
    }

    /// `HandleProbeRTT`. `small`: what is in flight is little enough. Whether it has just become so, and a round trip begins.
    pub fn hold(&mut self, now: Nanos, small: bool, round_started: bool) -> bool {
        if self.until.is_some() {
            self.round_over |= round_started;
            return false;
        }
        if small {
            self.until = Some(now + DURATION);
            self.round_over = false;
        }
        small
    }

    /// A round trip went by with little in flight.
    pub fn round_over(&self) -> bool {
        self.until.is_some() && self.round_over
    }

    /// `CheckProbeRTTDone`: whether it is over, and the next is counted from now on.
    pub fn done(&mut self, now: Nanos) -> bool {
        let done = self.until.is_some_and(|until| now > until);
        if done {
            self.recent_at = now;
        }
        done
    }
}
