"""summary.json: the figures of a run in a stable form.

    interrupted     whether the run was stopped before its end
    connections[]   one for each application, in the Plan's order
      name, transport          transport: tcp, mptcp, fallback (MPTCP that fell back), quic, mpquic,
                            udp, icmp
      goodput_mbps             as iperf counts; null where no time passed
      bytes                    delivered in order to the receiving application
      start_s, end_s           end_s: last byte of a closed connection (at least its duration where only that ends it),
                               else the end of the run, of one that failed before it was done of the scenario
      finished                 whether the application did all that it was to do; null where it has no end of its own
      completion_s             start to last byte; null where it did not finish
      reassembly_max_bytes     most that waited at the receiver for its turn, of the samples; null without any
      blocking[]               what the receiver waited for with data at hand: level, subflow, cause, time_s, byte_s,
                               max_bytes; null where the engine cannot know it
      account                  only where one was kept: capacity_bytes (the sum of all other bytes), delivered_bytes,
                               since_s, until_s, account[] {cause, path, at, head, bytes, worst_s} (docs/explain.md)
      requests                 count, unanswered, refused (of the unanswered: messages for which no packet had room),
                               median_s, p95_s and p99_s (one without an answer is longer than any; null where one
                               decides), delay_s[] (null: unanswered); of messages: those sent, lost, and their delays
      video                    only of a video: mbps (mean rate of the segments shown), startup_s (first request to
                               first picture), stalls[] {begin_s, end_s}, stalled_s, switches (of rate), segments;
                               null where nothing was shown: mbps, startup_s, stalled_s
      page                     only of a page, of all its connections: load_s (start to the last object; null where one
                               did not come), first_object_s, missing (objects), and with its first connection
                               objects[] {name, connection, bytes, asked_s, arrived_s}, in the order of asking
      to_server, to_client     only of a two-way transfer: bytes, goodput_mbps
      subflows[]               id, source, destination (address:port), interface, backup, established_s, closed_s (null:
                               never), bytes (arrived on this subflow), share (of all subflows' bytes), goodput_mbps
                               (bytes over the connection's time, or the time until the last of them came; these three
                               null where bytes are not counted by path: those in datagrams of QUIC),
                               retransmitted_bytes, resent (these, of all bytes sent on it; null where none was),
                               reinjected_bytes, srtt_ms {mean, p50, p95, max} (the sender's samples while it lasts;
                               null without any)
      goodput_series           t_s[] (ends of the sampling intervals), mbps[]
    groups[]        only with flows that count together, for all of them and by size: name, sizes, flows, unfinished,
                    completion_s and slowdown {mean, p50, p95, p99} (null where it depends on an unfinished flow);
                    slowdown: the time as a multiple of the least that it could take, null also if no flow has one;
                    times_s[] (the shortest first; null: unfinished)
    controller      only under one: packet_ins, packet_outs, flow_mods, group_mods, flows_removed, port_statuses,
                    dropped_packets (by tables), max_entries (of the fullest switch), flow_setups, unanswered (of them),
                    setup_s {mean, p50, p95, p99, max} (from a flow's first packet at a switch that did not know it
                    until that packet was sent on; null where it depends on an unanswered one)
    bridging        only of bridges: roots[] (one for each part of the network), blocked_ports[] (at the end),
                    last_change_s (of a port's role or state), bpdus (sent), learned, flushed (addresses, at all
                    bridges), max_addresses (that a bridge knew), flooded_packets (copies beyond the first),
                    dropped_packets (at ports that discard, or without another port to leave by)
    programs[]      only with programs of the machine: name, host, start_s, end_s (null: it did not end), state (exited,
                    killed by a signal, ended with the run, open, not started), exit_code (128 and the signal's number
                    where one killed it; null without an end), stdout_bytes, stderr_bytes
    costs           only if a link has a price or a cap: cost, priced_bytes, over_cap_bytes (of all links together; null
                    where no link has a price, or a cap), links[] {name, price_per_gb, cap_bytes, bytes, over_cap_bytes,
                    cost} (bytes of IP packets sent, both directions)
    tunnels[]       only with tunnels, both directions of each: name, link, direction (forward: from its client), and
                    packets: entered, carried (by its connection), left (at the far end), lost (or still under way),
                    and, dropped at the entry, unconnected, queue_full, too_long, unfit (not carried by its framing);
                    reordered (came behind one that was sent later), late (went on so); carried_bytes
    links[]         name, direction, utilisation (busy part of the run), dropped_packets (by the queue),
                    max_queue_packets
    counters        host -> counter -> value

Keys come in this order; times are seconds since the start of the run.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from polypath.measures.measure import MBPS, Of
from polypath.measures.registry import MEASURES
from polypath.results import account, bridges, completions, control, costs, metrics, pages, tunnels, video
from polypath.results.recording import Recording

_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def summary(recording: Recording) -> dict[str, Any]:
    """The run's figures, ready for JSON; docs/summary.md tells what each key holds."""
    return {
        "interrupted": recording.metadata.interrupted,
        "connections": [_connection(recording, each) for each in metrics.connections(recording)],
        **_groups(recording),
        **_controller(recording),
        **_bridging(recording),
        **_programs(recording),
        **_costs(recording),
        **_kernels(recording),
        **_tunnels(recording),
        "links": metrics.links(recording),
        "counters": _counters(recording.table("counters")),
    }


def _programs(recording: Recording) -> dict[str, Any]:
    found = [
        {
            "name": row["name"],
            "host": row["host"],
            "start_s": _seconds(row["start_ns"]),
            "end_s": _seconds(row["end_ns"]),
            **{key: row[key] for key in ("state", "exit_code", "stdout_bytes", "stderr_bytes")},
        }
        for row in recording.table("programs").iter_rows(named=True)
    ]
    return {"programs": found} if found else {}


def _kernels(recording: Recording) -> dict[str, Any]:
    found = recording.metadata.kernels
    return {"kernels": dict(found)} if found else {}


def _tunnels(recording: Recording) -> dict[str, Any]:
    found = [
        {
            "name": each.name,
            "link": each.link,
            "direction": each.direction,
            "entered": each.entered,
            "carried": each.carried,
            "left": each.left,
            "lost": each.lost,
            "unconnected": each.unconnected,
            "queue_full": each.queue_full,
            "too_long": each.too_long,
            "unfit": each.unfit,
            "reordered": each.reordered,
            "late": each.late,
            "carried_bytes": each.carried_bytes,
        }
        for each in tunnels.of(recording)
    ]
    return {"tunnels": found} if found else {}


def _groups(recording: Recording) -> dict[str, Any]:
    found = completions.of_groups(recording)
    if not found:
        return {}
    groups = [
        {
            "name": name,
            "sizes": each.sizes,
            "flows": each.flows,
            "unfinished": each.unfinished,
            "completion_s": {
                "mean": _seconds(each.mean_ns()),
                **{key: _seconds(each.times.quantile(part)) for key, part in _QUANTILES.items()},
            },
            "slowdown": {
                "mean": each.mean_slowdown(),
                **{key: each.slowdowns.quantile(part) for key, part in _QUANTILES.items()},
            },
            "times_s": [*map(_seconds, each.times.answered), *[None] * each.unfinished],
        }
        for name, completed in found.items()
        for each in completed
    ]
    return {"groups": groups}


def _controller(recording: Recording) -> dict[str, Any]:
    found = control.of(recording)
    if found is None:
        return {}
    delays = found.delays
    return {
        "controller": {
            "packet_ins": found.packet_ins,
            "packet_outs": found.packet_outs,
            "flow_mods": found.flow_mods,
            "group_mods": found.group_mods,
            "flows_removed": found.flows_removed,
            "port_statuses": found.port_statuses,
            "dropped_packets": found.dropped_packets,
            "max_entries": found.most_entries,
            "flow_setups": delays.sent,
            "unanswered": delays.unanswered,
            "setup_s": {
                "mean": _seconds(found.mean_delay_ns),
                **{key: _seconds(delays.quantile(part)) for key, part in _QUANTILES.items()},
                "max": _seconds(delays.quantile(1.0)),
            },
        }
    }


def _bridging(recording: Recording) -> dict[str, Any]:
    found = bridges.of(recording)
    if found is None:
        return {}
    return {
        "bridging": {
            "roots": found.roots,
            "blocked_ports": [f"{bridge}:{interface}" for bridge, interface in found.blocked],
            "last_change_s": _seconds(found.changed_ns),
            "bpdus": found.bpdus,
            "learned": found.learned,
            "flushed": found.flushed,
            "max_addresses": found.most_addresses,
            "flooded_packets": found.flooded_packets,
            "dropped_packets": found.dropped_packets,
        }
    }


def _costs(recording: Recording) -> dict[str, Any]:
    found = costs.of(recording)
    if found is None:
        return {}
    links = [
        {
            "name": each.link,
            "price_per_gb": each.price_per_gb,
            "cap_bytes": each.cap_bytes,
            "bytes": each.bytes,
            "over_cap_bytes": each.over_cap_bytes,
            "cost": each.cost,
        }
        for each in found.links
    ]
    return {"costs": {**_figures("run", recording), "links": links}}


def text(recording: Recording) -> str:
    """The content of summary.json."""
    return to_json(summary(recording))


def to_json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _connection(recording: Recording, of: metrics.Connection) -> dict[str, Any]:
    core = metrics.summary(recording, of)
    requests, subflows = core.pop("requests"), core.pop("subflows")
    times, rates = metrics.goodput_series(recording, of)
    return {
        **core,
        "blocking": _blocking(metrics.blocking(recording, of)),
        **_account(recording, of),
        "requests": {**requests, "delay_s": [_seconds(delay) for delay in metrics.delays(recording, of)]},
        **_video(recording, of),
        **_page(recording, of),
        **_both_ways(recording, of),
        "subflows": subflows,
        "goodput_series": {"t_s": times, "mbps": [_rounded(rate) for rate in rates]},
    }


def _account(recording: Recording, of: metrics.Connection) -> dict[str, Any]:
    kept = account.of_connection(recording, of)
    return {} if kept is None else {"account": kept.data()}


def _figures(section: Of, recording: Recording, *of: object) -> dict[str, Any]:
    """The measures of a part of the summary, by their keys."""
    found = [(each, each.value(recording, *of)) for each in MEASURES.values() if each.of == section]
    return {
        each.kept[-1]: _rounded(value) if value is not None and each.unit is MBPS else value for each, value in found
    }


def _video(recording: Recording, of: metrics.Connection) -> dict[str, Any]:
    found = video.playback(recording, of)
    if found is None:
        return {}
    keys = dict.fromkeys(("mbps", "startup_s", "stalls", "stalled_s", "switches", "segments"))
    stalls = [{"begin_s": _seconds(each.begin_ns), "end_s": _seconds(each.end_ns)} for each in found.stalls]
    counts = {"stalls": stalls, "segments": found.shown}
    return {"video": {**keys, **counts, **_figures("video", recording, of)}}


def _page(recording: Recording, of: metrics.Connection) -> dict[str, Any]:
    found = pages.load(recording, of)
    if found is None:
        return {}
    objects = [
        {
            "name": each.name,
            "connection": each.connection,
            "bytes": each.bytes,
            "asked_s": _seconds(each.asked_ns),
            "arrived_s": _seconds(each.arrived_ns),
        }
        for each in found.objects
    ]
    return {
        "page": {
            **_figures("page", recording, of),
            "missing": found.missing,
            **({"objects": objects} if pages.has_objects(recording, of) else {}),
        }
    }


def _both_ways(recording: Recording, of: metrics.Connection) -> dict[str, Any]:
    found = metrics.both_ways(recording, of)
    if found is None:
        return {}
    return {
        key: {"bytes": way.bytes, "goodput_mbps": _mbps(metrics.goodput(recording, way))}
        for key, way in zip(("to_server", "to_client"), found, strict=True)
    }


def _blocking(found: list[metrics.Blocking] | None) -> list[dict[str, Any]] | None:
    if found is None:
        return None
    return [
        {
            "level": each.level,
            "subflow": each.subflow,
            "cause": each.cause,
            "time_s": _seconds(each.time_ns),
            "byte_s": _rounded(each.byte_s),
            "max_bytes": each.max_bytes,
        }
        for each in found
    ]


def _counters(table: pl.DataFrame) -> dict[str, dict[str, int]]:
    hosts: dict[str, dict[str, int]] = {}
    for host, name, value in table.sort("host", "name").iter_rows():
        hosts.setdefault(host, {})[name] = value
    return hosts


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / metrics.SECOND


def _mbps(bits_per_second: float | None) -> float | None:
    return None if bits_per_second is None else _rounded(bits_per_second / 1e6)


def _rounded(value: float) -> float:
    """Six decimals: below any figure's meaning, above the last bits of its arithmetic."""
    return round(value, 6)
