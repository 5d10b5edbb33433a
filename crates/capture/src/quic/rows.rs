//! From connections of QUIC to the tables of a Recording.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use polypath_trace::{
    ConnectionEndRow, ConnectionRow, EventRow, HeaderRow, PacketRow, Recording, SegmentRow,
    StreamFrameRow, SubflowEndRow, SubflowRow, Text,
};

use super::connection::Connection;
use super::path::{Path, Side};
use crate::analysis::SIDES;
use crate::hosts::Hosts;
use crate::tables::{UNKNOWN, UNKNOWN_32};

/// Rows of what happened, until the hosts are known.
#[derive(Default)]
pub struct Rows {
    pub subflows: Vec<SubflowRow>,
    pub connections: Vec<ConnectionRow>,
    pub segments: Vec<(SegmentRow, HeaderRow, PacketRow)>,
    /// With the place of their packet in `segments`.
    pub frames: Vec<StreamFrameRow>,
    /// With the address of the host.
    pub events: Vec<(IpAddr, EventRow)>,
}

/// What a side sent for the first time: bytes of streams where they are known, of datagrams otherwise.
fn sent(side: &Side, known: bool) -> u64 {
    if known { side.sent_bytes } else { side.bytes }
}

/// What came of that: what was acknowledged; of sealed packets nobody tells, and what was seen is taken for it.
fn arrived(side: &Side, known: bool) -> u64 {
    if known { side.acked_bytes } else { side.bytes }
}

fn delivered(connection: &Connection, from: usize, known: bool) -> u64 {
    match known {
        true => connection.delivered[from],
        false => connection.paths.iter().map(|it| it.sides[from].bytes).sum(),
    }
}

/// Both ends of a connection and of its paths at an instant.
pub fn sample(
    recording: &mut Rows,
    connection: &Connection,
    number: usize,
    known: bool,
    time_ns: i64,
) {
    for (side, name) in SIDES.into_iter().enumerate() {
        for (at, path) in connection.paths.iter().enumerate() {
            let (own, other) = (&path.sides[side], &path.sides[1 - side]);
            // The place of capture divides a round trip into two.
            let round_trip = [own, other].map(|it| it.round_trip);
            let sum = |of: fn(&crate::half::RoundTrip) -> i64| -> u64 {
                (round_trip.iter().map(of).sum::<i64>() / 1000) as u64
            };
            recording.subflows.push(SubflowRow {
                time_ns,
                connection: number as u32,
                side: name.into(),
                subflow: at as u32,
                state: state(connection, side).into(),
                cwnd_packets: UNKNOWN_32,
                ssthresh_packets: UNKNOWN_32,
                srtt_us: sum(|it| it.smoothed_ns),
                rttvar_us: sum(|it| it.variation_ns),
                in_flight_packets: own.in_flight,
                sent_bytes: sent(own, known),
                acked_bytes: arrived(own, known),
                received_bytes: arrived(other, known),
                retransmitted_bytes: own.again_bytes,
                reinjected_bytes: own.reinjected_bytes,
                receive_window_bytes: UNKNOWN,
                out_of_order_bytes: UNKNOWN,
            });
        }
        recording.connections.push(ConnectionRow {
            time_ns,
            connection: number as u32,
            side: name.into(),
            delivered_bytes: delivered(connection, 1 - side, known),
            reassembly_bytes: UNKNOWN,
            send_buffer_bytes: UNKNOWN,
            send_queue_bytes: UNKNOWN,
            receive_buffer_bytes: UNKNOWN,
        });
    }
}

fn state(connection: &Connection, side: usize) -> &'static str {
    match (connection.closed, connection.established[side]) {
        (Some(_), _) => "closed",
        (None, Some(_)) => "established",
        (None, None) => "handshake",
    }
}

/// What every connection came to.
pub fn totals(
    recording: &mut Recording,
    connections: &[Connection],
    known: &[bool],
    first: usize,
    hosts: &Hosts,
) {
    let named = names(connections);
    for (number, (connection, name)) in connections.iter().zip(named).enumerate() {
        let known = known[number];
        let number = first + number;
        recording.connection_ends.push(ConnectionEndRow {
            application: number as u32,
            connection: number as u32,
            name: name.into(),
            transport: connection.transport().into(),
            state: if connection.closed.is_some() {
                "finished"
            } else {
                "open"
            }
            .into(),
            start_ns: connection.first_ns,
            established_ns: connection.established[0],
            end_ns: connection.closed,
            first_byte_ns: connection.first_byte.filter(|_| known),
            last_byte_ns: connection.last_byte.filter(|_| known),
            client_received_bytes: delivered(connection, 1, known),
            server_received_bytes: delivered(connection, 0, known),
        });
        for (at, path) in connection.paths.iter().enumerate() {
            let established = match at {
                0 => connection.established[0],
                _ => path.answered(),
            };
            recording.subflow_ends.push(ends(
                (number, at),
                path,
                known,
                established,
                connection.closed,
                hosts,
            ));
        }
    }
}

fn ends(
    (number, at): (usize, usize),
    path: &Path,
    known: bool,
    established_ns: Option<i64>,
    closed_ns: Option<i64>,
    hosts: &Hosts,
) -> SubflowEndRow {
    let [client, server] = &path.sides;
    SubflowEndRow {
        connection: number as u32,
        subflow: at as u32,
        source: path.client.ip().to_string().into(),
        source_port: u32::from(path.client.port()),
        destination: path.server.ip().to_string().into(),
        destination_port: u32::from(path.server.port()),
        interface: Text::from(hosts.interface(path.client.ip()).to_owned()),
        backup: false,
        established_ns,
        closed_ns,
        client_sent_bytes: sent(client, known),
        server_sent_bytes: sent(server, known),
        client_received_bytes: arrived(server, known),
        server_received_bytes: arrived(client, known),
        client_retransmitted_bytes: client.again_bytes,
        server_retransmitted_bytes: server.again_bytes,
        client_reinjected_bytes: client.reinjected_bytes,
        server_reinjected_bytes: server.reinjected_bytes,
    }
}

/// The server's address and port, as what TCP's connections there are not called, and a number where several go there.
fn names(connections: &[Connection]) -> Vec<String> {
    let server = |connection: &Connection| connection.paths[0].server;
    let mut totals: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    for connection in connections {
        *totals.entry(server(connection)).or_default() += 1;
    }
    let mut ranks: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    let name = |connection: &Connection| {
        let server = server(connection);
        let rank = ranks.entry(server).or_default();
        *rank += 1;
        match totals.get(&server) {
            Some(1) => format!("{server} QUIC"),
            _ => format!("{server} QUIC {rank}"),
        }
    };
    connections.iter().map(name).collect()
}

/// Adds rows to those that are there.
pub fn append(into: &mut Recording, rows: Rows, hosts: &Hosts) {
    rows.subflows
        .into_iter()
        .for_each(|row| into.subflows.push(row));
    rows.connections
        .into_iter()
        .for_each(|row| into.connections.push(row));
    let before = into.segments.len() as u32;
    for mut frame in rows.frames {
        frame.segment += before;
        into.stream_frames.push(frame);
    }
    for (segment, mut header, mut packet) in rows.segments {
        header.segment = into.segments.len() as u32;
        packet.segment = header.segment;
        into.headers.push(header);
        into.packets.push(packet);
        into.segments.push(segment);
    }
    for (host, mut row) in rows.events {
        row.host = hosts.name(host).to_owned().into();
        into.events.push(row);
    }
}
