"""qlogs for qvis: `qlog_version` 0.3 without paths, so a file per path.

A file has a trace of each side. What belongs to no path, such as the handshake's parameters, is in all files of its
connection. Acknowledgements of a path (PATH_ACK, RFC 10069) become those of its file, on whichever path they came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from polypath.errors import PolypathError
from polypath.results import Recording, layout, reading

_SEPARATOR = "\x1e"
_NAMES = {
    "connection_started": "connectivity:connection_started",
    "connection_state_updated": "connectivity:connection_state_updated",
    "connection_closed": "connectivity:connection_closed",
    "mtu_updated": "connectivity:mtu_updated",
    "version_information": "transport:version_information",
    "alpn_information": "transport:alpn_information",
    "parameters_set": "transport:parameters_set",
    "packet_sent": "transport:packet_sent",
    "packet_received": "transport:packet_received",
    "packet_dropped": "transport:packet_dropped",
    "key_updated": "security:key_updated",
    "key_discarded": "security:key_discarded",
    "recovery_parameters_set": "recovery:parameters_set",
    "recovery_metrics_updated": "recovery:metrics_updated",
    "congestion_state_updated": "recovery:congestion_state_updated",
    "packet_lost": "recovery:packet_lost",
}
"""Events as version 0.3 calls them; `tuple_assigned` has no place there."""

_Event = dict[str, Any]


class QlogError(PolypathError, ValueError):
    """A result without qlogs, or one that is damaged; the message is one line."""


def write(recording: Recording, directory: Path, out: Path) -> int:
    """Writes the files into the empty folder `out`; returns how many. Raises QlogError where the run wrote no qlogs."""
    sides: dict[str, list[tuple[_Event, list[_Event]]]] = {}
    files = sorted((directory / layout.QLOG).glob("*.sqlog"))
    try:
        reading.require_room(files, reading.JSON_GROWS)
    except ValueError as error:
        raise QlogError(f"{directory / layout.QLOG}: {error}") from error
    for file in files:
        sides.setdefault(file.stem.rpartition("_")[0], []).append(_records(file))
    if not sides:
        raise QlogError(f"{directory} has no qlogs; the run needs `--qlog` and a connection of QUIC")
    count = 0
    for connection, logs in sides.items():
        try:
            paths = _paths(events for _, events in logs)
            by_path = {path: [_trace(head, events, path) for head, events in logs] for path in paths}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            where = directory / layout.QLOG / connection
            raise QlogError(f"{where}: a record is not as runs write it") from error
        for path, traces in by_path.items():
            title = f"{recording.metadata.scenario}: {connection}, path {path}"
            made = {"qlog_version": "0.3", "qlog_format": "JSON", "title": title, "traces": traces}
            text = json.dumps(made, separators=(",", ":"), ensure_ascii=False)
            (out / f"{connection}_path{path}.qlog").write_text(text + "\n", encoding="utf-8")
            count += 1
    return count


def _records(file: Path) -> tuple[_Event, list[_Event]]:
    """The first record of a JSON text sequence (RFC 7464), and the others. Raises QlogError where one is cut short, or
    there is none."""
    try:
        _, *texts = file.read_text(encoding="utf-8").split(_SEPARATOR)
        head, *events = map(json.loads, texts)
    except ValueError as error:
        raise QlogError(f"{file}: this is no whole qlog") from error
    return head, events


def _paths(logs: Iterator[Sequence[_Event]]) -> list[int]:
    tuples = {event["tuple"] for events in logs for event in events if "tuple" in event}
    return sorted(int(name.removeprefix("p")) for name in tuples)


def _trace(head: _Event, events: Sequence[_Event], path: int) -> _Event:
    trace = head["trace"]
    return {
        "title": f"{trace['title']}, path {path}",
        "vantage_point": trace["vantage_point"],
        "common_fields": {
            "group_id": trace["common_fields"]["group_id"],
            "protocol_type": ["QUIC"],
            "time_format": "relative",
            "reference_time": 0,
        },
        "events": [made for event in events if (made := _event(event, path)) is not None],
    }


def _event(event: _Event, path: int) -> _Event | None:
    name = event["name"].partition(":")[2]
    if name not in _NAMES:
        return None
    data = event["data"]
    if event.get("tuple", f"p{path}") != f"p{path}":
        data = _acknowledgements(data, path)
        if data is None:
            return None
    else:
        data = _data(name, data, path)
    return {"time": event["time"], "name": _NAMES[name], "data": data}


def _acknowledgements(data: Mapping[str, Any], path: int) -> _Event | None:
    """What a packet of another path tells of this one. It has no number here: it is of another space."""
    about = [_frame(frame, path) for frame in data.get("frames", ()) if _acknowledges(frame, path)]
    return {"header": {"packet_type": data["header"]["packet_type"]}, "frames": about} if about else None


def _acknowledges(frame: Mapping[str, Any], path: int) -> bool:
    return bool(frame["frame_type"] == "path_ack" and frame["path_id"] == path)


def _data(name: str, data: _Event, path: int) -> _Event:
    made = {key: value for key, value in data.items() if key != "path_id"}
    if "initiator" in made:
        made["owner"] = made.pop("initiator")
    if "header" in made:
        made["header"] = {key: value for key, value in made["header"].items() if key != "path_id"}
    if "frames" in made:
        made["frames"] = [_frame(frame, path) for frame in made["frames"]]
    if name == "connection_started":
        local, remote = data["local"], data["remote"]
        version = "v4" if "ip_v4" in local else "v6"
        made = {
            "ip_version": version,
            "src_ip": local[f"ip_{version}"],
            "dst_ip": remote[f"ip_{version}"],
            "protocol": "QUIC",
            "src_port": local[f"port_{version}"],
            "dst_port": remote[f"port_{version}"],
        }
    return made


def _frame(frame: Mapping[str, Any], path: int) -> _Event:
    made = dict(frame)
    if _acknowledges(frame, path):
        made["frame_type"] = "ack"
        del made["path_id"]
    raw = made.pop("raw", {})
    if "length" in raw:
        made["length"] = raw["length"]
    if "payload_length" in raw:
        made["payload_length"] = raw["payload_length"]
    return made
