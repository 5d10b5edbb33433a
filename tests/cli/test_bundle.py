"""Results as a bundle, and the bundle run again, as the commands are typed."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import polypath as package
from polypath import bundles, engines
from polypath.bundles.unpacking import is_safe
from polypath.engines import EngineError

from .test_stored import SCHEDULER

SCENARIO = """\
name = "small"
duration = "1 s"

[defaults]
scheduler = "last.py:Last"

[host.client]
[host.server]

[link.a]
ends = ["client", "server"]
rate = { trace = "a.trace" }
delay = "10 ms"

[link.b]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "20 ms"
loss = "1 %"

[[application]]
name = "fetch"
kind = "fetch"
transport = "mptcp"
client = "client"
server = "server"
size = "100 kB"
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, a sweep and their bundle, and without the files that they were made of."""
    folder = tmp_path_factory.mktemp("made")
    own = folder / "own"
    own.mkdir()
    (own / "last.py").write_text(SCHEDULER)
    (own / "a.trace").write_text("2\n4\n5\n")
    (own / "small.toml").write_text(SCENARIO)
    package.run(own / "small.toml", out=folder / "one")
    axes = {"link.b.delay": ["20 ms", "40 ms"]}
    package.sweep(own / "small.toml", axes, seeds=2, jobs=1, out=folder / "swept")
    shutil.rmtree(own)
    about = bundles.About("paper", authors=["A. Author"])
    bundles.pack([folder / "one", folder / "swept"], folder / "paper.zip", about, light=False)
    return folder


@pytest.fixture
def results(made: Path, tmp_path: Path) -> tuple[str, str]:
    """A run and a sweep."""
    for name in ("one", "swept"):
        shutil.copytree(made / name, tmp_path / name)
    return "one", "swept"


@pytest.fixture
def paper(made: Path, tmp_path: Path) -> Path:
    """A bundle of both, without them."""
    return Path(shutil.copy(made / "paper.zip", tmp_path / "paper.zip"))


Change = Callable[[dict[str, bytes]], None]


def altered(bundle: Path, change: Change, *, listed: bool) -> Path:
    """A copy with other contents, of which its index knows or not."""
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    if listed:
        index = json.loads(files["bundle.json"])
        index["files"] = {
            name: hashlib.sha256(content).hexdigest() for name, content in files.items() if name != "bundle.json"
        }
        files["bundle.json"] = json.dumps(index).encode()
    made = bundle.with_name("altered.zip")
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made


def changed(name: str, key: str, value: object) -> Change:
    """Sets a key of a JSON file."""

    def change(files: dict[str, bytes]) -> None:
        files[name] = json.dumps({**json.loads(files[name]), key: value}).encode()

    return change


def outcome_of(directory: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((Path(directory) / "rerun.json").read_text())
    return found


def test_a_bundle_runs_again_with_equal_hashes(polypath: Any, paper: Path) -> None:
    ran = polypath("rerun", paper, "--trust", "--jobs", 1)
    assert (ran.code, ran.err) == (
        0,
        f"polypath: {paper} runs code with your rights: one: last.py\nresults in paper-rerun\n",
    )
    last = ran.out.splitlines()[-1]
    assert last == "the same: 5 of 5 plans, 5 of 5 scenarios, 5 of 5 recordings, 5 of 5 figures, 4 of 4 tables"
    found = outcome_of("paper-rerun")
    assert found["same"] is True
    one = found["results"][0]["runs"]["."]["recording"]
    manifest = json.loads(Path("paper-rerun/bundle/results/one/manifest.json").read_text())
    assert one == {"before": manifest["recording_sha256"], "after": manifest["recording_sha256"], "same": True}
    assert polypath("show", "paper-rerun/results").out == polypath("show", "paper-rerun/bundle/results").out


def test_the_same_results_give_the_same_bytes(polypath: Any, results: tuple[str, str]) -> None:
    Path("again").mkdir()
    for out in ("paper.zip", "again/paper.zip"):
        assert polypath("bundle", *results, "--out", out).code == 0
    assert Path("paper.zip").read_bytes() == Path("again/paper.zip").read_bytes()
    told = polypath("bundle", *results, "--out", "third.zip").out
    assert told.split()[-1] == hashlib.sha256(Path("third.zip").read_bytes()).hexdigest()


def test_it_describes_itself_as_an_ro_crate(polypath: Any, results: tuple[str, str]) -> None:
    Path("figure.pdf").write_bytes(b"%PDF")
    Path("drawn").mkdir()
    for name in ("a.png", ".hidden"):
        (Path("drawn") / name).touch()
    options = ("--name", "A title", "--license", "https://creativecommons.org/licenses/by/4.0/", "--date", "2026-11-30")
    assert (
        polypath("bundle", *results, "--out", "paper.zip", "--add", "figure.pdf", "--add", "drawn", *options).code == 0
    )
    with zipfile.ZipFile("paper.zip") as archive:
        assert archive.testzip() is None
        assert {each.date_time for each in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        files = {name: archive.read(name) for name in archive.namelist()}
    crate = json.loads(files["ro-crate-metadata.json"])
    assert crate["@context"] == "https://w3id.org/ro/crate/1.2/context"
    entities = {each["@id"]: each for each in crate["@graph"]}
    assert len(entities) == len(crate["@graph"])
    descriptor = entities["ro-crate-metadata.json"]
    assert descriptor["@type"] == "CreativeWork"
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.2"}
    root = entities[descriptor["about"]["@id"]]
    assert (root["@type"], root["name"], root["datePublished"]) == ("Dataset", "A title", "2026-11-30")
    assert root["license"]["@id"] in entities
    references = [each["@id"] for each in root["hasPart"] + root["mentions"]]
    assert set(references) <= entities.keys()
    described = [each for each in crate["@graph"] if "File" in each["@type"]]
    assert {
        "results/one/inputs/last.py",
        "results/swept/sweep.json",
        "added/figure.pdf",
        "tables/swept/points.csv",
    } <= {each["@id"] for each in described}
    for each in described:
        assert each["sha256"] == hashlib.sha256(files[unquote(each["@id"])]).hexdigest()
    index = json.loads(files["bundle.json"])["files"]
    assert index.keys() == files.keys() - {"bundle.json"}
    assert [name for name in index if name.startswith("added/")] == ["added/drawn/a.png", "added/figure.pdf"]
    assert all(hashlib.sha256(files[name]).hexdigest() == digest for name, digest in index.items())
    assert "polypath rerun paper.zip" in files["README.md"].decode()
    assert files["tables/one/connections.csv"].decode().splitlines()[1].startswith("fetch,fetch,mptcp,")
    assert json.loads(files["environment.json"])["packages"]["polars"]
    assert not [name for name, content in files.items() if str(Path.cwd()).encode() in content]


def test_a_light_one_leaves_out_what_is_recorded_and_runs_the_same(polypath: Any, results: tuple[str, str]) -> None:
    polypath("bundle", *results, "--out", "whole.zip")
    polypath("bundle", *results, "--out", "paper.zip", "--light")
    with zipfile.ZipFile("paper.zip") as archive:
        assert not [name for name in archive.namelist() if name.endswith("/events.parquet") or "/series/" in name]
        assert "results/swept/points.parquet" in archive.namelist()
    assert Path("paper.zip").stat().st_size < Path("whole.zip").stat().st_size
    assert polypath("rerun", "paper.zip", "--trust").code == 0


def test_nothing_of_a_person_is_overwritten(polypath: Any, results: tuple[str, str], paper: Path) -> None:
    before = paper.read_bytes()
    Path("mine").mkdir()
    refused = polypath("bundle", "mine", "--out", paper)
    assert (refused.code, refused.err) == (2, f"polypath: {paper} exists; name another file, or remove it\n")
    refused = polypath("rerun", paper, "--trust", "--out", "mine")
    assert (refused.code, refused.err) == (2, "polypath: mine exists; name another file, or remove it\n")
    assert paper.read_bytes() == before
    assert not list(Path("mine").iterdir())


def test_what_differs_is_said_and_is_exit_code_1(polypath: Any, paper: Path) -> None:
    made = altered(paper, changed("results/one/manifest.json", "recording_sha256", "0" * 64), listed=True)
    ran = polypath("rerun", made, "--trust")
    assert ran.code == 1
    row = next(line for line in ran.out.splitlines() if line.startswith("one "))
    assert "000000000000 → " in row
    assert row.split()[-4:] == ["same", "same", "DIFFERS", "same"]
    assert "4 of 5 recordings" in ran.out
    assert outcome_of("altered-rerun")["same"] is False


def test_a_scenario_that_has_another_plan_is_said(polypath: Any, paper: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        text = files["results/one/scenario.toml"].decode()
        files["results/one/scenario.toml"] = text.replace('"20 ms"', '"21 ms"').encode()
        other = files["results/swept/delay=40ms,seed=1/scenario.toml"].decode()
        files["results/swept/delay=40ms,seed=1/scenario.toml"] = other.replace(
            "inputs/a.trace", "/etc/hostname"
        ).encode()

    ran = polypath("rerun", altered(paper, change, listed=True), "--trust")
    assert ran.code == 1
    assert "3 of 5 scenarios" in ran.out
    assert "swept/delay=40ms,seed=1: no scenario: it names /etc/hostname, which is not in the bundle\n" in ran.out


def test_a_run_that_fails_is_said(polypath: Any, paper: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        plan = files["results/one/plan.json"]
        files["results/one/plan.json"] = plan.replace(b"return ready[-1]", b"return ready[-9]")

    ran = polypath("rerun", altered(paper, change, listed=True), "--trust")
    assert ran.code == 1
    assert "one: no recording: last.py:4: IndexError: list index out of range" in ran.out


def _drop(files: dict[str, bytes]) -> None:
    del files["results/one/inputs/last.py"]


def _edit(files: dict[str, bytes]) -> None:
    files["results/one/inputs/last.py"] += b"# edited\n"


def _add(files: dict[str, bytes]) -> None:
    files["more.txt"] = b""


def _no_index(files: dict[str, bytes]) -> None:
    del files["bundle.json"]


def _no_result(files: dict[str, bytes]) -> None:
    del files["results/one/manifest.json"]


@pytest.mark.parametrize(
    ("change", "listed", "said"),
    [
        (_drop, False, " lacks results/one/inputs/last.py, which its bundle.json lists"),
        (_edit, False, ": results/one/inputs/last.py is not what the bundle was made with; get the bundle again"),
        (_add, False, " has more.txt, which its bundle.json does not list"),
        (_no_index, False, " is no bundle of Polypath: it has no bundle.json"),
        (_no_result, True, ": results/one of the bundle is no result"),
        (changed("bundle.json", "format", 9), False, " is a bundle of format 9; this version reads 1"),
        (changed("bundle.json", "polypath", "x"), False, " is no bundle of Polypath: so says its bundle.json"),
        (changed("bundle.json", "results", [{"folder": "../x"}]), False, ": bundle.json is damaged"),
        (changed("bundle.json", "files", {"a": 1}), False, ": bundle.json is damaged"),
    ],
)
def test_an_altered_bundle_is_one_line(polypath: Any, paper: Path, change: Change, listed: bool, said: str) -> None:
    made = altered(paper, change, listed=listed)
    ran = polypath("rerun", made, "--trust")
    assert (ran.code, ran.out, ran.err) == (2, "", f"polypath: {made}{said}\n")
    assert sorted(path.name for path in Path().iterdir()) == ["altered.zip", "paper.zip"]


@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/../../evil", "a\\evil", "C:evil", "a//b", "./a", "a\nb", "", "a/", "x" * 2000]
)
def test_a_name_that_leads_elsewhere_is_refused(polypath: Any, paper: Path, name: str) -> None:
    assert not is_safe(name)
    if "\\" in name or not name:
        return  # zipfile writes neither
    made = altered(paper, lambda files: files.update({name: b"evil"}), listed=True)
    ran = polypath("rerun", made, "--trust")
    assert (ran.code, ran.err) == (2, f"polypath: {made} has {name!r}, which is no plain file of a bundle\n")
    assert not Path("../evil").exists()
    assert not Path("altered-rerun").exists()


def test_a_link_and_a_second_file_of_a_name_are_refused(polypath: Any, paper: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(paper, "a") as archive:
        archive.writestr(info, "/etc/hostname")
    assert polypath("rerun", paper).err == f"polypath: {paper} has 'link', which is no plain file of a bundle\n"
    made = altered(paper, lambda files: files.update({"readme.MD": files.pop("link")}), listed=False)
    assert polypath("rerun", made).err == f"polypath: {made} has readme.MD twice\n"


def test_sizes_are_limited(polypath: Any, paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPATH_RESULT_GB", "0.0001")
    ran = polypath("rerun", paper, "--trust")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "more than 0.0001 GB; a result may take 0.0001 GB, and POLYPATH_RESULT_GB changes that" in ran.err
    assert not Path("paper-rerun").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, ": No such file or directory"), (b"PK\3\4", " is no bundle, or is damaged: File is not a zip file")],
)
def test_what_is_no_zip_is_one_line(polypath: Any, tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "x.zip"
    if content is not None:
        file.write_bytes(content)
    ran = polypath("rerun", file)
    assert (ran.code, ran.err) == (2, f"polypath: {file}{said}\n")


def test_code_runs_only_where_somebody_trusts_it(polypath: Any, paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"polypath: {paper} runs code with your rights: one: last.py"
    ran = polypath("rerun", paper)
    assert (ran.code, ran.err) == (2, f"{line}; read it, then give --trust\n")
    assert not Path("paper-rerun").exists()
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    answers = iter([False, True])
    monkeypatch.setattr("typer.confirm", lambda *_, **__: next(answers))
    ran = polypath("rerun", paper)
    assert (ran.code, ran.err) == (2, f"{line}\npolypath: nothing was run\n")
    assert polypath("rerun", paper).code == 0


def test_without_code_nobody_is_asked(polypath: Any, scenario: Path) -> None:
    polypath("run", scenario, "--out", "plain")
    polypath("bundle", "plain", "--out", "paper.zip")
    assert polypath("rerun", "paper.zip").err == "results in paper-rerun\n"


def test_a_result_of_the_kernel_is_said_to_need_it(
    polypath: Any, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Any:
        raise EngineError("there is no kernel; polypath kernel build makes it")

    polypath("run", scenario, "--out", "plain")
    polypath("bundle", "plain", "--out", "paper.zip")
    made = altered(Path("paper.zip"), changed("results/plain/manifest.json", "engine", "linux"), listed=True)
    monkeypatch.setattr(engines, "REGISTRY", {**engines.REGISTRY, "linux": missing})
    ran = polypath("rerun", made)
    assert ran.code == 1
    assert "plain: not run, engine linux: there is no kernel; polypath kernel build makes it\n" in ran.out
    made = altered(Path("paper.zip"), changed("results/plain/manifest.json", "engine", "live"), listed=True)
    ran = polypath("rerun", made, "--out", "live")
    assert (ran.code, ran.out) == (
        0,
        "plain: not run, engine live runs in real time, and no two runs are alike\n",
    )


def test_another_version_is_said(polypath: Any, paper: Path) -> None:
    made = altered(paper, changed("results/one/manifest.json", "versions", {"polypath": "0.0.1"}), listed=True)
    assert f"warning: {made} was made by Polypath 0.0.1, and this is " in polypath("rerun", made, "--trust").err


def test_results_that_are_not_whole_are_refused(polypath: Any, results: tuple[str, str]) -> None:
    cases = {
        "nowhere": "nowhere does not exist; name the folder of a run or of a sweep",
        "file": "file is a file; name the folder of a run or of a sweep",
        "empty": "no results in empty; name a folder that `polypath run --out` wrote",
    }
    Path("file").touch()
    Path("empty").mkdir()
    for name, said in cases.items():
        refused = polypath("bundle", name, "--out", "x.zip")
        assert (refused.code, refused.err) == (2, f"polypath: {said}\n")
    refused = polypath("bundle", "one", "--out", "x.zip", "--add", "nothing")
    assert refused.err == "polypath: nothing is neither a file nor a folder, so it cannot be added\n"
    Path("a").touch()
    for name, said in (
        ("a:b", "a file cannot be named 'added/a:b' in a bundle; rename it"),
        ("A", "two files have .."),
    ):
        Path(name).touch()
        refused = polypath("bundle", "one", "--out", "x.zip", "--add", name, "--add", name.lower())
        assert refused.code == 2
        assert refused.err.startswith(f"polypath: {said.removesuffix('..')}")
    shutil.copytree("one", "other/one")
    refused = polypath("bundle", "one", "other/one", "--out", "x.zip")
    assert refused.err == "polypath: other/one and one have the same name, which a bundle keeps; rename one\n"
    summary = Path("one/summary.json")
    summary.write_text(summary.read_text().replace("fetch", "fetsh"))
    assert polypath("bundle", "one", "--out", "x.zip").code == 2
    index = Path("swept/sweep.json")
    index.write_text(index.read_text().replace('"done"', '"missing"', 1))
    refused = polypath("bundle", "swept", "--out", "x.zip")
    assert refused.err == "polypath: swept lacks 1 of its points; the command that began it goes on\n"
    assert not Path("x.zip").exists()


@pytest.mark.parametrize("date", ["yesterday", "2026-13-01", ""])
def test_a_date_is_a_date(polypath: Any, results: tuple[str, str], date: str) -> None:
    refused = polypath("bundle", "one", "--out", "x.zip", "--date", date)
    assert (refused.code, refused.err) == (2, f"polypath: {date!r} is no date; write it as 2026-11-30\n")


def test_the_date_is_that_of_the_build_where_there_is_one(
    polypath: Any, results: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    polypath("bundle", "one", "--out", "x.zip")
    with zipfile.ZipFile("x.zip") as archive:
        root = json.loads(archive.read("ro-crate-metadata.json"))["@graph"][1]
    assert root["datePublished"] == "1970-01-01"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    refused = polypath("bundle", "one", "--out", "y.zip")
    assert refused.err == "polypath: SOURCE_DATE_EPOCH is a number of seconds, not 'soon'\n"


@pytest.mark.parametrize(
    ("name", "key", "value", "said"),
    [
        ("results/one/manifest.json", "recording_sha256", 1.5, "manifest.json cannot be read"),
        ("results/one/manifest.json", "versions", [], "manifest.json cannot be read"),
        ("results/one/manifest.json", "files", {"../x": "0" * 64}, "holds a result that does not list its files"),
        ("results/one/plan.json", "nodes", None, "one: no recording: not a plan"),
        ("results/swept/sweep.json", "points", None, "no result in results/swept"),
        ("results/swept/sweep.json", "axes", [{"name": "x"}], "has no 'labels' where one belongs"),
    ],
)
def test_an_index_with_something_else_in_it_is_one_line(
    polypath: Any, paper: Path, name: str, key: str, value: object, said: str
) -> None:
    ran = polypath("rerun", altered(paper, changed(name, key, value), listed=True), "--trust")
    assert ran.code in (1, 2)
    assert said in ran.out + ran.err
    assert "internal error" not in ran.err
