"""Where `--out` writes, and what it leaves alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from polypath import engines
from polypath.formats import EXPORTERS
from polypath.results import Recording, folder


@pytest.fixture
def swept(scenario: Path) -> Path:
    """With the applications of the Recording that the engine hands out."""
    more = '[[application]]\nname = "msg"\nkind = "request-response"\ncount = 3\nrequest = "1 kB"\nresponse = "1 kB"\n'
    more += '[[application]]\nname = "cross"\nkind = "cbr"\nrate = "1 Mbps"\n'
    scenario.write_text(scenario.read_text() + more)
    return scenario


def contents(where: Path) -> dict[str, bytes]:
    return {str(path.relative_to(where)): path.read_bytes() for path in sorted(where.rglob("*")) if path.is_file()}


def refused(outcome: Any, engine: Any, words: str) -> None:
    assert outcome.code == 2
    assert outcome.err.startswith("polypath: ")
    assert outcome.err.count("\n") == 1
    assert words in outcome.err
    assert engine.plans == []


ALIASES: dict[str, Callable[[Path], str | Path]] = {
    "a dot": lambda home: ".",
    "its name": lambda home: home,
    "a slash at the end": lambda home: f"{home}/",
    "a step aside": lambda home: f"{home}/nothing/..",
    "a link": lambda home: home.with_name("link"),
}


@pytest.mark.parametrize("alias", ALIASES)
def test_the_folder_of_the_scenario_is_refused(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alias: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    scenario.rename(home / "scenario.toml")
    (home / "summary.json").write_text("{}")
    (tmp_path / "link").symlink_to(home)
    (home / "nothing").mkdir()
    monkeypatch.chdir(home)
    before = contents(tmp_path)
    outcome = polypath("run", "scenario.toml", "--out", ALIASES[alias](home))
    refused(outcome, engine, "is not empty and is not a Polypath result; name a new or empty folder")
    assert contents(tmp_path) == before


def test_an_empty_name_is_refused(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(polypath("run", scenario, "--out", ""), engine, "the name is empty; name a folder")
    assert contents(tmp_path).keys() == {"small.toml"}


def test_a_link_to_nothing_is_refused(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    refused(polypath("run", scenario, "--out", tmp_path / "link"), engine, "it is a dangling symbolic link")
    assert not (tmp_path / "nowhere").exists()


def test_a_link_to_an_empty_folder_is_taken(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert polypath("run", scenario, "--out", tmp_path / "link").code == 0
    assert Recording.load(tmp_path / "real").metadata.scenario == "small"


@pytest.mark.parametrize(
    "manifest",
    [
        '{"name": "my web page", "icons": []}',
        '{"format": 1, "files": {}}',
        '{"format": 1, "polypath": "run", "files": {"../small.toml": "00"}}',
        '{"format": 1, "polypath": "run", "files": {"/etc/passwd": "00"}}',
        '{"format": 1, "polypath": "run", "files": {"thesis.tex": "00"}}',
        "[" * 100_000,
    ],
)
def test_a_foreign_manifest_is_not_believed(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path, manifest: str
) -> None:
    out = tmp_path / "out"
    for name in ("plots/holiday.png", "capture/mine.pcapng", "series/figures.parquet", "thesis.tex"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
    (out / "manifest.json").write_text(manifest)
    before = contents(tmp_path)
    refused(polypath("run", scenario, "--out", out), engine, "is not a Polypath result")
    assert contents(tmp_path) == before


def test_a_result_of_an_earlier_version_is_refused(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert polypath("run", scenario, "--out", out).code == 0
    engine.plans.clear()
    manifest = json.loads((out / "manifest.json").read_text())
    del manifest["files"], manifest["polypath"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    before = contents(out)
    refused(polypath("run", scenario, "--out", out), engine, "by an earlier version; remove it, or name another folder")
    assert contents(out) == before


def test_notes_beside_a_result_stay(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert polypath("run", scenario, "--out", out, "--plot").code == 0
    (out / "notes.md").write_text("mine")
    (out / "plots" / "notes.md").write_text("mine")
    assert polypath("run", scenario, "--out", out).code == 0
    assert (out / "notes.md").read_text() == (out / "plots" / "notes.md").read_text() == "mine"
    assert [path.name for path in (out / "plots").iterdir()] == ["notes.md"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("scenario.toml", "was changed since it was written"),
        ("summary.json", "was changed since it was written"),
        ("events.parquet", "was changed since it was written"),
        ("plots/mine.png", "is not of the result there"),
        ("capture/client.pcapng", "is not of the result there"),
    ],
)
def test_what_a_person_put_into_a_result_is_kept(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path, name: str, what: str
) -> None:
    out = tmp_path / "out"
    assert polypath("run", scenario, "--out", out).code == 0
    engine.plans.clear()
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("# mine")
    before = contents(out)
    refused(polypath("run", scenario, "--out", out), engine, f"{out / name} {what}; move it away")
    assert contents(out) == before


def test_a_folder_that_became_a_link_is_not_followed(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert polypath("run", scenario, "--out", out).code == 0
    engine.plans.clear()
    (out / "series").rename(tmp_path / "elsewhere")
    (out / "series").symlink_to(tmp_path / "elsewhere")
    before = contents(tmp_path)
    refused(polypath("run", scenario, "--out", out), engine, f"{out / 'series'} is not a folder")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("alias", ["its name", "a symbolic link", "a hard link"])
def test_a_result_that_is_read_is_not_replaced(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path, alias: str
) -> None:
    out = tmp_path / "out"
    assert polypath("run", scenario, "--out", out).code == 0
    engine.plans.clear()
    given = out / "scenario.toml"
    if alias == "a symbolic link":
        given = tmp_path / "again.toml"
        given.symlink_to(out / "scenario.toml")
    elif alias == "a hard link":
        given = tmp_path / "again.toml"
        os.link(out / "scenario.toml", given)
    before = contents(tmp_path)
    refused(polypath("run", given, "--out", out), engine, "is an input of this run and would be replaced")
    assert contents(tmp_path) == before


def test_a_point_that_is_read_is_not_replaced(polypath: Any, engine: Any, swept: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert polypath("run", swept, "--vary", "seeds=2", "--out", out).code == 0
    engine.plans.clear()
    before = contents(out)
    given = out / "seed=1" / "scenario.toml"
    outcome = polypath("run", given, "--set", "link.path0.rate=9 Mbps", "--vary", "seeds=2", "--out", out)
    refused(outcome, engine, f"{given} is an input of this run")
    assert contents(out) == before


def test_a_sweep_and_a_run_do_not_replace_each_other(polypath: Any, engine: Any, swept: Path, tmp_path: Path) -> None:
    run, sweep = tmp_path / "run", tmp_path / "sweep"
    assert polypath("run", swept, "--out", run).code == 0
    assert polypath("run", swept, "--vary", "seeds=2", "--out", sweep).code == 0
    engine.plans.clear()
    before = contents(tmp_path)
    outcome = polypath("run", swept, "--out", sweep)
    refused(outcome, engine, f"{sweep} holds a sweep; name another folder for the result of a run")
    outcome = polypath("run", swept, "--vary", "seeds=2", "--out", run)
    refused(outcome, engine, f"{run} holds the result of a run; name another folder for a sweep")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("more", [(), ("--vary", "seeds=2")])
def test_two_runs_do_not_share_a_folder(
    polypath: Any, engine: Any, swept: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    with folder.claim(out, folder.SWEEP if more else folder.RUN):
        outcome = polypath("run", swept, *more, "--out", out)
        refused(outcome, engine, f"another process is writing to {out}; wait until it has ended, or name another")
    assert polypath("run", swept, *more, "--out", out).code == 0
    assert not list(out.rglob(".*"))


def test_every_folder_is_claimed_before_the_first_run(polypath: Any, engine: Any, tmp_path: Path) -> None:
    (tmp_path / "both-ways").mkdir()
    (tmp_path / "both-ways" / "mine").touch()
    refused(polypath("run", "aggregation", "--out", tmp_path), engine, str(tmp_path / "both-ways"))
    assert contents(tmp_path).keys() == {"both-ways/mine"}


def test_an_import_does_not_overwrite_what_it_reads(polypath: Any, tmp_path: Path) -> None:
    topo, xp = tmp_path / "topo", tmp_path / "xp"
    topo.write_text("desc:Simple\ntopoType:MultiIf\npath_c2r_0:10,10,4\npath_c2r_1:10,10,4\n")
    xp.write_text("xpType:none\n")
    os.link(xp, tmp_path / "alias")
    before = contents(tmp_path)
    for name in ("topo", "alias"):
        outcome = polypath("import", topo, xp, "--out", tmp_path / name)
        assert outcome.code == 2
        assert outcome.err.endswith(f"{tmp_path / name} is an input of this command; name another file\n")
    assert contents(tmp_path) == before


def test_what_a_person_made_of_an_import_stays(polypath: Any, tmp_path: Path) -> None:
    topo, xp, out = tmp_path / "topo", tmp_path / "xp", tmp_path / "mine.toml"
    topo.write_text("desc:Simple\ntopoType:MultiIf\npath_c2r_0:10,10,4\npath_c2r_1:10,10,4\n")
    xp.write_text("xpType:none\n")
    for _ in range(2):
        assert polypath("import", topo, xp, "--out", out).code == 0
    out.write_text(out.read_text() + "# mine\n")
    before = contents(tmp_path)
    for command in (["import", topo, xp, "--out"], ["schema", "--out"]):
        outcome = polypath(*command, out)
        assert (outcome.code, outcome.err) == (2, f"polypath: {out} exists; name another file, or remove it\n")
    assert contents(tmp_path) == before


def test_a_topology_of_mininet_overwrites_nothing(polypath: Any, tmp_path: Path) -> None:
    topo, out = tmp_path / "topo.py", tmp_path / "mine.toml"
    topo.write_text("from mininet.topo import LinearTopo\ntopos = {'row': LinearTopo}\n")
    for _ in range(2):
        assert polypath("import", topo, "--topo", "row,3", "--out", out).code == 0
    out.write_text(out.read_text() + "# mine\n")
    before = contents(tmp_path)
    outcome = polypath("import", topo, "--out", out)
    assert (outcome.code, outcome.err.splitlines()[-1]) == (
        2,
        f"polypath: {out} exists; name another file, or remove it",
    )
    outcome = polypath("import", topo, "--out", topo)
    assert (outcome.code, outcome.err) == (2, f"polypath: {topo} is an input of this command; name another file\n")
    assert contents(tmp_path) == before


def test_an_export_does_not_overwrite_what_it_reads(polypath: Any, engine: Any, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert polypath("run", scenario, "--pcap", "links", "--out", out).code == 0
    before = contents(out)
    for name in ("manifest.json", "summary.json", "capture/client.pcapng"):
        outcome = polypath("export", "netanim", out, "-o", out / name)
        assert (outcome.code, outcome.err) == (
            2,
            f"polypath: {out / name} is an input of this command; name another file\n",
        )
    assert contents(out) == before


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_export_takes_the_place_of_nothing_that_is_named_alike(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(EXPORTERS["iperf3"], write=lambda recording, directory, file, application: file.write_text("{}"))
    monkeypatch.setitem(EXPORTERS, "iperf3", short)
    out = tmp_path / "out"
    assert polypath("run", scenario, "--out", out).code == 0
    form, name = {"file": ("iperf3", "iperf3.json"), "folder": ("csv", "tables")}[kind]
    person = tmp_path / f".{name}.partial"
    person.write_text("mine")
    before = set(tmp_path.iterdir())
    assert polypath("export", form, out, "-o", tmp_path / name).code == 0
    assert person.read_text() == "mine"
    assert set(tmp_path.iterdir()) - before == {tmp_path / name}
    missing = polypath("export", form, out, "-o", tmp_path / "missing" / name)
    assert (missing.code, missing.err.count("\n")) == (2, 1)


def test_a_comparison_goes_into_a_folder_of_its_own(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "REGISTRY", {"sim": lambda: engine, "other": lambda: engine})
    mine, out = tmp_path / "mine", tmp_path / "out"
    mine.mkdir()
    (mine / "rates.png").write_text("mine")
    outcome = polypath("compare", scenario, "--engines", "sim,other", "--out", mine)
    refused(outcome, engine, "is not empty and is not a Polypath result")
    for _ in range(2):
        assert polypath("compare", scenario, "--engines", "sim,other", "--out", out).code == 0
    assert contents(out).keys() == {"comparison.json", "rates.png"}
