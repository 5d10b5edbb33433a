//! The window of a path: reports of acknowledgements, losses and marks to its congestion control (RFC 9002 section 7).

use super::contents::Contents;
use super::loss::{InFlight, Sent};
use super::rtt::Rtt;
use crate::congestion::{self, CongestionControl, Restart};
use crate::path::{Acknowledged, CaState, DeliveryRate, Member, Pacer, Path};
use crate::{Nanos, SECOND};

/// kMinimumWindow in packets (RFC 9002 section 7.2).
pub(super) const LEAST_WINDOW: u32 = 2;
/// Packets leave at five quarters of a window a round trip (RFC 9002 section 7.7).
const PACING: (u64, u64) = (5, 4);

/// What packets that were acknowledged together come to.
pub(super) struct Sum {
    pub eliciting: bool,
    /// Some were sent as ECN-capable.
    pub ecn: bool,
    /// Packets that the peer reports as marked besides those that it had reported.
    pub marked: u32,
    /// Those that counted against the window, and those for which it grows.
    pub delivered: u32,
    pub growing: u32,
    /// None of them was a full one, of as many bytes as the path takes.
    pub small: bool,
}

impl Sum {
    #[inline]
    pub fn of(acked: &[Sent<Contents>], window: &Window, full: u32) -> Self {
        let since = window.grows_from();
        let mut sum = Self {
            eliciting: false,
            ecn: false,
            marked: 0,
            delivered: 0,
            growing: 0,
            small: true,
        };
        for packet in acked {
            sum.eliciting |= packet.eliciting;
            sum.ecn |= packet.ecn;
            sum.delivered += u32::from(packet.in_flight);
            sum.growing += u32::from(packet.in_flight & (packet.at >= since));
            sum.small &= !packet.in_flight | (packet.size < full);
        }
        sum
    }
}

/// What losses that were found come to.
#[derive(Clone, Copy, Default)]
pub(super) struct Lost {
    /// Those that say something of the path: no probes of its MTU, and nothing that went elsewhere.
    pub packets: u32,
    /// The window was reduced for them.
    pub reduced: bool,
    pub persistent: bool,
}

/// An acknowledgement, as far as a congestion control is told of it.
pub(super) struct News {
    pub now: Nanos,
    pub sum: Sum,
    /// It gave a round trip.
    pub measured: bool,
    /// Packets that were in flight before, and newly lost.
    pub before: u32,
    pub lost: Lost,
}

/// The window of a path, and the rate at which packets leave.
pub(super) struct Window {
    congestion: Box<dyn CongestionControl>,
    /// That sets the rate.
    paces: bool,
    pacer: Pacer,
    rate: DeliveryRate,
    /// The last reduction: packets sent before it take no part in another (RFC 9002 section 7.3.2). Where a rate is set, the last loss of an
    /// episode.
    recovery_since: Option<Nanos>,
    /// Data waited for the window or the pacer when sending last ended.
    held: bool,
}

impl Window {
    pub fn new(congestion: Box<dyn CongestionControl>) -> Self {
        Self {
            paces: congestion.paces(),
            pacer: Pacer::new(congestion.paces_shortly()),
            congestion,
            rate: DeliveryRate::default(),
            recovery_since: None,
            held: false,
        }
    }

    /// Its congestion control sets the rate.
    pub fn paces(&self) -> bool {
        self.paces
    }

    pub fn set_congestion(&mut self, congestion: Box<dyn CongestionControl>) {
        self.paces = congestion.paces();
        self.congestion = congestion;
    }

    /// What is known of the path is outdated: it begins again.
    pub fn restart(&mut self, congestion: Box<dyn CongestionControl>, now: Nanos) {
        self.set_congestion(congestion);
        self.rate = DeliveryRate::default();
        self.pacer = Pacer::new(self.congestion.paces_shortly());
        self.recovery_since = Some(now);
    }

    /// Data may be sent from now on.
    pub fn begin(&mut self, shown: &mut Member) {
        self.congestion.on_established(shown);
    }

    /// Packets that were sent at this time or later let it grow (RFC 9002 section 7.3.2).
    fn grows_from(&self) -> Nanos {
        self.recovery_since.map_or(0, |since| since + 1)
    }

    /// A turn of sending begins.
    pub fn release(&mut self, shown: &mut Path, now: Nanos) {
        self.held = false;
        // Something else may happen before the timer that waits for a burst's time.
        if shown.paced && self.pacer.release(now) {
            shown.paced = false;
        }
    }

    /// Data waits at the end of the turn.
    pub fn hold(&mut self, shown: &Path) {
        self.held = shown.room() == 0;
    }

    /// Nothing more leaves on it for now; gives when pacing lets the next burst go.
    pub fn settle(&mut self, shown: &mut Path, now: Nanos) -> Nanos {
        shown.paced = self.pacer.end_burst(now);
        if self.paces && !self.held && shown.established && shown.room() > 0 {
            self.rate.limit_by_application(shown.in_flight);
        }
        self.pacer.deadline()
    }

    pub fn pacing_deadline(&self) -> Nanos {
        self.pacer.deadline()
    }

    #[cfg(test)]
    pub fn pacer(&mut self) -> &mut Pacer {
        &mut self.pacer
    }

    /// The application did not fill it.
    pub fn limited_by_application(&self) -> bool {
        self.rate.limited_by_application()
    }

    /// Before a packet leaves where nothing was in flight for a while.
    pub fn on_restart(&mut self, shown: &mut Member, restart: &Restart) {
        self.congestion.on_restart(shown, restart);
        self.pacer.set_rate(shown);
    }

    /// Before a packet leaves, which is `alone` in flight.
    pub fn measure_sent(&mut self, number: u64, now: Nanos, alone: bool, in_flight: u32) {
        if self.paces {
            self.rate.on_sent(number, now, false, alone, in_flight);
        }
    }

    /// A packet is lost that was measured.
    pub fn measure_lost(&mut self, number: u64) {
        if self.paces && self.congestion.weighs_losses() {
            self.rate.on_packet_lost(number);
        }
    }

    /// A packet with so many bytes of data left. Acknowledgements alone are not paced (RFC 9002 section 7.7).
    pub fn on_sent(&mut self, shown: &mut Path, now: Nanos, bytes: u32) {
        self.pacer.on_sent(now, bytes);
        shown.paced = self.pacer.blocked();
        shown.in_flight += 1;
    }

    /// Packets were lost that no acknowledgement told of.
    pub fn on_lost(&mut self, packets: u32) {
        if !self.congestion.weighs_losses() {
            self.rate.on_lost(packets);
        }
    }

    /// The rate for packets from now on.
    pub fn set_rate(&mut self, shown: &mut Path) {
        if !self.paces {
            set_pacing_rate(shown);
        }
        self.pacer.set_rate(shown);
    }

    /// Tells the congestion control of an acknowledgement.
    #[inline]
    pub fn on_ack(
        &mut self,
        shown: &mut Member,
        news: &News,
        sent: &InFlight<Contents>,
        rtt: &Rtt,
    ) {
        let (sum, before) = (&news.sum, news.before);
        let limited = self.held || (shown.in_slow_start() && shown.cwnd < 2 * before);
        let mut report = congestion::Ack {
            now: news.now,
            packets: sum.delivered,
            marked: sum.marked,
            rtt: news.measured.then_some(rtt.latest()),
            cwnd_limited: limited,
            next_seq: sent.next(),
            una: sent.oldest(),
        };
        if sum.delivered > 0 {
            self.congestion.on_sample(shown, &report);
        }
        report.packets = sum.growing;
        if self.paces {
            self.control(shown, news, report, sent, rtt);
        } else if sum.growing > 0 {
            if shown.state != CaState::Open {
                self.end_recovery(shown);
            }
            self.congestion.on_ack(shown, &report);
            if shown.state != CaState::Open {
                reduce_as_asked(self, shown, news.now);
            }
        }
    }

    /// As [`Window::on_ack`], where the controller sets a rate.
    #[inline(never)]
    fn control(
        &mut self,
        shown: &mut Member,
        news: &News,
        mut report: congestion::Ack,
        sent: &InFlight<Contents>,
        rtt: &Rtt,
    ) {
        let (sum, lost) = (&news.sum, news.lost);
        let over = sum.growing > 0 && lost.packets == 0;
        if over && shown.state != CaState::Open && self.repaired(sent) {
            self.end_recovery(shown);
        }
        // Everything that arrived (Linux `rs->acked_sacked`), unless the window has to stay the least one (RFC 9002 section 7.6.2).
        report.packets = if lost.persistent { 0 } else { sum.delivered };
        let weighs = self.congestion.weighs_losses();
        let sample = self.rate.sample(Acknowledged {
            now: news.now,
            packets: sum.delivered,
            newly_lost: if weighs { 0 } else { lost.packets },
            una: report.una,
            small: sum.small,
            min_rtt: rtt.min(),
            departure: self.pacer.departure(news.now),
            selective: true,
            held_bursts: 1,
        });
        for lost in self.rate.take_losses() {
            self.congestion.on_lost(shown, &lost, &sample);
        }
        if self.congestion.control(shown, &report, &sample) {
            self.rate.limit_by_application(shown.in_flight);
        }
    }

    /// A packet that was sent since the last reduction arrived (RFC 9002 section 7.3.2), or a round trip went by without a loss
    /// ([`Window::prolong_recovery`]).
    #[cold]
    fn end_recovery(&mut self, shown: &mut Member) {
        shown.state = CaState::Open;
        self.congestion.on_state(shown, CaState::Open);
        if !self.paces && self.recovery_since.is_some() {
            self.congestion.on_reduced(shown);
        }
    }

    /// Packets that arrived tell at which rate the path delivers; `before` were in flight.
    #[inline]
    pub fn measure_acked(&mut self, acked: &[Sent<Contents>], before: u32, counts: bool) {
        if !self.paces {
            return;
        }
        self.rate.begin_ack(before);
        for packet in acked.iter().filter(|packet| packet.in_flight && counts) {
            self.rate.on_delivered(packet.number, packet.number + 1);
        }
    }

    /// RFC 9002 sections 5.2 and 7.6.2. To its controller it is a retransmission timeout (RFC 9438 section 4.8); not to schedulers, some of
    /// which put nothing on a path after one.
    pub fn on_persistent_congestion(&mut self, shown: &mut Member) {
        if !self.paces {
            // Appendix B.8. A controller that paces takes its window back with what is sent from now on.
            self.recovery_since = None;
        }
        self.congestion.on_timeout(shown);
        shown.cwnd = LEAST_WINDOW;
        shown.cwnd_count = 0;
        shown.state = CaState::Recovery;
        self.congestion.on_state(shown, CaState::Loss);
    }

    /// A packet that was sent at `at` met congestion (RFC 9002 section 7.3.2), which a loss or a mark tells and leads to `state`. Whether the
    /// window is reduced for it.
    pub fn on_congestion(
        &mut self,
        shown: &mut Member,
        now: Nanos,
        at: Nanos,
        state: CaState,
    ) -> bool {
        if self.recovery_since.is_some_and(|since| at <= since) {
            if self.paces {
                self.prolong_recovery(shown, now, state);
            }
            return false;
        }
        self.recovery_since = Some(now);
        shown.ssthresh = self.congestion.ssthresh(shown);
        shown.state = state;
        self.congestion.on_state(shown, state);
        shown.ssthresh = shown.ssthresh.max(LEAST_WINDOW);
        if !self.paces {
            shown.cwnd = shown.ssthresh;
            shown.cwnd_count = 0;
        }
        true
    }

    /// More was lost before recovery was over. A period of RFC 9002 lasts one round trip, so that losses in each of them would make as many
    /// episodes. A controller that sets a rate was written for recovery of TCP, which lasts until nothing is known to be lost (Linux
    /// `tcp_fastretrans_alert`, Chromium `BbrSender::UpdateRecoveryState`). Marks do not prolong it, and begin none.
    #[cold]
    fn prolong_recovery(&mut self, shown: &mut Member, now: Nanos, state: CaState) {
        if shown.state == CaState::Open || state < CaState::Recovery {
            return;
        }
        self.recovery_since = Some(now);
        if shown.state < state {
            shown.state = state;
            self.congestion.on_state(shown, state);
        }
    }

    /// All has arrived that had left by the last reduction, or loss, and was not lost.
    fn repaired(&self, sent: &InFlight<Contents>) -> bool {
        let oldest = sent.iter().next();
        oldest.is_none_or(|packet| Some(packet.at) > self.recovery_since)
    }
}

/// The controller wants a reduction.
#[cold]
fn reduce_as_asked(window: &mut Window, shown: &mut Member, now: Nanos) {
    shown.state = CaState::Open;
    window.on_congestion(shown, now, now, CaState::Cwr);
}

/// The rate at which packets leave, where the controller sets none.
fn set_pacing_rate(shown: &mut Path) {
    if shown.srtt == 0 {
        return;
    }
    let bytes = u64::from(shown.cwnd) * u64::from(shown.mss) * PACING.0 / PACING.1;
    let rate = match bytes.checked_mul(SECOND) {
        Some(scaled) => scaled / shown.srtt,
        None => {
            let rate = u128::from(bytes) * u128::from(SECOND) / u128::from(shown.srtt);
            u64::try_from(rate).unwrap_or(u64::MAX)
        }
    };
    shown.pacing_rate = rate.max(1);
}
