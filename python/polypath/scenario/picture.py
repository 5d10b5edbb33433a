"""A picture of a scenario's topology in text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polypath import units
from polypath.scenario.network import Channel, Host, Link, Router
from polypath.scenario.tables import Tables, attachments, between_hosts, directions, nodes, split_end
from polypath.scenario.topologies import Topology
from polypath.scenario.traces import DeliveryTrace
from polypath.scenario.wifi import Wifi


def describe_topology(tables: Tables) -> str:
    """The topology as text: a drawing when the nodes follow each other in a row, else a list of links.

    A `[topology]` has its own picture, with the links that the scenario adds.
    """
    if tables.topology is not None:
        return "\n".join(filter(None, (tables.topology.picture(), _channels(tables.topology), _list(tables))))
    chain = _chain(tables)
    return _draw(tables, chain) if chain else _list(tables)


def _channels(topology: Topology) -> str:
    """What the links of a topology are, and those of its hosts where they differ."""
    inner, access = _label(topology.link()), _label(topology.access_link())
    if inner == access:
        return f"links: {inner}" if inner else ""
    return "\n".join(f"{what}: {label}" for what, label in (("links", inner), ("hosts' links", access)) if label)


def _label(link: Link, *, backup: bool = False) -> str:
    forward, backward = directions(link)
    parts = []
    if forward.rate == backward.rate:
        parts += [_rate(forward)] if forward.rate is not None else []
    else:
        parts.append(f"{_rate(forward)} forth, {_rate(backward)} back")
    parts += [_wifi(forward.wifi)] if forward.wifi is not None else []
    parts += [conditions.name] if (conditions := link.conditions) is not None else []
    round_trip = (forward.delay or 0) + (backward.delay or 0)
    if round_trip:
        parts.append(f"{units.TIME.shown(round_trip)} RTT")
    if forward.loss is not None:
        loss = forward.loss.planned()
        parts += _loss(loss)
    parts += [middlebox.name for middlebox in link.middlebox or []]
    if backup:
        parts.append("backup")
    return ", ".join(parts)


def _loss(planned: Mapping[str, Any]) -> list[str]:
    match planned["kind"]:
        case "none":
            return []
        case "random":
            return [f"{units.format_share(planned['probability'])} loss"] if planned["probability"] else []
        case "periodic":
            return [f"1 of {planned['every']} lost"]
    return ["bursty loss"]


def _rate(channel: Channel) -> str:
    if isinstance(channel.rate, DeliveryTrace):
        mean = channel.rate.opportunities().mean_rate_bps(channel.overhead or 0)
        return f"{channel.rate.name} ({mean / 1e6:.3g} Mbps mean)"
    return units.RATE.shown(channel.rate) if channel.rate is not None else "any rate"


def _wifi(wifi: Wifi) -> str:
    indices = [str(state.mcs) for state in wifi.chain]
    on = "" if wifi.medium is None else f" on {wifi.medium}"
    return f"Wi-Fi MCS {', '.join(dict.fromkeys(indices))}{on}"


def _backup(tables: Tables, name: str) -> bool:
    known = nodes(tables)
    for node, interface in attachments(tables)[name]:
        table = known.get(node)
        if isinstance(table, Host | Router) and interface in table.interface and table.interface[interface].backup:
            return True
    return False


def _chain(tables: Tables) -> list[tuple[str, list[str]]] | None:
    """Nodes in a row, each with the names of the links to the next one; None when the topology is no such row."""
    between: dict[frozenset[str], list[str]] = {}
    neighbours: dict[str, list[str]] = {name: [] for name in nodes(tables)}
    for name, link in tables.link.items():
        a, b = (split_end(end)[0] for end in link.ends)
        pair = frozenset((a, b))
        if pair not in between:
            neighbours[a].append(b)
            neighbours[b].append(a)
        between.setdefault(pair, []).append(name)
    tips = [name for name, near in neighbours.items() if len(near) == 1]
    if len(tips) != 2 or any(len(near) > 2 for near in neighbours.values()):
        return None
    clients = {application.client for _, application in between_hosts(tables)}
    here = next((tip for tip in tips if tip in clients), tips[0])
    row: list[tuple[str, list[str]]] = []
    before = ""
    while here:
        after = next((near for near in neighbours[here] if near != before), "")
        row.append((here, between.get(frozenset((here, after)), [])))
        before, here = here, after
    return row if len(row) == len(neighbours) else None


def _draw(tables: Tables, chain: list[tuple[str, list[str]]]) -> str:
    half = max(len(links) for _, links in chain) // 2
    rows = [""] * (2 * half + 1)
    for node, links in chain:
        width = max(len(row) for row in rows)
        rows = [row.ljust(width) for row in rows]
        rows = [row + (node if number == half else " " * len(node)) for number, row in enumerate(rows)]
        if not links:
            continue
        labels = [_label(tables.link[name], backup=_backup(tables, name)) for name in links]
        room = max(len(label) for label in labels)
        places = list(range(half - len(links) // 2, half + len(links) // 2 + 1))
        if len(links) % 2 == 0:
            places.remove(half)
        for place, label in zip(places, labels, strict=True):
            text = f" {label} " if label else ""
            line = text.center(room + 18, "-")
            rows[place] += f" {line} " if place == half else f"|{line}|"
    return "\n".join(row.rstrip() for row in rows)


def _list(tables: Tables) -> str:
    lines = []
    for name, ends in attachments(tables).items():
        a, b = (f"{node}:{interface}" for node, interface in ends)
        label = _label(tables.link[name], backup=_backup(tables, name))
        lines.append((name, a, f"---- {label} ----" if label else "----", b))
    widths = [max((len(line[column]) for line in lines), default=0) for column in range(3)]
    return "\n".join(
        f"{name.ljust(widths[0])}  {a.rjust(widths[1])} {label.center(widths[2], '-')} {b}"
        for name, a, label, b in lines
    )
