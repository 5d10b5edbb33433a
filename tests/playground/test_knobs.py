"""What a page can change about a scenario: the plan that comes of it is the one that `--set` gives."""

from __future__ import annotations

import datetime
import json
import random
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from polypath.labs import get, names
from polypath.playground import of_lab, of_scenario
from polypath.playground.knobs import of_scenario as knobs_of
from polypath.scenario import Scenario, ScenarioError

from .conftest import Node

Data = dict[str, Any]


def knobs(scenario: Scenario) -> dict[str, Data]:
    return {knob["key"]: knob for knob in knobs_of(scenario)}


def aggregation() -> Scenario:
    return get("aggregation").scenario()


def test_a_knob_says_where_the_scenario_stands() -> None:
    found = knobs(aggregation())
    stands = {
        "link.path0.rate": 20,
        "link.path1.delay": 20,
        "link.path1.loss": 0,
        "link.path0.queue": 213,
        "defaults.scheduler": "default",
        "defaults.congestion": "olia",
        "application.1.transport": "mptcp",
        "seed": 1,
    }
    assert {key: found[key]["value"] for key in stands} == stands
    assert found["link.path0.queue"]["unit"] == "kB"


def test_what_the_scenario_leaves_to_a_rule_has_no_value() -> None:
    found = knobs(aggregation())
    assert found["defaults.receive_buffer"]["value"] is None
    assert found["link.server.rate"]["value"] is None


def test_a_buffer_that_is_given_has_its_size() -> None:
    scenario = aggregation().with_settings(["defaults.receive_buffer=100 kB"])
    assert knobs(scenario)["defaults.receive_buffer"]["value"] == 100


def test_a_queue_in_packets_has_whole_numbers() -> None:
    knob = knobs(aggregation().with_settings(["link.path0.queue=50 packets"]))["link.path0.queue"]
    assert (knob["value"], knob["unit"], knob["whole"]) == (50, "packets", True)


def test_each_host_has_its_own_settings() -> None:
    found = knobs(aggregation())
    for name in ("scheduler", "congestion", "receive_buffer"):
        own = found[f"host.client.{name}"]
        assert (own["group"], own["follows"]) == ("host client", f"defaults.{name}")


def test_a_plan_that_is_drawn_from_the_seed_has_no_knob_for_it() -> None:
    lab = get("switch-failure")
    assert "seed" not in knobs(lab.runs[0].of(lab.scenario()))


def settings(found: list[Data], draw: random.Random) -> dict[str, float | str]:
    chosen = draw.sample(found, min(len(found), draw.randint(1, 4)))
    return {knob["key"]: setting(knob, draw) for knob in chosen}


def setting(knob: Data, draw: random.Random) -> float | str:
    if knob["kind"] == "choice":
        return str(draw.choice(knob["options"])["name"])
    least, most = knob["min"], knob["max"]
    if least == 0 and draw.random() < 0.2:
        return 0
    value = draw.uniform(least, most)
    return round(value) if knob["whole"] else round(value, 1) or 0.1


def written(found: list[Data], given: dict[str, float | str]) -> list[str]:
    units = {knob["key"]: knob.get("unit", "") for knob in found}
    return [f"{key}={value} {units[key]}".strip() for key, value in given.items()]


def test_the_page_s_plan_is_that_of_set(tmp_path: Path, node: Node) -> None:
    """Random settings of some labs' presets; those that a scenario refuses are left out."""
    draw = random.Random(datetime.date.today().toordinal())
    cases: list[Data] = []
    for name in draw.sample(names(), len(names())):
        if len(cases) >= 30:
            break
        for preset in of_lab(get(name)):
            found = knobs_of(preset.scenario)
            plan = preset.scenario.plan().data
            for _ in range(3):
                given = settings(found, draw)
                try:
                    expected = preset.scenario.with_settings(written(found, given)).plan().data
                except ScenarioError:
                    continue
                cases.append(
                    {"name": preset.name, "plan": plan, "knobs": found, "settings": given, "expected": expected}
                )
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    node("knobs.test.mjs", POLYPATH_CASES=tmp_path / "cases.json")


def test_what_a_page_cannot_run_is_said() -> None:
    scenario = aggregation()
    assert of_scenario(scenario, "aggregation.toml").name == "aggregation"
    with pytest.raises(ScenarioError, match="it is a sweep"):
        of_scenario(scenario.with_axes(["seeds=3"]), "aggregation.toml")
    with pytest.raises(ScenarioError, match="it has an algorithm in Python"):
        of_scenario(get("python-scheduler").runs[0].of(get("python-scheduler").scenario()), "mine.toml")


def test_a_run_with_an_algorithm_in_python_has_no_preset() -> None:
    assert [preset.name for preset in of_lab(get("python-scheduler"))] == ["python-scheduler/rust"]
    assert [preset.name for preset in of_lab(get("aggregation"))][:2] == ["aggregation/tcp", "aggregation/mptcp"]


@pytest.mark.parametrize("name", ["buffers", "exposure", "shared-bottleneck", "window-sweep"])
def test_a_sweep_s_preset_is_the_point_that_its_command_names(name: str) -> None:
    lab = get(name)
    presets = list(of_lab(lab))
    assert presets
    for preset in presets:
        words = shlex.split(preset.command)
        given = [word for before, word in pairwise(words) if before == "--set"]
        run = next(run for run in lab.runs if len(lab.runs) == 1 or run.name == words[words.index("--run") + 1])
        assert given
        assert run.of(lab.scenario()).with_settings(given).plan().data == preset.scenario.plan().data


def test_the_page_s_events_are_those_of_set(tmp_path: Path, node: Node) -> None:
    """Random events of labs that have links of all kinds, after events of their own."""
    draw = random.Random(datetime.date.today().toordinal())
    cases = []
    for name in ("aggregation", "failover", "wifi-walk", "backup", "settings-grid"):
        preset = draw.choice(list(of_lab(get(name))))
        data = preset.data()
        plan, kinds = data["plan"], data["events"]
        for _ in range(5):
            schedule = [
                {
                    "at_s": draw.choice([0, 0.5, 1, 3.25]),
                    "link": draw.choice(kind["links"]),
                    "kind": kind["name"],
                    "value": round(draw.uniform(0.1, kind["most"]), 2) if "unit" in kind else None,
                }
                for kind in draw.choices(kinds["kinds"], k=draw.randint(1, 4))
            ]
            given = [
                f'event.{number}={{at="{each["at_s"]} s", link="{each["link"]}", {_change(kinds, each)}}}'
                for number, each in enumerate(schedule, kinds["first"])
            ]
            expected = preset.scenario.with_settings(given).plan().data
            cases.append(
                {"name": name, "plan": plan, "kinds": kinds, "schedule": schedule, "given": given, "expected": expected}
            )
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    node("schedule.test.mjs", POLYPATH_CASES=tmp_path / "cases.json")


def _change(kinds: Data, event: Data) -> str:
    (kind,) = (kind for kind in kinds["kinds"] if kind["name"] == event["kind"])
    return f'{kind["key"]}="{event["value"]:g} {kind["unit"]}"' if "unit" in kind else f"{kind['key']}={kind['text']}"


def test_things_to_try_are_settings_of_the_page() -> None:
    (mptcp,) = (preset for preset in of_lab(get("aggregation")) if preset.name == "aggregation/mptcp")
    tries = mptcp.data()["tries"]
    assert [each["settings"] for each in tries] == [
        {"link.path1.rate": 5.0},
        {"link.path1.delay": 200.0},
        {"defaults.scheduler": "redundant"},
    ]
    assert tries[0]["text"] == '--set link.path1.rate="5 Mbps": is it still the sum?'
