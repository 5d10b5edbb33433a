"""The figures of two engines held against each other, worked out on paper from the Recording made by hand."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polypath
from polypath import fidelity
from polypath.results import Recording
from polypath.scenario import Scenario
from polypath.statistics.fidelity import Row, rows, verdict

VIDEO = """
duration = "10 s"
[host.client]
[host.server]
[link.path]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "10 ms"
[[application]]
name = "film"
kind = "video"
transport = "tcp"
rates = ["1 Mbps"]
"""


def test_a_run_agrees_with_itself(recording: Recording) -> None:
    found = rows([recording, recording], [recording])
    assert [row.connection for row in found] == ["iperf", "msg", "cross"]
    iperf, msg, _ = found
    assert (iperf.measure, iperf.unit) == ("completion", "s")
    # from its start at 1 s to its last byte at 3 s
    assert iperf.value == pytest.approx(2.0)
    assert iperf.share_difference == 0.0
    assert (msg.measure, msg.value, msg.share_difference) == ("answered requests", 2.0, None)
    assert all(row.verdict == "ok" for row in found if row.value)


def test_figures_are_means_and_shares_differ_in_points(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    ends = recording.table("connection_ends")
    later = changed("connection_ends", ends.with_columns(pl.col("last_byte_ns") + 1_000_000_000))
    iperf = rows([later, recording], [recording])[0]
    assert iperf.value == pytest.approx(2.5)
    assert iperf.ratio == pytest.approx(1.25)
    assert iperf.verdict == "off"
    subflows = recording.table("subflow_ends").with_columns(
        pl.when((pl.col("connection") == 0) & (pl.col("subflow") == 1))
        .then(pl.lit(0, pl.UInt64))
        .otherwise(pl.col("server_received_bytes"))
        .alias("server_received_bytes")
    )
    single = rows([changed("subflow_ends", subflows)], [recording])[0]
    assert single.share_difference is not None
    assert single.share_difference > 30
    assert single.ratio == pytest.approx(1.0)
    assert single.verdict == "off"


def test_what_sends_to_the_end_of_the_run_has_a_goodput(recording: Recording) -> None:
    plan: Any = recording.plan
    for application in plan["applications"]:
        application["work"].pop("size_bytes", None)
    iperf = rows([recording], [recording])[0]
    assert (iperf.measure, iperf.unit) == ("goodput", "Mbps")
    assert iperf.value


@pytest.mark.parametrize(
    ("value", "share", "said"),
    [(10.4, None, "ok"), (10.6, None, "off"), (9.6, 5.0, "ok"), (9.4, None, "off"), (10.0, 5.1, "off")],
)
def test_tolerances(value: float, share: float | None, said: str) -> None:
    assert Row("a", "goodput", "Mbps", value, 10.0, share).verdict == said


def test_a_figure_that_neither_has_is_no_agreement() -> None:
    nothing = Row("a", "mean delay", "ms", None, None, None)
    assert nothing.verdict == "not compared"
    assert Row("a", "mean delay", "ms", None, None, 2.0).verdict == "not compared"
    assert Row("a", "mean delay", "ms", None, None, 5.1).verdict == "off"
    assert Row("a", "mean delay", "ms", None, 10.0, None).verdict == "off"
    assert Row("a", "mean delay", "ms", 10.0, None, None).verdict == "off"
    near, far = (Row("b", "goodput", "Mbps", value, 10.0, None) for value in (10.0, 20.0))
    assert [verdict(each) for each in ([near], [near, nothing], [near, nothing, far], [])] == [
        "ok",
        "not compared",
        "off",
        "not compared",
    ]


def test_where_runs_have_no_figure_the_others_are_compared(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    ends = recording.table("connection_ends")
    cut = changed("connection_ends", ends.with_columns(state=pl.lit("open"), end_ns=None))
    slow = changed("connection_ends", ends.with_columns(pl.col("last_byte_ns") + 2_000_000_000))

    def compared(runs: list[Recording], reference: list[Recording]) -> list[tuple[Any, ...]]:
        found = rows(runs, reference)
        return [(row.measure, row.value, row.reference) for row in found if row.connection == "iperf"]

    assert compared([cut, slow, recording], [recording, recording, recording]) == [
        ("finished", 2.0, 3.0),
        ("completion", pytest.approx(3.0), pytest.approx(2.0)),
    ]
    # of the same plans: the first has no figure to set beside
    assert compared([cut, recording], [slow, recording])[1][1:] == (pytest.approx(2.0), pytest.approx(2.0))
    assert compared([cut], [recording]) == [("finished", 0.0, 1.0)]
    assert compared([cut], [cut]) == [("completion", None, None)]


def test_a_video_has_its_rate_and_stalls() -> None:
    recording = polypath.run(Scenario.parse(VIDEO, "video"))
    rate, stalled = rows([recording], [recording])
    assert (rate.measure, rate.unit, stalled.measure, stalled.unit) == ("video", "Mbps", "stalled", "s")
    assert rate.value == pytest.approx(1.0)
    assert stalled.value == 0
    assert {rate.verdict, stalled.verdict} == {"ok"}


def test_every_file_is_an_entry_and_every_entry_a_scenario() -> None:
    files = {path.stem for path in fidelity.FOLDER.glob("*.toml")} - {"catalogue", "labs"}
    assert files == {entry.file or entry.name for entry in fidelity.catalogue()}
    for entry in fidelity.catalogue():
        stack = entry.scenario().plan(1).data["nodes"][0]["stack"]
        if entry.reference == "linux":
            assert (stack["profile"], stack["scheduler"]["name"]) == ("linux", "linux"), entry.name
    of = [entry.reference for entry in fidelity.catalogue()]
    assert of.count("linux") >= 20
    assert of.count("noq") == 12


def test_what_is_held_against_noq_runs_on_it_with_equal_settings() -> None:
    for entry in fidelity.catalogue():
        if entry.reference != "noq":
            continue
        own, noq = (entry.plans(settings)[0].data for settings in (entry.polypath, ["defaults.stack=noq"]))
        for one, other in zip(own["nodes"][:2], noq["nodes"][:2], strict=True):
            assert other["stack"]["stack"] == "noq"
            for key in ("congestion", "receive_buffer", "send_buffer", "initial_window", "mtu", "path_manager"):
                assert one["stack"][key] == other["stack"][key], (entry.name, key)


def test_nothing_answered_on_either_engine_is_agreement() -> None:
    assert Row("transfer", "answered requests", "", 0.0, 0.0, None).verdict == "ok"
    assert Row("transfer", "answered requests", "", 1.0, 0.0, None).verdict == "off"
