"""A result that somebody made to do harm is refused before it is read: by its size, depth and kind."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polypath import _core
from polypath.results import OutputError, Recording, reading
from polypath.results.stored import StoredSweep

ROWS = 2_000_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(reading.VARIABLE, "0.01")


def zeros(path: Path) -> None:
    """16 MB of a number, which are some kilobytes in the file: less in its pages than in memory."""
    pl.DataFrame({"time_ns": pl.zeros(ROWS, pl.Int64, eager=True)}).write_parquet(path)


def text(path: Path) -> None:
    """A page of 16 MB without compression."""
    pl.DataFrame({"host": ["x" * 8 * ROWS]}).write_parquet(path)


def texts(path: Path) -> None:
    """16 MB of a text that is in the file once, and in memory as well until something is made of each."""
    pl.DataFrame({"host": ["x" * 80_000] * 200}).write_parquet(path)


def lists(path: Path) -> None:
    """16 MB of numbers in a single row."""
    pl.DataFrame({"numbers": [pl.zeros(ROWS, pl.Int64, eager=True)]}).write_parquet(path)


def pages(path: Path) -> None:
    """Empty pages, 250,000 of them: little in the file, and little but not nothing in memory."""
    batch = pa.record_batch({f"column{number}": pa.array([0], pa.int8()) for number in range(500)})
    with pq.ParquetWriter(path, batch.schema) as writer:
        for _ in range(50):
            writer.write_batch(batch)


@pytest.mark.parametrize("make", [zeros, text, texts, lists, pages])
def test_a_table_that_grows_is_refused_before_it_is_read(
    recording: Recording, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch, make: object
) -> None:
    recording.save(tmp_path)
    assert callable(make)
    make(tmp_path / "events.parquet")
    if make is not texts:
        monkeypatch.setattr(pl, "read_parquet", lambda path: pytest.fail(f"{path} was read"))
    wanted = (
        r"(GB of memory or more|texts of the tables have 0\.016 GB); a result may take 0\.01 GB, and POLYPATH_RESULT_GB"
    )
    with pytest.raises(OutputError, match=wanted) as caught:
        Recording.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_the_limit_is_of_all_tables_together(recording: Recording, tmp_path: Path, small: None) -> None:
    recording.save(tmp_path)
    for name in ("events", "series/segments"):
        pl.DataFrame({"time_ns": pl.zeros(800_000, pl.Int64, eager=True)}).write_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(OutputError, match=r"the tables take 0\.0129 GB"):
        Recording.load(tmp_path)


def test_the_limit_can_be_raised(recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording.save(tmp_path)
    zeros(tmp_path / "events.parquet")
    monkeypatch.setenv(reading.VARIABLE, "0.02")
    assert Recording.load(tmp_path).table("events").height == ROWS


@pytest.mark.parametrize("given", ["much", "-1", "0", "nan", "inf"])
def test_a_limit_that_is_none_is_refused(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    recording.save(tmp_path)
    monkeypatch.setenv(reading.VARIABLE, given)
    with pytest.raises(OutputError, match=f"is a number of gigabytes, not '{given}'"):
        Recording.load(tmp_path)


def test_a_table_of_another_kind_is_refused(recording: Recording, tmp_path: Path) -> None:
    """In a delta of texts each has all that came before it."""
    recording.save(tmp_path)
    pl.DataFrame({"time_ns": [[[1, 2, 3]]]}).write_parquet(tmp_path / "events.parquet")
    with pytest.raises(OutputError, match="column 'time_ns' is of a type that no table of a result has"):
        Recording.load(tmp_path)
    deltas = pa.table({"host": ["a" * length for length in range(1000)]})
    pq.write_table(
        deltas, tmp_path / "events.parquet", use_dictionary=False, column_encoding={"host": "DELTA_BYTE_ARRAY"}
    )
    with pytest.raises(OutputError, match="not a Parquet file as results have it"):
        Recording.load(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "plan.json"])
@pytest.mark.parametrize("content", ["[" * 50_000 + "]" * 50_000, '{"a":' * 200 + "1" + "}" * 200])
def test_what_is_nested_deeply_is_refused(recording: Recording, tmp_path: Path, name: str, content: str) -> None:
    recording.save(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(OutputError, match=f"{name} is nested too deeply"):
        Recording.load(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "plan.json"])
def test_a_large_text_is_refused(recording: Recording, tmp_path: Path, name: str, small: None) -> None:
    recording.save(tmp_path)
    (tmp_path / name).write_text("[" + "[]," * 200_000 + "1]")
    with pytest.raises(OutputError, match=rf"{name} has more than 0\.3125 MB; a result may take 0\.01 GB"):
        Recording.load(tmp_path)


def test_a_text_takes_no_more_memory_than_is_counted() -> None:
    """The worst there is: empty lists and tables."""
    for part, empty in (("[],", []), ("{},", {})):
        assert (empty.__sizeof__() + 16 + 8) / len(part) <= reading.JSON_GROWS


@pytest.mark.parametrize("name", ["manifest.json", "plan.json", "events.parquet"])
def test_what_is_no_plain_file_is_not_read(recording: Recording, tmp_path: Path, name: str) -> None:
    recording.save(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(OutputError, match=f"{name} is not a plain file"):
        Recording.load(tmp_path)


def test_the_tables_of_a_sweep_have_the_limit_too(tmp_path: Path, small: None) -> None:
    index = {"name": "sweep", "axes": [], "points": []}
    (tmp_path / "sweep.json").write_text(json.dumps(index))
    zeros(tmp_path / "points.parquet")
    with pytest.raises(OutputError, match=r"the tables take 0\.016 GB of memory or more"):
        StoredSweep.read(tmp_path)


def test_sizes_are_those_of_the_tables(recording: Recording, tmp_path: Path) -> None:
    for name, table in recording.tables.items():
        table.write_parquet(tmp_path / name)
        values, content = _core.parquet_size(tmp_path / name, 1 << 40)
        assert values == [table.height] * table.width
        assert content > 0 or not table.height


@pytest.mark.parametrize("compression", ["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI"])
def test_whoever_has_written_a_table_it_is_read(recording: Recording, tmp_path: Path, compression: str) -> None:
    table = recording.table("events")
    pq.write_table(table.to_arrow(), tmp_path / "events", compression=compression, data_page_version="2.0")
    assert reading.table(tmp_path / "events").equals(table)


def test_a_damaged_table_is_measured_or_refused(recording: Recording, tmp_path: Path) -> None:
    """Whatever the bytes are: two numbers, or ValueError."""
    recording.table("events").write_parquet(tmp_path / "sound")
    sound = (tmp_path / "sound").read_bytes()
    draw = random.Random(1)
    for _ in range(3000):
        broken = bytearray(sound)
        for _ in range(draw.randint(1, 4)):
            broken[draw.randrange(len(broken))] = draw.choice([0, 0xFF, draw.randrange(256)])
        if draw.random() < 0.2:
            del broken[draw.randrange(len(broken)) :]
        (tmp_path / "broken").write_bytes(broken)
        try:
            values, content = _core.parquet_size(tmp_path / "broken", 1 << 40)
        except ValueError:
            continue
        assert min([*values, content]) >= 0


def test_a_table_that_is_cut_short_or_damaged_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}).write_parquet(path)
    whole = path.read_bytes()
    for length in (*range(0, len(whole), 29), *range(len(whole) - 9, len(whole))):
        path.write_bytes(whole[:length])
        with pytest.raises(OutputError, match=r"^cannot read .*a\.parquet: it is cut short$"):
            reading.table(path)
    for other in (b"PAR1" + bytes(len(whole) - 8) + b"PAR1", b"something else that is long enough"):
        path.write_bytes(other)
        with pytest.raises(OutputError, match=r"^cannot read .*a\.parquet: not a Parquet file as results have it$"):
            reading.table(path)
        assert not reading.is_readable(path)
    with pytest.raises(FileNotFoundError):
        reading.table(tmp_path / "b.parquet")


def test_what_the_system_says_of_a_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path, *, glob: bool) -> None:
        raise pl.exceptions.ComputeError("Input/output error (os error 5)")

    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(path)
    monkeypatch.setattr(pl, "read_parquet", broken)
    with pytest.raises(OutputError, match=r"^cannot read .*a\.parquet: Input/output error$"):
        reading.table(path)


@pytest.mark.parametrize(
    "name", ["run[1]", "run*", "what?", "{a,b}", "!run", "file:run", "a=1,b=2", "\x1b[31m", "漢🚀"]
)
def test_the_name_of_a_folder_is_no_pattern(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / "run1").mkdir()
    pl.DataFrame({"a": [2]}).write_parquet(tmp_path / "run1" / "a.parquet")
    path = tmp_path / name / "a.parquet"
    reading_of = pl.DataFrame({"a": [1]})
    with path.open("wb") as file:
        reading_of.write_parquet(file)
    assert reading.table(path).equals(reading_of)
