"""Combinations that a link does not support."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polypath.scenario.conditions import Conditions
from polypath.scenario.declared import tables as models
from polypath.scenario.errors import Problem, ScenarioError, unknown_at
from polypath.scenario.models import Discipline
from polypath.scenario.network import ETHERNET_BYTES, USUAL_MTU, Channel, Link
from polypath.scenario.positions import Path
from polypath.scenario.tables import Tables, directions, split_end
from polypath.scenario.wifi import Wifi
from polypath.units import SIZE


def link_problems(tables: Tables) -> Iterator[Problem]:
    """What is wrong with each link on its own."""
    for check in (_mtus, _queues, _bypasses, _bursts, _traces, _wifi):
        yield from check(tables)


def written(link: Link, key: str, name: str) -> Path:
    """Where a link says what holds in a direction, within the link's table."""
    return (key, name) if getattr(getattr(link, key), name) is not None else (name,)


@dataclass(frozen=True)
class _Side:
    """A direction of a link, with what the link says of both."""

    name: str
    link: Link
    key: str
    channel: Channel

    def problem(self, setting: str, message: str, hint: str | None = None) -> Problem:
        """A problem with a setting, at its place; of both directions it is one if the link says it of both."""
        path = ("link", self.name, *written(self.link, self.key, setting))
        return Problem(path, f"{self.of(setting)}: {message}", hint)

    def of(self, setting: str) -> str:
        """The table that has the setting, "link.path0"."""
        return ".".join(("link", self.name, *map(str, written(self.link, self.key, setting)[:-1])))

    @property
    def begin(self) -> str:
        """The node that sends."""
        return split_end(self.link.ends[0 if self.key == "forward" else 1])[0]


def _sides(tables: Tables) -> Iterator[_Side]:
    for name, link in tables.link.items():
        for key, channel in zip(("forward", "backward"), directions(link), strict=True):
            yield _Side(name, link, key, channel)


def _mtus(tables: Tables) -> Iterator[Problem]:
    for side in _sides(tables):
        if side.channel.icmp is not None and side.channel.mtu is None:
            yield side.problem("icmp", "'icmp' is about packets longer than 'mtu', and there is none")


def _at_host(channel: Channel) -> bool:
    return channel.queue_at not in (None, "link")


def _begins_in_host(side: _Side, tables: Tables) -> bool:
    """Whether the queue is at the host that sends; where none does, `queue_at` of the whole link is not about it."""
    return _at_host(side.channel) and side.begin in tables.host


def _queues(tables: Tables) -> Iterator[Problem]:
    by_flow = [name for name, model in models(Discipline).items() if "flows" in model.model_fields]
    for name, link in tables.link.items():
        ends = [split_end(end)[0] for end in link.ends]
        hosts = [end for end in ends if end in tables.host]
        if _at_host(link) and not hosts:
            yield Problem(("link", name, "queue_at"), f"link.{name}: no end is a host whose queue it could be")
        for key, end in zip(("forward", "backward"), ends, strict=True):
            if _at_host(getattr(link, key)) and end not in hosts:
                message = f"link.{name}.{key}: the queue cannot be at the host: '{end}' is none"
                yield Problem(("link", name, key, "queue_at"), message)
    *first, last = (f"'{name}'" for name in by_flow)
    named = f"{', '.join(first)} and {last}"
    one_for_all = f"a queue at the host is one for all flows; {named} are at the link"
    known_times = "a host's tbf is drop-tail without burst, duplicates and reordering"
    given = rates_given(tables)
    for side in _sides(tables):
        channel = side.channel
        if not _begins_in_host(side, tables):
            continue
        if (side.name, side.key) not in given and not has_rate_of_its_own(channel):
            yield side.problem("queue_at", "'queue_at' is about a queue, and without 'rate' there is none")
        if channel.queue is not None and channel.queue.kind in by_flow:
            yield side.problem("queue", one_for_all)
        if channel.queue_at == "host-tbf" and not _leaves_at_known_times(channel):
            yield side.problem("queue_at", known_times)
        for index in _events(side, tables, "queue"):
            changed = tables.event[index].queue
            assert changed is not None
            if changed.kind in by_flow:
                yield Problem(("event", index, "queue"), f"{side.of('queue_at')}: {one_for_all}")
            elif channel.queue_at == "host-tbf" and changed.kind != "drop-tail":
                yield Problem(("event", index, "queue"), f"{side.of('queue_at')}: {known_times}")


def _bypasses(tables: Tables) -> Iterator[Problem]:
    for side in _sides(tables):
        channel = side.channel
        if channel.bypass and (channel.rate is None or channel.trace is not None or _begins_in_host(side, tables)):
            message = "'bypass' is of links with a rate of their own, whose queue is at the link"
            yield side.problem("bypass", message)


def _bursts(tables: Tables) -> Iterator[Problem]:
    given = rates_given(tables)
    for side in _sides(tables):
        channel = side.channel
        if channel.burst and (side.name, side.key) not in given and not has_rate_of_its_own(channel):
            yield side.problem("burst", "'burst' is about a rate, and there is none")
        overhead = ETHERNET_BYTES if channel.overhead is None else channel.overhead
        longest = (channel.mtu or USUAL_MTU) + overhead
        if channel.burst and channel.burst < longest:
            message = f"a bucket of {SIZE.format(channel.burst)} never holds a packet of {longest} bytes"
            yield side.problem("burst", f"{message} ('mtu' and 'overhead')", f"{longest} B")


def has_rate_of_its_own(channel: Channel) -> bool:
    """Whether anything but an event gives it one, at some time."""
    if channel.rate is not None or channel.trace is not None or channel.wifi is not None:
        return True
    return channel.conditions is not None and "rate_bps" in channel.conditions.columns()


def rates_given(tables: Tables) -> set[tuple[str, str]]:
    """The links, and of each the directions, to which an event gives a rate."""
    return {
        (event.link, key)
        for event in tables.event
        if event.link is not None and event.rate is not None
        for key in ("forward", "backward")
        if event.direction in ("both", key)
    }


def _traces(tables: Tables) -> Iterator[Problem]:
    for side in _sides(tables):
        channel = side.channel
        if channel.conditions is not None:
            yield from _conditions(side, channel.conditions, tables)
        if channel.trace is None:
            continue
        if channel.burst:
            yield side.problem("burst", "a link that follows a trace has no 'burst'")
        if _begins_in_host(side, tables):
            yield side.problem("queue_at", "a link that follows a trace has its queue at the link")
        for index in _events(side, tables, "rate"):
            message = f"{side.of('rate')} follows the trace '{channel.trace.name}', so that its rate cannot be changed"
            yield Problem(("event", index, "rate"), message)


def _events(side: _Side, tables: Tables, what: str) -> Iterator[int]:
    """The events that change something of a direction."""
    for index, event in enumerate(tables.event):
        if event.link == side.name and getattr(event, what) is not None and event.direction in ("both", side.key):
            yield index


def _wifi(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        stations = [channel.wifi for channel in directions(link) if channel.wifi is not None]
        if stations and (len(stations) == 1 or stations[0].medium != stations[1].medium):
            yield Problem(("link", name), f"link.{name}: both directions are Wi-Fi on one medium, or neither")
    for side in _sides(tables):
        if side.channel.wifi is not None:
            path = ("link", side.name, *written(side.link, side.key, "wifi"))
            yield from _station(path, side.channel.wifi, tables)
            yield from _beside_wifi(side, tables)


def _station(path: Path, wifi: Wifi, tables: Tables) -> Iterator[Problem]:
    if wifi.medium is not None and wifi.medium not in tables.medium:
        if tables.medium:
            yield unknown_at((*path, "medium"), "medium", wifi.medium, tables.medium)
        else:
            message = f"unknown medium '{wifi.medium}'; there is none yet: add [medium.{wifi.medium}]"
            yield Problem((*path, "medium"), message)
        return
    standard = wifi.of(tables.medium)
    if wifi.aggregate is not None and standard == "802.11a":
        yield Problem((*path, "aggregate"), "802.11a sends one packet at a time, so that it has no 'aggregate'")
    rates = wifi.rates_bps(standard)
    known = [mcs for mcs, rate in enumerate(rates) if rate is not None]
    streams = f" with {wifi.streams} streams" if wifi.streams > 1 else ""
    what = f"{standard} in {wifi.width}{streams} and a guard interval of {wifi.guard}"
    if not known:
        yield Problem(path, f"there is no {what}")
        return
    for number, state in enumerate(wifi.chain):
        if state.mcs not in known:
            place = ("states", number, "mcs") if wifi.states is not None else ("mcs",)
            hint = str(min(known, key=lambda mcs: abs(mcs - state.mcs)))
            yield Problem((*path, *place), f"no MCS {state.mcs} in {what}", hint)


def _beside_wifi(side: _Side, tables: Tables) -> Iterator[Problem]:
    channel = side.channel
    if channel.rate is not None:
        yield side.problem("rate", "Wi-Fi has a rate of its own; take 'rate' away")
    if channel.burst:
        yield side.problem("burst", "a link over Wi-Fi has no 'burst'")
    if _begins_in_host(side, tables):
        yield side.problem("queue_at", "a link over Wi-Fi has its queue at the link")
    if channel.conditions is not None and "rate_bps" in channel.conditions.columns():
        yield side.problem("conditions", "Wi-Fi has a rate of its own, so that 'conditions' cannot give it")
    for index in _events(side, tables, "rate"):
        message = f"{side.of('wifi')} is Wi-Fi, so that its rate cannot be changed"
        yield Problem(("event", index, "rate"), message)


_COLUMNS = {"rate_bps": "rate", "delay_ns": "delay", "loss": "loss"}
"""What columns of conditions set, as events name it."""


def _conditions(side: _Side, conditions: Conditions, tables: Tables) -> Iterator[Problem]:
    columns = conditions.columns()
    trace = side.channel.trace
    if trace is not None and "rate_bps" in columns:
        message = f"it follows the trace '{trace.name}', so that 'conditions' cannot give its rate"
        yield side.problem("conditions", message)
    for what in (_COLUMNS[column] for column in sorted(columns)):
        for index in _events(side, tables, what):
            message = f"{side.of('conditions')} has its {what} from '{conditions.name}'"
            yield Problem(("event", index, what), f"{message}; give that file a row at the event's time")
    try:
        for _ in conditions.changes(tables.duration):
            pass
    except ScenarioError as error:
        yield side.problem("conditions", str(error))


def _leaves_at_known_times(channel: Channel) -> bool:
    """Whether it is known as a packet enters the queue when it leaves."""
    drop_tail = channel.queue is None or channel.queue.kind == "drop-tail"
    return drop_tail and not (channel.burst or channel.duplicate or channel.reorder)
