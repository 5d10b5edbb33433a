"""What does not go together on a link."""

from __future__ import annotations

from collections.abc import Iterator

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


def _mtus(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        sides = directions(link)
        if any(side.icmp is not None and side.mtu is None for side in sides):
            yield Problem(("link", name), f"link.{name}: 'icmp' is about packets longer than 'mtu', and there is none")


def _at_host(channel: Channel) -> bool:
    return channel.queue_at not in (None, "link")


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
        if any(_at_host(side) and side.rate is None and side.wifi is None for side in directions(link)):
            yield Problem(("link", name), f"link.{name}: 'queue_at' is about a queue, and without 'rate' there is none")
        if any(_at_host(side) and side.queue is not None and side.queue.kind in by_flow for side in directions(link)):
            named = " and ".join(f"'{name}'" for name in by_flow)
            message = f"a queue at the host is one for all flows; {named} are at the link"
            yield Problem(("link", name), f"link.{name}: {message}")
        if any(side.queue_at == "host-tbf" and not _leaves_at_known_times(side) for side in directions(link)):
            message = "a host's tbf is drop-tail without burst, duplicates and reordering"
            yield Problem(("link", name), f"link.{name}: {message}")


def _bypasses(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        for side in directions(link):
            if side.bypass and (side.rate is None or side.trace is not None or _at_host(side)):
                message = "'bypass' is of links with a rate of their own, whose queue is at the link"
                yield Problem(("link", name), f"link.{name}: {message}")
                break


def written(link: Link, key: str, name: str) -> Path:
    """Where a link says what holds in a direction, within the link's table."""
    return (key, name) if getattr(getattr(link, key), name) is not None else (name,)


def _bursts(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        for key, side in zip(("forward", "backward"), directions(link), strict=True):
            overhead = ETHERNET_BYTES if side.overhead is None else side.overhead
            longest = (side.mtu or USUAL_MTU) + overhead
            if side.burst and side.burst < longest:
                message = f"link.{name}: a bucket of {SIZE.format(side.burst)} never holds a packet of {longest} bytes"
                path = ("link", name, *written(link, key, "burst"))
                yield Problem(path, f"{message} ('mtu' and 'overhead')", f"{longest} B")


def _traces(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        for key, side in zip(("forward", "backward"), directions(link), strict=True):
            where = f"link.{name}.{key}"
            if side.conditions is not None:
                yield from _conditions(name, key, side, tables)
            if side.trace is None:
                continue
            if side.burst:
                yield Problem(("link", name), f"{where}: a link that follows a trace has no 'burst'")
            if _at_host(side):
                yield Problem(("link", name), f"{where}: a link that follows a trace has its queue at the link")
            for index, event in enumerate(tables.event):
                if event.link == name and event.rate is not None and event.direction in ("both", key):
                    message = f"{where} follows the trace '{side.trace.name}', so that its rate cannot be changed"
                    yield Problem(("event", index, "rate"), message)


def _wifi(tables: Tables) -> Iterator[Problem]:
    for name, link in tables.link.items():
        sides = directions(link)
        stations = [side.wifi for side in sides if side.wifi is not None]
        if not stations:
            continue
        if len(stations) == 1 or stations[0].medium != stations[1].medium:
            yield Problem(("link", name), f"link.{name}: both directions are Wi-Fi on one medium, or neither")
        for key, side in zip(("forward", "backward"), sides, strict=True):
            own = getattr(link, key)
            path: Path = ("link", name, key) if own.wifi is not None else ("link", name)
            if side.wifi is not None:
                yield from _station(path, side.wifi, tables)
                yield from _beside_wifi(name, key, side, tables)


def _station(path: Path, wifi: Wifi, tables: Tables) -> Iterator[Problem]:
    path = (*path, "wifi")
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


def _beside_wifi(name: str, key: str, side: Channel, tables: Tables) -> Iterator[Problem]:
    where = f"link.{name}.{key}"
    if side.rate is not None:
        yield Problem(("link", name), f"{where}: Wi-Fi has a rate of its own; take 'rate' away")
    if side.burst:
        yield Problem(("link", name), f"{where}: a link over Wi-Fi has no 'burst'")
    if _at_host(side):
        yield Problem(("link", name), f"{where}: a link over Wi-Fi has its queue at the link")
    if side.conditions is not None and "rate_bps" in side.conditions.columns():
        yield Problem(("link", name), f"{where}: Wi-Fi has a rate of its own, so that 'conditions' cannot give it")
    for index, event in enumerate(tables.event):
        if event.link == name and event.rate is not None and event.direction in ("both", key):
            yield Problem(("event", index, "rate"), f"{where} is Wi-Fi, so that its rate cannot be changed")


_COLUMNS = {"rate_bps": "rate", "delay_ns": "delay", "loss": "loss"}
"""What columns of conditions set, as events name it."""


def _conditions(name: str, key: str, side: Channel, tables: Tables) -> Iterator[Problem]:
    assert side.conditions is not None
    where, columns = f"link.{name}.{key}", side.conditions.columns()
    if side.trace is not None and "rate_bps" in columns:
        message = f"{where} follows the trace '{side.trace.name}', so that 'conditions' cannot give its rate"
        yield Problem(("link", name), message)
    for index, event in enumerate(tables.event):
        for what in (_COLUMNS[column] for column in sorted(columns)):
            if event.link == name and getattr(event, what) is not None and event.direction in ("both", key):
                message = f"{where} has its {what} from '{side.conditions.name}'"
                yield Problem(("event", index, what), f"{message}; give that file a row at the event's time")
    try:
        for _ in side.conditions.changes(tables.duration):
            pass
    except ScenarioError as error:
        yield Problem(("link", name), str(error))


def _leaves_at_known_times(channel: Channel) -> bool:
    """Whether it is known as a packet enters the queue when it leaves."""
    drop_tail = channel.queue is None or channel.queue.kind == "drop-tail"
    return drop_tail and not (channel.burst or channel.duplicate or channel.reorder)
