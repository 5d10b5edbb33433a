"""Programs of the machine on the command line: what is refused, and how plans with them are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polypath.engines import Options, get
from polypath.engines.base import Unplayable
from polypath.results import OutputError, folder
from polypath.scenario import Scenario, ScenarioError

COMMAND = """
[[application]]
kind = "command"
name = "web"
host = "server"
background = true
command = "exec python3 -m http.server 8000"
"""


@pytest.fixture
def programs(scenario: Path) -> Path:
    path = scenario.with_name("programs.toml")
    path.write_text(scenario.read_text() + COMMAND)
    return path


def test_the_simulator_names_the_line_and_the_engines_that_can(polypath: Any, programs: Path) -> None:
    line = programs.read_text().splitlines().index('kind = "command"')
    outcome = polypath("run", programs)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"polypath: {programs} runs code with your rights: its own commands\n"
        f"polypath: {programs}:{line}: application 'web' is a program of the machine; "
        "the simulator cannot run it, --engine linux and live can\n"
    )
    with pytest.raises(Unplayable):
        get("sim").run(Scenario.load(programs).plan(), Options())


def test_validate_shows_programs_and_says_where_they_run(polypath: Any, programs: Path) -> None:
    outcome = polypath("validate", programs)
    assert outcome.code == 0
    assert "web (background)  server  mptcp      0 s     sh -c 'exec python3 -m http.server 8000'" in outcome.out
    assert outcome.err.splitlines() == [
        "warning: small: application 'web' is a program of the machine: engines linux and live run it"
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "clent", "--", "true"], "--host: unknown host 'clent'; did you mean 'client'?"),
        (
            ["--server", "iperf3 -s", "--", "true"],
            "--server: 'iperf3 -s' is no HOST: COMMAND; write it like 'server: iperf3 -s'",
        ),
        (["--server", "srver: iperf3 -s", "--", "true"], "--server: unknown host 'srver'; did you mean 'server'?"),
        (["--pcap", "hosts", "--", "true"], "--pcap needs --out DIR to write to"),
        (["--run", "mptcp", "--", "true"], "--run chooses among a lab's runs; a scenario file is one run"),
        (
            ["--engine", "sim", "--", "true"],
            "application 'true' is a program of the machine; the simulator cannot run it, --engine linux and live can",
        ),
        (["--file", "absent.py", "--", "true"], f"{Path('absent.py').absolute()}: no such file"),
    ],
)
def test_exec_refuses_in_one_line(polypath: Any, scenario: Path, words: list[str], said: str) -> None:
    outcome = polypath("exec", scenario, *words)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"polypath: {said}\n")


def test_a_shell_needs_hosts_that_are_there(polypath: Any, scenario: Path) -> None:
    outcome = polypath("shell", scenario, "--engine", "sim")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "polypath: engine sim has no hosts that programs could run on; there is linux, live\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('command = ""', "application 2: the command is empty"),
        ("command = []", "application 2: the command is empty"),
        ('command = "a\\u0000b"', "'command' has a character NUL"),
        ('command = "true"\nhost = "servr"', "unknown host 'servr'; did you mean 'server'?"),
        ('command = "true"\nbackground = true\nends_run = true', "does not end the run"),
        ('command = "true"\nenvironment = { "A=B" = "c" }', "is no name of a variable"),
        ('command = "true"\nstart = "9 s"', "it starts at 9 s, but the run ends at 4 s"),
        ('command = "true"\nstrt = "1 s"', "did you mean 'start'?"),
        ('command = "true"\nfiles = ["absent"]', ":20: application 2: "),
        ('command = "true"\nfiles = ["absent"]', "absent: no such file"),
    ],
)
def test_a_program_that_makes_no_sense_is_named_with_its_line(scenario: Path, line: str, said: str) -> None:
    scenario.write_text(f'{scenario.read_text()}\n[[application]]\nkind = "command"\n{line}\n')
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(scenario).plan()
    assert said in str(caught.value)


def test_a_scenario_with_programs_is_read_as_it_was_written(programs: Path) -> None:
    made = Scenario.load(programs)
    again = Scenario.parse(made.to_toml(), "again", default_name="again")
    assert again.plan() == made.plan()
    assert Scenario.parse(made.to_toml(resolved=True), "again").plan() == made.plan()
    changed = made.with_settings(["application.web.transport=tcp"])
    assert [each["transport"] for each in changed.plan().view["programs"]] == ["tcp"]


def test_files_of_programs_are_a_result_s_own(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for deep in ("a/b/c", "a/d"):
        with folder.claim(target, folder.RUN) as held:
            place = held.stage() / "programs" / "web" / "files" / deep
            place.parent.mkdir(parents=True)
            place.write_text("mine")
            held.commit({"format": 1})
    assert sorted(path.name for path in target.rglob("*") if path.is_file()) == ["d", "manifest.json"]
    assert not (target / "programs" / "web" / "files" / "a" / "b").exists()
    (target / "programs" / "web" / "files" / "a" / "d").write_text("another's")
    with pytest.raises(OutputError, match="was changed since it was written"), folder.claim(target, folder.RUN):
        pass


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    target, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with folder.claim(target, folder.RUN) as held:
        held.stage()
        held.commit({"format": 1})
    (target / "programs").mkdir()
    (target / "programs" / "web").symlink_to(elsewhere)
    refused = pytest.raises(OutputError, match="programs/web is not of the result there")
    with refused, folder.claim(target, folder.RUN):
        pass
    (target / "programs" / "web").unlink()
    with folder.claim(target, folder.RUN) as held:
        place = held.stage() / "programs" / "web" / "stdout"
        place.parent.mkdir(parents=True)
        place.write_text("mine")
        (target / "programs" / "web").symlink_to(elsewhere)
        with pytest.raises(OutputError, match="programs/web is not a folder"):
            held.commit({"format": 1})
    assert not list(elsewhere.iterdir())
