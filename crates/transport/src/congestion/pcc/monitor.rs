//! Monitor intervals: what becomes of the packets that leave at one rate.
//!
//! A packet belongs to the interval in which it left. What had been delivered by then tells which one that was.

use std::collections::VecDeque;

use crate::congestion::{Ack, LostPacket, RateSample};
use crate::{Nanos, SECOND};

/// Losses of an interval are found so many halves of a round trip after its end, at the latest: one round trip for the packets, and half
/// of one for what shows that they are lost.
const PATIENCE: Nanos = 3;

/// RTTs over the times of sending: sums for a line of least squares (authors' `core.cpp`, where a monitor ends).
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    fn take(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    fn slope(&self) -> f64 {
        let spread = self.count * self.xx - self.x * self.x;
        if self.count < 2.0 || spread <= 0.0 {
            return 0.0;
        }
        (self.count * self.xy - self.x * self.y) / spread
    }
}

/// Where an interval begins or ends.
#[derive(Clone, Copy, Debug)]
struct Border {
    at: Nanos,
    /// Packets delivered and sent so far.
    delivered: u64,
    sent: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    /// Bytes a second at which its packets are to leave.
    pub rate: f64,
    /// Something is decided by it.
    pub counts: bool,
    begin: Border,
    end: Option<Border>,
    acked: u64,
    lost: u64,
    rtts: Line,
    /// The application had nothing more to send.
    pub app_limited: bool,
}

impl Interval {
    pub fn sent(&self) -> u64 {
        self.end
            .map_or(0, |end| end.sent.saturating_sub(self.begin.sent))
    }

    /// Part of its packets that were lost.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.sent().max(1) as f64
    }

    /// Seconds by which the RTT grew in a second.
    pub fn slope(&self) -> f64 {
        self.rtts.slope()
    }

    /// Bytes a second that left.
    pub fn throughput(&self, packet: u32) -> f64 {
        let time = self.end.map_or(1, |end| (end.at - self.begin.at).max(1));
        self.sent() as f64 * f64::from(packet) * SECOND as f64 / time as f64
    }

    fn over(&self, now: Nanos, srtt: Nanos) -> bool {
        self.end.is_some_and(|end| {
            self.acked + self.lost >= self.sent() || now >= end.at + PATIENCE * srtt / 2
        })
    }
}

/// The interval that lasts.
pub(super) struct Present {
    pub time: Nanos,
    /// Packets that left in it.
    pub sent: u64,
    pub counts: bool,
}

#[derive(Debug, Default)]
pub(super) struct Monitor {
    intervals: VecDeque<Interval>,
}

fn border(ack: &Ack, sample: &RateSample, in_flight: u32) -> Border {
    Border {
        at: ack.now,
        delivered: sample.delivered,
        sent: sample.delivered + sample.lost + u64::from(in_flight),
    }
}

impl Monitor {
    /// Nothing is decided by what is under way.
    pub fn disregard(&mut self) {
        for interval in &mut self.intervals {
            interval.counts = false;
        }
    }

    fn of(&mut self, prior_delivered: u64) -> Option<usize> {
        let from = |it: &Interval| it.begin.delivered <= prior_delivered;
        self.intervals.iter().rposition(from)
    }

    pub fn on_lost(&mut self, lost: &LostPacket) {
        if let Some(index) = self.of(lost.prior_delivered) {
            self.intervals[index].lost += 1;
        }
    }

    pub fn on_ack(&mut self, ack: &Ack, sample: &RateSample) {
        let packets = u64::from(ack.packets);
        let Some(newest) = sample.interval else {
            // The copy that arrived is unknown; what is oldest is nearest.
            if let Some(first) = self.intervals.front_mut() {
                first.acked += packets;
            }
            return;
        };
        let Some(index) = self.of(newest.prior_delivered) else {
            return;
        };
        let first = self.intervals[index].acked == 0;
        let one = packets.min(1);
        // The first acknowledgement of an interval can be the last one of that before it.
        let (here, before) = if first && index > 0 {
            (one, packets - one)
        } else {
            (packets, 0)
        };
        self.intervals[index].acked += here;
        if before > 0 {
            self.intervals[index - 1].acked += before;
        }
        let interval = &mut self.intervals[index];
        interval.app_limited |= newest.app_limited;
        if let Some(rtt) = ack.rtt {
            let sent = ack.now.saturating_sub(rtt);
            let since = sent.saturating_sub(interval.begin.at) as f64 / SECOND as f64;
            interval.rtts.take(since, rtt as f64 / SECOND as f64);
        }
    }

    /// What lasts at this acknowledgement.
    pub fn present(&self, ack: &Ack, sample: &RateSample, in_flight: u32) -> Option<Present> {
        let now = border(ack, sample, in_flight);
        self.intervals.back().map(|present| Present {
            time: now.at - present.begin.at,
            sent: now.sent.saturating_sub(present.begin.sent),
            counts: present.counts,
        })
    }

    /// The rate at which packets leave now.
    pub fn rate(&self) -> Option<f64> {
        self.intervals.back().map(|present| present.rate)
    }

    /// Another interval begins, where the present one ends.
    pub fn begin(
        &mut self,
        ack: &Ack,
        sample: &RateSample,
        in_flight: u32,
        (rate, counts): (f64, bool),
    ) {
        let now = border(ack, sample, in_flight);
        if let Some(present) = self.intervals.back_mut() {
            present.end = Some(now);
        }
        self.intervals.push_back(Interval {
            rate,
            counts,
            begin: now,
            end: None,
            acked: 0,
            lost: 0,
            rtts: Line::default(),
            app_limited: false,
        });
    }

    /// The oldest interval, once it is known what became of its packets.
    pub fn take(&mut self, now: Nanos, srtt: Nanos) -> Option<Interval> {
        self.intervals.front()?.over(now, srtt).then_some(())?;
        self.intervals.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND as MS;
    use crate::path;

    fn ack(now: Nanos, packets: u32, rtt: Option<Nanos>) -> Ack {
        Ack {
            now,
            packets,
            marked: 0,
            rtt,
            cwnd_limited: true,
            next_seq: 0,
            una: 0,
        }
    }

    fn sample(delivered: u64, prior_delivered: u64) -> RateSample {
        RateSample {
            delivered,
            interval: Some(path::Interval {
                packets: 1,
                prior_delivered,
                time: MS,
                app_limited: false,
                in_flight: 10,
                lost: 0,
            }),
            ..RateSample::default()
        }
    }

    #[test]
    fn a_packet_belongs_to_the_interval_in_which_it_left() {
        let mut monitor = Monitor::default();
        monitor.begin(&ack(0, 1, None), &sample(100, 90), 10, (1e6, true));
        monitor.begin(&ack(40 * MS, 1, None), &sample(110, 99), 10, (2e6, true));
        for (delivered, prior) in [(111, 100), (112, 104), (113, 109), (114, 110), (115, 111)] {
            let at = (delivered - 60) * MS;
            monitor.on_ack(&ack(at, 1, Some(40 * MS)), &sample(delivered, prior));
        }
        let lost = LostPacket {
            in_flight: 10,
            lost: 1,
            app_limited: false,
            adjoins: false,
            prior_delivered: 105,
        };
        monitor.on_lost(&lost);
        let [first, second] = [monitor.intervals[0], monitor.intervals[1]];
        assert_eq!((first.sent(), first.acked, first.lost), (10, 3, 1));
        assert_eq!((second.acked, second.lost), (2, 0));
        assert!((first.loss() - 0.1).abs() < 1e-9);
        // Six packets are unknown: it waits for one and a half round trips.
        assert!(monitor.take(99 * MS, 40 * MS).is_none());
        assert!(monitor.take(100 * MS, 40 * MS).is_some());
    }

    /// A queue that grows by a tenth of the time has a slope of 0.1, wherever it began.
    #[test]
    fn the_slope_is_that_of_the_rtts() {
        let mut line = Line::default();
        for step in 0..20 {
            line.take(f64::from(step) * 0.002, 0.04 + f64::from(step) * 0.0002);
        }
        assert!((line.slope() - 0.1).abs() < 1e-9);
        assert_eq!(Line::default().slope(), 0.0);
    }
}
