"""The core declares the schema of plans: scenarios make plans of that shape, and Python's types are made from it."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from generators import plan_types

from polypath import _core
from polypath.scenario import Scenario

LABS = sorted((Path(str(resources.files("polypath"))) / "labs").glob("*/scenario.toml"))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(_core.plan_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def plan_of(file: Path) -> Any:
    """What the simulator reads of a lab's plan."""
    scenario = Scenario.load(file)
    data = scenario.at([axis.values[0] for axis in scenario.axes]).plan().data
    return {key: value for key, value in data.items() if key not in ("programs", "kernels")}


@pytest.mark.parametrize("file", LABS, ids=lambda file: file.parent.name)
def test_the_plan_of_every_lab_is_valid(validator: jsonschema.Draft202012Validator, file: Path) -> None:
    validator.validate(plan_of(file))


def test_what_the_core_refuses_is_not_valid(validator: jsonschema.Draft202012Validator) -> None:
    plan = plan_of(LABS[0])
    del plan["links"][0]["a"]
    assert _core.check(json.dumps(plan)) is not None
    with pytest.raises(jsonschema.ValidationError, match="'a' is a required property"):
        validator.validate(plan)


def test_the_types_in_python_are_those_of_the_core() -> None:
    assert plan_types.TYPES.read_text(encoding="utf-8") == plan_types.text(), "run: python generators/plan_types.py"
