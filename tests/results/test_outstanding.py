"""What fell silent at the end, and what had only nothing to send."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from polypath.engines import get
from polypath.results import Recording, metrics, notes, outstanding
from polypath.scenario import Scenario

TEXT = """
duration = "30 s"
host = {{ client = {{}}, server = {{}} }}
link.wifi = {{ ends = ["client", "server"], rate = "20 Mbps", delay = "10 ms" }}
link.lte = {{ ends = ["client", "server"], rate = "20 Mbps", delay = "10 ms" }}
application = [{{ name = "it", {} }}]
"""
DOWN = 'event = [{ at = "12 s", link = "wifi", up = false }, { at = "12 s", link = "lte", up = false }]\n'
IDLE = {
    "video": 'kind = "video", rates = ["1 Mbps"], segment = "10 s", buffer = "40 s"',
    "stream": 'kind = "stream", rate = "1 Mbps", block = "1 MB"',
    "messages": 'kind = "messages", size = "1 kB", interval = "8 s", delivery = "stream"',
    "requests": 'kind = "request-response", count = 100, request = "100 B", response = "1 kB", interval = "8 s"',
}


def run(text: str) -> Recording:
    return get("sim").run(Scenario.parse(text, "idle.toml").plan())


def told(recording: Recording) -> str:
    connection = metrics.connection(recording, "it")
    return "\n".join(notes.of(recording, connection, metrics.subflows(recording, connection)))


@pytest.mark.parametrize("work", IDLE.values(), ids=IDLE)
def test_what_had_nothing_to_send_at_the_end_did_not_fall_silent(work: str) -> None:
    recording = run(TEXT.format(work))
    connection = metrics.connection(recording, "it")
    assert recording.metadata.end_ns - (connection.last_byte_ns or 0) > outstanding.SILENT_NS
    lately = [line for line in told(recording).splitlines() if "nothing arrived after" in line]
    # a subflow that the scheduler left out is one that others have overtaken
    assert [line for line in lately if line.startswith("it:")] == []
    assert len(lately) < len(metrics.subflows(recording, connection))


@pytest.mark.parametrize("work", [*IDLE.values(), 'kind = "bulk"'], ids=[*IDLE, "bulk"])
def test_what_had_something_to_send_fell_silent(work: str) -> None:
    recording = run(TEXT.format(work) + DOWN)
    (of,) = metrics.connections(recording)
    assert of.end_ns is not None or told(recording).startswith("it: ")
    assert "nothing arrived after" in told(recording)


def test_bytes_that_wait_only_in_the_end_do_not_count(recording: Recording) -> None:
    of = metrics.connection(recording, "msg")
    end = recording.metadata.end_ns

    def with_queues(*sizes: int | None) -> Recording:
        tables = {**recording.tables, "requests": recording.table("requests").clear()}
        rows: list[dict[str, Any]] = [
            {"time_ns": end - 800_000_000 + 200_000_000 * number, "connection": of.id, "side": "client"}
            | {"delivered_bytes": 0, "send_queue_bytes": size}
            for number, size in enumerate(sizes)
        ]
        samples = recording.table("connections")
        made = pl.DataFrame(rows, schema=samples.schema)
        return replace(recording, tables={**tables, "connections": pl.concat([samples, made])})

    assert outstanding.something_is(with_queues(1000, 1000, 500), of)
    assert not outstanding.something_is(with_queues(1000, 0, 500), of)
    assert not outstanding.something_is(with_queues(), of)
    assert not outstanding.something_is(with_queues(None, None), of)


@pytest.mark.parametrize(("kind", "is_due"), [("request-response", True), ("messages", False)])
def test_a_message_that_others_have_overtaken_is_lost_and_a_request_is_waited_for(
    recording: Recording, kind: str, is_due: bool
) -> None:
    """The third request, at 2 s of 4, has no answer."""
    tables = {**recording.tables, "connections": recording.table("connections").clear()}
    plan = json.loads(json.dumps(recording.plan))
    plan["applications"][1]["work"]["kind"] = kind
    made = replace(recording, tables=tables, plan=plan)
    of = metrics.connection(made, "msg")
    assert outstanding.something_is(made, replace(of, last_byte_ns=2_500_000_000)) is is_due
    assert outstanding.something_is(made, replace(of, last_byte_ns=1_500_000_000))
