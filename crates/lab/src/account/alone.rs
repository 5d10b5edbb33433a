//! The window that a path would have without coupling: Reno's window, beside the path's own.

use polypath_transport::path::{CaState, Path};

use super::cause::PARTS;

/// Where the window of QUIC begins after persistent congestion (RFC 9002 section 7.6.2).
const LEAST: u32 = 2;

/// A window in packets that grows by one a round trip (RFC 5681 section 3.1). A loss at random meets it as often as a packet of the path is lost,
/// so that a larger one is met more often: on average a round trip takes p w²/2 of it, which leaves the window of Mathis et al.
/// (CCR 27(3), 1997). A queue drops when the path meets it, and halves the one as the other. A timeout takes both to where they begin, and
/// this one to half of what it was in slow start (RFC 5681 section 3.1).
#[derive(Debug, Default)]
pub(super) struct Alone {
    window: f64,
    /// Where slow start ends after a timeout.
    threshold: f64,
    acked: u64,
    lost: u64,
    /// The path's window was full when it was last looked at.
    limited: bool,
}

impl Alone {
    pub fn on_random_loss(&mut self) {
        self.lost += 1;
    }

    /// The path has had acknowledgements since.
    pub fn grow(&mut self, path: &Path) {
        let acked = path.acked.saturating_sub(self.acked);
        if acked == 0 {
            return;
        }
        self.acked = path.acked;
        if !std::mem::replace(&mut self.limited, path.window_full()) {
            return; // RFC 7661: what is not used does not grow.
        }
        let (mss, cwnd) = (f64::from(path.mss.max(1)), f64::from(path.cwnd.max(1)));
        if path.in_slow_start() {
            self.window = self.window.max(cwnd);
            return;
        }
        if self.window < self.threshold {
            let grown = self.window + acked as f64 / mss;
            self.window = grown.min(self.threshold).max(cwnd);
            return;
        }
        let packets = path.acked as f64 / mss + self.lost as f64;
        let lost = self.lost as f64 / packets;
        let round_trips = acked as f64 / mss / cwnd;
        let change = round_trips * (1.0 - lost * self.window * self.window / 2.0);
        self.window = (self.window + change).max(cwnd);
    }

    /// The path's window was reduced.
    pub fn reduce(&mut self, path: &Path, at_random: bool) {
        if path.state == CaState::Loss || path.cwnd <= LEAST && path.in_slow_start() {
            // A further timeout finds it where the first one took it.
            self.threshold = self.threshold.max(self.window / 2.0);
            self.window = f64::from(path.cwnd);
            return;
        }
        self.threshold = 0.0;
        if !at_random {
            self.window /= 2.0;
        }
        self.window = self.window.max(f64::from(path.ssthresh.min(path.cwnd)));
    }

    /// Of [`PARTS`], how much of what the path's window lacks to `needed` packets this one would have.
    pub fn share(&self, path: &Path, needed: u32) -> u8 {
        let (has, needed) = (f64::from(path.cwnd), f64::from(needed));
        if needed <= has {
            return 0;
        }
        let part = (self.window.min(needed) - has) / (needed - has);
        (part.clamp(0.0, 1.0) * f64::from(PARTS)).round() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that has sent `packets` with a window of two, of which every hundredth is lost.
    fn after(packets: u64) -> (Alone, Path) {
        let mut path = Path::new(1000, 2);
        (path.ssthresh, path.in_flight) = (2, 2);
        let mut alone = Alone::default();
        for packet in 1..=packets {
            if packet % 100 == 0 {
                alone.on_random_loss();
            }
            path.acked += 1000;
            alone.grow(&path);
        }
        (alone, path)
    }

    #[test]
    fn at_one_per_cent_a_window_alone_is_that_of_mathis() {
        let (alone, path) = after(100_000);
        let expected = (2.0f64 / 0.01).sqrt();
        assert!((alone.window - expected).abs() < 0.5, "{}", alone.window);
        // Of 52 packets it would have 14 in place of 2: 12 of 50.
        assert_eq!(alone.share(&path, 52), 4);
        assert_eq!(alone.share(&path, 2), 0);
    }

    #[test]
    fn a_timeout_takes_it_to_where_the_path_begins_again() {
        let (mut alone, mut path) = after(100_000);
        let before = alone.window;
        (path.state, path.cwnd, path.ssthresh, path.in_flight) = (CaState::Loss, 1, 1, 1);
        alone.reduce(&path, true);
        alone.reduce(&path, true);
        assert_eq!(alone.share(&path, 52), 0);
        // A packet for each that was acknowledged, up to half of what it was; then a packet a round trip.
        for _ in 0..3 {
            path.acked += 1000;
            alone.grow(&path);
        }
        assert!((alone.window - 4.0).abs() < 1e-9, "{}", alone.window);
        for _ in 0..30 {
            path.acked += 1000;
            alone.grow(&path);
        }
        assert!(alone.window > before / 2.0 && alone.window < before + 20.0);
    }
}
