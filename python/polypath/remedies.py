"""Remedies for the causes of an account: the same run without one cause.

A remedy changes the plan so that its cause is gone, and the run is made again. The gain is what the connection then
carries more in the same time. A transfer that ends gains time instead, which counts as what its links could have
carried in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polypath import engines
from polypath.engines import EngineError, Options
from polypath.results import Recording, account, metrics
from polypath.results.account import Account
from polypath.results.metrics import SECOND, Connection
from polypath.scenario import Plan

_Data = dict[str, Any]

#: More than any connection here can use.
_AMPLE_BYTES: Final = 1 << 30
_UNCOUPLED: Final = "reno"


@dataclass(frozen=True)
class Case:
    """A cause whose charges one remedy takes away."""

    cause: str
    #: The link that dropped or lost packets, or was down.
    at: str | None
    bytes: int


@dataclass(frozen=True)
class Trial:
    """What came of a remedy."""

    case: Case
    remedy: str
    #: By so many bytes the charges of the connection fell.
    gained_bytes: int


@dataclass(frozen=True)
class _Where:
    """The connection that is explained, in its plan."""

    application: int
    sender: str


#: Changes a plan in place.
_Change = Callable[[_Data, _Where, Case], None]


def cases(account: Account) -> list[Case]:
    """The causes of an account, over all paths, costliest first."""
    found: dict[tuple[str, str | None], int] = {}
    for each in account.charges:
        key = each.cause, each.at
        found[key] = found.get(key, 0) + each.bytes
    return sorted((Case(*key, count) for key, count in found.items()), key=lambda it: -it.bytes)


def has_remedy(case: Case) -> bool:
    """Whether the cause can be taken away from a plan."""
    return case.cause in _REMEDIES


def verify(recording: Recording, connection: Connection, found: Sequence[Case]) -> Iterator[Trial]:
    """Runs again without each of these causes. If there are several remedies, the best counts. Raises EngineError."""
    where = _Where(connection.application, connection.sender)
    for case in found:
        best: Trial | None = None
        for name, change in _REMEDIES[case.cause]:
            data = Plan(dict(recording.plan)).data
            change(data, where, case)
            try:
                other = engines.get(recording.metadata.engine).run(Plan(data), Options(account=True))
            except EngineError:
                continue  # This transport, or this engine, has no such way.
            trial = Trial(case, name, _gained(recording, other, connection))
            if best is None or trial.gained_bytes > best.gained_bytes:
                best = trial
        if best is None:
            raise EngineError(f"no run without {case.cause} can be made of this plan")
        yield best


def _gained(recording: Recording, other: Recording, of: Connection) -> int:
    now = next(each for each in metrics.connections(other) if each.application == of.application)
    before, after = account.of_connection(recording, of), account.of_connection(other, now)
    if before is None or after is None:
        duration = (of.until_ns - of.start_ns) / SECOND
        return round((_rate(now) - _rate(of)) * duration)
    saved = before.capacity_bytes - after.capacity_bytes if of.finished or now.finished else 0
    return after.delivered_bytes - before.delivered_bytes + saved


def _rate(of: Connection) -> float:
    """Bytes a second."""
    duration = of.until_ns - of.start_ns
    return of.bytes * SECOND / duration if duration else 0.0


def _stacks(data: _Data, where: _Where) -> Iterator[_Data]:
    """The stacks of both ends."""
    application = data["applications"][where.application]
    for side in ("client", "server"):
        yield application.get(f"{side}_stack") or data["nodes"][application[side]]["stack"]


def _set(**settings: Any) -> _Change:
    def change(data: _Data, where: _Where, _case: Case) -> None:
        for stack in _stacks(data, where):
            stack.update(settings)

    return change


def _named(kind: str, name: str) -> _Change:
    """Another algorithm, with its defaults."""
    return _set(**{kind: {"name": name, "parameters": {}}})


def _directions(data: _Data, case: Case) -> Iterator[_Data]:
    for link in data["links"]:
        if link["name"] == case.at:
            yield from (link["forward"], link["backward"])


def _events_of(data: _Data, case: Case) -> Iterator[_Data]:
    number = [link["name"] for link in data["links"]].index(str(case.at))
    for event in data["events"]:
        if event["action"]["kind"] == "link" and event["action"]["link"] == number:
            yield event["action"]


def _lose_nothing(data: _Data, _where: _Where, case: Case) -> None:
    for side in _directions(data, case):
        side["loss"] = {"kind": "none"}
    for action in _events_of(data, case):
        action.pop("loss", None)


def _keep_order(data: _Data, _where: _Where, _case: Case) -> None:
    """On every link: the sender does not know which one changed the order."""
    for link in data["links"]:
        for side in (link["forward"], link["backward"]):
            side["reorder"] = 0.0


def _queue(delay_s: float) -> _Change:
    """A queue that is full when a packet waits so long in it."""

    def change(data: _Data, _where: _Where, case: Case) -> None:
        for side in _directions(data, case):
            if side["rate_bps"] is not None:
                room = round(side["rate_bps"] * delay_s / 8)
                side["queue"] = {"kind": "drop-tail", "packets": None, "bytes": room}
        for action in _events_of(data, case):
            action.pop("queue", None)

    return change


def _mark_nothing(delay_s: float) -> _Change:
    """No ECN, and queues of this length where queues would mark."""

    def change(data: _Data, where: _Where, case: Case) -> None:
        _NO_ECN(data, where, case)
        for link in data["links"]:
            if any(link[side]["queue"]["kind"] != "drop-tail" for side in ("forward", "backward")):
                _queue(delay_s)(data, where, Case(case.cause, link["name"], case.bytes))

    return change


def _stay_up(data: _Data, _where: _Where, case: Case) -> None:
    for side in _directions(data, case):
        side["up"] = True
        if _is_dark(side["loss"]):
            side["loss"] = {"kind": "none"}
    for action in _events_of(data, case):
        action.pop("up", None)
        if _is_dark(action.get("loss")):
            action.pop("loss")
    (link,) = (link for link in data["links"] if link["name"] == case.at)
    ends = [(end["node"], end["interface"]) for end in (link["a"], link["b"])]
    data["events"] = [
        event
        for event in data["events"]
        if event["action"]["kind"] != "interface" or (event["action"]["node"], event["action"]["interface"]) not in ends
    ]


def _is_dark(loss: _Data | None) -> bool:
    """Whether it leaves no packet, which an account takes for a link that is down."""
    return loss is not None and loss["kind"] == "random" and bool(loss["probability"] >= 1)


def _be_alone(data: _Data, where: _Where, _case: Case) -> None:
    data["applications"] = [
        # A place in the list is a name.
        each if number == where.application else {**each, "start_ns": data["duration_ns"]}
        for number, each in enumerate(data["applications"])
    ]


def _no_backup(data: _Data, _where: _Where, _case: Case) -> None:
    for node in data["nodes"]:
        for interface in node["interfaces"]:
            interface["backup"] = False
    data["events"] = [each for each in data["events"] if each["action"]["kind"] != "priority"]


_AMPLE: Final[_Data] = {"receive_buffer": [_AMPLE_BYTES] * 3, "send_buffer": [_AMPLE_BYTES] * 3}
_BUFFERS: Final = _set(**_AMPLE)
_NO_ECN: Final = _set(ecn=False)
_LARGE: Final[_Data] = {"initial_window": 1000}
_SCHEDULERS: Final = tuple(
    (f"scheduler {name}", _named("scheduler", name)) for name in ("default", "roundrobin", "blest", "ecf", "redundant")
)
_REMEDIES: Final[Mapping[str, Sequence[tuple[str, _Change]]]] = {
    "random-loss": (("no loss", _lose_nothing),),
    "queue-loss": tuple((f"a queue of {delay} ms", _queue(delay / 1e3)) for delay in (50, 200, 1000)),
    "down": (("the link stays up", _stay_up),),
    "receive-window": (("ample buffers", _BUFFERS),),
    "send-buffer": (("ample buffers", _BUFFERS),),
    "coupling": (("uncoupled congestion control", _named("congestion", _UNCOUPLED)),),
    "controller": tuple(
        (f"congestion control {name}", _named("congestion", name)) for name in ("cubic", "reno", "bbr")
    ),
    "pacing": tuple((f"congestion control {name}", _named("congestion", name)) for name in ("cubic", "reno")),
    "reordering": (("packets in order", _keep_order),),
    "mark": (("no ECN", _NO_ECN), ("no ECN, queues of 200 ms", _mark_nothing(0.2))),
    "slow-start": (
        ("an initial window of 1000 packets", _set(**_LARGE)),
        # A receive window that is tuned grows with the sender's.
        ("an initial window of 1000 packets, ample buffers", _set(**_LARGE, **_AMPLE)),
    ),
    "scheduler": _SCHEDULERS,
    "reinjected": _SCHEDULERS[:-1],
    "others": (("no other traffic", _be_alone),),
    "backup": (("no backup", _no_backup),),
    "unused": (("a full mesh of subflows", _named("path_manager", "fullmesh")),),
    "held": (("no Nagle, no cork", _set(nagle=False, cork=False)),),
}
