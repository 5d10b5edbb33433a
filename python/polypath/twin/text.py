"""A twin as a scenario's text, with the origin of each value beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from polypath.twin.network import Network, Path
from polypath.twin.pattern import Pattern
from polypath.twin.value import Value


@dataclass(frozen=True)
class Choice:
    """What no packet tells, and trials choose."""

    congestion: str
    scheduler: str | None = None
    receive_buffer: int | None = None
    #: Of each path's random loss, between the ends of its interval.
    loss: Mapping[str, float] | None = None

    def with_loss(self, path: str, loss: float) -> Choice:
        return replace(self, loss={**(self.loss or {}), path: loss})


#: So a chosen key is written, and what is said beside it.
Said = Mapping[str, str]
#: What has an end of its own may take so many times as long.
_AMPLE: Final = 2
_NAME: Final = re.compile(r"[^A-Za-z0-9]+")


def written(
    network: Network, pattern: Pattern, choice: Choice, seconds: float, said: Said | None = None, seed: int = 1
) -> str:
    """The scenario; `said` has the comments of what was chosen, by key."""
    return "\n".join(_lines(network, pattern, choice, seconds, said or {}, seed)) + "\n"


def _lines(network: Network, pattern: Pattern, choice: Choice, seconds: float, said: Said, seed: int) -> Iterator[str]:
    yield f'name = "{_named(network.name)}"'
    yield from _line("seed", str(seed), said.get("seed", ""))
    yield f'duration = "{seconds if pattern.lasts else _AMPLE * seconds:.6g} s"'
    yield ""
    yield "[defaults]"
    yield from _line("profile", '"linux"', said.get("profile", ""))
    yield from _line("congestion", f'"{choice.congestion}"', said.get("congestion", ""))
    if choice.scheduler is not None:
        yield from _line("scheduler", f'"{choice.scheduler}"', said.get("scheduler", ""))
    if choice.receive_buffer is not None:
        yield from _line("receive_buffer", f'"{choice.receive_buffer} B"', said.get("receive_buffer", ""))
    if len(network.paths) > 1:
        yield 'path_manager = "fullmesh"'
    yield ""
    for side in ("client", "server"):
        yield f"[host.{side}]"
        if side in network.habits:
            yield from network.habits[side].lines()
    if not _is_isolated(network.paths):
        yield "[router.r]"
    for path in network.paths:
        yield from _link(path, choice, to_server=_is_isolated(network.paths))
    if not _is_isolated(network.paths):
        yield from ("", "[link.server]", 'ends = ["r", "server"]')
    yield from ("", "[[application]]", 'name = "app"', f'kind = "{pattern.kind}"')
    transport = network.connection["transport"]
    yield f'transport = "{"mptcp" if transport == "fallback" else transport}"'
    for key, value in pattern.settings.items():
        yield f"{key} = {json.dumps(value)}"
    if pattern.note:
        yield f"# {pattern.note}"
    for path in network.paths:
        for move in path.estimate.moves[1:]:
            yield from ("", "[[event]]", f'at = "{move.at_s:g} s"', f'link = "{path.name}"')
            yield f'rate = "{move.rate_bps / 1e6:.4g} Mbps"'


def _named(connection: str) -> str:
    return f"twin-of-{_NAME.sub('-', connection).strip('-')}"[:63].rstrip("-")


def _is_isolated(paths: Sequence[Path]) -> bool:
    """Whether each path has addresses of its own at both ends."""
    return len(paths) == len({path.destination for path in paths}) == len({path.source for path in paths}) > 1


def _link(path: Path, choice: Choice, *, to_server: bool) -> Iterator[str]:
    found = path.estimate
    yield from ("", f"[link.{path.name}]", f"# {path.source} to {path.destination}; from what the {path.sender} sent")
    yield f'ends = ["client:{path.name}", "{f"server:{path.name}" if to_server else "r"}"]'
    if found.rate_bps is None:
        yield "# rate: too few packets came close behind one another to tell"
    else:
        rate = found.moves[0].rate_bps if found.moves else found.rate_bps.value
        beside = "it moves, by the events below" if found.moves else _between(found.rate_bps, 1e6, "Mbps")
        yield from _line("rate", f'"{rate / 1e6:.4g} Mbps"', beside)
    if found.delay_s is None:
        yield "# delay: nothing tells a round trip"
    else:
        which = "least" if found.jitter_s is None else "usual"
        beside = f"one way, half of the {which} round trip; {_between(found.delay_s, 1e-3, 'ms')}"
        yield from _line("delay", f'"{found.delay_s.value * 1e3:.4g} ms"', beside)
    if found.jitter_s is not None:
        beside = f"what no queue explains; {_between(found.jitter_s, 1e-3, 'ms')}"
        yield from _line("jitter", f'"{found.jitter_s.value * 1e3:.3g} ms"', beside)
    if found.queue_bytes is not None:
        packet = path.packet_bytes
        beside = f"{found.overflows} losses while it was full; {_between(found.queue_bytes, packet, 'packets')}"
        yield from _line("queue", f'"{max(1, round(found.queue_bytes.value / packet))} packets"', beside)
    elif found.queued_bytes:
        yield f"# queue: it never overflowed, so only that it holds {found.queued_bytes / 1e3:.4g} kB and more is known"
    else:
        yield "# queue: nothing tells how long packets waited"
    if found.loss is not None and found.loss.value > 0:
        loss = (choice.loss or {}).get(path.name, found.loss.value)
        beside = f"{found.random} losses while the queue was not full; {_between(found.loss, 0.01, '%')}"
        direction = "forward" if path.sender == "client" else "backward"
        yield f"[link.{path.name}.{direction}]"
        yield from _line("loss", f'"{loss * 100:.3g} %"', beside)


def _line(key: str, value: str, beside: str) -> Iterator[str]:
    yield f"{key} = {value}" + (f"  # {beside}" if beside else "")


def _between(value: Value, unit: float, name: str) -> str:
    return f"{value.low / unit:.4g} to {value.high / unit:.4g} {name}"
