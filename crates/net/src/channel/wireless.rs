//! The path of a channel over the air: a queue, the frames that a station sends together or repeats, and the packets in
//! flight.
//!
//! The [medium](crate::wifi::Medium) that it shares decides when it sends.

use std::sync::Arc;

use rand_pcg::Pcg64Mcg;

use super::backlog::Backlog;
use super::flight::Flight;
use crate::ids::{ChannelId, NEVER, Nanos};
use crate::packet::{DropReason, Store};
use crate::queue::{Discipline, Dropped, Queued};
use crate::random::{chance, stream};
use crate::wifi::{
    Airtime, BLOCK_ACK_WINDOW, Chain, LONGEST_PPDU, Psdu, Rate, SIFS, WifiConfig, Window,
};

/// What is on the air of this channel.
#[derive(Clone, Copy, Debug)]
struct OnAir {
    since: Nanos,
    taken: Nanos,
    error: f64,
}

fn airtime(psdu: Psdu, rate: Rate) -> Airtime {
    Airtime {
        data: rate.ppdu(psdu.bytes()),
        answer: SIFS + rate.answer(psdu.mpdus),
    }
}

#[derive(Debug)]
pub(crate) struct Wireless {
    config: Arc<WifiConfig>,
    /// The medium and the radio there.
    radio: (u32, usize),
    backlog: Backlog,
    window: Window,
    chain: Chain,
    errors: Pcg64Mcg,
    on_air: Option<OnAir>,
    idle_since: Nanos,
    flight: Flight,
    /// When the medium has its next event, at the channel that has its events.
    clock: Nanos,
    sent_packets: u64,
    sent_bytes: u64,
    max_waiting: u64,
    busy: Nanos,
}

impl Wireless {
    pub fn new(config: Arc<WifiConfig>, id: ChannelId, seed: u64) -> Self {
        let of = |purpose| stream(seed, "channel", u64::from(id.0), purpose);
        let window = if config.standard.aggregates() {
            BLOCK_ACK_WINDOW
        } else {
            1
        };
        Self {
            chain: Chain::new(&config.states, of("wifi rate")),
            errors: of("wifi error"),
            config,
            radio: (0, 0),
            backlog: Backlog::default(),
            window: Window::new(window),
            on_air: None,
            idle_since: 0,
            flight: Flight::default(),
            clock: NEVER,
            sent_packets: 0,
            sent_bytes: 0,
            max_waiting: 0,
            busy: 0,
        }
    }

    pub fn tune(&mut self, medium: u32, radio: usize) {
        self.radio = (medium, radio);
    }

    /// The medium and the radio there.
    pub fn radio(&self) -> (u32, usize) {
        self.radio
    }

    pub fn set_clock(&mut self, at: Nanos) {
        self.clock = at;
    }

    pub fn next_event(&self) -> Nanos {
        self.clock.min(self.flight.next_arrival())
    }

    /// Waiting packets and their bytes, those not included that were sent and are to go again.
    pub fn waiting(&self, discipline: &Discipline) -> (u64, u64) {
        self.backlog.waiting(discipline)
    }

    /// Whether there is anything to be sent.
    pub fn has_work(&self, discipline: &Discipline) -> bool {
        !self.window.is_empty() || self.waiting(discipline).0 > 0
    }

    /// Since when nothing waits and nothing is being sent, if that is so.
    pub fn idle_since(&self, discipline: &Discipline) -> Option<Nanos> {
        let idle = self.on_air.is_none() && !self.has_work(discipline);
        idle.then_some(self.idle_since)
    }

    /// As [`Backlog::hand_over`].
    pub fn hand_over(
        &mut self,
        from: &mut Discipline,
        to: &mut Discipline,
        flow_of: impl Fn(u32) -> u32,
    ) {
        self.backlog.hand_over(from, to, flow_of);
    }

    /// Drops from the head what the discipline holds no longer.
    pub fn shorten(&mut self, discipline: &Discipline, dropped: &mut Dropped) {
        self.backlog.shorten(discipline.holds(), dropped);
    }

    /// Takes an admitted packet.
    pub fn push(&mut self, packet: Queued) {
        self.backlog.push(packet);
    }

    /// A packet was taken.
    pub fn note_waiting(&mut self, discipline: &Discipline) {
        self.max_waiting = self.max_waiting.max(self.waiting(discipline).0);
    }

    /// Takes what is sent from now on: frames that failed, then new ones, as long as the aggregate keeps its bounds.
    pub fn begin<B>(
        &mut self,
        now: Nanos,
        discipline: &mut Discipline,
        store: &mut Store<B>,
        dropped: &mut Dropped,
    ) -> Option<Airtime> {
        let state = &self.config.states[self.chain.at(&self.config.states, now)];
        let (error, rate) = (state.error, self.config.rate(state)?);
        let mut psdu = Psdu::new(self.config.standard);
        let mut place = 0;
        loop {
            let Some((next, size)) = self.window.unsent(place) else {
                if !self.window.has_room() || psdu.mpdus >= u64::from(self.config.most_packets) {
                    break;
                }
                match self.backlog.release(now, discipline, store, dropped) {
                    Some(packet) => self.window.push(packet),
                    None => break,
                }
                continue;
            };
            let longer = psdu.with(size);
            if psdu.mpdus > 0 && !self.keeps_bounds(longer, rate) {
                break;
            }
            psdu = longer;
            self.window.put_on_air(next);
            place = next + 1;
        }
        if psdu.mpdus == 0 {
            return None;
        }
        let airtime = airtime(psdu, rate);
        self.on_air = Some(OnAir {
            since: now,
            taken: airtime.data + airtime.answer,
            error,
        });
        Some(airtime)
    }

    /// How long a packet of so many bytes takes by itself, from the air's falling idle to the end of the answer.
    pub fn duration(&mut self, now: Nanos, size: u32) -> Nanos {
        let state = &self.config.states[self.chain.at(&self.config.states, now)];
        let psdu = Psdu::new(self.config.standard).with(u64::from(size));
        self.config.rate(state).map_or(0, |rate| {
            let Airtime { data, answer } = airtime(psdu, rate);
            self.config.standard.space() + data + answer
        })
    }

    fn keeps_bounds(&self, psdu: Psdu, rate: Rate) -> bool {
        psdu.is_allowed()
            && psdu.mpdus <= u64::from(self.config.most_packets)
            && psdu.bytes() <= u64::from(self.config.most_bytes)
            && rate.ppdu(psdu.bytes()) <= self.config.most_airtime.min(LONGEST_PPDU)
    }

    /// What was begun has been sent: whether an answer comes.
    pub fn finish(&mut self, now: Nanos, collided: bool, dropped: &mut Dropped) -> bool {
        let Some(OnAir { taken, error, .. }) = self.on_air.take() else {
            return false;
        };
        self.busy += taken;
        self.idle_since = now;
        let errors = &mut self.errors;
        let answered = self.window.settle(
            self.config.attempts,
            || collided || chance(errors, error),
            |packet| dropped.push((packet.slot, DropReason::Loss)),
        );
        while let Some(packet) = self.window.deliver() {
            self.sent_packets += 1;
            self.sent_bytes += u64::from(packet.size);
            self.flight.leave(now, packet.slot, packet.travel);
        }
        answered
    }

    /// Takes out a packet that has arrived by `now`.
    pub fn arrive(&mut self, now: Nanos) -> Option<u32> {
        self.flight.arrive(now)
    }

    /// Packets and bytes delivered, the most that waited, and the time on the air, the answers' included.
    pub fn totals(&self, now: Nanos) -> (u64, u64, u64, Nanos) {
        let current = self.on_air.map_or(0, |it| it.taken.min(now - it.since));
        (
            self.sent_packets,
            self.sent_bytes,
            self.max_waiting,
            self.busy + current,
        )
    }

    /// Empties everything. What is on the air stays there, for nothing.
    pub fn drain(&mut self) -> Vec<u32> {
        let mut slots = self.flight.drain();
        slots.extend(self.window.drain().map(|packet| packet.slot));
        slots.extend(self.backlog.drain());
        slots
    }
}
