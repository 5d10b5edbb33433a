//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00). Comments give the draft's names: C for
//! the connection, P for a packet.

use std::collections::VecDeque;

use crate::Nanos;
use crate::search::partition_point_near;

/// What one ACK says of the rate at which packets arrive.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Absent where the ACK delivers nothing whose sending was timed.
    pub interval: Option<Interval>,
    /// Packets delivered so far, and when the last was.
    pub delivered: u64,
    pub delivered_at: Nanos,
    /// Packets taken for lost so far, and by this ACK.
    pub lost: u64,
    pub newly_lost: u32,
    /// Packets in flight before this ACK.
    pub in_flight_before: u32,
    /// A single small packet: the peer may have waited before it acknowledged.
    pub maybe_delayed: bool,
    /// When the next packet may leave.
    pub departure: Nanos,
    /// Several losses in a round trip can be told apart.
    pub selective: bool,
    /// Bursts that the two hosts hold while they work.
    pub held_bursts: u32,
}

/// A packet that is taken for lost (draft-ietf-ccwg-bbr section 5.5.10.2).
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Packets in flight when it had left.
    pub in_flight: u32,
    /// Packets lost since then, with itself.
    pub lost: u64,
    /// The application had nothing more to send.
    pub app_limited: bool,
    /// The one that was sent before it is lost as well.
    pub adjoins: bool,
    /// Packets that had been delivered when it was sent.
    pub prior_delivered: u64,
}

/// The stretch from the sending of a packet to its acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Packets delivered meanwhile.
    pub packets: u64,
    /// Packets that had been delivered when it was sent.
    pub prior_delivered: u64,
    /// The longer of the time in which they were sent and that in which they were acknowledged.
    pub time: Nanos,
    /// The application had nothing more to send.
    pub app_limited: bool,
    /// Packets in flight when that packet had left, and packets lost since.
    pub in_flight: u32,
    pub lost: u64,
}

/// The state of a packet's sending that its acknowledgement is measured by (section 3.2: P.*).
#[derive(Clone, Copy, Debug)]
struct Stamp {
    number: u64,
    sent_at: Nanos,
    first_sent_at: Nanos,
    delivered: u64,
    delivered_at: Nanos,
    lost: u64,
    in_flight: u32,
    app_limited: bool,
    /// It is known to be lost.
    told: bool,
}

/// What a sample needs to know of its sender.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    pub now: Nanos,
    /// Packets that this ACK delivers, and those that it shows to be lost.
    pub packets: u32,
    pub newly_lost: u32,
    /// Stamps of packets that begin before this are over.
    pub una: u64,
    /// Less than a full packet was acknowledged.
    pub small: bool,
    pub min_rtt: Nanos,
    /// When the next packet may leave.
    pub departure: Nanos,
    pub selective: bool,
    pub held_bursts: u32,
}

/// Delivery rate of one path. Packets are known by ascending numbers, those of their first bytes or their own.
#[derive(Debug, Default)]
pub struct DeliveryRate {
    /// Packets delivered and lost so far, and when the last was delivered (section 3.2: C.*).
    delivered: u64,
    delivered_at: Nanos,
    lost: u64,
    first_sent_at: Nanos,
    /// What is delivered up to this count was sent while the application had no more; 0: nothing of the kind in flight.
    app_limited_until: u64,
    stamps: VecDeque<Stamp>,
    /// Of the ACK at hand: packets in flight before it and the newest packet that it delivers, with its end.
    in_flight_before: u32,
    newest: Option<(Stamp, u64)>,
    /// Packets that were found to be lost one by one, and not yet asked for.
    losses: Vec<LostPacket>,
}

impl DeliveryRate {
    /// Section 3.3: a packet leaves, `again` or for the first time, and makes `in_flight`. `alone`: nothing else is outstanding.
    pub fn on_sent(&mut self, number: u64, now: Nanos, again: bool, alone: bool, in_flight: u32) {
        if alone {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let stamp = Stamp {
            number,
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            in_flight,
            app_limited: self.limited_by_application(),
            told: false,
        };
        if !again {
            self.stamps.push_back(stamp);
        } else if let Some(index) = self.covering(number) {
            self.stamps[index] = Stamp {
                number: self.stamps[index].number,
                ..stamp
            };
        }
    }

    /// Packets from `number` on did not leave.
    pub fn forget(&mut self, number: u64) {
        let kept = self.stamps.partition_point(|stamp| stamp.number < number);
        self.stamps.truncate(kept);
    }

    /// Where the stamp of a packet is, whose beginning may have been acknowledged since.
    fn covering(&self, number: u64) -> Option<usize> {
        let (front, back) = (self.stamps.front()?, self.stamps.back()?);
        // Packets of one length lie at equal distances.
        let all = (back.number - front.number).max(1);
        let guess = number.saturating_sub(front.number) * self.stamps.len() as u64 / all;
        let at = partition_point_near(&self.stamps, guess as usize, |it| it.number <= number);
        at.checked_sub(1)
    }

    /// An ACK arrives.
    pub fn begin_ack(&mut self, in_flight: u32) {
        self.in_flight_before = in_flight;
        self.newest = None;
    }

    /// Section 3.4: a packet was delivered; the newest of an ACK is what its rate is measured by.
    pub fn on_delivered(&mut self, number: u64, end: u64) {
        let Some(index) = self.covering(number) else {
            return;
        };
        let stamp = self.stamps[index];
        let newer = |(newest, last): (Stamp, u64)| (stamp.sent_at, end) > (newest.sent_at, last);
        if self.newest.is_none_or(newer) {
            self.newest = Some((stamp, end));
        }
    }

    /// Packets were taken for lost outside of an ACK.
    pub fn on_lost(&mut self, packets: u32) {
        self.lost += u64::from(packets);
    }

    /// One packet is lost, which counts once each time that it was sent.
    pub fn on_packet_lost(&mut self, number: u64) {
        let Some(index) = self.covering(number) else {
            return;
        };
        if std::mem::replace(&mut self.stamps[index].told, true) {
            return;
        }
        self.lost += 1;
        let stamp = self.stamps[index];
        self.losses.push(LostPacket {
            in_flight: stamp.in_flight,
            lost: self.lost - stamp.lost,
            app_limited: stamp.app_limited,
            adjoins: index > 0 && self.stamps[index - 1].told,
            prior_delivered: stamp.delivered,
        });
    }

    /// Those found since this was last asked.
    pub fn take_losses(&mut self) -> Vec<LostPacket> {
        std::mem::take(&mut self.losses)
    }

    /// The rate sample of an ACK (section 3.5).
    pub fn sample(&mut self, ack: Acknowledged) -> RateSample {
        let now = ack.now;
        self.delivered += u64::from(ack.packets);
        self.lost += u64::from(ack.newly_lost);
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if ack.packets > 0 {
            self.delivered_at = now;
        }
        // A packet of which a part was acknowledged stays.
        while self.stamps.get(1).is_some_and(|it| it.number < ack.una) {
            self.stamps.pop_front();
        }
        let interval = self.newest.take().and_then(|(stamp, _)| {
            self.first_sent_at = stamp.sent_at;
            let sending = stamp.sent_at - stamp.first_sent_at;
            let time = sending.max(now - stamp.delivered_at);
            // Less than the shortest RTT: the copy that was acknowledged is not the one that was timed.
            (time >= ack.min_rtt && time > 0).then_some(Interval {
                packets: self.delivered - stamp.delivered,
                prior_delivered: stamp.delivered,
                time,
                app_limited: stamp.app_limited,
                in_flight: stamp.in_flight,
                lost: self.lost - stamp.lost,
            })
        });
        RateSample {
            interval,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            newly_lost: ack.newly_lost,
            in_flight_before: self.in_flight_before,
            maybe_delayed: ack.packets == 1
                && ack.small
                && interval.is_some_and(|interval| interval.packets == 1),
            departure: ack.departure,
            selective: ack.selective,
            held_bursts: ack.held_bursts,
        }
    }

    /// Whether what is sent now says what the application sends, not what the path carries.
    pub fn limited_by_application(&self) -> bool {
        self.app_limited_until > 0
    }

    /// What is in flight now says what the application sends, not what the path carries (section 3.4).
    pub fn limit_by_application(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }
}
