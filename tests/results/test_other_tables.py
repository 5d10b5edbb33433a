"""What a run tells besides its connections."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from tests.handmade_plans import as_plan

from polypath import Recording
from polypath.cli import result
from polypath.results import other_tables, schema

RULE = {"routing": {"name": "ecmp"}, "mode": "reactive"}
SWITCH = {"switch": 3, "name": "s", "max_entries": 1_024, "packet_ins": 1_500, "flow_mods": 2}
SETUPS = [{"switch": 3, "delay_ns": delay} for delay in (2_000_000, 1_234_567_890, None)]
PROGRAMS = [
    {"name": "load", "host": "a", "start_ns": 0, "end_ns": 1_500_000_000, "state": "exited", "exit_code": 1},
    {"name": "[serve]", "host": "b", "start_ns": 0, "end_ns": None, "state": "open", "exit_code": None},
]


def with_tables(recording: Recording, **rows: Sequence[Mapping[str, Any]]) -> Recording:
    tables = {
        name: pl.DataFrame(
            [{**dict.fromkeys(schema.TABLES[name], 0), **each} for each in own], dict(schema.TABLES[name])
        )
        for name, own in rows.items()
    }
    return replace(
        recording, tables={**recording.tables, **tables}, plan=as_plan({**recording.plan, "controller": RULE})
    )


def test_what_was_not_there_has_no_table(recording: Recording) -> None:
    assert list(other_tables.tables(recording)) == []


def test_a_flow_that_was_never_sent_on_leaves_blanks(recording: Recording) -> None:
    (found,) = other_tables.tables(with_tables(recording, switch_ends=[SWITCH], flow_setups=SETUPS))
    assert found.rows == [("ecmp, reactive", "1,500", "2", "1,024", "3", "", "1,235", "", "")]
    assert len(found.headings) == len(found.rows[0])
    assert found.note == "1 of these flows was never sent on: a blank depends on one."


def test_programs_alone_are_under_the_title(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    alone = with_tables(replace(recording, tables={}, plan={**recording.plan, "applications": []}), programs=PROGRAMS)
    result.show(alone, "title")
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["title"],
        ["program", "host", "ended", "from", "s", "to", "s", "exit", "code", "printed", "B"],
        ["load", "a", "by", "itself", "0.000", "1.500", "1", "0"],
        ["[serve]", "b", "not", "0.000", "0"],
    ]
