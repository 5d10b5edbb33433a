"""Whatever goes wrong is one line on standard error and exit code 2."""

import contextlib
import signal
from pathlib import Path
from typing import Any

import pytest

from polypath.cli import errors, signals


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run"], "name either a lab, a scenario file, or both --topo and --xp"),
        (
            ["run", "aggregation", "--topo", "t", "--xp", "x"],
            "name either a lab, a scenario file, or both --topo and --xp",
        ),
        (["run", "--topo", "t"], "name either a lab, a scenario file, or both --topo and --xp"),
        (["run", "agregation"], "unknown lab 'agregation'; did you mean 'aggregation'?"),
        (["show", "agregation"], "unknown lab 'agregation'; did you mean 'aggregation'?"),
        (["check", "agregation"], "unknown lab 'agregation'; did you mean 'aggregation'?"),
        (["check"], "name the labs to check, or --all"),
        (["check", "aggregation", "--all"], "name the labs to check, or --all"),
        (["run", "nowhere.toml"], "nowhere.toml: no such file"),
        (["run", "aggregation", "--plot"], "--plot needs --out DIR to write to"),
        (["run", "aggregation", "--pcap", "links"], "--pcap needs --out DIR to write to"),
        (
            ["run", "aggregation", "--snaplen", "96"],
            "--snaplen is of captures, which --pcap takes: add --pcap hosts or --pcap links",
        ),
        (
            ["run", "aggregation", "--run", "quic"],
            "lab 'aggregation' has no run 'quic'; it has tcp, mptcp, window-100kB, both-ways",
        ),
        (["run", "aggregation", "--engine", "linux"], "unknown engine 'linux'; there is sim"),
        (["compare", "aggregation", "--engines", "sim,x"], "unknown engine 'x'; there is sim, noq"),
        (["algorithms", "shedulers"], None),
        (["bench", "W99"], None),
        (["run", "aggregation", "--seed", "-1"], None),
        (["run", "aggregation", "--seed", "x"], None),
        (["run", "aggregation", "--pcap", "all"], None),
        (["run", "aggregation", "--frobnicate"], None),
        (["run", "aggregation", "--seeds", "3"], "there is no --seeds; give --vary seeds=NUMBER"),
        (["run", "aggregation", "--scheduler", "blest"], "there is no --scheduler; give --set defaults.scheduler=NAME"),
        (["plot", "results", "--scheduler", "blest"], None),
        (["frobnicate"], None),
        (
            ["import", "only-one"],
            "only-one: a minitopo pair is two files; one file is FILE.py of Mininet or a plan, FILE.json",
        ),
        (["import", "missing.py"], "missing.py: no such file"),
        (
            ["import"],
            "name a minitopo topology and its experiment, a Mininet FILE.py, a PLAN.json, or --topo as `mn` takes it",
        ),
        (["import", "one", "two", "--pingall"], "--pingall is of Mininet's topologies"),
        (["import", "--topo", "linea,3"], "--topo linea,3: no topology is named 'linea'; did you mean 'linear'?"),
        (["import", "missing", "missing"], None),
        (["run", "--topo", "missing", "--xp", "missing"], None),
        (["run", "aggregation", "--set", "link.path0.rat=1 Mbps"], None),
        (["run", "aggregation", "--set", "link.path0.rate=1 parsec"], None),
        (["run", "aggregation", "--set", "nonsense"], None),
    ],
)
def test_bad_input(polypath: Any, engine: Any, arguments: list[str], line: str | None) -> None:
    outcome = polypath(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("polypath: ")
    assert outcome.err.count("\n") == 1
    assert line is None or outcome.err == f"polypath: {line}\n"
    assert engine.plans == []


@pytest.mark.parametrize("command", ["run", "import"])
@pytest.mark.parametrize("kind", ["directory", "junk", "huge"])
def test_files_that_are_none(polypath: Any, tmp_path: Path, command: str, kind: str) -> None:
    path = tmp_path / "given.toml"
    match kind:
        case "directory":
            path.mkdir()
        case "junk":
            path.write_bytes(bytes(range(256)) * 8)
        case _:
            with path.open("wb") as file:
                file.truncate(100_000_000)
    outcome = polypath("run", path) if command == "run" else polypath("import", path, path)
    assert outcome.code == 2
    assert outcome.err.startswith("polypath: ")
    assert outcome.err.count("\n") == 1


def test_an_output_folder_that_cannot_be_is_refused_before_the_run(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    outcome = polypath("run", scenario, "--out", tmp_path / "file")
    assert outcome.code == 2
    assert outcome.err == f"polypath: cannot write to {tmp_path / 'file'}: it is a file; name a folder\n"
    assert engine.plans == []


def test_a_defect_is_one_line_too(polypath: Any, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(engine, "run", broken, raising=False)
    outcome = polypath("run", "aggregation")
    assert outcome.code == 2
    assert outcome.err == (
        "polypath: internal error (ZeroDivisionError: division by zero); POLYPATH_TRACEBACK=1 shows where\n"
    )


def test_what_needs_unix_says_so_on_windows(polypath: Any, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'fcntl'", name="fcntl")

    monkeypatch.setattr(engine, "run", broken, raising=False)
    outcome = polypath("run", "aggregation")
    assert outcome.code == 2
    assert outcome.err == "polypath: this needs Linux or macOS; on Windows, run it in WSL 2\n"


def test_an_interrupt_that_compiled_code_made_an_error_of_ends_a_single_run_as_any_other(
    polypath: Any, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            signals._received(signal.SIGINT, None)
        raise ValueError("an error in a serialiser")

    monkeypatch.setattr(signals, "_received", signals._Received())
    monkeypatch.setattr(engine, "run", interrupted, raising=False)
    outcome = polypath("run", "aggregation")
    assert (outcome.code, outcome.err) == (130, "interrupted\n")


def test_the_traceback_is_there_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setenv(errors.TRACEBACK, "1")
    with pytest.raises(ZeroDivisionError):
        errors.run(broken)


def test_ctrl_c_between_runs(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        errors.run(interrupted)
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
