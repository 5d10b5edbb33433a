"""polypath schema: the scenario file's JSON Schema, for editors."""

from __future__ import annotations

import json

from polypath.cli.options import OutFile
from polypath.cli.write import write
from polypath.scenario import json_schema


def schema(out: OutFile = None) -> None:
    """Print the JSON Schema of scenario files.

    Example: `polypath schema --out scenario.schema.json`.
    """
    write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n", out)
