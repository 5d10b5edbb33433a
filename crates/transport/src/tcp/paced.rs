//! What a socket does for a controller that sets its rate: it samples the delivery rate and paces. Sockets with other controllers have none
//! of it.

use super::Socket;
use super::context::{Context, Options};
use super::recovery::Delivery;
use super::sender::Sent;
use crate::congestion::{Ack, CongestionControl};
use crate::path::{Acknowledged, DeliveryRate, LostPacket, Member, Pacer, Path};
use crate::{NEVER, Nanos};

/// One waits below TCP, one is cut into segments, one is put together at the receiver (draft-ietf-ccwg-bbr section 5.5.8.1).
const HELD_BURSTS: u32 = 3;

/// Delivery rate and pacing of one socket.
#[derive(Debug, Default)]
pub(super) struct Paced {
    rate: DeliveryRate,
    pacer: Pacer,
    /// The controller wants to know each packet that is lost.
    weighs_losses: bool,
    /// Some may be, and were not looked for.
    unweighed: bool,
}

impl Paced {
    pub fn new(congestion: &dyn CongestionControl) -> Self {
        Self {
            pacer: Pacer::new(congestion.paces_shortly()),
            weighs_losses: congestion.weighs_losses(),
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
        let in_flight = self.in_flight();
        if let Some(paced) = &mut self.paced {
            let alone = self.sent.is_empty();
            let again = sent.retransmitted();
            let in_flight = in_flight + u32::from(!again);
            (paced.rate).on_sent(sent.seq, now, again, alone, in_flight);
            paced.pacer.on_sent(now, sent.len);
        }
    }

    pub(super) fn note_arrival_of_ack(&mut self) {
        let in_flight = self.in_flight();
        if let Some(paced) = &mut self.paced {
            paced.rate.begin_ack(in_flight);
        }
    }

    pub(super) fn note_lost(&mut self, packets: u32) {
        if let Some(paced) = &mut self.paced {
            if paced.weighs_losses {
                paced.unweighed = true;
            } else {
                paced.rate.on_lost(packets);
            }
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
        let in_flight = self.in_flight();
        let any = delivery.newly_lost > 0 || delivery.retransmission_lost;
        let losses = find_lost(self, any);
        let Some(paced) = &mut self.paced else { return };
        let counted = if paced.weighs_losses {
            0
        } else {
            delivery.newly_lost
        };
        let sample = paced.rate.sample(Acknowledged {
            now: ack.now,
            packets: delivery.packets,
            newly_lost: counted,
            una: self.una,
            small: self.una - before < u64::from(path.mss),
            min_rtt: self.rtt.min(),
            departure: paced.pacer.departure(ack.now),
            selective: self.negotiated.sack,
            held_bursts: HELD_BURSTS,
        });
        for lost in &losses {
            self.congestion.on_lost(path, lost, &sample);
        }
        if (self.congestion).control(path, ack, &sample) {
            paced.rate.limit_by_application(in_flight);
        }
        paced.pacer.set_rate(path);
    }

    /// After everything that could leave has left: `dry` when the application has less than a segment more.
    pub(crate) fn settle_pacing(&mut self, cx: &mut Context<impl Options>, dry: bool) {
        let in_flight = self.in_flight();
        let all_repeated = self.recovery.lost <= self.recovery.retransmitting;
        let nothing_queued = self.unsent.is_empty();
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

/// The packets that are newly lost, where the controller wants to know each.
fn find_lost(socket: &mut Socket, any: bool) -> Vec<LostPacket> {
    let paced = socket.paced.as_mut().filter(|paced| paced.weighs_losses);
    let Some(paced) = paced.filter(|paced| any || paced.unweighed) else {
        return Vec::new();
    };
    paced.unweighed = false;
    for sent in socket.sent.iter().filter(|sent| sent.awaits_repair()) {
        paced.rate.on_packet_lost(sent.seq);
    }
    paced.rate.take_losses()
}
