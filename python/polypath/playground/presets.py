"""The starting points of a page: a scenario, the picture of its network, its knobs, and the lab's things to try."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polypath.labs import Lab
from polypath.playground import events, knobs
from polypath.report import network
from polypath.results.changes import planned
from polypath.scenario import Scenario, ScenarioError

#: A larger plan is nothing to move sliders for.
_MOST_BYTES: Final = 100_000
#: Shell words of a text: `--set key="value"` and `--run name`.
_SET: Final = re.compile(r"""--set\s+(?P<key>[\w.]+)=(?:"(?P<quoted>[^"`]+)"|(?P<bare>[^\s`"]+))""")
_RUN: Final = re.compile(r"--run\s+(?P<run>[\w-]+)")
#: What of a command the page does by itself.
_COMMAND: Final = re.compile(r"polypath run [\w-]+ |--run [\w-]+ ")

Data = dict[str, Any]


@dataclass(frozen=True)
class Preset:
    """A run that the page has."""

    name: str
    title: str
    question: str
    #: What `polypath run` takes for it.
    command: str
    scenario: Scenario
    #: Items of the text's list of things to try.
    tries: Sequence[str] = ()

    def data(self) -> Data:
        """For the page. Raises ScenarioError."""
        plan = self.scenario.plan()
        found = knobs.of_scenario(self.scenario)
        return {
            "name": self.name,
            "title": self.title,
            "question": self.question,
            "command": self.command,
            "plan": plan.data,
            "network": network.of_plan(plan.view, {}),
            "marks": [{"t": each.time_s, "text": each.text} for each in planned(plan.view)],
            "knobs": found,
            "events": events.of_scenario(self.scenario, dict(plan.data), knobs.MOST_LINKS),
            "tries": [each for text in self.tries if (each := _try(text, found)) is not None],
        }


def command(target: str, run: str | None = None, settings: Sequence[str] = ()) -> str:
    """What `polypath run` takes for a lab, one of its runs, a scenario file or a result, with settings."""
    chosen = [] if run is None else [f"--run {run}"]
    return " ".join([target, *chosen, *(f"--set '{setting}'" for setting in settings)])


def of_scenario(scenario: Scenario, command: str) -> Preset:
    """The preset of a scenario. Raises ScenarioError if it varies, or needs what a page does not have."""
    if (reason := _unfit(scenario)) is not None:
        raise ScenarioError(f"a page cannot simulate it: {reason}")
    return Preset(scenario.name, scenario.description or scenario.name, scenario.description, command, scenario)


def of_lab(lab: Lab) -> Iterator[Preset]:
    """The presets of a lab's runs, of a sweep its first point; none where a page lacks what the run needs."""
    base = lab.scenario()
    tries = lab.tries
    alone = len(lab.runs) == 1
    target = str(lab.folder) if lab.own else lab.name
    for run in lab.runs:
        varied = lab.at(run, base)
        point = [f"{path}={axis.labels[0]}" for axis in varied.axes for path in axis.name.split(", ")]
        scenario = varied.with_settings(point)
        if _unfit(scenario) is not None:
            continue
        yield Preset(
            name=lab.name if alone else f"{lab.name}/{run.name}",
            title=lab.title,
            question=lab.question,
            command=command(target, None if alone else run.name, point),
            scenario=scenario,
            tries=[text for text in tries if (named := _RUN.search(text)) is None or named["run"] == run.name],
        )


def _unfit(scenario: Scenario) -> str | None:
    """Why a page cannot run a scenario; None if it can."""
    if scenario.vary:
        return "it is a sweep"
    plan = scenario.plan()
    if plan.view.get("programs"):
        return "it has programs of the machine"
    if (plan.view.get("controller") or {}).get("app"):
        return "it has a controller in Python"
    if others := plan.stacks_by_others:
        return f"it has the stack '{others[0]}'"
    if _has_python(plan.view):
        return "it has an algorithm in Python"
    if len(plan.json()) > _MOST_BYTES:
        return "its network is too large"
    return None


def _has_python(part: Any) -> bool:
    if isinstance(part, Mapping):
        return part.get("name") == "python" or any(_has_python(each) for each in part.values())
    return isinstance(part, Sequence) and not isinstance(part, str) and any(_has_python(each) for each in part)


def _try(text: str, found: Sequence[Data]) -> Data | None:
    """A thing to try with the settings that do it; None if some of them is no knob of the page."""
    by_key = {knob["key"]: knob for knob in found}
    settings = {}
    for match in _SET.finditer(text):
        value = _setting(by_key.get(match["key"]), match["quoted"] or match["bare"])
        if value is None:
            return None
        settings[match["key"]] = value
    return {"text": _COMMAND.sub("", text).replace("`", ""), "settings": settings} if settings else None


def _setting(knob: Data | None, text: str) -> float | str | None:
    if knob is None:
        return None
    if knob["kind"] == "choice":
        return text if any(option["name"] == text for option in knob["options"]) else None
    number, _, unit = text.partition(" ")
    try:
        value = float(number)
    except ValueError:
        return None
    return value if unit == knob["unit"] and knob["min"] <= value <= knob["max"] else None
