"""Captures of real traffic as a Recording (docs/capture.md)."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from polypath import _core
from polypath.errors import PolypathError
from polypath.results import Metadata, Recording

#: As scenarios record.
INTERVAL_NS: Final = 100_000_000
ENGINE: Final = "capture"
#: Files that the name of a trace lists.
_MOST_NAMES: Final = 4
#: Tables of what happened at a time.
_BY_TIME: Final = frozenset({"connections", "events", "sack_blocks", "segments", "subflows"})
#: Those that name a row of the segments.
_OF_SEGMENTS: Final = frozenset({"headers", "packets", "stream_frames"})


class CaptureError(PolypathError, ValueError):
    """Nothing can be read of a capture; the message is one line that names the file."""


@dataclass(frozen=True)
class Traced:
    """What captures tell."""

    recording: Recording
    #: What is to be known of the files and the figures: damage, what is missing, where it was captured. A line each.
    notes: Sequence[str]


def trace(
    files: Sequence[Path | str],
    *,
    interval_ns: int = INTERVAL_NS,
    segments: bool = False,
    name: str | None = None,
    keys: Sequence[Path | str] = (),
) -> Traced:
    """Reads pcap and pcapng files, of which several may be of the same traffic at different places.

    `interval_ns` is the time between samples; with `segments` there is a row for each segment. `keys` are key logs of
    TLS (SSLKEYLOGFILE), which open packets of QUIC; those in the captures are known besides. Raises CaptureError.
    """
    if not files:
        raise CaptureError("no capture is named")
    if interval_ns < 1:
        raise CaptureError(f"the time between samples must be at least 1 ns, not {interval_ns}")
    started = time.perf_counter()
    paths = [Path(file) for file in files]
    try:
        native, end_ns, told_json = _core.trace(paths, interval_ns, segments, _key_log(keys))
    except ValueError as error:
        raise CaptureError(" ".join(str(error).split())) from error
    told = json.loads(told_json)
    tables = _in_order({table: pl.DataFrame(native.table(table)) for table in native.names})
    plan = _plan(name or _name(paths), told, tables, interval_ns, end_ns)
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"))
    metadata = Metadata(
        scenario=plan["name"],
        seed=0,
        engine=ENGINE,
        plan_sha256=hashlib.sha256(text.encode()).hexdigest(),
        recording_sha256=native.sha256,
        end_ns=end_ns,
        interrupted=bool(told["interrupted"]),
        wall_s=round(time.perf_counter() - started, 3),
        versions={"polypath": _core.version()},
    )
    return Traced(Recording(tables, plan, metadata), list(_notes(told)))


def _key_log(files: Sequence[Path | str]) -> str:
    """The lines of key logs. Raises CaptureError."""
    try:
        return "\n".join(Path(file).read_text(encoding="utf-8", errors="replace") for file in files)
    except OSError as error:
        raise CaptureError(f"{error.filename}: {error.strerror}") from error


def _in_order(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """By time: connections are sampled one by one. What goes with segments stays with them."""
    found = {
        name: table.sort("time_ns", maintain_order=True) if name in _BY_TIME else table
        for name, table in tables.items()
    }
    moved = tables["segments"].with_row_index("before").sort("time_ns", maintain_order=True).select("before")
    moved = moved.with_row_index("segment")
    for name in _OF_SEGMENTS.intersection(found):
        there = (
            found[name]
            .rename({"segment": "before"})
            .join(moved, on="before", maintain_order="left")
            .sort("segment", maintain_order=True)
        )
        found[name] = there.select(found[name].columns)
    return found


def _name(paths: Sequence[Path]) -> str:
    names = list(dict.fromkeys(path.name.removesuffix(".gz").rpartition(".")[0] or path.name for path in paths))
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return "+".join(names[:_MOST_NAMES] + more)


def _notes(told: Mapping[str, Any]) -> list[str]:
    return [f"{file['file']}: {note}" for file in told["files"] for note in file["notes"]] + list(told["notes"])


def _plan(name: str, told: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], interval_ns: int, end_ns: int) -> Any:
    """The network as far as addresses show it: hosts with their interfaces, and a link per pair of addresses.

    A capture has no rates and delays. They are left open, and values that depend on them are missing.
    """
    nodes = [_node(host) for host in told["hosts"]]
    places = {
        address: (number, at)
        for number, node in enumerate(nodes)
        for at, interface in enumerate(node["interfaces"])
        for address in interface["addresses"]
    }
    ends = tables["subflow_ends"].select("source", "destination").unique(maintain_order=True)
    totals = tables["connection_ends"].sort("connection")
    first = tables["subflow_ends"].filter(pl.col("subflow") == 0).sort("connection")
    return {
        "version": 1,
        "name": name,
        "seed": 0,
        "duration_ns": end_ns,
        "capture": {
            "files": [{"file": file["file"], "packets": file["packets"]} for file in told["files"]],
            "start_unix_ns": told["start_unix_ns"],
            "notes": _notes(told),
        },
        "nodes": nodes,
        "links": [_link(source, destination, places) for source, destination in ends.iter_rows()],
        "applications": [
            _application(told["connections"][row["connection"]], row, subflow)
            for row, subflow in zip(totals.iter_rows(named=True), first.iter_rows(named=True), strict=True)
        ],
        "events": [],
        "routes": [],
        "routing": "shortest-path",
        "record": {"interval_ns": interval_ns, "segments": bool(tables["segments"].height)},
    }


def _node(host: Mapping[str, Any]) -> dict[str, Any]:
    interfaces: dict[str, list[str]] = {}
    for each in host["addresses"]:
        interfaces.setdefault(each["interface"], []).append(each["address"])
    return {
        "name": host["name"],
        "kind": "host",
        "interfaces": [
            {"name": name, "addresses": addresses, "backup": False} for name, addresses in interfaces.items()
        ],
        "stack": None,
    }


def _link(source: str, destination: str, places: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    def end(address: str) -> dict[str, int]:
        node, interface = places[address]
        return {"node": node, "interface": interface}

    def channel() -> dict[str, Any]:
        return {"rate_bps": None, "delay_ns": 0, "up": True}

    return {
        "name": f"{source} - {destination}",
        "a": end(source),
        "b": end(destination),
        "forward": channel(),
        "backward": channel(),
    }


def _application(ends: Mapping[str, Any], row: Mapping[str, Any], subflow: Mapping[str, Any]) -> dict[str, Any]:
    """A connection as if an application of a plan had it; what the application wanted nobody knows."""
    return {
        "name": row["name"],
        "client": ends["client"],
        "server": ends["server"],
        "source": subflow["source"],
        "destination": subflow["destination"],
        "port": ends["port"],
        "transport": "mptcp" if row["transport"] == "fallback" else row["transport"],
        "start_ns": ends["start_ns"],
        "work": {
            "kind": "captured",
            "reverse": row["client_received_bytes"] >= row["server_received_bytes"],
        },
    }
