"""Schedulers in C beside a scenario: what is accepted, what the plan carries, and what the kernel does with them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from polypath.engines import EngineError, get
from polypath.engines.linux.kernel import KernelError, own
from polypath.engines.namespaces.algorithms import own_name
from polypath.results import Recording
from polypath.scenario import Scenario, ScenarioError

EXAMPLES = Path(__file__).parents[2] / "examples"
FILE = EXAMPLES / "threefold.c"

Load = Callable[..., Scenario]


def test_a_plan_carries_the_source_and_the_scenario_the_file(scenario: Load) -> None:
    found = scenario("pair", f"defaults.scheduler={FILE}")
    chosen = found.plan().data["nodes"][0]["stack"]["scheduler"]
    assert chosen == {"name": "c", "parameters": {"file": "threefold.c", "source": FILE.read_text()}}
    assert found.scripts() == found.code() == [FILE]
    stored = found.stored()
    assert stored.files == {"inputs/threefold.c": FILE.read_bytes()}
    assert 'scheduler = "inputs/threefold.c"' in stored.text
    assert len(own_name(chosen["parameters"])) < 16  # MPTCP_SCHED_NAME_MAX


def test_the_same_file_of_two_hosts_is_compiled_once(scenario: Load, tmp_path: Path) -> None:
    second = tmp_path / "second.c"
    second.write_text(FILE.read_text() + "\n")
    both = scenario("pair", f"host.client.scheduler={FILE}", f"host.server.scheduler={FILE}")
    assert [each["file"] for each in own.used(both.plan().view).values()] == ["threefold.c"]
    different = scenario("pair", f"host.client.scheduler={FILE}", f"host.server.scheduler={second}")
    assert sorted(each["file"] for each in own.used(different.plan().view).values()) == ["second.c", "threefold.c"]
    assert own.used(scenario("pair").plan().view) == {}


@pytest.mark.parametrize(
    ("text", "says"), [("int a;\n", r"has no OWN_SCHEDULER\(CHOOSE\)"), (None, "mine.c: no such file")]
)
def test_what_is_no_scheduler_is_told_in_a_line(scenario: Load, tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "mine.c"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ScenarioError, match=says):
        scenario("pair", f"defaults.scheduler={file}")


def test_parameters_are_refused(scenario: Load) -> None:
    with pytest.raises(ScenarioError, match="takes no parameters"):
        scenario("pair", f'defaults.scheduler={{kind = "{FILE}", k = 2}}')


@pytest.mark.parametrize("engine", ["sim", "live"])
def test_other_engines_refuse_it(scenario: Load, engine: str) -> None:
    with pytest.raises(EngineError, match=r"scheduler 'threefold\.c' is for Linux.*--engine linux does"):
        get(engine).run(scenario("pair", f"defaults.scheduler={FILE}").plan())


def test_a_kernel_by_name_does_not_have_it(scenario: Load) -> None:
    plan = scenario("pair", f"defaults.scheduler={FILE}", "host.server.kernel=mine").plan()
    with pytest.raises(KernelError, match="compiled into the recipe's kernel only"):
        own.require_on_usual(plan.view)


def _share(recording: Recording) -> float:
    sent = recording.table("subflow_ends").sort("subflow")["server_received_bytes"].to_list()
    return float(sent[0] / sum(sent))


@pytest.mark.slow
def test_the_kernel_and_the_simulator_share_alike(linux: Callable[..., Recording], scenario: Load) -> None:
    try:
        there = linux("pair", f"defaults.scheduler={FILE}")
    except KernelError as error:
        pytest.skip(str(error))
    here = get("sim").run(scenario("pair", f"defaults.scheduler={EXAMPLES}/threefold.py:Threefold").plan())
    assert _share(here) == pytest.approx(0.75, abs=0.02)
    assert _share(there) == pytest.approx(_share(here), rel=0.05)
