"""The gate on instructions per packet-hop: what benches/instructions.py makes of counts."""

from pathlib import Path

import pytest

from .scripts import loaded

SCRIPT = Path(__file__).parents[1] / "benches" / "instructions.py"
FIGURES = {
    "A": {"instructions": 1000},
    "B": {"instructions": 1400, "at_most": {"of": "A", "times": 1.3}},
}


def verdicts(**measured: float) -> list[bool]:
    module = loaded(SCRIPT)
    return [ok for _, ok in module.verdicts(measured, FIGURES, 0.01)]


@pytest.mark.parametrize(
    ("a", "b", "kept"),
    [
        (1000, 1300, [True, True, True]),
        (1010, 1313, [True, True, True]),
        (1011, 1300, [False, True, True]),
        (1000, 1301, [True, True, False]),
        (1200, 1415, [False, False, True]),
    ],
)
def test_a_figure_and_a_ratio_are_held(a: float, b: float, kept: list[bool]) -> None:
    assert verdicts(A=a, B=b) == kept
