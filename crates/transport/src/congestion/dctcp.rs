//! Data Center TCP: marks shrink the window by the part of the packets that they are on, as in Linux (RFC 8257; Alizadeh et al., SIGCOMM 2010).
//!
//! Alpha is in 1/1024, as in the kernel. The window that an acknowledgement ends counts before its mark reduces the window; over QUIC, after that.

use super::{Ack, CongestionControl, reno};
use crate::path::{CaState, Member};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "dctcp",
    "DCTCP on each path by itself: falls by half the part of packets that are marked (ECN, which it turns on); without ECN it is Reno",
    "RFC 8257; Alizadeh et al., SIGCOMM 2010; Linux net/ipv4/tcp_dctcp.c";
    /// Settings of DCTCP.
    DctcpConfig {
        /// weight of a window's part of marked packets in its average, as 1/2^shift_g
        shift_g: u32 as Integer.at_least(0).at_most(10) = Integer(4),
        /// that average at first, in 1/1024
        alpha_on_init: u32 as Integer.at_least(0).at_most(1024) = Integer(1024),
    }
}

impl Algorithm<dyn CongestionControl> for DctcpConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Dctcp {
            shift: self.shift_g,
            alpha: self.alpha_on_init,
            delivered: 0,
            marked: 0,
            end: None,
            prior: 0,
        })
    }
}

const ONE: u32 = 1024;

struct Dctcp {
    shift: u32,
    /// Estimated part of the packets that are marked (RFC 8257 section 3.3).
    alpha: u32,
    /// Packets since the present window of data began, and those of them that were marked.
    delivered: u32,
    marked: u32,
    /// Where that window ends; none before the first acknowledgement.
    end: Option<u64>,
    /// The window before the last reduction.
    prior: u32,
}

impl Dctcp {
    /// `dctcp_update_alpha`: steps 4 to 8 of RFC 8257 section 3.3.
    fn update(&mut self) {
        // What the shift leaves of a small alpha is nothing, and then all of it goes.
        let off = match self.alpha >> self.shift {
            0 => self.alpha,
            off => off,
        };
        let share =
            (u64::from(self.marked) << (10 - self.shift)) / u64::from(self.delivered.max(1));
        self.alpha = (self.alpha - off + share as u32).min(ONE);
        (self.delivered, self.marked) = (0, 0);
    }

    /// `dctcp_react_to_loss`: a loss is one to any TCP (RFC 8257 section 3.4).
    fn halve(&mut self, path: &mut Member) {
        self.prior = path.cwnd;
        path.ssthresh = (path.cwnd / 2).max(2);
    }
}

impl CongestionControl for Dctcp {
    fn needs_ecn(&self) -> bool {
        true
    }

    /// `dctcp_ssthresh`: RFC 8257 section 3.3, step 9.
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        self.prior = path.cwnd;
        let cut = (u64::from(path.cwnd) * u64::from(self.alpha)) >> 11;
        (path.cwnd - cut as u32).max(2)
    }

    fn on_sample(&mut self, _path: &mut Member, ack: &Ack) {
        self.delivered += ack.packets;
        self.marked += ack.marked;
        let end = *self.end.get_or_insert(ack.una);
        if ack.una >= end {
            self.update();
            self.end = Some(ack.next_seq);
        }
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        reno::avoid(path, ack);
    }

    fn on_state(&mut self, path: &mut Member, state: CaState) {
        if state == CaState::Recovery {
            self.halve(path);
        }
    }

    fn on_timeout(&mut self, path: &mut Member) {
        self.halve(path);
    }

    fn undo(&mut self, path: &Member, _prior: u32) -> u32 {
        path.cwnd.max(self.prior)
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![("alpha", f64::from(self.alpha) / f64::from(ONE))]
    }
}
