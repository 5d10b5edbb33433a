"""Networks with parameters that a capture hides, and what runs on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

#: Bytes of a full segment's frame: what a queue in packets holds of each.
FRAME = 1514
SECONDS = 20
#: Numbers whose captures are of QUIC and Multipath QUIC, which the kernel does not have.
OVER_QUIC = range(80, 100)


@dataclass(frozen=True)
class Path:
    """What a path is, and what `polypath twin` is to find of it."""

    name: str
    rate_bps: float
    #: One way.
    delay_s: float
    queue_bytes: int
    #: Random loss, of a packet in either direction.
    loss: float
    #: The standard deviation of the delay.
    jitter_s: float


@dataclass(frozen=True)
class Drawn:
    """A network, what runs on it, and where it is captured."""

    number: int
    paths: tuple[Path, ...]
    transport: str
    work: str
    #: Of the hosts "client" and "server".
    captured: tuple[str, ...]
    engine: str
    congestion: str
    text: str


def address(path: int) -> str:
    """The client's on a path, by the path's number."""
    return f"10.0.{path}.1"


def _log_uniform(random: Random, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _path(random: Random, name: str, number: int) -> Path:
    rate = round(_log_uniform(random, 2, 60), 1) * 1e6
    delay = round(_log_uniform(random, 4, 80)) / 1e3
    packets = max(12, round(rate * _log_uniform(random, 0.03, 0.3) / 8 / FRAME))
    loss = random.choice((0.0, 0.0, round(_log_uniform(random, 0.02, 1), 2) / 100))
    # Drawn by itself, so that the rest of a number stays as it is.
    other = Random(f"twins {number} {name} jitter")
    jitter = round(_log_uniform(other, 0.2, 3), 1) / 1e3
    return Path(name, rate, delay, packets * FRAME, loss, min(jitter, delay / 5) if other.random() < 1 / 3 else 0.0)


def drawn(number: int) -> Drawn:
    """The same for a number each time: half of them for the kernel, one end or both, bulk or requests."""
    random = Random(f"twins {number}")
    engine = "sim" if number in OVER_QUIC else ("sim", "linux")[number % 2]
    transport = random.choice(("quic", "mpquic") if number in OVER_QUIC else ("tcp", "mptcp"))
    work = random.choice(("bulk", "bulk", "requests"))
    captured = random.choice((("client",), ("server",), ("client", "server")))
    several = transport in ("mptcp", "mpquic")
    names = ("path0", "path1") if several else ("path0",)
    paths = tuple(_path(random, name, number) for name in names)
    among = ("cubic", "cubic", "reno", "lia") if several and engine == "sim" else ("cubic", "reno")
    congestion = random.choice(among)
    lines = [f'name = "twin-{number}"', f"seed = {number}", f'duration = "{SECONDS} s"', "[defaults]"]
    lines += [
        'profile = "linux"',
        f'congestion = "{congestion}"',
        'path_manager = "fullmesh"',
        # The profile's scheduler does not run over QUIC.
        *(['scheduler = "default"'] if transport == "mpquic" else []),
        "[host.client]",
        "[host.server]",
        "[router.r]",
    ]
    if work == "bulk" and random.random() < 0.25:
        most = sum(path.rate_bps * 2 * path.delay_s / 8 for path in paths)
        buffer = max(32_000, most * _log_uniform(random, 0.6, 2))
        lines.insert(-3, f'receive_buffer = "{round(buffer / 1e3)} kB"')
    for path in paths:
        lines += [
            f"[link.{path.name}]",
            f'ends = ["client:{path.name}", "r"]',
            f'rate = "{path.rate_bps / 1e6:g} Mbps"',
        ]
        lines += [f'delay = "{path.delay_s * 1e3:g} ms"', f'queue = "{path.queue_bytes // FRAME} packets"']
        lines += [f'loss = "{path.loss * 100:g} %"'] if path.loss else []
        lines += [f'jitter = "{path.jitter_s * 1e3:g} ms"'] if path.jitter_s else []
    lines += [
        "[link.server]",
        'ends = ["r", "server"]',
        "[[application]]",
        'name = "app"',
        f'transport = "{transport}"',
    ]
    if work == "bulk":
        lines += ['kind = "bulk"', f"reverse = {random.choice(('true', 'true', 'false'))}", f'duration = "{SECONDS} s"']
    else:
        response = round(_log_uniform(random, 30, 1000))
        lines += ['kind = "request-response"', 'request = "200 B"', f'response = "{response} kB"']
        lines += [f'interval = "{round(_log_uniform(random, 200, 2000))} ms"', f"count = {random.randint(10, 40)}"]
    return Drawn(number, paths, transport, work, captured, engine, congestion, "\n".join(lines) + "\n")
