//! From an analysis to the tables of a Recording.

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{Field, Schema};
use polypath_trace::{
    BlockingRow, ConnectionEndRow, ConnectionRow, Recording, SubflowEndRow, SubflowRow, Text,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::analysis::SIDES;
use crate::blocking::{Cause, Waited, Waits};
use crate::connection::{Connection, Subflow};
use crate::hosts::Hosts;

/// In place of what a capture does not tell; becomes null.
pub const UNKNOWN: u64 = u64::MAX;
pub const UNKNOWN_32: u32 = u32::MAX;

/// Columns in which [`UNKNOWN`] is null: no segment says how large a sender's window or an application's buffer is.
const NULLABLE: &[(&str, &[&str])] = &[
    (
        "subflows",
        &[
            "cwnd_packets",
            "ssthresh_packets",
            "receive_window_bytes",
            "out_of_order_bytes",
        ],
    ),
    (
        "connections",
        &[
            "reassembly_bytes",
            "send_buffer_bytes",
            "send_queue_bytes",
            "receive_buffer_bytes",
        ],
    ),
];

/// Every table with its name.
pub fn batches(recording: &Recording) -> Vec<(&'static str, RecordBatch)> {
    recording
        .tables()
        .into_iter()
        .map(|(name, batch)| {
            let nullable = NULLABLE.iter().find(|(table, _)| *table == name);
            let columns = nullable.map_or(&[][..], |(_, columns)| columns);
            (name, with_nulls(&batch, columns))
        })
        .collect()
}

fn with_nulls(batch: &RecordBatch, nullable: &[&str]) -> RecordBatch {
    let schema = batch.schema();
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| {
            if nullable.contains(&field.name().as_str()) {
                let field = field.as_ref().clone().with_nullable(true);
                (field, known(column))
            } else {
                (field.as_ref().clone(), column.clone())
            }
        })
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns as before")
}

fn known(column: &ArrayRef) -> ArrayRef {
    if let Some(values) = column.as_any().downcast_ref::<UInt32Array>() {
        let values = values.values().iter();
        let known = values.map(|&value| (value != UNKNOWN_32).then_some(value));
        Arc::new(known.collect::<UInt32Array>())
    } else if let Some(values) = column.as_any().downcast_ref::<UInt64Array>() {
        let values = values.values().iter();
        let known = values.map(|&value| (value != UNKNOWN).then_some(value));
        Arc::new(known.collect::<UInt64Array>())
    } else {
        column.clone()
    }
}

/// Both ends of a connection and of its subflows at an instant.
pub fn sample(recording: &mut Recording, connection: &Connection, number: usize, time_ns: i64) {
    for (side, name) in SIDES.into_iter().enumerate() {
        for (at, subflow) in connection.subflows.iter().enumerate() {
            if !subflow.begun() {
                continue;
            }
            let (own, other) = (&subflow.halves[side], &subflow.halves[1 - side]);
            let near = subflow.info.near[side];
            recording.subflows.push(SubflowRow {
                time_ns,
                connection: number as u32,
                side: name.into(),
                subflow: at as u32,
                state: subflow.state(side).into(),
                cwnd_packets: UNKNOWN_32,
                ssthresh_packets: UNKNOWN_32,
                srtt_us: (own.round_trip.smoothed_ns / 1_000) as u64,
                rttvar_us: (own.round_trip.variation_ns / 1_000) as u64,
                in_flight_packets: own.in_flight_packets(),
                sent_bytes: own.sent_bytes,
                acked_bytes: own.acked_bytes(),
                received_bytes: other.received_bytes(near),
                retransmitted_bytes: own.retransmitted_bytes,
                reinjected_bytes: own.reinjected_bytes,
                receive_window_bytes: if subflow.scale_is_known() {
                    own.window
                } else {
                    UNKNOWN
                },
                out_of_order_bytes: other.out_of_order_bytes(near),
            });
        }
        let near = connection.subflows.iter().any(|each| each.info.near[side]);
        recording.connections.push(ConnectionRow {
            time_ns,
            connection: number as u32,
            side: name.into(),
            delivered_bytes: connection.received(side),
            reassembly_bytes: if near {
                connection.streams[1 - side].waiting_bytes()
            } else {
                UNKNOWN
            },
            send_buffer_bytes: UNKNOWN,
            send_queue_bytes: UNKNOWN,
            receive_buffer_bytes: UNKNOWN,
        });
    }
}

/// What every connection came to; `relative` turns an absolute time into one of the Recording.
pub fn totals(
    recording: &mut Recording,
    connections: &[Connection],
    hosts: &Hosts,
    relative: impl Fn(i64) -> i64,
) {
    let names = names(connections);
    for (number, (connection, name)) in connections.iter().zip(names).enumerate() {
        recording.connection_ends.push(ConnectionEndRow {
            application: number as u32,
            connection: number as u32,
            name: name.into(),
            transport: connection.transport().into(),
            state: connection.state().into(),
            start_ns: relative(connection.info.first_ns),
            established_ns: connection.established[0],
            end_ns: connection.closed,
            first_byte_ns: connection.first_byte,
            last_byte_ns: connection.last_byte,
            client_received_bytes: connection.received(0),
            server_received_bytes: connection.received(1),
        });
        for (at, subflow) in connection.subflows.iter().enumerate() {
            recording
                .subflow_ends
                .push(ends(number, at, subflow, hosts));
        }
        blocking(recording, connection, number);
    }
}

/// The server's address and port of each connection, with a number where several connections go there.
fn names(connections: &[Connection]) -> Vec<String> {
    let server = |connection: &Connection| connection.subflows[0].info.server;
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
            Some(1) => server.to_string(),
            _ => format!("{server} {rank}"),
        }
    };
    connections.iter().map(name).collect()
}

fn ends(number: usize, at: usize, subflow: &Subflow, hosts: &Hosts) -> SubflowEndRow {
    let (client, server) = (subflow.info.client, subflow.info.server);
    let [from_client, from_server] = &subflow.halves;
    let [near_client, near_server] = subflow.info.near;
    SubflowEndRow {
        connection: number as u32,
        subflow: at as u32,
        source: client.ip().to_string().into(),
        source_port: u32::from(client.port()),
        destination: server.ip().to_string().into(),
        destination_port: u32::from(server.port()),
        interface: Text::from(hosts.interface(client.ip()).to_owned()),
        backup: subflow.backup,
        established_ns: subflow.established[0],
        closed_ns: subflow.closed,
        client_sent_bytes: from_client.sent_bytes,
        server_sent_bytes: from_server.sent_bytes,
        client_received_bytes: from_server.received_bytes(near_client),
        server_received_bytes: from_client.received_bytes(near_server),
        client_retransmitted_bytes: from_client.retransmitted_bytes,
        server_retransmitted_bytes: from_server.retransmitted_bytes,
        client_reinjected_bytes: from_client.reinjected_bytes,
        server_reinjected_bytes: from_server.reinjected_bytes,
    }
}

fn blocking(recording: &mut Recording, connection: &Connection, number: usize) {
    for from in 0..2 {
        let mut push = |level: &'static str, subflow: Option<usize>, waits: &Waits| {
            for (cause, name) in Cause::ALL {
                let Waited {
                    time,
                    byte_nanoseconds,
                    most,
                } = waits[cause as usize];
                if time > 0 {
                    recording.blocking.push(BlockingRow {
                        connection: number as u32,
                        side: SIDES[1 - from].into(),
                        level: level.into(),
                        subflow: subflow.map(|at| at as u32),
                        cause: name.into(),
                        time_ns: time,
                        byte_s: byte_nanoseconds as f64 / 1e9,
                        max_bytes: most,
                    });
                }
            }
        };
        for (at, subflow) in connection.subflows.iter().enumerate() {
            push("subflow", Some(at), &subflow.waits[from]);
        }
        let stream = &connection.streams[from];
        for (at, waits) in stream.brought.iter().enumerate() {
            push("connection", Some(at), waits);
        }
        let mut missing = Waits::default();
        missing[Cause::Missing as usize] = stream.missing;
        push("connection", None, &missing);
    }
}

impl Subflow {
    /// Whether both SYNs were seen, which tell by how much windows are scaled.
    fn scale_is_known(&self) -> bool {
        self.halves.iter().all(|half| half.begins() == 0)
    }

    /// Whether a segment of it was seen.
    fn begun(&self) -> bool {
        self.halves
            .iter()
            .any(|half| half.sent_to() > half.begins())
            || self.established.iter().any(Option::is_some)
    }

    /// As TCP names the state of an end (RFC 9293 section 3.3.2), as far as the segments tell.
    fn state(&self, side: usize) -> &'static str {
        let closing = |half: usize| self.halves[half].fin.is_some();
        if self.closed.is_some() {
            "closed"
        } else if self.established[side].is_none() {
            if side == 0 {
                "syn-sent"
            } else {
                "syn-received"
            }
        } else {
            match (closing(side), closing(1 - side)) {
                (true, true) => "closing",
                (true, false) => "fin-wait",
                (false, true) => "close-wait",
                (false, false) => "established",
            }
        }
    }
}

impl Connection {
    fn state(&self) -> &'static str {
        match self.closed {
            Some(_) if self.reset => "reset",
            Some(_) => "finished",
            None => "open",
        }
    }
}
