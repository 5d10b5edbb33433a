//! H-TCP: the increase grows with the time since the last congestion, the decrease follows the queue, as in Linux (Shorten and Leith, PFLDnet
//! 2004).
//!
//! Times are in milliseconds, as those of a kernel with HZ = 1000; alpha and beta are in 1/128, as there. What has no time of its own happens
//! at the last acknowledgement.

use super::{Ack, CongestionControl, Restart, slow_start};
use crate::MILLISECOND;
use crate::path::{CaState, Member, Path};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "htcp",
    "H-TCP on each path by itself: grows faster the longer nothing is lost, and falls to the ratio of least and most RTT",
    "Shorten and Leith, PFLDnet 2004; draft-leith-tcp-htcp-06; Linux net/ipv4/tcp_htcp.c";
    /// Settings of H-TCP.
    HtcpConfig {
        /// let the increase follow the RTT, so that flows of different RTTs get the same
        rtt_scaling: bool as Boolean = Boolean(true),
        /// halve the window if the rate changed by more than a fifth since the last congestion
        bandwidth_switch: bool as Boolean = Boolean(true),
    }
}

impl Algorithm<dyn CongestionControl> for HtcpConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Htcp {
            config: self,
            alpha: ONE,
            beta: LEAST_BETA,
            switched: false,
            acked: 1,
            now: 0,
            rtt: Range::default(),
            congested: None,
            undone: None,
            rate: Rate::default(),
        })
    }
}

const ONE: u64 = 1 << 7;
/// One half and 0.8.
const LEAST_BETA: u64 = 1 << 6;
const MOST_BETA: u64 = 102;
/// RTTs up to this let the window be halved.
const SHORT_RTT: u64 = 10;
/// The most by which one sample raises the most RTT.
const RTT_STEP: u64 = 20;
const SECOND: u64 = 1000;

struct Htcp {
    config: HtcpConfig,
    alpha: u64,
    beta: u64,
    /// There was a congestion since the rate changed (`modeswitch`).
    switched: bool,
    /// Packets of the last acknowledgement.
    acked: u32,
    now: u64,
    rtt: Range,
    /// The end of the last congestion; before the first one, when data first left.
    congested: Option<u64>,
    /// What an undo takes back: that time, the most RTT and the most rate.
    undone: Option<(u64, u64, u64)>,
    rate: Rate,
}

/// 0: no sample yet.
#[derive(Default)]
struct Range {
    least: u64,
    most: u64,
}

/// Packets a second.
#[derive(Default)]
struct Rate {
    /// Counted since `since`; at first, since long ago.
    packets: u64,
    since: Option<u64>,
    smoothed: u64,
    most: u64,
    /// `most` at the last congestion.
    previous: u64,
}

impl Rate {
    /// The most differs by more than a fifth from that at the last congestion.
    fn changed(&mut self) -> bool {
        let previous = std::mem::replace(&mut self.previous, self.most);
        !(4 * previous..=6 * previous).contains(&(5 * self.most))
    }
}

impl Htcp {
    fn since_congestion(&self) -> u64 {
        self.now - self.congested.unwrap_or(self.now)
    }

    /// `measure_rtt`
    fn measure_rtt(&mut self, rtt: u64, open: bool) {
        let range = &mut self.rtt;
        if range.least == 0 || rtt < range.least {
            range.least = rtt;
        }
        if open {
            range.most = range.most.max(range.least);
            if range.most < rtt && rtt <= range.most + RTT_STEP {
                range.most = rtt;
            }
        }
    }

    /// `measure_achieved_throughput`
    fn measure_rate(&mut self, path: &Path, acked: u32) {
        if path.state > CaState::Disorder {
            (self.rate.packets, self.rate.since) = (0, Some(self.now));
            return;
        }
        self.rate.packets += u64::from(acked);
        // An increase of more than the window ends no round.
        let round = u64::from(path.cwnd).checked_sub((self.alpha >> 7).max(1));
        let passed = self.rate.since.map_or(u64::MAX, |since| self.now - since);
        let least = self.rtt.least;
        let over = round.is_some_and(|round| self.rate.packets >= round);
        if !over || passed < least || least == 0 {
            return;
        }
        let measured = self.rate.packets * SECOND / passed;
        let rounds = self.since_congestion() / least;
        let rate = &mut self.rate;
        if rounds <= 3 {
            (rate.smoothed, rate.most) = (measured, measured);
        } else {
            rate.smoothed = (3 * rate.smoothed + measured) / 4;
            rate.most = rate.most.max(rate.smoothed);
        }
        (rate.packets, rate.since) = (0, Some(self.now));
    }

    /// `htcp_beta_update`
    fn update_beta(&mut self) {
        if self.config.bandwidth_switch && self.rate.changed() {
            self.beta = LEAST_BETA;
            self.switched = false;
            return;
        }
        let Range { least, most } = self.rtt;
        self.beta = if self.switched && least > SHORT_RTT && most > 0 {
            ((least << 7) / most).clamp(LEAST_BETA, MOST_BETA)
        } else {
            self.switched = true;
            LEAST_BETA
        };
    }

    /// `htcp_alpha_update`, in 64 bits: the kernel's 32 overflow 131 s after a congestion.
    fn update_alpha(&mut self) {
        let passed = self.since_congestion();
        let mut factor = 1;
        if passed > SECOND {
            let more = passed - SECOND;
            factor = 1 + (10 * more + (more / 2) * (more / 2) / SECOND) / SECOND;
        }
        if self.config.rtt_scaling && self.rtt.least > 0 {
            // A tenth of a second over the RTT, in eighths from 0.5 to 10.
            let scale = ((SECOND << 3) / (10 * self.rtt.least)).clamp(1 << 2, 10 << 3);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }
}

impl CongestionControl for Htcp {
    /// `htcp_recalc_ssthresh`, `htcp_param_update`
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        self.update_beta();
        self.update_alpha();
        let Range { least, most } = self.rtt;
        if least > 0 && most > least {
            self.rtt.most = least + (most - least) * 95 / 100;
        }
        (((u64::from(path.cwnd) * self.beta) >> 7) as u32).max(2)
    }

    fn on_sample(&mut self, path: &mut Member, ack: &Ack) {
        self.now = ack.now / MILLISECOND;
        self.congested.get_or_insert(self.now);
        let open = path.state == CaState::Open;
        if open {
            self.acked = ack.packets;
        }
        if let Some(rtt) = ack.rtt {
            self.measure_rtt(rtt.div_ceil(MILLISECOND), open);
        }
        if self.config.bandwidth_switch {
            self.measure_rate(path, ack.packets);
        }
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if !ack.cwnd_limited {
            return;
        }
        if path.in_slow_start() {
            slow_start(path, ack.packets);
            return;
        }
        if (u64::from(path.cwnd_count) * self.alpha) >> 7 >= u64::from(path.cwnd) {
            path.cwnd += 1;
            path.cwnd_count = 0;
            self.update_alpha();
        } else {
            path.cwnd_count += self.acked;
        }
        self.acked = 1;
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        match state {
            CaState::Open => {
                if self.undone.take().is_some() {
                    self.congested = Some(self.now);
                }
            }
            CaState::Disorder => {}
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                let before = self.congested.unwrap_or(self.now);
                self.undone = Some((before, self.rtt.most, self.rate.previous));
                self.congested = Some(self.now);
            }
        }
    }

    fn on_restart(&mut self, _path: &mut Member, restart: &Restart) {
        self.now = restart.now / MILLISECOND;
        self.congested.get_or_insert(self.now);
    }

    fn undo(&mut self, path: &Member, prior: u32) -> u32 {
        if let Some((congested, most, previous)) = self.undone.take() {
            self.congested = Some(congested);
            self.rtt.most = most;
            self.rate.previous = previous;
        }
        path.cwnd.max(prior)
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("alpha_packets", self.alpha as f64 / ONE as f64),
            ("beta", self.beta as f64 / ONE as f64),
        ]
    }
}
