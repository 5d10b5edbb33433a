"""The dearest charge of an account is the cause that was planted."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

import pytest

from polypath import engines
from polypath.engines import Options
from polypath.remedies import cases
from polypath.results import account, metrics
from polypath.scenario import Scenario

from .planted import PLANTS, TOGETHER, Plant, draw

#: The part of random scenarios whose planted cause comes first, at least.
FIRST = 0.95


def dearest(plants: Sequence[Plant], transport: str, seed: int) -> list[str]:
    """The causes of the account, that first which took most."""
    plan = Scenario.parse(draw(plants, transport, seed).text(), f"{plants}, {transport}, {seed}").plan()
    recording = engines.get("sim").run(plan, Options(account=True))
    kept = account.of_connection(recording, metrics.connection(recording, "main"))
    assert kept is not None
    assert kept.capacity_bytes == kept.delivered_bytes + sum(each.bytes for each in kept.charges)
    return [each.cause for each in cases(kept)]


def all_kinds() -> Iterator[tuple[Plant, str]]:
    for plant in PLANTS.values():
        for transport in plant.transports:
            yield plant, transport


@pytest.mark.parametrize(
    ("plant", "transport"), list(all_kinds()), ids=lambda it: it if isinstance(it, str) else it.name
)
def test_the_planted_cause_is_the_dearest(plant: Plant, transport: str) -> None:
    assert dearest([plant], transport, 1)[0] == plant.cause


@pytest.mark.parametrize("transport", ["mptcp", "mpquic"])
@pytest.mark.parametrize("plants", TOGETHER, ids=lambda pair: " and ".join(plant.name for plant in pair))
def test_of_two_planted_causes_both_come_first(plants: Sequence[Plant], transport: str) -> None:
    assert set(dearest(plants, transport, 1)[:2]) == {plant.cause for plant in plants}


def test_so_it_is_in_scenarios_of_today() -> None:
    today = datetime.date.today().toordinal()
    found = [
        (plant.name, transport, seed, dearest([plant], transport, seed)[0], plant.cause)
        for plant, transport in all_kinds()
        for seed in (2 * today, 2 * today + 1)
    ]
    missed = [each for each in found if each[3] != each[4]]
    assert len(missed) <= (1 - FIRST) * len(found), missed
