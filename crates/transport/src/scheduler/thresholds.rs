//! Thresholds on the round trip and the loss of a path (3GPP TS 23.501 clause 5.32.8, "Threshold Values").
//!
//! A path that exceeds one counts as congested. The specification leaves open how an access is measured:
//!
//! - The round trip is the smoothed one. A path without packets in flight has emptied its queues, so its last round trips say
//!   nothing, and it exceeds no threshold.
//! - The loss is that of OLIA (Khalili et al., CoNEXT 2012, section 4). It is one packet in as many as were acknowledged between
//!   the last two losses or since the last, whichever is more. An episode of recovery counts once.

use polypath_settings::{Given, Group, Measure, ModelError, Parameter, Value};

use crate::Nanos;
use crate::path::{CaState, Path};

const RTT: &str = "rtt_threshold_ms";
const LOSS: &str = "loss_threshold_percent";

/// The settings of a scheduler with thresholds.
pub(super) const OFF: &[Parameter] = &[
    Parameter::new::<Option<f64>>(
        RTT,
        Measure::Number,
        "smoothed round trip beyond which a path with packets in flight is congested; left out: any will do",
    )
    .within(0.0, 60_000.0)
    .or(Value::Absent(())),
    Parameter::new::<Option<f64>>(
        LOSS,
        Measure::Number,
        "losses for each hundred packets acknowledged beyond which a path is congested; left out: any will do",
    )
    .within(0.0, 100.0)
    .or(Value::Absent(())),
];

/// The thresholds of a scheduler; absent: none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thresholds {
    rtt: Option<Nanos>,
    /// Losses of an acknowledged packet.
    loss: Option<f64>,
}

impl Group for Thresholds {
    fn take(given: &Given) -> Result<Self, ModelError> {
        let rtt_ms: Option<f64> = given.take(RTT)?;
        let percent: Option<f64> = given.take(LOSS)?;
        Ok(Self {
            rtt: rtt_ms.map(|ms| (ms * 1e6) as Nanos),
            loss: percent.map(|percent| percent / 100.0),
        })
    }
}

/// What was seen of a path's losses.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    state: CaState,
    /// Bytes acknowledged when the last episode began, and before it since the one before.
    last: Option<u64>,
    before: u64,
}

impl Losses {
    fn see(&mut self, path: &Path) {
        let recovers = |state| state >= CaState::Recovery;
        if recovers(path.state) && !recovers(self.state) {
            let begun = self.last.unwrap_or(0);
            self.before = path.acked - begun;
            self.last = Some(path.acked);
        }
        self.state = path.state;
    }

    /// None before the first.
    fn rate(&self, path: &Path) -> Option<f64> {
        let between = self.before.max(path.acked - self.last?);
        Some(f64::from(path.mss) / between.max(path.mss.into()) as f64)
    }
}

/// The thresholds, and what was seen of each path.
#[derive(Default)]
pub(super) struct Judge {
    thresholds: Thresholds,
    losses: Vec<Losses>,
}

impl Judge {
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            losses: Vec::new(),
        }
    }

    /// Takes note of how the paths are; before each decision.
    pub fn see(&mut self, paths: &[Path]) {
        if self.thresholds.loss.is_some() {
            self.losses.resize(paths.len(), Losses::default());
            for (losses, path) in self.losses.iter_mut().zip(paths) {
                losses.see(path);
            }
        }
    }

    /// Whether a path exceeds a threshold.
    pub fn exceeds(&self, paths: &[Path], index: usize) -> bool {
        let path = &paths[index];
        let slow = |limit| path.in_flight > 0 && path.srtt > limit;
        let lossy = |limit| {
            let rate = self.losses.get(index).and_then(|losses| losses.rate(path));
            rate.is_some_and(|rate| rate > limit)
        };
        self.thresholds.rtt.is_some_and(slow) || self.thresholds.loss.is_some_and(lossy)
    }
}
