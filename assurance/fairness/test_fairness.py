"""A pair of the day at one bottleneck; `make fairness` runs all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from polypath import Scenario
from polypath.registry import entries

from .__main__ import TEXT, alike, beside, jain, page, same, shares
from .drawing import draw
from .pairs import CONTROLS, SCENARIO, SEEDS, Case, Row, cases, packets, settings, tried

TODAY = datetime.now(UTC).date().toordinal()


def row(one: str, other: str, one_mbps: float, other_mbps: float, seed: int = 1) -> Row:
    return Row(one, other, 20, 1.0, seed, one_mbps, other_mbps)


def test_every_pair_is_run_with_every_seed() -> None:
    every = cases()
    assert len(every) == len(set(every)) == len(SEEDS) * 6 * len(CONTROLS) * (len(CONTROLS) + 1) // 2
    assert set(CONTROLS) <= set(entries("congestion"))
    assert {case.seed for case in every[: len(every) // len(SEEDS)]} == {1}


def test_a_queue_is_a_part_of_the_product() -> None:
    case = Case("reno", "cubic", 80, 0.5, 1)
    assert packets(case) == 33
    assert packets(replace(case, round_trip=20, queue=4)) == 67
    plan = Scenario.load(SCENARIO).with_settings(settings(case)).plan(1).view
    assert plan["links"][0]["forward"]["rate_bps"] == 10_000_000


def test_shares_are_of_both_sides() -> None:
    found = [row("reno", "cubic", 2, 6), row("reno", "cubic", 4, 4, 2), row("reno", "reno", 5, 5)]
    there = shares(found)
    assert there[20, 1.0, "reno", "cubic"] == pytest.approx(0.375)
    assert there[20, 1.0, "cubic", "reno"] == pytest.approx(0.625)
    assert jain(found[0]) == pytest.approx(0.8)
    assert alike(found) == {("reno", 20, 1.0): pytest.approx(1)}
    assert any("38%" in line and "`reno` beside `cubic`" in line for line in beside(found))


def test_uneven_twins_need_a_cause() -> None:
    assert "**not known**" in "".join(same([row("htcp", "htcp", 9, 1)]))
    assert "**not known**" not in "".join(same([row("htcp", "htcp", 5, 4)]))


def test_the_page_has_no_place_left_and_the_map_is_drawn(tmp_path: Path) -> None:
    found = [row("reno", "cubic", 2, 6), row("bbr3", "bbr3", 4, 4)]
    text = page(found)
    assert "{" not in text
    assert "2 runs of 1 seeds" in " ".join(text.split())
    assert TEXT.exists()
    draw(shares(found), tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000


def test_a_pair_of_the_day_uses_the_link() -> None:
    every = cases()
    case = every[TODAY * 7919 % len(every)]
    found = tried(case)
    assert found.case == case
    assert 5.0 < found.one_mbps + found.other_mbps < 9.7, found
    assert Row.load(found.json()) == found
