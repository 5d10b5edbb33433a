"""Counts and times as words."""

import pytest

from polypath.results.phrases import counted, milliseconds, significant


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 requests"), (1, "1 request"), (2, "2 requests"), (1000, "1,000 requests")]
)
def test_one_is_not_plural(number: int, words: str) -> None:
    assert counted(number, "request") == words
    several = counted(number, "change of rate", "changes of rate")
    assert several == f"{number:,} {'change of rate' if number == 1 else 'changes of rate'}"


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "0"),
        (0.4, "0"),
        (2, "0.000002"),
        (20_160, "0.0202"),
        (20_000, "0.02"),
        (99_999, "0.1"),
        (100_000, "0.1"),
        (149_000, "0.1"),
        (2_000_000, "2.0"),
        (1_234_560_000, "1234.6"),
    ],
)
def test_a_short_time_keeps_three_digits_and_a_longer_one_has_one_decimal(time_ns: float, text: str) -> None:
    assert milliseconds(time_ns) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (2e-6, "0.000002"), (0.0249, "0.025"), (1.5, "1.5"), (99.9, "100"), (123.4, "120")]
)
def test_no_figure_has_an_exponent(value: float, text: str) -> None:
    assert significant(value, 2) == text
