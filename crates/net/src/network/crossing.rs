//! The steps of a packet: onto a channel, across it, onto the next one or out, or dropped.

use super::{FIRST_CHANNEL, Network, Occurrence, Output, Parcel};
use crate::channel::Dropped;
use crate::events::EventQueue;
use crate::ids::{ChannelId, NEVER};
use crate::packet::{DropReason, Observer, Packet};
use crate::routing::END;

impl<B: Clone, Q: EventQueue> Network<B, Q> {
    /// A packet of `len` bytes enters a channel.
    #[inline(always)]
    pub(super) fn enter<O: Observer<B>>(&mut self, channel: u32, slot: u32, len: u32, obs: &mut O) {
        let entered = &mut self.channels[channel as usize];
        if !entered.is_plain() && !entered.is_long() {
            self.enter_general(channel, slot, obs);
            return;
        }
        let (taken, alone) = entered.offer(self.now, slot, len);
        if !taken {
            self.discard(channel, slot, DropReason::QueueFull, obs);
            return;
        }
        if let Some(arrival) = alone {
            self.events.insert(FIRST_CHANNEL + channel, arrival);
        }
        self.show_enqueued(channel, slot, obs);
    }

    #[cold]
    #[inline(never)]
    fn enter_general<O: Observer<B>>(&mut self, channel: u32, slot: u32, obs: &mut O) {
        let entered = &mut self.channels[channel as usize];
        if entered.is_open() && !entered.passes(self.store.headers[slot as usize].len) {
            return self.refuse(channel, slot, obs);
        }
        if let Some(reason) = entered.loses(self.now) {
            self.discard(channel, slot, reason, obs);
            return;
        }
        let copy = if entered.duplicates() {
            self.store.duplicate(slot)
        } else {
            None
        };
        self.totals.duplicated += u64::from(copy.is_some());
        let injected = slot;
        for slot in [Some(slot), copy].into_iter().flatten() {
            let mut dropped = Dropped::new();
            let entered = &mut self.channels[channel as usize];
            match entered.queue(self.now, slot, &mut self.store, &mut dropped) {
                Ok(()) => self.show_enqueued(channel, slot, obs),
                Err(reason) => {
                    if entered.config().of_sender && slot == injected {
                        self.refusal = Some((self.totals.injected, reason));
                    }
                    self.discard(channel, slot, reason, obs);
                }
            }
            self.discard_all(channel, dropped, obs);
        }
        self.tell_medium(channel);
        self.set_event(channel);
    }

    /// A channel's event came up: the packet that arrives, if one does, goes on.
    #[inline(always)]
    pub(super) fn arrive<O: Observer<B>>(
        &mut self,
        channel: u32,
        obs: &mut O,
    ) -> Option<Occurrence<B>> {
        let left = &mut self.channels[channel as usize];
        if !left.is_plain() {
            let slot = if left.is_long() {
                leave_long(self, channel)
            } else {
                self.leave_general(channel, obs)?
            };
            return self.cross_from_general(channel, slot, obs);
        }
        let (slot, next) = left.pop();
        if next != NEVER {
            self.events.insert(FIRST_CHANNEL + channel, next);
        }
        self.cross(channel, slot, obs)
    }

    #[cold]
    #[inline(never)]
    fn leave_general<O: Observer<B>>(&mut self, channel: u32, obs: &mut O) -> Option<u32> {
        let left = &mut self.channels[channel as usize];
        if left.wireless().is_some() {
            return self.leave_air(channel, obs);
        }
        let receiver_up = left.config().receiver_up;
        let slot = if left.is_staged() {
            let mut dropped = Dropped::new();
            let slot = left.pop_staged(self.now, &mut self.store, &mut dropped);
            self.discard_all(channel, dropped, obs);
            slot
        } else {
            left.pop_line(&self.store.headers)
        };
        self.set_event(channel);
        if !receiver_up && let Some(slot) = slot {
            self.discard(channel, slot, DropReason::Down, obs);
            return None;
        }
        slot
    }

    /// Apart from [`Network::cross`] on plain channels, which is inlined.
    #[inline(never)]
    fn cross_from_general<O: Observer<B>>(
        &mut self,
        channel: u32,
        slot: u32,
        obs: &mut O,
    ) -> Option<Occurrence<B>> {
        self.cross(channel, slot, obs)
    }

    /// A packet has crossed a channel: on to the next, or out.
    #[inline(always)]
    fn cross<O: Observer<B>>(
        &mut self,
        channel: u32,
        slot: u32,
        obs: &mut O,
    ) -> Option<Occurrence<B>> {
        let header = &mut self.store.headers[slot as usize];
        header.position += 1;
        let (len, position) = (header.len, header.position);
        let next = self.topology.routing.paths.table[position as usize];
        if O::COUNTS {
            obs.crossed(self.now, position, len);
        }
        if O::ACTIVE {
            let at = self.now;
            if let Some(packet) = self.located(slot) {
                obs.arrived(at, ChannelId(channel), packet);
            }
        }
        if next != END {
            self.enter(next, slot, len, obs);
            return None;
        }
        self.totals.delivered += 1;
        let (node, interface) = self.channels[channel as usize].end();
        Some(Occurrence::Arrived {
            node,
            interface,
            parcel: Parcel(slot),
        })
    }

    /// The packet in a slot, with its hop brought up to date.
    #[inline]
    pub(super) fn located(&mut self, slot: u32) -> Option<&Packet<B>> {
        let position = self.store.headers[slot as usize].position;
        let packet = self.store.packet_mut(slot)?;
        packet.hop = (position - self.topology.routing.paths.starts[packet.route.index()]) as u16;
        Some(packet)
    }

    #[inline]
    fn show_enqueued<O: Observer<B>>(&mut self, channel: u32, slot: u32, obs: &mut O) {
        if O::ACTIVE {
            let at = self.now;
            if let Some(packet) = self.located(slot) {
                obs.enqueued(at, ChannelId(channel), packet);
            }
        }
    }

    /// A packet is longer than the channel's MTU: the owner hears of it before anything else happens now.
    fn refuse<O: Observer<B>>(&mut self, channel: u32, slot: u32, obs: &mut O) {
        let packet = self.located(slot).cloned();
        self.discard(channel, slot, DropReason::TooBig, obs);
        let channel = ChannelId(channel);
        let refused = packet.map(|packet| Output::Refused { channel, packet });
        self.urgent.extend(refused);
        self.set_control();
    }

    #[inline(never)]
    pub(super) fn discard<O: Observer<B>>(
        &mut self,
        channel: u32,
        slot: u32,
        reason: DropReason,
        obs: &mut O,
    ) {
        self.channels[channel as usize].count_drop(reason);
        if reason.is_loss() {
            self.totals.lost += 1;
        } else {
            self.totals.dropped += 1;
        }
        let at = self.now;
        if let Some(packet) = self.located(slot) {
            obs.dropped(at, ChannelId(channel), packet, reason);
        }
        self.store.remove(slot);
    }

    pub(super) fn discard_all<O: Observer<B>>(
        &mut self,
        channel: u32,
        dropped: Dropped,
        obs: &mut O,
    ) {
        for (slot, reason) in dropped {
            self.discard(channel, slot, reason, obs);
        }
    }
}

/// The packet that arrives by a long line; one that arrives later is fetched.
#[inline(never)]
fn leave_long<B: Clone, Q: EventQueue>(network: &mut Network<B, Q>, channel: u32) -> u32 {
    let left = &mut network.channels[channel as usize];
    let (slot, next) = left.pop();
    if let Some(distant) = left.distant() {
        network.store.prefetch_whole(distant);
    }
    if next != NEVER {
        network.events.insert(FIRST_CHANNEL + channel, next);
    }
    slot
}
