"""Runs a script against the kernel of engine `linux`: real sockets and a TUN device, in virtual time."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from suite import HERE, SCRIPTS, TARGET, TOOL, VERSIONS, Result

from polypath.engines.linux import guest as engine
from polypath.engines.linux.kernel import Installed
from polypath.engines.trusted import Executable

#: Seconds of the guest's time after which a script is given up.
LIMIT = 600
_MEMORY_MB = 512
#: Of the host, whose files the guest sees; the scripts' own calculations are in Python.
PYTHON = Path("/usr/bin/python3")
_SYSCTLS = "set_sysctls.py"


def run(kernel: Installed, script: str, version: str) -> Result:
    """Boots the guest for one script. Raises EngineError where that fails."""
    path = SCRIPTS / script
    arguments = ["--send_omit_free", f"--code_command={PYTHON}", *VERSIONS[version], path.name]
    files = {f"gtests/{name}": (SCRIPTS / name).read_text() for name in (script, *_called(script))}
    files[f"gtests/{script.partition('/')[0]}/common/{_SYSCTLS}"] = (HERE / "set_sysctls").read_text()
    files["setup.sh"] = (HERE / "guest.sh").read_text()
    files["arguments"] = f"folder={Path(script).parent} limit={LIMIT}\nset -- {shlex.join(arguments)}\n"
    programs = {path.name: Executable(path) for path in (TOOL, TARGET / "times.so")}
    with engine.folder(kernel, files, programs) as folder:
        engine.boot(folder, 1, _MEMORY_MB, lambda now: None)
        code = int((folder / "out" / "code").read_text())
        said = (folder / "out" / "said").read_text(errors="replace").strip()
    if code == 124:
        return Result(script, version, "failed", f"no end within {LIMIT} s")
    return Result(script, version, "failed" if code else "passed", said if code else "")


def _called(script: str) -> Iterator[str]:
    """What the suite's scripts call."""
    for folder in ("common", f"{script.partition('/')[0]}/common"):
        for path in sorted((SCRIPTS / folder).iterdir()):
            if path.name != _SYSCTLS:
                yield f"{folder}/{path.name}"
