//! Fully coupled windows (Kelly and Voice, CCR 2005; Wischik et al., NSDI 2011 section 2.2).
//!
//! A path whose window fell to one packet repairs one loss per round trip. In the papers' models no stream waits for
//! these repairs. Here the other paths fill the receive window and stand still until then.

use super::linked::{self, Credit};
use super::{Ack, CongestionControl};
use crate::path::{CaState, Member};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "coupled",
    "Fully coupled windows: leaves every path that loses more than the best, down to one packet, and is slow to come back",
    "Kelly and Voice, CCR 35(2) 2005; Wischik et al., NSDI 2011 section 2.2";
    Coupled
}

impl Algorithm<dyn CongestionControl> for Coupled {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(self)
    }
}

/// Each acknowledged packet adds `1 / w_total`; a loss takes `w_total / 2` off the path's own window.
#[derive(Default)]
pub(super) struct Coupled {
    credit: Credit,
}

impl CongestionControl for Coupled {
    fn couples(&self) -> bool {
        true
    }

    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        let cut = (linked::total_window(path) / 2.0) as u32;
        path.cwnd.saturating_sub(cut).max(linked::floor(path.paths))
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        self.credit
            .avoid(path, ack, |path| 1.0 / linked::total_window(path));
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        if state >= CaState::Cwr {
            self.credit.clear();
        }
    }
}
