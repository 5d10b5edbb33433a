"""What queue disciplines do to delay: in the simulator beside a download, and beside the kernel's own, as a page.

python docs/queues.py    writes docs/queues.md; needs the kernel of engine linux and takes a quarter of an hour
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median, quantiles

from polypath import Scenario, engines, run
from polypath.engines import Options
from polypath.results import metrics
from polypath.sweep import points

HERE = Path(__file__).parent
PAGE = HERE / "queues.md"
SCENARIOS = HERE / "queues"

#: How far the simulator's median may be from the kernel's.
TOLERANCE = 0.1
#: Shorter times are those of the kernel's timers, not of a queue.
RESOLUTION_S = 10e-6
#: Transfers have left slow start by then.
SETTLED_S = 5.0
SEEDS = (1, 2)
ETHERNET = 14
#: Applications listen from this port on.
FIRST_PORT = 5001

RATES = (10, 50)
ROUND_TRIPS = (20, 100)
CONTROLS = ("cubic", "reno")
DISCIPLINES = ("fq-codel", "pie")


def page() -> str:
    """The whole page."""
    text = (HERE / "queues" / "text.md").read_text()
    tables = {"{bloat}": bloat(), "{delay}": delay()}
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


def delay() -> list[str]:
    """Medians on both engines."""
    lines = [
        "| queue | control | connections | rate Mbps | RTT ms | runs | sim ms | linux ms | sim/linux | |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|---|",
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
    scenario = described(discipline, control, count, rate, round_trip)
    # the others draw nothing
    seeds = SEEDS if discipline == "pie" else SEEDS[:1]
    ours, theirs = (fmean(waited(engine, scenario, seed) for seed in seeds) for engine in ("sim", "linux"))
    empty = max(ours, theirs) < RESOLUTION_S
    verdict = "ok" if empty or abs(ours / theirs - 1) <= TOLERANCE else "**off**"
    ratio = "" if empty else f"{ours / theirs:.2f}"
    place = f"| `{discipline}` | {control} | {count} | {rate} | {round_trip} | {len(seeds)} "
    return f"{place}| {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {ratio} | {verdict} |"


def described(discipline: str, control: str, count: int, rate: int, round_trip: int) -> Scenario:
    """So many transfers; the others have a segment to send."""
    names = ("first", "second", "third", "fourth")
    settings = [
        f'link.bottleneck.queue={{ kind = "{discipline}" }}',
        f"link.bottleneck.rate={rate} Mbps",
        f"link.bottleneck.delay={round_trip / 2:g} ms",
        f"defaults.congestion={control}",
        *(f"application.{name}.size=1 kB" for name in names[count:]),
    ]
    return Scenario.load(SCENARIOS / "delay.toml").with_settings(settings)


def waited(engine: str, scenario: Scenario, seed: int) -> float:
    """The median time in seconds that a segment with data waits at the bottleneck, from captures at both ends."""
    plan = scenario.with_settings([f"seed={seed}"]).plan(None)
    channel = plan.data["links"][1]["forward"]
    with tempfile.TemporaryDirectory() as folder:
        engines.get(engine).run(plan, Options(captures="hosts", directory=Path(folder)))
        left, came = (_segments(next(Path(folder).glob(f"**/{host}*.pcapng"))) for host in ("client", "server"))
    times = []
    for key, (at, size) in left.items():
        if key in came and at > SETTLED_S:
            own = channel["delay_ns"] / 1e9 + (size + ETHERNET) * 8 / channel["rate_bps"]
            times.append(came[key][0] - at - own)
    return median(times)


def _segments(capture: Path) -> dict[bytes, tuple[float, int]]:
    """When each TCP segment with data to the server was seen first, and its IP length."""
    seen: dict[bytes, tuple[float, int]] = {}
    for at, packet in _packets(capture):
        header = (packet[0] & 15) * 4
        if packet[0] >> 4 != 4 or packet[9] != 6:
            continue
        size, segment = int.from_bytes(packet[2:4], "big"), packet[header:]
        options = (segment[12] >> 4) * 4
        (port,) = struct.unpack_from(">H", segment, 2)
        if port >= FIRST_PORT and port < FIRST_PORT + 100 and size > header + options:
            # ports, numbers, timestamps: what the network leaves alone
            seen.setdefault(segment[:options], (at, size))
    return seen


def _packets(capture: Path) -> Iterator[tuple[float, bytes]]:
    """Time in seconds and bytes from the IP header on of a pcapng file's packets (draft-ietf-opsawg-pcapng)."""
    data, at, interfaces = capture.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + length - 4]
        if kind == 1:
            (link,) = struct.unpack_from("<H", body)
            interfaces.append((ETHERNET if link == 1 else 0, _resolution(body[8:])))
        elif kind == 6:
            interface, high, low, captured, _ = struct.unpack_from("<IIIII", body)
            header, unit = interfaces[interface]
            yield (high << 32 | low) * unit, body[20 + header : 20 + captured]
        at += length


def _resolution(options: bytes) -> float:
    """Seconds of a unit of time: if_tsresol, microseconds if there is none."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == 9:
            return float(10.0 ** -options[at + 4])
        at += 4 + (length + 3) // 4 * 4
    return 1e-6


if __name__ == "__main__":
    PAGE.write_text(page())
