from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pytest

from polypath.labs.expectations import Row, bound, evaluate
from polypath.measures import REGISTRY
from polypath.results import Recording, schema
from polypath.results.metrics import MetricError


@dataclass(frozen=True)
class Expected:
    measure: str
    parameters: Mapping[str, Any]
    minimum: float | None = None
    maximum: float | None = None
    run: str = "mptcp"
    relative_to: Mapping[str, Any] | None = None
    unit: str = ""
    name: str = "a/b"
    published: str = "twice"
    at: Mapping[str, str] = field(default_factory=dict)
    along: str | None = None
    shape: str = "rising"
    share_above: float | None = None


MSG = {"connection": "msg"}
IPERF = {"connection": "iperf"}


@pytest.mark.parametrize(
    ("measure", "parameters", "value"),
    [
        ("goodput", IPERF, 12.0),
        ("goodput", IPERF | {"from_s": 2, "to_s": 3}, 16.0),
        ("goodput_mean", {}, (12 + 2 + 0.004) / 3),
        ("goodput_mean", {"from_s": 2, "to_s": 3}, (16 + 2 + 0.004) / 3),
        ("throughput_mean", {"payload_bytes": 1400, "wire_bytes": 1500}, (12 + 2 + 0.004) / 3 * 15 / 14),
        # all of them have one client, which sends the most of two and receives the most of `msg`
        ("host_throughput", {"payload_bytes": 1400, "wire_bytes": 1500}, (12 + 2 + 0.004) / 2 * 15 / 14),
        ("host_throughput", {"payload_bytes": 1400, "wire_bytes": 1500, "least": True}, 0.004 * 15 / 14),
        ("flow_mean", {"group": "web"}, 2000.0),
        ("flow_median", {"group": "web"}, 2000.0),
        ("link_use", {"links": "path*"}, 0.25),
        ("completion", IPERF, 2.0),
        ("completion", MSG, None),
        ("subflows", IPERF, 2.0),
        ("delay_min", MSG, 45.0),
        ("delay_max", IPERF, None),
        ("delay_first", MSG, 55.0),
        ("delay_first", MSG | {"skip": 1}, 45.0),
        ("delay_mean", IPERF, None),
        ("delay_fraction", MSG | {"low_ms": 50, "high_ms": 60}, 1 / 3),
        ("delay_fraction", MSG | {"low_ms": 50, "high_ms": 60, "skip": 1}, 0.0),
        ("delay_count_between", MSG | {"low_ms": 45, "high_ms": 55}, 2.0),
        ("unanswered", MSG, 1.0),
        ("delay_median", MSG, 55.0),
        ("delay_median", MSG | {"skip": 1}, None),
        ("retransmitted", IPERF, 50.0),
        ("reassembly_max", IPERF, 0.0),
        ("subflow_goodput", IPERF | {"interface": "eth1"}, 4.0),
        ("srtt", IPERF | {"interface": "eth0"}, 50.0),
        ("resent", IPERF | {"interface": "eth0"}, 1 / 43),
        ("fallback", IPERF, 0.0),
        ("counter", {"counter": "TcpRetransSegs"}, 35.0),
        ("counter", {"counter": "TcpRetransSegs", "host": "server"}, 0.0),
        # subflow 0 carried all of the bytes that have segments, in 175 blocks of which each has its predecessor
        ("exposure", IPERF, 1.0),
        ("exposure_cbc", IPERF, 1.0),
        ("subflow_share", IPERF | {"interface": "eth1"}, 1 / 3),
        ("subflow_share", IPERF | {"interface": ["eth0", "eth1"]}, 1.0),
        ("alternations", IPERF | {"interface": ["eth0", "eth1"]}, 0.0),
        ("share_of", {"connections": ["iperf", "cross"], "numerator": "cross", "from_s": 1, "to_s": 3}, 1 / 7),
        ("blocked_time", {"connection": "iperf"}, 0.55),
        ("blocked_data", {"connection": "iperf"}, 5.75),
        ("reinjected", IPERF, 7.0),
        ("packets", {"link": "path0", "direction": "forward"}, 1400.0),
        ("packets", {"link": "path0", "direction": "backward"}, 700.0),
        ("queue_max", {"link": "path0", "direction": "forward"}, 80.0),
        ("queue_mean", {"link": "path0", "direction": "forward"}, 7.0),
        ("queue_mean", {"link": "path0", "direction": "forward", "from_s": 2}, 10.0),
        ("window_mean", IPERF | {"interface": "eth0"}, 10.0),
        ("window_mean", IPERF | {"interface": "eth0", "from_s": 9}, None),
        ("sent", IPERF | {"interface": "eth0"}, 2100.0),
        ("sent", IPERF | {"interface": "eth0", "side": "server"}, 0.0),
        ("goodput_mean", {"connections": ["iperf", "cross"], "from_s": 1, "to_s": 3}, 7.0),
        (
            "throughput_mean",
            {"connections": ["iperf", "cross"], "from_s": 1, "to_s": 3, "payload_bytes": 1400, "wire_bytes": 1500},
            7.5,
        ),
        ("jain", {"connections": ["iperf", "cross"], "from_s": 1, "to_s": 3}, 196 / 296),
        ("established", IPERF, 40.0),
        ("unfinished", {}, 0.0),
        ("packet_ins", {}, 5.0),
        ("flow_mods", {}, 30.0),
        ("table_entries", {}, 9.0),
        ("table_drops", {}, 1.0),
        ("setup_mean", {}, 11.0),
        ("setup_max", {}, 12.0),
    ],
)
def test_measures(recording: Recording, measure: str, parameters: Mapping[str, Any], value: float | None) -> None:
    assert REGISTRY[measure](_grouped(_queued(_ruled(recording))), parameters) == pytest.approx(value)


def _queued(recording: Recording, packets: Sequence[int] = (1, 2, 18)) -> Recording:
    """The recording with samples of a queue, one a second."""
    rows = [
        {
            **dict.fromkeys(schema.TABLES["links"], 0),
            "time_ns": second * 10**9,
            "direction": "forward",
            "queue_packets": each,
        }
        for second, each in enumerate(packets, start=1)
    ]
    links = pl.DataFrame(rows, schema=dict(schema.TABLES["links"]))
    return replace(recording, tables={**recording.tables, "links": links})


def test_a_percentile_of_a_queue_is_one_of_its_samples(recording: Recording) -> None:
    queue = REGISTRY["queue_p95"]
    of = {"link": "path0", "direction": "forward"}
    assert queue(_queued(recording, range(100)), of) == 94.0
    assert queue(_queued(recording), of | {"from_s": 9}) is None
    with pytest.raises(MetricError, match=r"^no link is called 'core'$"):
        queue(recording, {"link": "core", "direction": "forward"})
    with pytest.raises(MetricError, match=r"^a direction is forward or backward, not 'up'$"):
        queue(recording, {"link": "path0", "direction": "up"})


def _grouped(recording: Recording) -> Recording:
    """The recording, with its transfer in a group."""
    iperf, *others = recording.plan["applications"]
    return replace(recording, plan={**recording.plan, "applications": [{**iperf, "group": "web"}, *others]})


def test_a_mean_of_completions_needs_the_group_and_all_of_its_flows(recording: Recording) -> None:
    with pytest.raises(MetricError, match=r"^there is no group 'wep' of flows; there is web$"):
        REGISTRY["flow_mean"](_grouped(recording), {"group": "wep"})
    ends = recording.table("connection_ends").with_columns(end_ns=pl.lit(None, pl.Int64))
    open_ended = replace(recording, tables={**recording.tables, "connection_ends": ends})
    assert REGISTRY["flow_mean"](_grouped(open_ended), {"group": "web"}) is None


def test_links_that_are_not_there_have_no_use(recording: Recording) -> None:
    with pytest.raises(MetricError, match=r"^no link is called 'core\*'$"):
        REGISTRY["link_use"](recording, {"links": "core*"})


def _ruled(recording: Recording, *delays: int | None) -> Recording:
    """The recording with what a controller of two switches leaves, and flows that waited so many milliseconds."""
    ends = [
        {**dict.fromkeys(schema.TABLES["switch_ends"], 0), "name": name, "packet_ins": ins, "flow_mods": mods}
        for name, ins, mods in (("a", 2, 10), ("b", 3, 20))
    ]
    ends[0]["max_entries"], ends[1]["max_entries"], ends[1]["dropped_packets"] = 9, 4, 1
    waited = [None if each is None else each * 1_000_000 for each in delays or (10, 12)]
    setups = [{**dict.fromkeys(schema.TABLES["flow_setups"]), "delay_ns": each} for each in waited]
    found = {"switch_ends": ends, "flow_setups": setups}
    tables = {name: pl.DataFrame(rows, schema=dict(schema.TABLES[name])) for name, rows in found.items()}
    return replace(recording, tables={**recording.tables, **tables})


def test_a_flow_that_was_never_set_up_is_longer_than_any_other(recording: Recording) -> None:
    ruled = _ruled(recording, 10, None)
    assert REGISTRY["setup_mean"](ruled, {}) is None
    assert REGISTRY["setup_max"](ruled, {}) is None


def test_a_measure_of_a_controller_needs_one(recording: Recording) -> None:
    with pytest.raises(MetricError, match="measure 'packet_ins': the run has no controller"):
        REGISTRY["packet_ins"](recording, {})


@pytest.mark.parametrize(
    ("measure", "parameters", "value"),
    [
        ("delay_max", MSG, 55.0),
        ("delay_max", MSG | {"skip": 1}, 45.0),
        ("delay_mean", MSG, 50.0),
        ("delay_mean", MSG | {"last": 1}, 45.0),
    ],
)
def test_delays_of_all_requests(
    recording: Recording,
    changed: Callable[[str, pl.DataFrame], Recording],
    measure: str,
    parameters: Mapping[str, Any],
    value: float,
) -> None:
    answered = changed("requests", recording.table("requests").drop_nulls("delay_ns"))
    assert REGISTRY[measure](answered, parameters) == pytest.approx(value)
    with pytest.raises(MetricError, match=r"^1 of \d requests are unanswered$"):
        REGISTRY[measure](recording, parameters)


def test_every_measure_is_tested_above() -> None:
    """Or, of what the Recording made by hand lacks, in tests/engines (videos and pages), test_costs.py,
    test_tunnels.py and test_measures.py (percentiles of many)."""
    (mark,) = (mark for mark in test_measures.pytestmark)
    videos = {name for name in REGISTRY if name.startswith("video_")}
    elsewhere = videos | {"page_load", "first_object", "cost", "priced", "over_cap", "dear_share"}
    elsewhere |= {"tunnel_lost", "tunnel_dropped", "tunnel_late"}
    elsewhere |= {name for name in REGISTRY if name.endswith(("_p95", "_p99"))}
    assert {case[0] for case in mark.args[1]} == REGISTRY.keys() - elsewhere


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({}, "measure 'goodput': missing a required argument: 'connection'"),
        (IPERF | {"form_s": 1}, "measure 'goodput': got an unexpected keyword argument 'form_s'"),
        ({"connection": "ftp"}, "no connection is named 'ftp' (there: cross, iperf, msg)"),
    ],
)
def test_wrong_parameters(recording: Recording, parameters: Mapping[str, Any], complaint: str) -> None:
    with pytest.raises(MetricError) as caught:
        REGISTRY["goodput"](recording, parameters)
    assert str(caught.value) == complaint


def test_what_has_no_connection_is_never_established(recording: Recording) -> None:
    with pytest.raises(MetricError, match=r"^measure 'established': 'cross' has no connection$"):
        REGISTRY["established"](recording, {"connection": "cross"})
    ends = recording.table("connection_ends").with_columns(established_ns=pl.lit(None, pl.Int64))
    in_vain = replace(recording, tables={**recording.tables, "connection_ends": ends})
    assert REGISTRY["established"](in_vain, IPERF) is None


@pytest.mark.parametrize(
    ("minimum", "maximum", "ok"),
    [(12, 12, True), (11.9, 12.1, True), (12.1, None, False), (None, 11.9, False), (None, 12, True), (12, None, True)],
)
def test_bounds_are_inclusive(recording: Recording, minimum: float | None, maximum: float | None, ok: bool) -> None:
    row = evaluate(Expected("goodput", IPERF, minimum, maximum, unit="Mbps"), {"mptcp": recording})
    assert (row.ok, row.measured) == (ok, "12 Mbps")


def test_relative_to_another_connection(recording: Recording) -> None:
    expected = Expected("goodput", IPERF, 5.9, 6.1, relative_to={"connection": "cross", "run": "tcp"}, unit="x")
    runs = {"mptcp": recording, "tcp": recording}
    assert evaluate(expected, runs) == Row("a/b", "twice", "5.9 to 6.1 x", "6 x", True)


def test_relative_as_a_difference(recording: Recording) -> None:
    expected = Expected(
        "goodput", IPERF, 9.9, 10.1, relative_to={"connection": "cross", "by": "difference"}, unit="Mbps"
    )
    assert evaluate(expected, {"mptcp": recording}).measured == "10 Mbps"
    unknown = Expected("goodput", IPERF, 1, relative_to={"connection": "cross", "by": "ratio"})
    assert (
        evaluate(unknown, {"mptcp": recording}).measured
        == "relative by 'ratio'; there is quotient, difference, aggregation-benefit"
    )


@pytest.mark.parametrize(
    ("expected", "measured"),
    [
        (Expected("goodput", {"connection": "ftp"}, 1), "no connection is named 'ftp' (there: cross, iperf, msg)"),
        (Expected("gooput", IPERF, 1), "unknown measure 'gooput'; did you mean 'goodput'?"),
        (Expected("goodput", IPERF, 1, run="tcp"), "unknown run 'tcp' (there: mptcp)"),
        (Expected("completion", MSG, 1), "no data"),
    ],
)
def test_what_cannot_be_computed_is_a_miss(recording: Recording, expected: Expected, measured: str) -> None:
    row = evaluate(expected, {"mptcp": recording})
    assert (row.ok, row.measured) == (False, measured)


@pytest.mark.parametrize(
    ("minimum", "maximum", "words"),
    [
        (1, 1, "1 ms"),
        (1, 2.5, "1 to 2.5 ms"),
        (1, None, "at least 1 ms"),
        (None, 2, "at most 2 ms"),
        (None, None, "any"),
    ],
)
def test_bounds_in_words(minimum: float | None, maximum: float | None, words: str) -> None:
    assert bound(Expected("goodput", {}, minimum, maximum, unit="ms")) == words
