"""The worked example prints what its page shows."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from polypath.results import Recording, causes, metrics

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "comparing.md"
COMMAND = Path(sysconfig.get_path("scripts")) / "polypath"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the comparison, and what it printed."""
    out = tmp_path_factory.mktemp("comparing") / "results"
    done = subprocess.run(
        [COMMAND, "compare", "examples/wifi-lte.toml", "--by", "defaults.scheduler", "--out", out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "100", "PATH": "/usr/bin:/bin"},
    )
    return out, done.stdout


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_the_table_is_what_the_command_prints(results: tuple[Path, str]) -> None:
    (shown,) = re.findall(r"^```text\n(wifi-lte: .*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert lines(shown) == lines(results[1])


def test_what_the_page_says_of_one_run_is_so(results: tuple[Path, str]) -> None:
    recording = Recording.load(results[0] / "scheduler=default,seed=1")
    upload = metrics.connection(recording, "upload")
    copied = next(each for each in causes.of_connection(recording, upload) if "came as a copy" in each.sentence)
    assert f"data waited {copied.time_ns / 1e9:.1f} s" in " ".join(PAGE.read_text(encoding="utf-8").split())
    quiet = metrics.goodput(recording, upload, 5_500_000_000, 8_500_000_000)
    assert quiet is not None
    assert quiet < 0.5e6


@pytest.mark.slow
def test_the_figures_are_drawn_by_its_commands(results: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = results
    runs = [out / f"scheduler={name},seed=1" for name in ("default", "roundrobin", "redundant")]
    for arguments, drawn in (
        ([out, "--kind", "cdf-delay"], out / "plots" / "cdf-delay.png"),
        ([runs[0], "--kind", "rate"], runs[0] / "plots" / "rate.png"),
        ([*runs, "--kind", "rate", "--out", tmp_path / "rates"], tmp_path / "rates" / "rate.png"),
    ):
        subprocess.run([COMMAND, "plot", *map(str, arguments)], check=True)
        assert drawn.stat().st_size > 10_000
