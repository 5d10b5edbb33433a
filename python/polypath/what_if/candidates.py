"""The candidates: settings of one connection that a person at an end, or in between, could change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.tables import application_names, between_hosts

_SCHEDULERS: Final = ("default", "roundrobin", "redundant", "blest", "ecf", "linux")
_ALONE: Final = ("cubic", "reno", "bbr")
_COUPLED: Final = ("lia", "olia", "balia")
_PATH_MANAGERS: Final = ("default", "fullmesh", "ndiffports")
_BUFFERS: Final = ("256 kB", "1 MB", "4 MB", "16 MB")
_MULTIPATH: Final = ("mptcp", "mpquic")
#: Settings that stand in the same table for both ends.
_SIDES: Final = ("client_stack", "server_stack")


@dataclass(frozen=True)
class Candidate:
    """A change, by name, and the settings that make it, as `--set` takes them."""

    #: What kind of setting it is: of each kind the best may go together with those of others.
    kind: str
    name: str
    settings: tuple[str, ...]


AS_IT_IS: Final = Candidate("", "as it is", ())


@dataclass(frozen=True)
class Subject:
    """The application whose connection is asked about."""

    name: str
    index: int
    transport: str
    #: Links at the interfaces of the end that has several, by name, with the address there.
    links: Mapping[str, str]
    #: The application's key for an address of that end.
    address: str


def subject(scenario: Scenario, connection: str | None) -> Subject:
    """The application of this name, or the only one. Raises ScenarioError."""
    names = application_names(scenario)
    found = [
        (names[index], index, one) for index, one in between_hosts(scenario) if one.transport not in ("udp", "icmp")
    ]
    if connection is None and len(found) != 1:
        there = ", ".join(name for name, _, _ in found) or "none"
        raise ScenarioError(f"name the connection, --connection NAME: there is {there}")
    for name, index, one in found:
        if connection in (None, name):
            client, server = (_links(scenario, host) for host in (one.client, one.server))
            return Subject(name, index, one.transport, client or server, "source" if client else "destination")
    raise ScenarioError(f"no connection is named '{connection}' (there: {', '.join(name for name, _, _ in found)})")


def _links(scenario: Scenario, host: str) -> dict[str, str]:
    """The links of a host with several, with the host's first address at each."""
    plan = scenario.plan(1).view
    found = {}
    for link in plan["links"]:
        for end in (link["a"], link["b"]):
            node = plan["nodes"][end["node"]]
            if node["name"] == host:
                found[link["name"]] = node["interfaces"][end["interface"]]["addresses"][0]
    return found if len(found) > 1 else {}


def candidates(of: Subject) -> Iterator[Candidate]:
    """Everything that is tried for a connection."""
    if of.transport in _MULTIPATH:
        for name in _SCHEDULERS:
            yield _stacked(of, "scheduler", f"scheduler {name}", scheduler=name)
        for name in _PATH_MANAGERS:
            yield _stacked(of, "path manager", f"path manager {name}", path_manager=name)
    for name in (*_ALONE, *(_COUPLED if of.transport in _MULTIPATH else ())):
        yield _stacked(of, "congestion control", f"congestion control {name}", congestion=name)
    for size in _BUFFERS:
        yield _stacked(of, "buffers", f"buffers of {size}", receive_buffer=size, send_buffer=size)
    if of.links:
        for link in of.links:
            yield _without(of, f"without {link}", {link})
        if len(of.links) > 2:
            for link in of.links:
                yield _without(of, f"{link} alone", of.links.keys() - {link})


def _without(of: Subject, name: str, away: Set[str]) -> Candidate:
    """Some links down from the start, and the connection begun on the first of the others."""
    first = next(address for link, address in of.links.items() if link not in away)
    down = tuple(f"link.{link}.up=false" for link in of.links if link in away)
    return Candidate("paths", name, (*down, f"application.{of.name}.{of.address}={first}"))


def _stacked(of: Subject, kind: str, name: str, **settings: str) -> Candidate:
    """The same setting at both ends."""
    made = [f"application.{of.name}.{side}.{key}={value}" for side in _SIDES for key, value in settings.items()]
    return Candidate(kind, name, tuple(made))


def together(best: Sequence[Candidate]) -> Candidate:
    """Several at once."""
    return Candidate(
        "several", " + ".join(each.name for each in best), tuple(s for each in best for s in each.settings)
    )
