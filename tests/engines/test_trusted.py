"""What is executed from a cache is ours, and as it was recorded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polypath.engines import trusted
from polypath.engines.namespaces import programs
from polypath.engines.trusted import Executable, Untrusted

CONTENT = b"#!/bin/sh\nexit 0\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def program(tmp_path: Path) -> Executable:
    folder = tmp_path / "cache" / "kernel"
    trusted.make_folder(folder, tmp_path / "cache")
    (folder / "linux").write_bytes(CONTENT)
    (folder / "linux").chmod(0o755)
    return Executable(folder / "linux", SHA256, "build it again")


@contextmanager
def _refused(*words: str) -> Iterator[None]:
    with pytest.raises(Untrusted) as caught:
        yield
    said = str(caught.value)
    assert "\n" not in said
    assert all(word in said for word in words), said


def test_what_is_ours_and_intact_is_copied_to_be_executed(program: Executable, tmp_path: Path) -> None:
    trusted.require_own(program.path, tmp_path / "cache", "")
    program.require_intact()
    program.copy(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == CONTENT
    assert os.access(tmp_path / "copy", os.X_OK)


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT.replace(b"0", b"1")])
def test_another_content_is_refused_with_both_hashes(program: Executable, tmp_path: Path, content: bytes) -> None:
    program.path.write_bytes(content)
    for look in (program.require_intact, lambda: program.copy(tmp_path / "copy")):
        with _refused(str(program.path), SHA256, hashlib.sha256(content).hexdigest(), "build it again"):
            look()


@pytest.mark.parametrize("place", [".", "..", "../.."])
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_place_that_others_can_write_to_is_refused(
    program: Executable, tmp_path: Path, place: str, mode: int
) -> None:
    path = Path(os.path.normpath(program.path / place))
    path.chmod(mode)
    with _refused(f"others can write to {path} (mode {mode:04o})", f"`chmod go-w {path}`"):
        trusted.require_own(program.path, tmp_path / "cache", "")


def test_what_stands_above_the_cache_is_not_looked_at(program: Executable, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    trusted.require_own(program.path, tmp_path / "cache", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
@pytest.mark.parametrize("place", [".", "..", "../.."])
def test_what_belongs_to_another_user_is_refused(program: Executable, tmp_path: Path, place: str) -> None:
    path = Path(os.path.normpath(program.path / place))
    os.chown(path, 65534, 65534)
    with _refused(f"{path} belongs to ", "neither to you nor to root; build it again"):
        trusted.require_own(program.path, tmp_path / "cache", "build it again")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_a_link_is_its_owner_s(program: Executable, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "cache")
    trusted.require_own(link / "kernel" / "linux", link, "")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with _refused(f"{link} belongs to "):
        trusted.require_own(link / "kernel" / "linux", link, "")


def test_what_is_no_file_is_refused(program: Executable) -> None:
    program.path.unlink()
    os.mkfifo(program.path)
    with _refused("is no plain file"):
        program.require_intact()


def test_folders_are_ours_alone_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        trusted.make_folder(tmp_path / "cache" / "a" / "b", tmp_path / "cache")
    finally:
        os.umask(before)
    trusted.require_own(tmp_path / "cache" / "a" / "b", tmp_path / "cache", "")


def test_a_compiled_program_is_known_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library = programs.library("mptcp")
    assert programs.library("mptcp") == library
    assert [path.name for path in library.path.parent.iterdir()] == [library.path.name]
    library.copy(tmp_path / "copy")
    library.path.write_bytes(b"planted")
    with _refused(str(library.path), "remove it, and the next run compiles it again"):
        programs.library("mptcp").copy(tmp_path / "copy")
    library.path.unlink()
    programs.library("mptcp").copy(tmp_path / "copy")
    (tmp_path / "polypath").chmod(0o777)
    with _refused("others can write to"):
        programs.library("mptcp")
