"""The registries with an entry more of each kind.

`tests/test_extended.py` shows the Python package such registries. Those of `ADDED` are written in Rust in
`examples/algorithms`; `tests/test_extension.py` holds what a native module with them says against this.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from polypath import registry

SOURCE: Final = "docs/extend.md"


def _declared(name: str, field: str, kind: str, description: str, least: float | None, **more: Any) -> dict[str, Any]:
    """A line of `model!`; `most` is its upper bound."""
    most = more.pop("most", None)
    bounds = {"minimum": least, "maximum": most}
    own = {"name": name, "field": field, "kind": kind, "description": description, "exclusive": False, "real": False}
    return own | bounds | more


ENTRIES: Final[Mapping[registry.Kind, Mapping[str, Any]]] = {
    "scheduler": {
        "name": "first-ready",
        "description": "The first path with room",
        "source": SOURCE,
        "not_on_noq": "it has one of its own, which cannot be replaced",
        "parameters": [_declared("skip", "skip", "integer", "paths to pass over", 0.0, most=9.0, default=0)],
    },
    "congestion": {
        "name": "aimd",
        "description": "Additive increase and multiplicative decrease on each path by itself",
        "source": "Chiu and Jain, Computer Networks and ISDN Systems 17(1) 1989",
        "not_on_noq": "it has none of that name",
        "parameters": [
            _declared("increase", "increase", "integer", "packets that a round trip adds", 1.0, most=100.0, default=1),
            _declared(
                "decrease",
                "decrease",
                "number",
                "part of the window that a loss leaves",
                0.1,
                most=0.9,
                default=0.5,
                real=True,
            ),
        ],
    },
    "path-manager": {
        "name": "later",
        "description": "A subflow from each further address of the client, some time after the connection is there",
        "source": SOURCE,
        "parameters": [
            _declared("wait_ms", "wait_ms", "integer", "milliseconds to wait", 0.0, most=100_000.0, default=1_000)
        ],
    },
    "queue": {
        "name": "lifo",
        "description": "last in, first out",
        "source": SOURCE,
        "parameters": [
            _declared("limit", "limit", "packets", "Most packets.", 1.0, default=100),
            _declared(
                "patience", "patience_ns", "period", "How long a packet may have waited.", 1.0, default=7_000_000_000
            ),
        ],
    },
    "loss": {
        "name": "every-nth",
        "description": "loses one packet in so many",
        "source": SOURCE,
        "parameters": [_declared("every", "every", "integer", "One in so many.", 1.0)],
    },
    "application": {
        "name": "drip",
        "description": "the same bytes again and again",
        "source": SOURCE,
        "transports": ["mptcp", "tcp", "mpquic", "quic"],
        "parameters": [
            _declared("drop", "drop_bytes", "size", "Bytes of a drop.", 1.0, default=100),
            _declared("gap", "gap_ns", "time", "Time from one drop to the next.", 0.0),
            _declared("count", "count", "integer", "Number of drops.", 1.0, most=100.0, default=3),
            _declared(
                "told",
                "told",
                "text",
                "Who hears of the last one.",
                None,
                choices=["nobody", "everybody"],
                default="nobody",
            ),
            _declared(
                "duration",
                "duration_ns",
                "period",
                "How long it goes on; left out: to the end of the run.",
                1.0,
                default=None,
                rest=True,
            ),
        ],
    },
}
#: The kinds of which one can be added to a native module.
ADDED: Final[tuple[registry.Kind, ...]] = ("scheduler", "congestion", "path-manager", "queue", "loss")

#: A setting of the transport, which every profile describes.
NAPS: Final = _declared(
    "naps", "naps", "integer", "Naps of whoever acknowledges.", None, most=9.0, default=0, only="tcp", seldom=True
)


#: Of a queue discipline and a loss model, what a scenario has and what its plan has.
LIFO: Final = {"kind": "lifo", "patience": "20 ms"}
LIFO_PLANNED: Final = {"kind": "lifo", "limit": 100, "patience_ns": 20_000_000}
NTH: Final = {"kind": "every-nth", "every": 50}
NTH_PLANNED: Final = {"kind": "every-nth", "every": 50}

_NETWORK: Final = {
    "duration": "9 s",
    "host": {"client": {}, "server": {}},
    "link": {"path": {"ends": ["client", "server"], "rate": "10 Mbps", "delay": "5 ms"}},
}
#: A scenario with the application, and one with the setting.
DRIP: Final[Mapping[str, Any]] = {
    **_NETWORK,
    "application": [{"kind": "drip", "start": "1 s", "drop": "2 kB", "gap": "20 ms"}],
}
NAPPED: Final[Mapping[str, Any]] = {
    **_NETWORK,
    "defaults": {"naps": 4},
    "host": {"client": {}, "server": {"naps": 0}},
    "application": [{"kind": "bulk", "transport": "tcp", "size": "20 kB"}],
}


def described(kind: registry.Kind, read: Callable[[registry.Kind], str] = registry.read) -> str:
    """What the registry says of a kind, with the entry more."""
    entries: list[dict[str, Any]] = json.loads(read(kind))
    if kind == "profile":
        for each in entries:
            each["parameters"].append(NAPS)
            each["settings"]["naps"] = NAPS["default"]
    return json.dumps([*entries, *([ENTRIES[kind]] if kind in ENTRIES else [])])


def made(*scenarios: Mapping[str, Any]) -> dict[str, Any]:
    """What the package makes of them: plans or what is wrong, and its schema. In a process of its own, since tables are
    made of the registry when they are imported."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.extended"],
        cwd=Path(__file__).resolve().parents[1],
        input=json.dumps(scenarios),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def _make() -> None:
    read = registry.read
    registry.read = lambda kind: described(kind, read)
    # The native module has its own registries.
    registry.fault = lambda kind, name, given: None
    from polypath.formats import plan as plans
    from polypath.scenario import Scenario, ScenarioError, json_schema

    vars(plans)["_core"] = SimpleNamespace(check=lambda plan: None)
    planned, again, wrong = [], [], []
    for written in json.load(sys.stdin):
        try:
            planned.append(Scenario.from_data(written).plan())
        except ScenarioError as error:
            wrong.append(str(error))
        else:
            again.append(plans.scenario_of(planned[-1], "the plan").plan().json())
    schema = json_schema()
    print(json.dumps({"plans": [each.json() for each in planned], "again": again, "wrong": wrong, "schema": schema}))


if __name__ == "__main__":
    _make()
