//! Packet numbers received in one space, and when they are acknowledged (RFC 9000 section 13.2, draft-ietf-quic-ack-frequency-14 section 6).

use polypath_wire::quic::Ack;

use super::ack_frequency::Policy;
use crate::ranges::RangeSet;
use crate::{Codepoint, MICROSECOND, NEVER, Nanos};

/// Ranges in one frame; the oldest are left out (RFC 9000 section 13.2.3).
const MOST_RANGES: usize = 64;

/// Ranges that are kept at most, however many numbers the peer leaves out.
const MOST_KEPT: usize = 1024;

/// What has to be acknowledged in a space.
#[derive(Debug)]
pub(super) struct Received {
    numbers: RangeSet,
    /// Numbers below this are no longer kept: each counts as a duplicate (RFC 9000 section 13.2.3).
    floor: u64,
    /// Numbers below this are not named again: the peer knows of them (section 13.2.4).
    known: u64,
    /// The largest number, when it came, and the largest that was ack-eliciting.
    largest: Option<(u64, Nanos)>,
    largest_eliciting: Option<u64>,
    /// Ack-eliciting packets since the last acknowledgement left.
    pending: u32,
    /// Numbers that no acknowledgement named yet.
    fresh: bool,
    /// When an acknowledgement has to leave.
    at: Nanos,
    ecn: [u64; 3],
    policy: Policy,
    /// The largest number that an acknowledgement named, and the lowest that came late since one left.
    told: Option<u64>,
    untold: u64,
    /// The field of the packet before.
    before: Codepoint,
}

impl Default for Received {
    fn default() -> Self {
        Self {
            numbers: RangeSet::default(),
            floor: 0,
            known: 0,
            largest: None,
            largest_eliciting: None,
            pending: 0,
            fresh: false,
            at: NEVER,
            ecn: [0; 3],
            policy: Policy::USUAL,
            told: None,
            untold: u64::MAX,
            before: Codepoint::NotEct,
        }
    }
}

impl Received {
    /// Whether a packet of this number was received before, or may have been.
    pub fn is_duplicate(&self, number: u64) -> bool {
        number < self.floor || number < self.beyond() && self.numbers.find(number).is_some()
    }

    /// Takes a packet's number. An ack-eliciting one is acknowledged within `delay`, or at once if it is out of order, marked, or one of two
    /// (RFC 9000 sections 13.2.1 and 13.2.2), unless the peer asked for something else.
    pub fn on_packet(
        &mut self,
        number: u64,
        eliciting: bool,
        ecn: Codepoint,
        now: Nanos,
        delay: Nanos,
    ) {
        let beyond = self.beyond();
        self.numbers.insert(number, number + 1, |_, _| {});
        if self.numbers.count() > MOST_KEPT {
            self.forget_oldest();
        }
        self.fresh = true;
        if number >= beyond {
            self.largest = Some((number, now));
        } else {
            self.untold = self.untold.min(number);
            self.known = self.known.min(number);
        }
        match ecn {
            Codepoint::NotEct => {}
            Codepoint::Ect0 => self.ecn[0] += 1,
            Codepoint::Ect1 => self.ecn[1] += 1,
            Codepoint::Ce => self.ecn[2] += 1,
        }
        let before = std::mem::replace(&mut self.before, ecn);
        if !eliciting {
            return;
        }
        let late = self.largest_eliciting.is_some_and(|last| number < last);
        let gap = (self.largest_eliciting)
            .is_some_and(|last| number > last + 1 && self.misses(last + 1, number));
        self.largest_eliciting = self.largest_eliciting.max(Some(number));
        self.pending += 1;
        let at_once = if self.policy == Policy::USUAL {
            late || gap || ecn == Codepoint::Ce || self.pending > Policy::USUAL.eliciting
        } else {
            let marked = ecn == Codepoint::Ce && (before != ecn || self.policy.eliciting <= 1);
            marked
                || self.pending > self.policy.eliciting
                || self.overflows()
                || self.reorders(number, late || gap)
        };
        let at = now + if at_once { 0 } else { delay };
        self.at = self.at.min(at);
    }

    /// Whether reordering demands an acknowledgement of this packet, by the peer's threshold (draft-ietf-quic-ack-frequency-14 section 6.2).
    /// `out_of_order`: it is late, or there is a gap before it.
    #[inline(never)]
    fn reorders(&self, number: u64, out_of_order: bool) -> bool {
        let threshold = match self.policy.reordering {
            0 => return false,
            1 => return out_of_order,
            threshold => threshold,
        };
        // What is at most as large as this the peer takes for lost, once it knows of the largest number that it was told of.
        let reported = self.told.and_then(|told| told.checked_sub(threshold));
        if reported.is_some_and(|reported| number <= reported) {
            return true;
        }
        let first = reported
            .map_or(0, |reported| reported + 1)
            .max(self.floor)
            .max(self.known);
        let missing = self.numbers.find(first).map_or(first, |(_, end)| end);
        self.largest_eliciting
            .and_then(|largest| largest.checked_sub(missing))
            .is_some_and(|distance| distance >= threshold)
    }

    /// Some of what is new would be left out of the next acknowledgement (draft-ietf-quic-ack-frequency-14 section 6).
    fn overflows(&self) -> bool {
        let named = || self.numbers.iter().filter(|range| range.1 > self.known);
        self.pending as usize >= MOST_RANGES && named().count() >= MOST_RANGES
    }

    /// The peer asked for another policy.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// What waits for an acknowledgement waits for `delay` from its arrival instead of `before`, or no longer.
    pub fn change_delay(&mut self, before: Nanos, delay: Nanos, now: Nanos) {
        if self.pending > self.policy.eliciting {
            self.expedite(now);
        } else if self.at > now && self.at < NEVER {
            self.at = (self.at - before + delay).max(now);
        }
    }

    /// Acknowledgements that left may not have arrived: another has to leave at once.
    pub fn tell_again(&mut self, now: Nanos) {
        if self.largest.is_some() {
            self.fresh = true;
            self.expedite(now);
        }
    }

    /// An acknowledgement has to leave at once.
    pub fn expedite(&mut self, now: Nanos) {
        self.at = self.at.min(now);
    }

    /// Whether some of these numbers has not come. Kept out of the way of packets that come in order.
    #[inline(never)]
    fn misses(&self, from: u64, to: u64) -> bool {
        !self.numbers.covers(from.max(self.floor), to)
    }

    #[cold]
    fn forget_oldest(&mut self) {
        let oldest = self.numbers.iter().next();
        if let Some((_, end)) = oldest {
            self.numbers.remove_below(end);
            self.floor = self.floor.max(end);
        }
    }

    /// The number after the largest received, which is always kept.
    fn beyond(&self) -> u64 {
        self.largest.map_or(0, |(largest, _)| largest + 1)
    }

    /// The largest number received.
    pub fn largest(&self) -> Option<u64> {
        self.largest.map(|(number, _)| number)
    }

    /// When the packet of the largest number came, 0 before the first.
    pub fn largest_at(&self) -> Nanos {
        self.largest.map_or(0, |(_, at)| at)
    }

    /// When an acknowledgement has to leave.
    #[inline]
    pub fn deadline(&self) -> Nanos {
        self.at
    }

    /// Whether a frame would tell the peer anything that it has not been told.
    pub fn has_news(&self) -> bool {
        self.fresh
    }

    /// Fills in the acknowledgement as of now, for `path` if it is to name one, its delay in units of 2^`exponent` microseconds; its ranges are
    /// empty before. False: nothing has come yet.
    pub fn acknowledge(&self, now: Nanos, path: Option<u64>, exponent: u8, ack: &mut Ack) -> bool {
        let Some((_, at)) = self.largest else {
            return false;
        };
        ack.path = path;
        ack.delay = ((now - at) / MICROSECOND) >> exponent;
        let mut others = false;
        if let Some((start, end)) = self.numbers.last() {
            ack.ranges.push((start, end - 1));
            others = self.known < start && self.numbers.count() > 1;
        }
        if others {
            for (start, end) in self.numbers.iter().rev().skip(1).take(MOST_RANGES - 1) {
                if end <= self.known {
                    break;
                }
                ack.ranges.push((start.max(self.known), end - 1));
            }
        }
        ack.ecn = (self.ecn != [0; 3]).then_some(self.ecn);
        true
    }

    /// The acknowledgement as of now leaves.
    pub fn on_acknowledged(&mut self) {
        self.pending = 0;
        self.fresh = false;
        self.at = NEVER;
        self.told = self.largest();
        self.untold = u64::MAX;
    }

    /// The peer has our acknowledgement of everything up to `largest`, so that it need not be repeated (RFC 9000 section 13.2.4).
    pub fn on_acknowledgement_received(&mut self, largest: u64) {
        // The newest range stays.
        let Some((newest, _)) = self.numbers.last() else {
            return;
        };
        // What came late has not been acknowledged yet.
        let known = largest.min(newest).min(self.untold);
        self.known = self.known.max(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND as MS;

    const DELAY: Nanos = 25 * MS;

    fn acknowledge(received: &mut Received, now: Nanos, path: Option<u64>, exponent: u8) -> Ack {
        let mut ack = Ack::default();
        assert!(received.acknowledge(now, path, exponent, &mut ack));
        received.on_acknowledged();
        ack
    }

    fn take(received: &mut Received, number: u64, now: Nanos) {
        received.on_packet(number, true, Codepoint::NotEct, now, DELAY);
    }

    #[test]
    fn every_second_packet_is_acknowledged_at_once() {
        let mut received = Received::default();
        take(&mut received, 0, 0);
        assert_eq!(received.deadline(), DELAY);
        take(&mut received, 1, MS);
        assert_eq!(received.deadline(), MS);
        let ack = acknowledge(&mut received, 2 * MS, None, 3);
        assert_eq!((ack.ranges, ack.delay), (vec![(0, 1)], 125));
        assert_eq!(received.deadline(), NEVER);
        assert!(!received.has_news());
    }

    #[test]
    fn a_gap_and_what_fills_it_are_acknowledged_at_once() {
        let mut received = Received::default();
        take(&mut received, 0, 0);
        acknowledge(&mut received, 0, None, 0);
        take(&mut received, 2, MS);
        assert_eq!(received.deadline(), MS, "a gap");
        acknowledge(&mut received, MS, None, 0);
        take(&mut received, 1, 2 * MS);
        assert_eq!(received.deadline(), 2 * MS, "reordered");
        acknowledge(&mut received, 2 * MS, None, 0);
        take(&mut received, 3, 3 * MS);
        assert_eq!(received.deadline(), 3 * MS + DELAY, "in order again");
    }

    /// RFC 9000 section 13.2.1.
    #[test]
    fn a_gap_before_a_packet_that_elicits_nothing_is_one_before_the_next() {
        for (missing, at) in [(true, 2 * MS), (false, 2 * MS + DELAY)] {
            let mut received = Received::default();
            take(&mut received, 0, 0);
            acknowledge(&mut received, 0, None, 0);
            if !missing {
                received.on_packet(1, false, Codepoint::NotEct, MS, DELAY);
            }
            received.on_packet(2, false, Codepoint::NotEct, MS, DELAY);
            take(&mut received, 3, 2 * MS);
            assert_eq!(received.deadline(), at, "{missing}");
        }
    }

    #[test]
    fn congestion_experienced_is_told_at_once_and_counted() {
        let mut received = Received::default();
        received.on_packet(0, true, Codepoint::Ce, 0, DELAY);
        assert_eq!(received.deadline(), 0);
        let ack = acknowledge(&mut received, 0, Some(3), 0);
        assert_eq!((ack.path, ack.ecn), (Some(3), Some([0, 0, 1])));
    }

    #[test]
    fn what_the_peer_knows_is_named_no_more_and_stays_a_duplicate() {
        let mut received = Received::default();
        for number in [0, 1, 4, 5] {
            take(&mut received, number, 0);
        }
        acknowledge(&mut received, 0, None, 0);
        received.on_acknowledgement_received(5);
        let ack = acknowledge(&mut received, 0, None, 0);
        assert_eq!(ack.ranges, vec![(4, 5)]);
        for number in 0..=6 {
            let came = [0, 1, 4, 5].contains(&number);
            assert_eq!(received.is_duplicate(number), came, "{number}");
        }
        take(&mut received, 2, 0);
        let ack = acknowledge(&mut received, 0, None, 0);
        assert_eq!(ack.ranges, vec![(4, 5), (2, 2)], "it came late");
    }

    #[test]
    fn packets_that_elicit_nothing_wait_for_others() {
        let mut received = Received::default();
        received.on_packet(0, false, Codepoint::NotEct, 0, DELAY);
        assert_eq!(received.deadline(), NEVER);
        assert!(received.has_news());
    }

    fn asking(eliciting: u32, reordering: u64) -> Received {
        let mut received = Received::default();
        received.set_policy(Policy {
            eliciting,
            reordering,
        });
        received
    }

    /// Takes the packets one after the other; those that are acknowledged at once are.
    fn acknowledged_at_once(received: &mut Received, numbers: &[u64]) -> Vec<u64> {
        let mut found = Vec::new();
        for &number in numbers {
            take(received, number, MS);
            if received.deadline() == MS {
                acknowledge(received, MS, None, 0);
                found.push(number);
            }
        }
        found
    }

    #[test]
    fn a_peer_has_as_many_packets_acknowledged_together_as_it_asks_for() {
        let mut received = asking(3, 1);
        let numbers: Vec<u64> = (0..12).collect();
        assert_eq!(acknowledged_at_once(&mut received, &numbers), [3, 7, 11]);
        let mut received = asking(0, 1);
        assert_eq!(acknowledged_at_once(&mut received, &[0, 1]), [0, 1]);
    }

    /// The examples of draft-ietf-quic-ack-frequency-14 section 6.2.1.
    #[test]
    fn reordering_is_told_from_the_threshold_on() {
        let mut received = asking(u32::MAX, 3);
        let came = [0, 1, 3, 4, 5, 8, 9, 10];
        assert_eq!(acknowledged_at_once(&mut received, &came), [5, 9, 10]);
        let mut received = asking(u32::MAX, 5);
        let came = [0, 1, 3, 5, 6, 7, 8, 9];
        assert_eq!(acknowledged_at_once(&mut received, &came), [7, 9]);
    }

    #[test]
    fn what_the_peer_took_for_lost_is_told_when_it_comes() {
        let mut received = asking(u32::MAX, 3);
        assert_eq!(acknowledged_at_once(&mut received, &[0, 2, 3, 4]), [4]);
        assert_eq!(acknowledged_at_once(&mut received, &[1, 5]), [1]);
    }

    #[test]
    fn reordering_may_be_none_of_the_peers_concern() {
        let mut received = asking(u32::MAX, 0);
        let came = [0, 9, 3, 20, 1];
        assert!(acknowledged_at_once(&mut received, &came).is_empty());
    }

    #[test]
    fn every_packet_is_named_once_however_many_are_missing() {
        let mut received = asking(u32::MAX, 0);
        let came: Vec<u64> = (0..200).map(|number| 2 * number).collect();
        assert_eq!(acknowledged_at_once(&mut received, &came), [126, 254, 382]);
    }

    /// Section 6.3 of the draft.
    #[test]
    fn of_marks_in_a_row_the_first_is_told_at_once() {
        for (eliciting, expected) in [(9, vec![1, 4]), (1, vec![1, 2, 4])] {
            let mut received = asking(eliciting, 3);
            let mut at_once = Vec::new();
            let marks = [false, true, true, false, true];
            for (number, marked) in (0..).zip(marks) {
                let ecn = if marked {
                    Codepoint::Ce
                } else {
                    Codepoint::Ect0
                };
                received.on_packet(number, true, ecn, MS, DELAY);
                if received.deadline() == MS {
                    acknowledge(&mut received, MS, None, 0);
                    at_once.push(number);
                }
            }
            assert_eq!(at_once, expected);
        }
    }

    /// RFC 9000 section 13.2.1: each ack-eliciting packet is acknowledged once at least.
    #[test]
    fn what_came_late_is_not_forgotten_before_it_was_acknowledged() {
        let mut received = asking(9, 0);
        for number in [0, 1, 3, 5] {
            take(&mut received, number, 0);
        }
        acknowledge(&mut received, 0, None, 0);
        take(&mut received, 2, MS);
        received.on_acknowledgement_received(5);
        let ack = acknowledge(&mut received, 2 * MS, None, 0);
        assert_eq!(ack.ranges, [(5, 5), (2, 3)]);
        received.on_acknowledgement_received(5);
        let ack = acknowledge(&mut received, 2 * MS, None, 0);
        assert_eq!(ack.ranges, [(5, 5)]);
    }

    #[test]
    fn another_delay_holds_for_what_waits() {
        let mut received = asking(9, 1);
        take(&mut received, 0, 10 * MS);
        received.change_delay(DELAY, 100 * MS, 20 * MS);
        assert_eq!(received.deadline(), 110 * MS);
        received.change_delay(100 * MS, 5 * MS, 30 * MS);
        assert_eq!(received.deadline(), 30 * MS, "its time has passed");
        acknowledge(&mut received, 30 * MS, None, 0);
        received.change_delay(5 * MS, DELAY, 30 * MS);
        assert_eq!(received.deadline(), NEVER, "nothing waits");
        for number in 1..4 {
            take(&mut received, number, 40 * MS);
        }
        received.set_policy(Policy::USUAL);
        received.change_delay(DELAY, DELAY, 50 * MS);
        assert_eq!(received.deadline(), 50 * MS, "more wait than may");
    }
}
