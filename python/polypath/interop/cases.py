"""The test cases: a network, what is to be done on it, and how a recording shows that it was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from polypath.interop.skeleton import Skeleton
from polypath.results import Recording, metrics
from polypath.scenario import Scenario

SECOND: Final = 1_000_000_000
#: A path that takes part carries at least this part of the bytes, and one that does not at most that.
_TAKES_PART: Final = 0.1
_STAYS_OUT: Final = 0.05
#: Of the path in most cases.
_ROUND_TRIP_NS: Final = 30_000_000

Judge = Callable[[Recording], str | None]
"""What is wrong in a recording, in a few words; None where the case passed."""


@dataclass(frozen=True)
class Case:
    """A test case between two stacks."""

    name: str
    #: Of which list it is: the interop runner's, or those for multipath.
    group: Literal["runner", "multipath"]
    requirement: str
    #: Tables of the scenario beside hosts and links: the application, and events.
    work: str
    judge: Judge
    #: Settings of both links of the client, and of each alone.
    link: str = ""
    first: str = ""
    second: str = ""
    #: Lines of the client and of the server.
    client: str = ""
    server: str = ""
    duration: str = "60 s"
    delay: str = "15 ms"
    #: Packets are lost at random: it is played with several seeds.
    by_chance: bool = False

    @property
    def multipath(self) -> bool:
        return self.group == "multipath"

    def scenario(self, client: str, server: str, seed: int) -> Scenario:
        """The scenario between two stacks by name."""
        path = f'rate = "10 Mbps"\ndelay = "{self.delay}"\nqueue = "25 packets"\n{self.link}'
        skeleton = Skeleton(
            f"interop-{self.name}",
            self.duration,
            seed,
            (f"{path}\n{self.first}", f"{path}\n{self.second}"),
            self.work,
            transport="mpquic" if self.multipath else "quic",
            client=self.client,
            server=self.server,
        )
        return skeleton.scenario(client, server)


def _only(recording: Recording) -> metrics.Connection:
    return metrics.connections(recording)[0]


def _whole(recording: Recording) -> str | None:
    """Everything arrived, and the connection closed in order."""
    connection = _only(recording)
    if connection.established_ns is None:
        return "the handshake did not complete"
    if not connection.finished:
        return f"{connection.bytes:,} bytes arrived, and the transfer did not end"
    if connection.failure is not None:
        return f"the connection ended as '{connection.failure}'"
    return None


def _each(*judges: Judge) -> Judge:
    def judge(recording: Recording) -> str | None:
        return next((found for each in judges if (found := each(recording)) is not None), None)

    return judge


def _events(recording: Recording, kind: str) -> pl.DataFrame:
    return recording.table("events").filter(pl.col("kind") == kind)


def _both_ends(kind: str, count: int) -> Judge:
    """An event was told by client and server, of so many paths each."""

    def judge(recording: Recording) -> str | None:
        found = _events(recording, kind)
        for side in ("client", "server"):
            told = found.filter(host=side)["subflow"].n_unique()
            if told < count:
                return f"the {side} told '{kind}' of {told} paths, not of {count}"
        return None

    return judge


def _share(recording: Recording, interface: str) -> float:
    found = metrics.subflows(recording, _only(recording))
    return sum(path.share or 0.0 for path in found if path.interface == interface)


def _carries(*interfaces: str) -> Judge:
    def judge(recording: Recording) -> str | None:
        for interface in interfaces:
            if (share := _share(recording, interface)) < _TAKES_PART:
                return f"{interface} carried {share:.1%} of the bytes, less than {_TAKES_PART:.0%}"
        return None

    return judge


def _spares(interface: str) -> Judge:
    def judge(recording: Recording) -> str | None:
        share = _share(recording, interface)
        return (
            f"{interface} carried {share:.1%} of the bytes, more than {_STAYS_OUT:.0%}" if share > _STAYS_OUT else None
        )

    return judge


def _sent_between(recording: Recording, link: str, since_s: float, until_s: float) -> int:
    """Bytes that left a link towards the client between two times."""
    names = [each["name"] for each in recording.plan["links"]]
    of = recording.table("links").filter(link=names.index(link), direction="backward")
    times = of["time_ns"] / SECOND
    before, after = (sum(of.filter(times <= at)["sent_bytes"].tail(1)) for at in (since_s, until_s))
    return int(after - before)


def _part_between(recording: Recording, link: str, since_s: float, until_s: float) -> float:
    """Part of what both of the client's links carried between two times."""
    sent = {name: _sent_between(recording, name, since_s, until_s) for name in ("path0", "path1")}
    whole = sum(sent.values())
    return sent[link] / whole if whole else 0.0


def _falls_silent(link: str, since_s: float, until_s: float) -> Judge:
    """Between two times, a link carries next to nothing of what both carry."""

    def judge(recording: Recording) -> str | None:
        share = _part_between(recording, link, since_s, until_s)
        return None if share <= _STAYS_OUT else _told(link, since_s, until_s, share)

    return judge


def _again(link: str, since_s: float, until_s: float) -> Judge:
    """A link that carried nothing for a time carries at least a tenth of the bytes again."""

    def judge(recording: Recording) -> str | None:
        share = _part_between(recording, link, since_s, until_s)
        return None if share >= _TAKES_PART else _told(link, since_s, until_s, share)

    return judge


def _told(link: str, since_s: float, until_s: float, share: float) -> str:
    return f"from {since_s} s to {until_s} s {link} carried {share:.1%} of the bytes"


def _ended_within(limit_s: float) -> Judge:
    def judge(recording: Recording) -> str | None:
        end = metrics.completion_ns(_only(recording))
        if end is None or end > limit_s * SECOND:
            return f"the transfer took {'more' if end is None else f'{end / SECOND:.1f} s'}, not at most {limit_s} s"
        return None

    return judge


def _closed_before(interface: str, at_s: float) -> Judge:
    """Both ends have left a path by a time (PATH_ABANDON)."""

    def judge(recording: Recording) -> str | None:
        path = next(each for each in metrics.subflows(recording, _only(recording)) if each.interface == interface)
        closed = _events(recording, "subflow-closed").filter(subflow=path.id)
        for side in ("client", "server"):
            times = closed.filter(host=side)["time_ns"]
            if times.is_empty() or int(times[0]) > at_s * SECOND:
                shown = "never" if times.is_empty() else f"at {int(times[0]) / SECOND:.2f} s"
                return f"the {side} left the path {shown}, not by {at_s} s"
        return None

    return judge


def _moved(recording: Recording) -> str | None:
    """Both ends saw the client's other address."""
    moved = _events(recording, "path-migrated")
    for side in ("client", "server"):
        if moved.filter(host=side).is_empty():
            refused = _events(recording, "migration-refused")
            return "the client refused to move" if not refused.is_empty() else f"the {side} saw no other address"
    return None


def _fetch(size: str, more: str = "") -> str:
    return f'kind = "fetch"\nsize = "{size}"\n{more}'


def _event(at: str, what: str) -> str:
    return f'\n[[event]]\nat = "{at}"\n{what}'


#: Requests with pauses, in which a NAT forgets the client.
_IN_PAUSES: Final = 'kind = "request-response"\ncount = 4\ninterval = "3 s"\nrequest = "5 kB"\nresponse = "50 kB"'
_FORGETFUL: Final = 'middlebox = { kind = "nat", timeout_s = 1, keep_ports = false }'


def _all() -> Iterator[Case]:
    yield Case("handshake", "runner", "A handshake, and a file of 1 kB.", _fetch("1 kB"), _whole)
    yield Case(
        "transfer",
        "runner",
        "Three files of 1 MB arrive on parallel streams.",
        _fetch("1 MB", "count = 3\nparallel = 3"),
        _whole,
    )
    yield Case(
        "longrtt",
        "runner",
        "The handshake completes over a round trip of 1.5 s.",
        _fetch("1 kB"),
        _whole,
        delay="750 ms",
    )
    yield Case(
        "multiplexing",
        "runner",
        "1999 files of 32 bytes arrive over one connection.",
        _fetch("32 B", "count = 1999\nparallel = 100"),
        _whole,
    )
    yield Case(
        "retry",
        "runner",
        "The server sends a Retry, and the client returns its token: one round trip more.",
        _fetch("1 kB"),
        _each(_whole, _after_retry),
        server="retry = true",
    )
    yield Case(
        "blackhole",
        "runner",
        "A file of 3 MB arrives although the network drops everything from 1 s to 3 s.",
        _fetch("3 MB") + _event("1 s", 'link = "path0"\nup = false') + _event("3 s", 'link = "path0"\nup = true'),
        _whole,
    )
    yield Case(
        "transferloss",
        "runner",
        "A file of 2 MB arrives while 2 % of the packets are lost.",
        _fetch("2 MB"),
        _whole,
        link='loss = "2 %"',
        by_chance=True,
    )
    yield Case(
        "handshakeloss",
        "runner",
        "A file of 1 kB arrives while 30 % of the packets are lost.",
        _fetch("1 kB"),
        _whole,
        link='loss = "30 %"',
        by_chance=True,
    )
    yield Case(
        "rebind-port",
        "runner",
        "A NAT forgets the client in pauses and gives it other ports; four answers of 50 kB arrive.",
        _IN_PAUSES,
        _whole,
        first=_FORGETFUL,
    )
    yield Case(
        "connectionmigration",
        "runner",
        "The client moves to another of its addresses during a transfer of 2 MB.",
        _fetch("2 MB") + _event("1 s", 'interface = "client:eth0"\nmigrate_to = "eth1"'),
        _each(_whole, _moved),
    )
    yield from _of_multipath()


def _after_retry(recording: Recording) -> str | None:
    established = _only(recording).established_ns
    if established is None or established < 2 * _ROUND_TRIP_NS:
        return "the handshake took less than the two round trips of a Retry"
    return None


def _of_multipath() -> Iterator[Case]:
    yield Case(
        "mp-handshake",
        "multipath",
        "Both ends offer the extension, and open a second path after the handshake.",
        _fetch("1 MB"),
        _each(_whole, _both_ends("subflow-established", 2)),
    )
    yield Case(
        "mp-second-path",
        "multipath",
        "Two equal paths each carry at least 10 % of a transfer of 5 MB, which takes less than one path needs.",
        _fetch("5 MB"),
        _each(_whole, _carries("eth0", "eth1"), _ended_within(4.0)),
    )
    yield Case(
        "mp-later-path",
        "multipath",
        "A path that is opened after 1 s carries at least 10 % of 5 MB.",
        _fetch("5 MB"),
        _each(_whole, _carries("eth1")),
        client='path_manager = { kind = "scripted", steps = ["1 s open 10.0.1.1 10.0.2.2"] }',
    )
    yield Case(
        "mp-failover",
        "multipath",
        "The first path drops everything from 1 s on. A transfer of 4 MB ends on the other one within 20 s.",
        _fetch("4 MB") + _event("1 s", 'link = "path0"\nup = false'),
        _each(_whole, _ended_within(20.0)),
    )
    yield Case(
        "mp-recovery",
        "multipath",
        "The first path drops everything from 1 s to 2 s. Afterwards it carries data again.",
        _fetch("8 MB") + _event("1 s", 'link = "path0"\nup = false') + _event("2 s", 'link = "path0"\nup = true'),
        _each(_whole, _again("path0", 2.5, 3.5)),
    )
    yield Case(
        "mp-backup",
        "multipath",
        "A path that is opened as a backup carries at most 5 % of the bytes (PATH_STATUS_BACKUP).",
        _fetch("2 MB"),
        _each(_whole, _spares("eth1")),
        client="interface = { eth0 = {}, eth1 = { backup = true } }",
    )
    yield Case(
        "mp-backup-takes-over",
        "multipath",
        "The other path fails at 1 s: the backup carries the rest of 3 MB within 20 s.",
        _fetch("3 MB") + _event("1 s", 'link = "path0"\nup = false'),
        _each(_whole, _carries("eth1"), _ended_within(20.0)),
        client="interface = { eth0 = {}, eth1 = { backup = true } }",
    )
    yield Case(
        "mp-status-change",
        "multipath",
        "A path becomes a backup at 1 s. From 1.5 s on it carries at most 5 % of the bytes.",
        _fetch("5 MB") + _event("1 s", 'interface = "client:eth1"\nbackup = true'),
        _each(_whole, _falls_silent("path1", 1.5, 2.5)),
    )
    yield Case(
        "mp-abandon",
        "multipath",
        "The client leaves a path at 1 s (PATH_ABANDON). By 2 s the server has left it, too, and 4 MB arrive.",
        _fetch("4 MB") + _event("1 s", 'interface = "client:eth0"\nup = false'),
        _each(_whole, _closed_before("eth0", 2.0)),
    )
    yield Case(
        "mp-reopen",
        "multipath",
        "An address goes away at 1 s and comes back at 2 s. A path with another id carries data on it.",
        _fetch("8 MB")
        + _event("1 s", 'interface = "client:eth1"\nup = false')
        + _event("2 s", 'interface = "client:eth1"\nup = true'),
        _each(_whole, _again("path1", 2.5, 3.5)),
    )
    yield Case(
        "mp-loss",
        "multipath",
        "A file of 2 MB arrives while 2 % of the packets of both paths are lost.",
        _fetch("2 MB"),
        _whole,
        link='loss = "2 %"',
        by_chance=True,
    )
    yield Case(
        "mp-rebinding",
        "multipath",
        "A NAT of the first path forgets the client in pauses and gives it other ports; four answers arrive.",
        _IN_PAUSES,
        _whole,
        first=_FORGETFUL,
    )


CASES: Final = tuple(_all())
