"""What queue disciplines do to delay: in the simulator beside a download, and beside the kernel's own, as a page.

python docs/queues.py    writes docs/queues.md; needs the kernel of engine linux and takes half an hour
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from math import hypot, sqrt
from pathlib import Path
from statistics import fmean, median, quantiles, stdev

import polars as pl

from polypath import Scenario, engines, run
from polypath.capture import trace
from polypath.engines import Options
from polypath.results import metrics
from polypath.sweeps import points

HERE = Path(__file__).parent
PAGE = HERE / "queues.md"
SCENARIOS = HERE / "queues"

#: How far the simulator's median may be from the kernel's.
TOLERANCE = 0.1
#: Shorter times are those of the kernel's timers, not of a queue.
RESOLUTION_S = 10e-6
#: Transfers have left slow start by then.
SETTLED_S = 5.0
#: Each draws when the transfers begin, and how much longer or shorter the round trip is.
SEEDS = range(1, 9)
LATEST_START_MS = 500
ROUND_TRIP_SPREAD = 0.02
#: Ethernet, IPv4, TCP with timestamps.
HEADERS = 14 + 20 + 32
#: What tells a segment from others, a retransmission too.
_SEGMENT = ("source_port", "seq", "timestamp")

RATES = (10, 50)
ROUND_TRIPS = (20, 100)
CONTROLS = ("cubic", "reno")
DISCIPLINES = ("fq-codel", "fq-pie", "pie")
#: Rates and round trips of the link that Prague and CUBIC share.
SHARED = ((12, 10), (12, 40), (40, 10), (40, 40), (120, 10), (120, 40))


def page() -> str:
    """The whole page."""
    text = (HERE / "queues" / "text.md").read_text()
    tables = {"{bloat}": bloat(), "{l4s}": l4s(), "{delay}": delay()}
    for place, lines in tables.items():
        text = text.replace(place, "\n".join(lines))
    return text


def bloat() -> list[str]:
    """Delay of ping and rate of the download under each discipline."""
    lines = ["| queue | ping median ms | 95th percentile ms | download Mbps | dropped |", "|---|--:|--:|--:|--:|"]
    for point in points(Scenario.load(SCENARIOS / "bloat.toml")):
        recording = run(point.plan)
        requests = recording.table("requests")["delay_ns"].drop_nulls()
        times = [delay / 1e6 for delay in requests]
        rate = metrics.goodput(recording, metrics.connection(recording, "download"))
        dropped = recording.table("link_ends")["dropped_packets"].sum()
        late = quantiles(times, n=20)[-1]
        lines.append(f"| `{point.values['queue']}` | {median(times):.1f} | {late:.1f} | {rate / 1e6:.2f} | {dropped} |")
    return lines


def l4s() -> list[str]:
    """Rates of Prague and of CUBIC through one DualPI2."""
    lines = ["| rate Mbps | RTT ms | Prague Mbps | CUBIC Mbps | ratio |", "|--:|--:|--:|--:|--:|"]
    for rate, round_trip in SHARED:
        settings = [f"link.access.rate={rate} Mbps", f"link.access.delay={round_trip / 2} ms"]
        recording = run(Scenario.load(SCENARIOS / "l4s.toml").with_settings(settings).plan(None))
        connections = (metrics.connection(recording, name) for name in ("prague", "cubic"))
        prague, cubic = (metrics.goodput(recording, it, 5 * metrics.SECOND, 20 * metrics.SECOND) for it in connections)
        rates = f"{prague / 1e6:.1f} | {cubic / 1e6:.1f}"
        lines.append(f"| {rate} | {round_trip} | {rates} | {prague / cubic:.2f} |")
    return lines


def delay() -> list[str]:
    """Medians on both engines."""
    lines = [
        "| queue | control | connections | rate Mbps | RTT ms | sim ms | linux ms | sim/linux | |",
        "|---|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for discipline in DISCIPLINES:
        for control in CONTROLS:
            for count in (1, 4):
                for rate in RATES:
                    for round_trip in ROUND_TRIPS:
                        case = (discipline, control, count, rate, round_trip)
                        lines.append(_row(*case))
                        print(lines[-1], flush=True)
    return lines


def _row(discipline: str, control: str, count: int, rate: int, round_trip: int) -> str:
    drawn = [(seed, described(discipline, control, count, rate, round_trip, seed)) for seed in SEEDS]
    runs = [[waited(engine, scenario, seed) for seed, scenario in drawn] for engine in ("sim", "linux")]
    ours, theirs = map(fmean, runs)
    errors = [_error(each) for each in runs]
    empty = max(ours, theirs) < RESOLUTION_S
    if empty or abs(ours / theirs - 1) <= TOLERANCE:
        verdict = "ok"
    else:
        verdict = "chance" if abs(ours - theirs) < 2 * hypot(*errors) else "**off**"
    ratio = "" if empty else f"{ours / theirs:.2f}"
    told = (f"{mean * 1e3:.2f} ± {error * 1e3:.2f}" for mean, error in zip((ours, theirs), errors, strict=True))
    place = f"| `{discipline}` | {control} | {count} | {rate} | {round_trip} "
    return f"{place}| {' | '.join(told)} | {ratio} | {verdict} |"


def _error(values: Sequence[float]) -> float:
    """The standard error of their mean."""
    return stdev(values) / sqrt(len(values))


def described(discipline: str, control: str, count: int, rate: int, round_trip: int, seed: int) -> Scenario:
    """So many transfers; the others have a segment to send."""
    names = ("first", "second", "third", "fourth")
    draw = random.Random(seed)
    one_way = round_trip / 2 * draw.uniform(1 - ROUND_TRIP_SPREAD, 1 + ROUND_TRIP_SPREAD)
    settings = [
        f'link.bottleneck.queue={{ kind = "{discipline}" }}',
        f"link.bottleneck.rate={rate} Mbps",
        f"link.bottleneck.delay={one_way:.3f} ms",
        f"defaults.congestion={control}",
        *(f"application.{name}.start={draw.uniform(0, LATEST_START_MS):.3f} ms" for name in names),
        *(f"application.{name}.size=1 kB" for name in names[count:]),
    ]
    return Scenario.load(SCENARIOS / "delay.toml").with_settings(settings)


def waited(engine: str, scenario: Scenario, seed: int) -> float:
    """The median time in seconds that a segment with data waits at the bottleneck, from captures at both ends."""
    plan = scenario.with_settings([f"seed={seed}"]).plan(None)
    channel = plan.data["links"][1]["forward"]
    with tempfile.TemporaryDirectory() as folder:
        engines.get(engine).run(plan, Options(captures="hosts", directory=Path(folder)))
        left, came = (_segments(Path(folder) / f"{host}.pcapng") for host in ("client", "server"))
    both = left.join(came, on=_SEGMENT, suffix="_there").filter(pl.col("time_ns") > SETTLED_S * 1e9)
    alone = channel["delay_ns"] + (both["payload_bytes"] + HEADERS) * 8e9 / channel["rate_bps"]
    waits = (both["time_ns_there"] - both["time_ns"] - alone) / 1e9
    return median(waits)


def _segments(capture: Path) -> pl.DataFrame:
    """When each segment with data to the server was seen first, since the run's origin."""
    told = trace([capture], segments=True).recording
    ports = told.table("subflow_ends").select("connection", "subflow", "source_port")
    rows = told.table("segments").with_row_index("segment").join(told.table("headers"), on="segment")
    rows = rows.join(ports, on=["connection", "subflow"], maintain_order="left")
    sent = rows.filter((pl.col("side") == "client") & (pl.col("payload_bytes") > 0))
    origin = int(told.plan["capture"]["start_unix_ns"])
    return sent.with_columns(pl.col("time_ns") + origin).unique(_SEGMENT, keep="first", maintain_order=True)


if __name__ == "__main__":
    PAGE.write_text(page())
