"""Runs a script against Polypath's endpoints, by the shared object of `crates/packetdrill`."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from suite import ROOT, SCRIPTS, TARGET, TOOL, VERSIONS, Result

LIBRARY = ROOT / "target" / "debug" / "libpolypath_packetdrill.so"
#: Seconds of real time after which a script is given up.
_LIMIT = 60
_UNSUPPORTED = re.compile(r"^polypath: (.*) is not supported$", re.MULTILINE)


def run(script: str, version: str) -> Result:
    """Runs one script."""
    path = SCRIPTS / script
    with tempfile.NamedTemporaryFile(prefix="polypath-commands-") as commands:
        environment = {
            **os.environ,
            "LD_PRELOAD": str(LIBRARY),
            "POLYPATH_COMMANDS": commands.name,
            "PATH": f"{TARGET / 'commands'}:{os.environ['PATH']}",
        }
        command = [
            TOOL,
            f"--so_filename={LIBRARY}",
            "--send_omit_free",
            f"--code_command={sys.executable}",
            *VERSIONS[version],
            path.name,
        ]
        process = subprocess.Popen(
            command,
            cwd=path.parent,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
        )
        try:
            said, _ = process.communicate(timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0] + "\nno end within a minute"
        Path(f"/tmp/sysctl_restore_{process.pid}.sh").unlink(missing_ok=True)
    if process.returncode == 0:
        return Result(script, version, "passed", "")
    if missing := _UNSUPPORTED.search(said):
        return Result(script, version, "not supported", missing[1])
    return Result(script, version, "failed", said.strip())
