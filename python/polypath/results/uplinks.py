"""The links at the client's interfaces of subflows, which name the paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polypath.results import metrics
from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.plan.data import PlanData


def name(plan: PlanData, of: metrics.Connection, interface: str) -> str:
    """The name of the link at an interface of the client; the interface's own where the plan has none."""
    applications = plan.get("applications", [])
    if of.application >= len(applications):
        return interface
    client = applications[of.application].get("client")
    for link in plan.get("links", []):
        for end in (link["a"], link["b"]):
            if end["node"] == client and plan["nodes"][client]["interfaces"][end["interface"]]["name"] == interface:
                return str(link["name"])
    return interface


def order(recording: Recording) -> dict[str, int]:
    """The number of each path among those that the run's connections use, in the order of the plan's links."""
    paths = recording.once("order of paths", lambda: metrics.paths(recording))
    return {path: number for number, path in enumerate(paths)}
