//! What a socket does for a controller that sets its rate: samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00) and
//! pacing (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.2). Sockets with other controllers have none of it.

use std::collections::VecDeque;

use super::Socket;
use super::recovery::Delivery;
use super::sender::Sent;
use crate::congestion::{Ack, Interval, RateSample};
use crate::path::Member;
use crate::path::Path;
use crate::tcp::context::{Context, Options};
use crate::{NEVER, Nanos, SECOND};

/// The state of a segment's sending that its acknowledgement is measured by (section 3.2: P.*).
#[derive(Clone, Copy, Debug)]
struct Stamp {
    seq: u64,
    sent_at: Nanos,
    first_sent_at: Nanos,
    delivered: u64,
    delivered_at: Nanos,
    app_limited: bool,
}

/// Delivery rate and pacing of one socket.
#[derive(Debug)]
pub(super) struct Paced {
    /// Packets delivered and lost so far, and when the last was delivered (section 3.2: C.*).
    delivered: u64,
    delivered_at: Nanos,
    lost: u64,
    first_sent_at: Nanos,
    /// What is delivered up to this count was sent while the application had no more; 0: nothing of the kind in flight.
    app_limited_until: u64,
    stamps: VecDeque<Stamp>,
    /// Of the ACK at hand: packets in flight before it and the newest segment that it delivers, with its end.
    in_flight_before: u32,
    newest: Option<(Stamp, u64)>,
    /// Bytes a second, segments that leave together at this rate, segments sent so far.
    rate: u64,
    burst: u32,
    segments: u64,
    /// When the next burst may leave.
    departure: Nanos,
    /// The burst that leaves now: when it began, packets that it still may have, delay that it may make up for.
    burst_at: Nanos,
    burst_left: u32,
    credit: Nanos,
    blocked: bool,
}

/// Segments that leave before pacing begins (Linux, after sch_fq).
const UNPACED_SEGMENTS: u64 = 10;
/// Bytes a second below which a burst is one segment (1.2 Mbps), and the largest burst in bytes.
const LOW_RATE: u64 = 150_000;
const LARGEST_BURST: u64 = 65_535;

/// Segments of `mss` bytes that leave together at `rate` bytes a second: those of one millisecond (section 4.2.3, BBR.send_quantum;
/// Linux `bbr_tso_segs_goal`).
pub(crate) fn burst(rate: u64, mss: u32) -> u32 {
    let least = if rate < LOW_RATE { 1 } else { 2 };
    let segments = (rate / 1024).min(LARGEST_BURST) / u64::from(mss.max(1));
    (segments as u32).clamp(least, 127)
}

impl Paced {
    pub fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: 0,
            lost: 0,
            first_sent_at: 0,
            app_limited_until: 0,
            stamps: VecDeque::new(),
            in_flight_before: 0,
            newest: None,
            rate: 0,
            burst: 1,
            segments: 0,
            departure: 0,
            burst_at: 0,
            burst_left: 0,
            credit: 0,
            blocked: false,
        }
    }

    /// Section 3.3: a segment leaves, `again` or for the first time. `alone`: nothing else is in flight.
    fn stamp(&mut self, sent: &Sent, now: Nanos, again: bool, alone: bool) {
        if alone {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let stamp = Stamp {
            seq: sent.seq,
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            app_limited: self.app_limited_until > 0,
        };
        if !again {
            self.stamps.push_back(stamp);
        } else if let Some(index) = self.covering(sent) {
            self.stamps[index] = Stamp {
                seq: self.stamps[index].seq,
                ..stamp
            };
        }
    }

    /// Where the stamp of a segment is, whose beginning may have been acknowledged since.
    fn covering(&self, sent: &Sent) -> Option<usize> {
        self.stamps
            .partition_point(|stamp| stamp.seq <= sent.seq)
            .checked_sub(1)
    }

    /// Section 3.4: a segment was delivered; the newest of an ACK is what its rate is measured by.
    pub fn deliver(&mut self, sent: &Sent) {
        let Some(index) = self.covering(sent) else {
            return;
        };
        let stamp = self.stamps[index];
        let newer =
            |(newest, end): (Stamp, u64)| (stamp.sent_at, sent.end()) > (newest.sent_at, end);
        if self.newest.is_none_or(newer) {
            self.newest = Some((stamp, sent.end()));
        }
    }

    /// The rate sample of an ACK (section 3.5).
    fn sample(&mut self, socket: Measured, delivery: &Delivery) -> RateSample {
        let now = socket.now;
        self.delivered += u64::from(delivery.packets);
        self.lost += u64::from(delivery.newly_lost);
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if delivery.packets > 0 {
            self.delivered_at = now;
        }
        let gone = self.stamps.partition_point(|stamp| stamp.seq < socket.una);
        // A segment of which a part was acknowledged stays.
        self.stamps.drain(..gone.saturating_sub(1));
        let interval = self.newest.take().and_then(|(stamp, _)| {
            self.first_sent_at = stamp.sent_at;
            let sending = stamp.sent_at - stamp.first_sent_at;
            let time = sending.max(now - stamp.delivered_at);
            // Less than the shortest RTT: the copy that was acknowledged is not the one that was timed.
            (time >= socket.min_rtt && time > 0).then_some(Interval {
                packets: self.delivered - stamp.delivered,
                prior_delivered: stamp.delivered,
                time,
                app_limited: stamp.app_limited,
            })
        });
        RateSample {
            interval,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            newly_lost: delivery.newly_lost,
            in_flight_before: self.in_flight_before,
            maybe_delayed: delivery.packets == 1
                && socket.acknowledged < u64::from(socket.mss)
                && interval.is_some_and(|interval| interval.packets == 1),
            departure: self.departure.max(now),
        }
    }

    /// `bytes` leave: the next burst waits for as long as this one takes at the rate.
    fn charge(&mut self, now: Nanos, bytes: u32) {
        self.segments += 1;
        if self.rate == 0 || self.segments < UNPACED_SEGMENTS {
            return;
        }
        if self.burst_left == 0 || self.burst_at != now {
            self.burst_left = self.burst;
            self.burst_at = now;
            self.credit = now.saturating_sub(self.departure);
            self.departure = self.departure.max(now);
        }
        // A burst that left late may be followed sooner, by half its time at most (Linux `tcp_update_skb_after_send`).
        let time = u64::from(bytes) * SECOND / self.rate;
        let made_up = self.credit.min(time / 2);
        self.credit -= made_up;
        self.departure += time - made_up;
        self.burst_left -= 1;
        self.blocked = self.burst_left == 0 && self.departure > now;
    }

    fn set_rate(&mut self, path: &Path) {
        if self.rate != path.pacing_rate {
            self.rate = path.pacing_rate;
            self.burst = burst_on(self.rate, path);
        }
    }
}

/// What leaves together: a millisecond's worth, and more over short paths (Linux `tcp_tso_autosize`).
fn burst_on(rate: u64, path: &Path) -> u32 {
    let short = match (path.min_rtt / 1000) >> 9 {
        shift @ 0..32 if path.min_rtt > 0 => (LARGEST_BURST + 1) >> shift,
        _ => 0,
    };
    let bytes = (rate / 1024 + short).min(LARGEST_BURST);
    burst(rate, path.mss).max((bytes / u64::from(path.mss.max(1))) as u32)
}

/// What a sample needs to know of its socket.
struct Measured {
    now: Nanos,
    una: u64,
    /// Bytes that the ACK moved `una` by.
    acknowledged: u64,
    min_rtt: Nanos,
    mss: u32,
}

impl Socket {
    /// Whether pacing holds back what the window would admit.
    pub(super) fn blocked(&self) -> bool {
        self.paced.as_ref().is_some_and(|paced| paced.blocked)
    }

    pub(super) fn publish_pacing(&self, path: &mut Path) {
        if let Some(paced) = &self.paced {
            path.paced = paced.blocked;
        }
    }

    #[inline]
    pub(super) fn note_sent(&mut self, now: Nanos, sent: &Sent) {
        if let Some(paced) = &mut self.paced {
            let alone = self.sent.is_empty();
            paced.stamp(sent, now, sent.retransmitted(), alone);
            paced.charge(now, sent.len);
        }
    }

    pub(super) fn note_arrival_of_ack(&mut self) {
        let in_flight = self.in_flight();
        if let Some(paced) = &mut self.paced {
            paced.in_flight_before = in_flight;
            paced.newest = None;
        }
    }

    pub(super) fn note_lost(&mut self, packets: u32) {
        if let Some(paced) = &mut self.paced {
            paced.lost += u64::from(packets);
        }
    }

    /// Lets the controller set window and rate after an ACK that moved the cumulative acknowledgement on from `before`.
    pub(super) fn control(
        &mut self,
        path: &mut Member,
        ack: &Ack,
        delivery: &Delivery,
        before: u64,
    ) {
        self.publish(path);
        let measured = Measured {
            now: ack.now,
            una: self.una,
            acknowledged: self.una - before,
            min_rtt: self.rtt.min(),
            mss: path.mss,
        };
        let in_flight = u64::from(self.in_flight());
        let Some(paced) = &mut self.paced else { return };
        let sample = paced.sample(measured, delivery);
        if self
            .congestion
            .control(path.paths, path.index, ack, &sample)
        {
            paced.app_limited_until = (paced.delivered + in_flight).max(1);
        }
        paced.set_rate(path);
    }

    /// After everything that could leave has left: `dry` when the application has less than a segment more. What is in flight then says
    /// what the application sends, not what the path carries (section 3.4); an unfinished burst is over.
    pub(crate) fn settle_pacing(&mut self, cx: &mut Context<impl Options>, dry: bool) {
        let in_flight = self.in_flight();
        let all_repeated = self.recovery.lost <= self.recovery.retransmitting;
        let nothing_queued = self.unsent.is_empty();
        let Some(paced) = &mut self.paced else { return };
        if dry && nothing_queued && in_flight < cx.path.cwnd && all_repeated {
            paced.app_limited_until = (paced.delivered + u64::from(in_flight)).max(1);
        }
        paced.set_rate(&cx.path);
        paced.blocked = paced.departure > cx.shared.now;
        cx.path.paced = paced.blocked;
    }

    /// When pacing lets the next burst go.
    pub(crate) fn pacing_deadline(&self) -> Nanos {
        self.paced
            .as_ref()
            .filter(|paced| paced.blocked)
            .map_or(NEVER, |paced| paced.departure)
    }

    /// Lets the next burst go if its time has come.
    pub(super) fn release_pacing(&mut self, now: Nanos, path: &mut Path) {
        if self.pacing_deadline() <= now
            && let Some(paced) = &mut self.paced
        {
            paced.blocked = false;
            path.paced = false;
        }
    }
}
