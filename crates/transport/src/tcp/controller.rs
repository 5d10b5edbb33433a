//! The congestion control of a socket. For one that sets a rate, the delivery rate is sampled and segments are paced.

use super::flight::{Flight, Sent};
use super::window_usage::WindowUsage;
use crate::congestion::{self, Ack, CongestionControl};
use crate::path::{Acknowledged, DeliveryRate, INFINITE_SSTHRESH, LostPacket, Member, Pacer, Path};
use crate::{NEVER, Nanos};

/// One waits below TCP, one is cut into segments, one is put together at the receiver (draft-ietf-ccwg-bbr section 5.5.8.1).
const HELD_BURSTS: u32 = 3;

/// Delivery rate and pacing of one socket.
#[derive(Debug, Default)]
struct Paced {
    rate: DeliveryRate,
    pacer: Pacer,
    /// The algorithm wants to know each packet that is lost.
    weighs_losses: bool,
    /// Some may be, and were not looked for.
    unweighed: bool,
}

impl Paced {
    fn new(algorithm: &dyn CongestionControl) -> Self {
        Self {
            pacer: Pacer::new(algorithm.paces_shortly()),
            weighs_losses: algorithm.weighs_losses(),
            ..Self::default()
        }
    }

    /// The packets that are newly lost, if the algorithm wants to know each; `any`: the acknowledgement at hand showed some.
    fn find_lost(&mut self, flight: &Flight, any: bool) -> Vec<LostPacket> {
        if !self.weighs_losses || !(any || std::mem::take(&mut self.unweighed)) {
            return Vec::new();
        }
        self.unweighed = false;
        for sent in flight.segments().iter().filter(|sent| sent.awaits_repair()) {
            self.rate.on_packet_lost(sent.seq);
        }
        self.rate.take_losses()
    }
}

/// What an acknowledgement told of the packets before it.
pub(super) struct Told {
    /// What was acknowledged before.
    pub before: u64,
    pub newly_lost: u32,
    pub retransmission_lost: bool,
    /// It could tell of several losses in a round trip.
    pub selective: bool,
    pub min_rtt: Nanos,
}

/// An algorithm, and what it needs to be told.
pub(crate) struct Controller {
    algorithm: Box<dyn CongestionControl>,
    /// Rate samples and pacing, if the algorithm sets a rate.
    paced: Option<Box<Paced>>,
    usage: WindowUsage,
}

impl Controller {
    pub fn new(algorithm: Box<dyn CongestionControl>) -> Self {
        let paced = (algorithm.paces()).then(|| Box::new(Paced::new(&*algorithm)));
        Self {
            algorithm,
            paced,
            usage: WindowUsage::default(),
        }
    }

    /// Another algorithm takes over, which needs nothing of the network.
    pub fn fall_back(&mut self) {
        self.algorithm = congestion::fallback();
        self.paced = None;
    }

    #[inline(always)]
    pub fn algorithm(&mut self) -> &mut dyn CongestionControl {
        &mut *self.algorithm
    }

    /// Internal variables of the algorithm.
    pub fn observe(&self) -> Vec<(&'static str, f64)> {
        self.algorithm.observe()
    }

    /// Whether the algorithm sets a rate.
    #[inline(always)]
    pub fn paces(&self) -> bool {
        self.paced.is_some()
    }

    /// Whether pacing holds back what the window would admit.
    #[inline(always)]
    pub fn blocked(&self) -> bool {
        let paced = self.paced.as_ref();
        paced.is_some_and(|paced| paced.pacer.blocked())
    }

    #[inline(always)]
    pub fn publish_pacing(&self, path: &mut Path) {
        if let Some(paced) = &self.paced {
            path.paced = paced.pacer.blocked();
        }
    }

    /// A segment leaves; it is not yet in `flight` unless it was sent before.
    #[inline(always)]
    pub fn note_sent(&mut self, now: Nanos, sent: &Sent, flight: &Flight) {
        if let Some(paced) = &mut self.paced {
            let again = sent.retransmitted();
            let in_flight = flight.in_flight() + u32::from(!again);
            (paced.rate).on_sent(sent.seq, now, again, flight.is_empty(), in_flight);
            paced.pacer.on_sent(now, sent.len);
        }
    }

    /// What was sent from `seq` on was not.
    pub fn take_back(&mut self, seq: u64) {
        self.usage.end_at(seq);
        if let Some(paced) = &mut self.paced {
            paced.rate.forget(seq);
        }
    }

    /// An acknowledgement arrives.
    pub fn begin_ack(&mut self, flight: &Flight) {
        if let Some(paced) = &mut self.paced {
            paced.rate.begin_ack(flight.in_flight());
        }
    }

    /// The peer has a segment.
    #[inline(always)]
    pub fn note_delivered(&mut self, sent: &Sent) {
        if let Some(paced) = &mut self.paced {
            paced.rate.on_delivered(sent.seq, sent.end());
        }
    }

    pub fn note_lost(&mut self, packets: u32) {
        if let Some(paced) = &mut self.paced {
            if paced.weighs_losses {
                paced.unweighed = true;
            } else {
                paced.rate.on_lost(packets);
            }
        }
    }

    /// Lets the algorithm set window and rate after an acknowledgement.
    pub(super) fn set_rate(&mut self, path: &mut Member, flight: &Flight, ack: &Ack, told: &Told) {
        let Some(paced) = &mut self.paced else { return };
        let any = told.newly_lost > 0 || told.retransmission_lost;
        let losses = paced.find_lost(flight, any);
        let sample = paced.rate.sample(Acknowledged {
            now: ack.now,
            packets: ack.packets,
            newly_lost: if paced.weighs_losses {
                0
            } else {
                told.newly_lost
            },
            una: flight.una(),
            small: flight.una() - told.before < u64::from(path.mss),
            min_rtt: told.min_rtt,
            departure: paced.pacer.departure(ack.now),
            selective: told.selective,
            held_bursts: HELD_BURSTS,
        });
        for lost in &losses {
            self.algorithm.on_lost(path, lost, &sample);
        }
        if self.algorithm.control(path, ack, &sample) {
            paced.rate.limit_by_application(flight.in_flight());
        }
        paced.pacer.set_rate(path);
    }

    /// After everything that could leave has left: `dry` when the application has less than a segment more, and nothing is queued.
    pub fn end_burst(&mut self, path: &mut Path, flight: &Flight, now: Nanos, dry: bool) {
        let Some(paced) = &mut self.paced else { return };
        let in_flight = flight.in_flight();
        let all_repeated = flight.lost() <= flight.retransmitting();
        if dry && in_flight < path.cwnd && all_repeated {
            paced.rate.limit_by_application(in_flight);
        }
        paced.pacer.set_rate(path);
        paced.pacer.end_burst(now);
        path.paced = paced.pacer.blocked();
    }

    /// Where the rate is measured: the application had nothing more to send.
    pub fn limited_by_application(&self) -> bool {
        let paced = self.paced.as_ref();
        paced.is_some_and(|paced| paced.rate.limited_by_application())
    }

    /// A reduction is over (Linux `tcp_end_cwnd_reduction`).
    pub fn end_reduction(&mut self, path: &mut Member, undone: bool) {
        if self.paces() {
            return;
        }
        if !undone && path.ssthresh < INFINITE_SSTHRESH {
            path.cwnd = path.ssthresh;
        }
        self.algorithm.on_reduced(path);
    }

    /// When pacing lets the next burst go.
    pub fn pacing_deadline(&self) -> Nanos {
        let paced = self.paced.as_ref();
        paced.map_or(NEVER, |paced| paced.pacer.deadline())
    }

    /// Lets the next burst go if its time has come.
    pub fn release_pacing(&mut self, now: Nanos, path: &mut Path) {
        if let Some(paced) = &mut self.paced
            && paced.pacer.release(now)
        {
            path.paced = false;
        }
    }

    /// Remembers whether the window or the application was the limit (RFC 7661's purpose, Linux `tcp_cwnd_validate`).
    #[inline]
    pub fn note_usage(&mut self, flight: &Flight, limited: bool) {
        self.usage.note(flight, limited);
    }

    /// Whether the congestion window limits sending; in slow start half a window in use is enough (Linux `tcp_is_cwnd_limited`).
    #[inline(always)]
    pub fn is_limited(&self, path: &Path) -> bool {
        self.usage.limited() || (path.in_slow_start() && path.cwnd < 2 * self.usage.max_in_flight())
    }
}
