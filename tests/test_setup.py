"""`make test` installs what tests need, so no test is skipped for lack of it."""

import hashlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: A test that skips itself where a package or a program is missing.
SKIPS = re.compile(r"importorskip|skipif\(\s*shutil\.which|which\([^\n]*is None:\n\s+pytest\.skip")

#: Extras for what no test machine has: a batch system.
ELSEWHERE = {"dask-jobqueue>=0.9"}


def test_the_set_up_installs_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = {package for extra in project["project"]["optional-dependencies"].values() for package in extra}
    assert extras - ELSEWHERE <= set(project["dependency-groups"]["dev"])


PROGRAMS = ["cargo", "cc", "chromium", "groff", "ip", "iperf3", "node", "prlimit", "setpriv", "tshark", "unshare"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_set_up_installs_every_program(program: str) -> None:
    assert shutil.which(program), f"{program} is missing; make test-python installs it"


def test_no_test_is_skipped_for_what_the_set_up_installs() -> None:
    found = (path for folder in ("tests", "assurance") for path in (ROOT / folder).rglob("*.py"))
    tests = [path for path in found if path != Path(__file__)]
    assert [path.name for path in tests if SKIPS.search(path.read_text(encoding="utf-8"))] == []


def test_packetdrill_is_taken_from_a_folder_that_stays_as_it_is(tmp_path: Path) -> None:
    theirs = tmp_path / "packetdrill" / "gtests" / "net"
    for suite in ("common", "mptcp/common", "tcp/common"):
        (theirs / suite).mkdir(parents=True)
        (theirs / suite / "set_sysctls.py").write_text("theirs")
    (theirs / "packetdrill").mkdir()
    tool = theirs / "packetdrill" / "packetdrill"
    tool.write_text("#!/bin/sh\n")
    ours = tmp_path / "polypath" / "assurance" / "packetdrill"
    shutil.copytree(ROOT / "assurance" / "packetdrill", ours)

    def prepared(*folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ours / "prepare", *folder], capture_output=True, text=True, check=False)

    for refused in (prepared(), prepared(tmp_path), prepared(theirs.parents[1])):
        assert (refused.returncode, refused.stdout) == (2, "")
        assert re.fullmatch(r".*; PACKETDRILL=FOLDER takes .* \(measured with commit \w+\)\n", refused.stderr)
    tool.chmod(0o755)
    assert prepared(theirs.parents[1]).returncode == 0
    laid = tmp_path / "polypath" / "target" / "packetdrill"
    assert (laid / "packetdrill").resolve() == tool
    assert (laid / "scripts/tcp/common/set_sysctls.py").resolve() == ours / "command"
    assert (theirs / "tcp/common/set_sysctls.py").read_text() == "theirs"


def test_a_release_needs_one_version_everywhere() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    made = subprocess.run([ROOT / ".ci" / "release", version], capture_output=True, text=True, check=True)
    assert made.stdout.strip()
    assert "## " not in made.stdout
    other = subprocess.run([ROOT / ".ci" / "release", "99.0.0"], capture_output=True, text=True, check=False)
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr == f"release 99.0.0: Cargo.toml has {version}; change it and Cargo.lock\n"


def test_the_recipe_of_conda_forge_has_the_release_and_its_dependencies(tmp_path: Path) -> None:
    sdist = tmp_path / "polypath-9.8.7.tar.gz"
    sdist.write_bytes(b"a release")
    home = "https://github.com/someone/polypath"
    made = subprocess.run([ROOT / ".ci" / "recipe", home, sdist], capture_output=True, text=True, check=True).stdout
    assert '\n  version: "9.8.7"\n' in made
    assert f"\n  url: {home}/releases/download/v${{{{ version }}}}/polypath-${{{{ version }}}}.tar.gz\n" in made
    assert f"\n  sha256: {hashlib.sha256(b'a release').hexdigest()}\n" in made
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    _, needed = made.split("\n  run:\n")
    listed = needed.partition("\n\n")[0].split("\n    - ")
    assert len(listed) == 1 + len(project["dependencies"])
    assert {each.split(" ")[0] for each in listed[1:]} == {
        each.partition(">=")[0].replace("matplotlib", "matplotlib-base") for each in project["dependencies"]
    }
    refused = subprocess.run([ROOT / ".ci" / "recipe", sdist], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("usage: .ci/recipe https://github.com/OWNER/polypath dist/")
