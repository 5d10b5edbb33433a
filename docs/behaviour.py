"""What every packet scheduler and congestion control does on six fixed networks of two paths, as a page.

python docs/behaviour.py    writes assurance/records/behaviour.md, a snapshot that a test compares with the code
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from polypath import Recording, Scenario, registry, run
from polypath.results import metrics
from polypath.sweeps import points

HERE = Path(__file__).parent
PAGE = HERE.parent / "assurance" / "records" / "behaviour.md"
SCENARIOS = HERE / "behaviour"

#: When TCP joins, from when on its rate is taken for settled, and the end, in s (sharing.toml).
JOINS, SETTLED, END = 10, 25, 40
#: Part of its settled rate that TCP must have reached, over a second.
REACHED = 0.8

INTRODUCTION = """\
# Behaviour of the algorithms

What each packet scheduler and congestion control does, with default parameters, on six fixed networks of two
paths. `python docs/behaviour.py` writes this page from the scenarios in `docs/behaviour`. A test compares it with
the code, so that a change of behaviour shows in review. It is no ranking: each network has one seed and one size
of buffers, those of profile `rfc`.

| network | first path | second path |
|---|---|---|
| `equal` | 10 Mbps, 40 ms RTT, queue of 60 packets | the same |
| `wifi-lte` | 20 Mbps, 20 ms RTT, 60 packets | 10 Mbps, 60 ms RTT, 200 packets |
| `lossy` | as in `equal` | as in `equal`, 1 % loss either way |
| `bufferbloated` | as in `equal` | 2 Mbps, 100 ms RTT, 500 packets |
| `rates-10-to-1` | as in `equal` | as in `equal`, 1 Mbps |
| `delays-10-to-1` | as in `equal` | as in `equal`, 400 ms RTT |
"""

SCHEDULERS = """\
## Packet schedulers

Client and server have the scheduler, and LIA.

- `bulk`, 8 MB: goodput, time from start to last byte, most that waited for reassembly, retransmitted bytes,
  reinjected bytes.
- `fetch`: time for a file of 256 kB.
- `requests`: mean delay of 20 requests, each answered by 10 kB.
"""

CONGESTION = f"""\
## Congestion control

Multipath TCP has the congestion control on every subflow and sends for {END} s; TCP with reno joins it on the
first path at {JOINS} s. `alone`: goodput of Multipath TCP from 5 to {JOINS} s. `beside TCP`: that from {SETTLED}
to {END} s. `TCP`: TCP's goodput in that time. `share`: TCP's part of what the first path carries then; half is
what another TCP would leave. `settles`: time from TCP's start to its first second with {REACHED:.0%} of that
goodput.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, SCHEDULERS, *_schedulers(), CONGESTION, *_congestion()]).rstrip("\n") + "\n"


def _names(kind: registry.Kind) -> list[str]:
    return list(registry.entries(kind))


def _recordings(scenario: str, axis: str, kind: registry.Kind) -> dict[tuple[str, str], Recording]:
    """The recordings by network and name."""
    described = Scenario.load(SCENARIOS / f"{scenario}.toml").with_axes([f"{axis}={','.join(_names(kind))}"])
    (name_axis,) = (each.name for each in described.axes if each.name != "network")
    return {(point.values["network"], point.values[name_axis]): run(point.plan) for point in points(described)}


def _tables(title: str, heads: Sequence[str], rows: Mapping[tuple[str, str], Sequence[str]]) -> list[str]:
    """A table for each network."""
    parts = []
    for network in dict.fromkeys(network for network, _ in rows):
        parts += [
            f"### {title}: {network}\n",
            f"| | {' | '.join(heads)} |",
            f"|---|{'--:|' * len(heads)}",
            *(f"| `{name}` | {' | '.join(cells)} |" for (here, name), cells in rows.items() if here == network),
            "",
        ]
    return parts


def _schedulers() -> list[str]:
    axis, kind = "defaults.scheduler", "scheduler"
    bulk, fetch, requests = (_recordings(name, axis, kind) for name in ("bulk", "fetch", "requests"))
    heads = ("bulk Mbps", "time s", "reassembly kB", "resent kB", "reinjected kB", "fetch ms", "requests ms")
    rows = {
        place: [*_bulk(bulk[place]), _milliseconds(_completion(fetch[place])), _milliseconds(_delay(requests[place]))]
        for place in bulk
    }
    return _tables("Schedulers", heads, rows)


def _measured(recording: Recording) -> metrics.Connection:
    return metrics.connection(recording, "measured")


def _bulk(recording: Recording) -> list[str]:
    connection = _measured(recording)
    subflows = metrics.subflows(recording, connection)
    return [
        _mbps(metrics.goodput(recording, connection)),
        _cell(_completion(recording), ".2f"),
        _cell(metrics.reassembly_max(recording, connection), ".0f", 1e-3),
        _cell(sum(subflow.retransmitted_bytes for subflow in subflows), ".0f", 1e-3),
        _cell(metrics.reinjected_bytes(subflows), ".0f", 1e-3),
    ]


def _completion(recording: Recording) -> float | None:
    passed = metrics.completion_ns(_measured(recording))
    return None if passed is None else passed / metrics.SECOND


def _delay(recording: Recording) -> float | None:
    """Mean, in s, where all were answered."""
    delays = metrics.delays(recording, _measured(recording))
    answered = [delay for delay in delays if delay is not None]
    return fmean(answered) / metrics.SECOND if len(answered) == len(delays) else None


def _congestion() -> list[str]:
    recordings = _recordings("sharing", "host.client.congestion", "congestion")
    heads = ("alone Mbps", "beside TCP Mbps", "TCP Mbps", "share", "settles s")
    return _tables("Congestion control", heads, {place: _sharing(each) for place, each in recordings.items()})


def _sharing(recording: Recording) -> list[str]:
    connection, tcp = _measured(recording), metrics.connection(recording, "tcp")
    alone = metrics.goodput(recording, connection, 5 * metrics.SECOND, JOINS * metrics.SECOND)
    beside = metrics.goodput(recording, connection, SETTLED * metrics.SECOND, END * metrics.SECOND)
    settled = metrics.goodput(recording, tcp, SETTLED * metrics.SECOND, END * metrics.SECOND)
    first = metrics.subflows(recording, connection)[0]
    times, rates = metrics.subflow_series(recording, connection, first)
    on_first = fmean(rate for time, rate in zip(times, rates, strict=True) if SETTLED < time <= END) * 1e6
    share = None if settled is None else settled / (settled + on_first)
    return [
        _mbps(alone),
        _mbps(beside),
        _mbps(settled),
        _cell(share, ".2f"),
        _cell(_settles(recording, tcp, settled), ".0f"),
    ]


def _settles(recording: Recording, tcp: metrics.Connection, settled: float | None) -> float | None:
    """Seconds from TCP's start to the end of its first second at a good part of its settled rate."""
    for second in range(JOINS, END):
        rate = metrics.goodput(recording, tcp, second * metrics.SECOND, (second + 1) * metrics.SECOND)
        if rate is not None and settled is not None and rate >= REACHED * settled:
            return second + 1 - JOINS
    return None


def _mbps(rate: float | None) -> str:
    return _cell(rate, ".2f", 1e-6)


def _milliseconds(seconds: float | None) -> str:
    return _cell(seconds, ".0f", 1e3)


def _cell(value: float | None, form: str, scale: float = 1.0) -> str:
    return "-" if value is None else f"{value * scale:{form}}"


if __name__ == "__main__":
    PAGE.write_text(page())
