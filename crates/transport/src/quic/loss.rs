//! Packets in flight in one space, and which of them are lost (RFC 9002 section 6.1).

use std::collections::VecDeque;

use polypath_wire::quic::Ack;

use super::rtt::Rtt;
use crate::{NEVER, Nanos};

/// kPacketThreshold (RFC 9002 section 6.1.1).
pub(super) const PACKET_THRESHOLD: u64 = 3;

/// A packet that was sent; `T` says what it carried.
#[derive(Debug)]
pub(super) struct Sent<T> {
    pub number: u64,
    pub at: Nanos,
    /// UDP payload bytes of it.
    pub size: u32,
    pub eliciting: bool,
    /// It counts against the congestion window: ack-eliciting, or padded (RFC 9002 section 2).
    pub in_flight: bool,
    /// It was sent with ECT(0).
    pub ecn: bool,
    pub carried: T,
}

/// The packets of a space, by number.
#[derive(Debug)]
pub(super) struct InFlight<T> {
    /// Slot `i` is packet `first + i`; empty once it is acknowledged or lost, or where a number was skipped.
    packets: VecDeque<Option<Sent<T>>>,
    first: u64,
    largest_acked: Option<u64>,
    /// When the earliest packet that was overtaken counts as lost.
    loss_at: Nanos,
    last_eliciting_at: Nanos,
    eliciting: u32,
    in_flight: u32,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self {
            packets: VecDeque::new(),
            first: 0,
            largest_acked: None,
            loss_at: NEVER,
            last_eliciting_at: 0,
            eliciting: 0,
            in_flight: 0,
        }
    }
}

/// An acknowledgement names a packet that was never sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NeverSent;

impl<T> InFlight<T> {
    /// The number that the next packet gets.
    pub fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// A packet left, whose number is [`InFlight::next`].
    pub fn on_sent(&mut self, packet: Sent<T>) {
        debug_assert_eq!(packet.number, self.next());
        if packet.eliciting {
            self.last_eliciting_at = packet.at;
        }
        self.eliciting += u32::from(packet.eliciting);
        self.in_flight += u32::from(packet.in_flight);
        self.packets.push_back(Some(packet));
    }

    fn take(&mut self, number: u64) -> Option<Sent<T>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let packet = self.packets.get_mut(index)?.take()?;
        self.eliciting -= u32::from(packet.eliciting);
        self.in_flight -= u32::from(packet.in_flight);
        Some(packet)
    }

    /// Takes out everything up to `high`.
    fn take_oldest(&mut self, high: u64, acked: &mut Vec<Sent<T>>) {
        while self.first <= high
            && let Some(slot) = self.packets.pop_front()
        {
            self.first += 1;
            if let Some(packet) = slot {
                self.eliciting -= u32::from(packet.eliciting);
                self.in_flight -= u32::from(packet.in_flight);
                acked.push(packet);
            }
        }
    }

    fn shrink(&mut self) {
        while let Some(None) = self.packets.front() {
            // There is nothing in it to be dropped.
            std::mem::forget(self.packets.pop_front());
            self.first += 1;
        }
    }

    /// Takes out what an acknowledgement names, in ascending order. Gives whether its largest number is news.
    ///
    /// # Errors
    /// The peer acknowledges what was never sent (RFC 9000 section 13.1).
    pub fn on_ack(&mut self, ack: &Ack, acked: &mut Vec<Sent<T>>) -> Result<bool, NeverSent> {
        let Some(&(_, largest)) = ack.ranges.first() else {
            return Ok(false);
        };
        if largest >= self.next() {
            return Err(NeverSent);
        }
        for &(low, high) in ack.ranges.iter().rev() {
            if high < self.first {
                continue;
            }
            if low <= self.first {
                self.take_oldest(high, acked);
                continue;
            }
            for number in low..=high {
                if let Some(packet) = self.take(number) {
                    acked.push(packet);
                }
            }
        }
        let newest = self.largest_acked.is_none_or(|known| largest > known);
        self.largest_acked = self.largest_acked.max(Some(largest));
        self.shrink();
        Ok(newest && acked.last().is_some_and(|packet| packet.number == largest))
    }

    /// Nothing in flight was overtaken: [`InFlight::detect_lost`] would find nothing, now or later.
    pub fn in_order(&mut self) -> bool {
        let in_order = self
            .largest_acked
            .is_none_or(|largest| self.first >= largest);
        if in_order {
            self.loss_at = NEVER;
        }
        in_order
    }

    /// Takes out what is lost by now: overtaken by three packets, or by one long enough ago.
    pub fn detect_lost(&mut self, now: Nanos, rtt: &Rtt, lost: &mut Vec<Sent<T>>) {
        self.loss_at = NEVER;
        let Some(largest) = self.largest_acked else {
            return;
        };
        let delay = rtt.loss_delay();
        let mut number = self.first;
        while number < largest.min(self.next()) {
            let slot = &self.packets[(number - self.first) as usize];
            if let Some(at) = slot.as_ref().map(|packet| packet.at) {
                if largest >= number + PACKET_THRESHOLD || at + delay <= now {
                    lost.extend(self.take(number));
                } else {
                    self.loss_at = self.loss_at.min(at + delay);
                }
            }
            number += 1;
        }
        self.shrink();
    }

    /// Nothing of it counts against the window any more: it is on its way on a path that was left (RFC 9000 section 9.4).
    pub fn disregard(&mut self) {
        self.in_flight = 0;
        for packet in self.packets.iter_mut().flatten() {
            packet.in_flight = false;
        }
    }

    /// Takes out everything: the space is discarded, or its path abandoned.
    pub fn drain(&mut self) -> impl Iterator<Item = Sent<T>> + '_ {
        self.loss_at = NEVER;
        self.eliciting = 0;
        self.in_flight = 0;
        self.first += self.packets.len() as u64;
        self.packets.drain(..).flatten()
    }

    /// When [`InFlight::detect_lost`] finds more.
    pub fn loss_deadline(&self) -> Nanos {
        self.loss_at
    }

    /// Ack-eliciting packets in flight.
    pub fn eliciting(&self) -> u32 {
        self.eliciting
    }

    /// Packets that count against the congestion window.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub fn last_eliciting_at(&self) -> Nanos {
        self.last_eliciting_at
    }

    pub fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// The number of the oldest packet in flight, or the next where there is none.
    pub fn oldest(&self) -> u64 {
        self.first
    }

    /// What is in flight, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Sent<T>> {
        self.packets.iter().flatten()
    }
}

/// Whether packets were lost without a break that were sent more than `span` apart (RFC 9002 section 7.6.2). The first and the last of them are
/// ack-eliciting, and `count`.
pub(super) fn is_persistent<T>(
    lost: &[Sent<T>],
    span: Nanos,
    count: impl Fn(&Sent<T>) -> bool,
) -> bool {
    let (mut first, mut next) = (None, None);
    for packet in lost {
        if next != Some(packet.number) {
            first = None;
        }
        next = Some(packet.number + 1);
        if packet.eliciting && count(packet) && packet.at - *first.get_or_insert(packet.at) > span {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND as MS;

    fn flight(count: u64) -> InFlight<()> {
        let mut flight = InFlight::default();
        for number in 0..count {
            flight.on_sent(Sent {
                number,
                at: number * MS,
                size: 1200,
                eliciting: true,
                in_flight: true,
                ecn: false,
                carried: (),
            });
        }
        flight
    }

    fn ack(ranges: &[(u64, u64)]) -> Ack {
        Ack {
            ranges: ranges.to_vec(),
            ..Ack::default()
        }
    }

    fn numbers(sent: &[Sent<()>]) -> Vec<u64> {
        sent.iter().map(|packet| packet.number).collect()
    }

    #[test]
    fn acknowledged_packets_leave_once() {
        let mut flight = flight(8);
        let mut acked = Vec::new();
        assert_eq!(flight.on_ack(&ack(&[(6, 7), (0, 2)]), &mut acked), Ok(true));
        assert_eq!(numbers(&acked), [0, 1, 2, 6, 7]);
        assert_eq!((flight.in_flight(), flight.eliciting()), (3, 3));
        acked.clear();
        assert_eq!(
            flight.on_ack(&ack(&[(5, 7), (0, 2)]), &mut acked),
            Ok(false)
        );
        assert_eq!(numbers(&acked), [5]);
    }

    #[test]
    fn what_was_never_sent_cannot_be_acknowledged() {
        let mut flight = flight(3);
        assert_eq!(
            flight.on_ack(&ack(&[(0, 3)]), &mut Vec::new()),
            Err(NeverSent)
        );
        assert_eq!(flight.in_flight(), 3);
    }

    #[test]
    fn three_later_packets_or_time_make_a_loss() {
        let mut flight = flight(6);
        let mut rtt = Rtt::default();
        rtt.sample(40 * MS, 0);
        flight
            .on_ack(&ack(&[(4, 4)]), &mut Vec::new())
            .expect("sent");
        let mut lost = Vec::new();
        flight.detect_lost(44 * MS, &rtt, &mut lost);
        assert_eq!(numbers(&lost), [0, 1], "4 is three numbers after 1");
        assert_eq!(flight.loss_deadline(), 2 * MS + 45 * MS);
        lost.clear();
        flight.detect_lost(47 * MS, &rtt, &mut lost);
        assert_eq!(numbers(&lost), [2]);
        assert_eq!(flight.loss_deadline(), 48 * MS);
        assert_eq!(flight.in_flight(), 2, "3 and 5");
    }

    /// RFC 9002 section 7.6.2.
    #[test]
    fn congestion_is_persistent_if_nothing_between_was_acknowledged() {
        let persistent = |numbers: &[u64], alone: u64| {
            let mut packets: Vec<_> = flight(20).drain().collect();
            packets.retain(|packet| numbers.contains(&packet.number));
            for packet in &mut packets {
                packet.eliciting = packet.number != alone;
            }
            is_persistent(&packets, 2 * MS, |packet| packet.number != 9)
        };
        assert!(persistent(&[5, 6, 7, 8], 20));
        assert!(!persistent(&[5, 6, 7], 20), "not long enough");
        assert!(!persistent(&[5, 6, 8], 20), "7 arrived");
        assert!(
            !persistent(&[4, 5, 7], 4),
            "an acknowledgement alone, and 6 arrived"
        );
        assert!(
            persistent(&[4, 5, 6, 7, 8], 4),
            "beside an acknowledgement alone"
        );
        assert!(persistent(&[1, 3, 4, 5, 6], 20), "after one that arrived");
        assert!(!persistent(&[6, 7, 8, 9], 20), "9 does not count");
    }

    #[test]
    fn an_acknowledgement_of_all_numbers_is_bounded_by_what_is_in_flight() {
        let mut flight = flight(100);
        let mut acked = Vec::new();
        flight.on_ack(&ack(&[(0, 99)]), &mut acked).expect("sent");
        acked.clear();
        flight.on_ack(&ack(&[(0, 99)]), &mut acked).expect("sent");
        assert!(acked.is_empty());
        assert_eq!(flight.next(), 100);
    }
}
