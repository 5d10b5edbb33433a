"""The machines: each changes one thing of this one, in a mount namespace that is the trial's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from .place import SHM, Place, pages
from .registry import MACHINES, Start, machine

__all__ = ["MACHINES", "own_memory"]

#: Nobody's number, and that of a person who is neither root nor nobody.
NOBODY, OTHER = 65534, 54321
FULL: Final = "No space left on device"
FORBIDDEN: Final = "Read-only file system|Permission denied|Operation not permitted"
ANY: Final = "."
#: Shares of what a command writes.
SHARES: Final = (0.0, 0.15, 0.4, 0.7, 0.95)
#: What a machine in /dev has for all.
DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "net/tun")


def _mount(*words: str | Path) -> None:
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True)


@contextmanager
def _mounted(target: Path, *words: str | Path) -> Iterator[None]:
    _mount(*words, target)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", target], check=True)


def _tmpfs(target: Path, options: str) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(_mounted(target, "-t", "tmpfs", "-o", options, "hostile"))
    return stack


def own_memory() -> ExitStack:
    """A /dev/shm of the trials' own, so that what is left in it is theirs."""
    return _tmpfs(SHM, "mode=1777")


def _again(target: Path, options: str) -> ExitStack:
    """The same folder, mounted with these options besides."""
    stack = ExitStack()
    stack.enter_context(_mounted(target, "--bind", target))
    _mount("-o", f"remount,bind,{options}", target)
    return stack


def _shell(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script, "sh")


def _cached(place: Place) -> dict[str, str | None]:
    """Has the cache where it is by default."""
    shutil.copytree(place.prepared.cache, place.home / ".cache")
    return {"XDG_CACHE_HOME": None}


@machine("friendly", "nothing is wrong", "$^")
@contextmanager
def friendly(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    yield Start()


@machine("noexec-tmp", "the temporary folder is mounted noexec", "noexec")
@contextmanager
def noexec_tmp(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    with _tmpfs(place.temporary, "noexec"):
        yield Start()


@machine("noexec-home", "the home folder with the cache is mounted noexec", "noexec|not executable")
@contextmanager
def noexec_home(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    environment = _cached(place)
    with _again(place.home, "noexec"):
        yield Start(environment=environment)


@machine("noexec-shm", "/dev/shm is mounted noexec", "noexec")
@contextmanager
def noexec_shm(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    with _tmpfs(SHM, "noexec,mode=1777"):
        yield Start()


@machine("no-shm", "there is no /dev/shm", "/dev/shm")
@contextmanager
def no_shm(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    devices = place.folder / "dev"
    devices.mkdir()
    with _tmpfs(devices, "mode=755") as stack:
        for name in DEVICES:
            if not (source := Path("/dev") / name).exists():
                continue
            # folders are made: what clears this one away would go into one that is mounted
            (devices / name).parent.mkdir(exist_ok=True)
            (devices / name).touch()
            stack.enter_context(_mounted(devices / name, "--bind", source))
        for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
            (devices / name).symlink_to(target)
        stack.enter_context(_mounted(Path("/dev"), "--rbind", devices))
        yield Start()


@machine("closed-shm", "only root may use /dev/shm", "/dev/shm|Permission denied")
@contextmanager
def closed_shm(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    with _tmpfs(SHM, "mode=755"):
        yield Start()


@machine("small-shm", "/dev/shm has 64 kB", "/dev/shm")
@contextmanager
def small_shm(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    with _tmpfs(SHM, "size=64k,mode=1777"):
        yield Start()


@machine("full-disk", "the person's folder has room for a share of the command's output", FULL, levels=SHARES)
@contextmanager
def full_disk(place: Place, share: float | None) -> Iterator[Start]:
    own = pages(place.prepared.files)
    size = own + int((share or 0) * place.writes)
    with _tmpfs(place.work, f"size={size},mode=755"):
        place.fill()
        yield Start()


@machine(
    "full-tmp",
    "the temporary folder has a limited number of bytes",
    f"{FULL}|full",
    levels=(4096, 65_536, 1_000_000, 4_000_000),
)
@contextmanager
def full_tmp(place: Place, size: float | None) -> Iterator[Start]:
    place.fill()
    with _tmpfs(place.temporary, f"size={int(size or 0)},mode=1777"):
        yield Start()


@machine("full-home", "the home folder has no room", FULL)
@contextmanager
def full_home(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    with _tmpfs(place.home, "size=4k"):
        (place.home / "big").write_bytes(bytes(4096))
        yield Start()


@machine("file-size", "no file may exceed a share of the largest", "File too large", levels=SHARES[1:])
@contextmanager
def file_size(place: Place, share: float | None) -> Iterator[Start]:
    place.fill()
    yield Start(prefix=("prlimit", f"--fsize={max(1, int((share or 0) * place.largest))}"))


@machine("few-files", "a process may open 20 files", "Too many open files|Error 24")
@contextmanager
def few_files(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    yield Start(prefix=("prlimit", "--nofile=20"))


@machine("home-read-only", "the home folder is read-only", FORBIDDEN)
@contextmanager
def home_read_only(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    environment = _cached(place)
    with _again(place.home, "ro"):
        yield Start(environment=environment)


@machine("all-read-only", "home, the person's folder and the temporary folder are read-only",
         f"{FORBIDDEN}|No usable temporary|read-only")  # fmt: skip
@contextmanager
def all_read_only(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    environment = _cached(place)
    with _again(place.folder, "ro"):
        yield Start(environment=environment)


@machine("work-read-only", "the person's folder is read-only", FORBIDDEN)
@contextmanager
def work_read_only(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    with _again(place.work, "ro"):
        yield Start()


@machine("tmp-read-only", "the temporary folder is read-only", FORBIDDEN)
@contextmanager
def tmp_read_only(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    with _again(place.temporary, "ro"):
        yield Start()


@machine("no-tmp", "TMPDIR names no folder", "TMPDIR|temporary|No such file")
@contextmanager
def no_tmp(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    yield Start(environment={"TMPDIR": str(place.folder / "missing")})


@machine(
    "gone-folder", "the folder in which the command starts has been removed", "[Nn]o such file|not there|unknown lab"
)
@contextmanager
def gone_folder(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    gone = place.folder / "gone"
    gone.mkdir()
    yield Start(prefix=_shell(f'cd "{gone}" && rmdir "{gone}" && exec "$@"'))


@machine("no-setuid", "root lacks CAP_SETUID, CAP_SETGID and CAP_CHOWN", "CAP_SETUID|CAP_SETGID|CAP_CHOWN")
@contextmanager
def no_setuid(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    lacking = "-setuid,-setgid,-chown"
    yield Start(prefix=("setpriv", f"--bounding-set={lacking}", f"--inh-caps={lacking}"))


@machine("no-admin", "root lacks CAP_SYS_ADMIN and CAP_NET_ADMIN, as in a container",
         "CAP_SYS_ADMIN|CAP_NET_ADMIN|namespace|not permitted|rights")  # fmt: skip
@contextmanager
def no_admin(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    lacking = "-sys_admin,-net_admin"
    yield Start(prefix=("setpriv", f"--bounding-set={lacking}", f"--inh-caps={lacking}"))


@machine("no-capabilities", "root lacks every capability", "CAP_|namespace|not permitted|rights|denied")
@contextmanager
def no_capabilities(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    yield Start(prefix=("setpriv", "--bounding-set=-all", "--inh-caps=-all"))


def _as(user: int) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")


@machine("other-user", "an ordinary user whose id has no name", ANY, root=True)
@contextmanager
def other_user(place: Place, _: float | None) -> Iterator[Start]:
    place.user = OTHER
    environment = _cached(place)
    place.fill()
    yield Start(prefix=_as(OTHER), environment=environment)


@machine("others-files", "all files and folders belong to another user and can only be read", FORBIDDEN, root=True)
@contextmanager
def others_files(place: Place, _: float | None) -> Iterator[Start]:
    environment = _cached(place)
    place.fill()
    place.temporary.chmod(0o1777)
    yield Start(prefix=_as(NOBODY), environment=environment)


@machine("others-leftovers", "the temporary folder has another user's folders with Polypath's names", ANY, root=True)
@contextmanager
def others_leftovers(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    for name in ("polypath-linux-1", "polypath-live-1", "polypath-1"):
        (place.temporary / name).mkdir(mode=0o700)
        (place.temporary / name / ".polypath-folder").write_text("{}", encoding="utf-8")
        os.chown(place.temporary / name, OTHER, OTHER)
    yield Start()


@machine("two-pid-namespaces", "two commands at a time, in separate PID namespaces with one temporary folder", "$^")
@contextmanager
def two_pid_namespaces(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    prefix = ("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc")
    yield Start(prefix=prefix, times=2)


@machine("no-proc", "/proc is empty", "/proc")
@contextmanager
def no_proc(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    yield Start(prefix=("unshare", "--mount", *_shell('mount -t tmpfs hostile /proc && exec "$@"')))


@machine("no-environment", "no variable is set", ANY)
@contextmanager
def no_environment(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    yield Start(prefix=("env", "--ignore-environment"))


@machine("no-programs", "PATH names an empty folder", "not there|not found|needs|No such file|lack|PATH|install")
@contextmanager
def no_programs(place: Place, _: float | None) -> Iterator[Start]:
    place.fill()
    yield Start(environment={"PATH": str(place.temporary)})


def _streams(name: str, what: str, redirection: str, says: str, *, shown: bool = True, said: bool = True) -> None:
    @machine(name, what, says)
    @contextmanager
    def enter(place: Place, _: float | None) -> Iterator[Start]:
        place.fill()
        yield Start(prefix=_shell(f'exec "$@" {redirection}'), shown=shown, said=said)


_streams("stdin-closed", "standard input is closed", "<&-", "$^")
_streams("stdout-closed", "standard output is closed", ">&-", "standard output", shown=False)
_streams("stderr-closed", "standard error is closed", "2>&-", ANY, said=False)
_streams("all-closed", "all three streams are closed", "<&- >&- 2>&-", ANY, shown=False, said=False)
_streams("stdout-full", "standard output is full", ">/dev/full", FULL, shown=False)
_streams("stderr-full", "standard error is full", "2>/dev/full", ANY, said=False)
