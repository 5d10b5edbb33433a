"""The small C programs of a run, and the commands that they need."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from polypath import folders
from polypath.engines import owned, trusted
from polypath.engines.base import EngineError
from polypath.engines.trusted import Executable

SOURCES = Path(__file__).with_name("programs")
#: The program's name in a run's folder; its first argument chooses the part.
NAME = "guest"
#: Where a run looks for programs of the machine.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
#: Commands that a run's scripts use, by Debian's package.
_TOOLS = {"ip": "iproute2", "tc": "iproute2", "sh": "dash", "mount": "mount"}
#: What the name of a compiled program ends with.
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_REMEDY: Final = "remove it, and the next run compiles it again"
#: Of folders in which programs are compiled.
_PARTIAL: Final = "new-"


def require_tools(engine: str, tools: Mapping[str, str] = _TOOLS) -> None:
    """Raises EngineError, with the way out, where a command is missing. What the environment calls PATH says nothing: a
    run has its own."""
    missing = sorted({package for tool, package in tools.items() if shutil.which(tool, path=PATH) is None})
    if missing:
        raise EngineError(f"engine {engine} needs {', '.join(missing)} (apt-get install {' '.join(missing)})")


def own(*names: str) -> Path:
    """A folder in the cache, to which nobody else can write. Raises EngineError."""
    folder = folders.cache().joinpath(*names)
    try:
        trusted.make_folder(folder, folders.cache())
        trusted.require_own(folder, folders.cache(), "name another folder by XDG_CACHE_HOME")
    except OSError as error:
        raise EngineError(f"cannot make {folder}: {error.strerror or error}") from error
    return folder


def build() -> Executable:
    """The programs, compiled once for each version of their sources. Raises EngineError."""
    return _compiled(NAME, sorted(SOURCES.glob("*.[ch]")), ["-static"])


def library(name: str) -> Executable:
    """A shared library for programs of others, compiled once. Raises EngineError."""
    return _compiled(f"{name}.so", [SOURCES / "preload" / f"{name}.c"], ["-shared", "-fPIC"])


def _compiled(name: str, sources: list[Path], how: list[str]) -> Executable:
    """The name of what is compiled tells its sources and itself."""
    total = hashlib.sha256()
    for path in sources:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    prefix = f"{name}-{total.hexdigest()[:16]}-"
    folder = own("programs")
    for path in sorted(folder.glob(f"{prefix}*")):
        if _SHA256.fullmatch(sha256 := path.name.removeprefix(prefix)):
            return Executable(path, sha256, _REMEDY)
    compiler = shutil.which("gcc")
    if compiler is None:
        raise EngineError(
            "the applications are compiled for this machine, which needs gcc (apt-get install gcc libc6-dev)"
        )
    owned.clear(folder, _PARTIAL)
    with owned.made(folder, _PARTIAL) as place:
        made = place / name
        files = [str(path) for path in sources if path.suffix == ".c"]
        command = [compiler, "-O2", "-std=gnu17", *how, "-o", str(made), *files, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise EngineError(f"gcc cannot compile the applications: {said[0] if said else 'no reason given'}")
        made.chmod(0o755)
        sha256 = hashlib.sha256(made.read_bytes()).hexdigest()
        return Executable(made.replace(folder / f"{prefix}{sha256}"), sha256, _REMEDY)
