//! BBR, version 1 (Cardwell et al., CACM 2017; draft-cardwell-iccrg-bbr-congestion-control-00), as in Linux.
//!
//! A model of the path sets rate and window: its bottleneck bandwidth, and its RTT without a queue. Losses do not.
//! Section numbers are the draft's. Left out: the coarseness of Linux's clocks and of its fixed-point numbers, and its
//! larger send buffer.

pub(super) mod aggregation;
pub(super) mod filter;
pub(super) mod kept;
pub(super) mod pace;
mod policer;
pub(super) mod rounds;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Ack, CongestionControl, RateSample, Restart};
use crate::path::burst;
use crate::path::{CaState, INFINITE_SSTHRESH, Member, Path};
use crate::{MILLISECOND, Nanos, SECOND};
use aggregation::Aggregation;
use filter::Maximum;
use kept::Kept;
use pace::Pace;
use policer::Policer;
use polypath_settings::{Algorithm, algorithm};
use rounds::Rounds;

algorithm! {
    "bbr",
    "BBR version 1 on each path by itself: paces at the measured bandwidth and keeps the queue short, whatever is lost",
    "Cardwell et al., CACM 60(2) 2017; draft-cardwell-iccrg-bbr-congestion-control-00; Linux net/ipv4/tcp_bbr.c";
    Bbr
}

impl Algorithm<dyn CongestionControl> for Bbr {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(self)
    }
}

/// The states of section 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// 2/ln 2: the rate doubles each round trip.
const HIGH_GAIN: f64 = 2.885;
/// Gains of the eight phases of ProbeBW.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const CRUISING_CWND_GAIN: f64 = 2.0;
/// Rounds over which the bandwidth's maximum is taken.
const BANDWIDTH_ROUNDS: u64 = 10;
/// How long the lowest RTT counts, and how long ProbeRTT lasts.
const MIN_RTT_WINDOW: Nanos = 10 * SECOND;
const PROBE_RTT_TIME: Nanos = 200 * MILLISECOND;
/// The smallest window: two ACKs of two packets each.
const SMALLEST_WINDOW: u32 = 4;
/// The pipe is full when three rounds brought less than a quarter more.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// What the window may be before ten packets were delivered, and with no RTT known.
const INITIAL_WINDOW: u32 = 10;

pub(super) struct Bbr {
    random: Pcg64Mcg,
    mode: Mode,
    bandwidth: Maximum,
    rounds: Rounds,
    min_rtt: Option<Nanos>,
    min_rtt_at: Option<Nanos>,
    pace: Pace,
    /// When ProbeRTT may end, and whether a round went by in it.
    probe_rtt_until: Option<Nanos>,
    probe_rtt_round: bool,
    pacing_gain: f64,
    cwnd_gain: f64,
    full: bool,
    full_bandwidth: f64,
    full_rounds: u32,
    phase: usize,
    phase_at: Nanos,
    kept: Kept,
    /// In the first round of recovery as many packets leave as arrive.
    conserving: bool,
    after_idle: bool,
    policer: Policer,
    aggregation: Aggregation,
    last: RateSample,
}

impl Default for Bbr {
    fn default() -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(0),
            mode: Mode::Startup,
            bandwidth: Maximum::default(),
            rounds: Rounds::default(),
            min_rtt: None,
            min_rtt_at: None,
            pace: Pace::new(HIGH_GAIN),
            probe_rtt_until: None,
            probe_rtt_round: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            full: false,
            full_bandwidth: 0.0,
            full_rounds: 0,
            phase: 0,
            phase_at: 0,
            kept: Kept::default(),
            conserving: false,
            after_idle: false,
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            last: RateSample::default(),
        }
    }
}

impl Bbr {
    /// Packets a second.
    fn estimate(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    fn set_rate(&mut self, path: &mut Path, gain: f64) {
        let bandwidth = self.estimate();
        self.pace.set(path, bandwidth, gain, self.full);
    }

    /// Bandwidth times RTT times `gain`, in packets, rounded up.
    fn product(&self, bandwidth: f64, gain: f64) -> u32 {
        match self.min_rtt {
            Some(rtt) => pace::product(bandwidth, rtt, gain),
            None => INITIAL_WINDOW,
        }
    }

    /// Room for bursts at both ends, for ACKs of two packets, and for probing over small products (section 4.2.3.2).
    fn with_room(&self, packets: u32, path: &Path) -> u32 {
        let even = (packets + 3 * burst(path.pacing_rate, path.mss)).next_multiple_of(2);
        let probing = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        even + if probing { 2 } else { 0 }
    }

    fn target(&self, bandwidth: f64, gain: f64, path: &Path) -> u32 {
        self.with_room(self.product(bandwidth, gain), path)
    }

    /// Packets in the network when the next burst leaves, if `now` there are `in_flight`.
    fn in_network(&self, in_flight: u32, now: Nanos, sample: &RateSample, path: &Path) -> u32 {
        let wait = sample.departure.saturating_sub(now);
        let delivered = (self.estimate() * wait as f64 / SECOND as f64) as u32;
        let leaving = if self.pacing_gain > 1.0 {
            burst(path.pacing_rate, path.mss)
        } else {
            0
        };
        (in_flight + leaving).saturating_sub(delivered)
    }

    fn save_window(&mut self, path: &Path) {
        self.kept.save(path, self.mode == Mode::ProbeRtt);
    }

    /// Section 4.1.1 and 4.1.2: rounds and bandwidth.
    fn update_bandwidth(&mut self, path: &Path, sample: &RateSample) {
        self.rounds.take(sample);
        let Some(interval) = sample.interval else {
            return;
        };
        self.conserving &= !self.rounds.started;
        let probing = self.mode == Mode::ProbeBandwidth;
        if self
            .policer
            .take(sample, self.rounds.started, probing, path.mss)
        {
            self.probe_bandwidth(sample.delivered_at);
        }
        let rate = interval.packets as f64 * SECOND as f64 / interval.time as f64;
        if !interval.app_limited || rate >= self.bandwidth.get() {
            self.bandwidth
                .add(self.rounds.count, rate, BANDWIDTH_ROUNDS);
        }
    }

    /// Section 4.3.4.2: whether the present phase of ProbeBW is over.
    fn phase_over(&self, now: Nanos, path: &Path, sample: &RateSample) -> bool {
        let long_enough =
            sample.delivered_at.saturating_sub(self.phase_at) > self.min_rtt.unwrap_or(Nanos::MAX);
        let in_network = self.in_network(sample.in_flight_before, now, sample, path);
        let target = |gain| self.target(self.bandwidth.get(), gain, path);
        if self.pacing_gain > 1.0 {
            long_enough && (sample.newly_lost > 0 || in_network >= target(self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            long_enough || in_network <= target(1.0)
        } else {
            long_enough
        }
    }

    /// Enters ProbeBW in any phase but the one that drains (section 4.3.4.3).
    fn probe_bandwidth(&mut self, at: Nanos) {
        self.mode = Mode::ProbeBandwidth;
        let skipped = self.random.random_range(0..CYCLE.len() - 1);
        self.phase = (CYCLE.len() - skipped) % CYCLE.len();
        self.phase_at = at;
    }

    /// Section 4.3.2.2.
    fn check_full(&mut self, sample: &RateSample) {
        let limited = sample.interval.is_some_and(|interval| interval.app_limited);
        if self.full || !self.rounds.started || limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
            self.full = self.full_rounds >= FULL_ROUNDS;
        }
    }

    /// Section 4.3.3.
    fn check_drain(&mut self, now: Nanos, path: &mut Path, sample: &RateSample) {
        let full = self.target(self.bandwidth.get(), 1.0, path);
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            path.ssthresh = full;
        }
        if self.mode == Mode::Drain && self.in_network(path.in_flight, now, sample, path) <= full {
            self.probe_bandwidth(sample.delivered_at);
        }
    }

    /// Sections 4.1.3 and 4.3.5. True in ProbeRTT: what is sent there says nothing of the bandwidth.
    fn update_min_rtt(&mut self, path: &mut Path, ack: &Ack, sample: &RateSample) -> bool {
        let since = *self.min_rtt_at.get_or_insert(ack.now);
        let expired = ack.now > since + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt
            && (self.min_rtt.is_none_or(|least| rtt < least) || (expired && !sample.maybe_delayed))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = Some(ack.now);
        }
        if expired && !self.after_idle && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window(path);
            self.probe_rtt_until = None;
        }
        if sample.interval.is_some_and(|interval| interval.packets > 0) {
            self.after_idle = false;
        }
        if self.mode != Mode::ProbeRtt {
            return false;
        }
        match self.probe_rtt_until {
            None if path.in_flight <= SMALLEST_WINDOW => {
                self.probe_rtt_until = Some(ack.now + PROBE_RTT_TIME);
                self.probe_rtt_round = false;
                self.rounds.begin();
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round |= self.rounds.started;
                if self.probe_rtt_round && ack.now > until {
                    self.leave_probe_rtt(path, ack.now, sample);
                }
            }
        }
        true
    }

    fn leave_probe_rtt(&mut self, path: &mut Path, now: Nanos, sample: &RateSample) {
        self.min_rtt_at = Some(now);
        self.kept.restore(path);
        if self.full {
            self.probe_bandwidth(sample.delivered_at);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => (1.0, CRUISING_CWND_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.phase], CRUISING_CWND_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    /// Section 4.2.3.4: the window that recovery asks for. True: and no more.
    fn recover(&mut self, path: &mut Path, acked: u32, sample: &RateSample) -> bool {
        let state = path.state;
        path.cwnd = path.cwnd.saturating_sub(sample.newly_lost).max(1);
        if state == CaState::Recovery && self.kept.state != CaState::Recovery {
            self.conserving = true;
            self.rounds.begin();
            path.cwnd = path.in_flight + acked;
        } else if self.kept.state >= CaState::Recovery && state < CaState::Recovery {
            self.kept.restore(path);
            self.conserving = false;
        }
        self.kept.state = state;
        if self.conserving {
            path.cwnd = path.cwnd.max(path.in_flight + acked);
        }
        self.conserving
    }

    /// Section 4.2.3.
    fn set_window(&mut self, path: &mut Path, acked: u32, sample: &RateSample) {
        if acked > 0 && !self.recover(path, acked, sample) {
            let bandwidth = self.estimate();
            let clumps = if self.full {
                self.aggregation.allowance(bandwidth)
            } else {
                0
            };
            let target = self.with_room(self.product(bandwidth, self.cwnd_gain) + clumps, path);
            if self.full {
                path.cwnd = (path.cwnd + acked).min(target);
            } else if path.cwnd < target || sample.delivered < u64::from(INITIAL_WINDOW) {
                path.cwnd += acked;
            }
            path.cwnd = path.cwnd.max(SMALLEST_WINDOW);
        }
        if self.mode == Mode::ProbeRtt {
            path.cwnd = path.cwnd.min(SMALLEST_WINDOW);
        }
    }
}

impl CongestionControl for Bbr {
    fn paces(&self) -> bool {
        true
    }

    fn seed(&mut self, seed: u64) {
        self.random = Pcg64Mcg::seed_from_u64(seed);
    }

    fn on_established(&mut self, path: &mut Member) {
        path.ssthresh = INFINITE_SSTHRESH;
        self.min_rtt = (path.min_rtt > 0).then_some(path.min_rtt);
        self.pace.begin(path);
    }

    /// A loss changes nothing; the window to return to is remembered.
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        self.save_window(path);
        path.ssthresh
    }

    /// Never called: [`CongestionControl::control`] is.
    fn on_ack(&mut self, _path: &mut Member, _ack: &Ack) {}

    fn control(&mut self, path: &mut Member, ack: &Ack, sample: &RateSample) -> bool {
        self.last = *sample;
        self.update_bandwidth(path, sample);
        let bandwidth = self.estimate();
        self.aggregation.take(
            sample,
            ack.packets,
            self.rounds.started,
            bandwidth,
            path.cwnd,
        );
        if self.mode == Mode::ProbeBandwidth && self.phase_over(ack.now, path, sample) {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_at = sample.delivered_at;
        }
        self.check_full(sample);
        self.check_drain(ack.now, path, sample);
        let limited = self.update_min_rtt(path, ack, sample);
        self.update_gains();
        self.set_rate(path, self.pacing_gain);
        self.set_window(path, ack.packets, sample);
        limited
    }

    fn on_state(&mut self, path: &mut Member, state: CaState) {
        if state == CaState::Loss {
            self.kept.state = CaState::Loss;
            self.full_bandwidth = 0.0;
            self.rounds.started = true;
            let lossy = RateSample {
                newly_lost: 1,
                interval: None,
                ..self.last
            };
            self.policer.take(&lossy, true, false, path.mss);
        }
    }

    /// Linux `bbr_cwnd_event_tx_start`.
    fn on_restart(&mut self, path: &mut Member, restart: &Restart) {
        if !restart.app_limited {
            return;
        }
        let now = restart.now;
        self.after_idle = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBandwidth => self.set_rate(path, 1.0),
            Mode::ProbeRtt if self.probe_rtt_until.is_some_and(|until| now > until) => {
                let last = self.last;
                self.leave_probe_rtt(path, now, &last);
            }
            _ => {}
        }
    }

    /// Full-pipe detection begins anew: the slow-down was not needed.
    fn undo(&mut self, path: &Member, _prior: u32) -> u32 {
        self.full_bandwidth = 0.0;
        self.full_rounds = 0;
        self.policer.reset();
        path.cwnd
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("mode", f64::from(self.mode as u8)),
            ("bandwidth_packets_s", self.estimate()),
            ("min_rtt_ms", self.min_rtt.unwrap_or(0) as f64 / 1e6),
            ("pacing_gain", self.pacing_gain),
            ("cwnd_gain", self.cwnd_gain),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux `bbr_cwnd_event_tx_start`: nothing in flight is no idleness where data waited.
    #[test]
    fn only_an_application_that_has_no_more_is_idle() {
        for app_limited in [false, true] {
            let mut bbr = Bbr::default();
            let restart = Restart {
                now: SECOND,
                idle: SECOND,
                outdated: false,
                next_seq: 1,
                app_limited,
            };
            bbr.on_restart(&mut Member::new(&mut [Path::new(1000, 10)], 0), &restart);
            assert_eq!(bbr.after_idle, app_limited);
        }
    }
}
