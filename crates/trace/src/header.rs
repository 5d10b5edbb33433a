//! Headers in words: the flags and options of a segment, the frames of a packet of QUIC.

use std::fmt::Write;

use polypath_wire::mptcp::{MpCapable, MpJoin, MptcpOption};
use polypath_wire::quic::{Frame, Kind, Packet};
use polypath_wire::tcp::{Flags, RareOptions, Segment};

use crate::recording::HeaderRow;
use crate::table::Text;

/// Names of the subtypes (RFC 8684 section 7.2).
const SUBTYPES: [&str; 9] = [
    "MP_CAPABLE",
    "MP_JOIN",
    "DSS",
    "ADD_ADDR",
    "REMOVE_ADDR",
    "MP_PRIO",
    "MP_FAIL",
    "MP_FASTCLOSE",
    "MP_TCPRST",
];

impl HeaderRow {
    /// Of row `row` of the segments. `data_ack` and `data_seq` are the numbers of its DSS as offsets in the streams.
    pub fn of_segment(
        row: usize,
        segment: &Segment,
        data_ack: Option<u64>,
        data_seq: Option<u64>,
    ) -> Self {
        let dss = segment.dss.unwrap_or_default();
        Self {
            segment: row as u32,
            flags: flags(segment.flags),
            timestamp: segment.timestamps.map(|(value, _)| value),
            timestamp_echo: segment.timestamps.map(|(_, echo)| echo),
            data_ack,
            data_seq,
            data_bytes: dss.mapping.map(|mapping| u32::from(mapping.len)),
            data_fin: dss.data_fin,
            options: segment.rare.as_deref().map_or("".into(), options),
        }
    }

    /// Of row `row` of the segments, which is a packet of QUIC. Packet numbers and stream offsets stand there.
    pub fn of_packet(row: usize, packet: &Packet) -> Self {
        Self {
            segment: row as u32,
            flags: packet_type(&packet.header.kind).into(),
            timestamp: None,
            timestamp_echo: None,
            data_ack: None,
            data_seq: None,
            data_bytes: None,
            data_fin: false,
            options: frames(&packet.frames),
        }
    }
}

fn flags(flags: Flags) -> Text {
    // What nearly all segments have needs no memory of its own.
    if flags == Flags::ACK {
        return "ACK".into();
    }
    if flags == Flags::ACK | Flags::PSH {
        return "PSH, ACK".into();
    }
    let names = [
        (Flags::FIN, "FIN"),
        (Flags::SYN, "SYN"),
        (Flags::RST, "RST"),
        (Flags::PSH, "PSH"),
        (Flags::ACK, "ACK"),
        (Flags::URG, "URG"),
        (Flags::ECE, "ECE"),
        (Flags::CWR, "CWR"),
        (Flags::AE, "AE"),
    ];
    let set = names.iter().filter(|(flag, _)| flags.contains(*flag));
    set.map(|(_, name)| *name)
        .collect::<Vec<_>>()
        .join(", ")
        .into()
}

fn options(rare: &RareOptions) -> Text {
    let mut said = Vec::new();
    said.extend(rare.mss.map(|mss| format!("MSS={mss}")));
    said.extend(
        rare.window_scale
            .map(|shift| format!("WS={}", 1u32 << shift)),
    );
    if rare.sack_permitted {
        said.push("SACK_PERM".to_owned());
    }
    said.extend(rare.mptcp.iter().map(multipath));
    let unknown = rare.unknown.iter();
    said.extend(unknown.map(|(kind, body)| format!("kind {kind} ({} B)", 2 + body.len())));
    said.join("; ").into()
}

fn multipath(option: &MptcpOption) -> String {
    let mut said = String::new();
    let told = match option {
        MptcpOption::Capable(capable) => told_capable(&mut said, capable),
        MptcpOption::Join(join) => told_join(&mut said, join),
        MptcpOption::AddAddr {
            echo,
            address_id,
            address,
            port,
            hmac,
        } => (|| {
            write!(said, "ADD_ADDR id={address_id} {address}")?;
            if let Some(port) = port {
                write!(said, " port={port}")?;
            }
            if let Some(hmac) = hmac {
                write!(said, " hmac={hmac:#018x}")?;
            }
            said.write_str(if *echo { " echo" } else { "" })
        })(),
        MptcpOption::RemoveAddr { address_ids } => {
            let ids: Vec<_> = address_ids.iter().map(u8::to_string).collect();
            write!(said, "REMOVE_ADDR id={}", ids.join(","))
        }
        MptcpOption::Prio { backup } => said.write_str(if *backup {
            "MP_PRIO backup"
        } else {
            "MP_PRIO normal"
        }),
        MptcpOption::Fail { dsn } => write!(said, "MP_FAIL dsn={dsn:#018x}"),
        MptcpOption::FastClose { receiver_key } => {
            write!(said, "MP_FASTCLOSE receiver_key={receiver_key:#018x}")
        }
        MptcpOption::TcpRst { flags, reason } => write!(said, "MP_TCPRST reason={reason}")
            .and_then(|()| said.write_str(if flags & 1 == 0 { "" } else { " transient" })),
        MptcpOption::Unknown { subtype, body, .. } => {
            let name = SUBTYPES.get(usize::from(*subtype)).copied();
            let name = name.map_or_else(|| format!("MPTCP subtype {subtype}"), str::to_owned);
            write!(said, "{name} unread ({} B)", 3 + body.len())
        }
    };
    told.expect("writing to a string");
    said
}

fn told_capable(said: &mut String, capable: &MpCapable) -> std::fmt::Result {
    write!(said, "MP_CAPABLE v{}", capable.version)?;
    if capable.checksum_required {
        said.write_str(" checksum")?;
    }
    if capable.deny_join_initial {
        said.write_str(" no joins here")?;
    }
    if let Some(key) = capable.sender_key {
        write!(said, " sender_key={key:#018x}")?;
    }
    if let Some(key) = capable.receiver_key {
        write!(said, " receiver_key={key:#018x}")?;
    }
    match capable.data {
        Some((len, _)) => write!(said, " data_bytes={len}"),
        None => Ok(()),
    }
}

fn told_join(said: &mut String, join: &MpJoin) -> std::fmt::Result {
    match join {
        MpJoin::Syn {
            backup,
            address_id,
            token,
            nonce,
        } => {
            write!(
                said,
                "MP_JOIN id={address_id} token={token:#010x} nonce={nonce:#010x}"
            )?;
            said.write_str(if *backup { " backup" } else { "" })
        }
        MpJoin::SynAck {
            backup,
            address_id,
            hmac,
            nonce,
        } => {
            write!(
                said,
                "MP_JOIN id={address_id} hmac={hmac:#018x} nonce={nonce:#010x}"
            )?;
            said.write_str(if *backup { " backup" } else { "" })
        }
        MpJoin::Ack { hmac } => {
            said.write_str("MP_JOIN hmac=0x")?;
            hmac.iter().try_for_each(|byte| write!(said, "{byte:02x}"))
        }
    }
}

fn packet_type(kind: &Kind) -> &'static str {
    match kind {
        Kind::Initial { .. } => "Initial",
        Kind::ZeroRtt => "0-RTT",
        Kind::Handshake => "Handshake",
        Kind::Retry { .. } => "Retry",
        Kind::VersionNegotiation(_) => "Version Negotiation",
        Kind::OneRtt { .. } => "1-RTT",
    }
}

fn frames(frames: &[Frame]) -> Text {
    match frames {
        [
            Frame::Stream {
                stream: 0,
                fin: false,
                ..
            },
        ] => "STREAM 0".into(),
        frames => {
            let said: Vec<_> = frames.iter().map(frame).collect();
            said.join(", ").into()
        }
    }
}

/// A frame without what the row of the segment says, so that few texts differ.
fn frame(frame: &Frame) -> String {
    let on = |name: &str, path: Option<u64>| match path {
        Some(path) => format!("PATH_{name} path {path}"),
        None => name.to_owned(),
    };
    let way = |bidirectional: bool| if bidirectional { "BIDI" } else { "UNI" };
    match frame {
        Frame::Padding(_) => "PADDING".into(),
        Frame::Ping => "PING".into(),
        Frame::Ack(ack) => match ack.ranges.len() {
            0 | 1 => on("ACK", ack.path),
            more => format!("{} ({more} ranges)", on("ACK", ack.path)),
        },
        Frame::ResetStream { stream, error, .. } => format!("RESET_STREAM {stream} error {error}"),
        Frame::StopSending { stream, error } => format!("STOP_SENDING {stream} error {error}"),
        Frame::Crypto { data, .. } => format!("CRYPTO {} B", data.len()),
        Frame::NewToken(_) => "NEW_TOKEN".into(),
        Frame::Stream { stream, fin, .. } => {
            format!("STREAM {stream}{}", if *fin { " FIN" } else { "" })
        }
        Frame::MaxData(max) => format!("MAX_DATA {max}"),
        Frame::MaxStreamData { stream, max } => format!("MAX_STREAM_DATA {stream} {max}"),
        Frame::MaxStreams { bidirectional, max } => {
            format!("MAX_STREAMS {} {max}", way(*bidirectional))
        }
        Frame::DataBlocked(limit) => format!("DATA_BLOCKED {limit}"),
        Frame::StreamDataBlocked { stream, limit } => {
            format!("STREAM_DATA_BLOCKED {stream} {limit}")
        }
        Frame::StreamsBlocked {
            bidirectional,
            limit,
        } => format!("STREAMS_BLOCKED {} {limit}", way(*bidirectional)),
        Frame::NewConnectionId(id) => {
            format!(
                "{} sequence {}",
                on("NEW_CONNECTION_ID", id.path),
                id.sequence
            )
        }
        Frame::RetireConnectionId { path, sequence } => {
            format!("{} sequence {sequence}", on("RETIRE_CONNECTION_ID", *path))
        }
        Frame::PathChallenge(_) => "PATH_CHALLENGE".into(),
        Frame::PathResponse(_) => "PATH_RESPONSE".into(),
        Frame::ConnectionClose { error, .. } => format!("CONNECTION_CLOSE error {error}"),
        Frame::HandshakeDone => "HANDSHAKE_DONE".into(),
        Frame::Datagram { .. } => "DATAGRAM".into(),
        Frame::AckFrequency(asked) => format!(
            "ACK_FREQUENCY threshold {} within {} us reordering {}",
            asked.eliciting_threshold, asked.max_delay, asked.reordering_threshold
        ),
        Frame::ImmediateAck => "IMMEDIATE_ACK".into(),
        Frame::PathAbandon { path, error } => format!("PATH_ABANDON path {path} error {error}"),
        Frame::PathStatus { path, backup, .. } => {
            let status = if *backup { "BACKUP" } else { "AVAILABLE" };
            format!("PATH_STATUS_{status} path {path}")
        }
        Frame::MaxPathId(id) => format!("MAX_PATH_ID {id}"),
        Frame::PathsBlocked(limit) => format!("PATHS_BLOCKED {limit}"),
        Frame::PathCidsBlocked { path, .. } => format!("PATH_CIDS_BLOCKED path {path}"),
    }
}
