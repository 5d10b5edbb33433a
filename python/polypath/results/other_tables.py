"""Further results of a run as tables of text: flow groups, a controller, bridges, programs, costs, tunnels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from polypath.results import bridges, completions, control, costs, tunnels
from polypath.results.metrics import FEWEST, Delays
from polypath.results.recording import Recording

#: How a program of the machine ended.
_ENDED: Final = {"exited": "by itself", "killed": "by a signal", "ended": "with the run", "open": "not"}
#: How many flows a quantile needs to be printed (`metrics.FEWEST`).
_FEWEST: Final = {0.95: FEWEST["p95"], 0.99: FEWEST["p99"]}


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as there are headings, first `words` of text and then figures; what is not known is
    blank."""

    headings: Sequence[str]
    words: int
    rows: Sequence[Sequence[str]]
    note: str = ""


def tables(recording: Recording) -> Iterator[Table]:
    for each in (_completions, _controller, _bridges, _programs, _costs, _tunnels):
        yield from each(recording)


def _completions(recording: Recording) -> Iterator[Table]:
    """A group as a row per class of sizes: completion times, and their multiples of the least possible."""
    for group, completed in completions.of_groups(recording).items():
        rows = []
        for each in completed:
            mean, times, slowdowns = each.mean_ns(), each.times, each.slowdowns
            rows.append(
                (
                    each.sizes,
                    f"{each.flows:,}",
                    f"{each.unfinished:,}" if each.unfinished else "",
                    _significant(mean, 1e6),
                    *(_quantile(times, part, 1e6) for part in (0.5, 0.95, 0.99)),
                    _significant(each.mean_slowdown()),
                    *(_quantile(slowdowns, part) for part in (0.5, 0.99)),
                )
            )
        headings = (group, "flows", "unfinished", "mean ms", "p50", "p95", "p99", "slowdown", "p50", "p99")
        late = any(each.unfinished for each in completed)
        notes = ["An unfinished flow is longer than any other: a blank depends on one."] if late else []
        if any(_lacks(each.times, 0.99) for each in completed):
            notes.append(f"p95 takes {_FEWEST[0.95]} flows, and p99 takes {_FEWEST[0.99]}.")
        note = " ".join(notes)
        yield Table(headings, 1, rows, note)


def _controller(recording: Recording) -> Iterator[Table]:
    """A row: what passed between switches and controller, and how long flows waited for it."""
    found = control.of(recording)
    if found is None:
        return
    delays = found.delays
    row = (
        _rule(recording),
        f"{found.packet_ins:,}",
        f"{found.flow_mods:,}",
        f"{found.most_entries:,}",
        f"{delays.sent:,}",
        _significant(found.mean_delay_ns, 1e6),
        *(_significant(delays.quantile(part), 1e6) for part in (0.5, 0.99, 1.0)),
    )
    headings = (
        "controller", "packet-ins", "flow-mods", "most entries", "flows set up", "mean ms", "p50", "p99", "longest"
    )  # fmt: skip
    late = delays.unanswered
    was = "was" if late == 1 else "were"
    note = f"{late} of these flows {was} never sent on: a blank depends on one." if late else ""
    yield Table(headings, 1, [row], note)


def _rule(recording: Recording) -> str:
    controller = recording.plan["controller"]
    assert controller is not None
    app, routing = controller.get("app"), controller.get("routing")
    if app is not None:
        return app["file"]
    assert routing is not None
    return f"{routing['name']}, {controller['mode']}"


def _bridges(recording: Recording) -> Iterator[Table]:
    """A row: the tree that bridges found, and what that and learning took."""
    found = bridges.of(recording)
    if found is None:
        return
    row = (
        ", ".join(found.roots),
        f"{found.bridges:,}",
        f"{len(found.blocked):,}",
        f"{found.changed_ns / 1e9:.6f}",
        f"{found.bpdus:,}",
        f"{found.learned:,}",
        f"{found.flushed:,}",
        f"{found.flooded_packets:,}",
    )
    headings = ("root", "bridges", "blocked ports", "last change s", "BPDUs", "learned", "flushed", "flooded")
    yield Table(headings, 1, [row])


def _programs(recording: Recording) -> Iterator[Table]:
    """A row for each program of the machine: how it ended, and how much it printed."""
    rows = [
        (
            row["name"],
            row["host"],
            _ENDED.get(row["state"], row["state"]),
            f"{row['start_ns'] / 1e9:.3f}",
            "" if row["end_ns"] is None else f"{row['end_ns'] / 1e9:.3f}",
            "" if row["exit_code"] is None else str(row["exit_code"]),
            f"{row['stdout_bytes'] + row['stderr_bytes']:,}",
        )
        for row in recording.table("programs").iter_rows(named=True)
    ]
    if rows:
        yield Table(("program", "host", "ended", "from s", "to s", "exit code", "printed B"), 3, rows)


def _costs(recording: Recording) -> Iterator[Table]:
    """A row for each link with a price or a cap: what it carried, how much of that beyond its cap, what it cost."""
    found = costs.of(recording)
    if found is None:
        return
    rows = [
        (
            each.link,
            "" if each.price_per_gb is None else f"{each.price_per_gb:g}",
            f"{each.bytes / 1e6:,.3f}",
            "" if each.cap_bytes is None else f"{each.cap_bytes / 1e6:,g}",
            "" if each.over_cap_bytes is None else f"{each.over_cap_bytes / 1e6:,.3f}",
            "" if each.cost is None else f"{each.cost:.6g}",
        )
        for each in found.links
    ]
    several = len([each for each in found.links if each.cost is not None]) > 1
    note = f"All links together cost {found.cost:.6g}." if several else ""
    yield Table(("link", "per GB", "MB", "cap MB", "over MB", "cost"), 1, rows, note)


def _tunnels(recording: Recording) -> Iterator[Table]:
    """A row for each direction of a tunnel: the packets that were routed into it, and what became of them."""
    rows = [
        (
            each.name,
            each.direction,
            *(
                f"{count:,}"
                for count in (
                    each.entered,
                    each.entered - each.carried - each.queue_full,
                    each.queue_full,
                    each.lost,
                    each.left,
                    each.reordered,
                    each.late,
                )
            ),
        )
        for each in tunnels.of(recording)
    ]
    headings = ("tunnel", "direction", "packets", "refused", "queue full", "lost", "left", "reordered", "late")
    if rows:
        yield Table(headings, 2, rows)


def _lacks(of: Delays, part: float) -> bool:
    """Whether there are too few for a quantile: it would lie between the two longest."""
    return of.sent < _FEWEST.get(part, 1)


def _quantile(of: Delays, part: float, unit: float = 1.0) -> str:
    return "" if _lacks(of, part) else _significant(of.quantile(part), unit)


def _significant(value: float | None, unit: float = 1.0) -> str:
    """Three digits, and all those before the point."""
    if value is None:
        return ""
    scaled = value / unit
    return f"{scaled:,.0f}" if scaled >= 1000 else f"{scaled:.3g}"
