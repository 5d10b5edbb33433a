"""A guest that does not start, or dies, is no result, whatever it printed: a line says why, and what to do."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from polypath.engines import EngineError
from polypath.engines.linux import LinuxEngine, guest
from polypath.engines.linux.kernel import Installed, find
from polypath.engines.linux.kernel.cache import RECIPE_VARIABLE
from polypath.engines.linux.trial import trial
from polypath.engines.namespaces import programs, run
from polypath.results import Recording
from polypath.scenario import Scenario

from ..processes import LIMIT_S, inside, wait
from ..slow import slow

HERE = Path(__file__).parent
COMMAND = (sys.executable, "-m", "polypath")
#: A kernel that says much and does nothing.
HOLLOW = "echo progress 1000000; echo all is well; exit 0"

Fake = Callable[[str], Installed]
Run = Callable[..., Recording]
Load = Callable[..., Scenario]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the applications, made once."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        programs.build()
        programs.library("mptcp")
    return folder


@pytest.fixture
def fake(compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Makes a script of sh the kernel of this installation, in a cache and by a recipe of its own."""
    recipe = tmp_path / "recipe"
    recipe.mkdir()
    for name in ("source.toml", "config.fragment"):
        (recipe / name).touch()
    shutil.copytree(compiled / "polypath", tmp_path / "cache" / "polypath")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(RECIPE_VARIABLE, str(recipe))

    def install(script: str) -> Installed:
        from polypath.engines.linux.kernel import cache

        folder = cache.cache() / "fake"
        folder.mkdir(parents=True)
        content = f"#!/bin/sh\n{script}\n".encode()
        (folder / "linux").write_bytes(content)
        wanted = cache.recipe()
        assert wanted is not None
        kernel = Installed(folder, "7.2.12", "source", wanted.digest(), "", "cc", hashlib.sha256(content).hexdigest())
        kernel.save()
        return kernel

    return install


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 1", r"the guest .* ended too early with exit code 1; its last words: none$"),
        ("echo no memory; exit 1", r"ended too early with exit code 1; its last words: no memory$"),
        (HOLLOW, r"ended before its run was over; its last words: all is well$"),
        ("echo 3 >outcome; echo gone", r"the run's programs ended with exit code 3; last words: gone$"),
        ("echo >outcome", r"the run's programs ended with exit code"),
        ("echo 0 >outcome; exit 4", r"ended too early with exit code 4"),
        ("kill -KILL $$", r"was killed by signal 9 \(SIGKILL\), as the system does where memory runs out"),
        ("echo 0 >outcome; kill -SEGV $$", r"was killed by signal 11 \(SIGSEGV\); its last words"),
        (
            "echo 0 >outcome; echo 'Kernel panic - not syncing: x'; exit 0",
            r"the guest's kernel complained: Kernel panic",
        ),
        ("echo 'Kernel panic - not syncing: Kernel mode signal 7'; exit 1", r"/dev/shm ran full.* give it more room"),
        ("echo 'guest: out/x cannot be written' >&2; echo 0 >outcome", r"^guest: out/x cannot be written$"),
    ],
)
def test_a_guest_that_dies_is_no_result(fake: Fake, scenario: Load, script: str, said: str) -> None:
    kernel = fake(script)
    with pytest.raises(EngineError) as caught:
        LinuxEngine(kernel=kernel).run(scenario("pair").plan(None))
    assert re.search(said, str(caught.value)), caught.value
    assert "\n" not in str(caught.value)


def test_path_says_nothing_of_what_a_run_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (str(tmp_path), None):
        monkeypatch.setenv("PATH", path) if path else monkeypatch.delenv("PATH")
        programs.require_tools("linux")
        command = guest.command(1, 64)
        assert [Path(each).name for each in command if each.endswith(("/env", "/setpriv"))]
        assert not {"env", "setpriv"} & set(command)


def test_a_kernel_that_does_nothing_fails_its_trial(fake: Fake) -> None:
    with pytest.raises(EngineError, match="ended before its run was over"):
        trial(fake(HOLLOW))


@pytest.mark.parametrize(
    "words",
    [
        ["run", "aggregation", "--run", "tcp", "--engine", "linux"],
        ["run", "aggregation", "--run", "tcp", "--engine", "linux", "--vary", "seeds=3", "--jobs", "2"],
        ["compare", "aggregation", "--run", "tcp"],
        ["exec", "NETWORK", "--", "true"],
        ["shell", "NETWORK"],
    ],
)
def test_no_command_takes_it_for_one(fake: Fake, tmp_path: Path, words: list[str]) -> None:
    fake(HOLLOW)
    network = tmp_path / "net.toml"
    network.write_text((HERE / "programs.toml").read_text().partition("[[application]]")[0])
    words = [str(network) if word == "NETWORK" else word for word in words]
    out = tmp_path / "out"
    if words[0] != "shell":
        words[1:1] = ["--out", str(out)]
    done = subprocess.run(
        [*COMMAND, *words], input="client true\n", capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "all is well" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(out.rglob("manifest.json"))


def test_an_interruption_before_the_guest_ran_anything_is_no_result(fake: Fake, tmp_path: Path) -> None:
    fake("sleep 1000")
    out = tmp_path / "out"
    words = ["run", "aggregation", "--run", "tcp", "--engine", "linux", "--out", str(out)]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([*COMMAND, *words], env=environment, stderr=subprocess.PIPE, text=True) as process:
        (folder,) = wait(lambda: list(temporary.glob("polypath-linux-*")))
        wait(lambda: len(inside(folder)) > 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, said) == (130, "interrupted\n")
    assert not any(path.is_file() for path in out.rglob("*"))
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"setup.sh": "./guest halt\n"}, r"ended before its run was over"),
        ({"setup.sh": "echo no route >&2; exit 1\n"}, r"^the network could not be set up: .*no route"),
        ({"collect.sh": "echo no counters; exit 7\n"}, r"^guest: status 0x700: sh -e ./collect.sh"),
        ({"job": "end 1000000000 1\napp 0 - program folder=none name=x\n"}, r"^guest: .*none/files: No such file"),
        ({"job": "end 1000000000 1\nevent 0 kill -KILL $$\n"}, r"^guest: status 0x9: kill -KILL"),
        ({"job": "end 1000000000 1\nhelper -1 - links log=/dev/full\napp 0 - ping\n"}, r"^guest: "),
    ],
)
def test_what_fails_inside_is_no_result(linux: Run, files: dict[str, str], said: str) -> None:
    given = {"setup.sh": "exit 0\n", "job": "end 1 0\n", "collect.sh": "", **files}
    with guest.folder(find(), given, {}) as folder, pytest.raises(EngineError) as caught:
        guest.boot(folder, 1, 256, lambda now: None)
    assert re.search(said, str(caught.value)), caught.value


def test_a_run_that_ends_well_is_one(linux: Run) -> None:
    given = {"setup.sh": "exit 0\n", "job": "end 1 0\n", "collect.sh": ""}
    with guest.folder(find(), given, {}) as folder:
        assert guest.boot(folder, 1, 256, lambda now: None).code == 0
        assert (folder / run.OUTCOME).read_text() == "0\n"


def test_a_program_whose_file_cannot_be_written_fails() -> None:
    """As on a full disk: what is missing in it nobody would see."""
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        port = nobody_listens.getsockname()[1]
        options = [f"port={port}", "destination=127.0.0.1", "side=client", "transport=tcp", "work=bulk", "size=1"]
        for log, code in (("/dev/null", 3), ("/dev/full", 1)):
            words = [os.fspath(programs.build()), "app", f"log={log}", *options]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S)
            assert done.returncode == code
            assert ("/dev/full cannot be written: is the disk full?" in done.stderr) == (code == 1)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, and gives up capabilities")


def _hostile(words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "run", "aggregation", "--run", "tcp", "--engine", "linux", "--set", "duration=1 s"]
    return subprocess.run(
        [*words, *command], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@needs_root
@pytest.mark.parametrize("capability", ["setuid", slow("setgid"), "chown"])
def test_root_without_a_capability_is_told_which(fake: Fake, capability: str) -> None:
    fake(HOLLOW)
    done = _hostile(["setpriv", f"--bounding-set=-{capability}", f"--inh-caps=-{capability}"])
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"needs CAP_{capability.upper()} (" in done.stderr
    assert done.stderr.endswith("grant it, or start polypath as an ordinary user\n")


@needs_root
def test_a_temporary_folder_without_execution_is_named(fake: Fake, tmp_path: Path) -> None:
    fake(HOLLOW)
    place = tmp_path / "noexec"
    place.mkdir()
    mounted = f'mount -t tmpfs -o noexec tmpfs "{place}" && exec "$@"'
    done = _hostile(["unshare", "-m", "sh", "-c", mounted, "sh"], TMPDIR=str(place))
    assert done.returncode == 2
    assert done.stderr == (
        f"polypath: {place} is mounted noexec, and a run executes programs from its folder there; "
        f"name another folder by TMPDIR, or `mount -o remount,exec {place}`\n"
    )


@needs_root
@pytest.mark.parametrize("options", ["noexec", slow("mode=0700")])
def test_the_guest_s_memory_goes_elsewhere_where_its_place_does_not_do(linux: Run, options: str) -> None:
    mounted = f'mount -t tmpfs -o {options} tmpfs /dev/shm && exec "$@"'
    here, there = (_hostile(words) for words in ([], ["unshare", "-m", "sh", "-c", mounted, "sh"]))
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, "")


@needs_root
def test_a_full_place_of_the_guest_s_memory_is_named(linux: Run) -> None:
    mounted = 'mount -t tmpfs -o size=8m tmpfs /dev/shm && exec "$@"'
    done = _hostile(["unshare", "-m", "sh", "-c", mounted, "sh"])
    assert done.returncode == 2
    assert done.stderr.startswith("polypath: /dev/shm ran full, where the guest's memory is; give it more room")
