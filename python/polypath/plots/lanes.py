"""Subflows as figures show them: a name by path, a colour by path, a shade by subflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polypath.plots.style import colour, shade
from polypath.results import Recording, metrics


@dataclass(frozen=True)
class Lane:
    """A subflow, or a path of QUIC."""

    subflow: metrics.Subflow
    label: str
    colour: str
    #: The link at its interface of the client.
    path: str = ""


def lanes(recording: Recording, of: metrics.Connection, tint: str | None = None) -> list[Lane]:
    """The connection's subflows by id; with `tint`, in shades of that one colour.

    A path is the link at the subflow's interface of the client. Its colour is the same in every connection of the run.
    """
    found = metrics.subflows(recording, of)
    names = {each.id: path(recording.plan, of, each.interface) for each in found}
    order = recording.once("order of paths", lambda: _order(recording))
    groups: dict[str, list[int]] = {}
    for each in found:
        groups.setdefault(names[each.id], []).append(each.id)
    made = []
    for each in found:
        name = names[each.id]
        own = groups[name] if tint is None else [other.id for other in found]
        base = colour(order.get(name, each.id)) if tint is None else tint
        parts = [name, *([f"{each.kind} {each.id}"] if len(groups[name]) > 1 else [])]
        label = ", ".join([*parts, *(["backup"] if each.backup else [])])
        made.append(Lane(each, label, shade(base, own.index(each.id), len(own)), name))
    return made


def by_path(found: Sequence[Lane]) -> list[Lane]:
    """The lanes of one path after the other, the paths in the order of their first."""
    order = list(dict.fromkeys(lane.path for lane in found))
    return sorted(found, key=lambda lane: order.index(lane.path))


def path(plan: Mapping[str, Any], of: metrics.Connection, interface: str) -> str:
    """The name of the link at an interface of the client; the interface's own where the plan has none."""
    applications, nodes = plan.get("applications", []), plan.get("nodes", [])
    if of.application >= len(applications):
        return interface
    client = applications[of.application].get("client")
    for link in plan.get("links", []):
        for end in (link["a"], link["b"]):
            if end["node"] == client and nodes[client]["interfaces"][end["interface"]]["name"] == interface:
                return str(link["name"])
    return interface


def _order(recording: Recording) -> dict[str, int]:
    """The number of each path among those that the run's connections use, in the order of the plan's links."""
    rank = {str(link["name"]): number for number, link in enumerate(recording.plan.get("links", []))}
    applications = {of.application: of for of in metrics.connections(recording) if of.id is not None}
    ends = recording.table("subflow_ends").select("connection", "interface").unique(maintain_order=True)
    ids = {of.id: of for of in applications.values()}
    used = {path(recording.plan, ids[number], name) for number, name in ends.iter_rows() if number in ids}
    return {name: number for number, name in enumerate(sorted(used, key=lambda name: (rank.get(name, 1 << 30), name)))}
