"""Time-sequence graphs for xplot, as tcptrace draws them.

There is a file per subflow and direction with data, and one per direction of a connection's data sequence numbers. QUIC
numbers packets instead of bytes and has only the latter.

- Data is a line with an arrow at each end.
- As in tcptrace, a retransmission is red with R.
- A reinjection is magenta with I.
- Acknowledged data is a green staircase.
- A SACK block is purple with S. A block about duplicate data (RFC 2883) has D.

The Recording has the time at which a segment was sent. Acknowledgements are at that time, which is a one-way delay
earlier than in a capture at the sender.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import polars as pl

from polypath.errors import PolypathError
from polypath.results import Recording, metrics

Row = dict[str, Any]

_OTHER: Final = {"client": "server", "server": "client"}
_SUBFLOWS: Final = ("white", "blue", "orange", "pink", "purple")
"""Of data in graphs of a connection, by subflow, and from the first on again."""


class SegmentsError(PolypathError, ValueError):
    """A result without segments; the message is one line."""


def write(recording: Recording, out: Path) -> int:
    """Writes the graphs into the empty folder `out`; returns how many. Raises SegmentsError where there are none."""
    segments = recording.table("segments").sort("time_ns", maintain_order=True)
    if not segments.height:
        raise SegmentsError("the result has no segments; the run needs `--plot`")
    sacks = recording.table("sack_blocks")
    names = dict(recording.table("connection_ends").select("connection", "name").iter_rows())
    numbers_packets = {of.id for of in metrics.connections(recording) if of.over_quic}
    count = 0
    for (connection,), rows in segments.group_by("connection", maintain_order=True):
        name = f"{recording.metadata.scenario}: {names.get(connection, connection)}"
        for side, other in _OTHER.items():
            sent = rows.filter((pl.col("side") == side) & (pl.col("payload_bytes") > 0))
            if not sent.height:
                continue
            title, stem = f"{name}, {side} ==> {other}", f"connection{connection}"
            own_numbers = [] if connection in numbers_packets else sorted(sent["subflow"].unique())
            for subflow in own_numbers:
                own = rows.filter(pl.col("subflow") == subflow)
                graph = out / f"{stem}_subflow{subflow}_{side}_tsg.xpl"
                lines = _of_subflow(own.iter_rows(named=True), side)
                blocks = sacks.filter(connection=connection, side=other, subflow=subflow).iter_rows(named=True)
                _write(graph, f"{title}, subflow {subflow}", chain(lines, _of_blocks(blocks)))
                count += 1
            if sent["dsn"].count():
                _write(out / f"{stem}_{side}_dsn.xpl", f"{title}, data sequence numbers", _of_connection(sent))
                count += 1
    return count


def _write(path: Path, title: str, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        plain = " ".join(title.split())
        file.write(f"timeval unsigned\ntitle\n{plain}\nxlabel\ntime\nylabel\nsequence number\n")
        file.writelines(f"{line}\n" for line in lines)
        file.write("go\n")


def _of_subflow(rows: Iterable[Row], side: str) -> Iterator[str]:
    """Data of `side` in the subflow's sequence numbers, and what the other side acknowledges."""
    before: tuple[str, int] | None = None
    for row in rows:
        time = _seconds(row["time_ns"])
        if row["side"] == side:
            if row["payload_bytes"]:
                yield from _segment(time, row["seq"], row, "white")
            continue
        level = row["ack"]
        if before is not None:
            since, last = before
            yield "green"
            yield f"line {since} {last} {time} {last}"
            yield f"dtick {time} {level}" if level == last else f"line {time} {last} {time} {level}"
        before = time, level


def _of_blocks(blocks: Iterable[Row]) -> Iterator[str]:
    for block in blocks:
        time = _seconds(block["time_ns"])
        yield "purple"
        yield f"line {time} {block['begin']} {time} {block['end']}"
        yield f"atext {time} {block['end']}"
        yield "D" if block["duplicate"] else "S"


def _of_connection(sent: pl.DataFrame) -> Iterator[str]:
    for row in sent.filter(pl.col("dsn").is_not_null()).iter_rows(named=True):
        colour = _SUBFLOWS[row["subflow"] % len(_SUBFLOWS)]
        yield from _segment(_seconds(row["time_ns"]), row["dsn"], row, colour)


def _segment(time: str, low: int, row: Row, colour: str) -> Iterator[str]:
    colour, letter = {"retransmission": ("red", "R"), "reinjection": ("magenta", "I")}.get(row["kind"], (colour, ""))
    high = low + row["payload_bytes"]
    yield colour
    yield f"darrow {time} {low}"
    yield f"uarrow {time} {high}"
    yield f"line {time} {low} {time} {high}"
    if letter:
        yield f"atext {time} {high}"
        yield letter


def _seconds(time_ns: int) -> str:
    """With six decimals, as tcptrace writes them."""
    return f"{time_ns // 1_000_000_000}.{time_ns % 1_000_000_000 // 1000:06}"
