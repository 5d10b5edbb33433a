//! Linked increases (RFC 6356).

use super::linked::{self, Credit};
use super::{Ack, CongestionControl, reno, slow_start};
use crate::path::{CaState, Member, Path};
use polypath_settings::{Algorithm, algorithm, choice};

algorithm! {
    "lia",
    "Linked increases: coupled additive increase, halving on loss",
    "RFC 6356 section 3; variant mptcp.org: net/mptcp/mptcp_coupled.c; variant paper: Wischik et al., NSDI 2011";
    /// Settings of LIA.
    LiaConfig {
        /// the specification, the out-of-tree kernel (integer arithmetic, a counter of ACKs rather than of packets) or the paper,
        /// whose increase is the least over all sets of paths with this one in them, not of all paths and this one alone
        variant: Variant as Text = Text("rfc"),
    }
}

choice! {
    /// Whose LIA it is.
    Variant {
        Rfc = "rfc",
        Kernel = "mptcp.org",
        Paper = "paper",
    }
}

impl Algorithm<dyn CongestionControl> for LiaConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        match self.variant {
            Variant::Rfc => Box::new(Lia::<false>::default()),
            Variant::Paper => Box::new(Lia::<true>::default()),
            Variant::Kernel => Box::new(Kernel),
        }
    }
}

/// RFC 6356 section 3, in packets: each acknowledged packet adds `min(alpha / cwnd_total, 1 / cwnd_i)`.
/// `SETS`: the paper's rule, of which `alpha / cwnd_total` is that of the set of all paths.
#[derive(Default)]
struct Lia<const SETS: bool> {
    credit: Credit,
}

/// `alpha / cwnd_total` = max(w/rtt^2) / (sum w/rtt)^2 over the established paths (RFC 6356 section 4, equation 2).
fn increase(paths: &[Path]) -> f64 {
    let (mut best, mut total) = (0.0, 0.0);
    for path in linked::usable(paths) {
        let srtt = linked::srtt(path);
        let rate = f64::from(linked::window(path)) / srtt;
        let slope = rate / srtt;
        if slope > best {
            best = slope;
        }
        total += rate;
    }
    if total > 0.0 {
        best / (total * total)
    } else {
        f64::INFINITY
    }
}

/// The least of max(w/rtt^2) / (sum w/rtt)^2 over the sets of paths that `path` is in. Of the sets with the same maximum the one of all
/// paths up to it has the largest sum.
fn least_increase(path: &Path, paths: &[Path]) -> f64 {
    let slope = |path: &Path| linked::rate(path) / linked::srtt(path);
    let of_set = |most: f64| {
        let within = linked::usable(paths).filter(|path| slope(path) <= most);
        let total: f64 = within.map(linked::rate).sum();
        most / (total * total)
    };
    let own = slope(path);
    linked::usable(paths)
        .map(slope)
        .filter(|slope| *slope >= own)
        .map(of_set)
        .fold(f64::INFINITY, f64::min)
}

impl<const SETS: bool> CongestionControl for Lia<SETS> {
    fn couples(&self) -> bool {
        true
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        self.credit.avoid(path, ack, |path| {
            let increase = if SETS {
                least_increase(path, path.paths)
            } else {
                increase(path.paths)
            };
            increase.min(1.0 / f64::from(path.cwnd))
        });
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        if state >= CaState::Cwr {
            self.credit.clear();
        }
    }
}

/// The kernel's arithmetic: one alpha for the connection, a fixed-point number of 12 bits, computed again only in slow start, when a window has
/// grown and when a path has changed its state. The counter takes one step per acknowledgement, of however many packets.
struct Kernel;

const ALPHA_SCALE: u32 = 12;

impl Kernel {
    fn recompute(paths: &mut [Path]) {
        let alpha = Self::alpha(paths);
        for path in paths {
            path.coupled = alpha;
        }
    }

    fn alpha(paths: &[Path]) -> u64 {
        if !linked::several(paths) {
            return 1;
        }
        // `max(w / rtt^2)`, compared as cross products so that nothing is divided.
        let Some(best) = linked::usable(paths).reduce(|best, path| {
            let (rtt, best_rtt) = (u128::from(path.srtt / 1000), u128::from(best.srtt / 1000));
            if u128::from(path.cwnd) * best_rtt * best_rtt >= u128::from(best.cwnd) * rtt * rtt {
                path
            } else {
                best
            }
        }) else {
            return 1;
        };
        let sum: u64 = linked::usable(paths)
            .map(|path| {
                (u64::from(path.cwnd) << 10) * (best.srtt / 1000) / (path.srtt / 1000).max(1)
            })
            .sum();
        let squared = u128::from(sum) * u128::from(sum);
        (u128::from(best.cwnd) << 32)
            .checked_div(squared)
            .map_or(1, |alpha| alpha.max(1) as u64)
    }
}

impl CongestionControl for Kernel {
    fn couples(&self) -> bool {
        true
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if !path.multipath {
            return reno::avoid(path, ack);
        }
        if !ack.cwnd_limited {
            return;
        }
        if path.in_slow_start() {
            slow_start(path, ack.packets);
            return Self::recompute(path.paths);
        }
        if path.coupled == 0 {
            Self::recompute(path.paths);
        }
        let mut threshold = u64::from(path.cwnd);
        if linked::several(path.paths) {
            threshold = threshold.max((1 << ALPHA_SCALE) / path.coupled);
        }
        if linked::count_ack(path, threshold) {
            Self::recompute(path.paths);
        }
    }

    fn on_state(&mut self, path: &mut Member, _state: CaState) {
        for path in path.paths.iter_mut() {
            path.coupled = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{increase, least_increase, linked};
    use crate::MILLISECOND;
    use crate::path::Path;

    fn path(cwnd: u32, rtt_ms: u64) -> Path {
        Path {
            established: true,
            srtt: rtt_ms * MILLISECOND,
            cwnd,
            ssthresh: 2,
            ..Path::new(1400, 10)
        }
    }

    /// Over all subsets, one by one.
    fn by_enumeration(paths: &[Path], own: usize) -> f64 {
        let sets = (1..1u32 << paths.len()).filter(|set| set & 1 << own != 0);
        let of_set = |set: u32| {
            let within: Vec<_> = (0..paths.len())
                .filter(|it| set & 1 << it != 0)
                .map(|it| &paths[it])
                .collect();
            let total: f64 = within.iter().map(|path| linked::rate(path)).sum();
            let slopes = within
                .iter()
                .map(|path| linked::rate(path) / linked::srtt(path));
            slopes.fold(0.0, f64::max) / (total * total)
        };
        sets.map(of_set).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_paper_takes_the_least_over_all_sets_of_paths() {
        for paths in [
            vec![path(10, 50), path(10, 50)],
            vec![path(40, 10), path(10, 20), path(3, 100)],
            vec![path(1, 30), path(90, 30), path(20, 5), path(20, 80)],
            vec![path(7, 60)],
        ] {
            for own in 0..paths.len() {
                let found = least_increase(&paths[own], &paths);
                let least = by_enumeration(&paths, own);
                assert!((found / least - 1.0).abs() < 1e-12, "{found} and {least}");
            }
        }
    }

    #[test]
    fn it_differs_from_the_rfc_where_paths_are_unlike() {
        let alike = [path(10, 50), path(10, 50), path(10, 50)];
        let rfc = increase(&alike);
        assert!((least_increase(&alike[0], &alike) / rfc - 1.0).abs() < 1e-12);
        let unlike = [path(4, 5), path(20, 20), path(20, 40)];
        let least = least_increase(&unlike[2], &unlike);
        assert!(least < 0.8 * increase(&unlike).min(1.0 / 20.0));
    }
}
