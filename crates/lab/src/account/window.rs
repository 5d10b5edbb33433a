//! Why a congestion window is short: what reduced it last.

use polypath_transport::path::{CaState, Path};

use super::alone::Alone;
use super::cause::{Cause, Kind};

/// A path's window as it was when it was last looked at, and what reduced it.
#[derive(Debug)]
pub(super) struct Window {
    reduced_by: Cause,
    /// A packet was lost that the sender has not reacted to yet; and one of an earlier recovery.
    lost: Option<Cause>,
    earlier: Option<Cause>,
    alone: Alone,
    state: CaState,
    cwnd: u32,
    ssthresh: u32,
    in_flight: u32,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            reduced_by: Cause::of(Kind::SlowStart),
            lost: None,
            earlier: None,
            alone: Alone::default(),
            state: CaState::Open,
            cwnd: 0,
            ssthresh: u32::MAX,
            in_flight: 0,
        }
    }
}

impl Window {
    /// A packet was lost, or a queue dropped it. The first since the last reduction is what the next one is for.
    pub fn on_lost(&mut self, cause: Cause) {
        self.lost.get_or_insert(cause);
        if cause.kind == Kind::RandomLoss {
            self.alone.on_random_loss();
        }
    }

    /// Whether something is lost that the sender has to repair.
    pub fn repairs(&self) -> bool {
        self.lost.is_some() || self.state >= CaState::Recovery
    }

    /// Why it is short.
    pub fn cause(&self) -> Cause {
        self.lost.unwrap_or(self.reduced_by)
    }

    /// The part of what it lacks that it would have had without coupling; `needed` packets fill the link.
    pub fn coupling(&self, path: &Path, needed: u32) -> u8 {
        self.alone.share(path, needed)
    }

    /// Looks at the path again.
    pub fn observe(&mut self, path: &Path) {
        let began = path.state >= CaState::Cwr && path.state > self.state;
        let ended = path.state < CaState::Cwr && self.state >= CaState::Cwr;
        let threshold = path.ssthresh != self.ssthresh && path.ssthresh != u32::MAX;
        self.alone.grow(path);
        if began || (threshold && path.state != CaState::Open) {
            let lost = self.lost.take().or(self.earlier.take());
            self.reduced_by = lost.unwrap_or_else(|| self.without_loss(path, began));
            self.alone
                .reduce(path, self.reduced_by.kind == Kind::RandomLoss);
        } else if ended {
            self.earlier = self.lost.take();
        } else if threshold {
            self.reduced_by = Cause::of(Kind::Controller);
        } else if path.cwnd < self.cwnd && path.state == CaState::Open {
            let idle = self.in_flight == 0;
            self.reduced_by = Cause::of(if idle {
                Kind::Idleness
            } else {
                Kind::Controller
            });
        }
        self.state = path.state;
        self.cwnd = path.cwnd;
        self.ssthresh = path.ssthresh;
        self.in_flight = path.in_flight;
    }

    /// What reduced the window where no packet is known to be lost.
    fn without_loss(&self, path: &Path, began: bool) -> Cause {
        match path.state {
            CaState::Cwr => Cause::of(Kind::Mark),
            _ if began && self.state < CaState::Cwr => Cause::of(Kind::Reordering),
            _ => self.reduced_by,
        }
    }
}
