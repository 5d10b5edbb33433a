"""Conversion of the guest's output to the tables of a Recording.

Linux does not tell everything that the simulator knows: reinjected and out-of-order bytes of a subflow and what waits
for reassembly are null.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from polypath.engines.base import EngineError
from polypath.engines.namespaces import account, commands, iperf3, logs
from polypath.engines.namespaces.applications import log as log_name
from polypath.engines.namespaces.job import Job
from polypath.engines.namespaces.logs import AppLog, Closed, Endpoint, PathEvent, QueueSample, SubflowSample
from polypath.engines.namespaces.topology import wire_devices
from polypath.plan.access import SIDES, setting
from polypath.results import schema

if TYPE_CHECKING:
    from polypath.plan.types import Application

Row = dict[str, Any]

#: Linux, include/net/tcp_states.h
_STATES: Final = {
    1: "established",
    2: "syn-sent",
    3: "syn-received",
    4: "fin-wait-1",
    5: "fin-wait-2",
    6: "time-wait",
    7: "closed",
    8: "close-wait",
    9: "last-ack",
    10: "listen",
    11: "closing",
}
#: Those in which the peer's FIN has arrived: time-wait, close-wait, last-ack, closing.
_FIN_RECEIVED: Final = frozenset({6, 8, 9, 11})
#: Linux, enum mptcp_event_type
_CREATED, _ESTABLISHED, _CLOSED = 1, 2, 3
_KINDS: Final = {
    3: "connection-closed",
    6: "address-added",
    7: "address-removed",
    10: "subflow-established",
    11: "subflow-closed",
    13: "priority-changed",
}
_ANNOUNCED, _REMOVED, _SUBFLOW_ESTABLISHED, _SUBFLOW_CLOSED, _PRIORITY = 6, 7, 10, 11, 13
_NO_SSTHRESH, _LINUX_NO_SSTHRESH = 2**32 - 1, 2**31 - 1
_SIDES = ("client", "server")


@dataclass
class _Subflow:
    """A subflow by its client's and its server's end."""

    number: int
    client: Endpoint
    server: Endpoint
    established_ns: int | None = None
    closed_ns: int | None = None
    #: Whether each side was told by the other that it is a backup.
    told: dict[str, bool] = field(default_factory=dict)
    last: dict[str, SubflowSample] = field(default_factory=dict)
    #: What an end that its connection had closed before counted after its last sample, by side.
    closed: dict[str, Closed] = field(default_factory=dict)


@dataclass
class _Connection:
    application: int
    number: int
    settings: Application
    log: Mapping[str, AppLog]
    subflows: dict[tuple[Endpoint, Endpoint], _Subflow] = field(default_factory=dict)

    def subflow(self, client: Endpoint, server: Endpoint) -> _Subflow:
        found = self.subflows.get((client, server))
        if found is None:
            found = _Subflow(len(self.subflows), client, server)
            self.subflows[client, server] = found
        return found


#: Tables that are missing where they would be empty. The hash of a recording counts the three others.
_LEFT_OUT: Final = schema.OPTIONAL - {"account", "chunks", "objects"}


class Tables:
    """Reads a run's folder. Raises EngineError where an application received what was not sent."""

    def __init__(self, job: Job, out: Path) -> None:
        self.job = job
        self.plan = job.plan
        self.out = out
        self.rows: dict[str, list[Row]] = {name: [] for name in schema.TABLES}
        self.nodes = self.plan["nodes"]
        self._addresses = [
            {address for interface in node["interfaces"] for address in interface["addresses"]} for node in self.nodes
        ]
        self.connections = list(self._read_connections())
        self.end_ns = self._end()
        #: What ends of subflows counted, by node and addresses.
        self._left: dict[int, dict[tuple[Endpoint, Endpoint], Closed]] = {}
        self._paths()
        for connection in self.connections:
            self._samples(connection)
            self._ends(connection)
        self._datagrams_and_requests()
        self._links()
        self._counters()
        self.rows["programs"] = list(commands.rows(self.plan, out.parent))
        self.rows["events"] = sorted(
            (row for row in self.rows["events"] if row["time_ns"] <= self.end_ns), key=lambda row: row["time_ns"]
        )

    def keep_account(self) -> None:
        """Adds what became of the links' time, which is derived from the other tables."""
        self.rows["account"] = sorted(
            account.rows(self.plan, self.job.rates, self.rows, self.connections, self.end_ns),
            key=lambda row: row["time_ns"],
        )

    def frames(self) -> dict[str, pl.DataFrame]:
        return {
            name: pl.DataFrame(rows, schema=dict(schema.TABLES[name]), orient="row")
            for name, rows in self.rows.items()
            if rows or name not in _LEFT_OUT
        }

    def _read_connections(self) -> Iterator[_Connection]:
        number = 0
        for index, settings in enumerate(self.plan["applications"]):
            if settings["transport"] not in ("tcp", "mptcp"):
                continue
            both = {side: logs.read_app(self.out / log_name(index, side)) for side in _SIDES}
            for side, log in both.items():
                if log.wrong_at is not None:
                    raise EngineError(
                        f"the {side} of application '{settings['name']}' received a wrong byte at {log.wrong_at}"
                    )
            connection = _Connection(index, number, settings, both)
            for sample in sorted(both["client"].subflows, key=lambda sample: sample.number):
                connection.subflow(sample.local, sample.remote)
            yield connection
            number += 1

    def _end(self) -> int:
        try:
            return int((self.out / "end").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return max(self._told(), default=0)

    def _told(self) -> Iterator[int]:
        """Times at which an application told something; of a run that was cut off, the last is its end."""
        for index in range(len(self.plan["applications"])):
            for side in _SIDES:
                log = logs.read_app(self.out / log_name(index, side))
                yield from (sample.time_ns for sample in log.connections)
                yield from log.datagram_samples
                yield from (sent if delay < 0 else sent + delay for sent, delay in log.requests)

    def _event(self, time_ns: int, kind: str, host: str, connection: int | None = None, **more: Any) -> None:
        row = {"subflow": None, "link": None, "value": None, "detail": ""} | more
        self.rows["events"].append({"time_ns": time_ns, "kind": kind, "host": host, "connection": connection} | row)

    def _paths(self) -> None:
        """Times of subflows from what the path managers told, and the events themselves."""
        for connection in self.connections:
            for side in SIDES:
                log = connection.log[side]
                self._begin_and_end(connection, self.nodes[connection.settings[side]]["name"], log)
        for node, table in enumerate(self.nodes):
            self._left[node] = {
                (each.local, each.remote): each for each in logs.read_closed(self.out / f"paths-{node}")
            }
            tokens: dict[int, _Connection] = {}
            for event in logs.read_paths(self.out / f"paths-{node}"):
                if event.kind in (_CREATED, _ESTABLISHED):
                    opened = self._of(node, event)
                    if opened:
                        tokens[event.token] = opened
                    continue
                known = tokens.get(event.token)
                if known and event.kind in _KINDS:
                    self._path_event(table["name"], node, known, event)

    def _begin_and_end(self, connection: _Connection, host: str, log: AppLog) -> None:
        """Events of a connection that its application told: the path managers know of Multipath TCP alone."""
        if log.established_ns is not None:
            self._event(log.established_ns, "connection-established", host, connection.number)
            self._event(log.established_ns, "subflow-established", host, connection.number, subflow=0)
        if log.ended_ns is not None and log.state not in (None, "open"):
            self._event(log.ended_ns, "connection-closed", host, connection.number, detail=log.state)

    def _of(self, node: int, event: PathEvent) -> _Connection | None:
        side, peer = SIDES[::-1] if event.server_side else SIDES
        port = (event.local if event.server_side else event.remote)[1]
        for connection in self.connections:
            if connection.settings[side] != node or connection.settings["port"] != port:
                continue
            if event.remote[0] not in self._addresses[connection.settings[peer]]:
                continue
            # iperf3 has another connection to the same port, for control, which is not the application's
            ends = (event.remote, event.local) if event.server_side else (event.local, event.remote)
            if not iperf3.plays(connection.settings) or ends in connection.subflows:
                return connection
        return None

    def _path_event(self, host: str, node: int, connection: _Connection, event: PathEvent) -> None:
        subflow, value, detail = None, None, f"error {event.error}" if event.error else ""
        at_client = connection.settings["client"] == node
        side = "client" if at_client else "server"
        if event.kind == _CLOSED and connection.log[side].state not in (None, "open"):
            return  # told by the application, with its reason
        if event.kind in (_SUBFLOW_ESTABLISHED, _SUBFLOW_CLOSED, _PRIORITY):
            # a subflow that was never established is closed without the port that it was for
            remote = (event.remote[0], event.remote[1] or (connection.settings["port"] if at_client else 0))
            ends = (event.local, remote) if at_client else (remote, event.local)
            found = connection.subflow(*ends)
            subflow = found.number
            if at_client and event.kind == _SUBFLOW_ESTABLISHED:
                found.established_ns = event.time_ns
            if at_client and event.kind == _SUBFLOW_CLOSED and event.time_ns <= self.end_ns:
                found.closed_ns = event.time_ns
            if event.kind == _SUBFLOW_CLOSED and event.time_ns <= self.end_ns:
                left = self._left[node].get((event.local, remote))
                if left is not None:
                    found.closed[side] = left
            if event.kind != _SUBFLOW_CLOSED:
                found.told[side] = event.backup
        if event.kind == _PRIORITY:
            detail = "backup" if event.backup else "normal"
        elif event.kind == _ANNOUNCED:
            detail = f"{event.remote[0]} as {event.remote_id}"
        elif event.kind == _REMOVED:
            value = float(event.remote_id)
        more = {"subflow": subflow, "value": value, "detail": detail}
        self._event(event.time_ns, _KINDS[event.kind], host, connection.number, **more)

    def _samples(self, connection: _Connection) -> None:
        for side, log in connection.log.items():
            for sample in log.subflows:
                ends = (sample.local, sample.remote) if side == "client" else (sample.remote, sample.local)
                subflow = connection.subflow(*ends)
                subflow.last[side] = sample
                self.rows["subflows"].append(_subflow_row(connection.number, side, subflow.number, sample))
            for each in log.connections:
                self.rows["connections"].append(
                    {
                        "time_ns": each.time_ns,
                        "connection": connection.number,
                        "side": side,
                        "delivered_bytes": each.delivered,
                        "reassembly_bytes": None,
                        "send_buffer_bytes": each.send_buffer,
                        "send_queue_bytes": each.queued,
                        "receive_buffer_bytes": each.receive_buffer,
                    }
                )
        for name in ("subflows", "connections"):
            self.rows[name].sort(key=lambda row: row["time_ns"])

    def _ends(self, connection: _Connection) -> None:
        settings, client, server = connection.settings, connection.log["client"], connection.log["server"]
        first = [time for time in (client.first_byte_ns, server.first_byte_ns) if time is not None]
        last = [time for time in (client.last_byte_ns, server.last_byte_ns) if time is not None]
        state = client.state or ("open" if client.established_ns is not None else "not started")
        self.rows["connection_ends"].append(
            {
                "application": connection.application,
                "connection": connection.number,
                "name": settings["name"],
                "transport": client.transport or settings["transport"],
                "state": state,
                "start_ns": settings["start_ns"],
                "established_ns": client.established_ns,
                "end_ns": None if state in ("open", "not started") else client.ended_ns,
                "first_byte_ns": min(first, default=None),
                "last_byte_ns": max(last, default=None),
                "client_received_bytes": client.received,
                "server_received_bytes": server.received,
            }
        )
        host = self.nodes[settings["client"]]
        ended_ns = None if state == "open" else client.ended_ns
        for subflow in connection.subflows.values():
            interface = next(
                (each["name"] for each in host["interfaces"] if subflow.client[0] in each["addresses"]), ""
            )
            sent = {side: _sent(subflow, side) for side in _SIDES}
            row: Row = {
                "connection": connection.number,
                "subflow": subflow.number,
                "source": subflow.client[0],
                "source_port": subflow.client[1],
                "destination": subflow.server[0],
                "destination_port": subflow.server[1],
                "interface": interface,
                "backup": any(subflow.told.values()) or (not subflow.told and self._asked(settings, subflow)),
                "established_ns": client.established_ns if subflow.number == 0 else subflow.established_ns,
                "closed_ns": ended_ns if subflow.closed_ns is None else subflow.closed_ns,
            }
            for side, other in zip(_SIDES, reversed(_SIDES), strict=True):
                counted = subflow.closed.get(side) or subflow.last.get(side)
                received = _received(counted) if counted else 0
                row[f"{side}_sent_bytes"] = sent[side]
                # whether a closed end has counted a FIN its state does not tell
                row[f"{side}_received_bytes"] = min(received, sent[other]) if side in subflow.closed else received
                row[f"{side}_retransmitted_bytes"] = counted.retransmitted if counted else 0
                row[f"{side}_reinjected_bytes"] = None
            self.rows["subflow_ends"].append(row)

    def _asked(self, settings: Application, subflow: _Subflow) -> bool:
        """Whether a subflow that was not established asked by MP_JOIN to be a backup; the first has no MP_JOIN."""
        interfaces = self.nodes[settings["client"]]["interfaces"]
        return subflow.number > 0 and any(
            each["backup"] for each in interfaces if subflow.client[0] in each["addresses"]
        )

    def _datagrams_and_requests(self) -> None:
        for index, settings in enumerate(self.plan["applications"]):
            client = logs.read_app(self.out / log_name(index, "client"))
            for number, (sent, delay) in enumerate(client.requests):
                self.rows["requests"].append(
                    {"application": index, "index": number, "sent_ns": sent, "delay_ns": None if delay < 0 else delay}
                )
            self._chunks_and_objects(index, client)
            if settings["transport"] == "icmp":
                self._echoes(index, setting(settings["work"], "payload_bytes"), client)
            if settings["transport"] == "udp":
                server = logs.read_app(self.out / log_name(index, "server"))
                _, received, size, delays = server.datagrams
                self.rows["datagrams"].append(
                    {
                        "application": index,
                        "sent_packets": client.datagrams[0],
                        "received_packets": received,
                        "received_bytes": size,
                        "delay_mean_ns": delays // received if received else None,
                    }
                )
                self._datagram_samples(index, client, server)
        self.rows["datagram_samples"].sort(key=lambda row: row["time_ns"])

    def _echoes(self, application: int, payload: int, client: logs.AppLog) -> None:
        """Requests as datagrams, as the simulator counts them: what was answered, there and back."""
        delays = [delay for _, delay in client.requests if delay >= 0]
        self.rows["datagrams"].append(
            {
                "application": application,
                "sent_packets": len(client.requests),
                "received_packets": len(delays),
                "received_bytes": len(delays) * payload,
                "delay_mean_ns": sum(delays) // len(delays) if delays else None,
            }
        )

    def _chunks_and_objects(self, application: int, client: logs.AppLog) -> None:
        for number, chunk in sorted(client.chunks.items()):
            self.rows["chunks"].append(
                {
                    "application": application,
                    "index": number,
                    "asked_ns": chunk.asked_ns,
                    "arrived_ns": chunk.arrived_ns,
                    "representation": chunk.representation,
                    "rate_bps": chunk.rate_bps,
                    "bytes": chunk.size,
                    "buffer_ns": chunk.buffer_ns,
                    "played_ns": chunk.played_ns,
                }
            )
        for place, each in sorted(client.objects.items()):
            self.rows["objects"].append(
                {
                    "application": application,
                    "object": place,
                    "bytes": each.size,
                    "asked_ns": each.asked_ns,
                    "arrived_ns": each.arrived_ns,
                }
            )

    def _datagram_samples(self, application: int, client: logs.AppLog, server: logs.AppLog) -> None:
        """What both ends counted, from the first datagram on; the client's log ends with what it sends."""
        sent = 0
        for time in sorted(client.datagram_samples.keys() | server.datagram_samples.keys()):
            if time in client.datagram_samples:
                sent = client.datagram_samples[time].sent
            elif time > max(client.datagram_samples, default=0):
                sent = client.datagrams[0]
            there = server.datagram_samples.get(time)
            if sent == 0 or there is None:
                continue
            self.rows["datagram_samples"].append(
                {
                    "time_ns": time,
                    "application": application,
                    "sent_packets": sent,
                    "received_packets": there.received,
                    "received_bytes": there.received_bytes,
                    "jitter_ns": there.jitter_ns,
                }
            )

    def _links(self) -> None:
        names = {}
        for index in range(len(self.plan["links"])):
            backward, forward = wire_devices(index)
            names[forward], names[backward] = (index, "forward"), (index, "backward")
        last: dict[tuple[int, str], Row] = {}
        most: dict[tuple[int, str], int] = {}
        busy: dict[tuple[int, str], float] = {}
        owed: dict[tuple[int, str], float] = {}
        host_queues = self._host_queues()
        for sample in self._until_end(logs.read_queues(self.out / "links")):
            key = names.get(sample.device)
            if key is None:
                continue
            queue = host_queues[key].at(sample.time_ns) if key in host_queues else sample
            more = self.job.wires.uncounted(*key)
            row: Row = {
                "time_ns": sample.time_ns,
                "link": key[0],
                "direction": key[1],
                "sent_bytes": sample.sent_bytes + more * sample.sent_packets,
                "sent_packets": sample.sent_packets,
                "dropped_packets": queue.child_drops,
                "lost_packets": max(sample.root_drops - sample.child_drops, 0),
                "queue_packets": queue.queued_packets,
                "queue_bytes": queue.queued_bytes + more * queue.queued_packets,
            }
            before = last.get(key)
            if sample.busy_ns is None:
                # a bucket lets more leave at once than the rate has time for
                work = owed.get(key, 0.0) + self._sending(key, before, row)
                spent = min(work, sample.time_ns - (before["time_ns"] if before else 0))
                busy[key], owed[key] = busy.get(key, 0.0) + spent, work - spent
            else:
                busy[key] = min(sample.busy_ns, sample.time_ns)
            last[key] = row
            most[key] = max(most.get(key, 0), queue.queued_packets)
            self.rows["links"].append(row)
        self.rows["links"].sort(key=lambda row: (row["time_ns"], row["link"], row["direction"] != "forward"))
        for key in sorted(last, key=lambda key: (key[0], key[1] != "forward")):
            row = last[key]
            self.rows["link_ends"].append(
                {
                    "link": key[0],
                    "name": self.plan["links"][key[0]]["name"],
                    "direction": key[1],
                    **{name: row[name] for name in ("sent_bytes", "sent_packets", "dropped_packets", "lost_packets")},
                    "max_queue_packets": most[key],
                    "busy_ns": round(busy.get(key, 0.0)),
                }
            )

    def _until_end(self, samples: list[QueueSample]) -> Iterator[QueueSample]:
        """Each device's samples up to the end of the run; the first one after that is how it stood then."""
        over = set()
        for sample in samples:
            if sample.device in over:
                continue
            if sample.time_ns >= self.end_ns:
                over.add(sample.device)
            yield replace(sample, time_ns=min(sample.time_ns, self.end_ns))

    def _sending(self, key: tuple[int, str], before: Row | None, now: Row) -> float:
        """How long a direction was busy between two samples, by the rates that it had meanwhile, in ns."""
        sent: float = (now["sent_bytes"] - (before["sent_bytes"] if before else 0)) * 8e9
        rated = list(_rates_in(self.job.rates[key], before["time_ns"] if before else 0, now["time_ns"]))
        if len(rated) == 1:
            return sent / rated[0][1]
        took = sum(span for span, _ in rated)
        return min(took, took * sent / sum(span * rate for span, rate in rated)) if rated else 0.0

    def _host_queues(self) -> dict[tuple[int, str], _Samples]:
        """What waited on hosts' own interfaces, by the direction that begins there."""
        found: dict[tuple[int, str], _Samples] = {}
        for key, node in self.job.network.host_queues().items():
            device = self.job.network.device(self.job.network.sender(*key))
            samples = logs.read_queues(self.out / f"links-{node}")
            own = [sample for sample in samples if sample.device == device]
            if own:  # without a rate there is no queue to sample
                found[key] = _Samples(own)
        return found

    def _counters(self) -> None:
        for node, table in enumerate(self.nodes):
            for name, value in logs.read_counters(self.out / f"counters-{node}").items():
                if value > 0:
                    self.rows["counters"].append({"host": table["name"], "name": name, "value": value})


class _Samples:
    """A queue by time."""

    def __init__(self, samples: list[QueueSample]) -> None:
        self._samples = samples
        self._times = [sample.time_ns for sample in samples]

    def at(self, time_ns: int) -> QueueSample:
        index = bisect.bisect_right(self._times, time_ns)
        return self._samples[max(index - 1, 0)]


def _rates_in(rates: list[tuple[int, int | None]], since_ns: int, until_ns: int) -> Iterator[tuple[int, int]]:
    """For how many ns of a time there was which rate, without what had none."""
    ends = [since for since, _ in rates[1:]] + [until_ns]
    for (since, rate), end in zip(rates, ends, strict=True):
        span = min(end, until_ns) - max(since, since_ns)
        if rate and span > 0:
            yield span, rate


def _sent(subflow: _Subflow, side: str) -> int:
    """Payload without what was sent again."""
    counted = subflow.closed.get(side) or subflow.last.get(side)
    return counted.sent - counted.retransmitted if counted else 0


def _received(sample: SubflowSample | Closed) -> int:
    """Bytes of data: Linux counts the peer's FIN as well (net/ipv4/tcp_input.c, tcp_rcv_nxt_update)."""
    return sample.received - (sample.state in _FIN_RECEIVED)


def _subflow_row(connection: int, side: str, number: int, sample: SubflowSample) -> Row:
    return {
        "time_ns": sample.time_ns,
        "connection": connection,
        "side": side,
        "subflow": number,
        "state": _STATES.get(sample.state, str(sample.state)),
        "cwnd_packets": sample.cwnd,
        "ssthresh_packets": _NO_SSTHRESH if sample.ssthresh >= _LINUX_NO_SSTHRESH else sample.ssthresh,
        "srtt_us": sample.srtt_us,
        "rttvar_us": sample.rttvar_us,
        "in_flight_packets": sample.in_flight,
        "sent_bytes": sample.sent - sample.retransmitted,
        "acked_bytes": min(sample.acked, sample.sent - sample.retransmitted),
        "received_bytes": _received(sample),
        "retransmitted_bytes": sample.retransmitted,
        "reinjected_bytes": None,
        "receive_window_bytes": sample.window,
        "out_of_order_bytes": None,
    }


def digest(frames: Mapping[str, pl.DataFrame]) -> str:
    """A hash of all tables, equal for equal contents. The account follows from the others."""
    total = hashlib.sha256()
    for name in sorted(frames):
        frame = frames[name].clear() if name == "account" else frames[name]
        total.update(f"{name}\n{frame.write_csv()}".encode())
    return total.hexdigest()
