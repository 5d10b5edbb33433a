"""The set-ups of `tools/testing/selftests/net/mptcp/mptcp_connect.sh` (Linux 7.2): files both ways, over any network.

Four hosts are a chain of three links. The second one loses packets on their way to the third host and delays them. The
last one reorders them on their way to the fourth. Loss, delay and reordering are drawn for each run, as are the sizes
of both files. Routers stand for the hosts between the two that are connected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from .setup import Place, Run, Seen, SetUp, around, incomplete, started

SCRIPT = "mptcp_connect"
#: In bytes. The script's files are up to 8 MB.
_LEAST, _MOST = 256 * 1024, 1024 * 1024
#: In ms, of a transfer that the script does not end.
_LIMIT_MS = 61_000


def _lossy(random: Random) -> tuple[list[str], int]:
    """What the second link does to packets for the third host; its delay in ms."""
    delay, loss = random.randrange(50), random.randrange(101)
    lines = [f'forward.delay = "{around(1000 * delay, random)}"']
    # as the script writes them: 7 is 0.07 %, 70 is 0.70 %, 100 is 1 %
    return [*lines, f'forward.loss = "{loss / 100} %"'] if loss else lines, delay


def _reordering(random: Random, delay: int) -> list[str]:
    """What the last link does to packets for the fourth host."""
    lines = [f'forward.delay = "{around(1000 * delay, random)}"']
    at_once = 100 - random.randrange(10)
    return [*lines, f'forward.reorder = "{at_once} %"'] if delay and at_once < 100 else lines


def _address(at: Place, link: int, end: int, six: bool) -> str:
    return f"fd00:{at.net}:{link}::{end}" if six else f"10.{at.net}.{link}.{end}"


@dataclass(frozen=True)
class _Transfer:
    """Files between two of the hosts, the first of which is the client."""

    ends: tuple[int, int]
    six: bool = False
    checksum: bool = False
    transport: str = "mptcp"

    @property
    def name(self) -> str:
        kind = "TCP" if self.transport == "tcp" else "MPTCP"
        client, server = self.ends
        with_checksum = ", checksum" if self.checksum else ""
        return f"ns{client} {kind} -> ns{server} {kind}, IPv{6 if self.six else 4}{with_checksum}"

    def draw(self, at: Place, random: Random) -> Run:
        lossy, delay = _lossy(random)
        kinds: dict[int, list[str]] = {1: [], 2: lossy, 3: _reordering(random, delay // 4)}
        lines = [*self._nodes(at), *self._links(at, random, kinds)]
        to_server, to_client = (random.randrange(_LEAST, _MOST) for _ in range(2))
        lines += ["[[application]]", f'name = "{at.label}"', 'kind = "bulk"', f'transport = "{self.transport}"']
        lines += [f'{side} = "{at.label}-ns{end}"' for side, end in zip(("client", "server"), self.ends, strict=True)]
        lines += [f'start = "{started(random)}"', f'size = "{to_server} B"', f'reverse_size = "{to_client} B"']

        def faults(seen: Seen) -> list[str]:
            return [*incomplete(seen, to_server, to_client), *self._faults(seen)]

        return Run("\n".join(lines), faults)

    def _nodes(self, at: Place) -> Iterator[str]:
        first, last = sorted(self.ends)
        for number in range(first, last + 1):
            yield f"[{'host' if number in self.ends else 'router'}.{at.label}-ns{number}]"
            if number in self.ends:
                link, end = (number, 1) if number == first else (number - 1, 2)
                yield f'interface.eth0.address = "{_address(at, link, end, self.six)}"'
                yield 'path_manager = "default"'
                yield f"checksum = {str(self.checksum).lower()}"

    def _links(self, at: Place, random: Random, kinds: Mapping[int, Sequence[str]]) -> Iterator[str]:
        for number in range(*sorted(self.ends)):
            ends = [f"{at.label}-ns{end}{':eth0' if end in self.ends else ''}" for end in (number, number + 1)]
            yield f"[link.{at.label}-{number}]"
            yield f'ends = ["{ends[0]}", "{ends[1]}"]'
            yield 'rate = "1 Gbps"'
            yield f'delay = "{around(0, random)}"'
            yield from kinds[number]

    def _faults(self, seen: Seen) -> Iterator[str]:
        """What the script asks of the counters."""
        if self.transport == "tcp":
            return
        client, server = (f"ns{end}" for end in self.ends)
        late = seen.count(server, "TcpExtTCPOFOQueue")
        if not seen.count(server, "MPTcpExtMPCapableSYNRX"):
            yield "the server has no SYN with MP_CAPABLE"
        if not late and not seen.count(server, "MPTcpExtMPCapableACKRX"):
            yield "the server has no ACK with MP_CAPABLE"
        if not late and seen.count(server, "MPTcpExtMPCapableFallbackACK"):
            yield "the server fell back to TCP"
        for host in (client, server):
            if wrong := seen.count(host, "MPTcpExtDataCsumErr"):
                yield f"{wrong} wrong checksums at {host}"


#: Over no, the second, the third and both of the links that harm packets; against their direction, too.
_TRANSFERS = (
    _Transfer((1, 2)),
    _Transfer((1, 2), six=True),
    _Transfer((1, 3)),
    _Transfer((1, 3), six=True),
    _Transfer((3, 4)),
    _Transfer((1, 4)),
    _Transfer((1, 4), six=True),
    _Transfer((4, 1)),
    _Transfer((4, 1), six=True),
    _Transfer((1, 4), checksum=True),
    _Transfer((4, 1), checksum=True),
    _Transfer((1, 4), transport="tcp"),
)

SET_UPS = tuple(SetUp(SCRIPT, each.name, each.draw, _LIMIT_MS) for each in _TRANSFERS)
