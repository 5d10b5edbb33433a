"""A final name never holds half a file, and what cannot be written is said in one line."""

from __future__ import annotations

import csv
import errno
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from polypath.results import files
from polypath.results.files import OutputError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "below" / "a.txt"
    files.write_text(path, "first ü\n")
    assert path.read_bytes() == "first ü\n".encode()

    def half(temporary: Path) -> None:
        assert temporary.parent == path.parent
        temporary.write_text("ha")
        assert path.read_text(encoding="utf-8") == "first ü\n"
        raise KeyError("stopped")

    with pytest.raises(KeyError):
        files.write_with(path, half)
    assert path.read_text(encoding="utf-8") == "first ü\n"
    assert names(tmp_path) == ["a.txt", "below", "deep"]
    files.write_with(path, lambda temporary: temporary.write_text("second"))
    assert path.read_text(encoding="utf-8") == "second"


def test_a_table_comes_back(tmp_path: Path) -> None:
    rows = pl.DataFrame({"a": [1, 2]})
    files.write_table(tmp_path / "deep" / "a.parquet", rows)
    assert pl.read_parquet(tmp_path / "deep" / "a.parquet").equals(rows)
    assert names(tmp_path) == ["a.parquet", "deep"]


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "a.txt", tmp_path / "file" / "deep" / "a.txt"):
        with pytest.raises(OutputError, match=r"^cannot write .*a\.txt: (File exists|Not a directory)$"):
            files.write_text(path, "x")
        with pytest.raises(OutputError, match=r"^cannot write .*a\.txt: (File exists|Not a directory)$"):
            files.write_table(path, pl.DataFrame({"a": [1]}))
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(OutputError, match=r"^cannot write .*folder\.txt: Is a directory$"):
        files.write_text(tmp_path / "folder.txt", "x")


@pytest.mark.parametrize(
    ("told", "said"), [("x (os error 28)", "No space left on device"), ("an odd thing\nand more", "an odd thing")]
)
def test_what_the_system_says_of_a_table_is_said(told: str, said: str, tmp_path: Path) -> None:
    class Refuses(pl.DataFrame):
        def write_parquet(self, *_: object, **__: object) -> None:
            raise pl.exceptions.ComputeError(told)

    with pytest.raises(OutputError, match=rf"^cannot write .*a\.parquet: {said}$"):
        files.write_table(tmp_path / "a.parquet", Refuses({"a": [1]}))
    assert names(tmp_path) == []


class Full(files._File):
    """A disk that has so much room left."""

    room = 0
    said = errno.ENOSPC

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file: Any = _Limited(self._file, Full)


class _Limited:
    def __init__(self, file: Any, disk: type[Full]) -> None:
        self.file, self.disk, self.left = file, disk, disk.room

    def write(self, data: Any) -> int:
        if not self.left:
            raise OSError(self.disk.said, os.strerror(self.disk.said))
        written = int(self.file.write(data[: self.left]))
        self.left -= written
        return written

    def close(self) -> None:
        self.file.close()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_said_wherever_in_a_table_it_ends(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pl.DataFrame({"a": range(50), "b": [str(each) for each in range(50)]})
    path = tmp_path / "a.parquet"
    files.write_table(path, rows)
    size = path.stat().st_size
    path.unlink()
    monkeypatch.setattr(files, "_File", Full)
    monkeypatch.setattr(Full, "said", code)
    for room in (*range(0, size, 13), size - 1):
        monkeypatch.setattr(Full, "room", room)
        for write in (files.write_table, files.write_csv) if room < 150 else (files.write_table,):
            with pytest.raises(OutputError) as raised:
                write(path, rows)
            assert str(raised.value) == f"cannot write {path}: {os.strerror(code)}"
    assert names(tmp_path) == []
    monkeypatch.setattr(Full, "room", size)
    files.write_table(path, rows)
    assert pl.read_parquet(path).equals(rows)


def test_a_table_is_written_as_polars_writes_it(tmp_path: Path) -> None:
    rows = pl.DataFrame({"a": range(200_000), "b": [str(each % 977) for each in range(200_000)]})
    rows.write_parquet(tmp_path / "theirs.parquet")
    files.write_table(tmp_path / "ours.parquet", rows)
    assert (tmp_path / "ours.parquet").read_bytes() == (tmp_path / "theirs.parquet").read_bytes()


def test_no_text_in_csv_is_a_formula(tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a=1", " =1", "", None]
    rows = pl.DataFrame({"name": texts, "n": range(-5, 5), "x": [-1.5, *[None] * 9]})
    path = tmp_path / "a.csv"
    files.write_csv(path, rows)
    with path.open(newline="", encoding="utf-8") as file:
        header, *cells = csv.reader(file)
    assert header == ["name", "n", "x"]
    assert [name for name, _, _ in cells] == [*(f"'{text}" for text in texts[:6]), "a=1", " =1", "", ""]
    assert [int(n) for _, n, _ in cells] == list(range(-5, 5))
    assert cells[0][2] == "-1.5"


def test_a_folder_is_made_and_tried(tmp_path: Path) -> None:
    files.require_writable(tmp_path / "deep" / "below")
    files.require_writable(tmp_path / "deep" / "below")
    assert names(tmp_path) == ["below", "deep"]
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"^cannot write to .*file.*: (File exists|Not a directory)$"):
        files.require_writable(tmp_path / "file")
