//! Acknowledgements, losses, probe timeouts and what congestion control makes of them (RFC 9002).

use polypath_wire::quic::{Ack, Frame, TransportError};

use super::connection::{Connection, payload};
use super::contents::{Carried, Contents};
use super::crypto::Level;
use super::loss::{Sent, is_persistent};
use super::path::{PathState, Space};
use crate::congestion::{self, Restart};
use crate::path::{Acknowledged, CaState, Member, Path};
use crate::{EventKind, MICROSECOND, NEVER, Nanos, SECOND};

/// kPersistentCongestionThreshold (RFC 9002 section 7.6.1).
pub(super) const PERSISTENT: Nanos = 3;
/// kMinimumWindow in packets (RFC 9002 section 7.2).
pub(super) const LEAST_WINDOW: u32 = 2;
/// Packets leave at five quarters of a window a round trip (RFC 9002 section 7.7).
const PACING: (u64, u64) = (5, 4);
/// Probe timeouts in a row after which other paths carry what is in flight.
const FAILED: u32 = 2;

/// What packets that were acknowledged together come to.
struct Sum {
    eliciting: bool,
    /// Some were sent with ECT(0).
    ecn: bool,
    /// Those that counted against the window, and those for which it grows.
    delivered: u32,
    growing: u32,
    /// None of them was a full one.
    small: bool,
}

impl Sum {
    #[inline]
    fn of(acked: &[Sent<Contents>], member: &PathState) -> Self {
        let full = member.datagram();
        // The window grows for packets that were sent after its last reduction (RFC 9002 section 7.3.2).
        let since = member.recovery_since.map_or(0, |since| since + 1);
        let mut sum = Self {
            eliciting: false,
            ecn: false,
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
struct Lost {
    /// Those that say something of the path: no probes of its MTU, and nothing that went elsewhere.
    packets: u32,
    /// The window was reduced for them.
    reduced: bool,
    persistent: bool,
}

impl PathState {
    /// Before a packet leaves where nothing is in flight: the controller learns for how long that lasted (RFC 9438 section 5.8, Linux
    /// `CA_EVENT_TX_START`). It is the one at `index`, whose peer holds an acknowledgement back for `ack_delay` at most.
    #[cold]
    pub(super) fn restart(
        &mut self,
        paths: &mut [Path],
        index: usize,
        now: Nanos,
        ack_delay: Nanos,
    ) {
        let last = self.space.sent.last_eliciting_at();
        if last > self.migration.since {
            let restart = Restart {
                now,
                idle: now - last,
                outdated: now - last > self.rtt.probe_timeout(ack_delay),
                next_seq: self.space.sent.next(),
                app_limited: self.rate.limited_by_application(),
            };
            let path = &mut Member::new(paths, index);
            self.congestion.on_restart(path, &restart);
            self.pacer.set_rate(path);
        }
    }
}

impl Connection {
    /// The number space of a level; of the application level that of a path.
    ///
    /// # Panics
    /// The space was discarded.
    #[inline(always)]
    pub(super) fn space(&mut self, level: Level, path: usize) -> &mut Space {
        match level {
            Level::OneRtt => &mut self.members[path].space,
            _ => self.handshake.space(level),
        }
    }

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
            Some(id) => match self.path_named(id) {
                Some(path) => path,
                None => return self.refuse_ack(ack),
            },
        };
        self.on_ack(Level::OneRtt, path, ack);
    }

    /// `path`: the one that it is about.
    #[inline(always)]
    fn on_ack(&mut self, level: Level, path: usize, ack: &Ack) {
        if self.members[path].closed() {
            return;
        }
        let before = self.paths[path].in_flight;
        debug_assert_eq!(before, self.in_flight(path));
        let mut acked = std::mem::take(&mut self.acked);
        let Ok(newest) = self.space(level, path).sent.on_ack(ack, &mut acked) else {
            return self.refuse_ack(ack);
        };
        if acked.is_empty() {
            std::mem::forget(std::mem::replace(&mut self.acked, acked));
            return;
        }
        let member = &self.members[path];
        let mut sum = Sum::of(&acked, member);
        let last = &acked[acked.len() - 1];
        // That it worked before it was given up says nothing: acknowledgements of then may have taken another way, or come again.
        let works = last.at >= member.failed_at;
        let delay = ack
            .delay
            .saturating_mul(MICROSECOND << self.parameters.peer().ack_delay_exponent);
        let measures = newest
            && sum.eliciting
            && last.at >= member.migration.since
            && !last.carried.off_path()
            && !self.is_told_again(level, path, delay);
        if measures {
            let latest = self.now - last.at;
            // RFC 9002 section 5.3.
            let delay = match level {
                Level::OneRtt if self.handshake.confirmed => {
                    delay.min(self.parameters.peer_delay())
                }
                Level::OneRtt => delay,
                _ => 0,
            };
            let member = &mut self.members[path];
            if !member.rtt.sampled() {
                member.sampled_at = self.now;
            }
            member.rtt.sample(latest, delay);
            self.compare_timeouts();
        }
        if let Some(reported) = ack.ecn {
            if self.on_ecn(level, path, newest, reported, &acked) {
                sum.growing = 0;
            }
        } else if sum.ecn && newest {
            // The path, or the peer, does not tell (RFC 9000 section 13.4.2.1).
            self.members[path].ecn = false;
        }
        let member = &mut self.members[path];
        member.publish(&mut self.paths[path]);
        let paces = member.paces();
        if paces {
            self.members[path].rate.begin_ack(before);
        }
        if paces && level == Level::OneRtt {
            for packet in acked.iter().filter(|packet| packet.in_flight) {
                self.members[path]
                    .rate
                    .on_delivered(packet.number, packet.number + 1);
            }
        }
        for packet in &mut acked {
            let carried = &mut packet.carried;
            if let Some((position, end)) = carried.first_data() {
                self.on_data_delivered(path, position, end);
            }
            if let Some((about, largest)) = carried.first_ack() {
                self.on_ack_delivered(level, about, largest);
            }
            if let Some(others) = carried.take_others() {
                self.on_others_delivered(level, path, packet.number, *others);
            }
        }
        while let Some(packet) = acked.pop() {
            // What it carried was taken out.
            std::mem::forget(packet);
        }
        // What it replaces has no memory.
        std::mem::forget(std::mem::replace(&mut self.acked, acked));
        self.streams.outgoing_mut().forget_finished();
        let member = &mut self.members[path];
        let forgive = !self.client || self.handshake.confirmed || level != Level::Initial;
        if forgive {
            // A client keeps its backoff until the server has validated its address (RFC 9002 section 6.2.1).
            member.timeouts = 0;
        }
        if works && self.paths[path].potentially_failed {
            self.take_back_into_use(path);
        }
        let lost = self.detect_losses(level, path);
        if lost.reduced {
            // All that this acknowledges had left by then (RFC 9002 appendices A.7 and B.5).
            sum.growing = 0;
        }
        self.keep_asking(path);
        self.paths[path].in_flight = self.in_flight(path);
        if paces || sum.delivered > 0 {
            self.tell_congestion(path, &sum, measures, before, lost);
        }
        if !paces {
            self.set_pacing_rate(path);
        }
        let member = &mut self.members[path];
        member.pacer.set_rate(&self.paths[path]);
    }

    /// The peer has had the packet for longer than it may hold an acknowledgement back, and a probe was due meanwhile: an earlier acknowledgement of it
    /// was lost, and that time is no round trip.
    #[inline]
    fn is_told_again(&self, level: Level, path: usize, delay: Nanos) -> bool {
        level == Level::OneRtt
            && self.members[path].timeouts > 0
            && self.handshake.confirmed
            && delay > self.parameters.peer_delay()
    }

    /// Something arrived that was sent after its path was given up.
    #[cold]
    fn take_back_into_use(&mut self, path: usize) {
        self.paths[path].potentially_failed = false;
        self.refresh_sending();
        self.event(EventKind::Recovered(path));
        self.judge_all_silences();
    }

    /// A path that was given up is asked while it has nothing in flight whose probe timeout would ask.
    fn keep_asking(&mut self, path: usize) {
        let member = &mut self.members[path];
        let asked = !self.paths[path].potentially_failed || member.space.sent.eliciting() > 0;
        if !asked && !member.closed() {
            member.probes = member.probes.max(1);
        }
    }

    /// Tells a path's congestion control of an acknowledgement, which `measured` the round trip or not: `before` packets were in flight,
    /// `lost` are newly lost.
    #[inline]
    fn tell_congestion(&mut self, path: usize, sum: &Sum, measured: bool, before: u32, lost: Lost) {
        let una = self.members[path].space.sent.oldest();
        let limited = self.members[path].held
            || (self.paths[path].in_slow_start() && self.paths[path].cwnd < 2 * before);
        let report = congestion::Ack {
            now: self.now,
            packets: sum.growing,
            rtt: measured.then_some(self.members[path].rtt.latest()),
            cwnd_limited: limited,
            next_seq: self.members[path].space.sent.next(),
            una,
        };
        let member = &mut self.members[path];
        if sum.delivered > 0 {
            member
                .congestion
                .on_sample(&mut Member::new(&mut self.paths, path), &report);
        }
        if member.paces() {
            self.control(path, sum, report, lost);
        } else if sum.growing > 0 {
            if self.paths[path].state != CaState::Open {
                self.end_recovery(path);
            }
            let member = &mut self.members[path];
            member
                .congestion
                .on_ack(&mut Member::new(&mut self.paths, path), &report);
        }
    }

    /// As [`Connection::tell_congestion`], where the controller sets a rate.
    #[inline(never)]
    fn control(&mut self, path: usize, sum: &Sum, mut report: congestion::Ack, lost: Lost) {
        let over = sum.growing > 0 && lost.packets == 0;
        if over && self.paths[path].state != CaState::Open && self.members[path].repaired() {
            self.end_recovery(path);
        }
        // Everything that arrived (Linux `rs->acked_sacked`), unless the window has to stay the least one (RFC 9002 section 7.6.2).
        report.packets = if lost.persistent { 0 } else { sum.delivered };
        let member = &mut self.members[path];
        let sample = member.rate.sample(Acknowledged {
            now: self.now,
            packets: sum.delivered,
            newly_lost: lost.packets,
            una: report.una,
            small: sum.small,
            min_rtt: member.rtt.min(),
            departure: member.pacer.departure(self.now),
        });
        let window = &mut Member::new(&mut self.paths, path);
        if member.congestion.control(window, &report, &sample) {
            member.rate.limit_by_application(window.in_flight);
        }
    }

    /// A packet that was sent since the last reduction arrived (RFC 9002 section 7.3.2), or a round trip went by without a loss
    /// ([`Connection::prolong_recovery`]).
    #[cold]
    fn end_recovery(&mut self, path: usize) {
        self.paths[path].state = CaState::Open;
        let member = &mut self.members[path];
        member
            .congestion
            .on_state(&mut Member::new(&mut self.paths, path), CaState::Open);
    }

    /// RFC 9000 section 13.1.
    fn refuse_ack(&mut self, ack: &Ack) {
        let reason = "an acknowledgement of a packet that was never sent";
        let frame_type = Frame::Ack(Box::new(ack.clone())).frame_type();
        self.fail(TransportError::PROTOCOL_VIOLATION, frame_type, reason);
    }

    fn set_pacing_rate(&mut self, path: usize) {
        let window = &mut self.paths[path];
        if window.srtt == 0 {
            return;
        }
        let bytes = u64::from(window.cwnd) * u64::from(window.mss) * PACING.0 / PACING.1;
        let rate = match bytes.checked_mul(SECOND) {
            Some(scaled) => scaled / window.srtt,
            None => {
                let rate = u128::from(bytes) * u128::from(SECOND) / u128::from(window.srtt);
                u64::try_from(rate).unwrap_or(u64::MAX)
            }
        };
        window.pacing_rate = rate.max(1);
    }

    /// Packets in flight on a path; those of the handshake are on the first.
    pub(super) fn in_flight(&self, path: usize) -> u32 {
        let own = self.members[path].space.sent.in_flight();
        if path > 0 || self.handshake.over() {
            return own;
        }
        let handshake = self.handshake.spaces.iter().flatten();
        own + handshake.map(|space| space.sent.in_flight()).sum::<u32>()
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
                Carried::Crypto { offset, end } => self.handshake.on_acked(level, offset, end),
                Carried::Ack {
                    path: about,
                    largest,
                } => self.on_ack_delivered(level, about, largest),
                Carried::Probe => {
                    if let Some(mtu) = self.members[path].mtu.on_acknowledged(number + 1) {
                        self.on_path_mtu(path, mtu);
                    }
                }
                Carried::Control(Frame::AckFrequency(asked)) => {
                    self.on_ack_frequency_delivered(asked);
                }
                Carried::Control(_) | Carried::OffPath => {}
            }
        }
    }

    #[inline]
    fn on_data_delivered(&mut self, path: usize, position: u64, end: u64) {
        let bytes = self.streams.outgoing_mut().on_acked(position, end);
        self.paths[path].acked += bytes;
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
        self.paths[path].mss = payload(self.members[path].datagram());
        self.event(EventKind::PathMtu { subflow: path, mtu });
    }

    /// Finds what is lost by now, and reduces the window once for what was sent since its last reduction.
    #[inline]
    fn detect_losses(&mut self, level: Level, path: usize) -> Lost {
        if self.space(level, path).sent.in_order() {
            return Lost::default();
        }
        self.detect_overtaken(level, path)
    }

    fn detect_overtaken(&mut self, level: Level, path: usize) -> Lost {
        let now = self.now;
        let rtt = self.members[path].rtt.clone();
        let mut lost = Vec::new();
        self.space(level, path)
            .sent
            .detect_lost(now, &rtt, &mut lost);
        if lost.is_empty() {
            return Lost::default();
        }
        self.on_lost(level, path, lost)
    }

    fn on_lost(&mut self, level: Level, path: usize, lost: Vec<Sent<Contents>>) -> Lost {
        let persistent = self.is_persistent(path, &lost);
        let (mut found, mut newest) = (Lost::default(), None);
        for packet in lost {
            let number = packet.number;
            let (probe, elsewhere) = (packet.carried.is_probe(), packet.carried.off_path());
            self.note_loss(level, path, number, probe);
            if probe {
                // The loss of a probe says nothing of congestion (RFC 9000 section 14.4).
                self.members[path].mtu.on_lost(number);
            } else if packet.in_flight && !elsewhere {
                found.packets += 1;
                newest = newest.max(Some(packet.at));
            }
            self.requeue(level, path, packet.carried);
        }
        if let Some(at) = newest {
            found.persistent = persistent;
            found.reduced = self.on_congestion(path, at, CaState::Recovery) || persistent;
            if persistent {
                self.on_persistent_congestion(path);
            }
        }
        found
    }

    /// RFC 9002 sections 5.2 and 7.6.2. To its controller it is a retransmission timeout (RFC 9438 section 4.8); not to schedulers, some of
    /// which put nothing on a path after one.
    fn on_persistent_congestion(&mut self, path: usize) {
        let member = &mut self.members[path];
        member.rtt.restart_min();
        if !member.paces() {
            // Appendix B.8. A controller that paces takes its window back with what is sent from now on.
            member.recovery_since = None;
        }
        let window = &mut self.paths[path];
        window.cwnd = LEAST_WINDOW;
        window.cwnd_count = 0;
        window.state = CaState::Recovery;
        member
            .congestion
            .on_state(&mut Member::new(&mut self.paths, path), CaState::Loss);
    }

    /// What a lost packet carried goes again.
    fn requeue(&mut self, level: Level, path: usize, carried: Contents) {
        carried.for_each(|carried| match carried {
            Carried::Data { position, end } => {
                self.streams.outgoing_mut().on_lost(position, end, path)
            }
            Carried::Crypto { offset, end } => self.handshake.on_lost(level, offset, end),
            Carried::Control(frame) => self.repeat_control(frame),
            Carried::Ack { .. } | Carried::Probe | Carried::OffPath => {}
        });
    }

    /// Whether everything between two lost packets that far apart is lost, both sent since the path has a round trip (RFC 9002 section 7.6.2).
    fn is_persistent(&self, path: usize, lost: &[Sent<Contents>]) -> bool {
        let member = &self.members[path];
        let span = member.rtt.probe_timeout(self.parameters.peer_delay()) * PERSISTENT;
        let counts = |packet: &Sent<Contents>| {
            let carried = &packet.carried;
            packet.at > member.sampled_at && !carried.is_probe() && !carried.off_path()
        };
        let long = lost[lost.len() - 1].at - lost[0].at > span;
        long && member.rtt.sampled() && is_persistent(lost, span, counts)
    }

    /// A packet that was sent at `at` met congestion (RFC 9002 section 7.3.2), which a loss or a mark tells and leads to `state`. Whether the
    /// window is reduced for it.
    fn on_congestion(&mut self, path: usize, at: Nanos, state: CaState) -> bool {
        let member = &mut self.members[path];
        if member.recovery_since.is_some_and(|since| at <= since) {
            if member.paces() {
                self.prolong_recovery(path, state);
            }
            return false;
        }
        member.recovery_since = Some(self.now);
        self.event(EventKind::Loss(path));
        let member = &mut self.members[path];
        let threshold = member
            .congestion
            .ssthresh(&mut Member::new(&mut self.paths, path));
        let window = &mut self.paths[path];
        window.ssthresh = threshold.max(LEAST_WINDOW);
        if !member.paces() {
            window.cwnd = window.ssthresh;
            window.cwnd_count = 0;
        }
        window.state = state;
        member
            .congestion
            .on_state(&mut Member::new(&mut self.paths, path), state);
        true
    }

    /// More was lost before recovery was over. A period of RFC 9002 lasts one round trip, so that losses in each of them would make as many
    /// episodes. A controller that sets a rate was written for recovery of TCP, which lasts until nothing is known to be lost (Linux
    /// `tcp_fastretrans_alert`, Chromium `BbrSender::UpdateRecoveryState`). Marks do not prolong it, and begin none.
    #[cold]
    fn prolong_recovery(&mut self, path: usize, state: CaState) {
        let window = &mut self.paths[path];
        if window.state == CaState::Open || state < CaState::Recovery {
            return;
        }
        let member = &mut self.members[path];
        member.recovery_since = Some(self.now);
        if window.state < state {
            window.state = state;
            member
                .congestion
                .on_state(&mut Member::new(&mut self.paths, path), state);
        }
    }

    /// More packets were marked than the peer had told of (RFC 9002 section 7.1), or fewer counted than it acknowledges: then the field is
    /// changed on the way (RFC 9000 section 13.4.2.1). `newest`: the largest number of the acknowledgement is news.
    /// Whether the window is reduced.
    fn on_ecn(
        &mut self,
        level: Level,
        path: usize,
        newest: bool,
        reported: [u64; 3],
        acked: &[Sent<Contents>],
    ) -> bool {
        let counts = &mut self.space(level, path).ecn_reported;
        let known = *counts;
        // An acknowledgement that was overtaken has lower ones.
        *counts = std::array::from_fn(|at| known[at].max(reported[at]));
        let sent = acked.iter().filter(|packet| packet.ecn).count() as u64;
        let told = (reported[0] + reported[2]).saturating_sub(known[0] + known[2]);
        if newest && (told < sent || reported[1] > 0) {
            self.members[path].ecn = false;
        }
        let marked = reported[2] > known[2];
        let newest = acked.iter().map(|packet| packet.at).max();
        let met = newest.filter(|_| marked);
        met.is_some_and(|at| self.on_congestion(path, at, CaState::Cwr))
    }

    /// Keys of a level are discarded, and with them what was in flight (RFC 9001 section 4.9).
    pub(super) fn discard(&mut self, level: Level) {
        if self.handshake.spaces[level as usize].take().is_some() {
            self.members[0].timeouts = 0;
            self.paths[0].in_flight = self.in_flight(0);
        }
    }

    /// A path carries nothing any more: what was in flight goes on others.
    pub(super) fn give_up_flight(&mut self, path: usize) {
        let packets: Vec<_> = self.members[path].space.sent.drain().collect();
        for packet in packets {
            self.requeue(Level::OneRtt, path, packet.carried);
        }
        self.paths[path].in_flight = self.in_flight(path);
    }

    /// When a path's losses are looked for, or a probe is due: RFC 9002 appendix A.8, for each path (RFC 10069 section 3.3).
    #[inline]
    pub(super) fn recovery_deadline(&self, path: usize) -> Nanos {
        let member = &self.members[path];
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
        let mut losses = self.members[path].space.sent.loss_deadline();
        if path == 0 {
            for space in self.handshake.spaces.iter().flatten() {
                losses = losses.min(space.sent.loss_deadline());
            }
        }
        if losses < NEVER {
            return losses;
        }
        self.probe_deadline(path).map_or(NEVER, |(at, _)| at)
    }

    /// When the next probe of a path is due, and at which level.
    fn probe_deadline(&self, path: usize) -> Option<(Nanos, Level)> {
        let member = &self.members[path];
        let backoff = member.backoff();
        let mut due: Option<(Nanos, Level)> = None;
        if path == 0 {
            for level in [Level::Initial, Level::Handshake] {
                let Some(space) = &self.handshake.spaces[level as usize] else {
                    continue;
                };
                if space.sent.eliciting() > 0 {
                    let at = space.sent.last_eliciting_at() + member.rtt.probe_timeout(0) * backoff;
                    due = Some(due.map_or((at, level), |earlier| earlier.min((at, level))));
                }
            }
            let open = self.client && !self.handshake.confirmed;
            if due.is_none() && open && member.space.sent.eliciting() == 0 {
                // The server may be at its amplification limit (section 6.2.2.1).
                let level = if self.handshake.writes(Level::Handshake) {
                    Level::Handshake
                } else {
                    Level::Initial
                };
                let at = self.anti_deadlock_from + member.rtt.probe_timeout(0) * backoff;
                return Some((at, level));
            }
        }
        let at = match self.handshake.confirmed {
            true => member.probe_deadline(self.parameters.peer_delay()),
            false => NEVER,
        };
        if at < NEVER {
            let level = Level::OneRtt;
            due = Some(due.map_or((at, level), |earlier| earlier.min((at, level))));
        }
        due
    }

    /// A path's timer fired: losses by time first, a probe otherwise (RFC 9002 appendix A.9).
    pub(super) fn on_recovery_timer(&mut self, path: usize) {
        let mut found = false;
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            if level != Level::OneRtt && (path != 0 || !self.handshake.writes(level)) {
                continue;
            }
            if self.space(level, path).sent.loss_deadline() <= self.now {
                let lost = self.detect_losses(level, path);
                self.members[path].rate.on_lost(lost.packets);
                found = true;
            }
        }
        self.paths[path].in_flight = self.in_flight(path);
        if found {
            self.keep_asking(path);
            return;
        }
        let Some((at, level)) = self.probe_deadline(path) else {
            return;
        };
        if at > self.now {
            return;
        }
        let member = &mut self.members[path];
        member.timeouts += 1;
        let backoff = member.timeouts;
        self.event(EventKind::Timeout {
            subflow: path,
            backoff,
        });
        self.anti_deadlock_from = self.now;
        match level {
            Level::OneRtt => {
                let member = &mut self.members[path];
                member.probes = 2;
                if !member.validated() {
                    member.challenges.ask();
                }
                self.judge_silence(path);
            }
            _ => {
                if !self.handshake.repeat(level) {
                    self.probe_level = Some(level);
                }
                self.repeat_other_level(level);
                self.members[0].probes = self.members[0].probes.max(1);
            }
        }
    }

    /// With a probe of one handshake level goes what the other has in flight: a server's flight is of both, and the peer can use neither part
    /// alone (RFC 9002 section 6.2.4).
    fn repeat_other_level(&mut self, probed: Level) {
        let other = match probed {
            Level::Initial => Level::Handshake,
            _ => Level::Initial,
        };
        let space = &self.handshake.spaces[other as usize];
        if space
            .as_ref()
            .is_some_and(|space| space.sent.eliciting() > 0)
        {
            self.handshake.repeat(other);
        }
    }

    /// Another path works from now on: those that fell silent while none did leave what they carry to it.
    pub(super) fn judge_all_silences(&mut self) {
        for path in 0..self.members.len() {
            self.judge_silence(path);
        }
    }

    /// A path that stays silent leaves what it carries to others, if there are any.
    fn judge_silence(&mut self, path: usize) {
        let others = (0..self.paths.len())
            .filter(|&other| other != path)
            .any(|other| crate::scheduler::usable(&self.paths[other]) || self.is_spare(other));
        if self.members[path].timeouts < FAILED || !others || self.paths[path].potentially_failed {
            return;
        }
        self.paths[path].potentially_failed = true;
        self.members[path].failed_at = self.now;
        self.keep_asking(path);
        self.refresh_sending();
        self.event(EventKind::PotentiallyFailed(path));
        for member in &mut self.members {
            // It may have carried acknowledgements of every path, which the peer knows nothing of.
            if !member.closed() {
                member.space.received.tell_again(self.now);
            }
        }
        let in_flight = self.members[path].space.sent.iter();
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
            self.event(EventKind::Reinjection {
                subflow: path,
                bytes,
            });
        }
    }
}

#[cfg(test)]
mod tests;
