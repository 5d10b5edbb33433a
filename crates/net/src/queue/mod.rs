//! Queue disciplines: which packets a channel takes, marks or drops, and which leaves next.
//!
//! A discipline that keeps the order of arrival decides as packets arrive and as they leave. It is a file here. This
//! file has its variant of [`QueueConfig`], a line in each of its two functions, and a line in [`MODELS`].
//!
//! Any other discipline keeps packets itself, as a [`QueueDiscipline`]. It may be written elsewhere and added to the
//! [`REGISTRY`].

mod codel;
mod drop_tail;
mod drr;
mod dual_pi2;
mod flows;
mod fq_codel;
mod fq_pie;
mod pie;
mod red;
mod step;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::RngCore;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::Nanos;
use crate::packet::{DropReason, Store};
use codel::Codel;
pub use codel::CodelConfig;
use drop_tail::DropTail;
pub use drop_tail::DropTailConfig;
use drr::Drr;
pub use drr::DrrConfig;
use dual_pi2::DualPi2;
pub use dual_pi2::DualPi2Config;
use fq_codel::FqCodel;
pub use fq_codel::FqCodelConfig;
use fq_pie::FqPie;
pub use fq_pie::FqPieConfig;
use pie::Pie;
pub use pie::PieConfig;
use polypath_settings::{Added, Model, Registry, RegistryError};
use red::Red;
pub use red::RedConfig;
pub use step::StepConfig;

/// Those that are written elsewhere.
pub static REGISTRY: Registry<dyn QueueDiscipline> = Registry::new("queue discipline", &[]);

/// What can be said of every queue discipline.
pub fn models() -> Vec<Model> {
    let added = REGISTRY.describe();
    MODELS.iter().copied().chain(added).collect()
}

const MODELS: &[Model] = &[
    drop_tail::MODEL,
    red::MODEL,
    codel::MODEL,
    pie::MODEL,
    drr::MODEL,
    fq_codel::MODEL,
    step::MODEL,
    fq_pie::MODEL,
    dual_pi2::MODEL,
];

/// A queue discipline and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", remote = "Self")]
#[schemars(rename = "Queue")]
pub enum QueueConfig {
    DropTail(DropTailConfig),
    Red(RedConfig),
    Codel(CodelConfig),
    Pie(PieConfig),
    Drr(DrrConfig),
    FqCodel(FqCodelConfig),
    Step(StepConfig),
    FqPie(FqPieConfig),
    #[serde(rename = "dualpi2")]
    DualPi2(DualPi2Config),
    /// One of the [`REGISTRY`].
    #[serde(skip)]
    Added(Added),
}

impl Serialize for QueueConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Added(added) => added.serialize(serializer),
            _ => Self::serialize(self, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for QueueConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !REGISTRY.has_grown() {
            return Self::deserialize(deserializer);
        }
        let added = Self::Added;
        Added::read(&REGISTRY, deserializer, added, |table| {
            Self::deserialize(table)
        })
    }
}

impl Default for QueueConfig {
    /// Without a limit.
    fn default() -> Self {
        Self::DropTail(DropTailConfig {
            packets: None,
            bytes: None,
        })
    }
}

impl QueueConfig {
    /// # Errors
    /// The first setting that the discipline does not take.
    pub fn check(&self) -> Result<(), RegistryError> {
        match self {
            Self::DropTail(config) => config.within_bounds()?,
            Self::Red(config) => config.check()?,
            Self::Codel(config) => config.within_bounds()?,
            Self::Pie(config) => config.within_bounds()?,
            Self::Drr(config) => config.within_bounds()?,
            Self::FqCodel(config) => config.within_bounds()?,
            Self::Step(config) => config.within_bounds()?,
            Self::FqPie(config) => config.within_bounds()?,
            Self::DualPi2(config) => config.within_bounds()?,
            Self::Added(added) => drop(REGISTRY.make(&added.kind, &added.settings)?),
        }
        Ok(())
    }
}

/// What a discipline let fall: slots, and why.
pub type Dropped = Vec<(u32, DropReason)>;

/// How a packet gets from its departure to the far end.
#[derive(Clone, Copy, Debug)]
pub enum Travel {
    /// After this time, but not before those ahead.
    InOrder(Nanos),
    /// At once.
    Ahead,
}

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    pub slot: u32,
    pub size: u32,
    pub entered: Nanos,
    pub travel: Travel,
}

/// The ECN field of packets, by slot.
pub trait Marks {
    fn capable(&mut self, slot: u32) -> bool;
    /// Whether it is ECT(1) or CE.
    fn low_latency(&mut self, slot: u32) -> bool;
    fn mark(&mut self, slot: u32);
}

impl<B> Marks for Store<B> {
    fn capable(&mut self, slot: u32) -> bool {
        self.packet_mut(slot)
            .is_some_and(|packet| packet.ecn.capable())
    }

    fn low_latency(&mut self, slot: u32) -> bool {
        self.packet_mut(slot)
            .is_some_and(|packet| packet.ecn.low_latency())
    }

    fn mark(&mut self, slot: u32) {
        Store::mark(self, slot);
    }
}

/// A discipline that keeps the packets itself, each flow's apart if it likes, and decides whose turn it is.
pub trait QueueDiscipline: std::fmt::Debug + Send + Sync {
    /// Seeds what it draws at random.
    fn seed(&mut self, _seed: u64) {}

    /// Takes a packet that arrives, or drops it or others; so many wait at the head, as below.
    fn arrive(
        &mut self,
        packet: Queued,
        flow: u32,
        head: u64,
        _marks: &mut dyn Marks,
        dropped: &mut Dropped,
    ) {
        self.take(packet, flow);
        self.make_room(head, dropped);
    }

    /// Takes a packet, whatever the limit.
    fn take(&mut self, packet: Queued, flow: u32);

    /// Drops what is beyond the limit after a packet was taken; so many wait at the head, taken out before (`qdisc_peek_dequeued`).
    fn make_room(&mut self, head: u64, dropped: &mut Dropped);

    /// Takes new settings and drops what is beyond their limit, if it goes on with its flows under them: whether it does.
    fn change(
        &mut self,
        _now: Nanos,
        _config: &QueueConfig,
        _head: u64,
        _marks: &mut dyn Marks,
        _dropped: &mut Dropped,
    ) -> bool {
        false
    }

    /// The packet that leaves now.
    fn next(&mut self, now: Nanos, marks: &mut dyn Marks, dropped: &mut Dropped) -> Option<Queued>;

    /// Packets that wait, and their bytes.
    fn waiting(&self) -> (u64, u64);

    /// Forgets everything and gives the packets in order of arrival.
    fn drain(&mut self) -> Vec<Queued>;
}

/// The shortest turn of a flow in bytes, as Linux has it: much shorter ones only cost rounds.
const MIN_QUANTUM: u64 = 256;
const MOST_FLOWS: u64 = 1 << 16;

/// What a discipline makes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop(DropReason),
}

/// The queue as an arriving packet finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    /// Nothing waits and nothing is being sent.
    pub idle: Option<Idle>,
    /// Packets that wait, the one being sent not included.
    pub packets: u64,
    /// Their length, overhead included.
    pub bytes: u64,
}

/// A sender that has nothing to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub since: Nanos,
    /// What the arriving packet takes to be sent.
    pub packet_time: Nanos,
}

#[derive(Debug)]
pub(crate) enum Discipline {
    DropTail(DropTail),
    Red(Red),
    Codel(Codel),
    Pie(Pie),
    Step(StepConfig),
    Keeping(Box<dyn QueueDiscipline>),
}

impl Discipline {
    /// `longest`: what the link's longest packet takes; `rng`: the channel's own for hashes of flows.
    pub fn new(config: &QueueConfig, longest: u64, rng: impl FnOnce() -> Pcg64Mcg) -> Self {
        match config {
            QueueConfig::DropTail(config) => Self::DropTail(DropTail::new(*config)),
            QueueConfig::Red(config) => Self::Red(Red::new(*config)),
            QueueConfig::Codel(config) => Self::Codel(Codel::new(*config, longest)),
            QueueConfig::Pie(config) => Self::Pie(Pie::new(*config, longest)),
            QueueConfig::Drr(config) => Self::Keeping(Box::new(Drr::new(*config, &mut rng()))),
            QueueConfig::FqCodel(config) => {
                Self::Keeping(Box::new(FqCodel::new(*config, longest, &mut rng())))
            }
            QueueConfig::Step(config) => Self::Step(*config),
            QueueConfig::FqPie(config) => {
                Self::Keeping(Box::new(FqPie::new(*config, longest, &mut rng())))
            }
            QueueConfig::DualPi2(config) => {
                Self::Keeping(Box::new(DualPi2::new(*config, longest, &mut rng())))
            }
            QueueConfig::Added(added) => {
                let made = REGISTRY.make(&added.kind, &added.settings);
                let mut made = made.expect("the configuration was checked");
                made.seed(rng().next_u64());
                Self::Keeping(made)
            }
        }
    }

    /// Whether it has to see packets as they leave.
    pub fn sees_departures(&self) -> bool {
        matches!(self, Self::Codel(_) | Self::Pie(_) | Self::Keeping(_))
    }

    /// The discipline, if it keeps the packets itself.
    pub fn keeping(&mut self) -> Option<&mut dyn QueueDiscipline> {
        match self {
            Self::Keeping(flows) => Some(&mut **flows),
            _ => None,
        }
    }

    /// Packets that it keeps itself, and their bytes.
    pub fn waiting(&self) -> (u64, u64) {
        match self {
            Self::Keeping(flows) => flows.waiting(),
            _ => (0, 0),
        }
    }

    /// Takes new settings of its kind and goes on from where it is, if it is one that does (`codel_change`, `pie_change`): whether it is.
    /// `backlog`: bytes that wait.
    pub fn change(&mut self, now: Nanos, config: &QueueConfig, backlog: u64) -> bool {
        match (self, config) {
            (Self::Codel(codel), QueueConfig::Codel(config)) => codel.change(*config),
            (Self::Pie(pie), QueueConfig::Pie(config)) => pie.change(now, *config, backlog),
            _ => return false,
        }
        true
    }

    /// The most packets that may wait, if it is one that drops the others at once when that changes.
    pub fn holds(&self) -> u64 {
        match self {
            Self::Codel(codel) => codel.limit,
            Self::Pie(pie) => pie.limit(),
            _ => u64::MAX,
        }
    }

    /// Begins anew, as all packets are gone, and not by its leave. Gives those that it kept itself.
    pub fn reset(&mut self) -> Vec<Queued> {
        match self {
            Self::DropTail(_) | Self::Step(_) => {}
            Self::Red(red) => red.reset(),
            Self::Codel(codel) => codel.reset(),
            Self::Pie(pie) => pie.reset(),
            Self::Keeping(flows) => return flows.drain(),
        }
        Vec::new()
    }

    /// Decides on a packet of `size` bytes that arrives.
    pub fn admit(
        &mut self,
        now: Nanos,
        size: u32,
        ecn_capable: bool,
        queue: Occupancy,
        rng: &mut Pcg64Mcg,
    ) -> Verdict {
        let full = |limit: u64| queue.idle.is_none() && queue.packets >= limit;
        match self {
            Self::DropTail(drop_tail) => drop_tail.admit(size, queue),
            Self::Red(red) => {
                let verdict = red.admit(now, ecn_capable, queue, rng);
                if full(red.limit()) {
                    Verdict::Drop(DropReason::QueueFull)
                } else {
                    verdict
                }
            }
            Self::Step(config) => step::admit(*config, ecn_capable, queue),
            Self::Codel(codel) if full(codel.limit) => Verdict::Drop(DropReason::QueueFull),
            Self::Codel(_) | Self::Keeping(_) => Verdict::Pass,
            Self::Pie(pie) => {
                let full = full(pie.limit());
                pie.admit(now, ecn_capable, full, queue.bytes, rng)
            }
        }
    }

    /// Decides on a packet that would leave at `now` after waiting for `sojourn`; `bytes` wait behind it.
    pub fn release(
        &mut self,
        now: Nanos,
        size: u32,
        ecn_capable: bool,
        sojourn: Nanos,
        bytes: u64,
    ) -> Verdict {
        match self {
            Self::Codel(codel) => codel.release(now, ecn_capable, sojourn, bytes),
            Self::Pie(pie) => {
                pie.release(now, size, sojourn, bytes);
                Verdict::Pass
            }
            Self::DropTail(_) | Self::Red(_) | Self::Step(_) | Self::Keeping(_) => Verdict::Pass,
        }
    }
}
