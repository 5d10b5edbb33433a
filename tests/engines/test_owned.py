"""Folders of our own go with their process, or afterwards; nobody else's does, whatever it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polypath.engines import owned

from ..processes import wait

PREFIX = "polypath-linux-"
HOLDS = (
    "import sys, time; from pathlib import Path; from polypath.engines import owned\n"
    f"with owned.made(Path(sys.argv[1]), '{PREFIX}1-') as folder: (folder / 'begun').touch(); time.sleep(1000)"
)


def _folders(place: Path) -> list[Path]:
    return sorted(place.glob(f"{PREFIX}*"))


@contextmanager
def _held(place: Path, *wrapper: str) -> Iterator[Path]:
    """A folder of another process, which is killed afterwards."""
    with subprocess.Popen([*wrapper, sys.executable, "-c", HOLDS, str(place)]) as process:
        try:
            yield wait(lambda: sorted(place.glob(f"{PREFIX}*/begun")))[0].parent
        finally:
            process.kill()


def test_a_folder_goes_with_what_is_in_it_and_no_link_is_followed(tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "thesis").mkdir(parents=True)
    with owned.made(tmp_path, PREFIX) as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep" / "er" / "file").touch()
        (folder / "link").symlink_to(own)
        (folder / "deep" / "link").symlink_to(own)
    assert not folder.exists()
    assert (own / "thesis").is_dir()


def test_what_a_killed_process_left_goes_at_the_next_start(tmp_path: Path) -> None:
    with _held(tmp_path) as folder:
        owned.clear(tmp_path, PREFIX)
        assert (folder / "begun").exists()
    assert (folder / "begun").exists()
    owned.clear(tmp_path, PREFIX)
    assert not folder.exists()


def test_a_folder_stays_while_its_process_of_another_process_namespace_lives(tmp_path: Path) -> None:
    """Its number, 1 there, tells nothing here."""
    namespace = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine makes no process namespace")
    with _held(tmp_path, *namespace) as folder:
        owned.clear(tmp_path, PREFIX)
        assert (folder / "begun").exists()


def test_a_folder_that_a_person_named_so_stays(tmp_path: Path) -> None:
    """Empty or not, a copy of ours, one renamed, one with a link or a pipe for a marker, and one that is a link."""
    with _held(tmp_path) as folder:
        pass
    copied, renamed = tmp_path / f"{PREFIX}7-copied", tmp_path / f"{PREFIX}7-renamed"
    shutil.copytree(folder, copied)
    folder.rename(renamed)
    for name in ("results", "linked", "piped", "empty"):
        (tmp_path / f"{PREFIX}99999999-{name}").mkdir()
    (tmp_path / f"{PREFIX}99999999-results" / "manifest.json").write_text("{}")
    (tmp_path / f"{PREFIX}99999999-linked" / owned.MARKER).symlink_to(renamed / owned.MARKER)
    os.mkfifo(tmp_path / f"{PREFIX}99999999-piped" / owned.MARKER)
    (tmp_path / f"{PREFIX}99999999-link").symlink_to(tmp_path / "thesis")
    (tmp_path / "thesis").mkdir()
    (tmp_path / f"{PREFIX}99999999-file").write_text("mine")
    before = _folders(tmp_path)
    assert len(before) == 8
    owned.clear(tmp_path, PREFIX)
    assert _folders(tmp_path) == before
    assert (tmp_path / "thesis").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
@pytest.mark.parametrize("whose", ["folder", "marker"])
def test_a_folder_of_another_user_stays(tmp_path: Path, whose: str) -> None:
    with _held(tmp_path) as folder:
        pass
    os.chown(folder if whose == "folder" else folder / owned.MARKER, 65534, 65534)
    owned.clear(tmp_path, PREFIX)
    assert (folder / "begun").exists()


def test_what_takes_the_place_of_our_folder_stays(tmp_path: Path) -> None:
    with owned.made(tmp_path, PREFIX) as folder:
        folder.rename(tmp_path / "elsewhere")
        folder.mkdir()
        (folder / "thesis").touch()
    assert (folder / "thesis").exists()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_lock_is_no_link_and_empties_no_file(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("mine")
    (tmp_path / "lock").symlink_to(tmp_path / "thesis")
    with pytest.raises(OSError, match="lock"), owned.alone(tmp_path / "lock"):
        pass
    with owned.alone(tmp_path / "thesis"):
        pass
    assert (tmp_path / "thesis").read_text() == "mine"


def test_what_is_replaced_goes_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "old").touch()
    with owned.made(tmp_path, PREFIX) as place:
        (place / "new").mkdir()
        owned.replace(place / "new", tmp_path / "kernel", place)
    assert [path.name for path in tmp_path.iterdir()] == ["kernel"]
    assert not list((tmp_path / "kernel").iterdir())
