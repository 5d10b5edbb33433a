"""What the plan changed in a run, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.handmade_plans import as_plan

from polypath.results.changes import Change, changes

from ..conftest import MS, SECOND, handmade, table


def changed(events: Sequence[tuple[int, Mapping[str, Any]]], happened: Sequence[int] | None = None) -> list[Change]:
    """Those of the handmade run, were these its events."""
    times = [time for time, _ in events] if happened is None else happened
    rows = [[time, "link-changed", None, None, None, 0, None, ""] for time in times]
    recording = handmade()
    plan = as_plan({**recording.plan, "events": [{"at_ns": time, "action": action} for time, action in events]})
    return changes(replace(recording, plan=plan, tables={**recording.tables, "events": table("events", rows)}))


def link(number: int = 0, direction: str = "both", **action: Any) -> dict[str, Any]:
    return {"kind": "link", "link": number, "direction": direction, **action}


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (link(up=False), "path0: down"),
        (link(1, up=True), "path1: up"),
        (link(up=None, rate_bps=2_500_000), "path0: 2.5 Mbps"),
        (link(rate_bps=0), "path0: 0 Mbps"),
        (link(delay_ns=15 * MS), "path0: 15 ms"),
        (link(direction="forward", delay_ns=0), "path0 forward: 0 ms"),
        (link(loss={"kind": "random", "probability": 0.015}), "path0: 1.5 % loss"),
        (link(loss={"kind": "gilbert-elliott"}), "path0: loss gilbert-elliott"),
        (link(queue={"kind": "red"}), "path0: another queue"),
        (link(queue=None, up=False, rate_bps=1_000_000, delay_ns=MS), "path0: down, 1 Mbps, 1 ms"),
        ({"kind": "interface", "node": 0, "interface": 1, "up": False}, "client eth1: down"),
        ({"kind": "interface", "node": 0, "interface": 0, "up": True}, "client eth0: up"),
        ({"kind": "migrate", "node": 0, "interface": 0, "to": 1}, "client eth0: migrates to eth1"),
        ({"kind": "priority", "node": 0, "interface": 1, "backup": True}, "client eth1: backup"),
        ({"kind": "priority", "node": 0, "interface": 1, "backup": False}, "client eth1: normal"),
    ],
)
def test_a_change_has_words(action: Mapping[str, Any], text: str) -> None:
    assert changed([(SECOND, action)]) == [Change(SECOND, text)]


def test_changes_are_in_order_and_those_of_an_instant_are_one() -> None:
    later = [(2 * SECOND, link(up=True)), (SECOND, link(up=False)), (SECOND, link(1, up=False))]
    assert changed(later) == [Change(SECOND, "path0: down, path1: down"), Change(2 * SECOND, "path0: up")]
    same = [(SECOND, link(up=False)), (SECOND, link(up=False))]
    assert changed(same) == [Change(SECOND, "path0: down")]
    many = [(SECOND, link(number, up=False)) for number in range(3)]
    assert changed(many) == [Change(SECOND, "path0: down, path1: down and 1 more")]


def test_what_did_not_come_to_pass_is_left_out() -> None:
    events = [(SECOND, link(up=False)), (9 * SECOND, link(up=True))]
    assert changed(events, happened=[SECOND]) == [Change(SECOND, "path0: down")]
    assert changed([]) == []


def test_a_time_in_seconds() -> None:
    assert Change(1_500 * MS, "").time_s == 1.5
