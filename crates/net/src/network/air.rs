//! Channels over the air: their shared media, and the media's events.
//!
//! A medium keeps its events at the first of its channels. So changes, channels and timers remain the only entities.

use std::collections::BTreeMap;

use super::Network;
use crate::channel::{Channel, Dropped};
use crate::events::EventQueue;
use crate::ids::{Nanos, NodeId};
use crate::packet::{Observer, Store};
use crate::random::stream;
use crate::topology::Topology;
use crate::wifi::{Airtime, Medium, Queues};

/// What tells media apart: a number that links share, or the link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Shared(u32),
    OfLink(u32),
}

/// The media of all channels over the air, which learn of theirs. A node has one radio on a medium, which draws its backoffs from the
/// stream of its first channel.
pub(super) fn media(topology: &Topology, channels: &mut [Channel], seed: u64) -> Vec<Medium> {
    let mut media = Vec::new();
    let mut named = BTreeMap::new();
    let mut radios: BTreeMap<(u32, NodeId), usize> = BTreeMap::new();
    for ((id, edge), channel) in (0u32..).zip(&topology.edges).zip(channels) {
        let (Some(config), Some(wireless)) = (&edge.config.wifi, channel.wireless_mut()) else {
            continue;
        };
        let name = config.medium.map_or(Name::OfLink(id / 2), Name::Shared);
        let place = *named.entry(name).or_insert_with(|| {
            media.push(Medium::default());
            media.len() as u32 - 1
        });
        let medium = &mut media[place as usize];
        let node = topology.interfaces[edge.from.index()].node;
        let radio = *radios.entry((place, node)).or_insert_with(|| {
            let rng = stream(seed, "channel", u64::from(id), "wifi backoff");
            medium.add(rng)
        });
        medium.serve(radio, id, config.standard.space(), config.attempts);
        wireless.tune(place, radio);
    }
    media
}

/// The queues of a medium's channels.
struct Air<'a, B> {
    now: Nanos,
    channels: &'a mut [Channel],
    store: &'a mut Store<B>,
    dropped: Vec<(u32, Dropped)>,
}

impl<B> Queues for Air<'_, B> {
    fn waits(&self, channel: u32) -> bool {
        self.channels[channel as usize].has_work()
    }

    fn begin(&mut self, channel: u32) -> Option<Airtime> {
        let (wireless, discipline) = self.channels[channel as usize].on_air()?;
        let mut dropped = Dropped::new();
        let airtime = wireless.begin(self.now, discipline, self.store, &mut dropped);
        self.dropped.push((channel, dropped));
        airtime
    }

    fn finish(&mut self, channel: u32, collided: bool) -> bool {
        let Some(wireless) = self.channels[channel as usize].wireless_mut() else {
            return false;
        };
        let mut dropped = Dropped::new();
        let answered = wireless.finish(self.now, collided, &mut dropped);
        self.dropped.push((channel, dropped));
        answered
    }
}

impl<B: Clone, Q: EventQueue> Network<B, Q> {
    /// The event of a channel over the air came up: the packet that arrives, if one does.
    pub(super) fn leave_air<O: Observer<B>>(&mut self, channel: u32, obs: &mut O) -> Option<u32> {
        let (place, _) = self.channels[channel as usize].wireless()?.radio();
        let medium = &mut self.media[place as usize];
        let mut air = Air {
            now: self.now,
            channels: &mut self.channels,
            store: &mut self.store,
            dropped: Vec::new(),
        };
        if medium.run(self.now, &mut air) {
            for (channel, dropped) in std::mem::take(&mut air.dropped) {
                self.discard_all(channel, dropped, obs);
            }
            self.wind(place);
            let channels: Vec<u32> = self.media[place as usize].channels().collect();
            for channel in channels {
                self.set_event(channel);
            }
        }
        let slot = self.channels[channel as usize]
            .wireless_mut()?
            .arrive(self.now);
        self.set_event(channel);
        slot
    }

    /// The queue of a channel has changed: if it is over the air, its medium hears of it.
    #[inline]
    pub(super) fn tell_medium(&mut self, channel: u32) {
        if let Some(wireless) = self.channels[channel as usize].wireless() {
            let (place, radio) = wireless.radio();
            let medium = &mut self.media[place as usize];
            let air = Air {
                now: self.now,
                channels: &mut self.channels,
                store: &mut self.store,
                dropped: Vec::new(),
            };
            medium.notice(self.now, radio, &air);
            self.wind(place);
        }
    }

    /// Sets the event of a medium.
    fn wind(&mut self, place: u32) {
        let medium = &self.media[place as usize];
        let (at, host) = (medium.next(), medium.channels().next());
        let Some(host) = host else { return };
        if let Some(wireless) = self.channels[host as usize].wireless_mut() {
            wireless.set_clock(at);
            self.set_event(host);
        }
    }
}
