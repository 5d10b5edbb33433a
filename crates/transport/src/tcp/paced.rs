//! What a socket does for a controller that sets its rate: it samples the delivery rate and paces. Sockets with other controllers have none
//! of it.

use super::Socket;
use super::context::{Context, Options};
use super::flight::Sent;
use super::recovery::Delivery;
use crate::congestion::Ack;
use crate::path::{Acknowledged, DeliveryRate, Member, Pacer, Path};
use crate::{NEVER, Nanos};

/// Delivery rate and pacing of one socket.
#[derive(Debug, Default)]
pub(super) struct Paced {
    rate: DeliveryRate,
    pacer: Pacer,
}

impl Paced {
    /// `short`: in short bursts.
    pub fn new(short: bool) -> Self {
        Self {
            pacer: Pacer::new(short),
            ..Self::default()
        }
    }

    /// What was sent from `seq` on was not.
    pub fn take_back(&mut self, seq: u64) {
        self.rate.forget(seq);
    }

    pub fn deliver(&mut self, sent: &Sent) {
        self.rate.on_delivered(sent.seq, sent.end());
    }
}

impl Socket {
    /// Whether pacing holds back what the window would admit.
    pub(super) fn blocked(&self) -> bool {
        let paced = self.paced.as_ref();
        paced.is_some_and(|paced| paced.pacer.blocked())
    }

    pub(super) fn publish_pacing(&self, path: &mut Path) {
        if let Some(paced) = &self.paced {
            path.paced = paced.pacer.blocked();
        }
    }

    #[inline(always)]
    pub(super) fn note_sent(&mut self, now: Nanos, sent: &Sent) {
        if let Some(paced) = &mut self.paced {
            let alone = self.flight.is_empty();
            (paced.rate).on_sent(sent.seq, now, sent.retransmitted(), alone);
            paced.pacer.on_sent(now, sent.len);
        }
    }

    pub(super) fn note_arrival_of_ack(&mut self) {
        let in_flight = self.flight.in_flight();
        if let Some(paced) = &mut self.paced {
            paced.rate.begin_ack(in_flight);
        }
    }

    pub(super) fn note_lost(&mut self, packets: u32) {
        if let Some(paced) = &mut self.paced {
            paced.rate.on_lost(packets);
        }
    }

    /// Lets the controller set window and rate after an ACK that moved the cumulative acknowledgement on from `before`.
    pub(super) fn control(
        &mut self,
        path: &mut Member,
        ack: &Ack,
        delivery: &Delivery,
        before: u64,
    ) {
        self.publish(path);
        let in_flight = self.flight.in_flight();
        let Some(paced) = &mut self.paced else { return };
        let sample = paced.rate.sample(Acknowledged {
            now: ack.now,
            packets: delivery.packets,
            newly_lost: delivery.newly_lost,
            una: self.flight.una(),
            small: self.flight.una() - before < u64::from(path.mss),
            min_rtt: self.rtt.min(),
            departure: paced.pacer.departure(ack.now),
        });
        if (self.congestion).control(path, ack, &sample) {
            paced.rate.limit_by_application(in_flight);
        }
        paced.pacer.set_rate(path);
    }

    /// After everything that could leave has left: `dry` when the application has less than a segment more.
    pub(crate) fn settle_pacing(&mut self, cx: &mut Context<impl Options>, dry: bool) {
        let in_flight = self.flight.in_flight();
        let all_repeated = self.flight.lost() <= self.flight.retransmitting();
        let nothing_queued = self.queue.is_empty();
        let Some(paced) = &mut self.paced else { return };
        if dry && nothing_queued && in_flight < cx.path.cwnd && all_repeated {
            paced.rate.limit_by_application(in_flight);
        }
        paced.pacer.set_rate(&cx.path);
        paced.pacer.end_burst(cx.shared.now);
        cx.path.paced = paced.pacer.blocked();
    }

    /// Where the rate is measured: the application had nothing more to send.
    pub(super) fn limited_by_application(&self) -> bool {
        let paced = self.paced.as_ref();
        paced.is_some_and(|paced| paced.rate.limited_by_application())
    }

    /// When pacing lets the next burst go.
    pub(crate) fn pacing_deadline(&self) -> Nanos {
        let paced = self.paced.as_ref();
        paced.map_or(NEVER, |paced| paced.pacer.deadline())
    }

    /// Lets the next burst go if its time has come.
    pub(super) fn release_pacing(&mut self, now: Nanos, path: &mut Path) {
        if let Some(paced) = &mut self.paced
            && paced.pacer.release(now)
        {
            path.paced = false;
        }
    }
}
