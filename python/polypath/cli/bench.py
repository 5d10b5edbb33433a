"""polypath bench: how fast the simulator is."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.markup import escape

from polypath import _core
from polypath.cli.console import out, table
from polypath.cli.errors import InputError

_COLUMNS = ("simulated s", "packet-hops", "CPU s", "ns/hop", "subflows", "share")


@dataclass(frozen=True)
class Measurement:
    """A work's cost. The time per packet-hop is the difference of two lengths, so that setting up cancels out."""

    work: str
    description: str
    simulated_s: float
    packet_hops: int
    cpu_s: float
    ns_per_hop: float | None
    subflows: int
    share_of_capacity: float


def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="WORK..", show_default=False)] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Simulated time, instead of the work's default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Measure the simulator's CPU time per packet-hop.

    Example: `polypath bench W6 --seconds 1`.
    """
    works = {name: (description, length) for name, description, length in _core.works()}
    for name in names or ():
        if name not in works:
            raise InputError(f"unknown benchmark '{name}'; there is {', '.join(works)}")
    measurements = []
    for name in names or works:
        description, length = works[name]
        measurements.append(_measure(name, description, seconds or length))
        if as_json:
            print(json.dumps(asdict(measurements[-1])), flush=True)
    if not as_json:
        _show(measurements)


def _measure(name: str, description: str, seconds: float) -> Measurement:
    short, short_cpu = _run(name, seconds / 2)
    full, full_cpu = _run(name, seconds)
    hops = int(full["packet_hops"])
    more = hops - int(short["packet_hops"])
    return Measurement(
        work=name,
        description=description,
        simulated_s=seconds,
        packet_hops=hops,
        cpu_s=round(full_cpu, 4),
        ns_per_hop=round((full_cpu - short_cpu) * 1e9 / more, 2) if more > 0 else None,
        subflows=int(full["subflows"]),
        share_of_capacity=full["share_of_capacity"],
    )


def _run(name: str, seconds: float) -> tuple[dict[str, float], float]:
    """What the work did, and the process's CPU seconds for it."""
    started = time.process_time()
    report: dict[str, float] = json.loads(_core.bench(name, seconds))
    return report, time.process_time() - started


def _show(measurements: list[Measurement]) -> None:
    rows = table("work", "what", *_COLUMNS, numbers=frozenset(_COLUMNS))
    for each in measurements:
        rows.add_row(
            f"[bold]{escape(each.work)}[/bold]",
            escape(each.description),
            f"{each.simulated_s:g}",
            f"{each.packet_hops:,}",
            f"{each.cpu_s:.2f}",
            "" if each.ns_per_hop is None else f"{each.ns_per_hop:.0f}",
            str(each.subflows),
            f"{each.share_of_capacity:.3f}",
        )
    out.print(rows)
