"""Mutants of Python, by the operators of cosmic-ray.

Cosmic Ray runs all that it finds; a sample is drawn here. First a place is drawn, then one of its changes, as a sum has
eleven of them and a constant two.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from .shared import ASLEEP, LATE, NOTICED, ROOT, TREE, UNBUILT, Package, Stage, ended

#: Of the tests elsewhere those that show most of the results soon.
ABOVE: Final = (
    "tests/plots",
    "tests/report/test_page.py",
    *(f"tests/cli/test_{name}.py" for name in ("check", "exposure", "numbers", "out", "paired", "show")),
    *(f"tests/engines/test_{name}.py" for name in ("blocking", "video")),
    "tests/sweeps/test_rows.py",
)
RESULTS: Final = Package(
    "polypath.results",
    "python/polypath/results/",
    (
        Stage("`pytest tests/results`", ("tests/results",), 120, ("python/", "tests/")),
        Stage(f"`pytest {' '.join(ABOVE)}`", ABOVE, 300, ("python/", "tests/")),
    ),
)
#: They need arguments, or change nothing.
LEFT_OUT: Final = {"VariableReplacer", "VariableInserter", "NoOp"}
#: An operator becomes another one of its family: between others the interpreter alone notices the fault.
FAMILIES: Final = (
    {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod"},
    {"BitOr", "BitAnd", "BitXor"},
    {"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"},
    {"Is", "IsNot"},
)

Position = tuple[int, int]


def where_types_are(source: str) -> list[tuple[Position, Position]]:
    """Where types are written, which nothing evaluates."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.returns)
    return [((it.lineno, it.col_offset), (it.end_lineno or 0, it.end_col_offset or 0)) for it in found if it]


def fits(operator: str) -> bool:
    """Whether it is among those that are drawn."""
    kind, _, pair = operator.partition("_")
    if kind in ("ReplaceBinaryOperator", "ReplaceComparisonOperator"):
        return any(set(pair.split("_")) <= family for family in FAMILIES)
    return operator not in LEFT_OUT


def operators() -> dict[str, Any]:
    from cosmic_ray.plugins import get_operator, operator_names

    short = {name.partition("/")[2]: name for name in operator_names()}
    return {name: get_operator(full)() for name, full in sorted(short.items()) if fits(name)}


def mutants(path: Path) -> Iterator[tuple[Position, str, int]]:
    """Place, operator, and which of its occurrences in the file."""
    from cosmic_ray.ast import ast_nodes, get_ast

    source = path.read_text(encoding="utf-8")
    nodes = list(ast_nodes(get_ast(source)))
    typed = where_types_are(source)
    for name, operator in operators().items():
        places = ((start, node) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (place, node) in enumerate(places):
            separates = node.parent is not None and node.parent.type == "parameters"  # the lone * of a signature
            if not separates and not any(start <= place < end for start, end in typed):
                yield place, name, occurrence


def names(package: Package) -> dict[str, list[str]]:
    """By place the names of its changes, each of which ends with the operator and the occurrence."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / package.folder).rglob("*.py")):
        for (line, column), operator, occurrence in mutants(path):
            place = f"{path.relative_to(ROOT)}:{line}:{column + 1}"
            found[place].append(f"{place}: {operator} {occurrence}")
    return found


def mutated(source: str, operator: str, occurrence: int) -> str:
    from cosmic_ray.mutating import mutate_code

    return str(mutate_code(source, operators()[operator], occurrence))


def tested(stage: Stage, which: Sequence[str]) -> str:
    """How the tests end on the tree as it is."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *which]
    variables = {"PYTHONPATH": str(TREE / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    code = ended(command, variables, stage.limit)
    return LATE if code is None else NOTICED if code else ASLEEP


def check(stage: Stage) -> None:
    if tested(stage, stage.arguments) != ASLEEP:
        raise SystemExit(f"{stage.title} fails without a fault")


def run(package: Package, stage: Stage, chosen: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The outcome of each. The tests that are named as the module come first."""
    for name in chosen:
        place, _, change = name.partition(": ")
        operator, occurrence = change.split()
        path = TREE / place.split(":")[0]
        source = path.read_text(encoding="utf-8")
        fault = mutated(source, operator, int(occurrence))
        try:
            compile(fault, path, "exec")
            path.write_text(fault, encoding="utf-8")
            near = f"tests/results/test_{path.stem}.py"
            first = stage.arguments == ("tests/results",) and (TREE / near).is_file()
            outcome = tested(stage, [near]) if first else ASLEEP
            yield name, tested(stage, stage.arguments) if outcome == ASLEEP else outcome
        except SyntaxError:
            yield name, UNBUILT
        finally:
            path.write_text(source, encoding="utf-8")
