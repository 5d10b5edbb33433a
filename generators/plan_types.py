"""Writes python/polypath/plan/types.py: the tables of a plan as types, from the JSON Schema that the core prints.

python generators/plan_types.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from datamodel_code_generator import Formatter, InputFileType, LiteralType, PythonVersion, generate
from datamodel_code_generator.enums import DataModelType

from polypath import _core

HERE: Final = Path(__file__).parent
TYPES: Final = HERE.parent / "python" / "polypath" / "plan" / "types.py"

HEADER: Final = '"""The tables of a plan. Made by generators/plan_types.py from those in crates/lab/src/plan.rs."""\n'


def text() -> str:
    """The module, formatted as the project's code is."""
    made = generate(
        _without_formats(json.loads(_core.plan_schema())),
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.TypingTypedDict,
        target_python_version=PythonVersion.PY_311,
        custom_template_dir=HERE / "templates",
        formatters=[Formatter.BUILTIN],
        additional_imports=["typing_extensions.ReadOnly"],
        custom_file_header=HEADER,
        enum_field_as_literal=LiteralType.All,
        use_standard_collections=True,
        use_generic_container_types=True,
        use_union_operator=True,
        use_schema_description=True,
        use_field_description=True,
        use_single_line_docstring=True,
        use_title_as_name=True,
        use_closed_typed_dict=False,
        keep_model_order=True,
    )
    assert isinstance(made, str)
    return _formatted(made)


def _without_formats(node: Any) -> Any:
    """The schema without what Python's types do not tell: widths of integers, formats of text."""
    if isinstance(node, dict):
        unsaid = _WIDTH if "integer" in node.get("type", "") else {"format"}
        return {key: _without_formats(each) for key, each in node.items() if key not in unsaid}
    return [_without_formats(each) for each in node] if isinstance(node, list) else node


_WIDTH: Final = frozenset({"format", "minimum", "maximum"})


def _formatted(code: str) -> str:
    for command in (["check", "--fix", "--exit-zero", "--quiet"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TYPES), "-"]
        code = subprocess.run(ruff, input=code, capture_output=True, text=True, check=True).stdout
    return code


if __name__ == "__main__":
    TYPES.write_text(text(), encoding="utf-8")
