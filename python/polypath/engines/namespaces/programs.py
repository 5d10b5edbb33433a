"""The small C programs that do a run's work inside, and the commands that they need around them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from polypath import folders
from polypath.engines.base import EngineError

SOURCES = Path(__file__).with_name("programs")
#: The program's name in a run's folder; its first argument chooses the part.
NAME = "guest"
#: Where a run looks for programs of the machine.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
#: Commands that a run's scripts use, by Debian's package.
_TOOLS = {"ip": "iproute2", "tc": "iproute2", "sh": "dash", "mount": "mount"}


def require_tools(engine: str, tools: Mapping[str, str] = _TOOLS) -> None:
    """Raises EngineError, with the way out, where a command is missing."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = sorted({package for tool, package in tools.items() if shutil.which(tool, path=search) is None})
    if missing:
        raise EngineError(f"engine {engine} needs {', '.join(missing)} (apt-get install {' '.join(missing)})")


def build() -> Path:
    """The programs, compiled once for each version of their sources. Raises EngineError."""
    return _compiled(NAME, sorted(SOURCES.glob("*.[ch]")), ["-static"])


def library(name: str) -> Path:
    """A shared library for programs of others, compiled once. Raises EngineError."""
    return _compiled(f"{name}.so", [SOURCES / "preload" / f"{name}.c"], ["-shared", "-fPIC"])


def _compiled(name: str, sources: list[Path], how: list[str]) -> Path:
    total = hashlib.sha256()
    for path in sources:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    built = folders.cache() / "programs" / f"{name}-{total.hexdigest()[:16]}"
    if built.is_file():
        return built
    compiler = shutil.which("gcc")
    if compiler is None:
        raise EngineError(
            "the applications are compiled for this machine, which needs gcc (apt-get install gcc libc6-dev)"
        )
    built.parent.mkdir(parents=True, exist_ok=True)
    partial = built.with_name(f"{built.name}.{os.getpid()}")
    files = [str(path) for path in sources if path.suffix == ".c"]
    command = [compiler, "-O2", "-std=gnu17", *how, "-o", str(partial), *files, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise EngineError(f"gcc cannot compile the applications: {said[0] if said else 'no reason given'}")
    partial.replace(built)
    return built
