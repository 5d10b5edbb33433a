//! What was sent and is to arrive: segments in flight, their losses, the congestion control, and the timers that watch over them.
//!
//! What acknowledgements, losses and timeouts mean is in the files of [`super::recovery`].

use polypath_wire::tcp::Segment;

use super::controller::Controller;
use super::flight::Flight;
use super::keepalive::Silence;
use super::recovery::Recovery;
use super::timer::{Idle, Pending, Timers};
use crate::congestion::{CongestionControl, Restart};
use crate::linux::send_memory;
use crate::path::rtt::RttEstimator;
use crate::path::{INFINITE_SSTHRESH, Totals};
use crate::settings::Config;
use crate::tcp::context::{Context, Options, Shared};
use crate::{NEVER, Nanos, SECOND};

/// Twice the maximum segment lifetime, as Linux has it (TCP_TIMEWAIT_LEN).
const TIME_WAIT: Nanos = 60 * SECOND;

/// What a socket sent, and what becomes of it.
pub(crate) struct Transfer {
    pub(crate) flight: Flight,
    pub(crate) recovery: Recovery,
    pub(crate) controller: Controller,
    pub(crate) silence: Silence,
    pub(crate) totals: Totals,
    pub(super) rtt: RttEstimator,
    pub(super) timers: Timers,
    /// The peer tells what came out of order (RFC 2018).
    pub(super) sack: bool,
    /// The peer does not know yet of a reduction (RFC 3168's CWR).
    pub(super) cwr_due: bool,
}

impl Transfer {
    pub fn new(config: &Config, iss: u32, congestion: Box<dyn CongestionControl>) -> Self {
        Self {
            flight: Flight::new(iss),
            recovery: Recovery::new(config),
            controller: Controller::new(congestion),
            silence: Silence::default(),
            totals: Totals::default(),
            rtt: RttEstimator::default(),
            timers: Timers::default(),
            sack: config.sack,
            cwr_due: false,
        }
    }

    /// Nothing that was sent is awaited any more.
    pub(super) fn abandon(&mut self) {
        self.flight.clear();
        self.recovery.reset();
        self.timers = Timers::default();
    }

    /// A window that was not used for a timeout falls to the initial window, at once or by halves (RFC 5681 section 4.1).
    #[cold]
    pub(super) fn restart_after_idle(&mut self, cx: &mut Context<impl Options>) {
        let rto = self.rtt.rto(&cx.shared.config);
        let idle = cx.shared.now - self.flight.data_left_at();
        let outdated = idle > rto && !self.controller.paces();
        if outdated {
            let path = &mut cx.path;
            let floor = cx.shared.config.initial_window.min(path.cwnd);
            if cx.shared.config.profile.restarts_at_once() {
                path.cwnd = floor;
            } else {
                if path.ssthresh != INFINITE_SSTHRESH {
                    path.ssthresh = path.ssthresh.max(path.cwnd * 3 / 4);
                }
                let mut rest = idle;
                while rest > rto && path.cwnd > floor {
                    path.cwnd /= 2;
                    rest -= rto;
                }
                path.cwnd = path.cwnd.max(floor);
            }
            path.cwnd_count = 0;
        }
        self.tell_of_restart(cx, outdated);
    }

    /// Data leaves while nothing is in flight (Linux `tcp_event_data_sent`).
    #[cold]
    pub(super) fn tell_of_restart(&mut self, cx: &mut Context<impl Options>, outdated: bool) {
        let now = cx.shared.now;
        let restart = Restart {
            now,
            idle: now - self.flight.data_left_at(),
            outdated,
            next_seq: self.flight.next(),
            app_limited: self.controller.limited_by_application(),
        };
        (self.controller.algorithm()).on_restart(&mut cx.path, &restart);
    }

    /// Makes room for two windows while this one is not full, as long as a writer waits (`tcp_check_space`, `tcp_should_expand_sndbuf`).
    pub(crate) fn grow_buffer(&self, cx: &mut Context<impl Options>) {
        if self.flight.in_flight() < cx.path.cwnd {
            let buffer = cx.shared.config.send_buffer;
            let wanted = send_memory::wanted_buffer(&cx.path, cx.shared.config.initial_window);
            let most = wanted.min(buffer.maximum.max(buffer.default));
            cx.path.buffer = cx.path.buffer.max(most);
        }
    }

    /// The last ACK of the handshake must be answered: it is sent again when the timer fires, which happened `attempts` times.
    pub(crate) fn await_answer(&mut self, shared: &Shared, attempts: u32) {
        let delay = self.rtt.rto(&shared.config) << attempts.min(6);
        self.timers.set(Pending::Retransmission, shared.now + delay);
    }

    /// The answer came. What was sent in the meantime, at most a FIN, has the timer to itself from now on.
    pub(crate) fn answered(&mut self, shared: &Shared) {
        self.timers.stop_retransmission();
        self.arm_retransmission(shared);
    }

    /// What waits here leaves when its timer says so.
    pub(crate) fn tries_again(&self) -> bool {
        self.timers.pending() == Pending::Probe
    }

    /// Whether the retransmission timer neither runs nor has passed its turn to another of the kind.
    pub(super) fn awaits_no_answer(&self) -> bool {
        matches!(self.timers.pending(), Pending::None | Pending::Probe)
    }

    /// Nothing but a FIN can still come: it is awaited for as long as TIME-WAIT lasts (Linux tcp_fin_timeout).
    pub(crate) fn limit_fin_wait(&mut self, shared: &Shared) {
        if !self.timers.time_waits() {
            (self.timers).set_idle(Idle::TimeWait, shared.now + TIME_WAIT);
        }
    }

    pub(super) fn enter_time_wait(&mut self, shared: &mut Shared) {
        self.timers.stop_retransmission();
        (self.timers).set_idle(Idle::TimeWait, shared.now + TIME_WAIT);
    }

    /// Whether it acknowledges more than the SYN.
    pub(crate) fn acknowledges_data(&self, segment: &Segment) -> bool {
        self.flight.acknowledged_by(segment) > 1
    }

    /// When the transmission timer fires, if it runs.
    pub(crate) fn transmission_timer(&self) -> Option<Nanos> {
        let at = self.timers.transmission();
        (at != NEVER).then_some(at)
    }

    /// Waits for the connection to be idle, where the host asked for it.
    pub(super) fn start_keepalive(&mut self, shared: &Shared) {
        if let Some(keepalive) = shared.config.keepalive {
            self.timers
                .set_idle(Idle::Keepalive, shared.now + keepalive.time);
        }
    }
}
