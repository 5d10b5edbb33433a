//! A trace's view of a connection, beyond the packets that it exchanges.

use polypath_wire::quic::TransportParameters;

use super::crypto::Level;
use super::loss::PACKET_THRESHOLD;
use super::note::Note;
use super::packets::Packets;
use super::path::PERSISTENT;
use super::rtt::{GRANULARITY, INITIAL, TIME_THRESHOLD};
use super::window::LEAST_WINDOW;
use crate::Nanos;
use crate::path::{CaState, INFINITE_SSTHRESH};

/// Recovery and congestion control of a path. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Absent before the first sample of the round trip.
    pub rtt: Option<RoundTrip>,
    /// Probe timeouts in a row.
    pub pto_count: u32,
    /// In bytes of UDP payload, as are the next two.
    pub congestion_window: u64,
    pub bytes_in_flight: u64,
    /// Absent until the window was first reduced.
    pub ssthresh: Option<u64>,
    pub packets_in_flight: u32,
    /// Bytes a second; 0: not paced.
    pub pacing_rate: u64,
    /// Absent for a congestion control with states of its own.
    pub state: Option<&'static str>,
}

/// What loss detection and congestion control begin with (RFC 9002 appendices A.2 and B.1). Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryParameters {
    pub reordering_threshold: u64,
    /// As a multiple of the round trip.
    pub time_threshold: f64,
    pub granularity: Nanos,
    pub initial_rtt: Nanos,
    /// In bytes of UDP payload, as are the windows.
    pub max_datagram: u64,
    pub initial_window: u64,
    pub minimum_window: u64,
    /// As a multiple of the probe timeout.
    pub persistent_congestion: Nanos,
}

/// The round trip of a path, in nanoseconds (RFC 9002 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    pub min: Nanos,
    pub smoothed: Nanos,
    pub latest: Nanos,
    pub variation: Nanos,
}

/// Whether packets of a level can be protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    #[default]
    Absent,
    Present,
    Discarded,
}

impl Packets {
    /// Keeps a note of each packet that is lost or dropped from now on.
    pub fn take_notes(&mut self) {
        self.output.keep_notes();
    }

    /// The notes since this was last called.
    pub fn notes(&mut self) -> Vec<Note> {
        self.output.take_notes()
    }

    /// What it keeps beside the bytes that its buffers bound: paths, and control frames that wait.
    pub fn kept(&self) -> (usize, usize) {
        (self.paths.len(), self.control.iter().count())
    }

    pub fn recovery_parameters(&self) -> RecoveryParameters {
        let max_datagram = u64::from(self.paths[0].datagram());
        RecoveryParameters {
            reordering_threshold: PACKET_THRESHOLD,
            time_threshold: TIME_THRESHOLD.0 as f64 / TIME_THRESHOLD.1 as f64,
            granularity: GRANULARITY,
            initial_rtt: INITIAL,
            max_datagram,
            initial_window: u64::from(self.config.initial_window) * max_datagram,
            minimum_window: u64::from(LEAST_WINDOW) * max_datagram,
            persistent_congestion: PERSISTENT,
        }
    }

    /// This side's transport parameters.
    pub fn parameters(&self) -> &TransportParameters {
        self.parameters.own()
    }

    /// The peer's, once they have come.
    pub fn peer_parameters(&self) -> Option<&TransportParameters> {
        let came = self.parameters.peer_came();
        came.then(|| self.parameters.peer())
    }

    /// The handshake is confirmed (RFC 9001 section 4.1.2).
    pub fn confirmed(&self) -> bool {
        self.handshake.confirmed()
    }

    pub fn keys(&self, level: Level) -> Keys {
        if self.handshake.writes(level) {
            return Keys::Present;
        }
        if self.handshake.discarded(level) {
            Keys::Discarded
        } else {
            Keys::Absent
        }
    }

    /// Recovery and congestion control of the path with this index.
    ///
    /// # Panics
    /// There is no such path.
    pub fn metrics(&self, path: usize) -> Metrics {
        let (member, window) = (&self.paths[path], self.paths.shown(path));
        let packet = u64::from(member.datagram());
        let bytes = |packets: u32| u64::from(packets) * packet;
        let rtt = &member.rtt();
        let state = match window.state {
            CaState::Cwr | CaState::Recovery => "recovery",
            _ if window.in_slow_start() => "slow_start",
            _ => "congestion_avoidance",
        };
        Metrics {
            rtt: rtt.sampled().then(|| RoundTrip {
                min: rtt.min(),
                smoothed: rtt.smoothed(),
                latest: rtt.latest(),
                variation: rtt.variation(),
            }),
            pto_count: member.probing().timeouts(),
            congestion_window: bytes(window.cwnd),
            bytes_in_flight: bytes_in_flight(self, path),
            ssthresh: (window.ssthresh != INFINITE_SSTHRESH).then(|| bytes(window.ssthresh)),
            packets_in_flight: self.in_flight(path),
            pacing_rate: window.pacing_rate,
            state: (!member.window().paces()).then_some(state),
        }
    }
}

/// UDP payload bytes in flight on a path; those of the handshake are on the first.
fn bytes_in_flight(packets: &Packets, path: usize) -> u64 {
    let handshake = packets.handshake.spaces();
    let first = handshake.filter(|_| path == 0).map(|space| &space.sent);
    let spaces = first.chain([&packets.paths[path].space().sent]);
    let packets = spaces.flat_map(|sent| sent.iter().filter(|packet| packet.in_flight));
    packets.map(|packet| u64::from(packet.size)).sum()
}
