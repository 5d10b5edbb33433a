"""Figures have the digits that mean something."""

import math

import pytest

from polypath.cli.numbers import estimated, percent, rounded


@pytest.mark.parametrize(
    ("value", "uncertainty", "text"),
    [
        (12.345678, 0.0, "12.35"),
        (12.0, 0.0, "12"),
        (12.345678, 0.51, "12.35"),
        (12.345678, 5.1, "12.3"),
        (1234.5678, 130.0, "1,230"),
        (71.513333, 0.0014, "71.5133"),
        (12.3, 0.0014, "12.3000"),
        (0.0, math.inf, "0"),
        (508.49, math.inf, "508.5"),
        (math.inf, 3.0, "∞"),
        (-math.inf, 3.0, "-∞"),
    ],
)
def test_digits_end_where_the_uncertainty_begins(value: float, uncertainty: float, text: str) -> None:
    assert rounded(value, uncertainty) == text


def test_a_figure_and_its_interval_end_at_the_same_digit() -> None:
    assert estimated(71.5133, 71.5119, 71.5147) == "71.5133 ± 0.0014"
    assert estimated(9.82, 9.07, 10.57) == "9.82 ± 0.75"
    assert estimated(2.6, 0.9, 7.3) == "2.6 (0.90 to 7.3)"


@pytest.mark.parametrize(
    ("part", "text"), [(3.3, "+330 %"), (-0.12, "-12 %"), (0.00312, "+0.31 %"), (0.0999, "+10.0 %"), (12.3, "+1,200 %")]
)
def test_a_change_has_two_digits_and_no_power_of_ten(part: float, text: str) -> None:
    assert percent(part) == text
