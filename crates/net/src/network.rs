//! The network as it runs: clock, events, packets.

mod air;
pub mod busy;
mod changes;
mod crossing;
mod look_ahead;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;

use crate::channel::Channel;
use crate::config::{Change, ChannelConfig, ConfigError};
use crate::events::{EventQueue, Timers, Wheel};
use crate::ids::{ChannelId, InterfaceId, NEVER, Nanos, NodeId, RouteId, TimerId};
use crate::packet::{DropReason, Ecn, Header, MAX_LEN, Observer, Packet, Store};
use crate::routing::RouteError;
use crate::stats::{ChannelStats, Totals};
use crate::topology::{Topology, TopologyError};
use crate::wifi::Medium;

/// The entity of scheduled changes; channels and then timers follow.
const CONTROL: u32 = 0;
const FIRST_CHANNEL: u32 = 1;

/// What concerns the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<B> {
    /// A packet reached the end of its route.
    Delivered {
        node: NodeId,
        interface: InterfaceId,
        packet: Packet<B>,
    },
    Timer(TimerId),
    /// A scheduled change was applied.
    Changed(ChannelId),
    /// A packet that is received where it was sent, without a channel to cross.
    Local(Packet<B>),
    /// A packet was longer than the channel's MTU, and dropped where the channel begins.
    Refused {
        channel: ChannelId,
        packet: Packet<B>,
    },
}

/// What concerns the owner, a delivered packet being where it travelled.
#[derive(Debug)]
pub enum Occurrence<B> {
    /// A packet reached the end of its route. The owner looks at it with [`Network::look_into`] and takes it or has it forgotten.
    Arrived {
        node: NodeId,
        interface: InterfaceId,
        parcel: Parcel,
    },
    /// Anything but [`Output::Delivered`].
    Other(Output<B>),
}

/// A delivered packet that is still where it travelled, until [`Network::take`] or [`Network::forget`].
#[must_use]
#[derive(Debug)]
pub struct Parcel(u32);

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no {0}")]
    UnknownChannel(ChannelId),
    #[error("a change at {at} ns cannot be scheduled at {now} ns")]
    Past { at: Nanos, now: Nanos },
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A network with packets of body `B`. `Q` is the event queue; the results do not depend on it.
#[derive(Debug)]
pub struct Network<B, Q = Wheel> {
    now: Nanos,
    seed: u64,
    events: Q,
    channels: Vec<Channel>,
    /// What channels over the air share.
    media: Vec<Medium>,
    store: Store<B>,
    topology: Topology,
    timers: Timers,
    /// Changes to come, by time and order of scheduling.
    changes: BTreeMap<(Nanos, u64), (ChannelId, Change)>,
    scheduled: u64,
    /// What the owner is to hear of before anything else happens: refused packets and local ones.
    urgent: VecDeque<Output<B>>,
    totals: Totals,
    /// What a sending host's own queue refused last: its number among the packets injected, and why.
    refusal: Option<(u64, DropReason)>,
    egress: VecDeque<(Nanos, Output<B>)>,
}

impl<B: Clone> Network<B> {
    /// A network at time 0. Equal seeds give equal results.
    pub fn new(topology: Topology, seed: u64) -> Self {
        Self::with_event_queue(topology, seed)
    }
}

impl<B: Clone, Q: EventQueue> Network<B, Q> {
    /// As [`Network::new`], on another event queue.
    pub fn with_event_queue(topology: Topology, seed: u64) -> Self {
        let mut channels: Vec<Channel> = (0u32..)
            .zip(&topology.edges)
            .map(|(id, edge)| {
                let end = (topology.interfaces[edge.to.index()].node, edge.to);
                Channel::new(ChannelId(id), edge.config.clone(), seed, end)
            })
            .collect();
        let media = air::media(&topology, &mut channels, seed);
        let first_timer = FIRST_CHANNEL + channels.len() as u32;
        Self {
            now: 0,
            seed,
            events: Q::with_entities(first_timer),
            channels,
            media,
            store: Store::new(),
            timers: Timers::new(first_timer),
            changes: BTreeMap::new(),
            scheduled: 0,
            urgent: VecDeque::new(),
            totals: Totals::default(),
            refusal: None,
            egress: VecDeque::new(),
            topology,
        }
    }

    pub fn now(&self) -> Nanos {
        self.now
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// As [`Topology::route`].
    ///
    /// # Errors
    /// Why there is no route.
    pub fn route(
        &mut self,
        from: NodeId,
        src: IpAddr,
        dst: IpAddr,
        label: u64,
    ) -> Result<RouteId, RouteError> {
        self.topology.route(from, src, dst, label)
    }

    /// As [`Topology::way`].
    ///
    /// # Errors
    /// Why there is no route.
    pub fn way(
        &mut self,
        from: NodeId,
        src: IpAddr,
        dst: IpAddr,
    ) -> Result<Vec<ChannelId>, RouteError> {
        self.topology.way(from, src, dst)
    }

    /// As [`Topology::sources`].
    pub fn sources(&mut self, from: NodeId, dst: IpAddr) -> Vec<IpAddr> {
        self.topology.sources(from, dst)
    }

    /// As [`Topology::add_address`].
    ///
    /// # Errors
    /// As there.
    pub fn add_address(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
    ) -> Result<(), TopologyError> {
        self.topology.add_address(interface, address)
    }

    /// As [`Topology::route_over`].
    pub fn route_over(&mut self, path: &[ChannelId]) -> Option<RouteId> {
        self.topology.route_over(path)
    }

    /// A route of its own over these channels, which no other call gives, so that it can be cut. Nothing as of [`Topology::route_over`].
    pub fn lay(&mut self, path: &[ChannelId]) -> Option<RouteId> {
        self.topology.lay(path)
    }

    /// Has the packets on a route end at the next node that they reach, wherever they are: they are delivered there. To be used on routes
    /// that [`Network::lay`] gave.
    pub fn cut(&mut self, route: RouteId) {
        self.topology.cut(route);
    }

    /// The positions of a route's channels in the table of paths, that of its end included.
    pub fn positions(&self, route: RouteId) -> Range<u32> {
        self.topology.positions(route)
    }

    /// As [`Topology::route_via`].
    ///
    /// # Errors
    /// Why there is no route.
    pub fn route_via(
        &mut self,
        from: NodeId,
        src: IpAddr,
        via: &[IpAddr],
        dst: IpAddr,
        label: u64,
    ) -> Result<RouteId, RouteError> {
        self.topology.route_via(from, src, via, dst, label)
    }

    /// When something happens next, if anything is pending.
    pub fn next_event_time(&mut self) -> Option<Nanos> {
        loop {
            let (at, id) = self.events.peek()?;
            if !self.timers.settle(id, at, &mut self.events) {
                return Some(at);
            }
        }
    }

    /// Whether anything else may happen at this very instant. Timers come after all packets that arrive then.
    #[inline]
    pub fn another_now(&self) -> bool {
        self.events.another_at(self.now)
    }

    /// Whether there is so much that caches do not hold it.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.events.is_crowded()
    }

    /// Moves the clock forward to `to`, but not past the next event. Gives the time now.
    pub fn advance_to(&mut self, to: Nanos) -> Nanos {
        let limit = self.next_event_time().unwrap_or(NEVER);
        self.now = self.now.max(to.min(limit));
        self.now
    }

    /// Sends a packet on a route now. A packet of an unknown route is lost at once.
    #[inline]
    pub fn inject<O: Observer<B>>(
        &mut self,
        route: RouteId,
        len: u32,
        flow: u32,
        ecn: Ecn,
        body: B,
        obs: &mut O,
    ) {
        self.inject_made(route, len, flow, ecn, || body, obs);
    }

    /// As [`Network::inject`]; the body is made where it stays.
    #[inline(always)]
    pub fn inject_made<O: Observer<B>>(
        &mut self,
        route: RouteId,
        len: u32,
        flow: u32,
        ecn: Ecn,
        make: impl FnOnce() -> B,
        obs: &mut O,
    ) {
        self.totals.injected += 1;
        let Some((position, first)) = self.topology.routing.paths.begin(route) else {
            self.totals.lost += 1;
            return drop(make());
        };
        let len = len.min(MAX_LEN);
        let (slot, place) = self.store.reserve(Header { position, len });
        // The place is empty: there is nothing to be dropped.
        std::mem::forget(place.replace(Packet {
            len,
            flow,
            route,
            hop: 0,
            ecn,
            corrupted: false,
            body: make(),
        }));
        self.enter(first, slot, len, obs);
    }

    /// Sends a packet on from where it was delivered, as [`Network::inject`] would, its marks and faults kept.
    pub fn forward<O: Observer<B>>(&mut self, route: RouteId, packet: Packet<B>, obs: &mut O) {
        self.totals.injected += 1;
        let Some((position, first)) = self.topology.routing.paths.begin(route) else {
            self.totals.lost += 1;
            return;
        };
        let len = packet.len;
        let (slot, place) = self.store.reserve(Header { position, len });
        *place = Some(Packet {
            route,
            hop: 0,
            ..packet
        });
        self.enter(first, slot, len, obs);
    }

    /// Why the sender's own queue did not take the packet injected last, if it is so. The packet counts as injected and dropped.
    pub fn refusal(&self) -> Option<DropReason> {
        let (number, reason) = self.refusal?;
        (number == self.totals.injected).then_some(reason)
    }

    /// Has a packet received at the node that sends it, once the owner has finished with what it handles now: [`Output::Local`].
    #[cold]
    pub fn inject_local(&mut self, len: u32, flow: u32, ecn: Ecn, body: B) {
        self.urgent.push_back(Output::Local(Packet {
            len: len.min(MAX_LEN),
            flow,
            route: RouteId::default(),
            hop: 0,
            ecn,
            corrupted: false,
            body,
        }));
        self.set_control();
    }

    pub fn new_timer(&mut self) -> TimerId {
        self.timers.create(&mut self.events)
    }

    /// Cancels a timer for good; [`Network::new_timer`] may give its id again.
    pub fn remove_timer(&mut self, timer: TimerId) {
        self.timers.release(timer);
    }

    /// Sets or moves a timer; a time that is past counts as now. A timer fires once.
    #[inline]
    pub fn set_timer(&mut self, timer: TimerId, at: Nanos) {
        self.timers.set(timer, at.max(self.now), &mut self.events);
    }

    #[inline]
    pub fn cancel_timer(&mut self, timer: TimerId) {
        self.timers.cancel(timer);
    }

    /// Runs up to the next thing that concerns the owner, whose time is [`Network::now`] then. `None`: there is nothing up to `until`,
    /// and it is `until` now.
    pub fn poll<O: Observer<B>>(&mut self, until: Nanos, obs: &mut O) -> Option<Output<B>> {
        loop {
            return match self.poll_in_place(until, obs)? {
                Occurrence::Other(output) => Some(output),
                Occurrence::Arrived {
                    node,
                    interface,
                    parcel,
                } => {
                    let Some(packet) = self.take(parcel) else {
                        continue;
                    };
                    Some(Output::Delivered {
                        node,
                        interface,
                        packet,
                    })
                }
            };
        }
    }

    /// The packet in a parcel, but for its hop.
    #[inline]
    pub fn look_into(&self, parcel: &Parcel) -> Option<&Packet<B>> {
        self.store.packet(parcel.0)
    }

    /// Takes a packet out.
    #[inline]
    pub fn take(&mut self, parcel: Parcel) -> Option<Packet<B>> {
        self.located(parcel.0);
        self.store.remove(parcel.0)
    }

    /// Has the network forget a packet whose body owns nothing. What it owned otherwise would not be freed.
    #[inline(always)]
    pub fn forget(&mut self, parcel: Parcel) {
        self.store.forget(parcel.0);
    }

    /// As [`Network::poll`], but for packets, which are left where they are: most are looked at once and forgotten.
    #[inline(always)]
    pub fn poll_in_place<O: Observer<B>>(
        &mut self,
        until: Nanos,
        obs: &mut O,
    ) -> Option<Occurrence<B>> {
        if self.is_crowded() {
            return self.poll_crowded(until, obs);
        }
        self.go_on::<false, O>(until, obs)
    }

    #[inline(never)]
    fn poll_crowded<O: Observer<B>>(&mut self, until: Nanos, obs: &mut O) -> Option<Occurrence<B>> {
        self.go_on::<true, O>(until, obs)
    }

    #[inline(always)]
    fn go_on<const CROWDED: bool, O: Observer<B>>(
        &mut self,
        until: Nanos,
        obs: &mut O,
    ) -> Option<Occurrence<B>> {
        while let Some((at, id)) = self.events.pop_until(until) {
            self.now = at;
            if CROWDED {
                self.look_ahead(obs);
            }
            let channel = id.wrapping_sub(FIRST_CHANNEL);
            if (channel as usize) < self.channels.len() {
                if let Some(arrived) = self.arrive(channel, obs) {
                    return Some(arrived);
                }
            } else if id == CONTROL {
                if let Some(output) = self.control(obs) {
                    return Some(Occurrence::Other(output));
                }
            } else if let Some(timer) = self.timers.fire(id, at, &mut self.events) {
                return Some(Occurrence::Other(Output::Timer(timer)));
            }
        }
        self.now = self.now.max(until);
        None
    }

    /// For a real-time owner: runs up to `until` and keeps what concerns the owner for [`Network::drain_egress`].
    pub fn step_until<O: Observer<B>>(&mut self, until: Nanos, obs: &mut O) {
        while let Some(output) = self.poll(until, obs) {
            self.egress.push_back((self.now, output));
        }
    }

    /// What [`Network::step_until`] kept, each with its time, the earliest first.
    pub fn drain_egress(&mut self) -> impl Iterator<Item = (Nanos, Output<B>)> + '_ {
        self.egress.drain(..)
    }

    /// A channel's present configuration.
    ///
    /// # Errors
    /// An unknown channel.
    pub fn config(&self, channel: ChannelId) -> Result<&ChannelConfig, ChangeError> {
        self.channels
            .get(channel.index())
            .map(Channel::config)
            .ok_or(ChangeError::UnknownChannel(channel))
    }

    /// What a channel did up to now; nothing if there is no such channel.
    pub fn stats(&mut self, channel: ChannelId) -> ChannelStats {
        let (now, headers) = (self.now, &self.store.headers);
        self.channels
            .get_mut(channel.index())
            .map_or_else(ChannelStats::default, |channel| channel.stats(now, headers))
    }

    /// Packets and bytes (overhead included) that wait in a channel's queue now, the packet being sent not included.
    pub fn backlog(&mut self, channel: ChannelId) -> (u64, u64) {
        let (now, headers) = (self.now, &self.store.headers);
        self.channels
            .get_mut(channel.index())
            .map_or((0, 0), |channel| channel.backlog(now, headers))
    }

    /// When a packet queued at a channel now would begin to be sent and so leave the queue, as long as the channel stays as it is. `None`:
    /// it is not known beforehand, as with a token bucket or CoDel.
    pub fn queue_clear_at(&self, channel: ChannelId) -> Option<Nanos> {
        let channel = self.channels.get(channel.index())?;
        channel.clear_at(self.now)
    }

    pub fn totals(&self) -> Totals {
        Totals {
            in_flight: self.store.len() as u64,
            ..self.totals
        }
    }

    /// Forgets what the packets carry that are under way. Nothing is to be asked of the network from then on but what it counted.
    pub fn forget_packets(&mut self) {
        self.store.forget_all();
        self.urgent.clear();
        self.egress.clear();
    }

    /// Sets the channel's event to what it waits for.
    fn set_event(&mut self, channel: u32) {
        let at = self.channels[channel as usize].next_event();
        let id = FIRST_CHANNEL + channel;
        if at != self.events.time(id) {
            self.events.set(id, at);
        }
    }
}
