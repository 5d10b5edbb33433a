"""polypath compare --all and --labs, with engines that hand out Recordings made by hand."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Polypath, StandIn

from polypath import engines, labs
from polypath.cli import fidelity, fidelity_labs
from polypath.engines.linux.engine import LinuxEngine
from polypath.fidelity import FOLDER, Entry
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


def test_a_scenario_without_a_figure_was_not_compared(
    changed: Callable[[str, pl.DataFrame], Recording],
    recording: Recording,
    polypath: Polypath,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    bare = changed("connection_ends", recording.table("connection_ends").with_columns(end_ns=None))
    monkeypatch.setattr(engines, "REGISTRY", {name: lambda: StandIn(bare) for name in ("sim", "linux")})
    _entries(monkeypatch, Entry("tcp"))
    outcome = polypath("compare", "--all", "--markdown", tmp_path / "fidelity.md")
    assert outcome.code == 0
    assert "1 more has no figure to compare" in " ".join(outcome.out.split())
    assert "0 of 0 scenarios agree" in outcome.out
    assert "| completion of iperf, s |  |  |  | 0.0 | not compared |" in (tmp_path / "fidelity.md").read_text()


def test_noq_is_the_simulator_with_another_stack(
    two: tuple[StandIn, StandIn], polypath: Polypath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = Entry("mpquic", reference="noq", polypath=["defaults.ack_path=fastest"])
    _entries(monkeypatch, Entry("tcp"), own)
    outcome = polypath("compare", "--all", "--engines", "sim,noq", "--markdown", tmp_path / "noq.md")
    assert "1 of 1 scenarios agree" in outcome.out
    assert "noq-proto" in (tmp_path / "noq.md").read_text()
    sim, linux = two
    assert not linux.plans
    stacks = [plan.data["nodes"][0]["stack"] for plan in sim.plans]
    assert [(stack.get("stack"), stack["ack_path"]) for stack in stacks] == [(None, "fastest"), ("noq", "same")]


def test_any_scenario_of_quic_is_compared_with_noq(polypath: Polypath) -> None:
    outcome = polypath("compare", fidelity_of("quic-fetch-100kB"), "--engines", "sim,noq")
    assert outcome.code == 0
    assert "noq/sim" in outcome.out
    refused = polypath("compare", fidelity_of("tcp-fetch-100kB"), "--engines", "sim,noq")
    assert refused.code == 2
    assert "speaks QUIC and nothing else" in refused.err


def fidelity_of(name: str) -> Path:
    return FOLDER / f"{name}.toml"


def _only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    chosen = {name: labs.get(name) for name in names}
    monkeypatch.setattr(labs, "catalogue", lambda: chosen)


def test_a_lab_runs_in_the_kernels_profile_with_what_it_sets_itself() -> None:
    def stack_of(lab: str, run: str, host: str = "client") -> dict[str, str]:
        chosen = labs.get(lab)
        scenario = next(one for one in chosen.runs if one.name == run).of(chosen.scenario())
        nodes = fidelity_labs.in_the_kernels_profile(scenario).plan().data["nodes"]
        stack = next(each for each in nodes if each["name"] == host)["stack"]
        assert "slow_start" not in stack
        return {kind: stack[kind]["name"] for kind in ("scheduler", "path_manager", "congestion")}

    kernel = {"scheduler": "linux", "path_manager": "fullmesh", "congestion": "cubic"}
    assert stack_of("aggregation", "mptcp") == kernel
    assert stack_of("scheduler-reqres", "rr") == kernel | {"scheduler": "roundrobin"}
    assert stack_of("scheduler-reqres", "mixed") == kernel
    assert stack_of("scheduler-reqres", "mixed", "server") == kernel | {"scheduler": "roundrobin"}
    assert stack_of("path-manager-one-path", "ndiffports") == kernel | {"path_manager": "ndiffports"}
    assert stack_of("blest", "wlan-3g") == kernel | {"congestion": "olia"}
    assert stack_of("links-sweep", "reno") == kernel | {"congestion": "reno"}


def test_labs_are_compared_run_by_run(
    two: tuple[StandIn, StandIn], polypath: Polypath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _only(monkeypatch, "aggregation")
    monkeypatch.setattr(fidelity_labs, "lab_starts", dict)
    outcome = polypath("compare", "--labs", "--markdown", tmp_path / "labs.md")
    assert outcome.code == 0
    assert "0 of 4 runs agree" in outcome.out
    page = (tmp_path / "labs.md").read_text()
    for run in ("tcp", "mptcp", "window-100kB", "both-ways"):
        assert f"| `aggregation/{run}` | 1 | " in page
    assert " | 0.667 | 0.0 | **off** |" in page
    assert "Not for both engines" not in page


def test_a_run_that_chance_decides_is_repeated_on_both_engines(
    two: tuple[StandIn, StandIn], polypath: Polypath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _only(monkeypatch, "aggregation")
    each = {"aggregation/tcp": {"link.path0.delay": ["20 ms", "20.02 ms"]}}
    monkeypatch.setattr(fidelity_labs, "lab_starts", lambda: each)
    outcome = polypath("compare", "--labs", "--markdown", tmp_path / "labs.md")
    assert "0 of 4 runs agree" in outcome.out
    page = (tmp_path / "labs.md").read_text()
    assert "| `aggregation/tcp` | 2 | " in page
    assert "| `aggregation/mptcp` | 1 | " in page
    for engine in two:
        delays = [plan.data["links"][0]["forward"]["delay_ns"] for plan in engine.plans]
        assert delays == [20_000_000, 20_020_000, *[20_000_000] * 3]


def test_one_run_of_a_lab_is_compared_and_the_kernels_is_kept(
    two: tuple[StandIn, StandIn], polypath: Polypath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    versions = {"kernel": "one"}
    monkeypatch.setattr(LinuxEngine, "versions", lambda _: versions)
    made = replace(two[1].recording.metadata, versions=versions)
    sim, linux = two
    linux.recording = replace(linux.recording, metadata=made)
    each = {"aggregation/tcp": {"link.path0.delay": ["20 ms", "20.02 ms"]}}
    monkeypatch.setattr(fidelity_labs, "lab_starts", lambda: each)

    def compare(run: str = "tcp") -> str:
        return polypath("compare", "--labs", "aggregation", "--run", run, "--out", tmp_path / "kept").out

    first = compare()
    assert "0 of 1 runs agree" in first
    assert (len(sim.plans), len(linux.plans)) == (2, 2)
    assert compare() == first
    assert (len(sim.plans), len(linux.plans)) == (4, 2)

    table = next((tmp_path / "kept" / "aggregation" / "tcp").rglob("connection_ends.parquet"))
    table.write_bytes(table.read_bytes()[:-1])
    versions = {"kernel": "another"}
    compare()
    assert len(linux.plans) == 4


def test_a_known_cause_stands_below_the_table(
    two: tuple[StandIn, StandIn], polypath: Polypath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _only(monkeypatch, "aggregation")
    monkeypatch.setattr(fidelity_labs, "lab_causes", lambda: {"aggregation/tcp": "the moon was full"})
    outcome = polypath("compare", "--labs", "--markdown", tmp_path / "labs.md")
    assert "aggregation/tcp: the moon was full" in outcome.out
    assert "- `aggregation/tcp`: the moon was full\n" in (tmp_path / "labs.md").read_text()


def test_what_an_engine_refuses_is_listed_with_its_reason(
    two: tuple[StandIn, StandIn], polypath: Polypath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _only(monkeypatch, "path-manager-one-path")
    two[1].failure = "no such thing in a kernel"
    outcome = polypath("compare", "--labs", "--markdown", tmp_path / "labs.md")
    assert outcome.code == 0
    assert "0 of 0 runs agree" in outcome.out
    assert not two[0].plans
    runs = ", ".join(f"`path-manager-one-path/{run}`" for run in ("fullmesh", "ndiffports", "ndiffports-8"))
    assert f"- {runs}: no such thing in a kernel" in (tmp_path / "labs.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--all", "aggregation"), "the fidelity table as it is"),
        (("--all", "--set", "seed=2"), "as it is"),
        (("--all", "--engines", "sim,linux,other"), "two engines"),
        (("--all", "--labs"), "take one of them"),
        (("--labs", "--seed", "2"), "as it is"),
        (("--labs", "--run", "tcp"), "name the lab"),
        (("--labs", "agregation"), "did you mean 'aggregation'?"),
        (("--labs", "aggregation", "--run", "udp"), "lab 'aggregation' has no run 'udp'; it has tcp"),
        (("--labs", "aggregation", "--markdown", "page.md"), "without LAB"),
        (("--labs", "--engines", "linux,sim", "--out", "kept"), "the second engine is then linux"),
        ((), "name a lab or a scenario file"),
        (("aggregation", "--markdown", "page.md"), "--markdown goes with --all or --labs"),
    ],
)
def test_mistakes_are_one_line(
    two: tuple[StandIn, StandIn], polypath: Polypath, arguments: tuple[str, ...], words: str
) -> None:
    outcome = polypath("compare", *arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
