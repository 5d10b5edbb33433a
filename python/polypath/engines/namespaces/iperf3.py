"""Applications that iperf3 runs instead of Polypath's own programs."""

from __future__ import annotations

import math
import shutil
import subprocess
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from polypath.engines.base import EngineError
from polypath.engines.namespaces import programs
from polypath.engines.trusted import Executable
from polypath.plan.access import setting

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Application

NAME = "iperf3"
#: In the run's folder: makes Multipath TCP of the sockets of an iperf3 that has no flag for it.
PRELOAD = "mptcp.so"
_SECOND = 1_000_000_000


def plays(application: Application) -> bool:
    return bool(application.get("program") == NAME)


def work(plan: PlanData, application: Application) -> dict[str, Any]:
    """What iperf3 is to do, as options of the part `iperf3` of the programs. Raises EngineError."""
    given, name = application["work"], application["name"]
    duration = setting(given, "duration_ns")
    if setting(given, "size_bytes") is not None:
        raise EngineError(f"iperf3 ends at a size before all of it has arrived; give application '{name}' a duration")
    if duration is not None and duration % _SECOND:
        raise EngineError(f"iperf3 takes whole seconds, and application '{name}' has {duration / _SECOND:g} s")
    if duration is None:
        duration = math.ceil((plan["duration_ns"] - application["start_ns"]) / _SECOND) * _SECOND
    return {
        "duration": duration,
        "rate": setting(given, "rate_bps"),
        "block": setting(given, "block_bytes"),
        "reverse": int(setting(given, "reverse")),
        "mptcp": flag(),
    }


def executables(plan: PlanData) -> dict[str, Executable]:
    """Files that the run's folder needs for it, by name. Raises EngineError."""
    used = any(plays(application) and application["transport"] == "mptcp" for application in plan["applications"])
    return {PRELOAD: programs.library("mptcp")} if used and flag() is None else {}


@lru_cache(maxsize=1)
def flag() -> str | None:
    """iperf3's own option for Multipath TCP (since 3.18); None where it has none. Raises EngineError without iperf3."""
    program = shutil.which(NAME, path=programs.PATH)
    if program is None:
        raise EngineError("an application is to be played by iperf3, which is not here (apt-get install iperf3)")
    said = subprocess.run([program, "--help"], capture_output=True, text=True, errors="replace", check=False)
    return "--mptcp" if "--mptcp" in said.stdout + said.stderr else None
