//! The three-way handshake (RFC 9293 section 3.5), and what its options settle.

use polypath_wire::tcp::{Flags, Segment};

use super::{SMALLEST_MSS, Socket, State, TIMESTAMP_OPTION, age, ecn, timestamp};
use crate::Codepoint;
use crate::Mib;
use crate::linux::send_memory;
use crate::seq::wrap;
use crate::tcp::context::{Context, Options};

impl Socket {
    /// Sends the SYN.
    pub(crate) fn connect(&mut self, cx: &mut Context<impl Options>) {
        self.lifetime.connect();
        if self.queue.has_buffers() {
            cx.path.buffer = cx.shared.config.send_buffer.default;
        }
        self.transfer.flight.open(cx.shared.now);
        self.send_syn(cx, false);
        self.transfer.arm_retransmission(cx.shared);
        self.publish(&mut cx.path);
    }

    /// Takes the peer's SYN and answers it.
    pub(crate) fn accept(
        &mut self,
        cx: &mut Context<impl Options>,
        syn: &Segment,
        field: Codepoint,
    ) {
        self.lifetime.accept();
        ecn::on_syn(self, syn.flags, field);
        self.take_syn(cx, syn);
        self.transfer.flight.open(cx.shared.now);
        self.send_syn(cx, false);
        self.transfer.arm_retransmission(cx.shared);
        self.publish(&mut cx.path);
    }

    /// Reads the options that only a SYN carries.
    fn take_syn(&mut self, cx: &mut Context<impl Options>, syn: &Segment) {
        self.receiver.begin(syn.seq);
        let options = syn.rare.as_deref();
        self.negotiated.timestamps &= syn.timestamps.is_some();
        if let Some(value) = self.negotiated.timestamp_of(syn) {
            self.receiver.take_first_timestamp(value);
        }
        self.transfer.sack &= options.is_some_and(|options| options.sack_permitted);
        match options
            .and_then(|options| options.window_scale)
            .filter(|_| cx.shared.config.window_scaling)
        {
            Some(shift) => {
                self.negotiated.send_shift = shift.min(14);
                self.negotiated.receive_shift = cx.shared.receive.scale();
            }
            None => cx.shared.receive.forbid_scaling(),
        }
        let peer_mss = options
            .and_then(|options| options.mss)
            .unwrap_or(536)
            .max(SMALLEST_MSS);
        self.mss.meet(peer_mss);
        if self.mss.searches() {
            let options = self.negotiated.fixed_options();
            let answers = self.lifetime.state() == State::SynSent;
            let config = &cx.shared.config;
            (self.mss).begin_search(config, cx.shared.now, options, answers);
        }
        let end = u64::from(syn.window) + u64::from(self.lifetime.state() == State::SynSent);
        self.window.begin(end, syn.window.into());
        self.settle_mss(cx.shared.config.profile);
        let mss = self.plain_mss();
        cx.path.mss = mss - cx.options.data_len();
        cx.shared.receive.set_mss(mss);
    }

    pub(super) fn send_syn(&mut self, cx: &mut Context<impl Options>, again: bool) {
        let answer = self.lifetime.state() == State::SynReceived;
        let mut segment = Segment {
            seq: self.transfer.flight.initial(),
            flags: Flags::SYN,
            ..Segment::default()
        };
        if answer {
            segment.flags |= Flags::ACK;
            segment.ack = wrap(self.receiver.initial(), 1);
        }
        segment.flags |= ecn::offer(
            self,
            answer,
            again.then_some(self.transfer.flight.syn_repeats()),
        );
        if self.negotiated.timestamps {
            segment.timestamps = Some((timestamp(cx.shared.now), self.receiver.timestamp()));
        }
        let mss = self.mss.announced();
        let scale = cx.shared.config.window_scaling && (!answer || cx.shared.receive.scaling());
        let shift = cx.shared.receive.scale();
        let answering = answer && self.negotiated.timestamps;
        let timestamps = if answering { TIMESTAMP_OPTION } else { 0 };
        let first = cx.shared.receive.first_window(
            self.receiver.window_mut(),
            u32::from(mss) - timestamps,
            cx.path.index == 0,
        );
        segment.window = first.min(65_535) as u16;
        let options = segment.rare_mut();
        options.mss = Some(mss);
        options.sack_permitted = self.transfer.sack;
        options.window_scale = scale.then_some(shift);
        cx.options.add_to_syn(answer, &mut segment);
        cx.shared.counters.increment(if again {
            Mib::TcpRetransSegs
        } else {
            Mib::TcpOutSegs
        });
        cx.emit(segment);
    }

    /// Handles the SYN/ACK. True: the handshake is done on this side.
    pub(crate) fn on_syn_ack(
        &mut self,
        cx: &mut Context<impl Options>,
        segment: &Segment,
        field: Codepoint,
    ) -> bool {
        if self.transfer.flight.position(segment.ack, 0) != 1 {
            return false;
        }
        ecn::on_syn_ack(self, segment.flags, field);
        self.take_syn(cx, segment);
        self.handshake_done(cx, segment, true);
        true
    }

    /// Handles the acknowledgement of our SYN/ACK. True: the handshake is done on this side.
    /// `timed`: the handshake tells the round-trip time.
    pub(crate) fn on_third_ack(
        &mut self,
        cx: &mut Context<impl Options>,
        segment: &Segment,
        timed: bool,
    ) -> bool {
        if !segment.flags.contains(Flags::ACK)
            || segment.flags.contains(Flags::SYN)
            || self.transfer.flight.position(segment.ack, 0) != 1
        {
            return false;
        }
        ecn::on_third_ack(self, segment);
        self.handshake_done(cx, segment, timed);
        let window = u64::from(segment.window) << self.negotiated.send_shift;
        self.window.begin(1 + window, window);
        self.bound_by_window(cx);
        true
    }

    fn handshake_done(&mut self, cx: &mut Context<impl Options>, segment: &Segment, timed: bool) {
        self.lifetime.establish();
        if self.queue.has_buffers() {
            send_memory::first_buffer(&mut cx.path, &cx.shared.config);
        }
        let syn = self.transfer.flight.establish();
        if syn.is_none()
            && self.transfer.flight.syn_repeats() > cx.shared.config.profile.forgiven_syns()
        {
            // RFC 5681 section 3.1: a lost SYN or SYN/ACK reduces the initial window.
            cx.path.cwnd = 1;
        }
        let stamp = segment.timestamps.filter(|_| self.negotiated.timestamps);
        let now = cx.shared.now;
        let elapsed = syn.filter(|_| timed).map(|syn| now - syn.sent_at);
        match elapsed.or_else(|| age(now, stamp?.1)) {
            Some(rtt) => {
                let publish = |margin| cx.path.timeout_margin = margin;
                (self.transfer.rtt).sample_telling(rtt, 1, 1, &cx.shared.config, publish);
                self.transfer.rtt.sample_min(rtt, now);
                cx.path.latest_rtt = rtt;
            }
            None => self.transfer.rtt.begin_unsampled(),
        }
        self.transfer.recovery.reset();
        self.transfer.timers.stop_retransmission();
        self.transfer.start_keepalive(cx.shared);
        if self.mss.searches() {
            let options = self.negotiated.fixed_options();
            (self.mss).open_search(&cx.shared.config, cx.shared.now, options);
        }
        ecn::settle(self);
        self.publish(&mut cx.path);
        self.transfer
            .controller
            .algorithm()
            .on_established(&mut cx.path);
    }
}
