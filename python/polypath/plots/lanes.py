"""Subflows as figures show them: a name by path, a colour by path, a shade by subflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polypath.plots.style import colour, listed, shade
from polypath.results import Recording, metrics, uplinks


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
    names = {each.id: uplinks.name(recording.plan, of, each.interface) for each in found}
    order = uplinks.order(recording)
    groups: dict[str, list[int]] = {}
    for each in found:
        groups.setdefault(names[each.id], []).append(each.id)
    made = []
    for each in found:
        name = names[each.id]
        own = groups[name] if tint is None else [other.id for other in found]
        base = colour(order.get(name, each.id)) if tint is None else tint
        parts = [name, *([f"{each.kind} {each.id}"] if len(groups[name]) > 1 else [])]
        label = listed(", ".join([*parts, *(["backup"] if each.backup else [])]))
        made.append(Lane(each, label, shade(base, own.index(each.id), len(own)), name))
    return made


def by_path(found: Sequence[Lane]) -> list[Lane]:
    """The lanes of one path after the other, the paths in the order of their first."""
    order = list(dict.fromkeys(lane.path for lane in found))
    return sorted(found, key=lambda lane: order.index(lane.path))
