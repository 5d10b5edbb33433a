//! One side's log of a connection of QUIC.

use std::fs::File;
use std::io::{self, BufWriter};
use std::mem::discriminant;
use std::net::SocketAddr;

use polypath_trace::qlog::{
    Log, Vantage, error_name, fields, header, milliseconds, packet, parameters,
};
use polypath_transport::quic::crypto::Level;
use polypath_transport::quic::{Connection, Discard, Keys, Metrics, Note, PROTOCOL};
use polypath_transport::{CloseReason, Nanos, Tuple};
use polypath_wire::quic::{Datagram, Frame, Packet, TransportError, VERSION};
use serde_json::{Map, Value, json};

use super::metrics::changed;
use super::owner::Owner;
use crate::application::Side;

/// One side's log, and what it said last.
pub(crate) struct Trace {
    log: Log<BufWriter<File>>,
    paths: Vec<Told>,
    keys: [Keys; 3],
    peer_told: bool,
    established: bool,
    confirmed: bool,
    /// A CONNECTION_CLOSE that went or came, and whether it went.
    close: Option<(Frame, bool)>,
    closed: bool,
}

/// What was said of a path.
#[derive(Clone, Copy)]
struct Told {
    id: u64,
    tuple: Tuple,
    closed: bool,
    mtu: u32,
    metrics: Option<Metrics>,
}

const LEVELS: [(Level, &str); 3] = [
    (Level::Initial, "initial"),
    (Level::Handshake, "handshake"),
    (Level::OneRtt, "1rtt"),
];

impl Trace {
    pub(super) fn begin(
        out: BufWriter<File>,
        owner: &Owner<'_>,
        connection: &mut Connection,
        now: Nanos,
    ) -> io::Result<Self> {
        connection.packets_mut().take_notes();
        let group = format!("{:?}", connection.identity().original_destination());
        let client = owner.side == Side::Client;
        let vantage = Vantage {
            title: owner.name,
            name: owner.host,
            client,
            group: &group,
        };
        let mut trace = Self {
            log: Log::begin(out, &vantage)?,
            paths: Vec::new(),
            keys: [Keys::Absent; 3],
            peer_told: false,
            established: false,
            confirmed: false,
            close: None,
            closed: false,
        };
        let tuple = connection.members()[0].tuple();
        let data = fields([
            ("local", Some(end(tuple.local).into())),
            ("remote", Some(end(tuple.remote).into())),
        ]);
        trace.log.event(now, "connection_started", None, data)?;
        trace.state(now, "attempted")?;
        let version = || json!(format!("{VERSION:08x}"));
        let offered = if client {
            "client_versions"
        } else {
            "server_versions"
        };
        let data = fields([
            (offered, Some(vec![version()].into())),
            ("chosen_version", Some(version())),
        ]);
        trace.log.event(now, "version_information", None, data)?;
        let data = parameters(connection.packets().parameters(), true);
        trace.log.event(now, "parameters_set", None, data)?;
        let begun = connection.packets().recovery_parameters();
        let data = fields([
            (
                "reordering_threshold",
                Some(begun.reordering_threshold.into()),
            ),
            ("time_threshold", Some(begun.time_threshold.into())),
            (
                "timer_granularity",
                Some((begun.granularity / 1_000_000).into()),
            ),
            ("initial_rtt", Some(milliseconds(begun.initial_rtt).into())),
            ("max_datagram_size", Some(begun.max_datagram.into())),
            (
                "initial_congestion_window",
                Some(begun.initial_window.into()),
            ),
            (
                "minimum_congestion_window",
                Some(begun.minimum_window.into()),
            ),
            (
                "persistent_congestion_threshold",
                Some(begun.persistent_congestion.into()),
            ),
        ]);
        trace
            .log
            .event(now, "recovery_parameters_set", None, data)?;
        trace.notice(connection, now)?;
        Ok(trace)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }

    fn state(&mut self, now: Nanos, state: &str) -> io::Result<()> {
        let data = fields([("new", Some(state.into()))]);
        self.log.event(now, "connection_state_updated", None, data)
    }

    /// A datagram came and the connection has dealt with it.
    pub fn received(
        &mut self,
        connection: &mut Connection,
        datagram: &Datagram,
        now: Nanos,
    ) -> io::Result<()> {
        self.tell_paths(connection, now)?;
        let notes = connection.packets_mut().notes();
        let exponent = connection
            .packets()
            .peer_parameters()
            .map_or(3, |peer| peer.ack_delay_exponent);
        for came in &datagram.packets {
            let dropped = notes.iter().find_map(|note| match note {
                Note::Dropped {
                    kind,
                    path,
                    number,
                    reason,
                } if (*kind, *path, *number)
                    == (
                        discriminant(&came.header.kind),
                        came.path,
                        came.header.number,
                    ) =>
                {
                    Some(*reason)
                }
                _ => None,
            });
            match dropped {
                Some(reason) => self.dropped(came, trigger(reason), now)?,
                None => {
                    self.note_close(came, false);
                    let tuple = tuple_id(came.path);
                    let data = packet(came, exponent);
                    self.log.event(now, "packet_received", Some(&tuple), data)?;
                }
            }
        }
        self.tell_losses(connection, &notes, now)
    }

    /// A datagram came whose packets do not pass packet protection.
    pub fn spoiled(&mut self, datagram: &Datagram, now: Nanos) -> io::Result<()> {
        for came in &datagram.packets {
            self.dropped(came, "decryption_failure", now)?;
        }
        Ok(())
    }

    fn dropped(&mut self, came: &Packet, trigger: &str, now: Nanos) -> io::Result<()> {
        let data = fields([
            ("header", Some(header(&came.header, came.path).into())),
            ("raw", Some(json!({"length": came.len()}))),
            ("trigger", Some(trigger.into())),
        ]);
        let tuple = tuple_id(came.path);
        self.log.event(now, "packet_dropped", Some(&tuple), data)
    }

    /// A datagram leaves.
    pub fn sent(
        &mut self,
        connection: &Connection,
        path: usize,
        len: u32,
        datagram: &Datagram,
        now: Nanos,
    ) -> io::Result<()> {
        let exponent = connection.packets().parameters().ack_delay_exponent;
        // Only a probe is longer than what is known to arrive (RFC 9000 section 14.4).
        let probe = len > connection.members()[path].datagram();
        for gone in &datagram.packets {
            self.note_close(gone, true);
            let mut data = packet(gone, exponent);
            if probe {
                data.insert("is_mtu_probe_packet".into(), true.into());
            }
            let tuple = tuple_id(gone.path);
            self.log.event(now, "packet_sent", Some(&tuple), data)?;
        }
        Ok(())
    }

    fn note_close(&mut self, packet: &Packet, sent: bool) {
        let close = |frame: &&Frame| matches!(frame, Frame::ConnectionClose { .. });
        if let Some(frame) = packet.frames.iter().find(close) {
            self.close.get_or_insert_with(|| (frame.clone(), sent));
        }
    }

    /// What a call of the connection changed, before it sends.
    pub fn notice(&mut self, connection: &mut Connection, now: Nanos) -> io::Result<()> {
        self.tell_paths(connection, now)?;
        self.tell_handshake(connection, now)?;
        let notes = connection.packets_mut().notes();
        self.tell_losses(connection, &notes, now)
    }

    fn tell_paths(&mut self, connection: &Connection, now: Nanos) -> io::Result<()> {
        for (path, member) in connection.members().iter().enumerate() {
            let told = self.paths.get(path).copied();
            let closed = member.closed() && connection.ended().is_none();
            let same =
                told.is_some_and(|told| told.tuple == member.tuple() && (told.closed || !closed));
            if same {
                continue;
            }
            let open = !closed;
            let data = fields([
                ("tuple_id", Some(tuple_id(member.id()).into())),
                (
                    "tuple_local",
                    open.then(|| end(member.tuple().local).into()),
                ),
                (
                    "tuple_remote",
                    open.then(|| end(member.tuple().remote).into()),
                ),
            ]);
            self.log.event(now, "tuple_assigned", None, data)?;
            let fresh = Told {
                id: member.id(),
                tuple: member.tuple(),
                closed,
                mtu: told.map_or(member.datagram(), |told| told.mtu),
                metrics: told.and_then(|told| told.metrics),
            };
            match self.paths.get_mut(path) {
                Some(told) => *told = fresh,
                None => self.paths.push(fresh),
            }
        }
        Ok(())
    }

    fn tell_handshake(&mut self, connection: &Connection, now: Nanos) -> io::Result<()> {
        for (level, name) in LEVELS {
            let keys = connection.packets().keys(level);
            let before = std::mem::replace(&mut self.keys[level as usize], keys);
            let event = match (before, keys) {
                (Keys::Absent, Keys::Present) => "key_updated",
                (Keys::Present, Keys::Discarded) => "key_discarded",
                _ => continue,
            };
            for side in ["client", "server"] {
                let data = fields([
                    ("key_type", Some(format!("{side}_{name}_secret").into())),
                    ("trigger", Some("tls".into())),
                ]);
                self.log.event(now, event, None, data)?;
            }
        }
        if let Some(peer) = connection
            .packets()
            .peer_parameters()
            .filter(|_| !self.peer_told)
        {
            self.peer_told = true;
            self.log
                .event(now, "parameters_set", None, parameters(peer, false))?;
        }
        if connection.established() && !self.established {
            self.established = true;
            let protocol = String::from_utf8_lossy(PROTOCOL);
            let data = fields([("chosen_alpn", Some(json!({"string_value": protocol})))]);
            self.log.event(now, "alpn_information", None, data)?;
            self.state(now, "handshake_complete")?;
        }
        if connection.packets().confirmed() && !self.confirmed {
            self.confirmed = true;
            self.state(now, "handshake_confirmed")?;
        }
        Ok(())
    }

    fn tell_losses(
        &mut self,
        connection: &Connection,
        notes: &[Note],
        now: Nanos,
    ) -> io::Result<()> {
        for note in notes {
            let Note::Lost {
                level,
                path,
                number,
                overtaken,
                probe,
            } = *note
            else {
                continue;
            };
            let id = connection.members()[path].id();
            let (kind, path_id) = match level {
                Level::Initial => ("initial", None),
                Level::Handshake => ("handshake", None),
                Level::OneRtt => ("1RTT", Some(id.into())),
            };
            let header = fields([
                ("packet_type", Some(kind.into())),
                ("packet_number", Some(number.into())),
                ("path_id", path_id),
            ]);
            let trigger = if overtaken {
                "reordering_threshold"
            } else {
                "time_threshold"
            };
            let data = fields([
                ("header", Some(header.into())),
                ("is_mtu_probe_packet", probe.then(|| true.into())),
                ("trigger", Some(trigger.into())),
            ]);
            let tuple = tuple_id(id);
            self.log.event(now, "packet_lost", Some(&tuple), data)?;
        }
        Ok(())
    }

    /// What a call of the connection changed, after it has sent.
    pub fn measure(&mut self, connection: &Connection, now: Nanos) -> io::Result<()> {
        for (path, member) in connection.members().iter().enumerate() {
            let Some(told) = self.paths.get_mut(path) else {
                continue;
            };
            let tuple = tuple_id(told.id);
            let mtu = member.datagram();
            if mtu != told.mtu {
                let old = std::mem::replace(&mut told.mtu, mtu);
                let data = fields([
                    ("old", Some(old.into())),
                    ("new", Some(mtu.into())),
                    ("path_id", Some(member.id().into())),
                ]);
                self.log.event(now, "mtu_updated", Some(&tuple), data)?;
            }
            let metrics = connection.packets().metrics(path);
            let before = told.metrics.replace(metrics);
            let mut data = changed(before.as_ref(), &metrics);
            if !data.is_empty() {
                data.insert("path_id".into(), member.id().into());
                self.log
                    .event(now, "recovery_metrics_updated", Some(&tuple), data)?;
            }
            let old = before.and_then(|before| before.state);
            if let Some(new) = metrics.state.filter(|new| Some(*new) != old) {
                let data = fields([
                    ("old", old.map(Value::from)),
                    ("new", Some(new.into())),
                    ("path_id", Some(member.id().into())),
                ]);
                self.log
                    .event(now, "congestion_state_updated", Some(&tuple), data)?;
            }
        }
        match connection.ended().filter(|_| !self.closed) {
            Some(reason) => {
                self.closed = true;
                let data = self.closing(reason);
                self.log.event(now, "connection_closed", None, data)
            }
            None => Ok(()),
        }
    }

    fn closing(&self, reason: CloseReason) -> Map<String, Value> {
        let by_peer = match (&self.close, reason) {
            (Some((_, sent)), _) => !sent,
            (None, reason) => reason == CloseReason::Reset,
        };
        let mut data = fields([(
            "initiator",
            Some(if by_peer { "remote" } else { "local" }.into()),
        )]);
        let trigger = match (&self.close, reason) {
            (
                Some((
                    Frame::ConnectionClose {
                        error,
                        frame_type,
                        reason,
                    },
                    _,
                )),
                _,
            ) => {
                let kind = if frame_type.is_some() {
                    "connection_error"
                } else {
                    "application_error"
                };
                let known = frame_type.and_then(|_| error_name(TransportError(*error)));
                if known.is_none() {
                    data.insert("error_code".into(), (*error).into());
                }
                let name = known.unwrap_or_else(|| "unknown".into());
                data.insert(kind.into(), name.into());
                data.insert("reason".into(), String::from_utf8_lossy(reason).into());
                if frame_type.is_some() && *error != 0 {
                    "error"
                } else {
                    "application"
                }
            }
            (_, CloseReason::TimedOut | CloseReason::Unreachable) => "idle_timeout",
            (_, CloseReason::Reset) => "stateless_reset",
            (_, CloseReason::Aborted) => "aborted",
            _ => "unspecified",
        };
        data.insert("trigger".into(), trigger.into());
        data
    }
}

fn trigger(reason: Discard) -> &'static str {
    match reason {
        Discard::Unknown => "connection_unknown",
        Discard::Unsupported => "unsupported",
        Discard::WithoutKeys => "key_unavailable",
        Discard::Duplicate => "duplicate",
        Discard::Invalid => "invalid",
    }
}

/// How events name the tuple of a path: by the path's id, for it stays when addresses change.
fn tuple_id(path: u64) -> String {
    format!("p{path}")
}

fn end(address: SocketAddr) -> Map<String, Value> {
    let (ip, port) = if address.is_ipv4() {
        ("ip_v4", "port_v4")
    } else {
        ("ip_v6", "port_v6")
    };
    fields([
        (ip, Some(address.ip().to_string().into())),
        (port, Some(address.port().into())),
    ])
}
