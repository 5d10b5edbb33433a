"""polypath new writes what runs, with a word on each line, and overwrites nothing."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from polypath import run, units
from polypath.results import metrics
from polypath.scenario import Scenario, template


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def unexplained(text: str) -> list[str]:
    """Lines that set something without a comment above them."""
    lines = text.splitlines()
    return [
        line
        for above, line in zip(["", *lines], lines, strict=False)
        if line and not line.startswith("#") and not above.startswith("#") and line != "[host.server]"
    ]


def test_each_line_is_explained(polypath: Any) -> None:
    outcome = polypath("new")
    assert (outcome.code, outcome.err) == (0, "")
    assert unexplained(outcome.out) == []
    assert unexplained("# a\nb = 1\nc = 2\n") == ["c = 2"]


@pytest.mark.parametrize("application", template.APPLICATIONS)
@pytest.mark.parametrize("transport", template.TRANSPORTS)
def test_what_it_writes_runs(polypath: Any, tmp_path: Path, application: str, transport: str) -> None:
    file = tmp_path / "made.toml"
    made = polypath(
        "new", file, "--paths", "2", "--transport", transport, "--application", application, "--duration", "1 s"
    )
    assert (made.code, made.out) == (0, "")
    assert made.err == f"wrote {file}; next: polypath run {file}\n"
    assert polypath("validate", file).code == 0
    recording = run(Scenario.load(file))
    (connection,) = metrics.connections(recording)
    assert connection.transport == transport
    assert connection.bytes > 0
    several = transport in ("mptcp", "mpquic")
    assert len(metrics.subflows(recording, connection)) == (2 if several else 1)


def test_flags_that_do_not_go_together_name_no_line_of_a_file_that_is_not_there(polypath: Any, tmp_path: Path) -> None:
    for file in ([], [tmp_path / "made.toml"]):
        outcome = polypath("new", *file, "--transport", "mpquic", "--profile", "linux")
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith("polypath: this does not go together, nothing is written: scheduler 'linux' of")
    assert list(tmp_path.iterdir()) == []


def test_flags_are_in_the_scenario(polypath: Any) -> None:
    flags = ("--paths", "wifi,lte=20 Mbps/40 ms,mine=1 Mbps/20 ms", "--scheduler", "blest", "--profile", "linux")
    scenario = Scenario.parse(polypath("new", *flags, "--congestion", "reno").out, "x")
    assert {name: (link.rate, link.delay) for name, link in scenario.link.items() if name != "server"} == {
        "wifi": (30_000_000, 10_000_000),
        "lte": (20_000_000, 40_000_000),
        "mine": (1_000_000, 20_000_000),
    }
    stack = scenario.defaults
    assert stack.scheduler is not None
    assert stack.congestion is not None
    assert (stack.scheduler.name, stack.congestion.name, stack.profile) == ("blest", "reno", "linux")


def test_rates_may_have_a_stroke_in_their_unit() -> None:
    paths = template.parsed_paths("wifi=10 Mbit/s/5 ms, lte=1 Gbit/s")
    assert [(path.rate, path.delay) for path in paths] == [("10 Mbps", "5 ms"), ("1 Gbps", "30 ms")]


def test_nothing_is_overwritten(polypath: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("mine")
    outcome = polypath("new", file, "--paths", "2")
    assert (outcome.code, outcome.err) == (2, f"polypath: {file} exists; name another file, or remove it\n")
    assert file.read_text() == "mine"


def test_questions_on_a_terminal(polypath: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty line takes the default, and a wrong answer is asked again."""
    monkeypatch.setattr(sys, "stdin", Terminal("3\nmptpc\ntcp\n\n5 s\n\n"))
    file = tmp_path / "asked.toml"
    outcome = polypath("new", file)
    assert outcome.code == 0
    assert "unknown transport 'mptpc'; did you mean 'mptcp'?" in outcome.err
    scenario = Scenario.load(file)
    assert list(scenario.link) == ["path0", "path1", "path2", "server"]
    (application,) = scenario.application
    assert (application.kind, application.transport, scenario.duration) == ("bulk", "tcp", 5_000_000_000)


def test_questions_whose_answers_end(polypath: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("2\n"))
    outcome = polypath("new", tmp_path / "x.toml")
    assert outcome.code == 2
    assert outcome.err.endswith("polypath: no answer: the input ended; give flags instead\n")
    assert not (tmp_path / "x.toml").exists()


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--paths", "wify"], "--paths wify: path 'wify' has no rate; write wify=10 Mbps/20 ms; did you mean 'wifi'?"),
        (["--paths", "0"], "--paths 0: 0 paths: give a number from 1 to 16"),
        (
            ["--paths", "foo"],
            "--paths foo: path 'foo' has no rate; write foo=10 Mbps/20 ms; names that need none: "
            f"{', '.join(template.KNOWN_PATHS)}",
        ),
        (
            ["--paths", "wify=1 Mbps"],
            "--paths wify=1 Mbps: path 'wify' has no delay; write wify=1 Mbps/20 ms; did you mean 'wifi'?",
        ),
        (["--paths", "lte="], "--paths lte=: path 'lte' has no rate; write lte=15 Mbps/30 ms, or lte alone"),
        (["--paths", "lte=/"], "--paths lte=/: path 'lte' has no rate; write lte=15 Mbps/30 ms, or lte alone"),
        (
            ["--paths", "lte=1 Mbps/"],
            "--paths lte=1 Mbps/: path 'lte' has no delay; write lte=1 Mbps/30 ms, or lte alone",
        ),
        (
            ["--paths", "wifi2=/3 ms"],
            "--paths wifi2=/3 ms: path 'wifi2' has no rate; write wifi2=10 Mbps/20 ms; did you mean 'wifi'?",
        ),
        (["--paths", "lte,lte"], "--paths lte,lte: two paths are named 'lte'"),
        (
            ["--paths", 'a"b'],
            "--paths a\"b: 'a\"b' is no name of a path: letters, digits, '_' and '-', at most 63 of them",
        ),
        (
            ["--paths", "x=3 parsec"],
            "--paths x=3 parsec: path 'x': unknown unit 'parsec' in '3 parsec'; "
            f"there is {', '.join(units.RATE.units)}",
        ),
        (["--paths", "server"], "--paths server: a path cannot be named 'server': that is the link to the server"),
        (["--transport", "mptpc"], "--transport mptpc: unknown transport 'mptpc'; did you mean 'mptcp'?"),
        (
            ["--scheduler", "rondrobin"],
            "--scheduler rondrobin: unknown scheduler 'rondrobin'; did you mean 'roundrobin'?",
        ),
        (
            ["--application", "x"],
            f"--application x: unknown application 'x'; there is {', '.join(template.APPLICATIONS)}",
        ),
        (["--duration", "3"], "--duration 3: '3' has no unit; write for example \"40 ms\""),
    ],
)
def test_mistakes(polypath: Any, tmp_path: Path, flags: list[str], line: str) -> None:
    outcome = polypath("new", tmp_path / "x.toml", *flags)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"polypath: {line}\n")
    assert not (tmp_path / "x.toml").exists()
