"""A sweep on the command line: the table, the files, what failed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from polypath.cli import compare, run
from polypath.cli.errors import InputError


@pytest.fixture
def file(plain: str, tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(plain)
    return path


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_table_has_a_row_a_point(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(str(file), axes=["defaults.receive_buffer=20 kB,1 MB", "seeds=2"], parallel=1) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["small"]
    assert (lines[1][:2], lines[1][-1]) == (["receive_buffer", "Mbps"], "seeds")
    assert [line[:2] for line in lines[2:4]] == [["20", "kB"], ["1", "MB"]]
    assert all(line[-1] == "2" for line in lines[2:4])
    assert all("±" in line or "to" in line for line in lines[2:4])


def test_without_out_nothing_is_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    assert run.run(str(file), axes=["seeds=2"], parallel=1) == 0
    assert files(file.parent) == {"small.toml"}


def test_out_has_the_documented_layout(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run.run(str(file), axes=["defaults.receive_buffer=20 kB,1 MB"], parallel=1, out=out) == 0
    found = files(out)
    single = {"manifest.json", "plan.json", "scenario.toml", "summary.json", "events.parquet"}
    for folder in ("receive_buffer=20kB", "receive_buffer=1MB"):
        assert single <= {name.removeprefix(f"{folder}/") for name in found if name.startswith(folder)}
    shared = {name for name in found if not name.startswith("receive_buffer")}
    assert {"sweep.json", "points.parquet", "statistics.parquet", "plots/curve-goodput.png"} <= shared


def test_other_figures_and_captures_are_made_of_points_that_are_done(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    file.write_text(file.read_text().replace('"1 s"', '"100 ms"'))

    def ran(pcap: str, kinds: str | None, form: str) -> set[str]:
        wanted: dict[str, Any] = {"pcap": pcap, "plot": True, "kinds": kinds, "form": form}
        assert run.run(str(file), axes=["seed=4"], parallel=1, out=out, **wanted) == 0
        made = files(out / "seed=4")
        return {name for name in made if name.startswith(("capture", "plots"))}

    hosts = {"capture/client.pcapng", "capture/server.pcapng"}
    links = {f"capture/{name}.pcapng" for name in ("path0", "path1", "server")}
    assert ran("hosts", "rate", "png") == {"plots/rate.png", *hosts}
    assert ran("hosts", "topology,rate", "png") == {"plots/rate.png", "plots/topology.png", *hosts}
    assert ran("hosts", None, "svg") > {"plots/rate.svg", *hosts}
    assert ran("links", "rate", "svg") == {"plots/rate.svg", *links}
    manifest = out / "seed=4" / "manifest.json"
    before = manifest.stat().st_mtime_ns
    (out / "points.jsonl").unlink()
    assert ran("links", "rate", "svg") == {"plots/rate.svg", *links}
    assert manifest.stat().st_mtime_ns == before


def test_a_point_that_fails_is_named_and_stops_no_other(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run.run(str(file), axes=["defaults.receive_buffer=1 MB"], parallel=1, out=out) == 0
    (out / "receive_buffer=20kB").mkdir(parents=True)
    (out / "receive_buffer=20kB" / "mine").touch()
    assert run.run(str(file), axes=["defaults.receive_buffer=20 kB,1 MB"], parallel=1, out=out) == 2
    printed = capsys.readouterr()
    assert "1 MB" in printed.out
    assert "polypath: small at defaults.receive_buffer=20 kB: " in printed.err
    assert '"state": "failed"' in (out / "sweep.json").read_text()


def test_every_point_failing_still_ends_in_one_line_each(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run.run(str(file), axes=["seed=2"], parallel=1, out=out) == 0
    (out / "seed=1").mkdir(parents=True)
    (out / "seed=1" / "mine").touch()
    assert run.run(str(file), axes=["seeds=1"], parallel=1, out=out) == 2
    assert "polypath: small at seed=1: " in capsys.readouterr().err


def test_one_point_left_is_one_run(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = file.read_text() + '[vary]\n"link.path0.rate" = ["1 Mbps", "2 Mbps"]\n'
    file.write_text(text)
    assert run.run(str(file), settings=["link.path0.rate=3 Mbps"]) == 0
    assert "10.0.0.1:32768" in capsys.readouterr().out


def test_compare_takes_one_point(file: Path) -> None:
    file.write_text(file.read_text() + "[vary]\nseeds = 2\n")
    with pytest.raises(InputError, match=r"^small varies 'seed'; .* one run: fix it, as with --set 'seed=\d+'$"):
        compare.compare(str(file), names="sim,linux")
    file.write_text(file.read_text() + '"link.path0.rate" = ["1 Mbps", "2 Mbps"]\n')
    with pytest.raises(InputError, match=r"fix them, as with --set 'seed=\d+' --set 'link\.path0\.rate=1 Mbps'$"):
        compare.compare(str(file), names="sim,linux")


UNFINISHED = """
name = "ask"
duration = "2 s"

[host.client]
[host.server]

[link.path0]
ends = ["client", "server"]
rate = "1 Mbps"
delay = "10 ms"

[[application]]
name = "ask"
kind = "request-response"
count = 20
request = "1 kB"
response = "10 kB"
"""


def rows(printed: str) -> list[str]:
    return [" ".join(line.split()) for line in printed.splitlines()]


def test_what_did_not_finish_stands_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ask.toml"
    path.write_text(UNFINISHED)
    rate = "link.path0.rate=1 Mbps,10 Mbps,1 kbps"
    assert run.run(str(path), axes=[rate, "seeds=3"], parallel=1, out=tmp_path / "out") == 0
    heading, slow, fast, stalled, *notes = rows(capsys.readouterr().out)[1:]
    assert heading == "rate Mbps time s delay ms 95 % ms unanswered seeds"
    assert re.fullmatch(r"1 Mbps 0\.[\d.]+ = 0 of 3 done [\d.]+ = 0 of 3 done 1 = 3", slow)
    assert re.fullmatch(r"10 Mbps [\d.]+ = 0\.[\d.]+ = [\d.]+ = [\d.]+ = 0 = 3", fast)
    assert re.fullmatch(r"1 kbps 0 = 0 of 3 done 0 of 3 done 0 of 3 done [01] = 3", stalled)
    assert notes[0] == "= deterministic: the runs of all seeds agree"
    assert notes[1].startswith("done: runs that finished, had their requests answered")
    statistics = pl.read_parquet(tmp_path / "out" / "statistics.parquet")
    assert statistics.filter(measure="completion_s")["unfinished"].to_list() == [3, 0, 3]
    assert (tmp_path / "out" / "plots" / "curve-unanswered.png").exists()


def test_an_unfinished_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ask.toml"
    path.write_text(UNFINISHED)
    assert run.run(str(path), out=tmp_path / "out") == 0
    words = r"ask: \d+ requests, delay median [\d.]+ ms, 1 unanswered \(6%\), "
    assert re.search(words + "unfinished\n", capsys.readouterr().out)
    assert run.run(str(path), settings=["link.path0.rate=1 kbps"]) == 0
    assert "none answered, unfinished\n" in capsys.readouterr().out


def test_an_interval_has_no_more_digits_than_it_is_worth(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(str(file), axes=["link.path0.loss=1 %,0 %", "link.path1.rate=5 Mbps", "seeds=4"]) == 0
    lossy, clean = rows(capsys.readouterr().out)[2:4]
    assert re.match(r"1 % (\d+\.\d ± \d\.\d|\d+ ± \d+|\d+\.\d\d ± 0\.\d\d) ", lossy.replace("5 Mbps ", ""))
    assert re.match(r"0 % \d+\.\d+ = ", clean.replace("5 Mbps ", ""))
