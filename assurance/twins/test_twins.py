"""A capture of the day and its twin; `make twins` is the campaign."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polypath import Scenario

from .__main__ import by_answer, by_figure, by_kind, by_miss, is_as_claimed, page
from .asked import Asked
from .compared import Compared, Figure, compared
from .drawn import OVER_QUIC, drawn

TODAY = datetime.now(UTC).date().toordinal()


def test_networks_of_the_day_have_plans_and_all_kinds() -> None:
    parts = [drawn(number) for number in range(100 * TODAY, 100 * TODAY + 100)]
    assert {(part.transport, part.work) for part in parts} == {
        (transport, work) for transport in ("tcp", "mptcp") for work in ("bulk", "requests")
    }
    assert {part.captured for part in parts} == {("client",), ("server",), ("client", "server")}
    assert {part.engine for part in parts[::2]} == {"sim"}
    for part in parts[:20]:
        plan = Scenario.parse(part.text, "drawn.toml").plan().view
        assert [link["forward"]["rate_bps"] for link in plan["links"][:-1]] == [
            round(path.rate_bps) for path in part.paths
        ]


def test_some_captures_are_of_quic() -> None:
    parts = [drawn(number) for number in OVER_QUIC]
    assert {part.transport for part in parts} == {"quic", "mpquic"}
    assert {part.engine for part in parts} == {"sim"}
    assert {part.captured for part in parts} == {("client",), ("server",), ("client", "server")}
    for part in parts:
        assert Scenario.parse(part.text, "drawn.toml").plan()


def test_a_capture_of_the_simulator_has_its_rates_and_delays_found() -> None:
    number = 2 * TODAY
    row = compared(number)
    assert row.engine == "sim"
    told = [each for each in row.figures if each.name in ("rate", "delay")]
    assert told
    assert [each for each in told if not each.is_near] == [], number
    assert Compared.load(row.json()) == row


@pytest.mark.parametrize(
    ("name", "true", "found", "near"),
    [
        ("rate", 10e6, 10.4e6, True),
        ("rate", 10e6, 10.6e6, False),
        ("delay", 0.004, 0.0049, True),
        ("delay", 0.1, 0.106, False),
        ("queue", 1000.0, 760.0, True),
        ("loss", 0.01, 0.0149, True),
        ("loss", 0.01, 0.0151, False),
    ],
)
def test_what_is_near_the_truth(name: str, true: float, found: float, near: bool) -> None:
    assert Figure(name, true, found, found, found).is_near is near


def test_a_page_counts_what_is_near() -> None:
    good = [Figure("rate", 1e6, 1e6, 0.9e6, 1.1e6), Figure("goodput", 1.0, 1.05, 1.0, 1.0)]
    bad = Figure("queue", 1000.0, 2000.0, 1900.0, 2100.0)
    rows = [
        Compared(1, "sim", "tcp", "bulk", 1, good, "cubic", "cubic"),
        Compared(2, "linux", "mptcp", "requests", 2, [*good, bad], "reno", "cubic", 1),
    ]
    assert list(by_figure(rows))[2:] == [
        "| rate | within 5 % | 2 | 2 | 100% |",
        "| queue | within 25 %, where it overflowed | 1 | 0 | 0% |",
        "| goodput | the twin's within 10 % of the capture's | 2 | 2 |  |",
    ]
    assert "| kernel | 1 | 3 | 2 |" in list(by_kind(rows))
    assert list(by_miss(rows))[2:] == ["| 2 | queue | 1000 | 2000 |"]
    assert list(by_miss(rows[:1])) == ["None."]
    assert is_as_claimed(rows[:1])
    assert not is_as_claimed(rows)
    answers = [Asked(1, "goodput", "a", "b", 9.6, 10.0), Asked(2, "delay-p95", "a", "b", 0.2, 0.1)]
    assert [each.is_good for each in answers] == [True, False]
    assert Asked.load(answers[0].json()) == answers[0]
    assert list(by_answer(answers))[2] == "| 1 | goodput | a | 9.6 | b | 10 |"
    text = page(rows, answers)
    assert "1 queue sizes are not known" in text
    assert "the true one in 1 of 2 twins" in text
