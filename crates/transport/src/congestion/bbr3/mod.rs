//! BBR, version 3 (draft-ietf-ccwg-bbr-06, whose sections stand beside the rules; Google's v3 branch of Linux).
//!
//! As version 1 it sets rate and window by a model of the path. The model has bounds that losses lower, and probes for more are rarer.
//! Windows count packets. A mark (ECN) is congestion as a loss is: section 3.7 asks for that, and specifies no other response.

mod cycle;
mod full;
mod model;
mod round_trip;
mod signals;
mod undo;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::bbr::aggregation::Stretch;
use super::bbr::filter::Maximum;
use super::bbr::kept::Kept;
use super::bbr::pace::{Pace, product};
use super::bbr::rounds::Rounds;
use super::{Ack, CongestionControl, LostPacket, RateSample, Restart};
use crate::path::{CaState, INFINITE_SSTHRESH, Member, Path, burst};
use crate::{Nanos, SECOND};
use cycle::{Cycle, Feedback};
use full::FullPipe;
use model::{LEAST, Model, UNBOUND, flight_at_loss, too_high};
use polypath_settings::{Algorithm, algorithm};
use round_trip::RoundTrip;
use signals::Signals;
use undo::Undo;

algorithm! {
    "bbr3",
    "BBR version 3 on each path by itself: as version 1, but losses and marks (ECN) bound its rate and window, and it leaves room for Reno and CUBIC",
    "draft-ietf-ccwg-bbr-06; Google's tcp_bbr.c, branch v3";
    Bbr3
}

impl Algorithm<dyn CongestionControl> for Bbr3 {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(self)
    }
}

/// The states of section 3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Mode {
    /// Of pacing rate and window (section 5.6.1).
    fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (STARTUP_GAIN, WINDOW_GAIN),
            Self::Drain => (0.5, WINDOW_GAIN),
            Self::Down => (0.9, WINDOW_GAIN),
            Self::Cruise | Self::Refill => (1.0, WINDOW_GAIN),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, PROBE_RTT_GAIN),
        }
    }

    fn is_probe_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// `IsProbingBW`.
    fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// 4 ln 2: the rate doubles each round trip.
const STARTUP_GAIN: f64 = 2.77;
const WINDOW_GAIN: f64 = 2.0;
const PROBE_RTT_GAIN: f64 = 0.5;
/// Drain is over after so many round trips (section 5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// Round trips over which aggregation's maximum is taken; one in Startup (section 5.5.9).
const AGGREGATION_ROUNDS: u64 = 10;

/// How much more is acknowledged at once than the bandwidth explains (section 5.5.9).
#[derive(Debug, Default)]
struct Aggregation {
    stretch: Stretch,
    most: Maximum,
}

pub(super) struct Bbr3 {
    random: Pcg64Mcg,
    mode: Mode,
    rounds: Rounds,
    /// The round in which Drain began.
    drain_since: u64,
    round_trip: RoundTrip,
    model: Model,
    signals: Signals,
    full: FullPipe,
    cycle: Cycle,
    kept: Kept,
    undo: Undo,
    aggregation: Aggregation,
    pace: Pace,
    /// The first window, for as long as there is no RTT.
    first_window: u32,
    flags: Flags,
}

#[derive(Debug, Default)]
struct Flags {
    after_idle: bool,
    /// A mark was told that was not yet answered.
    marked: bool,
}

impl Default for Bbr3 {
    fn default() -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(0),
            mode: Mode::Startup,
            rounds: Rounds::default(),
            drain_since: 0,
            round_trip: RoundTrip::default(),
            model: Model::default(),
            signals: Signals::default(),
            full: FullPipe::default(),
            cycle: Cycle::default(),
            kept: Kept::default(),
            undo: Undo::default(),
            aggregation: Aggregation::default(),
            pace: Pace::new(STARTUP_GAIN),
            first_window: 0,
            flags: Flags::default(),
        }
    }
}

impl Bbr3 {
    /// `BDPMultiple` (section 5.6.4.2).
    fn product(&self, bandwidth: f64, gain: f64) -> u32 {
        match self.round_trip.least {
            Some(rtt) => product(bandwidth, rtt, gain),
            None => self.first_window,
        }
    }

    /// `QuantizationBudget` (sections 5.5.8, 5.6.3 and 5.6.4.2).
    fn with_room(&self, packets: u32, path: &Path, sample: &RateSample) -> u32 {
        let quantum = burst(path.pacing_rate, path.mss).max(2);
        let more = if self.mode == Mode::Up { 2 } else { 0 };
        packets.max(sample.held_bursts * quantum).max(LEAST) + more
    }

    /// `Inflight(1.0)` at this bandwidth.
    fn enough(&self, bandwidth: f64, path: &Path, sample: &RateSample) -> u32 {
        self.with_room(self.product(bandwidth, 1.0), path, sample)
    }

    /// `TargetInflight` (section 5.3.3.8).
    fn target(&self, path: &Path) -> u32 {
        self.product(self.model.bandwidth, 1.0).min(path.cwnd)
    }

    /// `ProbeRTTCwnd` (section 5.6.4.5).
    fn probe_rtt_window(&self) -> u32 {
        self.product(self.model.bandwidth, PROBE_RTT_GAIN)
            .max(LEAST)
    }

    fn set_rate(&mut self, path: &mut Path, gain: f64) {
        let full = self.full.reached;
        self.pace.set(path, self.model.bandwidth, gain, full);
    }

    fn save_window(&mut self, path: &Path) {
        self.kept.save(path, self.mode == Mode::ProbeRtt);
    }

    /// `NoteLoss` (section 5.5.10.2).
    fn note_congestion(&mut self, path: &Path, delivered: u64) {
        if self.signals.note(delivered) {
            self.save_window(path);
            self.undo.save(&self.model);
        }
    }

    /// `HandleInflightTooHigh`. A sample that the application limited sets no bound.
    fn answer_excess(&mut self, path: &Path, now: Nanos, in_flight: u32, app_limited: bool) {
        self.cycle.too_high = true;
        self.cycle.samples = false;
        if !app_limited {
            let target = self.target(path);
            self.model.cap_flight(in_flight, target);
        }
        if self.mode == Mode::Up {
            self.undo.ended = Some(Mode::Up);
            self.go_down(now);
        }
    }

    /// A mark is congestion (section 3.7): a loss in its round trip, and one too many where bandwidth is probed for.
    fn answer_mark(&mut self, path: &Path, ack: &Ack, sample: &RateSample) {
        if !std::mem::take(&mut self.flags.marked) {
            return;
        }
        self.note_congestion(path, sample.delivered);
        if self.mode == Mode::Startup {
            // The first mark ends slow start (RFC 3168 section 6.1.2).
            self.end_startup();
        } else if let (true, Some(interval)) = (self.cycle.samples, sample.interval) {
            self.answer_excess(path, ack.now, interval.in_flight, interval.app_limited);
        }
    }

    /// `UpdateCongestionSignals` (section 5.5.10.3).
    fn update_signals(&mut self, path: &Path, rate: f64, sample: &RateSample) {
        self.model.take(rate, sample);
        if self.signals.round_over {
            if self.signals.congested && !self.mode.accelerates() {
                self.model.lower(&self.signals, path.cwnd);
            }
            self.signals.congested = false;
        }
    }

    /// `UpdateACKAggregation` (section 5.5.9).
    fn update_aggregation(&mut self, path: &Path, ack: &Ack, sample: &RateSample) {
        if ack.packets == 0 || sample.interval.is_none() {
            return;
        }
        let bandwidth = self.model.bandwidth;
        let aggregation = &mut self.aggregation;
        let more = aggregation.stretch.take(ack.now, ack.packets, bandwidth);
        let window = if self.full.reached {
            AGGREGATION_ROUNDS
        } else {
            1
        };
        let more = f64::from(more.min(path.cwnd));
        aggregation.most.add(self.rounds.count, more, window - 1);
    }

    /// What `CheckStartupHighLoss` does (section 5.3.1.3).
    fn end_startup(&mut self) {
        self.undo.ended = Some(Mode::Startup);
        self.full.reached = true;
        let product = self.product(self.model.bandwidth, 1.0);
        self.model.long_flight = product.max(self.signals.in_flight);
    }

    /// `CheckStartupDone` and `CheckDrainDone` (sections 5.3.1 and 5.3.2).
    fn check_startup_and_drain(&mut self, path: &mut Path, ack: &Ack, sample: &RateSample) {
        if self.mode == Mode::Startup {
            let excess = sample.interval.is_some_and(|interval| {
                too_high(interval.lost, interval.in_flight, sample.selective)
            });
            let recovers = path.state == CaState::Recovery;
            if !self.full.reached && recovers && excess && self.signals.much_lost(sample) {
                self.end_startup();
            }
            if self.full.reached {
                self.mode = Mode::Drain;
                self.drain_since = self.rounds.count;
                path.ssthresh = self.enough(self.model.most_bandwidth(), path, sample);
            }
        }
        if self.mode == Mode::Drain {
            let enough = self.enough(self.model.bandwidth, path, sample);
            let late = self.rounds.count > self.drain_since + DRAIN_ROUNDS;
            if path.in_flight <= enough || late {
                self.go_down(ack.now);
            }
        }
    }

    /// `StartProbeBW_DOWN` (section 5.3.3.9).
    fn go_down(&mut self, now: Nanos) {
        self.signals.reset();
        self.cycle.go_down(now, &mut self.random);
        self.rounds.begin();
        self.mode = Mode::Down;
    }

    /// `StartProbeBW_REFILL`.
    fn refill(&mut self) {
        self.model.forget_congestion();
        self.cycle.refill();
        self.rounds.begin();
        self.mode = Mode::Refill;
    }

    /// `StartProbeBW_UP`.
    fn go_up(&mut self, path: &Path, rate: f64) {
        self.cycle.go_up(path.cwnd);
        self.rounds.begin();
        self.full.restart(rate);
        self.mode = Mode::Up;
    }

    /// `UpdateProbeBWCyclePhase`.
    fn update_cycle(&mut self, path: &Path, ack: &Ack, rate: f64, sample: &RateSample) {
        if !self.full.reached || self.adapt_long_term(path, ack, sample) {
            return;
        }
        // As Linux, with what was in flight before the ACK: after it a full window never is.
        let in_flight = sample.in_flight_before;
        let mode = self.mode;
        match mode {
            Mode::Down | Mode::Cruise if self.cycle.is_due(ack.now, self.target(path)) => {
                self.refill();
            }
            Mode::Down => {
                let enough = self.enough(self.model.most_bandwidth(), path, sample);
                if in_flight <= self.model.with_headroom().min(enough) {
                    self.mode = Mode::Cruise;
                }
            }
            Mode::Refill if self.rounds.started => self.go_up(path, rate),
            Mode::Up if self.is_time_to_go_down(path, ack, rate, in_flight) => {
                self.cycle.too_high = false;
                self.go_down(ack.now);
            }
            _ => {}
        }
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, path: &Path, ack: &Ack, rate: f64, in_flight: u32) -> bool {
        if self.cycle.too_high && in_flight >= self.model.long_flight {
            self.cycle.cautious = true;
            return true;
        }
        if ack.cwnd_limited && path.cwnd >= self.model.long_flight {
            self.full.restart(rate);
            return false;
        }
        self.full.now
    }

    /// `AdaptLongTermModel`. Whether it began another state.
    fn adapt_long_term(&mut self, path: &Path, ack: &Ack, sample: &RateSample) -> bool {
        let started = self.rounds.started;
        let limited = sample.interval.is_none_or(|interval| interval.app_limited);
        match self.cycle.feedback {
            Feedback::Starting if started => self.cycle.feedback = Feedback::Some,
            Feedback::Stopping if started => {
                self.cycle.samples = false;
                self.cycle.feedback = Feedback::None;
                let probes = self.mode.is_probe_bandwidth();
                if probes && !limited {
                    self.model.advance();
                }
                if probes && self.cycle.cautious && !self.cycle.too_high {
                    self.refill();
                    return true;
                }
            }
            _ => {}
        }
        let Some(interval) = sample.interval else {
            return false;
        };
        let excess = too_high(interval.lost, interval.in_flight, sample.selective);
        if excess || self.model.long_flight == UNBOUND {
            return false;
        }
        self.model.long_flight = self.model.long_flight.max(interval.in_flight);
        let held = ack.cwnd_limited && path.cwnd >= self.model.long_flight;
        if self.mode == Mode::Up && held {
            let more = self.cycle.raise(ack.packets, path.cwnd, started);
            self.model.long_flight = self.model.long_flight.saturating_add(more);
        }
        false
    }

    /// `CheckProbeRTT` (section 5.3.4.3). True in ProbeRTT: what is sent there says nothing of the bandwidth.
    fn check_probe_rtt(&mut self, path: &mut Path, ack: &Ack, sample: &RateSample) -> bool {
        let due = self.round_trip.expired && !self.flags.after_idle;
        if self.mode != Mode::ProbeRtt && due {
            self.save_window(path);
            self.mode = Mode::ProbeRtt;
            self.round_trip.drain();
            self.cycle.feedback = Feedback::Stopping;
            self.rounds.begin();
        }
        let probes = self.mode == Mode::ProbeRtt;
        if probes {
            let small = path.in_flight <= self.probe_rtt_window();
            if (self.round_trip).hold(ack.now, small, self.rounds.started) {
                self.rounds.begin();
            } else if self.round_trip.round_over() {
                self.check_probe_rtt_done(path, ack.now);
            }
        }
        if sample.interval.is_some_and(|interval| interval.packets > 0) {
            self.flags.after_idle = false;
        }
        probes
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT` (section 5.3.4.4).
    fn check_probe_rtt_done(&mut self, path: &mut Path, now: Nanos) {
        if !self.round_trip.done(now) {
            return;
        }
        self.kept.restore(path);
        self.model.forget_congestion();
        if self.full.reached {
            self.go_down(now);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// `SetCwnd` (sections 5.6.4.4 to 5.6.4.7).
    fn set_window(&mut self, path: &mut Path, acked: u32, sample: &RateSample) {
        if self.kept.state >= CaState::Recovery && path.state < CaState::Recovery {
            self.kept.restore(path);
        }
        self.kept.state = path.state;
        if acked > 0 {
            let (_, gain) = self.mode.gains();
            let clumps = self.aggregation.most.get() as u32;
            let product = self.product(self.model.bandwidth, gain);
            let most = self.with_room(product + clumps, path, sample);
            if self.full.reached {
                path.cwnd = (path.cwnd + acked).min(most);
            } else if path.cwnd < most || sample.delivered < u64::from(self.first_window) {
                path.cwnd += acked;
            }
            path.cwnd = path.cwnd.max(LEAST);
        }
        let cap = match self.mode {
            Mode::ProbeRtt => self.probe_rtt_window().min(self.model.with_headroom()),
            Mode::Cruise => self.model.with_headroom(),
            Mode::Down | Mode::Refill | Mode::Up => self.model.long_flight,
            Mode::Startup | Mode::Drain => UNBOUND,
        };
        let cap = cap.min(self.model.short_flight).max(LEAST);
        path.cwnd = path.cwnd.min(cap);
    }
}

impl CongestionControl for Bbr3 {
    fn paces(&self) -> bool {
        true
    }

    fn weighs_losses(&self) -> bool {
        true
    }

    fn seed(&mut self, seed: u64) {
        self.random = Pcg64Mcg::seed_from_u64(seed);
    }

    /// `OnInit` (section 5.2.1).
    fn on_established(&mut self, path: &mut Member) {
        path.ssthresh = INFINITE_SSTHRESH;
        self.first_window = path.cwnd;
        self.round_trip
            .begin((path.min_rtt > 0).then_some(path.min_rtt));
        self.pace.begin(path);
    }

    /// `OnEnterFastRecovery` and `OnEnterRTO` (section 5.6.4.4).
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        self.save_window(path);
        self.undo.save(&self.model);
        path.ssthresh
    }

    /// Never called: [`CongestionControl::control`] is.
    fn on_ack(&mut self, _path: &mut Member, _ack: &Ack) {}

    /// `HandleLostPacket` (section 5.5.10.2).
    fn on_lost(&mut self, path: &mut Member, lost: &LostPacket, sample: &RateSample) {
        self.note_congestion(path, sample.delivered);
        self.signals.count(lost);
        if self.cycle.samples && too_high(lost.lost, lost.in_flight, sample.selective) {
            let in_flight = flight_at_loss(lost);
            self.answer_excess(path, sample.delivered_at, in_flight, lost.app_limited);
        }
    }

    /// `UpdateOnACK` (section 5.2.3).
    fn control(&mut self, path: &mut Member, ack: &Ack, sample: &RateSample) -> bool {
        if self.first_window == 0 {
            // A path of QUIC that is another one now.
            self.first_window = path.cwnd;
        }
        self.rounds.take(sample);
        if self.rounds.started {
            self.cycle.count_round();
        }
        let rate = sample.interval.map_or(0.0, |interval| {
            interval.packets as f64 * SECOND as f64 / interval.time as f64
        });
        self.signals.take(rate, sample);
        self.update_signals(path, rate, sample);
        self.answer_mark(path, ack, sample);
        self.update_aggregation(path, ack, sample);
        if self.rounds.started {
            self.full.check(rate, sample);
        }
        self.check_startup_and_drain(path, ack, sample);
        self.update_cycle(path, ack, rate, sample);
        self.round_trip.take(ack.now, ack.rtt);
        let limited = self.check_probe_rtt(path, ack, sample);
        self.signals.advance(rate, sample);
        self.model.bound_bandwidth();
        let (gain, _) = self.mode.gains();
        self.set_rate(path, gain);
        self.set_window(path, ack.packets, sample);
        limited
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        match state {
            CaState::Loss => self.kept.state = CaState::Loss,
            CaState::Cwr => self.flags.marked = true,
            _ => {}
        }
    }

    /// `HandleRestartFromIdle` (section 5.4.1).
    fn on_restart(&mut self, path: &mut Member, restart: &Restart) {
        if !restart.app_limited {
            return;
        }
        self.flags.after_idle = true;
        self.aggregation.stretch.restart(restart.now);
        if self.mode.is_probe_bandwidth() {
            self.set_rate(path, 1.0);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(path, restart.now);
        }
    }

    /// `HandleSpuriousLossDetection` (section 5.5.11.2).
    fn undo(&mut self, path: &Member, _prior: u32) -> u32 {
        self.signals.congested = false;
        self.full.restart(0.0);
        let ended = self.undo.restore(&mut self.model);
        let probes_rtt = self.mode == Mode::ProbeRtt;
        match ended {
            Some(Mode::Startup) if self.mode != Mode::Startup => {
                self.full.reached = false;
                if !probes_rtt {
                    self.mode = Mode::Startup;
                }
            }
            Some(Mode::Up) if self.mode != Mode::Up && !probes_rtt => self.refill(),
            _ => {}
        }
        self.kept.larger(path)
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        let bound = |packets| match packets {
            UNBOUND => 0.0,
            packets => f64::from(packets),
        };
        vec![
            ("mode", f64::from(self.mode as u8)),
            ("bandwidth_packets_s", self.model.bandwidth),
            ("most_bandwidth_packets_s", self.model.most_bandwidth()),
            (
                "min_rtt_ms",
                self.round_trip.least.unwrap_or(0) as f64 / 1e6,
            ),
            ("pacing_gain", self.mode.gains().0),
            ("cwnd_gain", self.mode.gains().1),
            ("inflight_longterm", bound(self.model.long_flight)),
            ("inflight_shortterm", bound(self.model.short_flight)),
        ]
    }
}
