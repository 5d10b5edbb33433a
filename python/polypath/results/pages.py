"""How a web page loaded (the table `objects`, docs/pages.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polypath.plan.access import setting
from polypath.results import metrics
from polypath.results.recording import Recording


@dataclass(frozen=True)
class Loaded:
    """An object that was asked for; times in ns."""

    name: str
    connection: str
    bytes: int
    asked_ns: int
    #: None: not all of it came.
    arrived_ns: int | None


@dataclass(frozen=True)
class Load:
    """A page as far as it came until the run's end, over all of its connections."""

    #: In the order of asking.
    objects: Sequence[Loaded]
    #: Objects that the page has.
    of: int
    #: From the page's start to the last object's last byte, in ns; None: not all came.
    load_ns: int | None
    #: From there to the last byte of the object that came first; None: none came.
    first_ns: int | None

    @property
    def missing(self) -> int:
        """Objects that did not come."""
        return self.of - sum(each.arrived_ns is not None for each in self.objects)


def load(recording: Recording, of: metrics.Connection) -> Load | None:
    """The page that a connection is of; None for an application that is no page."""
    owner = _owner(recording, of.application)
    if owner is None:
        return None
    loads: dict[int, Load] = recording.once("pages", dict)
    if owner not in loads:
        loads[owner] = _load(recording, owner)
    return loads[owner]


def has_objects(recording: Recording, of: metrics.Connection) -> bool:
    """Whether a connection is the first, or the only one, of a page."""
    return _owner(recording, of.application) == of.application


def _owner(recording: Recording, application: int) -> int | None:
    applications = recording.plan.get("applications", [])
    work = applications[application]["work"] if application < len(applications) else None
    if work is None or work["kind"] != "page":
        return None
    of = work.get("of")
    return application if of is None else of


def _load(recording: Recording, owner: int) -> Load:
    applications = recording.plan["applications"]
    described = setting(applications[owner]["work"], "objects")
    own = [number for number in range(len(applications)) if _owner(recording, number) == owner]
    start = min(applications[number]["start_ns"] for number in own)
    rows = recording.table("objects").filter(pl.col("application").is_in(own)).sort("asked_ns", "object")
    objects = [
        Loaded(
            described[row["object"]]["name"],
            applications[row["application"]]["name"],
            row["bytes"],
            row["asked_ns"],
            row["arrived_ns"],
        )
        for row in rows.iter_rows(named=True)
    ]
    times = [each.arrived_ns - start for each in objects if each.arrived_ns is not None]
    return Load(
        objects,
        len(described),
        max(times) if len(times) == len(described) else None,
        min(times, default=None),
    )
