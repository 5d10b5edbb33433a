"""polypath upgrade: what it prints, writes and keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

OLD = b"""\xef\xbb\xbf# name = "a"\r
[host.a]\r
\tscheduler = { name = "roundrobin",  num_segments = 2 }  # two\r
"""
NEW = OLD.replace(b"{ name", b"{ kind")
SAID = 'host.a.scheduler: write kind = "roundrobin" in place of name'


@pytest.fixture
def old(tmp_path: Path) -> Path:
    file = tmp_path / "old.toml"
    file.write_bytes(OLD)
    return file


def test_it_prints_the_new_form_and_leaves_the_file(polypath: Any, old: Path) -> None:
    outcome = polypath("upgrade", old)
    assert outcome.code == 0
    assert outcome.out.encode() == NEW.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    assert outcome.err == f"{old}:3: {SAID}\n"
    assert old.read_bytes() == OLD


def test_check_finds_old_forms_and_writes_nothing(polypath: Any, old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.toml"
    new.write_bytes(NEW)
    outcome = polypath("upgrade", tmp_path, "--check")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", f"{old}:3: {SAID}\n")
    assert polypath("upgrade", new, "--check").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.toml", "old.toml"]


def test_in_place_keeps_the_original(polypath: Any, old: Path) -> None:
    old.chmod(0o640)
    outcome = polypath("upgrade", old, "--in-place")
    kept = old.with_name("old.toml.before-upgrade")
    assert outcome.code == 0
    assert outcome.err.endswith(f"rewrote {old}; the original is {kept}\n")
    assert (old.read_bytes(), kept.read_bytes()) == (NEW, OLD)
    assert old.stat().st_mode & 0o777 == 0o640
    assert polypath("upgrade", old, "--in-place").err == ""


def test_in_place_overwrites_no_original_that_was_kept(polypath: Any, old: Path) -> None:
    kept = old.with_name("old.toml.before-upgrade")
    kept.write_text("mine")
    outcome = polypath("upgrade", old, "--in-place")
    assert outcome.code == 2
    assert f"{kept} exists" in outcome.err
    assert (old.read_bytes(), kept.read_text()) == (OLD, "mine")


def test_out_writes_a_new_file_only(polypath: Any, old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.toml"
    assert polypath("upgrade", old, "--out", new).code == 0
    assert new.read_bytes() == NEW
    again = polypath("upgrade", old, "--out", new)
    assert again.code == 2
    assert "exists" in again.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[project]\nname = 'x'\n", "x.toml: this is no scenario, no lab and no rubric"),
        ("[host.a\n", "x.toml:1: invalid TOML"),
        ("a.b = 1\na.b = 2\n", "x.toml:2"),
    ],
)
def test_what_is_no_scenario_is_refused(polypath: Any, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    outcome = polypath("upgrade", tmp_path / "x.toml")
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_options_that_exclude_each_other(polypath: Any, old: Path, tmp_path: Path) -> None:
    assert "exclude each other" in polypath("upgrade", old, "--check", "--in-place").err
    (tmp_path / "more.toml").write_bytes(OLD)
    assert "2 files" in polypath("upgrade", tmp_path).err
    (tmp_path / "empty").mkdir()
    assert "no file that ends in .toml" in polypath("upgrade", tmp_path / "empty").err
