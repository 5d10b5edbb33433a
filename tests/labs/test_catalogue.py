"""The catalogue is complete and consistent, and a lab's folder that is not is refused."""

import functools
import importlib.util
import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from polypath import labs, registry
from polypath.cli import fidelity_labs
from polypath.fidelity import lab_causes, lab_starts, varied
from polypath.formats import plan as plans
from polypath.labs.models import REGISTRY as MODELS
from polypath.labs.shapes import REGISTRY as SHAPES
from polypath.measures import REGISTRY as MEASURES
from polypath.scenario import Scenario, ScenarioError, describe_topology
from polypath.sweeps import Point, points

from ..slow import others_slow

SMALL = Path(__file__).parents[1] / "scenario" / "registry.json"
NAMES = [
    "aggregation",
    "backup",
    "bbr-sharing",
    "bcube-subflows",
    "bcube-traffic",
    "blest",
    "buffers",
    "careful-resume",
    "congestion",
    "dctcp-bottlenecks",
    "dctcp-queue",
    "degraded-core",
    "delay-classes",
    "delay-sigmoid",
    "exposure",
    "failover",
    "fairness",
    "fat-tree-controller",
    "fat-tree-permutation",
    "fat-tree-subflows",
    "fat-tree-traffic",
    "hybrid-bonding",
    "hybrid-carriage",
    "hybrid-overflow",
    "hybrid-proxies",
    "incast",
    "khalili-a",
    "khalili-c",
    "l4s",
    "links-sweep",
    "loss-curves",
    "middleboxes",
    "mpquic-design",
    "multipath-quic",
    "path-manager-mesh",
    "path-manager-one-path",
    "path-manager-two-paths",
    "path-mtu",
    "python-scheduler",
    "quic-handover",
    "quic-scheduler",
    "quic-streams",
    "quic-uniflows",
    "receive-buffer",
    "response-function",
    "satellite-handover",
    "scheduler-http",
    "scheduler-reqres",
    "settings-grid",
    "shared-bottleneck",
    "short-flows",
    "switch-failure",
    "three-level",
    "video",
    "vl2-subflows",
    "wifi-walk",
    "window-sweep",
]


@pytest.fixture(autouse=True)
def algorithms(replace_registry: Callable[[Callable[[registry.Kind], str]], None]) -> None:
    """The engine's own registry where it is built, for the labs must run on it."""
    if importlib.util.find_spec("polypath._core") is None:
        known = json.loads(SMALL.read_text())
        replace_registry(lambda kind: json.dumps(known[kind]))


#: Writing a scenario with more takes seconds; what is in it, small ones have, too.
MOST_LINKS = 150


@functools.cache
def runs_of(name: str) -> dict[str, Scenario]:
    lab = labs.get(name)
    scenario = lab.scenario()
    return {run.name: run.of(scenario) for run in lab.runs}


def _told_apart(name: str) -> dict[str, Scenario]:
    """A lab's runs; of a design of experiments, whose runs differ in the transport alone, the first."""
    runs = runs_of(name)
    first = next(iter(runs))
    long = sum(len(axis.values) for axis in runs[first].axes) >= 50
    return {first: runs[first]} if long else runs


def _spread(points: Sequence[Point], most: int = 250) -> Sequence[Point]:
    """So many points of a sweep, evenly over it."""
    return points[:: -(-len(points) // most)]


def test_causes_and_starts_are_of_runs_that_there_are() -> None:
    runs = {f"{name}/{run.name}": (name, run.name) for name in NAMES for run in labs.get(name).runs}
    assert lab_causes()
    assert set(lab_causes()) <= set(runs)
    assert lab_starts()
    for name, each in lab_starts().items():
        concerned = [runs_of(lab)[run] for whole, (lab, run) in runs.items() if name in (whole, lab)]
        assert concerned, name
        for scenario in concerned:
            first = fidelity_labs.in_the_kernels_profile(scenario)
            given = [one.plan() for one in varied(first, each)]
            assert len({plan.json() for plan in given}) == len(given) > 1, name


def test_the_labs_are_these() -> None:
    assert list(labs.catalogue()) == NAMES


def test_unknown_labs_have_a_suggestion() -> None:
    with pytest.raises(ScenarioError) as caught:
        labs.get("agregation")
    assert str(caught.value) == "unknown lab 'agregation'; did you mean 'aggregation'?"
    with pytest.raises(ScenarioError, match=r"^unknown lab 'zzz'; there is aggregation, backup, "):
        labs.get("zzz")


#: Networks of hundreds of hosts, whose plans take seconds; three labs have smaller ones of the same kinds.
LARGE = {"bcube-traffic", "fat-tree-traffic", "short-flows", "vl2-subflows"}


@pytest.mark.parametrize("name", others_slow(NAMES, *(name for name in NAMES if name not in LARGE)))
class TestLab:
    def test_every_run_gives_a_plan(self, name: str) -> None:
        runs, whole = runs_of(name), _told_apart(name)
        hashes = [point.plan_sha256 for scenario in whole.values() for point in _spread(points(scenario, later=True))]
        hashes += [
            scenario.at([axis.values[0] for axis in scenario.axes]).plan().sha256()
            for run, scenario in runs.items()
            if run not in whole
        ]
        assert len(set(hashes)) == len(hashes) >= len(runs)

    def test_every_run_has_a_plan_for_the_comparison_of_engines(self, name: str) -> None:
        for scenario in runs_of(name).values():
            assert fidelity_labs.in_the_kernels_profile(scenario).plan()

    def test_every_run_comes_back_from_its_resolved_scenario(self, name: str) -> None:
        for run, scenario in _told_apart(name).items():
            last = scenario.at([axis.values[-1] for axis in scenario.axes])
            plan = last.plan()
            if len(plan.view["links"]) <= MOST_LINKS:
                assert Scenario.parse(last.to_toml(resolved=True), "x.toml").plan() == plan, run

    def test_every_run_comes_back_from_its_plan(self, name: str) -> None:
        for scenario in _told_apart(name).values():
            plan = scenario.at([axis.values[0] for axis in scenario.axes]).plan()
            reason = (
                "its controller is not turned into a scenario"
                if "controller" in plan.data
                else "it has an algorithm in Python, whose file is not known"
                if '"python"' in json.dumps(plan.data)
                else None
            )
            if reason is None:
                made = plans.scenario_of(plan, "plan.json").plan()
                assert plans.normal(made.data) | {"name": ""} == plans.normal(plan.data) | {"name": ""}
            else:
                with pytest.raises(ScenarioError, match=rf"no scenario has this plan: {reason}"):
                    plans.scenario_of(plan, "plan.json")

    def test_expectations_name_measures_runs_and_connections_that_exist(self, name: str) -> None:
        lab = labs.get(name)
        runs = {run: {one.name for one in scenario.application} for run, scenario in runs_of(name).items()}
        assert lab.expectations
        for expectation in lab.expectations:
            assert expectation.measure in MEASURES
            assert expectation.run in runs
            taken = MEASURES[expectation.measure].parameters
            one = [expectation.connection] if expectation.connection else []
            several = expectation.parameters.get("connections", one)
            choices = [taken[key] for key in ("connection", "connections") if key in taken]
            assert several or all(key.default is not inspect.Parameter.empty for key in choices)
            assert set(several) <= runs[expectation.run]
            assert expectation.published

    def test_expectations_name_axes_labels_models_and_shapes_that_exist(self, name: str) -> None:
        lab = labs.get(name)
        axes = {run: {axis.name: axis.labels for axis in scenario.axes} for run, scenario in runs_of(name).items()}
        for expectation in lab.expectations:
            other = expectation.relative_to or {}
            for run, at in (
                (expectation.run, expectation.at),
                (other.get("run", expectation.run), other.get("at", {})),
            ):
                for axis, label in at.items():
                    assert label in axes[run][axis]
            if expectation.along is not None:
                assert expectation.along in axes[expectation.run]
            assert expectation.shape in SHAPES
            assert other.get("model") in {None, *MODELS}

    def test_parameters_are_those_that_the_measure_takes(self, name: str) -> None:
        for expectation in labs.get(name).expectations:
            taken = MEASURES[expectation.measure].parameters.values()
            inspect.Signature([*taken]).bind(**expectation.parameters)

    def test_the_readme_has_question_answer_and_more(self, name: str) -> None:
        lab = labs.get(name)
        assert lab.readme.startswith(f"# {lab.title}\n\n**{lab.question}**\n")
        for heading in ("## What to expect, and why", "## Things to try"):
            assert heading in lab.readme

    def test_the_readme_shows_the_bounds(self, name: str) -> None:
        lab = labs.get(name)
        for run in lab.runs:
            assert f"`{run.name}`" in lab.readme or name == "congestion"

    def test_the_picture_is_the_scenarios(self, name: str) -> None:
        lab = labs.get(name)
        assert lab.picture == describe_topology(Scenario.load(lab.folder / "scenario.toml"))
        assert "client" in lab.picture or "h0" in lab.picture


def test_labs_of_the_tutorial_ask_what_a_reader_could_explain() -> None:
    found = [lab for lab in labs.catalogue().values() if lab.source.startswith("ACM SIGCOMM 2020 tutorial")]
    assert len(found) == 12
    for lab in found:
        assert len(lab.questions) >= 2, lab.name
        for each in lab.questions:
            assert each.question.endswith("?")
            assert each.hint.endswith(".")


BOUNDS = {
    "multipath-quic/GET over one path": (4.2, 4.7),
    "multipath-quic/GET over two paths, lowest RTT": (None, 2.6),
    "multipath-quic/GET over two paths, round robin": (None, 2.6),
    "quic-scheduler/client's packets on the second path over the first's, weights 1:2, in Rust": (1.9, 2.1),
    "quic-scheduler/client's packets on the second path over the first's, weights 1:2, in Python": (1.9, 2.1),
    "quic-uniflows/kB from the server on the first path, asymmetric": (None, 0),
    "quic-uniflows/kB from the client on the third path, asymmetric": (None, 0),
    "mpquic-design/low products: points at which a second path gains, Multipath QUIC": (0.65, 0.89),
    "mpquic-design/low products: points at which a second path gains, Multipath TCP": (0.33, 0.57),
    "mpquic-design/high products: points at which a second path gains, Multipath QUIC": (0.46, 0.7),
    "mpquic-design/high products: points at which a second path gains, Multipath TCP": (0.08, 0.32),
    "aggregation/tcp": (18.5, 20),
    "aggregation/mptcp": (1.85, 2.05),
    "aggregation/window of 100 kB": (9, 10),
    "aggregation/both ways, back": (20, 40),
    "scheduler/reqres-rtt, least delay": (40, None),
    "scheduler/reqres-rtt, greatest delay": (None, 55),
    "scheduler/reqres-rr, first delay": (None, 60),
    "scheduler/reqres-rr, part of the others at 80-100 ms": (0.8, None),
    "scheduler/reqres-mixed, part of the others at 60-75 ms": (0.8, None),
    "scheduler/http, TCP": (4.0, 4.8),
    "scheduler/http, rtt, 300 kB windows": (0.9, None),
    "scheduler/http, rr, 300 kB windows": (6.3, 7.7),
    "scheduler/http, rtt, 8 MB windows": (None, 0.65),
    "scheduler/http, rtt, 1 MB windows against 8 MB": (1, None),
    "scheduler/http, rr, 1 MB windows against 8 MB": (1, None),
    "scheduler/http, rr, 8 MB windows": (None, 0.65),
    "path-manager/one-path fullmesh, subflows": (1, 1),
    "path-manager/one-path ndiffports, subflows": (2, 2),
    "path-manager/two-paths fullmesh, subflows": (2, 2),
    "path-manager/two-paths fullmesh, goodput": (44, 50),
    "path-manager/two-paths ndiffports, goodput": (22, 25),
    "path-manager/two-paths default, goodput": (22, 25),
    "path-manager/two-paths server-only, subflows": (1, 1),
    "path-manager/mesh fullmesh, subflows": (4, 4),
    "path-manager/mesh unannounced, subflows": (2, 2),
    "backup/announced, delays above 0.2 s": (None, 0),
    "backup/short-rto, greatest delay": (None, 0.9),
    "congestion/4sf lia, TCP 1, share of the link of 20 ms": (7.2, None),
    "backup/topo_bk, unanswered": (None, 0),
    "backup/topo_bk, delays of 0.2-1.2 s": (1, 2),
    "backup/topo_bk, least of the last five delays": (29, None),
    "backup/topo_bk, greatest of the last five delays": (None, 36),
    "congestion/1sf reno, TCP 1 10-20 s": (7.5, 12.5),
    "congestion/1sf reno, TCP 2 20-30 s": (7.5, 12.5),
    "congestion/1sf reno, TCP 2 30-40 s": (7.5, 12.5),
    "congestion/1sf olia, TCP 1 20-30 s": (7.5, 12.5),
    "congestion/1sf olia, TCP 2 30-40 s": (7.5, 12.5),
    "congestion/1sf olia, MPTCP 20-30 s": (15, 25),
    "congestion/4sf reno, TCP 1 on the link of 20 ms": (None, 6.4),
    "congestion/4sf olia, TCP 2 on the link of 80 ms": (1.3, None),
    "buffers/lan, 2.5 MB, part of what the links carry": (0.9, None),
    "buffers/wan, 12 MB, part of what the links carry": (0.9, None),
    "buffers/mixed, fall below a smaller buffer's goodput": (None, 0.03),
    "delay-classes/spread, bytes on the paths of 34, 38 and 43 ms": (0.95, None),
    "delay-classes/classes, bytes on the two paths of 43 ms": (0.95, None),
    "delay-sigmoid, part of what the links carry": (0.83, None),
    "delay-sigmoid, bytes on the last path, 374 ms": (None, 0.2),
    "delay-sigmoid, bytes on the last path, 265 ms, without penalties": (0.15, 0.25),
    "blest/wlan-3g, goodput of blest": (1.05, 1.2),
    "blest/wlan-3g, bytes reinjected by blest": (None, 0.4),
    "blest/wlan-3g, goodput of daps": (0.58, 0.88),
    "blest/equal, goodput of blest": (0.97, 1.03),
    "fairness/one, lia, tcp-1": (0.85, None),
    "fairness/one, lia, Jain's index": (0.75, None),
    "fairness/two, olia, tcp-2": (0.85, None),
    "fairness/two, olia, Jain's index": (0.79, None),
    "fairness/two, balia, tcp-1": (0.85, None),
    "khalili-a/lia, 10 multipath users, theirs": (0.98, 1.02),
    "khalili-a/lia, 10 multipath users, the single-path users'": (0.689, 0.789),
    "khalili-a/lia, 30 multipath users, the single-path users'": (0.44, 0.56),
    "khalili-a/olia, 30 multipath users, what single-path users gain": (0.05, None),
    "khalili-c/lia, 10 multipath users, theirs": (1.246, 1.346),
    "khalili-c/lia, 10 multipath users, the single-path users'": (0.654, 0.754),
    "khalili-c/lia, 30 multipath users, the single-path users'": (0.395, 0.525),
    "khalili-c/olia, 10 multipath users, what single-path users gain": (0.03, None),
    "khalili-c/olia, 30 multipath users, the single-path users'": (None, 0.77),
    "receive-buffer/mptcp, every buffer": (0.95, None),
    "receive-buffer/plain, 200 kB": (None, 0.9),
    "receive-buffer/plain, 500 kB": (None, 0.9),
    "receive-buffer/plain, 3 MB": (9.2, None),
    "links-sweep/reno, part of what the links carry": (0.9, None),
    "links-sweep/lia, part of what the links carry": (0.9, None),
    "fat-tree/permutation, TCP": (46, 56),
    "fat-tree/permutation, LIA, 1 subflow": (44, 54),
    "fat-tree/permutation, LIA, 2 subflows": (61, 71),
    "fat-tree/permutation, LIA, 4 subflows": (76, 86),
    "fat-tree/permutation, LIA, 8 subflows": (88, 98),
    "fat-tree/permutation, 8 paths": (90, 100),
    "fat-tree/subflows, 2 over random routes": (18, 20),
    "fat-tree/subflows, 4 over random routes": (33, 40),
    "fat-tree/subflows, 4 placed in turn": (33, 40),
    "path-mtu/tcp-told, completion": (8.39, 9.33),
    "path-mtu/tcp-nat, completion": (8.39, 9.33),
    "path-mtu/tcp-filtered, goodput": (None, 0),
    "path-mtu/tcp-black-hole, completion": (11.39, 16.2),
    "path-mtu/tcp-probing, completion": (8.39, 9.47),
    "path-mtu/mptcp-told, completion": (4.26, 4.74),
    "path-mtu/mptcp-told, bytes on the tunnel": (0.4, 0.6),
    "path-mtu/mptcp-first-filtered, goodput": (None, 0),
    "path-mtu/mptcp-second-filtered, goodput up to 9.46 s": (8.45, None),
    "path-mtu/mptcp-second-filtered, bytes on the tunnel": (None, 0.001),
    "path-mtu/mptcp-second-black-hole, completion": (5.76, 8.1),
    "settings-grid/fullmesh, 8-24 s": (0.01, None),
    "settings-grid/default, 8-24 s": (None, 0),
    "settings-grid/ndiffports, 8-24 s": (None, 0),
    "shared-bottleneck/N, goodput": (None, 10),
    "shared-bottleneck/N, 30 against 16": (None, 1),
    "shared-bottleneck/spread, N=16": (15.2, None),
    "shared-bottleneck/spread, 256 KiB, N=16": (None, 8),
    "shared-bottleneck/hashed, N=16": (9.5, 11.1),
    "window-sweep, 10 kB": (0.9, 1.1),
    "window-sweep, 10 MB": (0.9, 1.1),
    "congestion/4sf olia, TCP 1, share of the link of 20 ms": (7.2, None),
    "exposure/mptcp, equal, share that one path sees": (0.97, 1.06),
    "exposure/mptcp, balanced 5 %, goodput": (0.85, 0.96),
    "exposure/mptcp, redundant, goodput": (10.8, 11.4),
    "response-function/reno, 100 ms, 1 of 10000": (108, 132),
    "response-function/cubic, 100 ms, 1 of 1000": (34.2, 41.8),
    "response-function/cubic, 100 ms, 1 of 100000": (948.6, 1159.4),
    "dctcp-bottlenecks/S1, on the wire": (41.4, 50.6),
    "dctcp-bottlenecks/S2, on the wire": (427.5, 522.5),
    "dctcp-bottlenecks/S3, on the wire": (48.6, 59.4),
    "dctcp-queue/mean with marks from 20 packets on": (16.7, 22),
    "incast/DCTCP, 35 servers, timeouts": (None, 0),
    "l4s/Prague over CUBIC, 50 Mbps, 10 ms": (2.0, 3.34),
    "l4s/Prague over CUBIC, 50 Mbps, 20 ms": (1.58, 2.64),
    "l4s/Prague over CUBIC, 10 Mbps, 80 ms": (1.29, 2.14),
    "bbr-sharing/beside Reno": (3.5, 4.5),
    "bbr-sharing/beside CUBIC": (3.5, 4.5),
    "careful-resume/5 MB, round trips saved": (1.3, 1.9),
    "careful-resume/slower path, resumed over fresh": (None, 1.1),
    "loss-curves/BBR, tcp, 5 %": (86.3, 91.7),
    "loss-curves/BBR, quic, 10 %": (76.2, 85.5),
}


def test_bounds_are_those_published() -> None:
    """A bound is changed by changing it here, in the open, and never to fit the code."""
    found = {
        expectation.name: (expectation.minimum, expectation.maximum)
        for lab in labs.catalogue().values()
        for expectation in lab.expectations
    }
    assert {name: found[name] for name in BOUNDS} == BOUNDS


class TestFolders:
    LAB = 'title = "T"\nquestion = "Q?"\nsource = "S"\n[[run]]\nname = "a"\n'
    EXPECT = '[[expect]]\nname = "e"\npublished = "p"\nmeasure = "goodput"\nrun = "{}"\nconnection = "c"\n{}\n'

    def refused(self, folder: Path, text: str) -> str:
        (folder / "lab.toml").write_text(text)
        with pytest.raises(ScenarioError) as caught:
            labs.Lab.load(folder)
        return str(caught.value).removeprefix(f"{folder}/")

    def test_a_whole_lab(self, tmp_path: Path) -> None:
        (tmp_path / "lab.toml").write_text(self.LAB + self.EXPECT.format("a", "min = 1\nfrom_s = 2"))
        lab = labs.Lab.load(tmp_path)
        assert lab.name == tmp_path.name
        assert lab.expectations[0].parameters == {"connection": "c", "from_s": 2}
        assert (lab.expectations[0].minimum, lab.expectations[0].maximum) == (1, None)

    def test_no_lab(self, tmp_path: Path) -> None:
        with pytest.raises(ScenarioError, match=r"lab\.toml: no such file"):
            labs.Lab.load(tmp_path)

    def test_a_missing_key(self, tmp_path: Path) -> None:
        said = "lab.toml:1: unknown key 'titel'; did you mean 'title'?"
        assert self.refused(tmp_path, self.LAB.replace("title", "titel")) == said

    def test_no_bounds(self, tmp_path: Path) -> None:
        text = self.LAB + self.EXPECT.format("a", "")
        assert self.refused(tmp_path, text) == "lab.toml:6: expect 1: expectation 'e' has neither 'min' nor 'max'"

    def test_a_run_that_is_not_there(self, tmp_path: Path) -> None:
        text = self.LAB + self.EXPECT.format("b", "min = 1")
        said = "lab.toml:10: expectation 'e' names run 'b', which the lab does not define; it has a"
        assert self.refused(tmp_path, text) == said

    def test_a_run_twice(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path, self.LAB + '[[run]]\nname = "a"\n') == "lab.toml:7: there are two runs 'a'"

    def test_no_toml(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path, "=").startswith("lab.toml:1: invalid TOML: ")
