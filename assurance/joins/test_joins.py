"""The cases of the kernel's selftest of joins: each can be written, and a few are run on the simulator alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported

from .__main__ import causes, unexplained
from .case import Case
from .cases import CASES
from .run import Outcome, outcomes, scenario, simulated

PAGE = Path(__file__).resolve().parents[1] / "records" / "joins.md"

#: Cases of every kind, as many as share a boot of the guest.
SOME = (
    "multiple subflows, limited by server",
    "signal addresses race test",
    "remove subflow and signal",
    "remove id 0 address",
    "add multiple addresses IPv6",
    "simult IPv4 and IPv6 subflows",
    "mpc backup both sides",
    "multiple addresses with ports",
    "default limits, server deny join id 0",
    "fullmesh test 1x2, limited",
    "fastclose test",
    "fastclose server test",
)


def test_every_case_is_a_scenario_of_its_own_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60
    for case in CASES:
        assert scenario([case]).unused == []


def test_causes_are_of_cases() -> None:
    assert {*causes()} <= {case.name for case in CASES}


def _named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize("name", SOME)
def test_the_simulator_counts_what_upstream_asks_for(name: str) -> None:
    case = _named(name)
    (found,) = simulated([case])
    assert {counter: found.get(counter, 0) for counter in case.expect} == case.expect


def test_a_difference_needs_a_cause_and_a_cause_a_difference() -> None:
    case = _named("single subflow")
    alike, apart = Outcome(case, {"a": 1}, {"a": 1}), Outcome(case, {"a": 1}, {})
    assert unexplained([alike], {}) == unexplained([apart], {case.name: "why"}) == []
    assert "differ in a" in unexplained([apart], {})[0]
    assert "nothing differs" in unexplained([alike], {case.name: "why"})[0]


def test_the_kernel_counts_as_the_simulator_does() -> None:
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))
    found = list(outcomes([_named(name) for name in SOME]))
    known = {name: cause for name, cause in causes().items() if name in SOME}
    assert len(found) == len(SOME)
    assert unexplained(found, known) == []


def test_the_page_has_every_case() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert rows[1:] == [case.name for case in CASES]
