//! What the peer has: cumulative acknowledgements, SACK (RFC 2018, RFC 2883), and what is marked as lost.

use polypath_wire::tcp::Segment;

use super::{Delivery, Recovery};
use crate::path::CaState;
use crate::seq::unwrap;
use crate::tcp::Socket;
use crate::tcp::context::Shared;
use crate::tcp::flight::first_beyond;
use crate::tcp::sender::Sent;
use crate::{Mib, Nanos};

impl Socket {
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
            let (start, end) = (unwrap(self.iss, left, ack), unwrap(self.iss, right, ack));
            if end <= start || end > self.next {
                continue;
            }
            if index == 0
                && (start < ack
                    || blocks.get(1).is_some_and(|&(l, r)| {
                        unwrap(self.iss, l, ack) <= start && end <= unwrap(self.iss, r, ack)
                    }))
            {
                self.take_duplicate_sack(shared, end, delivery);
                continue;
            }
            let scoreboard = self.recovery.scoreboard.get_or_insert_default();
            scoreboard.insert(start.max(self.una), end, |a, b| fresh.push((a, b)));
        }
        for &(start, end) in &fresh {
            self.mark_sacked(shared, start, end, highest, delivery);
        }
        shared.scratch = fresh;
        if let Some(low) = delivery.overtaken.take()
            && (self.recovery.state != CaState::Loss || self.recovery.undo_from.is_some())
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
        self.recovery.duplicates += 1;
        if self.recovery.duplicates > self.totals.retransmitted_segments {
            // The network's (`tcp_dsack_seen`).
            return;
        }
        delivery.duplicate_sack = true;
        delivery.of_probe = self.recovery.probe_end == Some(end);
        delivery.packets += 1;
        self.rack.duplicate_seen |= self.rack.reordering_seen && !delivery.of_probe;
        let recovery = &mut self.recovery;
        if recovery.undo_from.is_some_and(|from| end > from) && recovery.undo_count > 0 {
            recovery.undo_count -= 1;
        }
    }

    pub(super) fn mark_sacked(
        &mut self,
        shared: &mut Shared,
        start: u64,
        end: u64,
        highest: u64,
        delivery: &mut Delivery,
    ) {
        let mut index = first_beyond(&self.sent, start);
        while let Some(sent) = self.sent.get_mut(index).filter(|sent| sent.seq < end) {
            index += 1;
            if sent.has(Sent::SACKED) || !self.recovery.is_sacked(sent.seq, sent.data_end()) {
                continue;
            }
            if sent.has(Sent::RETRANSMITTING) {
                sent.clear(Sent::RETRANSMITTING);
                self.recovery.retransmitting -= 1;
            }
            if sent.has(Sent::LOST) {
                sent.clear(Sent::LOST);
                self.recovery.lost -= 1;
            }
            sent.set(Sent::SACKED);
            self.recovery.sacked += 1;
            delivery.packets += 1;
            let copy = *sent;
            if let Some(paced) = &mut self.paced {
                paced.deliver(&copy);
            }
            if !copy.retransmitted() {
                delivery.first_sacked.get_or_insert(copy.sent_at);
                delivery.last_sacked = Some(copy.sent_at);
                delivery.original |= copy.end() <= self.recovery.end;
                if copy.seq < highest {
                    delivery.overtake(copy.seq);
                }
            }
            delivery.sacked = true;
            self.advance_rack(shared.now, &copy, 0);
        }
    }

    /// Removes those first segments that are acknowledged cumulatively of which nothing is to be told but when they were sent, while
    /// nothing is SACKed. Returns how many. They were sent in their order, so that RACK needs the last.
    #[inline(always)]
    fn take_plain(&mut self, now: Nanos, ack: u64, delivery: &mut Delivery) -> u32 {
        let mut packets = 0;
        let (mut first, mut last) = ((0, 0), (0, 0));
        while let Some(front) = self.sent.front()
            && front.is_plain()
            && front.plain_end() <= ack
        {
            last = (front.sent_at, front.plain_end());
            if packets == 0 {
                first = last;
            }
            packets += 1;
            self.sent.pop_front();
        }
        if packets > 0 {
            let (sent_at, end) = last;
            delivery.packets += packets;
            delivery.first = Some(first.0);
            delivery.last = Some(sent_at);
            delivery.original |= first.1 <= self.recovery.end;
            if self.negotiated.sack {
                self.rack.advanced = true;
                self.rack.rtt = now - sent_at;
                if (sent_at, end) > (self.rack.sent_at, self.rack.end) {
                    (self.rack.sent_at, self.rack.end) = (sent_at, end);
                }
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
        if highest_sacked == 0 && self.paced.is_none() {
            packets = self.take_plain(shared.now, ack, delivery);
        }
        while let Some(front) = self.sent.front_mut() {
            if front.end() > ack {
                if front.seq < ack && front.len > 0 {
                    let part = (ack - front.seq) as u32;
                    front.seq += u64::from(part);
                    front.offset += u64::from(part);
                    front.len -= part;
                }
                break;
            }
            let sent = *front;
            self.sent.pop_front();
            packets += 1;
            if sent.has(Sent::LOST) {
                self.recovery.lost -= 1;
            }
            if sent.has(Sent::RETRANSMITTING) {
                self.recovery.retransmitting -= 1;
            }
            if sent.has(Sent::SACKED) {
                self.recovery.sacked -= 1;
                continue;
            }
            delivery.packets += 1;
            if let Some(paced) = &mut self.paced {
                paced.deliver(&sent);
            }
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
            self.advance_rack(shared.now, &sent, delivery.echo);
        }
        if !self.negotiated.sack && self.recovery.sacked > 0 {
            // Duplicate ACKs stood for packets that this ACK now covers.
            if shared.config.profile.counts_duplicates_once() {
                let news = packets.saturating_sub(self.recovery.sacked).max(1);
                delivery.packets -= packets.saturating_sub(news).min(delivery.packets);
            }
            self.recovery.sacked = self
                .recovery
                .sacked
                .saturating_sub(packets.saturating_sub(1))
                .min((self.sent.len() as u32).saturating_sub(1));
        }
        self.una = ack;
        if let Some(buffers) = &mut self.buffers {
            buffers.acknowledge(ack);
        }
        if let Some(scoreboard) = &mut self.recovery.scoreboard {
            scoreboard.remove_below(ack);
        }
        if let Some(low) = delivery.overtaken.take() {
            self.note_reordering(shared, low, mss, Mib::TcpExtTCPSACKReorder);
        }
    }

    pub(super) fn mark_lost(recovery: &mut Recovery, sent: &mut Sent, delivery: &mut Delivery) {
        if !sent.has(Sent::LOST) {
            sent.set(Sent::LOST);
            recovery.lost += 1;
            delivery.newly_lost += 1;
        }
        recovery.unrepaired.add(sent.seq, sent.end());
    }

    pub(super) fn mark_head_lost(&mut self, delivery: &mut Delivery) {
        if let Some(head) = self
            .sent
            .front_mut()
            .filter(|head| !head.has(Sent::LOST) && !head.has(Sent::SACKED))
        {
            if head.has(Sent::RETRANSMITTING) {
                head.clear(Sent::RETRANSMITTING);
                self.recovery.retransmitting -= 1;
            }
            Self::mark_lost(&mut self.recovery, head, delivery);
            let most = (self.sent.len() as u32).saturating_sub(self.recovery.lost);
            self.recovery.sacked = self.recovery.sacked.min(most);
        }
    }
}
