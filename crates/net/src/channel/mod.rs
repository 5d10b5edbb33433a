//! One direction of a link.

mod backlog;
mod flight;
mod line;
mod serializer;
mod staged;
mod trace;
mod wireless;

use std::num::NonZeroU64;
use std::sync::Arc;

use rand_pcg::Pcg64Mcg;

use crate::config::ChannelConfig;
use crate::ids::{ChannelId, InterfaceId, NEVER, Nanos, NodeId};
use crate::loss::{Loss, LossConfig};
use crate::packet::{DropReason, Header, Store};
pub(crate) use crate::queue::Dropped;
use crate::queue::{Discipline, Idle, Occupancy, QueueDiscipline, Queued, Travel, Verdict};
use crate::random::{chance, normal, stream};
use crate::stats::ChannelStats;
use line::Line;
use staged::Staged;
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError};
pub(crate) use wireless::Wireless;

/// A standard normal draw has no larger magnitude than this.
const JITTER_REACH: u64 = 9;

/// A channel: the fast [`Line`] for constant channels with a drop-tail queue in packets, and what other channels need besides.
#[derive(Debug)]
pub(crate) struct Channel {
    line: Line,
    /// Whether the line alone does everything, and has no more packets than caches hold.
    plain: bool,
    end: (NodeId, InterfaceId),
    general: Box<General>,
}

/// A channel on which more packets of the usual length travel at a time is a long one.
const LONG: u128 = 512;
const USUAL_BITS: u128 = 1500 * 8;

/// Apart from the line, so that a hop on a plain channel does not fetch it.
#[derive(Debug)]
struct General {
    id: ChannelId,
    seed: u64,
    config: Arc<ChannelConfig>,
    /// The line alone does everything, for more packets than caches hold.
    long: bool,
    discipline: Discipline,
    loss: Loss,
    streams: Option<Box<Streams>>,
    staged: Option<Box<Staged>>,
    /// In place of line and stages.
    wireless: Option<Box<Wireless>>,
    dropped: u64,
    lost: u64,
}

fn rate(config: &ChannelConfig) -> Option<NonZeroU64> {
    config.rate_bps.and_then(NonZeroU64::new)
}

/// One random stream a purpose.
#[derive(Debug)]
struct Streams {
    loss: Pcg64Mcg,
    duplicate: Pcg64Mcg,
    corrupt: Pcg64Mcg,
    reorder: Pcg64Mcg,
    jitter: Pcg64Mcg,
    queue: Pcg64Mcg,
}

/// The random stream for hashes of flows.
fn hashes(seed: u64, id: ChannelId) -> impl FnOnce() -> Pcg64Mcg {
    move || stream(seed, "channel", u64::from(id.0), "flows")
}

impl Streams {
    fn new(seed: u64, id: ChannelId) -> Self {
        let of = |purpose| stream(seed, "channel", u64::from(id.0), purpose);
        Self {
            loss: of("loss"),
            duplicate: of("duplicate"),
            corrupt: of("corrupt"),
            reorder: of("reorder"),
            jitter: of("jitter"),
            queue: of("queue"),
        }
    }
}

impl Channel {
    pub fn new(
        id: ChannelId,
        config: Arc<ChannelConfig>,
        seed: u64,
        end: (NodeId, InterfaceId),
    ) -> Self {
        let mut channel = Self {
            line: Line::new(rate(&config), config.overhead),
            plain: false,
            end,
            general: Box::new(General {
                id,
                seed,
                long: false,
                discipline: Discipline::new(
                    &config.queue,
                    config.longest_packet(),
                    hashes(seed, id),
                ),
                loss: Loss::new(&config.loss),
                config,
                streams: None,
                staged: None,
                wireless: None,
                dropped: 0,
                lost: 0,
            }),
        };
        let config = &channel.general.config;
        if channel.needs_stages() {
            let mut staged = Staged::new(0, rate(config), config.burst);
            if let Some(trace) = &config.trace {
                staged.follow(0, Arc::clone(trace), config.overhead);
            }
            channel.general.staged = Some(Box::new(staged));
        }
        if let Some(wifi) = &config.wifi {
            let wireless = Wireless::new(Arc::clone(wifi), id, seed);
            channel.general.wireless = Some(Box::new(wireless));
        }
        channel.arrange(&[]);
        channel
    }

    /// Where it ends.
    #[inline(always)]
    pub fn end(&self) -> (NodeId, InterfaceId) {
        self.end
    }

    pub fn config(&self) -> &ChannelConfig {
        &self.general.config
    }

    /// Has fetched where the next packet is put.
    #[inline(always)]
    pub fn prefetch_tail(&self) {
        self.line.prefetch_tail();
    }

    /// The slot of the packet that arrives next, and the entry behind it.
    #[inline(always)]
    pub fn front(&self) -> (u32, Option<&line::Entry>) {
        self.line.front()
    }

    /// Whether they may be used all the same, for the line alone does everything and is a long one.
    pub fn is_long(&self) -> bool {
        self.general.long
    }

    /// Slot of a packet whose data is worth fetching before it arrives.
    #[inline(always)]
    pub fn distant(&self) -> Option<u32> {
        line::distant(&self.line)
    }

    /// Whether [`Channel::offer`] and [`Channel::pop`] may be used.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    pub fn is_staged(&self) -> bool {
        self.general.staged.is_some()
    }

    /// What sends over the air, if this does.
    pub fn wireless(&self) -> Option<&Wireless> {
        self.general.wireless.as_deref()
    }

    pub fn wireless_mut(&mut self) -> Option<&mut Wireless> {
        self.general.wireless.as_deref_mut()
    }

    /// What sends over the air, and the discipline that its packets wait in.
    pub fn on_air(&mut self) -> Option<(&mut Wireless, &mut Discipline)> {
        let general = &mut *self.general;
        Some((general.wireless.as_deref_mut()?, &mut general.discipline))
    }

    /// Whether there is anything to be sent over the air.
    pub fn has_work(&self) -> bool {
        let wireless = self.general.wireless.as_ref();
        wireless.is_some_and(|wireless| wireless.has_work(&self.general.discipline))
    }

    /// Packet length on the channel.
    #[inline]
    fn size(&self, slot: u32, headers: &[Header]) -> u32 {
        headers[slot as usize].len + self.line.overhead
    }

    /// The way into a plain channel, for a packet of `len` bytes: whether the queue took it, and its arrival if it is the only one.
    #[inline(always)]
    pub fn offer(&mut self, now: Nanos, slot: u32, len: u32) -> (bool, Option<Nanos>) {
        self.line.offer(now, slot, len + self.line.overhead)
    }

    /// The way out of a plain channel: the packet that arrives now, and when the next one does.
    #[inline(always)]
    pub fn pop(&mut self) -> (u32, Nanos) {
        self.line.pop()
    }

    /// The way out of a channel that is not staged: the packet that arrives now.
    pub fn pop_line(&mut self, headers: &[Header]) -> Option<u32> {
        (!self.line.is_empty()).then(|| self.line.pop_counted(headers))
    }

    /// The way out of a staged channel: the packet that arrives now, if one does.
    pub fn pop_staged<B>(
        &mut self,
        now: Nanos,
        store: &mut Store<B>,
        dropped: &mut Dropped,
    ) -> Option<u32> {
        let staged = self.general.staged.as_mut()?;
        staged.depart(now, &mut self.general.discipline, store, dropped);
        staged.arrive(now)
    }

    pub fn next_event(&self) -> Nanos {
        if let Some(wireless) = &self.general.wireless {
            return wireless.next_event();
        }
        let staged = self
            .general
            .staged
            .as_ref()
            .map_or(NEVER, |staged| staged.next_event(&self.general.discipline));
        staged.min(self.line.next_arrival())
    }

    /// The general path in, first part: whether the link loses the packet.
    pub fn loses(&mut self, now: Nanos) -> Option<DropReason> {
        if !self.is_open() {
            return Some(DropReason::Down);
        }
        let streams = self.general.streams.as_mut()?;
        self.general
            .loss
            .loses(now, &mut streams.loss)
            .then_some(DropReason::Loss)
    }

    /// Whether packets can enter. A station that is gone is sent nothing.
    pub fn is_open(&self) -> bool {
        let config = &self.general.config;
        config.up && config.sender_up && (config.receiver_up || config.wifi.is_none())
    }

    /// Whether the link carries packets of `len` bytes at all.
    pub fn passes(&self, len: u32) -> bool {
        self.general.config.mtu.is_none_or(|mtu| len <= mtu)
    }

    /// Second part: whether a copy follows the packet.
    pub fn duplicates(&mut self) -> bool {
        let probability = self.general.config.duplicate;
        match &mut self.general.streams {
            Some(streams) if probability > 0.0 => chance(&mut streams.duplicate, probability),
            _ => false,
        }
    }

    /// Third part, for the packet and its copy alike: spoils it, draws how it travels, and queues it.
    ///
    /// # Errors
    /// Why the queue refused it.
    pub fn queue<B>(
        &mut self,
        now: Nanos,
        slot: u32,
        store: &mut Store<B>,
        dropped: &mut Dropped,
    ) -> Result<(), DropReason> {
        let size = self.size(slot, &store.headers);
        let travel = self.draw(slot, store);
        if let Some(staged) = &mut self.general.staged {
            if !staged.fits(size) {
                return Err(DropReason::TooLong);
            }
            staged.depart(now, &mut self.general.discipline, store, dropped);
            if store.headers[slot as usize].len <= self.general.config.bypass {
                staged.pass_by(now, slot, size, travel);
                return Ok(());
            }
        }
        let occupancy = self.occupancy(now, size, &store.headers);
        let (capable, flow) = store
            .packet_mut(slot)
            .map_or((false, 0), |packet| (packet.ecn.capable(), packet.flow));
        let streams = self
            .general
            .streams
            .get_or_insert_with(|| Box::new(Streams::new(self.general.seed, self.general.id)));
        match self
            .general
            .discipline
            .admit(now, size, capable, occupancy, &mut streams.queue)
        {
            Verdict::Drop(reason) => return Err(reason),
            Verdict::Mark => {
                store.mark(slot);
            }
            Verdict::Pass => {}
        }
        let packet = Queued {
            slot,
            size,
            entered: now,
            travel,
        };
        let discipline = &mut self.general.discipline;
        match (&mut self.general.staged, travel) {
            (Some(staged), _) => {
                match discipline.keeping() {
                    Some(flows) => {
                        let head = staged.head().0;
                        take_by_flow(flows, packet, flow, head, store, dropped)?;
                    }
                    None => staged.push(packet),
                }
                staged.depart(now, discipline, store, dropped);
            }
            (None, _) if self.general.wireless.is_some() => {
                return self.queue_for_air(packet, flow, store, dropped);
            }
            (None, Travel::InOrder(lag)) => {
                let lag = u32::try_from(lag).unwrap_or(u32::MAX);
                self.line.take(now, slot, size, lag, &store.headers);
            }
            (None, Travel::Ahead) => {
                self.line.take(now, slot, size, 0, &store.headers);
            }
        }
        Ok(())
    }

    #[cold]
    fn queue_for_air<B>(
        &mut self,
        packet: Queued,
        flow: u32,
        store: &mut Store<B>,
        dropped: &mut Dropped,
    ) -> Result<(), DropReason> {
        let Some((wireless, discipline)) = self.on_air() else {
            return Err(DropReason::Down);
        };
        match discipline.keeping() {
            Some(flows) => take_by_flow(flows, packet, flow, 0, store, dropped)?,
            None => wireless.push(packet),
        }
        wireless.note_waiting(discipline);
        Ok(())
    }

    fn draw<B>(&mut self, slot: u32, store: &mut Store<B>) -> Travel {
        let config = &self.general.config;
        let Some(streams) = &mut self.general.streams else {
            return Travel::InOrder(config.delay);
        };
        if config.corrupt > 0.0 && chance(&mut streams.corrupt, config.corrupt) {
            if let Some(packet) = store.packet_mut(slot) {
                packet.corrupted = true;
            }
        }
        if config.reorder > 0.0 && chance(&mut streams.reorder, config.reorder) {
            return Travel::Ahead;
        }
        if config.jitter == 0 {
            return Travel::InOrder(config.delay);
        }
        // A float beyond the range converts to the nearest end of it.
        let shift = normal(&mut streams.jitter) * config.jitter as f64;
        let late = config.delay.saturating_add(shift.max(0.0) as Nanos);
        Travel::InOrder(late.saturating_sub((-shift).max(0.0) as Nanos))
    }

    fn occupancy(&mut self, now: Nanos, size: u32, headers: &[Header]) -> Occupancy {
        let discipline = &self.general.discipline;
        let (idle_since, packets, bytes) = match (&self.general.staged, &self.general.wireless) {
            (Some(staged), _) => {
                let (packets, bytes) = staged.waiting(discipline);
                (staged.idle_since(discipline), packets, bytes)
            }
            (None, Some(wireless)) => {
                let (packets, bytes) = wireless.waiting(discipline);
                (wireless.idle_since(discipline), packets, bytes)
            }
            (None, None) => (
                self.line.idle_since(now),
                self.line.waiting_packets(now, headers),
                self.line.counted_bytes(now, headers),
            ),
        };
        let mut one = || match &mut self.general.wireless {
            Some(wireless) => wireless.duration(now, size),
            None => rate(&self.general.config)
                .map_or(0, |rate| serializer::duration(u64::from(size), rate)),
        };
        Occupancy {
            idle: idle_since.map(|since| Idle {
                since,
                packet_time: one().max(1),
            }),
            packets,
            bytes,
        }
    }

    /// When a packet queued now would leave the queue because it begins to be sent, if nothing changes; `None`: not known beforehand.
    pub fn clear_at(&self, now: Nanos) -> Option<Nanos> {
        match (&self.general.staged, &self.general.wireless) {
            (None, None) => Some(self.line.clear_at(now)),
            (Some(staged), _) if !self.general.discipline.sees_departures() => staged.clear_at(now),
            _ => None,
        }
    }

    pub fn count_drop(&mut self, reason: DropReason) {
        if reason.is_loss() {
            self.general.lost += 1;
        } else {
            self.general.dropped += 1;
        }
    }

    /// Packets and bytes that wait, the packet being sent not included.
    pub fn backlog(&mut self, now: Nanos, headers: &[Header]) -> (u64, u64) {
        let discipline = &self.general.discipline;
        match (&self.general.staged, &self.general.wireless) {
            (Some(staged), _) => staged.waiting(discipline),
            (None, Some(wireless)) => wireless.waiting(discipline),
            (None, None) => (
                self.line.waiting_packets(now, headers),
                self.line.waiting_bytes(now, headers),
            ),
        }
    }

    pub fn stats(&mut self, now: Nanos, headers: &[Header]) -> ChannelStats {
        let line = self.line.totals(now, headers);
        let staged = match (&self.general.staged, &self.general.wireless) {
            (Some(staged), _) => staged.totals(now),
            (None, Some(wireless)) => wireless.totals(now),
            (None, None) => (0, 0, 0, 0),
        };
        ChannelStats {
            sent_packets: line.0 + staged.0,
            sent_bytes: line.1 + staged.1,
            dropped_packets: self.general.dropped,
            lost_packets: self.general.lost,
            max_queue_packets: line.2.max(staged.2),
            busy: line.3 + staged.3,
        }
    }

    /// The time spent sending.
    pub fn busy(&mut self, now: Nanos) -> Nanos {
        let staged = match (&self.general.staged, &self.general.wireless) {
            (Some(staged), _) => staged.totals(now).3,
            (None, Some(wireless)) => wireless.totals(now).3,
            (None, None) => 0,
        };
        self.line.busy(now) + staged
    }

    /// Takes a new configuration and gives the packets that it loses.
    pub fn reconfigure<B>(
        &mut self,
        now: Nanos,
        config: ChannelConfig,
        store: &mut Store<B>,
        dropped: &mut Dropped,
    ) -> Vec<u32> {
        let old = std::mem::replace(&mut self.general.config, Arc::new(config));
        let lost = self.lose(now, &old, &store.headers);
        if self.general.config.queue != old.queue && !self.goes_on(now, store, dropped) {
            self.replace_discipline(store);
        }
        let headers = &store.headers;
        if self.general.config.loss != old.loss {
            self.general.loss = Loss::new(&self.general.config.loss);
        }
        if self.general.staged.is_none() && self.needs_stages() {
            self.stage(now, &old, store);
        }
        if (self.general.config.rate_bps, self.general.config.burst) != (old.rate_bps, old.burst) {
            let rate = rate(&self.general.config);
            match &mut self.general.staged {
                Some(staged) => {
                    staged.change_pacing(now, rate, self.general.config.burst);
                }
                None => self.line.change_rate(now, rate, headers),
            }
        }
        self.arrange(headers);
        lost
    }

    /// Has the discipline take new settings of its kind and drop what is beyond their limit, if it is one that does: whether it is.
    fn goes_on<B>(&mut self, now: Nanos, store: &mut Store<B>, dropped: &mut Dropped) -> bool {
        let (_, backlog) = self.backlog(now, &store.headers);
        let General {
            config,
            discipline,
            staged,
            wireless,
            ..
        } = &mut *self.general;
        if let Some(flows) = discipline.keeping() {
            let head = staged.as_ref().map_or(0, |staged| staged.head().0);
            return flows.change(now, &config.queue, head, store, dropped);
        }
        if !discipline.change(now, &config.queue, backlog) {
            return false;
        }
        if let Some(staged) = staged {
            staged.shorten(discipline, dropped);
        }
        if let Some(wireless) = wireless {
            wireless.shorten(discipline, dropped);
        }
        true
    }

    /// Another discipline takes over what waits.
    fn replace_discipline<B>(&mut self, store: &Store<B>) {
        let hashes = hashes(self.general.seed, self.general.id);
        let config = &self.general.config;
        let mut new = Discipline::new(&config.queue, config.longest_packet(), hashes);
        let discipline = &mut self.general.discipline;
        if let Some(staged) = &mut self.general.staged {
            staged.hand_over(discipline, &mut new, |slot| store.flow(slot));
        }
        if let Some(wireless) = &mut self.general.wireless {
            wireless.hand_over(discipline, &mut new, |slot| store.flow(slot));
        }
        *discipline = new;
    }

    /// Takes away what a link or an interface that goes down loses at once.
    fn lose(&mut self, now: Nanos, old: &ChannelConfig, headers: &[Header]) -> Vec<u32> {
        let new = &self.general.config;
        // A radio and its queue are one with the interface.
        let over_the_air = new.wifi.is_some() && old.works() && !new.works();
        if old.up && !new.up || over_the_air {
            return self.drain(now, headers);
        }
        if new.of_sender && old.sender_up && !new.sender_up {
            return self.withdraw(now, headers);
        }
        Vec::new()
    }

    /// Takes away what has not left (`dev_deactivate`).
    fn withdraw(&mut self, now: Nanos, headers: &[Header]) -> Vec<u32> {
        let entries = self.line.withdraw(now, headers).into_iter();
        let mut slots: Vec<u32> = entries.map(|entry| entry.slot).collect();
        if let Some(staged) = &mut self.general.staged {
            slots.extend(staged.withdraw(now));
        }
        self.reset_discipline(&mut slots);
        slots
    }

    /// Moves what is on the line to the general path, where the channel stays from then on.
    fn stage<B>(&mut self, now: Nanos, old: &ChannelConfig, store: &Store<B>) {
        let headers = &store.headers;
        let mut staged = Staged::new(now, rate(old), 0);
        let overhead = self.line.overhead;
        let contents = self.line.drain(now, headers);
        staged.take_over(now, contents, |slot| headers[slot as usize].len + overhead);
        staged.sort_in(&mut self.general.discipline, |slot| store.flow(slot));
        self.general.staged = Some(Box::new(staged));
    }

    fn drain(&mut self, now: Nanos, headers: &[Header]) -> Vec<u32> {
        let contents = self.line.drain(now, headers);
        let entries = contents.travelling.iter().chain(&contents.unsent);
        let mut slots: Vec<u32> = entries.map(|entry| entry.slot).collect();
        if let Some(staged) = &mut self.general.staged {
            slots.extend(staged.drain(now));
        }
        if let Some(wireless) = &mut self.general.wireless {
            slots.extend(wireless.drain());
        }
        self.reset_discipline(&mut slots);
        slots
    }

    /// All packets of the queue are gone, those that the discipline keeps itself included (`qdisc_reset`).
    fn reset_discipline(&mut self, slots: &mut Vec<u32>) {
        let kept = self.general.discipline.reset().into_iter();
        slots.extend(kept.map(|packet| packet.slot));
    }

    fn needs_stages(&self) -> bool {
        let config = &self.general.config;
        let reach = config
            .delay
            .saturating_add(config.jitter.saturating_mul(JITTER_REACH));
        if config.wifi.is_some() {
            return false;
        }
        config.trace.is_some()
            || config.burst > 0
            || config.bypass > 0
            || config.reorder > 0.0
            || reach > Nanos::from(u32::MAX)
            || self.general.discipline.sees_departures()
    }

    /// Sets up what follows from the configuration.
    fn arrange(&mut self, headers: &[Header]) {
        let config = &self.general.config;
        let (packets, bytes) = match &self.general.discipline {
            Discipline::DropTail(drop_tail) => drop_tail.limits(),
            _ => (u64::MAX, u64::MAX),
        };
        self.line.set_limit(packets);
        self.line.set_counts_bytes(bytes < u64::MAX, headers);
        self.line.lag = u32::try_from(config.delay).unwrap_or(u32::MAX);
        let faulty = config.loss != LossConfig::None
            || config.duplicate > 0.0
            || config.corrupt > 0.0
            || config.reorder > 0.0
            || config.jitter > 0;
        if faulty && self.general.streams.is_none() {
            self.general.streams = Some(Box::new(Streams::new(self.general.seed, self.general.id)));
        }
        let plain = config.works()
            && !config.of_sender
            && config.mtu.is_none()
            && !faulty
            && self.general.staged.is_none()
            && self.general.wireless.is_none()
            && bytes == u64::MAX
            && matches!(self.general.discipline, Discipline::DropTail { .. });
        let bits =
            u128::from(config.rate_bps.unwrap_or(0)) * u128::from(config.delay) / 1_000_000_000;
        self.general.long = plain && bits / USUAL_BITS > LONG;
        self.plain = plain && !self.general.long;
    }
}

/// Has a discipline by flow take a packet, behind so many at the head.
///
/// # Errors
/// Why it is that packet that makes room.
fn take_by_flow<B>(
    flows: &mut dyn QueueDiscipline,
    packet: Queued,
    flow: u32,
    head: u64,
    store: &mut Store<B>,
    dropped: &mut Dropped,
) -> Result<(), DropReason> {
    flows.arrive(packet, flow, head, store, dropped);
    match dropped.iter().position(|it| it.0 == packet.slot) {
        Some(at) => Err(dropped.remove(at).1),
        None => Ok(()),
    }
}
