//! What the peer has: cumulative acknowledgements, SACK (RFC 2018, RFC 2883), and what is marked as lost.

use polypath_wire::tcp::Segment;

use super::Delivery;
use crate::path::CaState;
use crate::tcp::context::Shared;
use crate::tcp::flight::{Plain, Sent};
use crate::tcp::transfer::Transfer;
use crate::{Mib, Nanos};

impl Transfer {
    pub(super) fn take_sack(
        &mut self,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        highest: u64,
        mss: u32,
        delivery: &mut Delivery,
    ) {
        let mut fresh = std::mem::take(&mut shared.scratch);
        fresh.clear();
        let blocks = segment.sack.as_slice();
        for (index, &(left, right)) in blocks.iter().enumerate() {
            let at = |number| self.flight.position(number, ack);
            let (start, end) = (at(left), at(right));
            if end <= start || end > self.flight.next() {
                continue;
            }
            if index == 0
                && (start < ack
                    || blocks
                        .get(1)
                        .is_some_and(|&(l, r)| at(l) <= start && end <= at(r)))
            {
                self.take_duplicate_sack(shared, end, delivery);
                continue;
            }
            let scoreboard = self.recovery.scoreboard.get_or_insert_default();
            scoreboard.insert(start.max(self.flight.una()), end, |a, b| fresh.push((a, b)));
        }
        for &(start, end) in &fresh {
            self.mark_sacked(shared, start, end, highest, delivery);
        }
        shared.scratch = fresh;
        if let Some(low) = delivery.overtaken.take()
            && (self.recovery.state != CaState::Loss || self.recovery.undo.is_possible())
        {
            self.note_reordering(shared, low, mss, Mib::TcpExtTCPSACKReorder);
        }
    }

    pub(super) fn take_duplicate_sack(
        &mut self,
        shared: &mut Shared,
        end: u64,
        delivery: &mut Delivery,
    ) {
        shared.counters.increment(Mib::TcpExtTCPDSACKRecv);
        let retransmitted = self.totals.retransmitted_segments;
        if !self.recovery.undo.counts_duplicate(retransmitted) {
            return;
        }
        delivery.duplicate_sack = true;
        delivery.of_probe = self.recovery.probe.ends_at(end);
        delivery.packets += 1;
        if !delivery.of_probe {
            self.recovery.rack.note_duplicate();
        }
        self.recovery.undo.note_needless(end);
    }

    pub(super) fn mark_sacked(
        &mut self,
        shared: &mut Shared,
        start: u64,
        end: u64,
        highest: u64,
        delivery: &mut Delivery,
    ) {
        let mut index = self.flight.first_beyond(start);
        while let Some(sent) = self.flight.segments().get(index).filter(|it| it.seq < end) {
            index += 1;
            if sent.has(Sent::SACKED) || !self.recovery.is_sacked(sent.seq, sent.data_end()) {
                continue;
            }
            let copy = self.flight.sack(index - 1);
            delivery.packets += 1;
            self.controller.note_delivered(&copy);
            if !copy.retransmitted() {
                delivery.first_sacked.get_or_insert(copy.sent_at);
                delivery.last_sacked = Some(copy.sent_at);
                delivery.original |= copy.end() <= self.recovery.end;
                if copy.seq < highest {
                    delivery.overtake(copy.seq);
                }
            }
            delivery.sacked = true;
            self.recovery.rack.advance(shared.now, &copy, 0, &self.rtt);
        }
    }

    /// Removes those first segments that are acknowledged cumulatively of which nothing is to be told but when they were sent, while
    /// nothing is SACKed. Returns how many. They were sent in their order, so that RACK needs the last.
    #[inline(always)]
    fn take_plain(&mut self, now: Nanos, ack: u64, delivery: &mut Delivery) -> u32 {
        let Plain {
            packets,
            first,
            last,
        } = self.flight.take_plain(ack);
        if packets > 0 {
            delivery.packets += packets;
            delivery.first = Some(first.0);
            delivery.last = Some(last.0);
            delivery.original |= first.1 <= self.recovery.end;
            if self.sack {
                self.recovery.rack.advance_to(now, last);
            }
        }
        packets
    }

    /// Removes what is acknowledged cumulatively.
    pub(super) fn take_cumulative(
        &mut self,
        shared: &mut Shared,
        ack: u64,
        highest_sacked: u64,
        mss: u32,
        delivery: &mut Delivery,
    ) {
        delivery.advanced = true;
        delivery.rearm = true;
        let mut packets = 0;
        if highest_sacked == 0 && !self.controller.paces() {
            packets = self.take_plain(shared.now, ack, delivery);
        }
        while let Some(sent) = self.flight.take_acknowledged(ack) {
            packets += 1;
            if sent.has(Sent::SACKED) {
                continue;
            }
            delivery.packets += 1;
            self.controller.note_delivered(&sent);
            if sent.retransmitted() {
                delivery.repaired = true;
            } else {
                delivery.first.get_or_insert(sent.sent_at);
                delivery.last = Some(sent.sent_at);
                delivery.original |= sent.end() <= self.recovery.end;
                if sent.end() < highest_sacked {
                    delivery.overtake(sent.seq);
                }
            }
            if self.sack {
                (self.recovery.rack).advance(shared.now, &sent, delivery.echo, &self.rtt);
            }
        }
        if !self.sack && self.flight.sacked() > 0 {
            // Duplicate ACKs stood for packets that this ACK now covers.
            if shared.config.profile.counts_duplicates_once() {
                let news = packets.saturating_sub(self.flight.sacked()).max(1);
                delivery.packets -= packets.saturating_sub(news).min(delivery.packets);
            }
            self.flight.uncount_duplicates(packets);
        }
        self.flight.acknowledge(ack);
        if let Some(scoreboard) = &mut self.recovery.scoreboard {
            scoreboard.remove_below(ack);
        }
        if let Some(low) = delivery.overtaken.take() {
            self.note_reordering(shared, low, mss, Mib::TcpExtTCPSACKReorder);
        }
    }
}
