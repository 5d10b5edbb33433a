//! Careful Resume (RFC 9959).
//!
//! A connection begins with half of the window that an earlier one used, once it knows that the path is the same. It takes
//! that back at the first sign that it is too much.
//!
//! It stands before a controller, which has the window to itself until the jump and after it.

use super::{Ack, CongestionControl, Restart};
use crate::path::{CaState, Member, Path};
use crate::retained::{Capacity, Retained};
use crate::{Nanos, Tuple};

/// The window after a retreat, at least (RFC 9002 section 7.2).
const LEAST: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The path is looked at; `delivered` packets have arrived.
    Reconnaissance { delivered: u32 },
    /// What the jump allowed leaves, from packet `first` on.
    Unvalidated { first: u64, since: Nanos },
    /// It arrives, up to packet `end`.
    Validating { end: u64 },
    /// It was too much. `end` is known with the next acknowledgement.
    SafeRetreat { end: Option<u64> },
    /// The controller has the window, and what it uses of it is kept.
    Normal,
}

pub(crate) struct CarefulResume {
    controller: Box<dyn CongestionControl>,
    phase: Phase,
    initial_window: u32,
    /// Of the path, by an earlier connection.
    saved: Option<Capacity>,
    /// Packets that the path is known to carry (RFC 9959's PipeSize).
    pipe: u32,
    retained: Retained,
    tuple: Tuple,
}

impl CarefulResume {
    /// Before a controller that sets no rate: what it jumps over is slow start.
    pub fn before(
        controller: Box<dyn CongestionControl>,
        initial_window: u32,
        retained: Retained,
        tuple: Tuple,
    ) -> Box<dyn CongestionControl> {
        if controller.paces() {
            return controller;
        }
        Box::new(Self {
            controller,
            phase: Phase::Reconnaissance { delivered: 0 },
            initial_window,
            saved: retained.of(tuple),
            pipe: 0,
            retained,
            tuple,
        })
    }

    /// The window to begin with: at most half of the saved one, if the round trip is like the saved one.
    fn jump(&self, path: &Path) -> Option<u32> {
        let saved = self.saved?;
        let alike = (saved.rtt / 2..=saved.rtt.saturating_mul(10)).contains(&path.min_rtt);
        let window = saved.window / 2 / u64::from(path.mss);
        let window = u32::try_from(window).unwrap_or(u32::MAX);
        (alike && window > path.cwnd).then_some(window)
    }

    /// The first window arrived, and there is more to send than the present one admits.
    fn leave_reconnaissance(&mut self, path: &mut Path, ack: &Ack) {
        self.phase = Phase::Normal;
        if let Some(window) = self.jump(path) {
            self.pipe = path.in_flight;
            path.cwnd = window;
            self.phase = Phase::Unvalidated {
                first: ack.next_seq,
                since: ack.now,
            };
        }
    }

    /// The first packet of the jump arrived, or a round trip has passed. What of the window was not used goes.
    fn validate(&mut self, path: &mut Path, ack: &Ack) {
        path.cwnd = path.in_flight.max(self.pipe);
        self.phase = if path.in_flight > self.pipe {
            Phase::Validating { end: ack.next_seq }
        } else {
            Phase::Normal
        };
    }

    /// What is in use of the window is what the path carries (RFC 9959's Observing Phase).
    fn observe_capacity(&self, path: &Path, ack: &Ack) {
        if ack.cwnd_limited && path.state == CaState::Open && path.min_rtt > 0 {
            let used = path.cwnd.min(path.in_flight + ack.packets);
            let capacity = Capacity {
                window: u64::from(used) * u64::from(path.mss),
                rtt: path.min_rtt,
            };
            self.retained.keep(self.tuple, capacity);
        }
    }
}

impl CongestionControl for CarefulResume {
    fn on_established(&mut self, path: &mut Member) {
        self.controller.on_established(path);
    }

    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        match self.phase {
            Phase::Unvalidated { .. } | Phase::Validating { .. } => {
                self.phase = Phase::SafeRetreat { end: None };
                (self.pipe / 2).max(LEAST)
            }
            Phase::SafeRetreat { .. } => path.cwnd.max(LEAST),
            Phase::Reconnaissance { .. } | Phase::Normal => {
                self.phase = Phase::Normal;
                self.controller.ssthresh(path)
            }
        }
    }

    fn on_sample(&mut self, path: &mut Member, ack: &Ack) {
        self.controller.on_sample(path, ack);
        match &mut self.phase {
            Phase::Reconnaissance { delivered } => *delivered += ack.packets,
            Phase::Unvalidated { .. } | Phase::Validating { .. } => self.pipe += ack.packets,
            Phase::SafeRetreat { end } => {
                self.pipe += ack.packets;
                if ack.una >= *end.get_or_insert(ack.next_seq) {
                    path.ssthresh = self.pipe.max(LEAST);
                    self.phase = Phase::Normal;
                }
            }
            Phase::Normal => self.observe_capacity(path, ack),
        }
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        match self.phase {
            Phase::Reconnaissance { delivered } => {
                self.controller.on_ack(path, ack);
                if ack.cwnd_limited && delivered >= self.initial_window {
                    self.leave_reconnaissance(path, ack);
                }
            }
            Phase::Unvalidated { first, since } => {
                if ack.una > first || ack.now - since > path.srtt {
                    self.validate(path, ack);
                }
            }
            Phase::Validating { end } => {
                if ack.una >= end {
                    self.phase = Phase::Normal;
                }
            }
            Phase::SafeRetreat { .. } => {}
            Phase::Normal => self.controller.on_ack(path, ack),
        }
    }

    fn couples(&self) -> bool {
        self.controller.couples()
    }

    fn needs_ecn(&self) -> bool {
        self.controller.needs_ecn()
    }

    fn low_latency(&self) -> bool {
        self.controller.low_latency()
    }

    fn paces_shortly(&self) -> bool {
        self.controller.paces_shortly()
    }

    fn on_state(&mut self, path: &mut Member, state: CaState) {
        self.controller.on_state(path, state);
    }

    fn on_timeout(&mut self, path: &mut Member) {
        self.phase = Phase::Normal;
        self.controller.on_timeout(path);
    }

    fn on_reduced(&mut self, path: &mut Member) {
        self.controller.on_reduced(path);
    }

    fn on_restart(&mut self, path: &mut Member, restart: &Restart) {
        self.controller.on_restart(path, restart);
    }

    fn undo(&mut self, path: &Member, prior: u32) -> u32 {
        self.controller.undo(path, prior)
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        self.controller.observe()
    }
}

#[cfg(test)]
mod tests {
    use super::super::reno::Reno;
    use super::*;
    use crate::{MILLISECOND as MS, NEVER};

    const RTT: Nanos = 300 * MS;
    const MSS: u32 = 1_000;

    fn tuple() -> Tuple {
        let end = "10.0.0.1:443".parse().expect("an address");
        Tuple {
            local: end,
            remote: end,
        }
    }

    /// A path whose last connection used so many packets.
    struct Resumed {
        retained: Retained,
        controller: Box<dyn CongestionControl>,
        paths: Vec<Path>,
        now: Nanos,
    }

    impl Resumed {
        fn new(window: u64, rtt: Nanos) -> Self {
            let retained = Retained::default();
            let window = window * u64::from(MSS);
            retained.keep(tuple(), Capacity { window, rtt });
            let reno = Box::new(Reno::default());
            let mut path = Path::new(MSS, 10);
            (path.min_rtt, path.srtt) = (RTT, RTT);
            Self {
                controller: CarefulResume::before(reno, 10, retained.clone(), tuple()),
                retained,
                paths: vec![path],
                now: 0,
            }
        }

        /// Packets up to `una` arrived, of those up to `next`. Gives the window.
        fn ack(&mut self, una: u64, packets: u32, next: u64) -> u32 {
            let ack = self.sample(una, packets, next);
            let mut path = Member::new(&mut self.paths, 0);
            self.controller.on_ack(&mut path, &ack);
            self.paths[0].cwnd
        }

        /// The same of packets that were sent before a loss: the window does not grow for them.
        fn sample(&mut self, una: u64, packets: u32, next: u64) -> Ack {
            self.now += MS;
            self.paths[0].in_flight = (next - una) as u32;
            let ack = Ack {
                now: self.now,
                packets,
                marked: 0,
                rtt: Some(RTT),
                cwnd_limited: true,
                next_seq: next,
                una,
            };
            let mut path = Member::new(&mut self.paths, 0);
            self.controller.on_sample(&mut path, &ack);
            ack
        }

        /// A loss reduces the window, as a path of QUIC does.
        fn lose(&mut self) -> u32 {
            let mut path = Member::new(&mut self.paths, 0);
            path.ssthresh = self.controller.ssthresh(&mut path);
            path.cwnd = path.ssthresh;
            path.cwnd
        }
    }

    #[test]
    fn the_window_jumps_to_half_of_the_saved_one_once_the_first_window_arrived() {
        let mut path = Resumed::new(200, RTT);
        assert_eq!(path.ack(5, 5, 15), 15, "slow start goes on");
        assert_eq!(path.ack(10, 5, 20), 100);
    }

    #[test]
    fn another_round_trip_is_another_path() {
        for rtt in [2 * RTT + 2, RTT / 10 - 1, NEVER] {
            let mut path = Resumed::new(200, rtt);
            assert_eq!(path.ack(10, 10, 20), 20, "{rtt}");
        }
        for rtt in [2 * RTT, RTT / 10] {
            assert_eq!(Resumed::new(200, rtt).ack(10, 10, 20), 100, "{rtt}");
        }
    }

    #[test]
    fn a_smaller_window_than_the_present_one_is_no_jump() {
        assert_eq!(Resumed::new(40, RTT).ack(10, 10, 20), 20);
    }

    #[test]
    fn what_was_sent_is_validated_before_the_controller_goes_on() {
        let mut path = Resumed::new(200, RTT);
        path.ack(10, 10, 20);
        // The jump's first packet is 20, and 70 more left with it.
        assert_eq!(path.ack(20, 10, 90), 100, "none of the jump arrived");
        assert_eq!(path.ack(21, 1, 91), 70, "what was not used goes");
        assert_eq!(path.ack(60, 39, 130), 70);
        assert_eq!(path.ack(91, 31, 161), 70);
        assert_eq!(path.ack(101, 10, 171), 80, "slow start goes on");
    }

    #[test]
    fn a_loss_takes_the_jump_back_to_half_of_what_arrived() {
        let mut path = Resumed::new(200, RTT);
        path.ack(10, 10, 20);
        path.ack(20, 10, 90);
        path.ack(50, 30, 150);
        // 10 were in flight at the jump, and 40 arrived since.
        assert_eq!(path.lose(), 25);
        assert_eq!(path.lose(), 25, "it is one event");
        path.sample(70, 20, 155);
        path.sample(155, 85, 160);
        assert_eq!((path.paths[0].cwnd, path.paths[0].ssthresh), (25, 155));
        assert_eq!(path.ack(160, 5, 170), 30, "slow start up to there");
    }

    #[test]
    fn a_loss_before_the_jump_prevents_it() {
        let mut path = Resumed::new(200, RTT);
        path.ack(5, 5, 15);
        assert_eq!(path.lose(), 7);
        assert_eq!(path.ack(15, 10, 22), 8, "congestion avoidance");
    }

    #[test]
    fn the_window_in_use_is_kept() {
        let mut path = Resumed::new(40, RTT);
        path.ack(10, 10, 20);
        path.ack(20, 10, 50);
        let window = 40 * u64::from(MSS);
        let found = path
            .retained
            .of(tuple())
            .map(|kept| (kept.window, kept.rtt));
        assert_eq!(found, Some((window / 2, RTT)));
    }
}
