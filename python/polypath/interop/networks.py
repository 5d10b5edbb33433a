"""Performance of pairs of stacks over drawn networks of two paths: a transfer, and the failure of a path."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from polypath.engines.base import EngineError
from polypath.interop.matrix import record
from polypath.interop.participants import PARTICIPANTS
from polypath.interop.skeleton import Skeleton
from polypath.results import Recording, metrics
from polypath.scenario import Scenario

SECOND: Final = 1_000_000_000
#: When a path fails, and for how long both together have data to send.
_FAILS_S: Final = 1.0
_WORK_S: Final = 2.0


@dataclass(frozen=True)
class Path:
    rate_mbps: float
    delay_ms: float
    loss_percent: float
    #: Of the queue, in products of rate and round trip.
    products: float

    def toml(self) -> str:
        bytes_ = max(6_000, round(self.products * self.rate_mbps * 1e6 / 8 * 2 * self.delay_ms / 1e3))
        loss = f'loss = "{self.loss_percent} %"\n' if self.loss_percent else ""
        return f'rate = "{self.rate_mbps} Mbps"\ndelay = "{self.delay_ms} ms"\nqueue = "{bytes_} B"\n{loss}'


@dataclass(frozen=True)
class Network:
    """Two paths between a client and a server."""

    number: int
    first: Path
    second: Path

    @property
    def bytes(self) -> int:
        """What both paths carry in `_WORK_S`, in steps of 100 kB."""
        rate = (self.first.rate_mbps + self.second.rate_mbps) * 1e6 / 8
        return max(1, round(rate * _WORK_S / 100_000)) * 100_000

    def scenario(self, client: str, server: str, *, fails: bool) -> Scenario:
        """A fetch over it; with `fails`, the first path drops everything from a time on."""
        event = f'[[event]]\nat = "{_FAILS_S} s"\nlink = "path0"\nup = false\n' if fails else ""
        skeleton = Skeleton(
            f"network-{self.number}",
            "120 s",
            self.number,
            (self.first.toml(), self.second.toml()),
            f'kind = "fetch"\nsize = "{self.bytes // 1000} kB"\n{event}',
            record='interval = "10 ms"',
        )
        return skeleton.scenario(client, server)


def drawn(count: int, seed: int) -> Iterator[Network]:
    """Networks: rates of 2 to 20 Mbit/s and delays of 5 to 80 ms, log-uniform; on half of the paths, a loss."""
    random_ = random.Random(seed)

    def spread(low: float, high: float, digits: int) -> float:
        return round(math.exp(random_.uniform(math.log(low), math.log(high))), digits)

    def path() -> Path:
        loss = spread(0.01, 1, 3) if random_.random() < 0.5 else 0.0
        return Path(spread(2, 20, 1), spread(5, 80, 0), loss, round(random_.uniform(0.5, 2), 2))

    for number in range(1, count + 1):
        yield Network(number, path(), path())


@dataclass(frozen=True)
class Measured:
    """What a pair of stacks came to on a network."""

    client: str
    server: str
    network: int
    #: Of the time that both paths need at their rates; None: it did not end.
    completion: float | None
    #: Part of the bytes on the first path, and its part of the rate of both.
    share: float | None
    fair: float
    #: The longest time without data after the first path failed; None: the transfer did not end.
    gap_s: float | None
    hash: str
    problem: str = ""


def measured(network: Network, client: str, server: str) -> Measured:
    """Runs a pair on a network twice: once as it is, once with a path that fails."""
    fair = network.first.rate_mbps / (network.first.rate_mbps + network.second.rate_mbps)
    try:
        whole, broken = (record(network.scenario(client, server, fails=fails)) for fails in (False, True))
    except EngineError as error:
        return Measured(client, server, network.number, None, None, fair, None, "", str(error))
    connection = metrics.connections(whole)[0]
    end = metrics.completion_ns(connection)
    rate = (network.first.rate_mbps + network.second.rate_mbps) * 1e6 / 8
    found = metrics.subflows(whole, connection)
    share = sum(path.share or 0.0 for path in found if path.interface == "eth0")
    hashes = "".join(each.metadata.recording_sha256 for each in (whole, broken))
    return Measured(
        client,
        server,
        network.number,
        None if end is None else end / SECOND / (network.bytes / rate),
        share,
        fair,
        _gap(broken),
        sha256(hashes.encode()).hexdigest(),
    )


def _gap(recording: Recording) -> float | None:
    """The longest time in which nothing arrived, from the failure to the last byte."""
    connection = metrics.connections(recording)[0]
    if not connection.finished:
        return None
    times, totals = metrics.delivered(recording, connection)
    since, longest, before = _FAILS_S * SECOND, 0.0, None
    for at, total in zip(times, totals, strict=True):
        if before is None or total > before or at < since:
            longest = max(longest, at - since) if at > since else longest
            since = max(since, at)
            before = total
    return longest / SECOND


def by_name(work: tuple[Network, str, str]) -> Measured:
    """As `measured`, for other processes."""
    return measured(*work)


def together(pair: tuple[str, str]) -> bool:
    """Whether both stacks are there, and have several paths."""
    return all(PARTICIPANTS[name].multipath and PARTICIPANTS[name].missing() is None for name in pair)
