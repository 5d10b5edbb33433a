//! The settings of a channel, and their changes during a run.

use std::sync::Arc;

use crate::channel::{Trace, TraceError};
use crate::ids::Nanos;
use crate::loss::LossConfig;
use crate::queue::QueueConfig;
use crate::wifi::WifiConfig;
use polypath_settings::RegistryError;

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelConfig {
    /// Bits per second, at most 10^15; `None`: no serialisation time and no queue.
    pub rate_bps: Option<u64>,
    /// When packets leave, in place of a rate; `rate_bps` is then what it gives on average.
    pub trace: Option<Arc<Trace>>,
    /// Sends over the air in place of a rate, which is then absent.
    pub wifi: Option<Arc<WifiConfig>>,
    /// Propagation delay.
    pub delay: Nanos,
    /// Link-layer bytes that each packet takes besides its IP length.
    pub overhead: u32,
    /// Depth of a token bucket in bytes (tc-tbf): a packet leaves at once while the bucket holds its length, and one that is longer
    /// than the bucket is dropped. 0: packets leave one after the other at the rate. Without a rate it waits for one, and the bucket is full then.
    pub burst: u64,
    pub queue: QueueConfig,
    /// Packets of up to this IP length neither wait nor take time to send: they cross beside all others, with the delay alone. 0: none does.
    pub bypass: u32,
    /// The queue is the sending host's own, which hears what it refuses ([`crate::Network::refusal`]).
    pub of_sender: bool,
    /// That host is told when packets leave the queue, too ([`crate::Network::queue_clear_at`]).
    pub tells_leaving: bool,
    pub loss: LossConfig,
    /// Standard deviation of normally distributed extra delay; packets keep their order.
    pub jitter: Nanos,
    /// Probability that a packet skips the propagation delay (tc-netem's reorder).
    pub reorder: f64,
    /// Probability that a copy enters the queue behind a packet.
    pub duplicate: f64,
    /// Probability that a packet is marked as corrupted.
    pub corrupt: f64,
    /// Longest IP packet in bytes; absent: any.
    pub mtu: Option<u32>,
    pub up: bool,
    /// The interface that packets leave by is up.
    pub sender_up: bool,
    /// The interface that packets arrive at is up.
    pub receiver_up: bool,
}

impl ChannelConfig {
    /// Bits per second that it sends at most to begin with; of a trace on average, over the air while data is sent.
    pub fn nominal_rate_bps(&self) -> Option<u64> {
        let wifi = || {
            let wifi = self.wifi.as_ref()?;
            Some(wifi.rate(wifi.states.first()?)?.bps())
        };
        self.rate_bps.or_else(wifi)
    }

    /// Whether its loss leaves no packet, as out of reach.
    pub fn loses_all(&self) -> bool {
        matches!(&self.loss, LossConfig::Random(random) if random.probability >= 1.0)
    }
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            rate_bps: None,
            trace: None,
            wifi: None,
            delay: 0,
            overhead: 14,
            burst: 0,
            queue: QueueConfig::default(),
            bypass: 0,
            of_sender: false,
            tells_leaving: false,
            loss: LossConfig::None,
            jitter: 0,
            reorder: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            mtu: None,
            up: true,
            sender_up: true,
            receiver_up: true,
        }
    }
}

/// What changes of a channel; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Re-times what is queued: the packet being sent finishes its remaining bits at the new rate.
    pub rate: Option<u64>,
    /// Of packets that enter from now on; they do not overtake those on their way.
    pub delay: Option<Nanos>,
    pub burst: Option<u64>,
    /// CoDel, PIE, DRR and FQ-CoDel go on from where they are and drop what is beyond a shorter limit at once; of the others one drops
    /// later arrivals, not what already waits.
    pub queue: Option<QueueConfig>,
    /// Of packets that enter from now on.
    pub loss: Option<LossConfig>,
    pub jitter: Option<Nanos>,
    pub reorder: Option<f64>,
    pub duplicate: Option<f64>,
    pub corrupt: Option<f64>,
    /// `false` loses what is queued and on its way, and everything that enters until `true`.
    pub up: Option<bool>,
    /// `false` loses what enters until `true`, and what waits at the sender: in its host's own queue, or for the air.
    pub sender_up: Option<bool>,
    /// `false` loses what arrives until `true`; over the air, what waits and what enters.
    pub receiver_up: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    #[error("{0} must be a probability between 0 and 1, not {1}")]
    Probability(&'static str, f64),
    #[error("the rate must lie between 1 and 10^15 bit/s, not {0}")]
    Rate(u64),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("a link that follows a trace cannot have another rate or a burst")]
    RateOfTrace,
    #[error("a Wi-Fi link cannot have a rate, a trace, a burst, or a queue in its sender")]
    RateOfWifi,
    #[error("both directions of a link must be Wi-Fi on one medium, or neither")]
    HalfWifi,
    #[error("a Wi-Fi link needs at least one state")]
    NoState,
    #[error(
        "a Wi-Fi link must send at least 1 packet, 1 byte and 1 ns at a time, and each at least once"
    )]
    NothingSent,
    #[error("{standard} has no MCS {mcs} in {width} MHz with {streams} streams")]
    Mcs {
        standard: &'static str,
        mcs: u32,
        width: u32,
        streams: u32,
    },
    #[error("the mean time in a state of a Wi-Fi link must be at least 1 ms")]
    Dwell,
    #[error(
        "a state of a Wi-Fi link needs the probability of each next state; they must add up to 1"
    )]
    Successors,
    #[error("a bypass needs a link that has its own rate and its queue at the link")]
    Bypass,
    #[error("the burst must be at most 2^30 bytes, not {0}")]
    Burst(u64),
    #[error("the overhead must be at most 65535 bytes, not {0}")]
    Overhead(u32),
    #[error(transparent)]
    Model(#[from] RegistryError),
}

/// MTU of a link that has none of its own, as of Ethernet.
const USUAL_MTU: u32 = 1500;
const MAX_RATE: u64 = 1_000_000_000_000_000;
const MAX_BURST: u64 = 1 << 30;

impl ChannelConfig {
    /// # Errors
    /// The first value that no channel can have.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.rate_bps {
            Some(rate) if rate == 0 || rate > MAX_RATE => return Err(ConfigError::Rate(rate)),
            _ => {}
        }
        if let Some(trace) = &self.trace {
            if self.rate_bps != Some(trace.mean_rate_bps(self.overhead)) || self.burst > 0 {
                return Err(ConfigError::RateOfTrace);
            }
        }
        if let Some(wifi) = &self.wifi {
            if self.rate_bps.is_some() || self.trace.is_some() || self.of_sender {
                return Err(ConfigError::RateOfWifi);
            }
            wifi.check()?;
        }
        if self.bypass > 0 && (self.rate_bps.is_none() || self.trace.is_some() || self.of_sender) {
            return Err(ConfigError::Bypass);
        }
        if self.burst > MAX_BURST {
            return Err(ConfigError::Burst(self.burst));
        }
        if self.overhead > u32::from(u16::MAX) {
            return Err(ConfigError::Overhead(self.overhead));
        }
        probability("reorder", self.reorder)?;
        probability("duplicate", self.duplicate)?;
        probability("corrupt", self.corrupt)?;
        self.queue.check()?;
        self.loss.check()?;
        Ok(())
    }

    /// Bytes of the longest packet, overhead included (`psched_mtu`).
    pub(crate) fn longest_packet(&self) -> u64 {
        u64::from(self.mtu.unwrap_or(USUAL_MTU)) + u64::from(self.overhead)
    }

    /// Whether the channel and the interfaces at its ends are up.
    pub fn works(&self) -> bool {
        self.up && self.sender_up && self.receiver_up
    }

    /// The configuration after a change.
    pub(crate) fn with(&self, change: &Change) -> Self {
        Self {
            rate_bps: change.rate.or(self.rate_bps),
            trace: self.trace.clone(),
            wifi: self.wifi.clone(),
            delay: change.delay.unwrap_or(self.delay),
            overhead: self.overhead,
            burst: change.burst.unwrap_or(self.burst),
            queue: change.queue.clone().unwrap_or_else(|| self.queue.clone()),
            bypass: self.bypass,
            of_sender: self.of_sender,
            tells_leaving: self.tells_leaving,
            loss: change.loss.clone().unwrap_or_else(|| self.loss.clone()),
            jitter: change.jitter.unwrap_or(self.jitter),
            reorder: change.reorder.unwrap_or(self.reorder),
            duplicate: change.duplicate.unwrap_or(self.duplicate),
            corrupt: change.corrupt.unwrap_or(self.corrupt),
            mtu: self.mtu,
            up: change.up.unwrap_or(self.up),
            sender_up: change.sender_up.unwrap_or(self.sender_up),
            receiver_up: change.receiver_up.unwrap_or(self.receiver_up),
        }
    }
}

pub(crate) fn probability(name: &'static str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::Probability(name, value))
    }
}
