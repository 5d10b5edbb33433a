"""What cost time, of a Recording whose figures can be worked out on paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import polars as pl
import pytest

from polypath import engines
from polypath.results import Recording, causes, metrics
from polypath.scenario import Scenario

from ..conftest import MS, SECOND, handmade, table


def test_causes_are_the_accounts_of_blocking_the_dearest_first(recording: Recording) -> None:
    found = causes.of_connection(recording, metrics.connection(recording, "iperf"))
    assert [each.time_ns for each in found] == sorted((each.time_ns for each in found), reverse=True)
    waiting = [(each.time_ns, each.sentence) for each in found if each.kind == "waiting"]
    assert waiting == [
        (
            400 * MS,
            "Data waited for bytes still on their way on subflow 1 (eth1, backup); at most 40 kB waited at once.",
        ),
        (
            200 * MS,
            "On subflow 0 (eth0) data waited behind bytes lost there until they had been retransmitted; "
            "at most 30 kB waited at once.",
        ),
        (
            100 * MS,
            "Data waited for bytes lost on subflow 0 (eth0) until they had been retransmitted there; "
            "at most 20 kB waited at once.",
        ),
        (50 * MS, "Data waited for bytes that never came; at most 10 kB waited at once."),
    ]
    assert [each.time_ns for each in found if each.kind == "handshake"] == [40 * MS]


def test_a_hole_that_copies_on_another_subflow_filled_is_not_counted_twice(recording: Recording) -> None:
    rows = recording.table("blocking")
    hole = (
        rows.filter(pl.col("level") == "subflow")
        .head(1)
        .with_columns(cause=pl.lit("missing"), time_ns=pl.lit(900 * MS))
    )

    def holes(table: pl.DataFrame) -> list[int]:
        made = replace(recording, tables={**recording.tables, "blocking": table})
        found = causes.of_connection(made, metrics.connection(made, "iperf"))
        return [each.time_ns for each in found if each.sentence.startswith("On ") and "never came" in each.sentence]

    with_hole = pl.concat([rows, hole.cast(rows.schema)])
    assert holes(with_hole) == [900 * MS]
    came = with_hole.filter((pl.col("level") != "connection") | (pl.col("cause") != "missing"))
    assert holes(came) == []


def test_what_has_no_connection_has_no_causes(recording: Recording) -> None:
    assert causes.of_connection(recording, metrics.connection(recording, "cross")) == []


def test_samples_in_a_row_without_progress_are_one_stretch(changed: Callable[[str, pl.DataFrame], Recording]) -> None:
    delivered = [100, 200, 200, 300, 300, 300, 300, 400, 500, 500, 600]
    rows = [
        [(11 + number) * 100 * MS, 0, side, so_far, 0, 0, 1_000, 0]
        for number, so_far in enumerate(delivered)
        for side in ("client", "server")
    ]
    made = changed("connections", table("connections", rows))
    (found,) = (
        each for each in causes.of_connection(made, metrics.connection(made, "iperf")) if each.kind == "stalled"
    )
    assert (found.time_ns, found.at_ns) == (500 * MS, 1_400 * MS)
    assert "in 3 stretches, the longest of 0.3 s from 1.4 s on" in found.sentence


def stalled(
    delivered: Sequence[int], srtt_us: int, *, answers: Sequence[int] | None = None, closed_ns: int | None = None
) -> list[causes.Cause]:
    """Stalls of a run sampled each 100 ms from 2 s on, with data to send all the time, after one RTT of subflow 1."""
    original = handmade()
    times = [(20 + number) * 100 * MS for number in range(len(delivered))]
    rows = [
        [time, 0, side, so_far, 0, 0, 1_000 if side == "client" else 0, 0]
        for side, totals in (("server", delivered), ("client", answers or [0] * len(delivered)))
        for time, so_far in zip(times, totals, strict=True)
    ]
    subflows = original.table("subflows").filter(pl.col("time_ns") == 2 * SECOND, pl.col("subflow") == 1)
    ends = original.table("subflow_ends")
    tables = {
        **original.tables,
        "connections": table("connections", rows),
        "subflow_ends": ends.with_columns(closed_ns=pl.lit(closed_ns, pl.Int64)),
        "subflows": subflows.with_columns(srtt_us=pl.lit(srtt_us, pl.UInt64)),
    }
    made = replace(original, tables=tables)
    return [each for each in causes.of_connection(made, metrics.connection(made, "iperf")) if each.kind == "stalled"]


def test_what_is_on_its_way_is_not_stalled() -> None:
    """A round trip of 60 ms, an acknowledgement 40 ms late, and an interval without data are 200 ms."""
    assert stalled([1, 1, 2, 2, 2, 3], 60_000) == []
    (found,) = stalled([1, 1, 2, 2, 2, 2, 3], 60_000)
    assert (found.time_ns, found.at_ns) == (240 * MS, 2_200 * MS)
    assert found.sentence == (
        "Nothing was delivered though data was there to be sent, for longer than a round trip of 60 ms: "
        "0.3 s from 2.2 s on."
    )
    assert stalled([1, 1, 2, 2, 2, 2, 3], 160_000) == []


def test_the_round_trip_of_a_subflow_that_closed_explains_nothing() -> None:
    assert stalled([1, 1, 2, 2, 2, 2, 3], 160_000, closed_ns=2_200 * MS) == []
    (found,) = stalled([1, 1, 2, 2, 2, 2, 3], 160_000, closed_ns=2_190 * MS)
    assert found.time_ns == 300 * MS
    assert found.sentence == "Nothing was delivered though data was there to be sent: 0.3 s from 2.2 s on."


def test_what_goes_in_the_other_direction_is_delivered() -> None:
    assert stalled([1, 1, 1, 1, 1, 2], 60_000, answers=[0, 1, 2, 3, 4, 5]) == []


FAR = """
duration = "8 s"
[host.client]
[host.server]
[link.a]
ends = ["client", "server"]
rate = "50 Mbps"
delay = "{delay}"
[[application]]
name = "rr"
kind = "request-response"
count = 20
request = "100 B"
response = "20 kB"
interval = "70 ms"
transport = "{transport}"
[[application]]
name = "chat"
kind = "stream"
rate = "300 kbps"
block = "1 kB"
duration = "4 s"
transport = "{transport}"
[record]
interval = "{interval}"
"""


@pytest.mark.parametrize("transport", ["tcp", "quic"])
@pytest.mark.parametrize(("delay", "interval"), [("2 ms", "10 ms"), ("100 ms", "50 ms"), ("300 ms", "100 ms")])
def test_an_empty_link_stalls_nothing_however_long_and_finely_sampled(
    transport: str, delay: str, interval: str
) -> None:
    text = FAR.format(transport=transport, delay=delay, interval=interval)
    run = engines.get("sim").run(Scenario.parse(text, "far.toml").plan())
    found = [each for of in metrics.connections(run) for each in causes.of_connection(run, of)]
    assert [each.sentence for each in found if each.kind == "stalled"] == []


def test_a_receive_window_is_not_full_of_what_came_on_another_subflow(
    changed: Callable[[str, pl.DataFrame], Recording],
) -> None:
    """Subflow 0 dies with a full window, whose bytes are acknowledged at connection level by 2.2 s."""

    def row(time: int, side: str, subflow: int, cwnd: int, outstanding: int) -> list[object]:
        return [
            *(time, 0, side, subflow, "established", cwnd, 20, 40_000, 5, cwnd if subflow == 0 else 0),
            *(500_000 + outstanding, 500_000, 0, 0, 0, 64_000, 0),
        ]

    times = [(20 + number) * 100 * MS for number in range(6)]
    own = [
        row(time, side, subflow, cwnd, 62_000 if subflow == 0 and side == "client" else 0)
        for time in times
        for side in ("client", "server")
        for subflow, cwnd in ((0, 1), (1, 10))
    ]
    made = changed("subflows", table("subflows", own))

    def full(queues: Sequence[int | None]) -> list[tuple[int, int | None]]:
        rows = [
            [time, 0, side, 500_000, 0, 0, queue if side == "client" else 0, 0]
            for time, queue in zip(times, queues, strict=True)
            for side in ("client", "server")
        ]
        of_connections = replace(made, tables={**made.tables, "connections": table("connections", rows)})
        found = causes.of_connection(of_connections, metrics.connection(of_connections, "iperf"))
        return [(each.time_ns, each.at_ns) for each in found if each.kind == "window"]

    assert full([100_000, 62_000, 0, 0, 3_000, 0]) == [(200 * MS, 2_000 * MS)]
    assert full([0] * 6) == []
    # of a capture nobody knows what waits
    assert full([None] * 6) == [(500 * MS, 2_000 * MS)]


def test_a_subflow_that_comes_again_was_missing_since_the_one_before(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    ends = recording.table("subflow_ends").head(1)
    first, again = (
        ends.with_columns(
            subflow=pl.lit(number, pl.UInt32),
            interface=pl.lit("eth1"),
            established_ns=pl.lit(since * MS, pl.Int64),
            closed_ns=pl.lit(until * MS, pl.Int64),
        )
        for number, since, until in ((1, 1_100, 1_500), (2, 2_250, 3_050))
    )
    made = changed("subflow_ends", pl.concat([ends, first, again]))
    found = causes.of_connection(made, metrics.connection(made, "iperf"))
    assert [(each.time_ns, each.at_ns, each.sentence) for each in found if each.kind == "joining"] == [
        (
            750 * MS,
            1_500 * MS,
            "Subflow 2 (eth1) was there only from 2.25 s on, after subflow 1 (eth1) had closed at 1.5 s.",
        ),
        (40 * MS, 1_060 * MS, "Subflow 1 (eth1) was there only from 1.1 s on."),
    ]
