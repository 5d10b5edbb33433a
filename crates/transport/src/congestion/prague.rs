//! Prague: DCTCP for the Internet, over queues that mark ECT(1) early (draft-briscoe-iccrg-prague-congestion-control-04; RFC 9331 section 4).
//!
//! Where the draft refers to its reference implementation, this follows that (`tcp_prague.c` 0.7 of L4S for Linux). Its function names stand
//! beside the rules. Packets keep their length at any rate. A queue of RFC 3168
//! that marks ECT(1) is not detected, although RFC 9331 section 4.3 asks for that.

use super::{Ack, CongestionControl, RateSample, slow_start};
use crate::path::{CaState, Member, Path};
use crate::{Nanos, SECOND};
use polypath_settings::{Algorithm, algorithm};

const MS: Nanos = 1_000_000;

algorithm! {
    "prague",
    "Prague on each path by itself: falls by half the part of packets that are marked (ECT(1)), grows alike for all RTTs below a target, and paces; without accurate ECN it is Reno",
    "draft-briscoe-iccrg-prague-congestion-control-04; RFC 9331; tcp_prague.c of L4S for Linux";
    /// Settings of Prague.
    PragueConfig {
        /// RTT below which flows get the same rate, in milliseconds
        rtt_target_ms: u32 as Integer.at_least(1).at_most(10_000) = Integer(25),
        /// round trips after slow start before that holds
        rtt_transition: u32 as Integer.at_least(0).at_most(1_000_000) = Integer(4),
        /// weight of a round trip's part of marked packets in its average, as 1/2^shift_g
        shift_g: u32 as Integer.at_least(0).at_most(10) = Integer(4),
    }
}

/// The least window, in packets, and rate, in bytes a second (100 kbps).
const LEAST_WINDOW: u32 = 2;
const LEAST_RATE: f64 = 12_500.0;
/// Up to so many packets the rate decides, not the window (`prague_cwnd_transit`).
const FEW: u32 = 4;
/// Where it does, it is so much above and then below (4/128), so that a queue marks some packets in each round trip.
const OFFSET: f64 = 4.0 / 128.0;
/// Weight of a round trip's RTT in the average by which a rate becomes a window (`HSRTT_SHIFT`).
const RTT_WEIGHT: f64 = 1.0 / 128.0;

impl Algorithm<dyn CongestionControl> for PragueConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Prague {
            config: self,
            feedback: Feedback::default(),
            window: 0.0,
            rate: 0.0,
            by_rate: false,
            average_rtt: 0.0,
            in_loss: false,
            before_loss: (0, 0.0),
            reduced_at: None,
        })
    }
}

/// What the peer says of marks (`prague_update_alpha`).
#[derive(Debug, Default)]
struct Feedback {
    /// Average part of the packets that are marked.
    alpha: f64,
    /// There was a mark: some queue marks on this path.
    seen: bool,
    /// Packets of this round, and those of them that were marked.
    packets: u32,
    marked: u32,
    /// Where the round ends; none before the first acknowledgement.
    end: Option<u64>,
    /// Round trips after slow start.
    rounds: u32,
    updated_at: Nanos,
    /// The last acknowledgement.
    now: Nanos,
}

struct Prague {
    config: PragueConfig,
    feedback: Feedback,
    /// In packets, with what is not a whole one (`frac_cwnd`), and in bytes a second.
    window: f64,
    rate: f64,
    /// The rate decides, and the window follows.
    by_rate: bool,
    /// In ns, over the round trips.
    average_rtt: f64,
    /// No increase until what was lost is repaired.
    in_loss: bool,
    /// Window and rate before the last loss.
    before_loss: (u32, f64),
    reduced_at: Option<Nanos>,
}

impl Prague {
    fn target(&self) -> Nanos {
        Nanos::from(self.config.rtt_target_ms) * MS
    }

    /// All RTTs below the target are as good as it (`prague_is_rtt_indep`).
    fn independent(&self, path: &Path) -> bool {
        !path.in_slow_start() && self.feedback.rounds >= self.config.rtt_transition
    }

    fn leads_by_rate(&self, path: &Path) -> bool {
        self.by_rate && self.independent(path)
    }

    /// The RTT that the increase goes by (`prague_virtual_rtt`).
    fn virtual_rtt(&self, path: &Path) -> f64 {
        path.srtt.max(self.target()) as f64 / SECOND as f64
    }

    /// Packets that the window grows by in a round trip: one in a virtual round trip, at a rate that is as much smaller (`prague_rate_scaled_ai_ack_increase`).
    fn increase(&self, path: &Path) -> f64 {
        let target = self.target();
        if self.feedback.rounds < self.config.rtt_transition
            || path.srtt == 0
            || path.srtt >= target
        {
            return 1.0;
        }
        let ratio = path.srtt as f64 / target as f64;
        ratio * ratio
    }

    /// `prague_frac_cwnd_to_pacing_rate`.
    fn rate_of_window(&self, path: &Path) -> f64 {
        (per_second(path) * self.window).max(LEAST_RATE)
    }

    /// `prague_pacing_rate_to_frac_cwnd`.
    fn window_of_rate(&self, path: &Path) -> f64 {
        let rtt = if self.average_rtt > 0.0 {
            self.average_rtt
        } else {
            path.srtt as f64
        };
        self.rate * rtt / SECOND as f64 / f64::from(path.mss)
    }

    /// Sections 2.4.3 and 2.4.4: growth for each packet that arrived without a mark, also while the window is reduced for marks
    /// (`prague_update_cwnd`).
    fn grow(&mut self, path: &mut Member, ack: &Ack) {
        let marked = ack.marked.min(ack.packets);
        if marked > 0 && !self.feedback.seen {
            // The first mark ends slow start.
            self.window /= 2.0;
            self.feedback.seen = true;
        }
        let mut packets = ack.packets - marked;
        if packets > 0 && !self.in_loss && ack.cwnd_limited {
            if path.in_slow_start() {
                packets = slow_start(path, packets);
                self.window = path.cwnd.into();
                if packets == 0 {
                    return;
                }
            }
            if self.leads_by_rate(path) {
                let rtt = self.virtual_rtt(path);
                let window = (self.rate * rtt / f64::from(path.mss)).ceil().max(1.0);
                self.rate += f64::from(packets * path.mss) / rtt / window;
                self.window = self.window.max(self.window_of_rate(path));
            } else {
                self.window += f64::from(packets) * self.increase(path) / self.window.max(1.0);
                self.rate = self.rate.max(self.rate_of_window(path));
            }
        }
        // By one packet each time.
        let whole = (self.window.ceil() as u32).max(LEAST_WINDOW);
        if path.cwnd > whole {
            path.cwnd -= 1;
            path.ssthresh = path.cwnd;
        } else if path.cwnd < whole {
            path.cwnd += 1;
        }
    }

    /// Once a round trip, and a virtual one (`prague_should_update_ewma`, `prague_update_alpha`, `prague_new_round`).
    fn end_round(&mut self, path: &Path, ack: &Ack) {
        let feedback = &mut self.feedback;
        if ack.una < *feedback.end.get_or_insert(ack.una) {
            return;
        }
        let since = ack.now - self.feedback.updated_at;
        if self.independent(path) && since < self.target() {
            return;
        }
        let gain = 1.0 / f64::from(1u32 << self.config.shift_g);
        let feedback = &mut self.feedback;
        if feedback.seen {
            let part = f64::from(feedback.marked) / f64::from(feedback.packets.max(1));
            feedback.alpha += gain * (part.min(1.0) - feedback.alpha);
            feedback.updated_at = ack.now;
        }
        (feedback.packets, feedback.marked) = (0, 0);
        feedback.end = Some(ack.next_seq);
        feedback.rounds += u32::from(!path.in_slow_start());
        let rtt = path.srtt as f64;
        self.average_rtt = match self.average_rtt {
            0.0 => rtt,
            before => before + RTT_WEIGHT * (rtt - before),
        };
    }

    /// The pacing rate (`prague_update_pacing_rate`).
    fn pace(&mut self, path: &mut Path, now: Nanos) {
        let mut rate = if self.leads_by_rate(path) {
            let half = self.virtual_rtt(path) * SECOND as f64 / 2.0;
            let late = (now - self.feedback.updated_at) as f64 >= half;
            self.rate * if late { 1.0 - OFFSET } else { 1.0 + OFFSET }
        } else {
            let packets = self.window.floor().max(f64::from(path.in_flight));
            self.rate = (per_second(path) * packets).max(LEAST_RATE);
            self.rate
        };
        if path.cwnd < path.ssthresh / 2 {
            rate *= 2.0;
        }
        path.pacing_rate = rate as u64;
    }

    /// `prague_cong_control` at its end.
    fn choose(&mut self, path: &Path) {
        self.by_rate = self.feedback.seen && path.cwnd <= FEW;
        if self.by_rate {
            self.window = self.window_of_rate(path);
        } else {
            self.rate = self.rate_of_window(path);
        }
    }

    /// At most once a round trip, and a virtual one (`prague_enter_cwr`).
    fn reduce(&mut self, path: &Path) {
        let now = self.feedback.now;
        let lately = |at| now.saturating_sub(at) < self.target();
        if self.independent(path) && self.reduced_at.is_some_and(lately) {
            return;
        }
        self.reduced_at = Some(now);
        self.shrink(path, self.feedback.alpha / 2.0);
    }

    fn shrink(&mut self, path: &Path, part: f64) {
        if self.leads_by_rate(path) {
            self.rate = (self.rate * (1.0 - part)).max(LEAST_RATE);
            self.window = self.window_of_rate(path);
        } else {
            self.window *= 1.0 - part;
            self.rate = self.rate_of_window(path);
        }
    }

    /// A loss is one to any TCP (RFC 9331 section 4.3, `prague_enter_loss`).
    fn halve(&mut self, path: &Path) {
        self.before_loss = (path.cwnd, self.rate);
        self.shrink(path, 0.5);
        self.in_loss = true;
    }
}

/// Bytes a second of one packet in a round trip.
fn per_second(path: &Path) -> f64 {
    let rtt = if path.srtt > 0 { path.srtt } else { MS };
    f64::from(path.mss) * SECOND as f64 / rtt as f64
}

impl CongestionControl for Prague {
    fn paces(&self) -> bool {
        true
    }

    fn draws(&self) -> bool {
        false
    }

    fn low_latency(&self) -> bool {
        true
    }

    /// `prague_init`.
    fn on_established(&mut self, path: &mut Member) {
        self.window = path.cwnd.into();
        self.rate = self.rate_of_window(path);
        self.pace(path, 0);
    }

    /// `prague_ssthresh`.
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        path.ssthresh
    }

    fn on_sample(&mut self, _path: &mut Member, ack: &Ack) {
        self.feedback.now = ack.now;
        self.feedback.packets += ack.packets;
        self.feedback.marked += ack.marked;
    }

    fn on_ack(&mut self, _path: &mut Member, _ack: &Ack) {}

    fn control(&mut self, path: &mut Member, ack: &Ack, _sample: &RateSample) -> bool {
        if self.window == 0.0 {
            self.window = path.cwnd.into();
        }
        self.grow(path, ack);
        self.end_round(path, ack);
        self.pace(path, ack.now);
        self.choose(path);
        false
    }

    fn on_state(&mut self, path: &mut Member, state: CaState) {
        match state {
            CaState::Cwr => self.reduce(path),
            CaState::Recovery => self.halve(path),
            CaState::Open => self.in_loss = false,
            _ => {}
        }
    }

    fn on_timeout(&mut self, path: &mut Member) {
        self.halve(path);
    }

    /// `prague_cwnd_undo`.
    fn undo(&mut self, path: &Member, _prior: u32) -> u32 {
        self.in_loss = false;
        self.rate = self.rate.max(self.before_loss.1);
        self.window = self.window_of_rate(path);
        path.cwnd.max(self.before_loss.0)
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![("alpha", self.feedback.alpha), ("window", self.window)]
    }
}
