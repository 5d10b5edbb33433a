"""polypath schema: the JSON Schema of scenario files, for editors, and of plans, for programs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from polypath import _core
from polypath.cli.options import OutFile
from polypath.cli.write import write
from polypath.scenario import json_schema

OfPlans = Annotated[bool, typer.Option("--plan", help="That of plans (plan.json), which engines read.")]


def schema(out: OutFile = None, plan: OfPlans = False) -> None:
    """Print the JSON Schema of scenario files, or of plans.

    Example: `polypath schema --out scenario.schema.json`.
    """
    found = json.loads(_core.plan_schema()) if plan else json_schema()
    write(json.dumps(found, indent=2, ensure_ascii=False) + "\n", out)
