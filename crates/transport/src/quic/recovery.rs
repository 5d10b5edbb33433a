//! Acknowledgements, losses, probe timeouts and congestion control's reaction to them (RFC 9002).

use polypath_wire::quic::{Ack, Frame, TransportError};

use super::contents::{Carried, Contents};
use super::crypto::Level;
use super::datagram_size::payload;
use super::loss::{PACKET_THRESHOLD, Sent};
use super::note::Note;
use super::packets::Packets;
use super::path::Space;
use super::transfer::Transfer;
use super::window::{Lost, News, Sum};
use crate::path::CaState;
use crate::{Codepoint, EventKind, MICROSECOND, NEVER, Nanos};

impl Packets {
    /// The number space of a level; of the application level that of a path.
    ///
    /// # Panics
    /// The space was discarded.
    #[inline(always)]
    pub(super) fn space(&mut self, level: Level, path: usize) -> &mut Space {
        match level {
            Level::OneRtt => self.paths[path].space_mut(),
            _ => self.handshake.space(level),
        }
    }

    /// Packets in flight on a path; those of the handshake are on the first.
    pub(super) fn in_flight(&self, path: usize) -> u32 {
        let own = self.paths[path].space().sent.in_flight();
        if path > 0 || self.handshake.over() {
            return own;
        }
        own + self.handshake.in_flight()
    }

    #[inline]
    fn on_ack_delivered(&mut self, level: Level, about: u32, largest: u64) {
        if level == Level::OneRtt || self.handshake.writes(level) {
            self.space(level, about as usize)
                .received
                .on_acknowledgement_received(largest);
        }
    }

    fn on_path_mtu(&mut self, path: usize, mtu: u32) {
        self.paths.shown_mut(path).mss = payload(self.paths[path].datagram());
        self.event(EventKind::PathMtu { subflow: path, mtu });
    }

    /// A packet that was sent at `at` met congestion, which leads to `state`. Whether the window is reduced for it.
    fn on_congestion(&mut self, path: usize, at: Nanos, state: CaState) -> bool {
        let (member, mut shown) = self.paths.pair_mut(path);
        let window = member.window_mut();
        let reduced = window.on_congestion(&mut shown, self.now, at, state);
        if reduced {
            self.event(EventKind::Loss(path));
        }
        reduced
    }

    /// More packets were marked than the peer had told of (RFC 9002 section 7.1), or fewer counted than it acknowledges: then the field is
    /// changed on the way (RFC 9000 section 13.4.2.1). `newest`: the largest number of the acknowledgement is news.
    /// Packets newly marked, and whether the window is reduced.
    fn on_ecn(
        &mut self,
        level: Level,
        path: usize,
        newest: bool,
        reported: [u64; 3],
        acked: &[Sent<Contents>],
    ) -> (u32, bool) {
        let counts = &mut self.space(level, path).ecn_reported;
        let known = *counts;
        // An acknowledgement that was overtaken has lower ones.
        *counts = std::array::from_fn(|at| known[at].max(reported[at]));
        let sent = acked.iter().filter(|packet| packet.ecn).count() as u64;
        // The counts of ECT(0) and of ECT(1).
        let (own, other) = match self.paths[path].codepoint() {
            Codepoint::Ect1 => (1, 0),
            _ => (0, 1),
        };
        let told = (reported[own] + reported[2]).saturating_sub(known[own] + known[2]);
        if newest && (told < sent || reported[other] > 0) {
            self.paths[path].give_up_ecn();
        }
        let marked = reported[2].saturating_sub(known[2]) as u32;
        let newest = acked.iter().map(|packet| packet.at).max();
        let met = newest.filter(|_| marked > 0);
        let reduced = met.is_some_and(|at| self.on_congestion(path, at, CaState::Cwr));
        (marked, reduced)
    }

    /// Keys of a level are discarded, and with them what was in flight (RFC 9001 section 4.9).
    pub(super) fn discard(&mut self, level: Level) {
        if self.handshake.discard(level) {
            self.paths[0].probing_mut().forgive();
            self.paths.shown_mut(0).in_flight = self.in_flight(0);
        }
    }

    /// When a path's losses are looked for, or a probe is due: RFC 9002 appendix A.8, for each path (RFC 10069 section 3.3).
    #[inline]
    pub(super) fn recovery_deadline(&self, path: usize) -> Nanos {
        let member = &self.paths[path];
        if member.closed() {
            return NEVER;
        }
        if self.handshake.settled() {
            let delay = self.parameters.peer_delay();
            member.recovery_deadline(delay)
        } else {
            self.early_recovery_deadline(path)
        }
    }

    /// The same before the handshake is confirmed.
    fn early_recovery_deadline(&self, path: usize) -> Nanos {
        let mut losses = self.paths[path].space().sent.loss_deadline();
        if path == 0 {
            losses = losses.min(self.handshake.loss_deadline());
        }
        if losses < NEVER {
            return losses;
        }
        self.probe_deadline(path).map_or(NEVER, |(at, _)| at)
    }

    /// When the next probe of a path is due, and at which level.
    fn probe_deadline(&self, path: usize) -> Option<(Nanos, Level)> {
        let member = &self.paths[path];
        let mut due = None;
        if path == 0 {
            let timeout = member.rtt().probe_timeout(0) * member.probing().backoff();
            due = self.handshake.probe_deadline(timeout);
            let open = self.identity.client() && !self.handshake.confirmed();
            if due.is_none() && open && member.space().sent.eliciting() == 0 {
                return Some(self.handshake.lone_probe_deadline(timeout));
            }
        }
        let at = match self.handshake.confirmed() {
            true => member.probe_deadline(self.parameters.peer_delay()),
            false => NEVER,
        };
        if at < NEVER {
            let level = Level::OneRtt;
            due = Some(due.map_or((at, level), |earlier| earlier.min((at, level))));
        }
        due
    }
}

impl Transfer {
    /// Takes an acknowledgement of the handshake.
    #[inline(never)]
    pub(super) fn on_handshake_ack(&mut self, level: Level, path: usize, ack: &Ack) {
        self.on_ack(level, path, ack);
    }

    /// Takes an acknowledgement of the application level. It may be about another path than the one that it came on.
    #[inline(never)]
    pub(super) fn on_application_ack(&mut self, ack: &Ack) {
        let path = match ack.path {
            // An ACK frame is about path 0 (RFC 10069 section 4.1).
            None => 0,
            Some(id) => match self.packets.paths.named(id) {
                Some(path) => path,
                None => return self.refuse_ack(ack),
            },
        };
        self.on_ack(Level::OneRtt, path, ack);
    }

    /// `path`: the one that it is about.
    #[inline(always)]
    fn on_ack(&mut self, level: Level, path: usize, ack: &Ack) {
        if self.packets.paths[path].closed() {
            return;
        }
        let before = self.packets.paths.shown(path).in_flight;
        debug_assert_eq!(before, self.packets.in_flight(path));
        let mut acked = self.packets.paths.take_acked();
        let Ok(newest) = self.packets.space(level, path).sent.on_ack(ack, &mut acked) else {
            return self.refuse_ack(ack);
        };
        if acked.is_empty() {
            self.packets.paths.keep_acked(acked);
            return;
        }
        let member = &self.packets.paths[path];
        let mut sum = Sum::of(&acked, member.window(), member.datagram());
        let last = &acked[acked.len() - 1];
        let works = member.probing().works(last.at);
        let delay = ack
            .delay
            .saturating_mul(MICROSECOND << self.packets.parameters.peer().ack_delay_exponent);
        let measures = newest
            && sum.eliciting
            && last.at >= member.reach().since()
            && !last.carried.off_path()
            && !(level == Level::OneRtt
                && self.packets.handshake.confirmed()
                && member.is_told_again(delay, self.packets.parameters.peer_delay()));
        if measures {
            let latest = self.packets.now - last.at;
            // RFC 9002 section 5.3.
            let delay = match level {
                Level::OneRtt if self.packets.handshake.confirmed() => {
                    delay.min(self.packets.parameters.peer_delay())
                }
                Level::OneRtt => delay,
                _ => 0,
            };
            let member = &mut self.packets.paths[path];
            member.sample(self.packets.now, latest, delay);
            self.packets.compare_timeouts();
        }
        if let Some(reported) = ack.ecn {
            let (marked, reduced) = self.packets.on_ecn(level, path, newest, reported, &acked);
            sum.marked = marked;
            if reduced {
                sum.growing = 0;
            }
        } else if sum.ecn && newest {
            // The path, or the peer, does not tell (RFC 9000 section 13.4.2.1).
            self.packets.paths[path].give_up_ecn();
        }
        let (member, mut shown) = self.packets.paths.pair_mut(path);
        member.publish(&mut shown);
        let window = member.window_mut();
        let paces = window.paces();
        window.measure_acked(&acked, before, level == Level::OneRtt);
        for packet in &mut acked {
            let carried = &mut packet.carried;
            if let Some((position, end)) = carried.first_data() {
                self.on_data_delivered(path, position, end);
            }
            if let Some((about, largest)) = carried.first_ack() {
                self.packets.on_ack_delivered(level, about, largest);
            }
            if let Some(others) = carried.take_others() {
                self.on_others_delivered(level, path, packet.number, *others);
            }
        }
        while let Some(packet) = acked.pop() {
            // What it carried was taken out.
            std::mem::forget(packet);
        }
        self.packets.paths.keep_acked(acked);
        self.streams.outgoing_mut().forget_finished();
        let member = &mut self.packets.paths[path];
        let forgive = !self.packets.identity.client()
            || self.packets.handshake.confirmed()
            || level != Level::Initial;
        if forgive {
            // A client keeps its backoff until the server has validated its address (RFC 9002 section 6.2.1).
            member.probing_mut().forgive();
        }
        if works && self.packets.paths.shown(path).potentially_failed {
            self.take_back_into_use(path);
        }
        let lost = self.detect_losses(level, path);
        if lost.reduced {
            // All that this acknowledges had left by then (RFC 9002 appendices A.7 and B.5).
            sum.growing = 0;
        }
        self.packets.paths.keep_asking(path);
        self.packets.paths.shown_mut(path).in_flight = self.packets.in_flight(path);
        if paces || sum.delivered > 0 {
            let news = News {
                now: self.packets.now,
                sum,
                measured: measures,
                before,
                lost,
            };
            let (member, mut shown) = self.packets.paths.pair_mut(path);
            member.tell_congestion(&mut shown, &news);
        }
        let (member, mut shown) = self.packets.paths.pair_mut(path);
        member.window_mut().set_rate(&mut shown);
    }

    /// Something arrived that was sent after its path was given up.
    #[cold]
    fn take_back_into_use(&mut self, path: usize) {
        self.packets.paths.shown_mut(path).potentially_failed = false;
        self.packets.paths.choose_senders(&self.packets.config);
        self.packets.event(EventKind::Recovered(path));
        self.judge_all_silences();
    }

    /// RFC 9000 section 13.1.
    fn refuse_ack(&mut self, ack: &Ack) {
        let reason = "an acknowledgement of a packet that was never sent";
        let frame_type = Frame::Ack(Box::new(ack.clone())).frame_type();
        self.fail(TransportError::PROTOCOL_VIOLATION, frame_type, reason);
    }

    #[inline(never)]
    fn on_others_delivered(
        &mut self,
        level: Level,
        path: usize,
        number: u64,
        others: Vec<Carried>,
    ) {
        for carried in others {
            match carried {
                Carried::Data { position, end } => self.on_data_delivered(path, position, end),
                Carried::Crypto { offset, end } => {
                    self.packets.handshake.on_acked(level, offset, end)
                }
                Carried::Ack {
                    path: about,
                    largest,
                } => self.packets.on_ack_delivered(level, about, largest),
                Carried::Probe => {
                    if let Some(mtu) = self.packets.paths[path]
                        .datagram_size_mut()
                        .on_acknowledged(number)
                    {
                        self.packets.on_path_mtu(path, mtu);
                    }
                }
                Carried::Control(Frame::AckFrequency(asked)) => {
                    // The peer has what it was asked for.
                    self.packets
                        .assume_peer_delay(asked.max_delay * MICROSECOND);
                }
                Carried::Control(_) | Carried::OffPath => {}
            }
        }
    }

    #[inline]
    fn on_data_delivered(&mut self, path: usize, position: u64, end: u64) {
        let bytes = self.streams.outgoing_mut().on_acked(position, end);
        self.packets.paths.shown_mut(path).acked += bytes;
    }

    /// Finds what is lost by now, and reduces the window once for what was sent since its last reduction.
    #[inline]
    fn detect_losses(&mut self, level: Level, path: usize) -> Lost {
        if self.packets.space(level, path).sent.in_order() {
            return Lost::default();
        }
        self.detect_overtaken(level, path)
    }

    fn detect_overtaken(&mut self, level: Level, path: usize) -> Lost {
        let now = self.packets.now;
        let rtt = self.packets.paths[path].rtt().clone();
        let mut lost = Vec::new();
        self.packets
            .space(level, path)
            .sent
            .detect_lost(now, &rtt, &mut lost);
        if lost.is_empty() {
            return Lost::default();
        }
        self.on_lost(level, path, lost)
    }

    fn on_lost(&mut self, level: Level, path: usize, lost: Vec<Sent<Contents>>) -> Lost {
        let delay = self.packets.parameters.peer_delay();
        let persistent = self.packets.paths[path].is_persistent(&lost, delay);
        let (mut found, mut newest) = (Lost::default(), None);
        for packet in lost {
            let number = packet.number;
            let (probe, elsewhere) = (packet.carried.is_probe(), packet.carried.off_path());
            let acked = self.packets.space(level, path).sent.largest_acked();
            self.packets.output.note(|| Note::Lost {
                level,
                path,
                number,
                overtaken: acked.is_some_and(|acked| acked >= number + PACKET_THRESHOLD),
                probe,
            });
            if probe {
                // The loss of a probe says nothing of congestion (RFC 9000 section 14.4).
                self.packets.paths[path].datagram_size_mut().on_lost(number);
            } else if packet.in_flight && !elsewhere {
                found.packets += 1;
                if level == Level::OneRtt {
                    self.packets.paths[path].window_mut().measure_lost(number);
                }
                newest = newest.max(Some(packet.at));
            }
            self.requeue(level, path, packet.carried);
        }
        if let Some(at) = newest {
            found.persistent = persistent;
            found.reduced = self.packets.on_congestion(path, at, CaState::Recovery) || persistent;
            if persistent {
                let (member, mut shown) = self.packets.paths.pair_mut(path);
                member.on_persistent_congestion(&mut shown);
            }
        }
        found
    }

    /// What a lost packet carried goes again.
    fn requeue(&mut self, level: Level, path: usize, carried: Contents) {
        carried.for_each(|carried| match carried {
            Carried::Data { position, end } => {
                self.streams.outgoing_mut().on_lost(position, end, path)
            }
            Carried::Crypto { offset, end } => self.packets.handshake.on_lost(level, offset, end),
            Carried::Control(frame) => self.repeat_control(frame),
            Carried::Ack { .. } | Carried::Probe | Carried::OffPath => {}
        });
    }

    /// A path carries nothing any more: what was in flight goes on others.
    pub(super) fn give_up_flight(&mut self, path: usize) {
        let packets: Vec<_> = self.packets.paths[path].space_mut().sent.drain().collect();
        for packet in packets {
            self.requeue(Level::OneRtt, path, packet.carried);
        }
        self.packets.paths.shown_mut(path).in_flight = self.packets.in_flight(path);
    }

    /// A path's timer fired: losses by time first, a probe otherwise (RFC 9002 appendix A.9).
    pub(super) fn on_recovery_timer(&mut self, path: usize) {
        let mut found = false;
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            if level != Level::OneRtt && (path != 0 || !self.packets.handshake.writes(level)) {
                continue;
            }
            if self.packets.space(level, path).sent.loss_deadline() <= self.packets.now {
                let lost = self.detect_losses(level, path);
                self.packets.paths[path].window_mut().on_lost(lost.packets);
                found = true;
            }
        }
        self.packets.paths.shown_mut(path).in_flight = self.packets.in_flight(path);
        if found {
            self.packets.paths.keep_asking(path);
            return;
        }
        let Some((at, level)) = self.packets.probe_deadline(path) else {
            return;
        };
        if at > self.packets.now {
            return;
        }
        let backoff = self.packets.paths[path].probing_mut().on_timeout();
        self.packets.event(EventKind::Timeout {
            subflow: path,
            backoff,
        });
        self.packets.handshake.wait_from(self.packets.now);
        match level {
            Level::OneRtt => {
                let member = &mut self.packets.paths[path];
                member.probing_mut().ask(2);
                if !member.validated() {
                    member.reach_mut().ask();
                }
                self.judge_silence(path);
            }
            _ => {
                self.packets.handshake.send_probe(level);
                self.packets.paths[0].probing_mut().ask_once();
            }
        }
    }

    /// Another path works from now on: those that fell silent while none did leave what they carry to it.
    pub(super) fn judge_all_silences(&mut self) {
        for path in 0..self.packets.paths.len() {
            self.judge_silence(path);
        }
    }

    /// A path that stays silent leaves what it carries to others, if there are any.
    fn judge_silence(&mut self, path: usize) {
        let others = self
            .packets
            .paths
            .has_substitute(path, &self.packets.config);
        if !self.packets.paths[path].probing().is_silent()
            || !others
            || self.packets.paths.shown(path).potentially_failed
        {
            return;
        }
        self.packets.paths.shown_mut(path).potentially_failed = true;
        self.packets.paths[path]
            .probing_mut()
            .fail(self.packets.now);
        self.packets.paths.keep_asking(path);
        self.packets.paths.choose_senders(&self.packets.config);
        self.packets.event(EventKind::PotentiallyFailed(path));
        for member in self.packets.paths.iter_mut() {
            // It may have carried acknowledgements of every path, which the peer knows nothing of.
            if !member.closed() {
                member.space_mut().received.tell_again(self.packets.now);
            }
        }
        let in_flight = self.packets.paths[path].space().sent.iter();
        let (mut positions, mut frames) = (Vec::new(), Vec::new());
        for packet in in_flight {
            positions.extend(packet.carried.data());
            frames.extend(packet.carried.control().cloned());
        }
        // The peer may wait for one of them: for a limit, if it has no other way to go on.
        for frame in frames {
            self.repeat_control(frame);
        }
        let mut bytes = 0;
        for (position, end) in positions {
            bytes += end - position;
            self.streams.outgoing_mut().on_lost(position, end, path);
        }
        if bytes > 0 {
            self.packets.event(EventKind::Reinjection {
                subflow: path,
                bytes,
            });
        }
    }
}

#[cfg(test)]
mod tests;
