"""A video of five segments that a person played on paper; players are tested in tests/engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from tests.handmade_plans import as_plan

from polypath import measures
from polypath.measures.summary import summary
from polypath.results import Recording, metrics, video
from polypath.results.metrics import SECOND
from polypath.results.video import Stall

from ..conftest import handmade, table

#: Of each segment in s: asked for, arrived, played; and its rate in Mbps. The run ends after 4 s.
CHUNKS: Sequence[tuple[float, float | None, float | None, int]] = (
    (0.1, 0.5, 0.6, 1),
    (0.5, 1.0, 1.1, 2),
    (1.0, 2.0, 2.0, 2),
    (2.0, 2.2, 2.5, 1),
    (2.2, None, None, 3),
)


def at(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND)


def film(chunks: Sequence[tuple[float, float | None, float | None, int]] = CHUNKS, segments: int = 5) -> Recording:
    """The handmade run, with a video in the place of its transfer."""
    recording = handmade()
    applications: list[Any] = [dict(each) for each in recording.plan["applications"]]
    applications[0]["work"] = {"kind": "video", "segment_ns": SECOND // 2, "segments": segments}
    rows = [
        [0, index, at(asked), at(arrived), rate, rate * 1_000_000, 1000, 0, at(played)]
        for index, (asked, arrived, played, rate) in enumerate(chunks)
    ]
    # another application's are nobody's business, and rows may come in any order
    rows = [[1, 0, 0, 0, 9, 9_000_000, 1, 0, 0], *reversed(rows)]
    tables = {**recording.tables, "chunks": table("chunks", rows)}
    return replace(recording, plan=as_plan({**recording.plan, "applications": applications}), tables=tables)


def failed(*, interrupted: bool = False) -> Recording:
    """The film when its connection failed after 3.05 s, and the run of a scenario of 10 s with it after 4 s.

    The segment that came last is played after the run's end.
    """
    recording = film([*CHUNKS[:3], (2.0, 2.2, 4.2, 1), CHUNKS[4]])
    ends = recording.table("connection_ends")
    state = pl.when(ends["application"] == 0).then(pl.lit("timed-out")).otherwise(ends["state"]).alias("state")
    return replace(
        recording,
        plan={**recording.plan, "duration_ns": 10 * SECOND},
        tables={**recording.tables, "connection_ends": ends.with_columns(state)},
        metadata=replace(recording.metadata, interrupted=interrupted),
    )


def of(recording: Recording) -> metrics.Connection:
    return metrics.connection(recording, "iperf")


def test_what_was_seen_until_the_end() -> None:
    recording = film()
    found = video.playback(recording, of(recording))
    assert found is not None
    assert found.startup_ns == SECOND // 2
    assert found.stalls == [Stall(1_600_000_000, 2 * SECOND), Stall(3 * SECOND, 4 * SECOND)]
    assert found.stalled_ns == 1_400_000_000
    assert found.rate_bps == 1_500_000
    assert (found.switches, found.shown) == (2, 4)


def test_a_picture_at_the_end_is_not_seen_any_more() -> None:
    recording = film([*CHUNKS[:4], (2.2, 3.5, 4.0, 3)], segments=6)
    found = video.playback(recording, of(recording))
    assert found is not None
    assert (found.switches, found.shown) == (2, 4)


def test_a_whole_video_is_seen_to_its_end() -> None:
    """Its last segments may be shown after the run, which ends with the last byte."""
    recording = film([*CHUNKS[:4], (2.2, 3.5, 4.5, 3)])
    found = video.playback(recording, of(recording))
    assert found is not None
    assert found.stalls == [Stall(1_600_000_000, 2 * SECOND), Stall(3 * SECOND, 4_500_000_000)]
    assert found.rate_bps == 1_800_000
    assert (found.switches, found.shown) == (3, 5)


def test_a_video_whose_connection_failed_stands_still_until_the_scenario_ends() -> None:
    """As its goodput is taken: a transport that gives up soon, and ends the run, would be the better one."""
    recording = failed()
    found = video.playback(recording, of(recording))
    assert found is not None
    assert found.stalls[1:] == [Stall(2_500_000_000, 4_200_000_000), Stall(4_700_000_000, 10 * SECOND)]
    assert found.shown == 4
    times, depths = video.buffered(recording, of(recording))
    assert [(time / SECOND, depth) for time, depth in zip(times, depths, strict=True)][-3:] == [
        (4.2, 0.5),
        (4.7, 0.0),
        (10.0, 0.0),
    ]


def test_what_was_interrupted_is_seen_until_then() -> None:
    recording = failed(interrupted=True)
    found = video.playback(recording, of(recording))
    assert found is not None
    assert found.stalls[1:] == [Stall(2_500_000_000, 4 * SECOND)]
    assert found.shown == 3


def test_nothing_was_shown() -> None:
    recording = film([(0.1, None, None, 1)])
    found = video.playback(recording, of(recording))
    assert found == video.Playback(startup_ns=None, stalls=[], rate_bps=None, switches=0, shown=0)
    assert found.stalled_ns is None
    (told, *_) = summary(recording)["connections"]
    assert [told["video"][key] for key in ("mbps", "startup_s", "stalled_s")] == [None] * 3
    assert measures.REGISTRY["video_stalled"](recording, {"connection": "iperf"}) is None


def test_what_is_no_video_has_no_playback() -> None:
    recording = film()
    assert video.playback(recording, metrics.connection(recording, "msg")) is None


def test_what_is_there_to_play_rises_with_arrivals_and_falls_while_it_plays() -> None:
    recording = film()
    times, depths = video.buffered(recording, of(recording))
    line = [
        (0.5, 0.0),
        (0.5, 0.5),
        (0.6, 0.5),
        (1.0, 0.1),
        (1.0, 0.6),
        (1.1, 0.5),
        (1.6, 0.0),
        (2.0, 0.0),
        (2.0, 0.5),
        (2.2, 0.3),
        (2.2, 0.8),
        (2.5, 0.5),
        (3.0, 0.0),
        (4.0, 0.0),
    ]
    assert [time / SECOND for time in times] == [time for time, _ in line]
    assert depths == pytest.approx([depth for _, depth in line])


def test_what_was_asked_for() -> None:
    recording = film()
    times, rates = video.asked(recording, of(recording))
    assert times == [at(asked) for asked, *_ in CHUNKS]
    assert rates == [1e6, 2e6, 2e6, 1e6, 3e6]
