"""Accounts of runs on the kernel: their parts add up, and what was planted comes first."""

from __future__ import annotations

import re

import pytest

from polypath.engines import Options
from polypath.engines.linux import LinuxEngine
from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported
from polypath.engines.namespaces.account.totals import Total
from polypath.remedies import cases, verify
from polypath.results import Recording, account, metrics
from polypath.scenario import Scenario

from ..explain.planted import PLANTS, Plant, draw
from ..slow import others_slow

#: What the kernel's counters tell; of Multipath TCP the kernel's own limits come before some of them.
TOLD = {
    "random loss": ("tcp", "mptcp"),
    "shallow queue": ("tcp",),
    "receive window": ("tcp", "mptcp"),
    "send buffer": ("tcp",),
    "outage": ("tcp", "mptcp"),
    "slow application": ("tcp", "mptcp"),
    "cross traffic": ("tcp", "mptcp"),
    "backup": ("mptcp",),
    "no second subflow": ("mptcp",),
    "slow start": ("tcp",),
    "small packets": ("tcp",),
    "loss behind": ("tcp", "mptcp"),
}
FAST = (("random loss", "mptcp"), ("receive window", "tcp"), ("outage", "mptcp"), ("cross traffic", "tcp"))


@pytest.fixture
def kernel() -> None:
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))


def planted(plant: Plant, transport: str) -> Scenario:
    """As the simulator's tests draw it, with what the kernel does not have left to the kernel."""
    text = draw([plant], transport, 1).text()
    text = re.sub(r"^scheduler = \{.*$", 'scheduler = "default"', text, flags=re.MULTILINE)
    text = re.sub(r"^(recovery|rto_min) = .*$", "", text, flags=re.MULTILINE)
    manager = "" if "path_manager" in text else '\npath_manager = "fullmesh"'
    return Scenario.parse(text.replace("[defaults]", f'[defaults]\nprofile = "linux"{manager}'), plant.name)


def explained(recording: Recording) -> account.Account:
    kept = account.of_connection(recording, metrics.connection(recording, "main"))
    assert kept is not None
    assert kept.capacity_bytes == kept.delivered_bytes + sum(each.bytes for each in kept.charges)
    return kept


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("name", "transport"),
    others_slow([(name, each) for name, transports in TOLD.items() for each in transports], *FAST),
)
def test_the_planted_cause_is_the_dearest(name: str, transport: str) -> None:
    plant = PLANTS[name]
    plan = planted(plant, transport).plan()
    kept = explained(LinuxEngine().run(plan, Options(account=True)))
    assert cases(kept)[0].cause == plant.cause
    rates = [link["forward"]["rate_bps"] or 0 for link in plan.data["links"]]
    whole = sum(rates) / 8 * (kept.until_ns - kept.since_ns) / 1e9
    assert kept.capacity_bytes == pytest.approx(whole, rel=0.001)


@pytest.mark.usefixtures("kernel")
def test_an_account_changes_nothing_else_and_its_remedy_runs_on_the_kernel() -> None:
    plan = planted(PLANTS["random loss"], "tcp").plan()
    recording = LinuxEngine().run(plan, Options(account=True))
    bare = LinuxEngine().run(plan)
    assert bare.metadata.recording_sha256 == recording.metadata.recording_sha256
    assert bare.table("account").is_empty()
    connection = metrics.connection(recording, "main")
    (trial,) = verify(recording, connection, cases(explained(recording))[:1])
    assert trial.gained_bytes > trial.case.bytes / 2


@pytest.mark.usefixtures("kernel")
def test_a_link_that_never_comes_up_does_not_count() -> None:
    scenario = planted(PLANTS["random loss"], "mptcp")
    scenario = scenario.with_settings(["link.path1.up=false"])
    kept = explained(LinuxEngine().run(scenario.plan(), Options(account=True)))
    assert {each.path for each in kept.charges} == {"path0"}


def test_a_total_is_straight_between_samples_and_still_behind_them() -> None:
    total = Total([(10, 100.0), (20, 300.0), (20, 310.0)])
    assert [total.at(time) for time in (0, 10, 15, 20, 99)] == [0.0, 100.0, 205.0, 310.0, 310.0]
    assert total.grown(10, 20) == 210.0
    assert Total(()).at(5) == 0.0
