"""What is recorded is described once: options, keywords, the scenario's table and the contents of folders follow."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

import polypath
from polypath.engines import EngineError
from polypath.recorded import NAMED, SAID, Record
from polypath.scenario.traffic import Record as Written

from .commands import called

TEXT = """
name = "short"
duration = "300 ms"
[host.client]
[host.server]
[link.wifi]
ends = ["client:eth0", "server"]
rate = "3 Mbps"
delay = "20 ms"
[[application]]
name = "bulk"
kind = "bulk"
transport = "quic"
size = "20 kB"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(TEXT)
    return path


def test_each_is_described() -> None:
    assert [each.name for each in fields(Record)] == [*SAID]
    assert all(said.help.endswith(".") for said in SAID.values())


@pytest.mark.parametrize("name", NAMED)
def test_what_has_no_option_is_a_key_of_a_scenario_with_the_same_help(name: str) -> None:
    assert Written.model_fields[name].description == SAID[name].help


@pytest.mark.parametrize("name", NAMED)
def test_a_command_records_it(capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path, name: str) -> None:
    done = called(capsys, "run", file, "--record", name, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert plan["record"][name] is True
    wrong = called(capsys, "run", file, "--record", f"{name}x")
    said = f"polypath: --record: unknown name '{name}x'; did you mean '{name}'?\n"
    assert (wrong.returncode, wrong.stderr) == (2, said)


def test_what_needs_a_folder_says_so(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    for given in (("--pcap", "hosts"), ("--qlog",)):
        done = called(capsys, "run", file, *given)
        assert (done.returncode, done.stderr) == (2, f"polypath: {given[0]} needs --out DIR to write to\n")


def test_the_description_and_its_fields_as_keywords_are_alike(file: Path, tmp_path: Path) -> None:
    wanted = Record(captures="links", qlogs=True, segments=True, account=False)
    polypath.run(file, record=wanted, out=tmp_path / "one")
    polypath.run(file, captures="links", qlogs=True, segments=True, account=False, out=tmp_path / "other")
    one, other = (
        sorted(str(path.relative_to(tmp_path / name)) for path in (tmp_path / name).rglob("*"))
        for name in ("one", "other")
    )
    assert one == other
    assert {"capture/wifi.pcapng", "qlog"} <= {*one}
    with pytest.raises(EngineError, match=r"^unknown captures 'link'; did you mean 'links'\?$"):
        polypath.run(file, captures="link", out=tmp_path / "none")
    with pytest.raises(EngineError, match=r"qlogs need a folder"):
        polypath.run(file, record=Record(qlogs=True))
    with pytest.raises(TypeError, match="capture"):
        polypath.run(file, capture="links")
