"""What is said of a connection below its row."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from polypath.results import Recording, metrics, notes


def told(recording: Recording, name: str) -> list[str]:
    of = metrics.connection(recording, name)
    return list(notes.of(recording, of, metrics.subflows(recording, of)))


def test_datagrams_have_their_losses_and_their_delay(recording: Recording) -> None:
    line = "cross: 500 of 600 datagrams arrived, 16.67% lost"
    assert told(recording, "cross") == [f"{line}, mean delay 21.0 ms"]
    silent = recording.table("datagrams").with_columns(pl.lit(None, pl.Int64).alias("delay_mean_ns"))
    assert told(replace(recording, tables={**recording.tables, "datagrams": silent}), "cross") == [line]


@pytest.mark.parametrize(("answers", "unfinished"), [(0, True), (1, True), (2, False)])
def test_requests_are_finished_once_all_of_them_are_answered(
    recording: Recording, answers: int, unfinished: bool
) -> None:
    plan = json.loads(json.dumps(recording.plan))
    plan["applications"][1]["work"] |= {"count": 2 if answers else 1}
    ends = recording.table("connection_ends").with_columns(end_ns=pl.lit(3_000_000_000, pl.Int64))
    requests = recording.table("requests").sort("index").head(answers)
    tables = {**recording.tables, "connection_ends": ends, "requests": requests}
    of = metrics.connection(replace(recording, tables=tables, plan=plan), "msg")
    assert of.finished is not unfinished
