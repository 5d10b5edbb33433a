//! Weighted TCP on each path (Honda et al., PFLDNeT 2009; Wischik et al., NSDI 2011 section 2.1).

use super::linked::Credit;
use super::{Ack, CongestionControl};
use crate::path::{CaState, Member};
use polypath_settings::{Algorithm, algorithm, choice};

algorithm! {
    "ewtcp",
    "Equally weighted TCP: a weakened Reno on each path by itself, with no regard to where there is room",
    "Honda et al., PFLDNeT 2009; Wischik et al., NSDI 2011 section 2.1";
    /// Settings of EWTCP.
    EwtcpConfig {
        /// increase a window of ACKs brings, for n paths: 1/n^2 makes all of them together one TCP at a shared bottleneck, since throughput
        /// goes with the square root of a; 1/sqrt(n) is what the NSDI paper prints
        a: Weight as Text = Text("1/n^2"),
    }
}

choice! {
    /// What a path weighs among n.
    Weight {
        InverseSquare = "1/n^2",
        InverseRoot = "1/sqrt(n)",
    }
}

impl Algorithm<dyn CongestionControl> for EwtcpConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Ewtcp {
            weight: match self.a {
                Weight::InverseSquare => |paths| 1.0 / (paths * paths),
                Weight::InverseRoot => |paths| 1.0 / paths.sqrt(),
            },
            credit: Credit::default(),
        })
    }
}

/// Each acknowledged packet adds `a / w_r`; a loss halves.
struct Ewtcp {
    weight: fn(f64) -> f64,
    credit: Credit,
}

impl CongestionControl for Ewtcp {
    fn couples(&self) -> bool {
        true
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        let weight = self.weight;
        self.credit.avoid(path, ack, |path| {
            let count = path.paths.iter().filter(|path| path.established).count();
            weight(count.max(1) as f64) / f64::from(path.cwnd)
        });
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        if state >= CaState::Cwr {
            self.credit.clear();
        }
    }
}
