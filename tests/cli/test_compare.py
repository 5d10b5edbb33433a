"""polypath compare --all, with engines that hand out Recordings made by hand."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Polypath, StandIn

from polypath import engines
from polypath.cli import fidelity
from polypath.fidelity import Entry
from polypath.results import Recording


@pytest.fixture
def two(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording], monkeypatch: pytest.MonkeyPatch
) -> tuple[StandIn, StandIn]:
    """`sim` and `linux`, whose last byte comes a second later."""
    later = recording.table("connection_ends").with_columns(pl.col("last_byte_ns") + 1_000_000_000)
    made = StandIn(recording), StandIn(changed("connection_ends", later), name="linux")
    monkeypatch.setattr(engines, "REGISTRY", {"sim": lambda: made[0], "linux": lambda: made[1]})
    return made


def _entries(monkeypatch: pytest.MonkeyPatch, *entries: Entry) -> None:
    monkeypatch.setattr(fidelity, "catalogue", lambda: entries)


def test_each_scenario_runs_on_both_engines_with_each_seed(
    two: tuple[StandIn, StandIn], polypath: Polypath, monkeypatch: pytest.MonkeyPatch
) -> None:
    _entries(monkeypatch, Entry("tcp", seeds=2), Entry("mptcp"))
    polypath("compare", "--all")
    for engine in two:
        assert [(plan.data["name"], plan.data["seed"]) for plan in engine.plans] == [
            ("tcp", 1),
            ("tcp", 2),
            ("mptcp", 1),
        ]


def test_a_difference_without_a_cause_is_a_miss(
    two: tuple[StandIn, StandIn], polypath: Polypath, monkeypatch: pytest.MonkeyPatch
) -> None:
    _entries(monkeypatch, Entry("tcp"))
    outcome = polypath("compare", "--all")
    assert outcome.code == 1
    assert "0 of 1 scenarios agree" in outcome.out
    _entries(monkeypatch, Entry("tcp", cause="the moon was full"))
    outcome = polypath("compare", "--all")
    assert outcome.code == 0
    assert "tcp: the moon was full" in outcome.out


def test_the_page_has_every_figure(
    two: tuple[StandIn, StandIn], polypath: Polypath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _entries(monkeypatch, Entry("tcp", cause="the moon was full"))
    polypath("compare", "--all", "--markdown", tmp_path / "fidelity.md")
    page = (tmp_path / "fidelity.md").read_text()
    assert "0 of 1 scenarios agree" in page
    assert "| completion of iperf, s | 2.000 | 3.000 | 0.667 | 0.0 | **off** |" in page
    assert "- `tcp`: the moon was full" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--all", "aggregation"), "as it is"),
        (("--all", "--set", "seed=2"), "as it is"),
        (("--all", "--engines", "sim,linux,other"), "two engines"),
        ((), "name a lab or a scenario file"),
        (("aggregation", "--markdown", "page.md"), "--markdown goes with --all"),
    ],
)
def test_mistakes_are_one_line(
    two: tuple[StandIn, StandIn], polypath: Polypath, arguments: tuple[str, ...], words: str
) -> None:
    outcome = polypath("compare", *arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
