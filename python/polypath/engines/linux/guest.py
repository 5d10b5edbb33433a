"""Booting the guest: its programs, its folder, its process, its limit on a clock on the wall."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from polypath.engines.base import EngineError
from polypath.engines.linux.kernel import Installed, KernelError
from polypath.engines.linux.kernel.cache import cache
from polypath.engines.linux.kernel.source import run

#: Seconds on the wall that a run may take; the variable of this name changes it.
LIMIT_VARIABLE = "POLYPATH_LINUX_LIMIT"
_LIMIT_S = 600.0

_SOURCES = Path(__file__).with_name("guest")
_PROGRAM = "guest"
_PREFIX = "polypath-linux-"
_NOBODY = 65534
#: Programs of the host that the guest runs, by Debian's package.
_TOOLS = {"ip": "iproute2", "tc": "iproute2", "sh": "dash", "mount": "mount"}
_LOG_LINES = 8
#: What a kernel prints when something in it is wrong.
_TROUBLE = re.compile(
    r"Kernel panic|BUG:|WARNING:|Oops|KASAN|possible recursive locking|refcount_t|INFO: task .* blocked"
)


@contextmanager
def folder(kernel: Installed, files: Mapping[str, str]) -> Iterator[Path]:
    """The run's folder with everything in it; gone afterwards, and after a run that was killed, at the next one."""
    _require_tools()
    _sweep()
    program = _build()
    path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        (path / "out").mkdir()
        shutil.copy(kernel.binary, path / "linux")
        shutil.copy(program, path / _PROGRAM)
        shutil.copy(_SOURCES / "init.sh", path / "init")
        for name, text in files.items():
            (path / name).write_text(text, encoding="utf-8")
        for name in ("linux", _PROGRAM, "init"):
            (path / name).chmod(0o755)
        if os.geteuid() == 0:
            for entry in (path, *path.rglob("*")):
                os.chown(entry, _NOBODY, _NOBODY)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def boot(path: Path, seed: int, memory_mb: int, progress: Callable[[int], None]) -> bool:
    """Runs the guest to its end. True where Ctrl-C ended it. Raises EngineError with the guest's last words."""
    # the command line is part of the guest's entropy: what differs from run to run, such as paths, must not be in it
    command = [
        *_restrictions(),
        "./linux",
        f"mem={memory_mb}M",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "init=/proc/self/cwd/init",
        "con=null",
        "con0=fd:0,fd:1",
        "ssl=null",
        "quiet",
        "time-travel=inf-cpu",
        "time-travel-start=1700000000000000000",
        f"randseed={seed}",
    ]
    log: list[str] = []
    process = subprocess.Popen(
        command,
        cwd=path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"HOME": str(path), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        start_new_session=True,
    )
    try:
        _follow(process, _limit(), log, progress)
    except KeyboardInterrupt:
        return True
    finally:
        _end(process)
    _judge(log, process.returncode)
    return False


def _follow(process: subprocess.Popen[bytes], limit: float, log: list[str], progress: Callable[[int], None]) -> None:
    assert process.stdout is not None
    ends = time.monotonic() + limit
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = ends - time.monotonic()
            if left <= 0:
                raise EngineError(
                    f"the guest was ended after {limit:g} s on the wall ({LIMIT_VARIABLE} changes that); "
                    f"its last words: {_last(log)}"
                )
            if not selector.select(min(left, 1.0)):
                continue
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                process.wait(timeout=max(left, 1.0))
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for raw in lines:
                line = raw.decode("utf-8", "replace").strip()
                word, _, value = line.partition(" ")
                if word == "progress" and value.isdigit():
                    progress(int(value))
                elif line:
                    log.append(line)


def _judge(log: list[str], code: int) -> None:
    trouble = [line for line in log if _TROUBLE.search(line)]
    if trouble:
        raise EngineError(f"the guest's kernel complained: {trouble[0]}")
    complaints = [line for line in log if line.startswith(("guest:", "setup failed"))]
    if "setup failed" in complaints:
        raise EngineError(f"the guest could not set the network up: {_last(log)}")
    if complaints:
        raise EngineError(complaints[0])
    if code != 0 and not log:
        raise EngineError(f"the guest did not boot (exit code {code})")


def _last(log: list[str]) -> str:
    return " | ".join(log[-_LOG_LINES:]) or "none"


def _limit() -> float:
    given = os.environ.get(LIMIT_VARIABLE)
    try:
        limit = float(given) if given else _LIMIT_S
    except ValueError:
        limit = -1.0
    if not 0 < limit < float("inf"):
        raise EngineError(f"{LIMIT_VARIABLE} is a number of seconds, not {given!r}")
    return limit


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the kernel and the processes that it made, which share its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _restrictions() -> list[str]:
    """A wrapper that ends the guest with this process, and takes root's rights from it."""
    if shutil.which("setpriv") is None:
        if os.geteuid() == 0:
            raise KernelError(
                "as root, engine linux needs setpriv, to run without root's rights (apt-get install util-linux)"
            )
        return []
    drop = [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    return ["setpriv", *drop, "--no-new-privs", "--pdeathsig=KILL"]


def _require_tools() -> None:
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = sorted({package for tool, package in _TOOLS.items() if shutil.which(tool, path=search) is None})
    if missing:
        raise KernelError(f"engine linux needs {', '.join(missing)} (apt-get install {' '.join(missing)})")


def _build() -> Path:
    """The guest's programs, compiled once for each version of their sources."""
    sources = sorted(_SOURCES.glob("*.[ch]"))
    total = hashlib.sha256()
    for path in sources:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    built = cache() / f"guest-{total.hexdigest()[:16]}"
    if built.is_file():
        return built
    if shutil.which("gcc") is None:
        raise KernelError("engine linux compiles the guest's programs and needs gcc (apt-get install gcc libc6-dev)")
    cache().mkdir(parents=True, exist_ok=True)
    partial = built.with_name(f"{built.name}.{os.getpid()}")
    files = [str(path) for path in sources if path.suffix == ".c"]
    run(["gcc", "-O2", "-std=gnu17", "-static", "-o", str(partial), *files, "-lm"])
    partial.replace(built)
    return built


def _sweep() -> None:
    """Removes folders of runs whose process is gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = path.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(path, ignore_errors=True)
