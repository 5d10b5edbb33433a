"""A set-up of a selftest: the network and its traffic, and when a run of it has passed.

Everything of a run begins with its label, and the second part of each address tells runs of one boot apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True)
class Place:
    """Which run of a scenario it is."""

    label: str
    net: int


@dataclass(frozen=True)
class Seen:
    """What a run left: its connection's row, or the first one's, and counters by "host name", unless they are 0."""

    connection: Mapping[str, Any]
    counters: Mapping[str, int]

    @property
    def took_ms(self) -> float | None:
        """From the client's established connection to the end of both sides."""
        begin, end = self.connection["established_ns"], self.connection["end_ns"]
        return None if begin is None or end is None else (end - begin) / 1e6

    def count(self, host: str, name: str) -> int:
        return self.counters.get(f"{host} {name}", 0)


@dataclass(frozen=True)
class Run:
    """What was drawn for a run of a set-up."""

    #: A part of a scenario.
    text: str
    #: Why the run has not passed; nothing if it has.
    faults: Callable[[Seen], list[str]]


@dataclass(frozen=True)
class SetUp:
    """One of a script's tests in our words."""

    script: str
    name: str
    draw: Callable[[Place, Random], Run]
    #: The longest time of a transfer that passes, in ms.
    bound_ms: int | None = None
    #: Runs that follow each other on the same hosts, and are counted and judged together.
    runs: int = 1
    #: The script itself reports its failures and ignores them (`MPTCP_LIB_SUBTEST_FLAKY`).
    flaky: bool = False


def started(random: Random, after_ms: int = 0) -> str:
    """When a run's connection begins."""
    return f"{1000 * after_ms + random.randrange(100_000)} us"


def around(microseconds: int, random: Random) -> str:
    """A link's delay with what its hosts add in this run."""
    return f"{microseconds + random.randrange(100)} us"


def incomplete(seen: Seen, to_server: int, to_client: int) -> list[str]:
    """What misses of a transfer both ways."""
    found = []
    for side, wanted in (("server", to_server), ("client", to_client)):
        received = seen.connection[f"{side}_received_bytes"]
        if received != wanted:
            found.append(f"{received} of {wanted} bytes at the {side}")
    if seen.connection["state"] != "finished":
        found.append(f"the connection is {seen.connection['state']}")
    return found
