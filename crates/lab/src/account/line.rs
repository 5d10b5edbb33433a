//! One of the links that bound a connection: what it could carry, what it carried, and why it idled.

use std::collections::BTreeMap;
use std::sync::Arc;

use polypath_net::{ChannelConfig, ChannelId, Nanos, Network, Trace};

use super::cause::{Cause, Charge, Kind, PARTS};
use super::demand::Demand;
use super::waiting::Waiting;
use crate::flow::Body;

/// What a link is sent in a second is reckoned in bits times nanoseconds, so that nothing is rounded before it is told.
const UNITS: i128 = 8_000_000_000;

/// What a link could carry.
#[derive(Clone, Debug)]
enum Supply {
    /// Bit/s.
    Rate(u64),
    /// So many bytes at each of its times.
    Trace(Arc<Trace>, u32),
    /// Over the air: while it idles as much as it carried in its time on the air up to then.
    Air,
}

impl Supply {
    fn of(config: &ChannelConfig) -> Self {
        match (&config.trace, &config.wifi, config.rate_bps) {
            (Some(trace), ..) => Self::Trace(
                trace.clone(),
                polypath_net::OPPORTUNITY_BYTES + config.overhead,
            ),
            (None, None, Some(rate)) => Self::Rate(rate),
            _ => Self::Air,
        }
    }
}

/// How a link's counters stood.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at: Nanos,
    busy: Nanos,
    bytes: u64,
}

impl Reading {
    /// Bytes are counted packet by packet, and only where a rate does not tell them.
    fn of(network: &mut Network<Body>, channel: ChannelId, supply: &Supply) -> Self {
        Self {
            at: network.now(),
            busy: polypath_net::busy(network, channel),
            bytes: match supply {
                Supply::Rate(_) => 0,
                Supply::Trace(..) | Supply::Air => network.stats(channel).sent_bytes,
            },
        }
    }
}

/// A subflow over the link, and what holds it.
#[derive(Clone, Copy, Debug)]
struct Holding {
    lane: u32,
    charge: Charge,
}

#[derive(Debug)]
pub(super) struct Line {
    pub channel: ChannelId,
    pub link: u32,
    pub forward: bool,
    supply: Supply,
    /// Link-layer bytes of a packet.
    pub overhead: u32,
    open: bool,
    last: Reading,
    /// What it sent by its own counters, and what it could have sent while it idled, in units.
    carried: i128,
    idled: BTreeMap<Cause, i128>,
    /// Bytes that arrived at its far end.
    arrived: BTreeMap<Cause, u64>,
    /// Packets of the end in its queue or on it.
    pub waiting: Waiting,
    delay: Nanos,
    holdings: Vec<Holding>,
    /// Why it idles where no subflow is over it.
    without: Cause,
    current: Charge,
}

impl Line {
    pub fn new(
        network: &mut Network<Body>,
        channel: ChannelId,
        (link, forward): (u32, bool),
        without: Cause,
    ) -> Self {
        let mut line = Self {
            channel,
            link,
            forward,
            supply: Supply::Air,
            overhead: 0,
            open: true,
            last: Reading::default(),
            carried: 0,
            idled: BTreeMap::new(),
            arrived: BTreeMap::new(),
            waiting: Waiting::default(),
            delay: 0,
            holdings: Vec::new(),
            without,
            current: without.into(),
        };
        line.read_configuration(network);
        line.last = Reading::of(network, channel, &line.supply);
        line
    }

    /// Charges the time since the last call to what happened in it.
    pub fn settle(&mut self, network: &mut Network<Body>, demand: &Demand) {
        if network.now() == self.last.at {
            return;
        }
        let (last, now) = (self.last, Reading::of(network, self.channel, &self.supply));
        let time = i128::from(now.at - last.at);
        let busy = i128::from(now.busy.saturating_sub(last.busy));
        let sent = i128::from(now.bytes.saturating_sub(last.bytes)) * UNITS;
        let (carried, idled) = match &self.supply {
            Supply::Rate(rate) => {
                let carried = i128::from(*rate) * busy;
                (carried, i128::from(*rate) * time - carried)
            }
            Supply::Trace(trace, bytes) => {
                let offered = trace.until(now.at) - trace.until(last.at);
                let offered = i128::from(offered) * i128::from(*bytes) * UNITS;
                (sent, offered - sent)
            }
            Supply::Air => {
                let all = i128::from(now.bytes) * UNITS;
                let rate = all.checked_div(i128::from(now.busy)).unwrap_or(0);
                (sent, rate * (time - busy).max(0))
            }
        };
        self.carried += carried;
        self.charge(idled, demand);
        self.last = now;
    }

    /// Charges what it could have sent while it idled to what held the end: its part of that, where others wanted more as well.
    fn charge(&mut self, units: i128, demand: &Demand) {
        let Charge { cause, coupling } = self.current;
        let wanting = match cause.kind.wants() {
            true => demand.of(self.channel).max(1),
            false => 1,
        };
        let own = units / i128::from(wanting);
        let coupled = own * i128::from(coupling) / i128::from(PARTS);
        let parts = [
            (cause, own - coupled),
            (Cause::of(Kind::Coupling), coupled),
            (Cause::of(Kind::Shared), units - own),
        ];
        for (cause, units) in parts.into_iter().filter(|it| it.1 != 0) {
            *self.idled.entry(cause).or_default() += units;
        }
    }

    /// A packet of others arrived at the far end. If the end waited behind it, that is what kept it from more; if it wanted nothing, its own
    /// cause did; otherwise they had what the end left them.
    pub fn pass_other(&mut self, now: Nanos, bytes: u64) {
        if self.waiting.any_since(now.saturating_sub(self.delay)) {
            return self.arrive(Cause::of(Kind::Others), bytes);
        }
        let cause = self.current.cause;
        if cause.kind.wants() {
            return self.arrive(Cause::of(Kind::Shared), bytes);
        }
        self.arrive(cause, bytes);
    }

    /// To be called when the link's configuration may have changed.
    pub fn reconfigure(&mut self, network: &mut Network<Body>, demand: &mut Demand) {
        self.settle(network, demand);
        self.read_configuration(network);
        self.last = Reading::of(network, self.channel, &self.supply);
        self.choose(demand);
    }

    fn read_configuration(&mut self, network: &Network<Body>) {
        if let Ok(config) = network.config(self.channel) {
            self.supply = Supply::of(config);
            self.overhead = config.overhead;
            self.delay = config.delay;
            self.open = config.up && config.sender_up && config.receiver_up && !config.loses_all();
        }
    }

    /// What holds a subflow is another thing from now on.
    pub fn hold(
        &mut self,
        network: &mut Network<Body>,
        demand: &mut Demand,
        lane: u32,
        charge: Charge,
    ) {
        self.settle(network, demand);
        match self.holdings.iter_mut().find(|it| it.lane == lane) {
            Some(holding) => holding.charge = charge,
            None => self.holdings.push(Holding { lane, charge }),
        }
        self.choose(demand);
    }

    /// Where no subflow is over it, this is why from now on.
    pub fn lie_idle(&mut self, network: &mut Network<Body>, demand: &mut Demand, cause: Cause) {
        self.settle(network, demand);
        self.without = cause;
        self.choose(demand);
    }

    fn choose(&mut self, demand: &mut Demand) {
        let before = self.current.cause.kind.wants();
        let nearest = (self.holdings.iter().rev()).max_by_key(|it| it.charge.cause.kind.nearness());
        self.current = match nearest {
            _ if !self.open => Cause::at(Kind::Down, self.link).into(),
            Some(holding) => holding.charge,
            None => self.without.into(),
        };
        demand.change(self.channel, before, self.current.cause.kind.wants());
    }

    /// Nothing more is charged.
    pub fn close(&mut self, network: &mut Network<Body>, demand: &mut Demand) {
        self.settle(network, demand);
        demand.change(self.channel, self.current.cause.kind.wants(), false);
    }

    /// Packets of `bytes` that it sends in so long a time; nothing over the air.
    pub fn packets_in(&self, time: Nanos, bytes: u32) -> u32 {
        let rate = match &self.supply {
            Supply::Rate(rate) => *rate,
            Supply::Trace(trace, _) => trace.mean_rate_bps(self.overhead),
            Supply::Air => 0,
        };
        let bits = u128::from(rate) * u128::from(time) / 1_000_000_000;
        u32::try_from(bits / u128::from(8 * bytes.max(1))).unwrap_or(u32::MAX)
    }

    /// Bytes arrived at the far end.
    pub fn arrive(&mut self, cause: Cause, bytes: u64) {
        if bytes > 0 {
            *self.arrived.entry(cause).or_default() += bytes;
        }
    }

    /// Data that had arrived was lost on a later link.
    pub fn lose_behind(&mut self, link: u32, bytes: u64) {
        let delivered = self.arrived.entry(Cause::of(Kind::Delivered)).or_default();
        let lost = bytes.min(*delivered);
        *delivered -= lost;
        self.arrive(Cause::at(Kind::LostBehind, link), lost);
    }

    /// Whether it carried data of the connection.
    pub fn used(&self) -> bool {
        self.arrived.contains_key(&Cause::of(Kind::Delivered))
    }

    /// Bytes by cause. Their sum is what the link could have carried.
    pub fn totals(&self) -> BTreeMap<Cause, i64> {
        let bytes = |units: i128| units.div_euclid(UNITS) as i64;
        let arrived = self.arrived.values().sum::<u64>();
        let under_way = bytes(self.carried) - arrived as i64;
        let mut totals = BTreeMap::from([(Cause::of(Kind::UnderWay), under_way)]);
        let sent = self
            .arrived
            .iter()
            .map(|(&cause, &count)| (cause, count as i64));
        let idled = self
            .idled
            .iter()
            .map(|(&cause, &units)| (cause, bytes(units)));
        for (cause, count) in sent.chain(idled) {
            *totals.entry(cause).or_default() += count;
        }
        totals
    }
}
