//! One path of a connection: addresses, number space, loss detection, round trip, congestion control, MTU (RFC 9000 section 9, RFC 10069 section 3).

use std::net::IpAddr;

use super::contents::Contents;
use super::datagram_size::DatagramSize;
use super::loss::{InFlight, Sent, is_persistent};
use super::probing::Probing;
use super::reach::Reach;
use super::received::Received;
use super::route::Route;
use super::rtt::Rtt;
use super::status::Status;
use super::traffic::Traffic;
use super::window::{News, Window};
use crate::congestion::{CongestionControl, Restart};
use crate::path::{Member, Path, Totals};
use crate::path_manager::Pair;
use crate::settings::Config;
use crate::{Codepoint, NEVER, Nanos, Tuple};

/// kPersistentCongestionThreshold (RFC 9002 section 7.6.1).
pub(super) const PERSISTENT: Nanos = 3;

/// A packet number space.
#[derive(Debug, Default)]
pub(super) struct Space {
    pub sent: InFlight<Contents>,
    pub received: Received,
    /// The largest counts of ECT(0), ECT(1) and ECN-CE that the peer reported (RFC 9000 section 13.4.1).
    pub ecn_reported: [u64; 3],
}

/// One path of a connection.
pub struct PathState {
    /// Its id (RFC 10069 section 3.2).
    id: u64,
    established_at: Option<Nanos>,
    closed_at: Option<Nanos>,
    /// Until when packets of a closed path are taken (RFC 10069 section 3.4).
    takes_until: Nanos,
    route: Route,
    status: Status,
    reach: Reach,
    space: Space,
    rtt: Rtt,
    /// When that had its first sample.
    sampled_at: Nanos,
    probing: Probing,
    window: Window,
    datagram_size: DatagramSize,
    /// Sends ECT(0).
    ecn: Codepoint,
    traffic: Traffic,
}

impl PathState {
    pub(super) fn new(
        config: &Config,
        congestion: Box<dyn CongestionControl>,
        id: u64,
        route: Route,
        datagram_size: DatagramSize,
    ) -> Self {
        Self {
            id,
            established_at: None,
            closed_at: None,
            takes_until: NEVER,
            route,
            status: Status::default(),
            reach: Reach::default(),
            space: Space::default(),
            rtt: Rtt::default(),
            sampled_at: 0,
            probing: Probing::default(),
            ecn: match () {
                () if congestion.low_latency() => Codepoint::Ect1,
                () if config.ecn || congestion.needs_ecn() => Codepoint::Ect0,
                () => Codepoint::NotEct,
            },
            window: Window::new(congestion),
            datagram_size,
            traffic: Traffic::default(),
        }
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// What a recording calls its state.
    pub fn state_name(&self) -> &'static str {
        if self.closed() {
            "abandoned"
        } else if self.established_at.is_some() {
            "established"
        } else {
            "validating"
        }
    }

    /// Data may be sent since then.
    pub fn established_at(&self) -> Option<Nanos> {
        self.established_at
    }

    pub(super) fn establish(&mut self, now: Nanos) {
        self.established_at = Some(now);
    }

    /// It was abandoned by either side.
    pub fn closed(&self) -> bool {
        self.closed_at.is_some()
    }

    pub fn closed_at(&self) -> Option<Nanos> {
        self.closed_at
    }

    pub(super) fn close(&mut self, now: Nanos) {
        self.closed_at = Some(now);
    }

    /// Data may be sent.
    pub(super) fn open(&self) -> bool {
        self.established_at.is_some() && !self.closed()
    }

    /// Packets on it are taken, though it may be abandoned.
    pub(super) fn takes(&self, now: Nanos) -> bool {
        !self.closed() || now < self.takes_until
    }

    /// The peer abandoned it: packets that are on their way are taken for so many probe timeouts.
    pub(super) fn retain(&mut self, now: Nanos, timeouts: Nanos, ack_delay: Nanos) {
        let until = now + timeouts * self.rtt.probe_timeout(ack_delay);
        self.takes_until = until.min(self.takes_until);
    }

    pub fn tuple(&self) -> Tuple {
        self.route.tuple()
    }

    /// The ids of its addresses.
    pub(super) fn ids(&self) -> Pair {
        self.route.ids()
    }

    /// Addresses of routers through which its packets are steered.
    pub fn gateways(&self) -> &[IpAddr] {
        self.route.gateways()
    }

    pub(super) fn route(&self) -> &Route {
        &self.route
    }

    pub(super) fn route_mut(&mut self) -> &mut Route {
        &mut self.route
    }

    /// Either side wants it to be a backup.
    pub fn is_backup(&self) -> bool {
        self.status.is_backup()
    }

    pub(super) fn status(&self) -> &Status {
        &self.status
    }

    pub(super) fn status_mut(&mut self) -> &mut Status {
        &mut self.status
    }

    /// The peer has shown that it receives on it.
    pub fn validated(&self) -> bool {
        self.reach.validated()
    }

    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }

    pub(super) fn reach_mut(&mut self) -> &mut Reach {
        &mut self.reach
    }

    pub(super) fn space(&self) -> &Space {
        &self.space
    }

    pub(super) fn space_mut(&mut self) -> &mut Space {
        &mut self.space
    }

    pub(super) fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// A round trip was measured; as [`Rtt::sample`].
    pub(super) fn sample(&mut self, now: Nanos, latest: Nanos, ack_delay: Nanos) {
        if !self.rtt.sampled() {
            self.sampled_at = now;
        }
        self.rtt.sample(latest, ack_delay);
    }

    /// The peer has had a packet for `delay`, which is longer than it may hold an acknowledgement back, and a probe was due meanwhile: an earlier
    /// acknowledgement of it was lost, and that time is no round trip.
    pub(super) fn is_told_again(&self, delay: Nanos, ack_delay: Nanos) -> bool {
        self.probing.timeouts() > 0 && delay > ack_delay
    }

    pub(super) fn probing(&self) -> &Probing {
        &self.probing
    }

    pub(super) fn probing_mut(&mut self) -> &mut Probing {
        &mut self.probing
    }

    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    pub(super) fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    /// Longest UDP payload that is sent.
    pub fn datagram(&self) -> u32 {
        self.datagram_size.longest()
    }

    pub(super) fn datagram_size(&self) -> &DatagramSize {
        &self.datagram_size
    }

    pub(super) fn datagram_size_mut(&mut self) -> &mut DatagramSize {
        &mut self.datagram_size
    }

    /// Packets are sent as ECN-capable.
    pub(super) fn ecn(&self) -> bool {
        self.ecn != Codepoint::NotEct
    }

    /// The ECN field of packets.
    pub(super) fn codepoint(&self) -> Codepoint {
        self.ecn
    }

    /// The path, or the peer, does not tell of ECN.
    pub(super) fn give_up_ecn(&mut self) {
        self.ecn = Codepoint::NotEct;
    }

    pub fn totals(&self) -> &Totals {
        self.traffic.totals()
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    pub(super) fn traffic_mut(&mut self) -> &mut Traffic {
        &mut self.traffic
    }

    /// Another host address means another way through the network; a port alone does not (RFC 9000 section 9.4). It begins as a connection does,
    /// without backoff, too (RFC 9002 appendix A.4), to a peer that takes datagrams of so many bytes.
    pub(super) fn forget_measurements(
        &mut self,
        congestion: Box<dyn CongestionControl>,
        now: Nanos,
        longest: u64,
    ) {
        self.window.restart(congestion, now);
        self.rtt = Rtt::default();
        self.probing.forgive();
        self.space.sent.disregard();
        self.reach.restart(now);
        self.datagram_size.restart(longest);
    }

    /// Before a packet leaves where nothing is in flight: the controller learns for how long that lasted (RFC 9438 section 5.8, Linux
    /// `CA_EVENT_TX_START`). The peer holds an acknowledgement back for `ack_delay` at most.
    #[cold]
    pub(super) fn restart(&mut self, shown: &mut Member, now: Nanos, ack_delay: Nanos) {
        let last = self.space.sent.last_eliciting_at();
        if last > self.reach.since() {
            let restart = Restart {
                now,
                idle: now - last,
                outdated: now - last > self.rtt.probe_timeout(ack_delay),
                next_seq: self.space.sent.next(),
                app_limited: self.window.limited_by_application(),
            };
            self.window.on_restart(shown, &restart);
        }
    }

    /// Tells the congestion control of an acknowledgement.
    #[inline]
    pub(super) fn tell_congestion(&mut self, shown: &mut Member, news: &News) {
        self.window.on_ack(shown, news, &self.space.sent, &self.rtt);
    }

    /// Something is to be sent on it beside data and acknowledgements: challenges, answers, probes.
    pub(super) fn has_errand(&self, now: Nanos) -> bool {
        self.probing.asks() || self.reach.has_errand() || self.datagram_size.due(now)
    }

    /// When its validation is given up, of a peer that holds acknowledgements back for `ack_delay`.
    pub(super) fn validation_deadline(&self, ack_delay: Nanos) -> Nanos {
        if self.validated() || self.closed() {
            return NEVER;
        }
        // A path without a round trip has a timeout, too (RFC 9000 section 8.2.4).
        let unknown = Rtt::default().probe_timeout(ack_delay);
        let attempt = self.rtt.probe_timeout(ack_delay).max(unknown);
        self.reach.given_up_at(attempt)
    }

    /// When another challenge is sent, since none was answered.
    pub(super) fn challenge_deadline(&self, ack_delay: Nanos) -> Nanos {
        if self.validated() || self.closed() {
            return NEVER;
        }
        self.reach.asks_at(self.rtt.probe_timeout(ack_delay))
    }

    /// When the next probe of its space is due, once the handshake is confirmed (RFC 9002 section 6.2.1).
    #[inline]
    pub(super) fn probe_deadline(&self, max_ack_delay: Nanos) -> Nanos {
        if self.space.sent.eliciting() == 0 {
            return NEVER;
        }
        let timeout = self.rtt.probe_timeout(max_ack_delay) * self.probing.backoff();
        self.space.sent.last_eliciting_at() + timeout
    }

    /// When its losses are looked for, or a probe is due, once the handshake is confirmed (RFC 9002 appendix A.8).
    #[inline]
    pub(super) fn recovery_deadline(&self, max_ack_delay: Nanos) -> Nanos {
        match self.space.sent.loss_deadline() {
            NEVER => self.probe_deadline(max_ack_delay),
            at => at,
        }
    }

    /// Whether everything between two lost packets that far apart is lost, both sent since the path has a round trip (RFC 9002 section 7.6.2).
    pub(super) fn is_persistent(&self, lost: &[Sent<Contents>], ack_delay: Nanos) -> bool {
        let span = self.rtt.probe_timeout(ack_delay) * PERSISTENT;
        let counts = |packet: &Sent<Contents>| {
            let carried = &packet.carried;
            packet.at > self.sampled_at && !carried.is_probe() && !carried.off_path()
        };
        let long = lost[lost.len() - 1].at - lost[0].at > span;
        long && self.rtt.sampled() && is_persistent(lost, span, counts)
    }

    /// Congestion is persistent: round trip and window begin again (RFC 9002 sections 5.2 and 7.6.2).
    pub(super) fn on_persistent_congestion(&mut self, shown: &mut Member) {
        self.rtt.restart_min();
        self.window.on_persistent_congestion(shown);
    }

    /// Shows schedulers and coupled congestion controls the round trip.
    pub(super) fn publish(&self, path: &mut Path) {
        if self.rtt.sampled() {
            path.srtt = self.rtt.smoothed();
            path.rttvar = self.rtt.variation();
            path.min_rtt = self.rtt.min();
            path.latest_rtt = self.rtt.latest();
        }
    }
}
