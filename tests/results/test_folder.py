"""A results folder: replaced whole or not at all, whenever the process that replaces it is killed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from polypath.results import OutputError, Recording, folder


def contents(where: Path) -> dict[str, bytes]:
    return {str(path.relative_to(where)): path.read_bytes() for path in sorted(where.rglob("*")) if path.is_file()}


class Killed(BaseException):
    """Stands for SIGKILL: from one step on nothing changes on disk any more."""


@contextmanager
def killed_after(steps: int) -> Iterator[None]:
    """Lets that many of the steps pass that change a folder."""
    count = 0

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            nonlocal count
            count += 1
            if count > steps:
                raise Killed
            return real(*arguments, **named)

        return call

    with pytest.MonkeyPatch.context() as patched:
        for name in ("mkdir", "rename", "replace", "unlink", "rmdir", "write_text"):
            patched.setattr(Path, name, counted(getattr(Path, name)))
        patched.setattr(shutil, "rmtree", counted(shutil.rmtree))
        patched.setattr(pl.DataFrame, "write_parquet", counted(pl.DataFrame.write_parquet))
        yield


def test_a_kill_at_any_step_leaves_the_old_result_or_the_new_one(recording: Recording, tmp_path: Path) -> None:
    kept = {name: recording.tables[name] for name in ("connection_ends", "events", "link_ends", "segments", "requests")}
    old = Recording(kept, recording.plan, replace(recording.metadata, scenario="old"))
    changed = {"events": kept["events"].head(0), "requests": kept["requests"], "counters": recording.tables["counters"]}
    new = Recording(changed, recording.plan, replace(recording.metadata, scenario="new"))
    seen = []
    for last in range(1000):
        out = tmp_path / str(last)
        old.save(out)
        (out / "notes.md").write_text("mine")
        try:
            with killed_after(last):
                new.save(out)
            break
        except Killed:
            pass
        found = Recording.load(out)
        seen.append(found.metadata.scenario)
        whole = old if found.metadata.scenario == "old" else new
        assert found.tables.keys() == whole.tables.keys()
        assert all(found.table(name).equals(table) for name, table in whole.tables.items())
        assert folder.intact(out, folder.RUN)
        with folder.claim(out, folder.RUN):
            assert Recording.load(out).metadata == found.metadata
        new.save(out)
        assert not list(out.glob(".*"))
        assert Recording.load(out).tables.keys() == new.tables.keys()
        assert {path.name for path in (out / "series").iterdir()} == {"requests.parquet", "counters.parquet"}
        assert (out / "notes.md").read_text() == "mine"
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {"old", "new"}
    assert len(seen) > 20


def test_a_kill_in_a_new_folder_leaves_one_that_is_taken_again(recording: Recording, tmp_path: Path) -> None:
    few = replace(recording, tables={"events": recording.tables["events"]})
    for last in range(1000):
        out = tmp_path / str(last)
        try:
            with killed_after(last):
                few.save(out)
            break
        except Killed:
            few.save(out)
        assert not list(out.glob(".*"))
        assert folder.intact(out, folder.RUN)
    assert last > 10


@pytest.mark.parametrize("name", [folder.LOCK, folder.PARTIAL, folder.READY])
def test_a_name_of_ours_that_is_a_link_is_not_followed(recording: Recording, tmp_path: Path, name: str) -> None:
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "mine").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / name).symlink_to(aside)
    with pytest.raises(OutputError):
        recording.save(out)
    assert contents(aside) == {"mine": b"mine"}


def test_a_full_disk_keeps_the_result_that_was_there(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path)
    before = contents(tmp_path)

    def fails() -> None:
        with folder.claim(tmp_path, folder.RUN) as held:
            (held.stage() / "plan.json").write_text("{}")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fails()
    assert contents(tmp_path) == before


def test_only_names_that_results_have_are_listed() -> None:
    assert folder.RUN.has("series/links.parquet")
    for name in ("../plan.json", "/plan.json", "./plan.json", "series/../plan.json", "a/series/x.parquet", "notes.md"):
        assert not folder.RUN.has(name)


def test_a_result_is_intact_while_every_file_is_as_it_was_written(recording: Recording, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert not folder.intact(out, folder.RUN)
    recording.save(out)
    assert folder.intact(out, folder.RUN)
    assert not folder.intact(out, folder.SWEEP)
    path = out / "plan.json"
    whole = path.read_text()
    path.write_text(whole + " ")
    assert not folder.intact(out, folder.RUN)
    path.unlink()
    assert not folder.intact(out, folder.RUN)
    path.write_text(whole)
    assert folder.intact(out, folder.RUN)
