//! Packet numbers received in one space, and when they are acknowledged (RFC 9000 section 13.2).

use polypath_wire::quic::Ack;

use crate::ranges::RangeSet;
use crate::{MICROSECOND, NEVER, Nanos};

/// Ack-eliciting packets that are acknowledged together (RFC 9000 section 13.2.2).
const TOGETHER: u32 = 2;
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
}

impl Default for Received {
    fn default() -> Self {
        Self {
            numbers: RangeSet::default(),
            floor: 0,
            largest: None,
            largest_eliciting: None,
            pending: 0,
            fresh: false,
            at: NEVER,
            ecn: [0; 3],
        }
    }
}

/// The ECN field of a packet that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codepoint {
    #[default]
    NotEct,
    Ect0,
    Ect1,
    Ce,
}

impl Received {
    /// Whether a packet of this number was received before, or may have been.
    pub fn is_duplicate(&self, number: u64) -> bool {
        number < self.floor || number < self.beyond() && self.numbers.find(number).is_some()
    }

    /// Takes a packet's number. An ack-eliciting one is acknowledged within `delay`, or at once if it is out of order, marked, or one of two
    /// (RFC 9000 sections 13.2.1 and 13.2.2).
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
        }
        match ecn {
            Codepoint::NotEct => {}
            Codepoint::Ect0 => self.ecn[0] += 1,
            Codepoint::Ect1 => self.ecn[1] += 1,
            Codepoint::Ce => self.ecn[2] += 1,
        }
        if !eliciting {
            return;
        }
        let late = self.largest_eliciting.is_some_and(|last| number < last);
        let gap = self
            .largest_eliciting
            .is_some_and(|last| number > last && number > beyond.max(last + 1));
        self.largest_eliciting = self.largest_eliciting.max(Some(number));
        self.pending += 1;
        let at_once = late || gap || ecn == Codepoint::Ce || self.pending >= TOGETHER;
        let at = now + if at_once { 0 } else { delay };
        self.at = self.at.min(at);
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
        if let Some((start, end)) = self.numbers.last() {
            ack.ranges.push((start, end - 1));
        }
        if self.numbers.count() > 1 {
            let others = self.numbers.iter().rev().skip(1).take(MOST_RANGES - 1);
            ack.ranges
                .extend(others.map(|(start, end)| (start, end - 1)));
        }
        ack.ecn = (self.ecn != [0; 3]).then_some(self.ecn);
        true
    }

    /// The acknowledgement as of now leaves.
    pub fn on_acknowledged(&mut self) {
        self.pending = 0;
        self.fresh = false;
        self.at = NEVER;
    }

    /// The peer has our acknowledgement of everything up to `largest`, so that it need not be repeated (RFC 9000 section 13.2.4).
    pub fn on_acknowledgement_received(&mut self, largest: u64) {
        // The newest range stays, so that a later packet's gap can be seen.
        let Some((newest, _)) = self.numbers.last() else {
            return;
        };
        let floor = largest.min(newest);
        if floor > self.floor {
            self.numbers.remove_below(floor);
            self.floor = floor;
        }
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

    #[test]
    fn congestion_experienced_is_told_at_once_and_counted() {
        let mut received = Received::default();
        received.on_packet(0, true, Codepoint::Ce, 0, DELAY);
        assert_eq!(received.deadline(), 0);
        let ack = acknowledge(&mut received, 0, Some(3), 0);
        assert_eq!((ack.path, ack.ecn), (Some(3), Some([0, 0, 1])));
    }

    #[test]
    fn what_the_peer_knows_is_forgotten_and_stays_a_duplicate() {
        let mut received = Received::default();
        for number in [0, 1, 4, 5] {
            take(&mut received, number, 0);
        }
        received.on_acknowledgement_received(5);
        let ack = acknowledge(&mut received, 0, None, 0);
        assert_eq!(ack.ranges, vec![(4, 5)]);
        for number in 0..=5 {
            assert!(received.is_duplicate(number), "{number}");
        }
        assert!(!received.is_duplicate(6));
    }

    #[test]
    fn packets_that_elicit_nothing_wait_for_others() {
        let mut received = Received::default();
        received.on_packet(0, false, Codepoint::NotEct, 0, DELAY);
        assert_eq!(received.deadline(), NEVER);
        assert!(received.has_news());
    }
}
