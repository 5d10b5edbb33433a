"""The long table of a sweep's points, out of summaries."""

from __future__ import annotations

from typing import Any

import pytest

from polypath.measures.summary import summary
from polypath.results import Recording
from polypath.results.axes import Axis
from polypath.statistics.points import rows, table


@pytest.fixture
def plan(recording: Recording) -> Any:
    """The handmade plan with the addresses of its subflows."""
    addresses: list[list[list[str]]] = [[["10.0.0.1"], ["fd00::1"]], [[], [], []], [["10.1.0.1", "fd01::1"]]]
    nodes: list[dict[str, Any]] = [dict(node) for node in recording.plan["nodes"]]
    for node, own in zip(nodes, addresses, strict=True):
        node["interfaces"] = [{**one, "addresses": own[number]} for number, one in enumerate(node["interfaces"])]
    return {**recording.plan, "nodes": nodes}


def test_a_row_has_the_figures_of_its_connection(recording: Recording, plan: Any) -> None:
    iperf, msg, cross = rows(summary(recording), plan)
    assert iperf == {
        "connection": "iperf",
        "application": "bulk",
        "transport": "mptcp",
        "goodput_mbps": 12.0,
        "completion_s": 2.0,
        "bytes": 3_000_000,
        "subflows": 2,
        "retransmitted_bytes": 50_000,
        "reinjected_bytes": 7_000,
        "reassembly_max_bytes": 0,
        "finished": True,
        "requests": None,
        "unanswered": None,
        "delay_median_s": None,
        "delay_p95_s": None,
        "delay_p99_s": None,
        "flows": None,
        "flows_unfinished": None,
        "flow_mean_s": None,
        "flow_median_s": None,
        "flow_p95_s": None,
        "flow_p99_s": None,
        "flow_times_s": None,
        "video_rate_mbps": None,
        "video_startup_s": None,
        "video_stalled_s": None,
        "video_switches": None,
        "page_load_s": None,
        "first_object_s": None,
        "cost": None,
        "priced_bytes": None,
        "over_cap_bytes": None,
        "interface": ["eth0", "eth1"],
        "subflow_share": [0.666667, 0.333333],
        "subflow_goodput_mbps": [8.0, 4.0],
        "links_mbps": 30.0,
        "rtt_s": 0.08,
        "rule_of_thumb_bytes": 2 * 30e6 / 8 * 0.08,
    }
    assert (msg["delay_median_s"], msg["delay_p95_s"], msg["completion_s"]) == (0.055, None, None)
    assert (msg["requests"], msg["unanswered"]) == (3, 1)
    assert (cross["subflows"], cross["links_mbps"], cross["retransmitted_bytes"]) == (0, None, None)


def test_what_an_engine_does_not_count_stays_unknown(recording: Recording, plan: Any) -> None:
    data = summary(recording)
    for subflow in data["connections"][0]["subflows"]:
        subflow["reinjected_bytes"] = None
    iperf = rows(data, plan)[0]
    assert (iperf["reinjected_bytes"], iperf["retransmitted_bytes"]) == (None, 50_000)


def test_axes_are_columns_of_labels_and_of_numbers(recording: Recording, plan: Any) -> None:
    axes = [
        Axis("link.path0.rate", ("1 Mbps", "2 Mbps"), (1e6, 2e6), "bps"),
        Axis("defaults.scheduler", ("default",)),
        Axis("paths", ("3",), (3.0,)),
        Axis("seed", ("7",), (7.0,)),
    ]
    place = {"link.path0.rate": "2 Mbps", "defaults.scheduler": "default", "paths": "3", "seed": "7"}
    made = table(axes, [(place, rows(summary(recording), plan))])
    assert made.columns[:6] == [
        "link.path0.rate",
        "link.path0.rate_bps",
        "defaults.scheduler",
        "paths",
        "paths_number",
        "seed",
    ]
    assert made.row(0)[:6] == ("2 Mbps", 2e6, "default", "3", 3.0, "7")
    assert made["connection"].to_list() == ["iperf", "msg", "cross"]


def test_no_points_are_a_table_without_rows() -> None:
    assert table([Axis("seed", ("1",), (1.0,))], []).is_empty()
