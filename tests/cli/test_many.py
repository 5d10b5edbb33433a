"""A run with many subflows is shown in quantiles, extremes by name and failures by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from tests.handmade_plans import as_plan

from polypath.cli import many, result, sweeps
from polypath.results import Metadata, Recording, metrics, schema
from polypath.results.axes import Axis
from polypath.results.stored import StoredSweep
from polypath.statistics.estimate import over_seeds
from polypath.statistics.points import table

SECOND = 1_000_000_000


def run(connections: int, subflows: int, **changed: Any) -> Recording:
    """Connection n delivers n MB in a second; subflow 0 brings half of it, the others the rest in equal parts."""
    ends, sub, samples, requests = [], [], [], []
    for number in range(connections):
        received = changed.get("received", lambda number: number * 1_000_000)(number)
        state = changed.get("state", lambda number: "open")(number)
        start, end = changed.get("lasts", lambda number: (0, None))(number)
        ends.append([number, number, f"c{number}", "mptcp", state, start, 1, end, 1, end or SECOND, 0, received])
        for subflow in range(subflows):
            part = received if subflows == 1 else received // 2 if subflow == 0 else received // 2 // (subflows - 1)
            established = changed.get("established", lambda number, subflow: 1)(number, subflow)
            ways = ("10.0.0.1", 1000 + number, "10.0.1.1", 5001, "eth0", False, established, None)
            sent, again = changed.get("sent", lambda subflow, part: (part, part // 10))(subflow, part)
            sub.append([number, subflow, *ways, sent, 0, 0, part, again, 0, 0, 0])
            samples.append(
                [SECOND, number, "client", subflow, "established", 10, 20, 1000 * (subflow + 1), 5, 4, 0, *[0] * 6]
            )
        requests += [[number, index, 0, delay] for index, delay in enumerate(changed.get("delays", ()))]
    rows = {"connection_ends": ends, "subflow_ends": sub, "subflows": samples, "requests": requests}
    tables = {name: pl.DataFrame(own, schema=dict(schema.TABLES[name]), orient="row") for name, own in rows.items()}
    work = changed.get("work", {"kind": "bulk"})
    applications = [{"name": f"c{number}", "transport": "mptcp", "work": work} for number in range(connections)]
    return Recording(tables, as_plan({"applications": applications}), Metadata("many", 1, "sim", "", "", SECOND))


def shown(recording: Recording, capsys: pytest.CaptureFixture[str]) -> list[str]:
    result.show(recording, "the title")
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def row(lines: Sequence[str], figure: str) -> str:
    (found,) = [line for line in lines if line.startswith(figure)]
    return found.removeprefix(figure).strip()


def test_forty_subflows_have_a_row_each(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(run(10, 4), capsys)
    assert sum("→" in line for line in lines) == many.ROWS
    assert not any("median" in line for line in lines)


def test_more_subflows_are_quantiles_below_a_row_for_each_connection(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(run(10, 5), capsys)
    assert not any("→" in line for line in lines)
    assert [line.split()[0] for line in lines if line.startswith("c")] == ["connection", *(f"c{n}" for n in range(10))]
    assert "bulk over mptcp: 10 connections, 50 subflows, 360.00 Mbps together" in lines
    assert not any(line.startswith("connection, Mbps") for line in lines)
    assert row(lines, "subflow, RTT ms").startswith("1.00 1.00 3.00 5.00 5.00")


def test_more_connections_are_quantiles_too(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(run(101, 2), capsys)
    assert lines[:2] == ["the title", "bulk over mptcp: 101 connections, 202 subflows, 40,400 Mbps together"]
    figures = row(lines, "connection, Mbps")
    assert figures.startswith("0.00 40.00 400.00 760.00 800.00")
    assert figures.endswith("c0 c100")
    assert row(lines, "subflow, Mbps").startswith("0.00 20.00 200.00 380.00 400.00")
    assert row(lines, "subflow, resent %").endswith("200 alike 200 alike")
    assert len(lines) < 20


def test_transfers_one_after_the_other_have_no_more_together_than_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Fifty times 10 kB in 20 ms each, which is 4 Mbps."""
    each = SECOND // 50
    recording = run(50, 1, received=lambda number: 10_000, lasts=lambda number: (number * each, (number + 1) * each))
    lines = shown(recording, capsys)
    assert row(lines, "connection, Mbps").startswith("4.00 4.00 4.00 4.00 4.00")
    assert "bulk over mptcp: 50 connections, 50 subflows, 4.00 Mbps together" in lines


@pytest.mark.parametrize("connections", [1, 50])
def test_what_was_sent_again_is_part_of_what_was_sent(connections: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever of it arrived; blank where nothing was sent."""
    sent = [(3_000, 1_000), (1_000, 4_000), (0, 0)]
    lines = shown(run(connections, 3, received=lambda number: 3, sent=lambda subflow, part: sent[subflow]), capsys)
    if connections == 1:
        cells = [[cell for cell in line.split() if cell.endswith("%")] for line in lines if "→" in line]
        assert cells == [["100.0%", "25.00%"], ["0.0%", "80.00%"], ["0.0%"]]
    else:
        assert row(lines, "subflow, resent %").startswith("25.00 25.00 52.50 80.00 80.00")


def test_a_single_subflow_has_no_share(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(run(50, 1), capsys)
    assert not any("share" in line for line in lines)


def test_what_failed_is_counted_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    recording = run(
        60,
        3,
        received=lambda number: 0 if number in (7, 31) else 1_000_000,
        state=lambda number: "reset" if number == 9 else "timed-out" if number > 49 else "open",
        established=lambda number, subflow: None if subflow and number < 10 else 1,
        delays=(5_000_000, None),
        work={"kind": "request-response", "count": 2},
    )
    lines = shown(recording, capsys)
    text = " ".join(lines)
    assert "1 connection reset: c9" in lines
    assert "10 connections timed-out: c50, c51, c52, c53, c54, c55, c56, c57 and 2 more" in lines
    assert "2 connections without a byte delivered: c7, c31" in lines
    assert "60 connections unfinished: c0, c1, c2, c3, c4, c5, c6, c7 and 52 more" in lines
    assert "60 connections with requests unanswered: c0, c1, c2, c3, c4, c5, c6, c7 and 52 more" in lines
    assert (
        "20 subflows not established: c0 (2), c1 (2), c2 (2), c3 (2), c4 (2), c5 (2), c6 (2), c7 (2) and 2 more" in text
    )
    assert "120 requests, 60 unanswered" in lines[1]


def test_what_is_unfinished_or_unanswered_counts_as_the_longest(capsys: pytest.CaptureFixture[str]) -> None:
    """As in every other figure of completion times and delays."""
    delays = (5_000_000, 7_000_000, 9_000_000, None)
    recording = run(
        50,
        1,
        lasts=lambda number: (0, None if number < 3 else number * 100_000_000),
        received=lambda number: 1_000,
        delays=delays,
        work={"kind": "request-response", "count": 3},
    )
    lines = shown(recording, capsys)
    answered, finished = (metrics.Delays.of(of) for of in (delays * 50, [None] * 3 + [1e8 * n for n in range(3, 50)]))
    for figure, unit, known, whose in (
        ("request, ms", 1e6, answered, "50 alike 50 alike"),
        ("completion, s", 1e9, finished, "c3 3 alike"),
    ):
        quantiles = [known.quantile(part) for part in (0.0, 0.05, 0.5, 0.95, 1.0)]
        assert quantiles[3:] == [None, None]
        cells = " ".join(f"{value / unit:.2f}" for value in quantiles if value is not None)
        assert row(lines, figure) == f"{cells} {whose}"
    assert "What is unfinished or unanswered is longer than all else: a blank depends on it." in lines
    assert not any("depends" in line for line in shown(run(50, 1), capsys))


def test_figures_take_no_search_for_each_subflow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many operations on tables for 400 subflows as for 100."""
    from polypath.measures.summary import summary

    def operations(recording: Recording) -> int:
        count = 0

        def counted(frame: pl.DataFrame, *given: Any, **options: Any) -> pl.DataFrame:
            nonlocal count
            count += 1
            found: pl.DataFrame = original(frame, *given, **options)
            return found

        for name in ("filter", "sort", "unique", "group_by"):
            original = getattr(pl.DataFrame, name)
            monkeypatch.setattr(pl.DataFrame, name, counted)
            result.show(recording, "")
            summary(recording)
            monkeypatch.setattr(pl.DataFrame, name, original)
        return count

    assert operations(run(50, 8)) == operations(run(50, 2))


def swept(connections: int, late: int) -> StoredSweep:
    """Two seeds at each of two rates; connection n has n Mbps and takes n s, and the last `late` do not finish."""
    axes = [Axis("rate", ("1", "2"), (1.0, 2.0), "Mbps"), Axis("seed", ("1", "2"), (1.0, 2.0), "")]
    each: list[dict[str, Any]] = [
        {
            "connection": f"c{n}",
            "goodput_mbps": float(n),
            "completion_s": float(n) if n < connections - late else None,
            "finished": n < connections - late,
            "requests": None,
        }
        for n in range(connections)
    ]
    places = [{"rate": rate, "seed": seed} for rate in axes[0].labels for seed in axes[1].labels]
    points = table(axes, [(place, each) for place in places])
    return StoredSweep("sweep", axes, points, over_seeds(points, axes), [])


@pytest.mark.parametrize(("late", "most"), [(0, "40"), (3, "3 of 41 not done")])
def test_a_sweep_of_more_connections_has_three_rows_a_place(
    late: int, most: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sweeps.show(swept(many.ROWS + 1, late))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    place = ["least 0 0 2", "median 20 20 2", f"most 40 {most} 2"]
    assert lines[2:8] == [f"{rate} {row}" for rate in ("1", "2") for row in place]
    assert lines[8] == "of the means of 41 connections; the files have each of them"


def test_a_sweep_of_forty_connections_has_a_row_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    sweeps.show(swept(many.ROWS, 1))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert len([line for line in lines if line.startswith(("1 c", "2 c"))]) == 2 * many.ROWS
    assert "2 c39 39 = 0 of 2 done 2" in lines


def test_figures_that_some_runs_lack_are_of_fewer_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    axes = [Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0), "")]
    rows = [
        ({"seed": seed}, [{"connection": "get", "goodput_mbps": float(seed), "reassembly_max_bytes": held}])
        for seed, held in zip("123", (1000, None, 3000), strict=True)
    ]
    points = table(axes, rows)
    sweeps.show(StoredSweep("sweep", axes, points, over_seeds(points, axes), []))
    assert any(line.rstrip().endswith("2 to 3") for line in capsys.readouterr().out.splitlines())


def test_the_median_of_an_even_number_of_connections_is_between_two(capsys: pytest.CaptureFixture[str]) -> None:
    sweeps.show(swept(many.ROWS + 2, 0))
    assert "1 median 20.5 20.5 2" in [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    sweeps.show(swept(many.ROWS + 2, many.ROWS // 2 + 1))
    assert "1 median 20.5 21 of 42 not done 2" in [
        " ".join(line.split()) for line in capsys.readouterr().out.splitlines()
    ]
