"""The tables of a Recording and the types of their columns, as docs/recording.md describes them."""

from collections.abc import Mapping
from typing import Final

import polars as pl

_TIME = pl.Int64
_TEXT = pl.String

TABLES: Final[Mapping[str, Mapping[str, type[pl.DataType]]]] = {
    "subflows": {
        "time_ns": _TIME,
        "connection": pl.UInt32,
        "side": _TEXT,
        "subflow": pl.UInt32,
        "state": _TEXT,
        "cwnd_packets": pl.UInt32,
        "ssthresh_packets": pl.UInt32,
        "srtt_us": pl.UInt64,
        "rttvar_us": pl.UInt64,
        "in_flight_packets": pl.UInt32,
        "sent_bytes": pl.UInt64,
        "acked_bytes": pl.UInt64,
        "received_bytes": pl.UInt64,
        "retransmitted_bytes": pl.UInt64,
        "reinjected_bytes": pl.UInt64,
        "receive_window_bytes": pl.UInt64,
        "out_of_order_bytes": pl.UInt64,
    },
    "connections": {
        "time_ns": _TIME,
        "connection": pl.UInt32,
        "side": _TEXT,
        "delivered_bytes": pl.UInt64,
        "reassembly_bytes": pl.UInt64,
        "send_buffer_bytes": pl.UInt64,
        "send_queue_bytes": pl.UInt64,
        "receive_buffer_bytes": pl.UInt64,
    },
    "links": {
        "time_ns": _TIME,
        "link": pl.UInt32,
        "direction": _TEXT,
        "sent_bytes": pl.UInt64,
        "sent_packets": pl.UInt64,
        "dropped_packets": pl.UInt64,
        "lost_packets": pl.UInt64,
        "queue_packets": pl.UInt64,
        "queue_bytes": pl.UInt64,
    },
    "events": {
        "time_ns": _TIME,
        "kind": _TEXT,
        "host": _TEXT,
        "connection": pl.UInt32,
        "subflow": pl.UInt32,
        "link": pl.UInt32,
        "value": pl.Float64,
        "detail": _TEXT,
    },
    "requests": {
        "application": pl.UInt32,
        "index": pl.UInt32,
        "sent_ns": _TIME,
        "delay_ns": _TIME,
    },
    "counters": {"host": _TEXT, "name": _TEXT, "value": pl.UInt64},
    "segments": {
        "time_ns": _TIME,
        "connection": pl.UInt32,
        "side": _TEXT,
        "subflow": pl.UInt32,
        "seq": pl.UInt64,
        "ack": pl.UInt64,
        "dsn": pl.UInt64,
        "payload_bytes": pl.UInt32,
        "kind": _TEXT,
    },
    "connection_ends": {
        "application": pl.UInt32,
        "connection": pl.UInt32,
        "name": _TEXT,
        "transport": _TEXT,
        "state": _TEXT,
        "start_ns": _TIME,
        "established_ns": _TIME,
        "end_ns": _TIME,
        "first_byte_ns": _TIME,
        "last_byte_ns": _TIME,
        "client_received_bytes": pl.UInt64,
        "server_received_bytes": pl.UInt64,
    },
    "subflow_ends": {
        "connection": pl.UInt32,
        "subflow": pl.UInt32,
        "source": _TEXT,
        "source_port": pl.UInt32,
        "destination": _TEXT,
        "destination_port": pl.UInt32,
        "interface": _TEXT,
        "backup": pl.Boolean,
        "established_ns": _TIME,
        "closed_ns": _TIME,
        "client_sent_bytes": pl.UInt64,
        "server_sent_bytes": pl.UInt64,
        "client_received_bytes": pl.UInt64,
        "server_received_bytes": pl.UInt64,
        "client_retransmitted_bytes": pl.UInt64,
        "server_retransmitted_bytes": pl.UInt64,
        "client_reinjected_bytes": pl.UInt64,
        "server_reinjected_bytes": pl.UInt64,
    },
    "link_ends": {
        "link": pl.UInt32,
        "name": _TEXT,
        "direction": _TEXT,
        "sent_bytes": pl.UInt64,
        "sent_packets": pl.UInt64,
        "dropped_packets": pl.UInt64,
        "lost_packets": pl.UInt64,
        "max_queue_packets": pl.UInt64,
        "busy_ns": pl.UInt64,
    },
    "datagrams": {
        "application": pl.UInt32,
        "sent_packets": pl.UInt64,
        "received_packets": pl.UInt64,
        "received_bytes": pl.UInt64,
        "delay_mean_ns": _TIME,
    },
}


def empty(name: str) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=dict(TABLES[name]))
