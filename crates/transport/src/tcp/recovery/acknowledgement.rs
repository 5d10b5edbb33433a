//! What an acknowledgement says: what it is of, how long it took, and what follows for window, timers and recovery.

use polypath_wire::tcp::{Flags, Segment};

use super::{DUPLICATE_THRESHOLD, Delivery};
use crate::congestion::Ack;
use crate::path::{CaState, Member};
use crate::settings::SlowStart;
use crate::tcp::context::{Context, Options};
use crate::tcp::controller::Told;
use crate::tcp::transfer::Transfer;
use crate::tcp::{Socket, age, cork, ecn};
use crate::{EventKind, Nanos};

impl Transfer {
    /// Feeds the RTT estimator (RFC 6298 section 3: never from a retransmission, but from its timestamp). Returns the newest sample.
    #[inline(always)]
    fn sample_rtt(&mut self, cx: &mut Context<impl Options>, delivery: &Delivery) -> Option<Nanos> {
        let (shared, path) = (&*cx.shared, &mut cx.path);
        let elapsed = |at: Option<Nanos>| at.map(|at| shared.now - at);
        let in_order = |at: Option<Nanos>| elapsed(at.filter(|_| !delivery.repaired));
        let by_timestamp = || {
            let echo = Some(delivery.echo).filter(|_| delivery.advanced);
            echo.and_then(|echo| age(shared.now, echo))
        };
        let oldest = in_order(delivery.first)
            .or(elapsed(delivery.first_sacked))
            .or_else(by_timestamp)?;
        let newest = elapsed(delivery.last_sacked)
            .or(in_order(delivery.last))
            .or_else(by_timestamp);
        if let Some(newest) = newest {
            self.rtt.sample_min(newest, shared.now);
        }
        let publish = |margin| path.timeout_margin = margin;
        (self.rtt).sample_telling(
            oldest,
            self.flight.una(),
            self.flight.next(),
            &shared.config,
            publish,
        );
        self.recovery.timeouts.stop_backing_off();
        newest
    }
}

impl Socket {
    /// Processes the acknowledgement of `segment`, which is acceptable.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, cx: &mut Context<impl Options>, segment: &Segment) {
        self.transfer.silence.end(cx.shared.now);
        if self.says_nothing_new(segment) {
            // Header prediction passes over `tcp_ack` where there are timestamps at most.
            if self.transfer.tries_again() && segment.dss.is_some() {
                cork::hold_again(self, cx.shared);
            }
            self.publish_sent(&mut cx.path);
        } else {
            self.on_news(cx, segment);
        }
    }

    /// Data with an acknowledgement and a window that are known already, while nothing is doubtful: nothing follows from these.
    #[inline(always)]
    fn says_nothing_new(&self, segment: &Segment) -> bool {
        let window = u64::from(segment.window) << self.negotiated.send_shift;
        segment.ack == self.transfer.flight.number(self.transfer.flight.una())
            && segment.payload.len > 0
            && segment.sack.is_empty()
            && self.transfer.flight.una() + window == self.window.end()
            && window <= self.window.largest()
            && !segment.flags.contains(Flags::ECE)
            && self.transfer.recovery.calm()
            && !self.transfer.controller.paces()
    }

    #[inline(never)]
    fn on_news(&mut self, cx: &mut Context<impl Options>, segment: &Segment) {
        let ack = self.transfer.flight.acknowledged_by(segment);
        let before = self.transfer.flight.una();
        let highest_sacked = self.transfer.recovery.highest_sacked();
        if self.transfer.controller.paces() {
            self.transfer.controller.begin_ack(&self.transfer.flight);
        }
        let mut delivery = Delivery {
            echo: segment.timestamps.map_or(0, |(_, echo)| echo),
            ..Delivery::default()
        };
        let mss = cx.path.mss;
        let largest_window = self.window.largest();
        let window_changed =
            ack >= self.transfer.flight.una() && self.update_window(cx, ack, segment);
        if self.window.largest() > largest_window {
            self.note_larger_window(cx);
        }
        if !segment.sack.is_empty() && self.transfer.sack {
            self.transfer
                .take_sack(cx.shared, segment, ack, highest_sacked, mss, &mut delivery);
        }
        if ack < before {
            // An old ACK brings at most SACK information (Linux `tcp_ack`, old_ack).
            if delivery.packets > 0 {
                self.conclude_apart(cx, &mut delivery, before);
            }
            return;
        }
        if ack > before {
            self.transfer
                .take_cumulative(cx.shared, ack, highest_sacked, mss, &mut delivery);
            self.queue.acknowledge(ack);
            if self.mss.searches() {
                self.settle_probe(cx);
            }
            self.transfer.recovery.timeouts.end();
            if cx.path.potentially_failed {
                cx.path.potentially_failed = false;
                cx.shared.event(EventKind::Recovered(cx.path.index));
            }
        } else {
            if self.transfer.tries_again() && !self.receiver.is_old(segment) {
                cork::hold_again(self, cx.shared);
            }
            delivery.duplicate = segment.seq_len() == 0 && !window_changed;
            if !self.transfer.sack
                && delivery.duplicate
                && self
                    .transfer
                    .recovery
                    .counts_duplicates(&self.transfer.flight)
            {
                self.transfer.flight.count_duplicate();
                delivery.packets += 1;
            }
        }
        let mut published = false;
        if self.negotiated.ecn && reports_marks(self, segment, &mut delivery) {
            self.conclude_marked(cx, &mut delivery, before);
        } else if self.transfer.recovery.concludes(&delivery) {
            published = self.conclude(cx, &mut delivery, before, false);
        }
        if self.transfer.flight.una() > before {
            self.fin_acknowledged(cx.shared, segment);
        }
        if !published {
            self.publish(&mut cx.path);
        }
    }

    /// The acknowledgement reports a mark (ECE): upstream, it is the first by which the window shrinks.
    #[cold]
    fn conclude_marked(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &mut Delivery,
        before: u64,
    ) {
        // RFC 4015 section 3.2, Linux `tcp_fastretrans_alert`: what a mark asks for is not undone, whatever the state.
        self.transfer.recovery.reduction.keep();
        let first = cx.shared.config.profile.reduces_at_the_mark();
        if self.transfer.recovery.concludes(delivery) {
            self.conclude_apart(cx, delivery, before);
        } else if first {
            self.transfer.on_congestion_experienced(&mut cx.path);
        }
        if !first {
            self.transfer.on_congestion_experienced(&mut cx.path);
        }
    }

    /// Takes the peer's window (RFC 9293 section 3.10.7.4, fifth step). True: its right edge moves. RFC 9293 section 3.8.6 wants a sender to
    /// be robust against one that moves left; subflows and other profiles keep to the edge that they know.
    fn update_window(&mut self, cx: &Context<impl Options>, ack: u64, segment: &Segment) -> bool {
        let window = u64::from(segment.window) << self.negotiated.send_shift;
        let end = ack + window;
        if self.window.offer(window, end, segment.seq) {
            return true;
        }
        let shrunk = end < self.window.end()
            && !cx.options.maps_data()
            && cx.shared.config.profile.follows_windows()
            && (self.window).shrink(end, segment, ack > self.transfer.flight.una());
        self.window.note_closed(window == 0);
        shrunk
    }

    #[cold]
    #[inline(never)]
    fn conclude_apart(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &mut Delivery,
        before: u64,
    ) {
        let marked = delivery.marks > 0;
        self.conclude(cx, delivery, before, marked);
    }

    /// True: what the path tells is up to date. Whether it is marked, the usual caller knows.
    #[inline(always)]
    fn conclude(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &mut Delivery,
        before: u64,
        marked: bool,
    ) -> bool {
        let rtt = self.transfer.sample_rtt(cx, delivery);
        if let Some(rtt) = rtt {
            cx.path.latest_rtt = rtt;
        }
        self.publish(&mut cx.path);
        let limited = self.transfer.controller.is_limited(&cx.path);
        let mut ack = Ack {
            now: cx.shared.now,
            packets: delivery.packets,
            marked: if marked {
                delivery.marks.min(delivery.packets)
            } else {
                0
            },
            rtt,
            cwnd_limited: limited,
            next_seq: self.transfer.flight.next(),
            una: self.transfer.flight.una(),
        };
        if delivery.packets > 0 {
            self.transfer
                .controller
                .algorithm()
                .on_sample(&mut cx.path, &ack);
        }
        let mut published = !self.queue.reckons()
            && !self.transfer.controller.paces()
            && !self.transfer.recovery.probe.is_sent();
        if self.transfer.recovery.probe.is_sent() {
            self.transfer.judge_probe(cx, delivery);
        }
        self.transfer
            .recovery
            .rack
            .adapt_window(&self.transfer.flight);
        let state = self.transfer.recovery.state;
        if state != CaState::Open || delivery.dubious() {
            if self.transfer.step_recovery(cx, delivery, before)
                && !(self.mss.searches() && self.fail_probe(cx))
            {
                self.transfer.enter_recovery(cx, delivery);
            }
            published = false;
        }
        if marked && state < CaState::Loss {
            reduce_at_the_mark(self, cx);
        }
        if delivery.rearm {
            self.transfer.arm_after_ack(cx.shared);
        }
        if self.transfer.controller.paces() {
            self.publish(&mut cx.path);
            let told = Told {
                before,
                newly_lost: delivery.newly_lost,
                retransmission_lost: delivery.retransmission_lost,
                selective: self.transfer.sack,
                min_rtt: self.transfer.rtt.min(),
            };
            (self.transfer.controller).set_rate(&mut cx.path, &self.transfer.flight, &ack, &told);
        } else if self.transfer.recovery.reducing() {
            let in_flight = self.transfer.flight.in_flight();
            (self.transfer.recovery).reduce(&mut cx.path, in_flight, delivery);
            published = false;
        } else if delivery.packets > 0
            && (delivery.advanced
                || (delivery.sacked
                    && self.transfer.recovery.rack.degree() > u64::from(DUPLICATE_THRESHOLD)))
        {
            // Duplicate ACKs leave the window alone (RFC 3042), unless they are known to mean reordering (Linux `tcp_may_raise_cwnd`).
            if !published {
                self.publish(&mut cx.path);
            }
            if cx.shared.config.slow_start == SlowStart::Acks && cx.path.in_slow_start() {
                ack.packets = 1;
            }
            self.transfer
                .controller
                .algorithm()
                .on_ack(&mut cx.path, &ack);
            if cx.path.state != self.transfer.recovery.state {
                reduce_as_asked(self, &mut cx.path);
            }
        }
        published
    }
}

/// The controller wants a reduction (Linux `tcp_enter_cwr`).
#[cold]
fn reduce_as_asked(socket: &mut Socket, path: &mut Member) {
    path.state = socket.transfer.recovery.state;
    socket.transfer.recovery.reduction.keep();
    socket.transfer.on_congestion_experienced(path);
}

/// Upstream, the controller has heard of the mark, and an episode that it ends is over (`tcp_try_to_open`).
#[cold]
fn reduce_at_the_mark(socket: &mut Socket, cx: &mut Context<impl Options>) {
    if cx.shared.config.profile.reduces_at_the_mark() {
        socket.transfer.on_congestion_experienced(&mut cx.path);
    }
}

/// The segment says how many packets arrived marked: whether any did.
#[inline(never)]
fn reports_marks(socket: &mut Socket, segment: &Segment, delivery: &mut Delivery) -> bool {
    let news = delivery.packets > 0 || delivery.advanced;
    delivery.marks = ecn::reported(socket, segment.flags, delivery.packets, news);
    delivery.marks > 0
}
