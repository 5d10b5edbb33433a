"""What a tunnel needs of a scenario: a link of its own between its hosts, and another way for its packets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polypath.scenario.errors import Problem, unknown_at
from polypath.scenario.facing import facing
from polypath.scenario.links import written
from polypath.scenario.models import Discipline
from polypath.scenario.network import Channel, Link
from polypath.scenario.tables import Tables, application_names, attachments, between_hosts, directions, split_end
from polypath.scenario.traffic import Tunnel

#: What a tunnel's link may say of its packets: the rest follows from the connection that carries them.
_OF_A_TUNNEL: Final = ("mtu", "icmp", "up")
_CHANGES: Final = ("rate", "delay", "loss", "queue")


def tunnels(tables: Tables) -> dict[str, Tunnel]:
    """The tunnels by their links."""
    return {one.link: one for _, one in between_hosts(tables) if isinstance(one, Tunnel)}


def tunnel_problems(tables: Tables) -> Iterator[Problem]:
    """What is wrong with tunnels and their links, where the names of nodes hold."""
    names = application_names(tables)
    taken: dict[str, str] = {}
    found = [(index, one) for index, one in between_hosts(tables) if isinstance(one, Tunnel)]
    for index, tunnel in found:
        path, name = ("application", index), names[index]
        if tunnel.matrix is not None:
            yield Problem((*path, "matrix"), "a tunnel is one connection, between two hosts")
            continue
        if tunnel.link not in tables.link:
            yield unknown_at((*path, "link"), "link", tunnel.link, tables.link)
            continue
        if tunnel.link in taken:
            yield Problem((*path, "link"), f"link '{tunnel.link}' has a tunnel already, '{taken[tunnel.link]}'")
            continue
        taken[tunnel.link] = name
        link = tables.link[tunnel.link]
        one, two = (split_end(end)[0] for end in link.ends)
        if {one, two} != {tunnel.client, tunnel.server}:
            message = f"link '{tunnel.link}' is between '{one}' and '{two}'"
            yield Problem((*path, "link"), f"{message}, and the tunnel between '{tunnel.client}' and '{tunnel.server}'")
            continue
        yield from _link(tables, tunnel.link, link, name)
        for ruler, what in ((tables.controller, "a controller knows"), (tables.bridging, "bridges know")):
            if ruler is not None:
                yield Problem(path, f"{what} no tunnels; take '{name}' away")
        if tables.routing == "spread":
            yield Problem(path, f"routing 'spread' knows no tunnels; take '{name}' away or choose another")
    if found and len(found) == len(between_hosts(tables)):
        yield Problem(("application", found[0][0]), "a tunnel carries packets of other applications, and there is none")


def _link(tables: Tables, name: str, link: Link, tunnel: str) -> Iterator[Problem]:
    own = f"the packets of link.{name} go through tunnel '{tunnel}'"
    for key, side in zip(("forward", "backward"), directions(link), strict=True):
        for setting in Channel.model_fields:
            if setting not in _OF_A_TUNNEL and _says_something(getattr(side, setting)):
                path = ("link", name, *written(link, key, setting))
                yield Problem(path, f"{own}, so that it has no '{setting}' of its own")
    if link.middlebox:
        yield Problem(("link", name, "middlebox"), f"{own}, where no middlebox stands")
    for index, event in enumerate(tables.event):
        for change in _CHANGES:
            if event.link == name and getattr(event, change) is not None:
                yield Problem(("event", index, change), f"{own}, so that it has no '{change}' of its own")


def _says_something(value: object) -> bool:
    """A drop-tail queue without a limit is what a link without a rate has."""
    limits = value.planned().values() if isinstance(value, Discipline) and value.kind == "drop-tail" else ()
    return value is not None and {"drop-tail", None} != {*limits}


def ways_around(tables: Tables) -> Iterator[Problem]:
    """A tunnel's own packets need a way that is no tunnel."""
    through = tunnels(tables)
    ends = {name: pair for name, pair in attachments(tables).items() if name not in through}
    for index, tunnel in between_hosts(tables):
        if not isinstance(tunnel, Tunnel):
            continue
        lines = {near for near, _ in facing(tables, ends, tunnel.client, tunnel.server)}
        if not lines:
            message = f"no way leads from '{tunnel.client}' to '{tunnel.server}' but through a tunnel"
            yield Problem(("application", index), message)
        elif tunnel.weights is not None and len(tunnel.weights) != len(lines):
            message = f"there are {len(lines)} lines from '{tunnel.client}' to '{tunnel.server}'"
            yield Problem(("application", index, "weights"), f"{message}, and {len(tunnel.weights)} weights")
