"""Scenarios with planted causes, each with the charge that an account is to put first.

Without the cause, transfers fill their links: buffers are ample, queues hold more than a bandwidth-delay product,
congestion control is uncoupled.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

TRANSPORTS: Final = ("tcp", "quic", "mptcp", "mpquic")
_MULTIPATH: Final = ("mptcp", "mpquic")
_OVER_QUIC: Final = ("quic", "mpquic")


@dataclass
class Path:
    rate: float
    """Mbps."""
    delay: float
    """One way, in ms."""
    queue: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def bdp(self) -> int:
        """The bandwidth-delay product in bytes."""
        return round(self.rate * 1e6 / 8 * 2 * self.delay / 1e3)


@dataclass
class Draft:
    """A scenario that a plant changes."""

    transport: str
    paths: list[Path]
    random: random.Random
    duration: float = 10.0
    defaults: dict[str, str] = field(default_factory=dict)
    client: list[str] = field(default_factory=list)
    work: str = ""
    more: list[str] = field(default_factory=list)
    behind: str = ""

    @property
    def last(self) -> int:
        return len(self.paths) - 1

    def text(self) -> str:
        defaults = {
            "congestion": '"cubic"',
            "scheduler": '{ kind = "default", penalisation = false, opportunistic_retransmission = false }',
            "receive_buffer": '"64 MB"',
            "send_buffer": '"64 MB"',
            "recovery": '"prr"',
            "rto_min": '"200 ms"',
            **self.defaults,
        }
        work = self.work or f'kind = "bulk"\nduration = "{self.duration} s"'
        parts = [
            f'duration = "{self.duration} s"\n[defaults]',
            *(f"{key} = {value}" for key, value in defaults.items()),
            "[host.client]",
            *self.client,
            "[host.server]\n[router.r]",
        ]
        for number, path in enumerate(self.paths):
            queue = path.queue or f'"{max(2 * path.bdp, 60_000)} B"'
            parts += [
                f'[link.path{number}]\nends = ["client:eth{number}", "r"]',
                f'rate = "{path.rate:.1f} Mbps"\ndelay = "{path.delay:.1f} ms"\nqueue = {queue}',
                *path.lines,
            ]
        parts += [f'[link.server]\nends = ["r", "server"]\n{self.behind}']
        parts += [f'[[application]]\nname = "main"\ntransport = "{self.transport}"\n{work}', *self.more]
        return "\n".join(parts) + "\n"


@dataclass(frozen=True)
class Plant:
    """A kind of cause: what it does to a scenario, and what the account is to say."""

    name: str
    cause: str
    change: Callable[[Draft], None]
    transports: Sequence[str] = TRANSPORTS


def _loss(draft: Draft) -> None:
    draft.paths[0].lines.append(f'loss = "{draft.random.uniform(1, 4):.2f} %"')


def _queue(draft: Draft) -> None:
    draft.defaults["congestion"] = '"reno"'
    draft.paths[0].delay = draft.random.uniform(25, 60)
    draft.paths[0].queue = f'"{draft.random.randint(3, 8)} packets"'


def _receive_window(draft: Draft) -> None:
    window = sum(path.bdp for path in draft.paths) // draft.random.randint(3, 5)
    draft.defaults["receive_buffer"] = f'"{max(window, 20_000)} B"'


def _send_buffer(draft: Draft) -> None:
    buffer = sum(path.bdp for path in draft.paths) // draft.random.randint(3, 5)
    draft.defaults["send_buffer"] = f'"{max(buffer, 20_000)} B"'


def _down(draft: Draft) -> None:
    at = draft.random.uniform(1.0, 3.0)
    for up, moment in ((False, at), (True, at + draft.random.uniform(4, 6))):
        draft.more.append(f'[[event]]\nat = "{moment:.2f} s"\nlink = "path{draft.last}"\nup = {str(up).lower()}')


def _application(draft: Draft) -> None:
    rate = sum(path.rate for path in draft.paths) * draft.random.uniform(0.1, 0.5)
    draft.work = f'kind = "stream"\nrate = "{rate:.2f} Mbps"\nduration = "{draft.duration} s"'


def _others(draft: Draft) -> None:
    rate = draft.paths[0].rate * draft.random.uniform(0.4, 0.7)
    draft.more.append(
        f'[[application]]\nname = "cross"\nkind = "cbr"\ntransport = "udp"\nrate = "{rate:.2f} Mbps"\n'
        f'packet = "1000 B"\nsource = "10.0.0.1"\nduration = "{draft.duration} s"'
    )


def _backup(draft: Draft) -> None:
    draft.client.append(f"interface.eth{draft.last} = {{ backup = true }}")


def _unused(draft: Draft) -> None:
    draft.defaults["path_manager"] = '"default"'


def _slow_start(draft: Draft) -> None:
    for path in draft.paths:
        path.rate, path.delay = draft.random.uniform(80, 150), draft.random.uniform(60, 100)
    draft.work = f'kind = "bulk"\nsize = "{draft.random.randint(1500, 2500)} kB"'
    draft.defaults["congestion"] = '"reno"'


def _handshake(draft: Draft) -> None:
    for path in draft.paths:
        path.rate, path.delay = draft.random.uniform(80, 150), draft.random.uniform(60, 100)
    # The first window holds it, also beside the handshake of QUIC (RFC 9002 section 7.2).
    draft.work = f'kind = "bulk"\nsize = "{draft.random.randint(5, 8)} kB"'


def _redundant(draft: Draft) -> None:
    draft.defaults["scheduler"] = '"redundant"'


def _headers(draft: Draft) -> None:
    # QUIC needs datagrams of 1200 bytes (RFC 9000 section 14).
    least = 1240 if draft.transport in _OVER_QUIC else 576
    draft.defaults["mtu"] = str(draft.random.randint(least, least + 64))


def _mark(draft: Draft) -> None:
    draft.defaults |= {"ecn": "true", "congestion": '"reno"'}
    path = draft.paths[0]
    path.delay = draft.random.uniform(25, 60)
    path.queue = f'{{ kind = "step", mark_above = "{draft.random.randint(3, 8)} packets" }}'


def _reordering(draft: Draft) -> None:
    draft.defaults["congestion"] = '"reno"'
    draft.paths[0].lines.append(f'reorder = "{draft.random.uniform(2, 6):.1f} %"')


def _behind(draft: Draft) -> None:
    draft.behind = f'loss = "{draft.random.uniform(1, 4):.2f} %"'


def _controller(draft: Draft) -> None:
    draft.defaults["congestion"] = '{ kind = "vegas", alpha = 1, beta = 1 }'
    for path in draft.paths:
        path.lines.append(f'jitter = "{draft.random.uniform(2, 4):.1f} ms"')


def _scheduler(draft: Draft) -> None:
    draft.paths[0].rate, draft.paths[1].rate = 10.0, draft.random.uniform(50, 80)
    draft.paths[1].delay = draft.paths[0].delay
    draft.defaults["scheduler"] = '"equal"'


def _coupling(draft: Draft) -> None:
    draft.defaults["congestion"] = '"lia"'
    for path in draft.paths:
        path.rate, path.delay = draft.random.uniform(8, 12), draft.random.uniform(20, 30)
    draft.paths[1].lines.append('loss = "0.1 %"')


PLANTS: Final[Mapping[str, Plant]] = {
    plant.name: plant
    for plant in (
        Plant("random loss", "random-loss", _loss),
        Plant("shallow queue", "queue-loss", _queue),
        Plant("receive window", "receive-window", _receive_window),
        Plant("send buffer", "send-buffer", _send_buffer, ("tcp", "mptcp")),
        Plant("outage", "down", _down),
        Plant("slow application", "application", _application),
        Plant("cross traffic", "others", _others),
        Plant("backup", "backup", _backup, _MULTIPATH),
        Plant("no second subflow", "unused", _unused, _MULTIPATH),
        Plant("slow start", "slow-start", _slow_start),
        Plant("handshake", "handshake", _handshake),
        Plant("redundant", "reinjected", _redundant, _MULTIPATH),
        Plant("small packets", "headers", _headers),
        Plant("loss behind", "random-loss", _behind),
        Plant("controller", "controller", _controller),
        Plant("marks", "mark", _mark),
        # TCP learns to wait for what comes late (RFC 8985 section 6.2).
        Plant("reordering", "reordering", _reordering, _OVER_QUIC),
        Plant("scheduler", "scheduler", _scheduler, _MULTIPATH),
        Plant("coupling", "coupling", _coupling, _MULTIPATH),
    )
}


#: Two causes at once, the first on the first path, the second on the last.
TOGETHER: Final = tuple(
    (PLANTS[first], PLANTS[second])
    for first in ("random loss", "shallow queue", "cross traffic")
    for second in ("outage", "backup")
)


def draw(plants: Sequence[Plant], transport: str, seed: int) -> Draft:
    """A scenario with these causes in it, another one with each seed."""
    source = random.Random(f"{'+'.join(plant.name for plant in plants)}/{transport}/{seed}")
    number = 2 if transport in _MULTIPATH else 1
    paths = [Path(source.uniform(8, 40), source.uniform(8, 30)) for _ in range(number)]
    draft = Draft(transport, paths, source)
    for plant in plants:
        plant.change(draft)
    return draft
