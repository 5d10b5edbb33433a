"""When things happen: the run's end, its start, and events in other words."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import polars as pl

import polypath
from polypath import Recording
from polypath.units import TIME

from .case import Case, planned, ran
from .changes import directions
from .compare import INSTANTS, OF_SEGMENTS, SAMPLED, TIMED, same, same_plans, same_rows, same_tables, without_kinds
from .relation import need, relation, require


def _ns(text: str) -> int:
    return TIME.parse(text)


@relation(
    "A longer run begins with the same rows.",
    "Nothing looks at the run's end in advance.",
)
def longer_duration(case: Case, random: Random) -> None:
    data = case.copy()
    data["duration"] = f"{round(case.plan.view['duration_ns'] * random.uniform(1.05, 1.5))} ns"
    plan = planned(data)
    need(_but_duration(plan.view) == _but_duration(case.plan.view))
    one, other = case.recording, polypath.run(plan)
    end = case.end_ns
    require(other.metadata.end_ns >= end, "the longer run ended earlier")
    for name, column in TIMED.items():
        before = pl.col(column) < end
        same_rows(one.table(name).filter(before), other.table(name).filter(before), name)
    requests = (each.table("requests").filter(pl.col("sent_ns") < end) for each in (one, other))
    answered = pl.col("sent_ns") + pl.col("delay_ns") < end
    known, later = (each.with_columns(delay_ns=pl.when(answered).then(pl.col("delay_ns"))) for each in requests)
    same_rows(known, later, "requests")
    if not case.lasts:
        same(one, other)


def _but_duration(plan: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plan.items() if name != "duration_ns"}


@relation(
    "An event with two changes equals two events at its time with one change each.",
    "Changes of rate, delay, loss, queue and state are made one by one.",
    weight=4,
)
def split_event(case: Case, random: Random) -> None:
    kinds = ("rate", "delay", "loss", "queue", "up")
    several = [
        number
        for number, event in enumerate(case.data.get("event", ()))
        if "link" in event and sum(kind in event for kind in kinds) > 1
    ]
    need(bool(several))
    data = case.copy()
    number = random.choice(several)
    event = data["event"][number]
    common = {key: value for key, value in event.items() if key not in kinds}
    data["event"][number : number + 1] = [common | {kind: event[kind]} for kind in kinds if kind in event]
    same(case.recording, ran(data), events=without_kinds("link-changed"))


@relation(
    "An event of both directions equals one event of each.",
    "The directions of a link are separate channels.",
    weight=2,
)
def event_of_each_direction(case: Case, random: Random) -> None:
    both = [
        number
        for number, event in enumerate(case.data.get("event", ()))
        if "link" in event and "direction" not in event
    ]
    need(bool(both))
    data = case.copy()
    number = random.choice(both)
    event = data["event"][number]
    data["event"][number : number + 1] = [event | {"direction": way} for way in ("forward", "backward")]
    same(case.recording, ran(data), events=without_kinds("link-changed"))


@relation(
    "An event that sets the current values changes nothing.",
    "A link that gets its own rate, delay, loss or state is the same link.",
)
def event_without_effect(case: Case, random: Random) -> None:
    links = case.data.get("link", {})
    touched = {
        (event.get("link"), key)
        for event in case.data.get("event", ())
        for key in event
        if event.get("link") is not None
    }
    fitting = [
        (name, key, value)
        for name, link in links.items()
        if "forward" not in link and "backward" not in link and "conditions" not in link
        for key, value in (*link.items(), ("up", True))
        if key in ("rate", "delay", "loss", "up") and not isinstance(value, dict) and (name, key) not in touched
    ]
    need(bool(fitting))
    name, key, value = random.choice(fitting)
    data = case.copy()
    at = random.randrange(1, case.plan.view["duration_ns"])
    data.setdefault("event", []).append({"at": f"{at} ns", "link": name, key: value})
    same(case.recording, ran(data), events=without_kinds("link-changed"))


@relation(
    "Events in another order of the text give the same plan, if their times differ.",
    "Events happen in the order of their times.",
    weight=2,
)
def events_in_another_order(case: Case, random: Random) -> None:
    events = case.copy().get("event", [])
    times = [_ns(event["at"]) for event in events]
    need(len(events) > 1 and len(set(times)) == len(times))
    same_plans(case.plan, planned({**case.copy(), "event": random.sample(events, len(events))}))


@relation(
    "An event after the last application has ended changes nothing.",
    "The run is over by then.",
    weight=3,
)
def late_event(case: Case, random: Random) -> None:
    last, duration = case.end_ns, case.plan.view["duration_ns"]
    links = list(case.data.get("link", ()))
    need(last + 1 < duration and bool(links))
    data = case.copy()
    at = random.randrange(last + 1, duration)
    data.setdefault("event", []).append({"at": f"{at} ns", "link": random.choice(links), "up": False})
    same(case.recording, ran(data))


#: A whole number of all sampling intervals that are drawn, of the ticks of clocks, and of PIE's updates.
_SHIFT_NS = 3_000_000_000


@relation(
    "If all starts and events come after six seconds instead of three, everything is three seconds later.",
    "Endpoints and queues know only differences of times. Left out are fading channels, traces, controllers "
    "and bridges, which follow the clock, and time 0, which TCP takes for never.",
)
def later_start(case: Case, random: Random) -> None:
    plan = case.plan.view
    need("controller" not in plan and "bridging" not in plan)
    clocked = ("timed-gilbert-elliott",)
    for channel in directions(plan):
        need(channel["loss"]["kind"] not in clocked and "trace" not in channel and "wifi" not in channel)
    one, other = (ran(_later(case, times * _SHIFT_NS)) for times in (1, 2))
    same_tables(_settled(one, _SHIFT_NS), _settled(other, 2 * _SHIFT_NS), without=OF_SEGMENTS)


def _later(case: Case, by_ns: int) -> dict[str, Any]:
    """The scenario with all starts and events later by as much."""
    data = case.copy()
    data["duration"] = f"{case.plan.view['duration_ns'] + by_ns} ns"
    for application in data["application"]:
        application["start"] = f"{_ns(application.get('start', '0 s')) + by_ns} ns"
    for event in data.get("event", ()):
        event["at"] = f"{_ns(event['at']) + by_ns} ns"
    return data


def _settled(recording: Recording, began_ns: int) -> dict[str, pl.DataFrame]:
    """The tables with times since the beginning, without what was sampled up to then."""
    made = {}
    for name, table in recording.tables.items():
        instants = INSTANTS.get(name, ())
        table = table.with_columns(pl.col(column) - began_ns for column in instants)
        if name in SAMPLED:
            table = table.filter(pl.col(TIMED[name]) > 0)
        made[name] = table
    return made
