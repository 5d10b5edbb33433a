//! One path of a connection: addresses, number space, loss detection, round trip, congestion control, MTU (RFC 9000 section 9, RFC 10069 section 3).

use std::net::IpAddr;

use polypath_wire::quic::Frame;

use super::contents::Contents;
use super::loss::InFlight;
use super::reach::Reach;
use super::received::Received;
use super::rtt::Rtt;
use super::status::Status;
use super::window::{News, Window};
use crate::congestion::{CongestionControl, Restart};
use crate::path::{Member, MtuDiscovery, Path, Totals};
use crate::settings::Config;
use crate::{NEVER, Nanos, Tuple};

/// The least that a path of QUIC takes (RFC 9000 section 14), in bytes of UDP payload.
pub(super) const LEAST_DATAGRAM: u32 = 1200;
const UDP_HEADER: u32 = 8;
/// Doublings of the probe timeout at most.
const MOST_DOUBLINGS: u32 = 16;

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
    pub id: u64,
    pub tuple: Tuple,
    /// All datagrams of it so far went between the same addresses.
    pub(super) steady: bool,
    pub local_id: u8,
    pub remote_id: u8,
    /// Addresses of routers through which its packets are steered.
    pub gateways: Vec<IpAddr>,
    /// Whether it is a backup.
    status: Status,
    pub established_at: Option<Nanos>,
    pub closed_at: Option<Nanos>,
    /// Until when packets of a closed path are taken (RFC 10069 section 3.4).
    pub(super) takes_until: Nanos,
    pub(super) space: Space,
    pub(super) rtt: Rtt,
    /// When that had its first sample.
    pub(super) sampled_at: Nanos,
    window: Window,
    /// Longest UDP payload that the interface takes.
    interface_takes: u32,
    pub(super) mtu: MtuDiscovery,
    /// Whether the peer receives at its addresses.
    reach: Reach,
    /// Probe timeouts in a row, and ack-eliciting packets to be sent beyond the window.
    pub(super) timeouts: u32,
    /// When it was last given up.
    pub(super) failed_at: Nanos,
    pub(super) probes: u32,
    /// Sends ECT(0).
    pub(super) ecn: bool,
    pub(super) totals: Totals,
    /// Frames that came on it which ask to be acknowledged, and neither carry stream bytes nor only ask.
    other_frames: u64,
    /// What [`PathState::came_for_acks`] of all paths came to when a packet of acknowledgements on it last asked for an answer.
    pub(super) asked_after: u64,
}

fn headers(tuple: Tuple) -> u32 {
    UDP_HEADER + if tuple.local.is_ipv6() { 40 } else { 20 }
}

impl PathState {
    pub(super) fn new(
        config: &Config,
        congestion: Box<dyn CongestionControl>,
        id: u64,
        tuple: Tuple,
        ids: (u8, u8),
        mtu: u32,
        peer_takes: u64,
    ) -> Self {
        let headers = headers(tuple);
        let interface_takes = mtu.saturating_sub(headers);
        let mut search = MtuDiscovery::new(true, headers, mtu);
        search.begin(LEAST_DATAGRAM, LEAST_DATAGRAM, 0);
        let mut state = Self {
            id,
            tuple,
            steady: true,
            local_id: ids.0,
            remote_id: ids.1,
            gateways: Vec::new(),
            established_at: None,
            closed_at: None,
            takes_until: NEVER,
            space: Space::default(),
            rtt: Rtt::default(),
            sampled_at: 0,
            window: Window::new(congestion),
            interface_takes,
            mtu: search,
            reach: Reach::default(),
            timeouts: 0,
            failed_at: 0,
            probes: 0,
            ecn: config.ecn,
            status: Status::default(),
            totals: Totals::default(),
            other_frames: 0,
            asked_after: 0,
        };
        state.limit_datagrams(peer_takes);
        state
    }

    /// The interface of its local address takes packets of so many bytes.
    pub(super) fn set_mtu(&mut self, mtu: u32) {
        self.interface_takes = mtu.saturating_sub(headers(self.tuple));
    }

    /// Whether a report that a datagram of `len` bytes was longer than a link's `mtu` tells anything. One below the least that a path takes is
    /// to be ignored (RFC 9000 section 14.2.1).
    pub(super) fn on_report(&mut self, len: u32, mtu: u32) -> bool {
        let headers = headers(self.tuple);
        mtu >= LEAST_DATAGRAM + headers && self.mtu.on_report(len + headers, mtu)
    }

    /// The peer takes datagrams of so many bytes.
    pub(super) fn limit_datagrams(&mut self, longest: u64) {
        let longest = longest.min(u64::from(self.interface_takes)) as u32;
        self.mtu
            .begin(longest.max(LEAST_DATAGRAM), LEAST_DATAGRAM, 0);
    }

    /// Longest UDP payload that is sent.
    #[inline]
    pub fn datagram(&self) -> u32 {
        self.mtu.payload(0).max(LEAST_DATAGRAM)
    }

    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    pub(super) fn window_mut(&mut self) -> &mut Window {
        &mut self.window
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
        self.probes > 0 || self.reach.has_errand() || self.mtu.due(now)
    }

    /// A frame came that carries no stream bytes. A PING is answered, but nobody has to know whether the answer arrives.
    pub(super) fn note_frame(&mut self, frame: &Frame) {
        let asks_only = matches!(frame, Frame::Ping | Frame::ImmediateAck);
        self.other_frames += u64::from(frame.ack_eliciting() && !asks_only);
    }

    /// Grows with everything that came on it and whose sender waits for the acknowledgement.
    pub(super) fn came_for_acks(&self) -> u64 {
        self.totals.received + self.other_frames
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

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// It was abandoned by either side.
    pub fn closed(&self) -> bool {
        self.closed_at.is_some()
    }

    /// Packets on it are taken, though it may be abandoned.
    pub(super) fn takes(&self, now: Nanos) -> bool {
        !self.closed() || now < self.takes_until
    }

    pub fn validated(&self) -> bool {
        self.reach.validated()
    }

    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }

    pub(super) fn reach_mut(&mut self) -> &mut Reach {
        &mut self.reach
    }

    pub(super) fn status(&self) -> &Status {
        &self.status
    }

    pub(super) fn status_mut(&mut self) -> &mut Status {
        &mut self.status
    }

    /// Either side wants it to be a backup.
    pub fn is_backup(&self) -> bool {
        self.status.is_backup()
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

    /// By what its probe timeout is multiplied (RFC 9002 section 6.2.1).
    pub(super) fn backoff(&self) -> Nanos {
        1 << self.timeouts.min(MOST_DOUBLINGS)
    }

    /// When the next probe of its space is due, once the handshake is confirmed (RFC 9002 section 6.2.1).
    #[inline]
    pub(super) fn probe_deadline(&self, max_ack_delay: Nanos) -> Nanos {
        if self.space.sent.eliciting() == 0 {
            return NEVER;
        }
        let timeout = self.rtt.probe_timeout(max_ack_delay) * self.backoff();
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
