"""The code that a plan carries, which a run executes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polypath.scenario import script
from polypath.scenario.plan import Plan


def code(plan: Plan) -> dict[str, str]:
    """What a run of the plan executes, by the names of its files; a command by that of its program."""
    found: dict[str, str] = {}
    waiting: list[Any] = [plan.view]
    while waiting:
        data = waiting.pop()
        if isinstance(data, Mapping):
            own = data.get("parameters")
            if data.get("name") == script.NAME and isinstance(own, Mapping) and "source" in own:
                found[str(own["file"])] = str(own["source"])
            waiting += data.values()
        elif isinstance(data, list):
            waiting += data
    if app := (plan.view.get("controller") or {}).get("app"):
        found[str(app["file"])] = "".join([app["source"], *app["modules"].values()])
    for program in plan.view.get("programs", ()):
        found[f"the command of '{program['name']}'"] = " ".join(map(str, program["command"]))
    return dict(sorted(found.items()))
