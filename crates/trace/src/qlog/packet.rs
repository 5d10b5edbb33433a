//! Packets, their headers, and transport parameters in qlog (quic-events sections 5.4, 5.6 and 8.7).

use polypath_wire::quic::{Header, Kind, Packet, TAG_LEN, TransportParameters};
use serde_json::{Map, Value, json};

use super::frame::frame;
use super::{fields, hex};

/// The data of a packet that was sent or received; `exponent` is the `ack_delay_exponent` of its sender.
pub fn packet(packet: &Packet, exponent: u64) -> Map<String, Value> {
    let payload = packet.payload_len();
    let mut header = header(&packet.header, packet.path);
    if matches!(
        packet.header.kind,
        Kind::Initial { .. } | Kind::Handshake | Kind::ZeroRtt
    ) {
        let length = u32::from(packet.header.number_len) + payload + TAG_LEN;
        header.insert("length".into(), length.into());
    }
    let frames: Vec<Value> = packet.frames.iter().map(|it| frame(it, exponent)).collect();
    let versions = match &packet.header.kind {
        Kind::VersionNegotiation(versions) => Some(
            versions
                .iter()
                .map(|version| hex(&version.to_be_bytes()))
                .collect::<Value>(),
        ),
        _ => None,
    };
    fields([
        ("header", Some(header.into())),
        ("frames", Some(frames.into())),
        ("supported_versions", versions),
        (
            "raw",
            Some(json!({"length": packet.len(), "payload_length": payload})),
        ),
    ])
}

/// A packet's header, without its length; `path` is the id of its path.
pub fn header(header: &Header, path: u64) -> Map<String, Value> {
    let kind = match header.kind {
        Kind::Initial { .. } => "initial",
        Kind::ZeroRtt => "0RTT",
        Kind::Handshake => "handshake",
        Kind::OneRtt { .. } => "1RTT",
        Kind::Retry { .. } => "retry",
        Kind::VersionNegotiation(_) => "version_negotiation",
    };
    let (phase, spin) = match header.kind {
        Kind::OneRtt { key_phase, spin } => (Some(key_phase), Some(spin)),
        _ => (None, None),
    };
    let token = match &header.kind {
        Kind::Initial { token } | Kind::Retry { token, .. } if !token.is_empty() => {
            Some(json!({"raw": {"length": token.len(), "data": hex(token)}}))
        }
        _ => None,
    };
    let numbered = header.kind.is_protected();
    let long = header.kind.is_long();
    let id = |bytes: &[u8]| Some(hex(bytes).into());
    fields([
        ("packet_type", Some(kind.into())),
        ("packet_number", numbered.then(|| header.number.into())),
        (
            "packet_number_length",
            numbered.then(|| header.number_len.into()),
        ),
        // RFC 10069 section 2.4: number spaces of paths.
        ("path_id", phase.map(|_| path.into())),
        ("key_phase_bit", phase.map(Value::from)),
        ("spin_bit", spin.map(Value::from)),
        ("token", token),
        (
            "version",
            long.then(|| hex(&header.version.to_be_bytes()).into()),
        ),
        ("dcil", long.then(|| header.destination.len().into())),
        ("dcid", id(header.destination.as_slice())),
        ("scil", long.then(|| header.source.len().into())),
        ("scid", long.then(|| hex(header.source.as_slice()).into())),
    ])
}

/// The data of transport parameters; `local`: they are this side's.
pub fn parameters(of: &TransportParameters, local: bool) -> Map<String, Value> {
    let initiator = if local { "local" } else { "remote" };
    let id = |id: &Option<polypath_wire::quic::ConnectionId>| {
        id.map(|id| Value::from(hex(id.as_slice())))
    };
    let preferred = of.preferred_address.as_ref().map(|preferred| {
        let (v4, v6) = (preferred.v4, preferred.v6);
        let mut value = json!({
            "connection_id": hex(preferred.connection_id.as_slice()),
            "stateless_reset_token": hex(&preferred.reset_token),
        });
        if v4.port() != 0 {
            value["ip_v4"] = v4.ip().to_string().into();
            value["port_v4"] = v4.port().into();
        }
        if v6.port() != 0 {
            value["ip_v6"] = v6.ip().to_string().into();
            value["port_v6"] = v6.port().into();
        }
        value
    });
    fields([
        ("initiator", Some(initiator.into())),
        (
            "original_destination_connection_id",
            id(&of.original_destination_connection_id),
        ),
        (
            "initial_source_connection_id",
            id(&of.initial_source_connection_id),
        ),
        (
            "retry_source_connection_id",
            id(&of.retry_source_connection_id),
        ),
        (
            "stateless_reset_token",
            of.stateless_reset_token.map(|token| hex(&token).into()),
        ),
        (
            "disable_active_migration",
            Some(of.disable_active_migration.into()),
        ),
        ("max_idle_timeout", Some(of.max_idle_timeout.into())),
        ("max_udp_payload_size", Some(of.max_udp_payload_size.into())),
        ("ack_delay_exponent", Some(of.ack_delay_exponent.into())),
        ("max_ack_delay", Some(of.max_ack_delay.into())),
        (
            "active_connection_id_limit",
            Some(of.active_connection_id_limit.into()),
        ),
        ("initial_max_data", Some(of.initial_max_data.into())),
        (
            "initial_max_stream_data_bidi_local",
            Some(of.initial_max_stream_data_bidi_local.into()),
        ),
        (
            "initial_max_stream_data_bidi_remote",
            Some(of.initial_max_stream_data_bidi_remote.into()),
        ),
        (
            "initial_max_stream_data_uni",
            Some(of.initial_max_stream_data_uni.into()),
        ),
        (
            "initial_max_streams_bidi",
            Some(of.initial_max_streams_bidi.into()),
        ),
        (
            "initial_max_streams_uni",
            Some(of.initial_max_streams_uni.into()),
        ),
        ("preferred_address", preferred),
        (
            "max_datagram_frame_size",
            Some(of.max_datagram_frame_size.into()),
        ),
        (
            "initial_max_path_id",
            of.initial_max_path_id.map(Value::from),
        ),
        ("min_ack_delay", of.min_ack_delay.map(Value::from)),
    ])
}
