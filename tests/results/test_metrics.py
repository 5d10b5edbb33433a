from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest
from tests.handmade_plans import as_plan

from polypath.measures import REGISTRY
from polypath.results import Recording, metrics
from polypath.results.metrics import MetricError, connection

SECOND = 1_000_000_000


def test_goodput_is_all_bytes_over_the_time_to_the_last_byte(recording: Recording) -> None:
    assert metrics.goodput(recording, connection(recording, "iperf")) == 3_000_000 * 8 / 2


@pytest.mark.parametrize(
    ("work", "receiver"),
    [
        ({"kind": "bulk", "reverse": False}, "server"),
        ({"kind": "bulk", "reverse": True}, "client"),
        ({"kind": "bulk", "reverse": False, "reverse_bytes": 1000}, "client"),
        ({"kind": "stream", "reverse": False}, "server"),
        ({"kind": "messages", "reverse": True}, "client"),
        ({"kind": "fetch"}, "client"),
        ({"kind": "ping-pong"}, "client"),
    ],
)
def test_where_nothing_arrives_the_plan_says_who_receives(
    recording: Recording, work: dict[str, object], receiver: str
) -> None:
    first, *others = recording.plan["applications"]
    plan = as_plan({**recording.plan, "applications": [{**first, "work": work}, *others]})
    ends = recording.table("connection_ends").with_columns(server_received_bytes=pl.lit(0, pl.UInt64))
    after = replace(recording, plan=plan, tables={**recording.tables, "connection_ends": ends})
    assert connection(after, "iperf").receiver == receiver


def test_goodput_of_an_open_connection_is_over_the_time_to_the_end_of_the_run(recording: Recording) -> None:
    msg = connection(recording, "msg")
    assert (msg.receiver, msg.bytes, msg.until_ns) == ("client", 2000, 4 * SECOND)
    assert metrics.goodput(recording, msg) == 2000 * 8 / 4


@pytest.mark.parametrize(
    ("received", "state", "kind", "until"),
    [
        (2_000_000, "timed-out", "bulk", 10),
        (2_000_000, "reset", "bulk", 10),
        (3_000_000, "reset", "bulk", 3),
        (2_000_000, "closed", "bulk", 3),
        (2_000_000, "reset", "captured", 3),
    ],
)
def test_a_connection_that_fails_before_it_is_done_has_the_time_that_was_planned(
    recording: Recording, received: int, state: str, kind: str, until: int
) -> None:
    ends = recording.table("connection_ends").with_columns(
        state=pl.lit(state), server_received_bytes=pl.lit(received, pl.UInt64)
    )
    first, *others = recording.plan["applications"]
    planned = [{**first, "work": {**first["work"], "kind": kind}}, *others]
    plan = as_plan({**recording.plan, "applications": planned, "duration_ns": 10 * SECOND})
    after = replace(recording, plan=plan, tables={**recording.tables, "connection_ends": ends})
    iperf = connection(after, "iperf")
    assert (iperf.until_ns, metrics.goodput(after, iperf)) == (until * SECOND, received * 8 / (until - 1))
    stopped = replace(after, metadata=replace(after.metadata, interrupted=True))
    assert connection(stopped, "iperf").until_ns == min(until, 4) * SECOND


@pytest.mark.parametrize(
    ("work", "until"),
    [
        ({"kind": "stream", "duration_ns": SECOND}, 3),
        ({"kind": "stream", "duration_ns": 5 * SECOND // 2}, 3.5),
        ({"kind": "messages", "duration_ns": 5 * SECOND // 2}, 3.5),
        ({"kind": "stream", "duration_ns": 10 * SECOND}, 4),
        ({"kind": "stream", "duration_ns": None}, 3),
        ({"kind": "bulk", "duration_ns": 5 * SECOND // 2, "size_bytes": 3_000_000}, 3),
        ({"kind": "ping-pong", "duration_ns": 5 * SECOND // 2, "count": 1}, 3),
    ],
)
def test_goodput_of_what_only_its_duration_ends_is_over_all_of_it(
    recording: Recording, work: dict[str, object], until: float
) -> None:
    first, *others = recording.plan["applications"]
    after = replace(recording, plan=as_plan({**recording.plan, "applications": [{**first, "work": work}, *others]}))
    iperf = connection(after, "iperf")
    assert metrics.goodput(after, iperf) == 3_000_000 * 8 / (until - 1)
    assert iperf.last_byte_ns == 3 * SECOND


def test_what_arrives_on_a_subflow_after_the_end_counts_over_the_time_that_it_took(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    iperf = connection(recording, "iperf")
    for subflow in metrics.subflows(recording, iperf):
        assert subflow.bytes is not None
        assert metrics.subflow_goodput(recording, iperf, subflow) == subflow.bytes * 8 / 2
    samples, ends = recording.table("subflows"), recording.table("subflow_ends")
    second = samples.filter(pl.col("side") == "server", pl.col("subflow") == 1).head(1)
    late = [
        second.with_columns(time_ns=pl.lit(time * SECOND), received_bytes=pl.lit(total)).cast(samples.schema)
        for time, total in ((4, 1_500_000), (5, 2_000_000), (6, 2_000_000))
    ]
    after = changed("subflows", pl.concat([samples, *late]))
    its_end = pl.when(pl.col("subflow") == 1, pl.col("connection") == 0)
    received = its_end.then(2_000_000).otherwise(pl.col("server_received_bytes"))
    ends = ends.with_columns(server_received_bytes=received).cast(ends.schema)
    after = replace(after, tables={**after.tables, "subflow_ends": ends})
    first, second_subflow = metrics.subflows(after, iperf)
    assert metrics.subflow_goodput(after, iperf, first) == 2_000_000 * 8 / 2
    assert metrics.subflow_goodput(after, iperf, second_subflow) == 2_000_000 * 8 / (5 - 1)
    _, rates = metrics.subflow_series(after, iperf, second_subflow)
    assert rates[-1] == 4, "500,000 bytes in the last second, without what came after it"


@pytest.mark.parametrize(
    ("totals", "until"),
    [
        ((200_000, 300_000, 400_000, 450_000), 3.75),
        ((200_000, 400_000, 450_000, 450_000), 3.125),
        ((200_000, 450_000, 450_000, 450_000), 3),
        ((200_000, 200_000, 200_000, 450_000), 4),
    ],
)
def test_goodput_of_a_datagram_application_ends_with_the_last_that_arrives(
    changed: Callable[[str, pl.DataFrame], Recording], totals: tuple[int, ...], until: float
) -> None:
    times = [2 * SECOND, 3 * SECOND, 3_500_000_000, 4 * SECOND]
    samples = pl.DataFrame({"time_ns": times, "application": 2, "received_bytes": totals})
    after = changed("datagram_samples", samples)
    assert connection(after, "cross").until_ns == round(until * SECOND)


def test_goodput_of_a_datagram_application_is_over_its_own_time(recording: Recording) -> None:
    cross = connection(recording, "cross")
    assert (cross.id, cross.transport, cross.bytes) == (None, "udp", 500_000)
    assert metrics.goodput(recording, cross) == 500_000 * 8 / 2
    assert metrics.subflows(recording, cross) == []


@pytest.mark.parametrize(
    ("since", "until", "megabytes"),
    [(1.0, 2.0, 1.0), (2.0, 3.0, 2.0), (1.5, 2.5, 1.5), (0.0, 4.0, 3.0), (3.0, 4.0, 0.0), (None, 2.0, 1.0)],
)
def test_goodput_between_two_times_is_interpolated(
    recording: Recording, since: float | None, until: float, megabytes: float
) -> None:
    iperf = connection(recording, "iperf")
    since_ns = None if since is None else round(since * SECOND)
    passed = until - (1.0 if since is None else since)
    rate = metrics.goodput(recording, iperf, since_ns, round(until * SECOND))
    assert rate == pytest.approx(megabytes * 8e6 / passed)


def test_no_time_gives_no_goodput(recording: Recording) -> None:
    assert metrics.goodput(recording, connection(recording, "iperf"), SECOND, SECOND) is None


def test_goodput_series_ends_at_the_last_byte(recording: Recording) -> None:
    assert metrics.goodput_series(recording, connection(recording, "iperf")) == ([2.0, 3.0], [8.0, 16.0])
    assert metrics.goodput_series(recording, connection(recording, "msg")) == ([4.0], [2000 * 8 / 4 / 1e6])


def test_two_samples_of_an_instant_count_once(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    samples = recording.table("connections")
    twice = changed("connections", pl.concat([samples, samples]))
    assert metrics.goodput_series(twice, connection(twice, "iperf")) == ([2.0, 3.0], [8.0, 16.0])


def test_no_rate_is_taken_over_a_sliver_at_the_end(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    sliver = (
        recording.table("connections")
        .head(1)
        .with_columns(time_ns=pl.lit(2_999_999_999), delivered_bytes=pl.lit(2_900_000, pl.UInt64))
    )
    after = changed("connections", pl.concat([recording.table("connections"), sliver]))
    assert metrics.goodput_series(after, connection(after, "iperf")) == ([2.0, 3.0], [8.0, 16.0])


def test_subflow_series_add_up_to_what_arrived(recording: Recording) -> None:
    iperf = connection(recording, "iperf")
    first, second = metrics.subflows(recording, iperf)
    assert metrics.subflow_series(recording, iperf, first) == ([2.0, 3.0], [4.0, 12.0])
    assert metrics.subflow_series(recording, iperf, second) == ([2.0, 3.0], [4.0, 4.0])


def test_completion(recording: Recording) -> None:
    assert metrics.completion_ns(connection(recording, "iperf")) == 2 * SECOND
    assert metrics.completion_ns(connection(recording, "msg")) is None


def test_delays_come_in_the_order_of_sending(recording: Recording) -> None:
    assert metrics.delays(recording, connection(recording, "msg")) == [55_000_000, 45_000_000, None]
    assert metrics.delays(recording, connection(recording, "iperf")) == []


def test_subflows_share_the_bytes_that_arrived(recording: Recording) -> None:
    first, second = metrics.subflows(recording, connection(recording, "iperf"))
    assert (first.bytes, first.share, first.retransmitted_bytes, first.reinjected_bytes) == (
        2_000_000,
        2 / 3,
        50_000,
        7_000,
    )
    assert (first.source, second.source) == ("10.0.0.1:1000", "[fd00::1]:1001")
    assert (first.backup, second.backup) == (False, True)
    assert (second.share, second.closed_ns) == (1 / 3, None)


def test_what_was_resent_is_part_of_what_was_sent(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    first, second = metrics.subflows(recording, connection(recording, "iperf"))
    assert (first.resent, second.resent) == (50_000 / 2_150_000, 0.0)
    nothing = recording.table("subflow_ends").with_columns(server_received_bytes=0, client_sent_bytes=0)
    first, second = metrics.subflows(changed("subflow_ends", nothing), connection(recording, "iperf"))
    assert (first.resent, second.resent) == (1.0, None)


def test_what_an_engine_does_not_count_is_no_zero(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    assert metrics.reinjected_bytes(metrics.subflows(recording, connection(recording, "iperf"))) == 7_000
    nothing = pl.lit(None, pl.UInt64)
    ends = recording.table("subflow_ends").with_columns(
        client_reinjected_bytes=nothing, server_reinjected_bytes=nothing
    )
    after = changed("subflow_ends", ends)
    found = metrics.subflows(after, connection(after, "iperf"))
    assert [each.reinjected_bytes for each in found] == [None, None]
    assert metrics.reinjected_bytes(found) is None
    assert REGISTRY["reinjected"](after, {"connection": "iperf"}) is None


@pytest.mark.parametrize(
    ("measure", "parameters", "figure"),
    [
        ("blocked_time", {}, 0.55),
        ("blocked_time", {"cause": "late"}, 0.4),
        ("blocked_time", {"cause": "reinjected"}, 0.0),
        ("blocked_time", {"interface": "eth0"}, 0.1),
        ("blocked_data", {}, 5.75),
        ("blocked_data", {"level": "subflow"}, 2.0),
        ("blocked_data", {"level": "connection", "interface": ["eth0", "eth1"]}, 3.5),
        ("blocked_data", {"cause": "retransmitted"}, 2.5),
    ],
)
def test_blocking_is_the_receivers_by_level_cause_and_interface(
    recording: Recording, measure: str, parameters: dict[str, object], figure: float
) -> None:
    assert REGISTRY[measure](recording, {"connection": "iperf", **parameters}) == pytest.approx(figure)


def test_what_is_not_known_to_wait_blocks_neither_nothing(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    unknown = recording.table("connections").with_columns(reassembly_bytes=pl.lit(None, pl.UInt64))
    after = changed("connections", unknown)
    assert metrics.blocking(after, connection(after, "iperf")) is None
    assert REGISTRY["blocked_time"](after, {"connection": "iperf"}) is None
    assert REGISTRY["blocked_data"](after, {"connection": "iperf"}) is None


def test_nothing_arrived_gives_no_share(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    silent = recording.table("subflow_ends").with_columns(server_received_bytes=pl.lit(0, pl.UInt64))
    after = changed("subflow_ends", silent)
    nothing = replace(connection(after, "iperf"), bytes=0)
    assert [each.share for each in metrics.subflows(after, nothing)] == [0.0, 0.0]


def test_srtt_is_the_senders_without_the_time_before_the_first_sample(recording: Recording) -> None:
    iperf = connection(recording, "iperf")
    assert metrics.srtt_us(recording, iperf, metrics.subflows(recording, iperf)[0]) == [40_000, 60_000]


@pytest.mark.parametrize(("closed", "known"), [(2.5, [40_000]), (0.5, [40_000]), (9.0, [40_000, 60_000])])
def test_srtt_is_of_the_time_until_the_subflow_closes(recording: Recording, closed: float, known: list[int]) -> None:
    iperf = connection(recording, "iperf")
    subflow = replace(metrics.subflows(recording, iperf)[0], closed_ns=round(closed * SECOND))
    assert metrics.srtt_us(recording, iperf, subflow) == known


def test_srtt_is_of_the_time_until_the_last_byte(recording: Recording) -> None:
    iperf = connection(recording, "iperf")
    subflow = replace(metrics.subflows(recording, iperf)[0], closed_ns=None)
    assert metrics.srtt_us(recording, replace(iperf, until_ns=round(2.5 * SECOND)), subflow) == [40_000]


def test_a_name_must_be_one_connection(recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]) -> None:
    with pytest.raises(MetricError, match=r"^no connection is named 'ftp' \(there: cross, iperf, msg\)$"):
        connection(recording, "ftp")
    ends = recording.table("connection_ends")
    twice = changed("connection_ends", pl.concat([ends, ends]))
    with pytest.raises(MetricError, match=r"^several connections are named 'msg'"):
        connection(twice, "msg")
