"""The exported JSON Schema and the loader agree on what a scenario is."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.schema import json_schema

FILES = sorted((Path(str(resources.files("polypath"))) / "labs").glob("*/scenario.toml"))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_every_lab_is_valid(validator: jsonschema.Draft202012Validator, file: Path) -> None:
    validator.validate(tomllib.loads(file.read_text()))


LINK = """
[host.client]
[host.server]
[link.path]
ends = ["client", "server"]
{}
[[application]]
kind = "bulk"
"""


@pytest.mark.parametrize(
    "line",
    [
        'queue = "80 packets"',
        'queue = "213 kB"',
        'queue = { kind = "codel", target = "5 ms" }',
        'queue = { kind = "pie", tupdate = "30 ms", alpha = 0.125, ecn = true }',
        'queue = { kind = "drr", limit = "100 packets", quantum = "300 B" }',
        'queue = { kind = "fq-codel", flows = 64, drop_batch = "1 packets" }',
        'queue = { kind = "fq-pie", flows = 64, ecn = true, ecn_prob = "50 %" }',
        'queue = { kind = "dualpi2", step = "1 ms", step_from = "2 packets", coupling = 2, classic_share = "10 %" }',
        'loss = "1 %"',
        'loss = { kind = "gilbert-elliott", good_to_bad = "1 %", bad_to_good = "20 %" }',
        'loss = { kind = "periodic", every = 1000 }',
        'loss = { kind = "timed-gilbert-elliott", good_time = "2 s", bad_time = "50 ms" }',
    ],
)
def test_both_take(validator: jsonschema.Draft202012Validator, tmp_path: Path, line: str) -> None:
    text = LINK.format(line)
    validator.validate(tomllib.loads(text))
    (tmp_path / "scenario.toml").write_text(text)
    Scenario.load(tmp_path / "scenario.toml")


@pytest.mark.parametrize(
    "line", ['queue = "80 ms"', "queue = 80", 'queue = { kind = "fifo" }', 'loss = "1"', "rate = 20", 'delay = "3 GB"']
)
def test_both_refuse(validator: jsonschema.Draft202012Validator, tmp_path: Path, line: str) -> None:
    text = LINK.format(line)
    assert not validator.is_valid(tomllib.loads(text))
    (tmp_path / "scenario.toml").write_text(text)
    with pytest.raises(ScenarioError):
        Scenario.load(tmp_path / "scenario.toml")


def _defaults(node: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(node, dict):
        if "default" in node and ("type" in node or "anyOf" in node):
            yield place, node
        for key, value in node.items():
            yield from _defaults(value, (*place, key))
    elif isinstance(node, list):
        for value in node:
            yield from _defaults(value, place)


def test_defaults_are_written_as_a_scenario_writes_them() -> None:
    schema = json_schema()
    found = list(_defaults(schema))
    assert len(found) > 20
    for place, node in found:
        described = {key: value for key, value in node.items() if key != "default"} | {"$defs": schema["$defs"]}
        if node["default"] is not None:
            assert jsonschema.Draft202012Validator(described).is_valid(node["default"]), (place, node["default"])
