"""The set-ups of `tools/testing/selftests/net/mptcp/mptcp_join.sh`: the cases of `assurance/joins`, drawn often.

A connection lasts for a second, or as long as something happens and a second more. If nothing happens, many connections
follow each other on the same hosts, and the counters are those of all.
"""

from __future__ import annotations

from random import Random

from assurance.joins.case import Case, Conditions
from assurance.joins.cases import CASES

from .setup import Place, Run, Seen, SetUp, around, started

SCRIPT = "mptcp_join"
_DELAY_US = 5000
#: Connections that follow each other, and the ms from one to the next: an aborted one sends for 3 s.
_MANY, _EACH_MS, _ABORTED_MS = 20, 1500, 3500


def _faults(case: Case, runs: int, seen: Seen) -> list[str]:
    found = []
    for counter, each in case.expect.items():
        side, name = counter.split()
        if (count := seen.count(side, f"MPTcpExt{name}")) != each * runs:
            found.append(f"{counter} {count}, not {each * runs}")
    return found


def _set_up(case: Case) -> SetUp:
    runs = 1 if case.then else _MANY
    every_ms = _ABORTED_MS if case.aborts else _EACH_MS

    def draw(at: Place, random: Random) -> Run:
        starts = [started(random, number * every_ms) for number in range(runs)]
        conditions = Conditions(starts, f"{len(case.then) + 1} s", around(_DELAY_US, random))
        return Run(case.text(at.net, conditions), lambda seen: _faults(case, runs, seen))

    return SetUp(SCRIPT, case.name, draw, runs=runs)


SET_UPS = tuple(map(_set_up, CASES))
