"""The dearest charge of an account is the cause that was planted, and most of it comes back without the cause."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

import pytest

from polypath import engines, remedies
from polypath.engines import Options
from polypath.remedies import Case, cases
from polypath.results import Recording, account, metrics
from polypath.scenario import Scenario

from .planted import PLANTS, TOGETHER, TRANSPORTS, Plant, draw

#: The part of random scenarios whose planted cause comes first, at least.
FIRST = 0.95
#: Scenarios, and kinds of causes.
SCENARIOS, KINDS = 60, 15
#: A cause whose removal brings less than this part of its charge is a defect.
LEAST = 0.5


def ran(plants: Sequence[Plant], transport: str, seed: int) -> tuple[Recording, list[Case]]:
    """A run, and the causes of the account, that first which took most."""
    plan = Scenario.parse(draw(plants, transport, seed).text(), f"{plants}, {transport}, {seed}").plan()
    recording = engines.get("sim").run(plan, Options(account=True))
    kept = account.of_connection(recording, metrics.connection(recording, "main"))
    assert kept is not None
    assert kept.capacity_bytes == kept.delivered_bytes + sum(each.bytes for each in kept.charges)
    return recording, cases(kept)


def dearest(plants: Sequence[Plant], transport: str, seed: int) -> list[str]:
    return [each.cause for each in ran(plants, transport, seed)[1]]


def all_kinds() -> Iterator[tuple[Plant, str]]:
    for plant in PLANTS.values():
        for transport in plant.transports:
            yield plant, transport


@pytest.mark.parametrize(
    ("plant", "transport"), list(all_kinds()), ids=lambda it: it if isinstance(it, str) else it.name
)
def test_the_planted_cause_is_the_dearest(plant: Plant, transport: str) -> None:
    assert dearest([plant], transport, 1)[0] == plant.cause


def test_there_are_enough_kinds_over_every_transport() -> None:
    assert len(list(all_kinds())) >= SCENARIOS
    for transport in ("mptcp", "mpquic"):
        assert len({plant.cause for plant, over in all_kinds() if over == transport}) >= KINDS
    assert {transport for _, transport in all_kinds()} == set(TRANSPORTS)


@pytest.mark.parametrize(
    ("plant", "transport"), list(all_kinds()), ids=lambda it: it if isinstance(it, str) else it.name
)
def test_without_the_planted_cause_at_least_half_of_it_is_gained(plant: Plant, transport: str) -> None:
    recording, (first, *_) = ran([plant], transport, 2)
    assert first.cause == plant.cause
    if remedies.has_remedy(first):
        (trial,) = remedies.verify(recording, metrics.connection(recording, "main"), [first])
        assert trial.gained_bytes >= LEAST * first.bytes


@pytest.mark.parametrize("transport", ["tcp", "quic"])
@pytest.mark.parametrize("name", ["random loss", "shallow queue"])
def test_of_two_planted_causes_on_one_path_both_come_first(name: str, transport: str) -> None:
    plants = (PLANTS[name], PLANTS["outage"])
    assert set(dearest(plants, transport, 1)[:2]) == {plant.cause for plant in plants}


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
