//! XMP: explicit congestion control of several paths, for data centres (Cao, Xu, Fu and Dong, CoNEXT 2013).
//!
//! BOS cuts the window of a path by a part at the first mark of a round trip; TraSh couples how much the paths grow. Rules are those of the
//! paper's algorithm 1, and agree with the ns-3 model of the authors of AMP (`mp-tcp-socket-base.cc`). The paper's receiver returns up to three marks in two bits. Here the receiver is DCTCP's, which echoes each (RFC 8257
//! section 3.2). That tells no less to a sender that reacts once a round trip.

use super::linked;
use super::{Ack, CongestionControl, slow_start};
use crate::path::{CaState, Member, Path};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "xmp",
    "XMP: a window falls by 1/beta at the first mark of a round trip (ECN, which it turns on), and those of all paths grow together; without ECN it is Reno",
    "Cao et al., CoNEXT 2013";
    /// Settings of XMP.
    XmpConfig {
        /// a mark takes the beta-th part of the window
        beta: u32 as Integer.at_least(2).at_most(64) = Integer(4),
    }
}

impl Algorithm<dyn CongestionControl> for XmpConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Xmp {
            beta: self.beta,
            credit: 0.0,
            end: None,
            slow_start: false,
        })
    }
}

struct Xmp {
    beta: u32,
    /// Growth that is not yet a whole packet (`adder`).
    credit: f64,
    /// Where the round ends; none before the first acknowledgement (`beg_seq`).
    end: Option<u64>,
    /// The reduction at hand began in slow start.
    slow_start: bool,
}

/// What a path grows by in a round trip (TraSh): its window, as a part of what all paths would have at the shortest RTT. Of one path it is
/// one packet.
fn growth(path: &Path, paths: &[Path]) -> f64 {
    let total: f64 = linked::usable(paths).map(linked::rate).sum();
    let shortest = linked::usable(paths)
        .map(linked::srtt)
        .fold(f64::INFINITY, f64::min);
    match total * shortest {
        most if most > 0.0 && most.is_finite() => f64::from(path.cwnd) / most,
        _ => 1.0,
    }
}

impl CongestionControl for Xmp {
    fn needs_ecn(&self) -> bool {
        true
    }

    fn couples(&self) -> bool {
        true
    }

    /// A loss is one to any TCP.
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        self.slow_start = path.in_slow_start();
        (path.cwnd / 2).max(2)
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        let over = self.end.is_some_and(|end| ack.una > end);
        if over || self.end.is_none() {
            self.end = Some(ack.next_seq);
        }
        if !ack.cwnd_limited {
            return;
        }
        if path.in_slow_start() {
            slow_start(path, ack.packets);
        } else if over {
            self.credit += growth(path, path.paths);
            path.cwnd += self.credit as u32;
            self.credit -= self.credit.trunc();
        }
    }

    /// BOS at a mark: after slow start the beta-th part goes, one packet at least and down to two. Slow start ends, and nothing goes.
    fn on_state(&mut self, path: &mut Member, state: CaState) {
        if state == CaState::Cwr {
            let cut = if self.slow_start {
                0
            } else {
                (path.cwnd / self.beta).max(1)
            };
            path.ssthresh = path.cwnd.saturating_sub(cut).max(2);
        }
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![("growth_left", self.credit)]
    }
}
