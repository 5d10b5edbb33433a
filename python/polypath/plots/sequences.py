"""Time-sequence graphs: data, retransmissions and acknowledgements over the stream, by subflow."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from polypath.plots.base import TIME, Canvas, Kind, chosen, drawing
from polypath.plots.changes import Events, finish
from polypath.plots.lanes import Lane, lanes
from polypath.plots.smoothing import slowest_rtt_s
from polypath.results import MetricError, Recording, metrics

#: Marker, its area in square points, and what the legend adds: what is sent again stands out.
_MARKS: Final = {
    "data": (".", 4.0, ""),
    "retransmission": ("x", 18.0, "retransmission"),
    "reinjection": ("+", 24.0, "reinjection"),
}
#: Places along each axis at which points are told apart: two a pixel.
_CELLS: Final = 1500
#: What `beginning` shows: a part of the time, of long transfers so many round-trip times.
_BEGINNING: Final = 0.1
_ROUND_TRIPS: Final = 25
_SENT_AGAIN: Final = "#555555"
#: Of SACK blocks, and of those that report data that arrived twice (RFC 2883).
_SACK, _DUPLICATE_SACK = "#aaaaaa", "#555555"


def sequence(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """Time-sequence graph of a connection: place in the stream (MB) of each segment over the time of sending (s).

    Points are coloured by subflow; retransmissions and reinjections have marks of their own. The line is what the
    receiver had delivered in order, as its ACKs say. ACKs of QUIC do not say it, and the samples are points. `from_s`
    and `to_s` choose a part of the time. The run must have recorded its segments (`polypath run --plot`,
    `polypath.run(.., segments=True)`). With `label` the points of this run have one colour. Raises MetricError where
    the run has several connections and `connection` names none of them.
    """
    with drawing(ax) as axes:
        of = chosen(recording, connection, shows)
        sent = _within(_sent(recording, of), from_s, to_s)
        tint = Canvas.of(axes).run(label, color)
        found = lanes(recording, of) if tint is None else []
        _points(axes, sent, found, tint, "dsn")
        _delivered(axes, recording, of, label, tint or "black", from_s, to_s)
        if tint is None:
            _keys(axes, sent, found)
        else:
            _key(axes, "o", tint, label, 4)
        height = "stream position" if of.over_quic else "data sequence number"
        axes.set(xlabel=TIME, ylabel=f"{height} (MB)")
        return finish(axes, recording, label, events, legend)


def beginning(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """As `sequence`, over the first tenth of the time, at most 25 round-trip times: slow start can be seen there."""
    with drawing(ax) as axes:
        of = chosen(recording, connection, shows)
        times = _sent(recording, of)["time_ns"]
        first, last = (int(times[0]), int(times[-1])) if len(times) else (0, 0)
        span = (last - first) / metrics.SECOND * _BEGINNING
        to_s = first / metrics.SECOND + min(span, _ROUND_TRIPS * slowest_rtt_s(recording, of) or span)
        sequence(recording, axes, connection=of, label=label, color=color, to_s=to_s, events=events, legend=legend)
        if label is None:
            Canvas.of(axes).note("the beginning")
        return axes


def acks(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    subflow: int = 0,
    from_s: float | None = None,
    to_s: float | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """Time-sequence graph of one subflow: its own sequence numbers (MB since its SYN) over time (s), ACKs as a line.

    A SACK block (RFC 2018) is a bar over the numbers that it names, a D-SACK (RFC 2883) a diamond amid them. A segment
    stands at the time of its sending, and so does an ACK: it leaves the receiver there, and comes to the sender later.
    The run must have recorded its segments. Raises MetricError where there is no such subflow, and of QUIC, which
    numbers packets instead of bytes.
    """
    with drawing(ax) as axes:
        of = chosen(recording, connection, _of_bytes)
        if of.over_quic:
            raise MetricError(f"{of.name} is QUIC, which numbers packets instead of bytes")
        lane = next((each for each in lanes(recording, of) if each.subflow.id == subflow), None)
        if lane is None:
            raise MetricError(f"{of.name} has no {of.lane} {subflow}")
        own = pl.col("subflow") == subflow
        sent = _within(_sent(recording, of, dsn=False).filter(own), from_s, to_s)
        back = _within(_of(recording, of, of.receiver).filter(own & (pl.col("ack") > 0)), from_s, to_s)
        _sacks(axes, _within(_of(recording, of, of.receiver, "sack_blocks").filter(own), from_s, to_s))
        _points(axes, sent, [lane], None, "seq")
        answered = _thinned(back, "ack")
        # the SYN has the first sequence number (RFC 9293 section 3.4)
        heights = (answered["ack"] - 1) / 1e6
        axes.step(answered["time_ns"] / 1e9, heights, where="post", color="black", linewidth=1.0, label="ACK")
        _keys(axes, sent, [lane])
        axes.set(xlabel=TIME, ylabel="sequence number (MB)")
        Canvas.of(axes).note(lane.label)
        return finish(axes, recording, None, events, legend)


def _points(axes: Axes, sent: pl.DataFrame, found: list[Lane], tint: str | None, height: str) -> None:
    """Points in the order of sending, so that no subflow hides another."""
    colours = {lane.subflow.id: to_rgba(lane.colour) for lane in found}
    most = max([*colours, *sent["subflow"].unique(), 0])
    table = np.array([colours.get(number, to_rgba(tint or "black")) for number in range(most + 1)])
    sent = _distinct(sent, height)
    for kind, (mark, size, _) in _MARKS.items():
        own = sent.filter(pl.col("kind") == kind)
        if own.is_empty():
            continue
        offset = 1 if height == "seq" else 0
        axes.scatter(
            own["time_ns"] / 1e9,
            (own[height].cast(pl.Int64) - offset) / 1e6,
            s=size,
            marker=mark,
            c=table[own["subflow"].to_numpy()],
            linewidths=0.8,
            rasterized=True,
        )


def _sacks(axes: Axes, blocks: pl.DataFrame) -> None:
    """Behind the segments: a bar for each block, a diamond for one about data that arrived twice."""
    apart = [_cell(name) for name in ("time_ns", "begin", "end")]
    cells = ("time_ns_cell", "begin_cell", "end_cell")
    # the SYN has the first sequence number (RFC 9293 section 3.4)
    places = {name: (pl.col(name).cast(pl.Int64) - 1) / 1e6 for name in ("begin", "end")}
    drawn = blocks.with_columns(apart).unique(cells, keep="last", maintain_order=True).with_columns(**places)
    beyond, twice = drawn.filter(~pl.col("duplicate")), drawn.filter("duplicate")
    if beyond.height:
        times = beyond["time_ns"] / 1e9
        bars = axes.vlines(times, beyond["begin"], beyond["end"], colors=_SACK, linewidth=0.6, zorder=0.5, label="SACK")
        bars.set_rasterized(True)
    if twice.height:
        times, heights = twice["time_ns"] / 1e9, (twice["begin"] + twice["end"]) / 2
        axes.scatter(times, heights, s=12.0, marker="d", c=_DUPLICATE_SACK, label="D-SACK", rasterized=True)


def _delivered(
    axes: Axes,
    recording: Recording,
    of: metrics.Connection,
    label: str | None,
    tint: str,
    from_s: float | None,
    to_s: float | None,
) -> None:
    times, totals = metrics.delivered(recording, of)
    known = pl.DataFrame({"time_ns": times, "total": totals}, schema={"time_ns": pl.Int64, "total": pl.Int64})
    told = _acknowledged(recording, of)
    exact = not told.is_empty()
    if exact:
        # a FIN and a DATA_FIN count as a byte (RFC 9293 section 3.4, RFC 8684 section 3.3.3)
        own = told.select("time_ns", pl.col("total").clip(0, max(totals, default=0)))
        known = pl.concat([known, own]).sort("time_ns").with_columns(pl.col("total").cum_max())
    shown = _thinned(_within(known, from_s, to_s), "total")
    if shown.is_empty():
        return
    at, heights = shown["time_ns"] / 1e9, shown["total"] / 1e6
    if exact:
        name = "delivered in order" if label is None else "_"
        axes.step(at, heights, where="post", color=tint, linewidth=0.9, label=name)
    else:
        # between samples nobody knows: a line or a step there would stand beside exact points
        name = "delivered in order, sampled" if label is None else "_"
        axes.plot(at, heights, linestyle="", marker="o", markersize=2.5, color=tint, label=name)


def _acknowledged(recording: Recording, of: metrics.Connection) -> pl.DataFrame:
    """How much of the stream the receiver's segments say that it has in order, and when; nothing of QUIC, whose ACKs
    name packets."""
    none = pl.DataFrame(schema={"time_ns": pl.Int64, "total": pl.Int64})
    if of.over_quic:
        return none
    if of.transport == "tcp":
        back = _of(recording, of, of.receiver).filter(pl.col("ack") > 0)
        # the SYN has the first sequence number (RFC 9293 section 3.4)
        return back.select("time_ns", (pl.col("ack").cast(pl.Int64) - 1).alias("total"))
    headers = recording.table("headers").filter(pl.col("data_ack").is_not_null())
    own = recording.table("segments").with_row_index("segment").join(headers, on="segment")
    back = own.filter((pl.col("connection") == of.id) & (pl.col("side") == of.receiver))
    return back.select("time_ns", pl.col("data_ack").cast(pl.Int64).alias("total"))


def _keys(axes: Axes, sent: pl.DataFrame, found: list[Lane]) -> None:
    """Names for points: a colour for each subflow, a mark for each way of sending again."""
    present = set(sent["subflow"].unique())
    for lane in found:
        if lane.subflow.id in present:
            _key(axes, "o", lane.colour, lane.label, 4)
    kinds = set(sent["kind"].unique())
    for kind, (mark, _, name) in _MARKS.items():
        if name and kind in kinds:
            _key(axes, mark, _SENT_AGAIN, name, 5)


def _key(axes: Axes, mark: str, tint: str, label: str | None, size: float) -> None:
    axes.add_line(Line2D([], [], linestyle="", marker=mark, color=tint, markersize=size, label=label))


def _distinct(sent: pl.DataFrame, height: str) -> pl.DataFrame:
    """A subflow's points, with only the last of those that the picture cannot separate."""
    cells = [_cell(name) for name in ("time_ns", height)]
    places = ("kind", "subflow", "time_ns_cell", f"{height}_cell")
    return sent.with_columns(cells).unique(places, keep="last", maintain_order=True)


def _thinned(back: pl.DataFrame, height: str) -> pl.DataFrame:
    return back.with_columns(_cell("time_ns")).unique("time_ns_cell", keep="last", maintain_order=True).sort("time_ns")


def _cell(name: str) -> pl.Expr:
    least, most = pl.col(name).min(), pl.col(name).max()
    place = (pl.col(name) - least) * _CELLS / pl.max_horizontal(most - least, 1)
    return place.cast(pl.Int64).alias(f"{name}_cell")


def _of(recording: Recording, of: metrics.Connection, side: str, table: str = "segments") -> pl.DataFrame:
    return recording.table(table).filter((pl.col("connection") == of.id) & (pl.col("side") == side))


def _sent(recording: Recording, of: metrics.Connection, *, dsn: bool = True) -> pl.DataFrame:
    name = f"segments that {of.sender} {of.id} sent{', with their place in the stream' if dsn else ''}"
    return recording.once(name, lambda: _payload(recording, of, dsn))


def _payload(recording: Recording, of: metrics.Connection, dsn: bool) -> pl.DataFrame:
    """In the order of sending."""
    carries = pl.col("payload_bytes") > 0
    own = _of(recording, of, of.sender).filter(carries & pl.col("dsn").is_not_null() if dsn else carries)
    return own.sort("time_ns", maintain_order=True)


def _within(rows: pl.DataFrame, from_s: float | None, to_s: float | None) -> pl.DataFrame:
    if from_s is not None:
        rows = rows.filter(pl.col("time_ns") >= from_s * metrics.SECOND)
    if to_s is not None:
        rows = rows.filter(pl.col("time_ns") <= to_s * metrics.SECOND)
    return rows


def shows(recording: Recording, of: metrics.Connection) -> bool:
    return of.id is not None and not _sent(recording, of).is_empty()


def _of_bytes(recording: Recording, of: metrics.Connection) -> bool:
    return not of.over_quic and shows(recording, of)


_SEGMENTS = "segments, which `run --plot` records"
KINDS = (
    Kind("sequence", "time-sequence graph of a connection, by subflow", sequence, shows, needs=_SEGMENTS),
    Kind(
        "beginning",
        "the beginning of the time-sequence graph",
        beginning,
        shows,
        across=f"{TIME}, the beginning",
        needs=_SEGMENTS,
    ),
    Kind(
        "acks",
        "time-sequence graph of each subflow with its ACKs",
        acks,
        _of_bytes,
        of="subflow",
        overlays=False,
        needs="segments of TCP, which `run --plot` records",
    ),
)
