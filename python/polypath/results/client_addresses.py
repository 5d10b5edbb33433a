"""The client's addresses on a subflow, in order.

A path of QUIC that migrates has several (RFC 9000 section 9). Each side starts to use the next one in its own time.
"""

from __future__ import annotations

import ipaddress
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polypath.plan.routing import address_of
from polypath.results.metrics import Connection, Side
from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.plan.data import PlanData


@dataclass(frozen=True)
class Legs:
    """The addresses of one subflow, as one side sends on it."""

    clients: Sequence[str]
    server: str
    #: When that side goes on to each client's address but the first, in ns.
    turns: Sequence[int]


_Move = tuple[int, str]
"""When a side went on to an address, and to which."""


def of_connection(recording: Recording, of: Connection) -> dict[tuple[int, Side], Legs]:
    """By subflow and side."""
    moves = _moves(recording, of)
    found: dict[tuple[int, Side], Legs] = {}
    for row in recording.table("subflow_ends").filter(connection=of.id).iter_rows(named=True):
        subflow, server = row["subflow"], row["destination"]
        own = moves.get((subflow, "client"), ())
        first = _first(recording.plan, of, own[0]) if own else row["source"]
        client = Legs([first, *(address for _, address in own)], server, [at for at, _ in own])
        theirs = moves.get((subflow, "server"), ())
        # behind a NAT the server sees another address than the client has
        seen = [address if address in client.clients else _at(client, at) for at, address in theirs]
        found[subflow, "client"] = client
        found[subflow, "server"] = Legs([first, *seen], server, [at for at, _ in theirs])
    return found


def _moves(recording: Recording, of: Connection) -> dict[tuple[int, Side], list[_Move]]:
    events = recording.table("events").filter(connection=of.id, kind="path-migrated")
    if events.is_empty():
        return {}
    plan = recording.plan
    client = plan["nodes"][plan["applications"][of.application]["client"]]["name"]
    found: dict[tuple[int, Side], list[_Move]] = {}
    for row in events.sort("time_ns", maintain_order=True).iter_rows(named=True):
        side: Side = "client" if row["host"] == client else "server"
        found.setdefault((row["subflow"], side), []).append((row["time_ns"], address_of(row["detail"])))
    return found


def _at(legs: Legs, time_ns: int) -> str:
    return legs.clients[bisect_right(legs.turns, time_ns)]


def _first(plan: PlanData, of: Connection, move: _Move) -> str:
    """The client's address before a path's first move: that of the interface scheduled to be left, or the connection's.
    Only a single path moves unscheduled.
    """
    at, address = move
    application = plan["applications"][of.application]
    interfaces = plan["nodes"][application["client"]]["interfaces"]
    version = ipaddress.ip_address(address).version
    for event in plan["events"]:
        action = event["action"]
        if action["kind"] != "migrate" or action["node"] != application["client"] or event["at_ns"] != at:
            continue
        if address in interfaces[action["to"]]["addresses"]:
            left = interfaces[action["interface"]]["addresses"]
            return str(next(each for each in left if ipaddress.ip_address(each).version == version))
    return str(application["source"])
