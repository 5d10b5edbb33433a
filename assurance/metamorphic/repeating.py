"""The same run again: in this process, in another one, and with another seed where nothing draws."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import polypath

from .case import Case, ran
from .changes import draws_on_the_way, stacks
from .compare import OF_SEGMENTS, same
from .relation import need, relation, require


@relation(
    "The same plan in this process again gives the same bytes.",
    "No clock, no system randomness and no remains of another run take part.",
)
def again(case: Case, random: Random) -> None:
    other = polypath.run(case.plan)
    same(case.recording, other)
    require(other.metadata.recording_sha256 == case.recording.metadata.recording_sha256, "the hash differs")
    require(polypath.summary(other) == polypath.summary(case.recording), "the summary differs")


class _Elsewhere:
    """A process with hashes and a folder for temporary files of its own, which answers until this one ends."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="metamorphic-")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "assurance.metamorphic.elsewhere"],
            cwd=Path(__file__).resolve().parents[2],
            env={**os.environ, "PYTHONHASHSEED": "4711", "TMPDIR": self.folder.name, "LC_ALL": "C", "TZ": "Asia/Tokyo"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def told(self, text: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(text), file=self.process.stdin, flush=True)
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def close(self) -> None:
        self.process.communicate()
        self.folder.cleanup()


@lru_cache(maxsize=1)
def _elsewhere() -> _Elsewhere:
    made = _Elsewhere()
    atexit.register(made.close)
    return made


@relation(
    "The same text in a process with another hash seed, time zone and temporary folder gives the same bytes.",
    "Nothing iterates over hashes, or takes a name or a time from its surroundings.",
)
def other_process(case: Case, random: Random) -> None:
    there = _elsewhere().told(case.text)
    here = told(case)
    for name, value in here.items():
        require(there.get(name) == value, f"there the {name} is {there.get(name)}, here {value}")


def told(case: Case) -> dict[str, Any]:
    """What is compared of a case between processes."""
    return {
        "plan": case.plan.sha256(),
        "recording": case.recording.metadata.recording_sha256,
        "summary": json.dumps(polypath.summary(case.recording)),
        "text": case.scenario.to_toml(),
    }


@relation(
    "If nothing draws, another seed gives the same tables.",
    "Only draws use the seed. The keys and numbers that it changes affect neither sizes nor times.",
    weight=10,
)
def other_seed(case: Case, random: Random) -> None:
    plan = case.plan.data
    need(not draws_on_the_way(plan) and plan["routing"] != "ecmp" and "controller" not in plan)
    need(not any(link.get("middleboxes") for link in plan["links"]))
    by_flow = ("drr", "fq-codel", "fq-pie")
    need(all(channel["queue"]["kind"] not in by_flow for link in plan["links"] for channel in _ways(link)))
    need(all(each["work"]["kind"] != "on-off" for each in plan["applications"]))
    need(all(stack["congestion"]["name"] not in _DRAWING for stack in stacks(plan)))
    same(case.recording, ran({**case.copy(), "seed": random.randrange(2**62)}), without=OF_SEGMENTS)


#: Its cycle of gains begins at a random phase.
_DRAWING = frozenset({"bbr"})


def _ways(link: dict[str, Any]) -> list[dict[str, Any]]:
    return [link["forward"], link["backward"]]
