import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from polypath.results import MetricError, OutputError, Recording, UnknownName


def test_what_is_saved_loads_back(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path)
    loaded = Recording.load(tmp_path)
    assert loaded.tables.keys() == recording.tables.keys()
    assert all(loaded.table(name).equals(table) for name, table in recording.tables.items())
    assert (loaded.plan, loaded.metadata) == (recording.plan, recording.metadata)


def test_the_layout_on_disk(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path)
    written = {"manifest.json", "plan.json", "summary.json", "series", "events.parquet"}
    assert {path.name for path in tmp_path.iterdir()} == written
    assert pl.read_parquet(tmp_path / "series" / "subflows.parquet").height == 7
    assert json.loads((tmp_path / "manifest.json").read_text())["seed"] == 7


def test_saving_again_removes_what_is_no_longer_there(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path)
    fewer = replace(recording, tables={name: each for name, each in recording.tables.items() if name != "segments"})
    fewer.save(tmp_path)
    assert not (tmp_path / "series" / "segments.parquet").exists()
    assert Recording.load(tmp_path).table("segments").is_empty()


def test_a_failed_write_leaves_the_result_that_was_there(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.save(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def broken(self: pl.DataFrame, file: Any) -> None:
        file.write(b"PAR1 half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", broken)
    with pytest.raises(OutputError, match="No space left on device"):
        recording.save(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"format": 1}', '{"format": 2}', "\x00\x01"])
def test_a_broken_manifest_is_one_line(recording: Recording, tmp_path: Path, manifest: str) -> None:
    recording.save(tmp_path)
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(OutputError) as caught:
        Recording.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_broken_table_is_one_line(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path)
    (tmp_path / "series" / "links.parquet").unlink(missing_ok=True)
    (tmp_path / "series" / "subflows.parquet").write_bytes(b"junk")
    with pytest.raises(OutputError) as caught:
        Recording.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_table_that_does_not_exist_is_refused(recording: Recording) -> None:
    with pytest.raises(UnknownName, match=r"^unknown table 'sublfows'; did you mean 'subflows'\?$") as caught:
        recording.table("sublfows")
    assert isinstance(caught.value, KeyError | MetricError)


def test_what_the_extra_brings_is_named_where_it_lacks(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(OutputError, match=r"to_pandas\(\) needs pandas and pyarrow; install them"):
        recording.to_pandas()
    with pytest.raises(OutputError, match=r"to_pyarrow\(\) needs pyarrow"):
        recording.to_pyarrow()


def test_pandas_and_pyarrow(recording: Recording) -> None:
    assert recording.to_pyarrow()["requests"].num_rows == 3
    assert recording.to_pandas()["requests"]["delay_ns"].isna().sum() == 1


def test_a_plan_that_lacks_what_is_asked_for_is_said(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path)
    path = tmp_path / "plan.json"
    whole = json.loads(path.read_text())
    plans: list[Any] = [{**whole, "applications": []}, [], 7, {}]
    for plan in plans:
        path.write_text(json.dumps(plan))
        with pytest.raises(OutputError, match=r"plan\.json does not have the applications that the tables name"):
            Recording.load(tmp_path)
    path.write_text(json.dumps({**whole, "nodes": []}))
    damaged: Any = Recording.load(tmp_path).plan
    with pytest.raises(OutputError, match=r"plan\.json has no number 0 where one belongs"):
        damaged["nodes"][0]
    with pytest.raises(OutputError, match=r"plan\.json has no 'colour' where one belongs"):
        damaged["applications"][0]["colour"]
