"""`polypath plot`: which figures, in which form, and where they go."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from polypath import cli
from polypath.cli import plot as command
from polypath.results import Recording


@pytest.fixture
def result(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> Path:
    out = tmp_path / "result"
    assert polypath("run", scenario, "--out", out).code == 0
    return out


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def test_figures_of_a_result_become_part_of_it(polypath: Any, result: Path) -> None:
    outcome = polypath(
        "plot", result, "--kind", "rate,delays+cdf", "--format", "pdf", "--size", "3.5x2.4", "--no-title"
    )
    assert outcome.code == 0
    assert names(result / "plots") == {"rate.pdf", "delays-cdf.pdf"}
    listed = json.loads((result / "manifest.json").read_text())["files"]
    assert {"plots/rate.pdf", "summary.json"} <= listed.keys()
    assert Recording.load(result).metadata.scenario == "small"
    first = (result / "plots" / "rate.pdf").read_bytes()
    assert polypath("plot", result, "--kind", "rate", "--format", "pdf", "--size", "3.5x2.4", "--no-title").code == 0
    assert (result / "plots" / "rate.pdf").read_bytes() == first
    assert names(result / "plots") == {"rate.pdf", "delays-cdf.pdf"}


def test_the_usual_figures_are_those_of_a_run(polypath: Any, result: Path, scenario: Path, tmp_path: Path) -> None:
    assert polypath("plot", result).code == 0
    assert polypath("run", scenario, "--out", tmp_path / "drawn", "--plot").code == 0
    assert names(result / "plots") == names(tmp_path / "drawn" / "plots")
    for name in names(result / "plots"):
        assert (result / "plots" / name).read_bytes() == (tmp_path / "drawn" / "plots" / name).read_bytes()


def test_what_a_person_changed_stays(polypath: Any, result: Path) -> None:
    assert polypath("plot", result, "--kind", "rate").code == 0
    figure = result / "plots" / "rate.png"
    figure.write_bytes(b"mine")
    outcome = polypath("plot", result, "--kind", "rate")
    assert outcome.code == 2
    assert "was changed since it was written" in outcome.err
    assert figure.read_bytes() == b"mine"


def test_what_a_kind_needs_is_said(polypath: Any, result: Path) -> None:
    outcome = polypath("plot", result, "--kind", "player+quality")
    assert outcome.code == 2
    said = "'player+quality' has nothing to show and is not drawn; it needs an application of kind `video`\n"
    assert said in outcome.err


def test_several_results_go_to_a_folder_of_figures(
    polypath: Any, result: Path, engine: Any, scenario: Path, tmp_path: Path
) -> None:
    other, out = tmp_path / "other", tmp_path / "figures"
    assert polypath("run", scenario, "--out", other).code == 0
    outcome = polypath("plot", result, other)
    assert outcome.code == 2
    assert outcome.err == "polypath: figures of 2 results need --out DIR to write to\n"
    assert polypath("plot", result, other, "--out", out).code == 0
    drawn = {"rate.png", "window-rtt.png", "sequence-beginning.png", "waits.png", "delays-cdf.png"}
    assert names(out) == {"figures.json", *drawn}
    told = json.loads((out / "figures.json").read_text())
    assert [each["scenario"] for each in told["drawn"]["rate.png"]] == ["small", "small"]
    assert polypath("plot", result, other, "--kind", "cdf", "--format", "svg", "--out", out).code == 0
    assert names(out) == {"figures.json", "cdf.svg", *drawn}
    assert json.loads((out / "figures.json").read_text())["drawn"].keys() == {"cdf.svg", *drawn}
    (out / "rate.png").write_bytes(b"mine")
    outcome = polypath("plot", result, other, "--out", out)
    assert outcome.code == 2
    assert "rate.png was changed since it was written" in outcome.err


def test_a_folder_that_is_not_of_figures_is_left_alone(polypath: Any, result: Path, tmp_path: Path) -> None:
    mine = tmp_path / "paper"
    mine.mkdir()
    (mine / "rate.png").write_bytes(b"mine")
    for out, reason in ((mine, "is not empty and is not a Polypath result"), (result, "holds the result of a run")):
        outcome = polypath("plot", result, "--out", out)
        assert outcome.code == 2
        assert reason in outcome.err
    assert names(mine) == {"rate.png"}


@pytest.mark.parametrize("name", ["漢字🚀 شبكة हिन्दी", "\x07\x1b[31m", "$\\frac$"])
def test_names_that_no_font_has_are_drawn_without_a_word(
    polypath: Any, result: Path, tmp_path: Path, name: str
) -> None:
    shutil.copytree(result, tmp_path / name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = polypath("plot", result, tmp_path / name, "--kind", "rate", "--out", tmp_path / "to")
    assert outcome.code == 0
    assert outcome.err == f"{tmp_path / 'to' / 'rate.png'}\n"


def test_runs_are_told_apart_in_the_legend(recording: Recording, tmp_path: Path) -> None:
    from dataclasses import replace

    def named(*scenarios: str) -> list[str]:
        runs = {
            tmp_path / f"{number}" / "x": replace(recording, metadata=replace(recording.metadata, scenario=scenario))
            for number, scenario in enumerate(scenarios)
        }
        return list(command.labelled(runs))

    assert named("lab/tcp", "lab/mptcp") == ["tcp", "mptcp"]
    assert named("lab/tcp", "other/tcp") == ["lab/tcp", "other/tcp"]
    assert named("lab/tcp", "lab/tcp") == ["0", "1"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--kind", "rte"), "--kind: unknown kind 'rte'; did you mean 'rate'?"),
        (("--kind", "rate+topology"), "--kind rate+topology: 'topology' stands alone in its figure"),
        (("--kind", "curve-goodput"), "'curve-goodput' shows a sweep; "),
        (("--format", "gif"), "--format gif: there is png, svg, pdf"),
        (("--size", "3.5"), "--size 3.5: write the width and the height in inches, such as 3.5x2.4"),
        (("--size", "0x2"), "--size 0x2: write the width and the height in inches, such as 3.5x2.4"),
        (("--smooth", "2"), "--smooth 2: "),
        (("--style", "none.mplstyle"), "style sheet none.mplstyle: "),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    options: tuple[str, ...], reason: str, polypath: Any, result: Path
) -> None:
    before = (result / "manifest.json").read_bytes()
    outcome = polypath("plot", result, *options)
    assert outcome.code == 2
    assert outcome.err.startswith(f"polypath: {reason}")
    assert outcome.err.count("\n") == 1
    assert (result / "manifest.json").read_bytes() == before
    assert not (result / "plots").exists()


def test_there_must_be_a_result(polypath: Any, engine: Any, tmp_path: Path) -> None:
    assert "is not there" in polypath("plot", tmp_path / "none").err
    outcome = polypath("plot", tmp_path)
    assert outcome.err == f"polypath: no results in {tmp_path}; name a folder that `polypath run --out` wrote\n"


def test_what_runs_ask_of_figures_needs_figures(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    outcome = polypath("run", scenario, "--out", tmp_path / "out", "--format", "pdf")
    assert outcome.err == "polypath: --format is of figures, which --plot draws: add --plot\n"
    outcome = polypath("run", scenario, "--out", tmp_path / "out", "--kind", "rate")
    assert outcome.err == "polypath: --kind chooses figures, which --plot draws: add --plot\n"
    assert polypath("run", scenario, "--out", tmp_path / "out", "--plot", "--kind", "rate", "--format", "svg").code == 0
    assert names(tmp_path / "out" / "plots") == {"rate.svg"}


def test_a_run_says_which_figures_it_has_nothing_for(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    outcome = polypath("run", scenario, "--out", out, "--plot", "--kind", "rate,player+quality,curve-goodput")
    assert outcome.code == 0
    assert outcome.err.splitlines()[:-1] == [
        "warning: 'curve-goodput' shows a sweep, and nothing varies here: it is not drawn",
        "warning: small: 'player+quality' has nothing to show and is not drawn; it needs an application of kind "
        "`video`",
    ]
    assert names(out / "plots") == {"rate.png"}


def test_a_sweep_says_which_figures_it_has_nothing_for(polypath: Any, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    vary = ("--vary", "defaults.receive_buffer=100 kB,1 MB", "--jobs", "1")
    outcome = polypath("run", scenario, *vary, "--out", out, "--plot", "--kind", "rate,fct,grid-goodput,curve-goodput")
    assert outcome.code == 0
    warned = [line.split(";")[0] for line in outcome.err.splitlines() if line.startswith("warning: small: '")]
    assert warned == [
        f"warning: small: '{name}' has nothing to show and is not drawn" for name in ("grid-goodput", "fct")
    ]
    assert names(out / "plots") == {"curve-goodput.png"}


def test_the_help_names_every_kind(polypath: Any) -> None:
    from polypath.cli import figures
    from polypath.plots import REGISTRY

    (option,) = figures.Kinds.__metadata__  # type: ignore[attr-defined]
    assert option.help.startswith(f"Figures to draw: {', '.join(REGISTRY)};")
    assert "plot" in cli.COMMANDS


def test_a_sweep_has_its_curves(polypath: Any, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    vary = ("--vary", "defaults.receive_buffer=100 kB,1 MB", "--jobs", "1")
    assert polypath("run", scenario, *vary, "--out", out).code == 0
    assert polypath("plot", out, "--kind", "curve-goodput", "--format", "svg").code == 0
    assert "curve-goodput.svg" in names(out / "plots")
    outcome = polypath("plot", out, "--kind", "rate")
    assert outcome.err == f"polypath: 'rate' shows runs; name the folders of points in {out}\n"
    (point, *_) = sorted(path for path in out.iterdir() if path.name.startswith("receive_buffer"))
    assert polypath("plot", point, "--kind", "rate").code == 0
    assert (point / "plots" / "rate.png").exists()


def test_several_sweeps_share_boxes_alone(polypath: Any, scenario: Path, tmp_path: Path) -> None:
    vary = "link.path0.delay=" + ",".join(f"{number} ms" for number in range(1, 11))
    for name in ("one", "two"):
        assert polypath("run", scenario, "--vary", vary, "--seed", "1", "--out", tmp_path / name).code == 0
    both = (tmp_path / "one", tmp_path / "two")
    assert polypath("plot", *both, "--kind", "box-goodput", "--out", tmp_path / "figures").code == 0
    assert names(tmp_path / "figures") == {"box-goodput.png", "figures.json"}
    for kinds in ((), ("--kind", "box-goodput,curve-goodput")):
        outcome = polypath("plot", *both, *kinds, "--out", tmp_path / "others")
        assert outcome.code == 2
        assert "a sweep is drawn by itself, but for box-benefit, box-goodput and so on; name one of" in outcome.err
    outcome = polypath("plot", tmp_path / "one", "--kind", "box-benefit")
    assert outcome.code == 2
    assert "there is nothing to draw: the sweep has nothing for box-benefit" in outcome.err
    outcome = polypath("plot", tmp_path / "one", "--kind", "box-goodput,cdf-delay")
    assert outcome.code == 0
    what = "an application that waits for answers, and 2 to 8 places besides the seeds"
    assert f"'cdf-delay' has nothing to show and is not drawn; it needs {what}\n" in outcome.err
