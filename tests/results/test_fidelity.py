"""The figures of two engines held against each other, worked out on paper from the Recording made by hand."""

from collections.abc import Callable

import polars as pl
import pytest

from polypath import fidelity
from polypath.results import Recording
from polypath.results.fidelity import Row, rows


def test_a_run_agrees_with_itself(recording: Recording) -> None:
    found = rows([recording, recording], [recording])
    assert [row.connection for row in found] == ["iperf", "msg", "cross"]
    iperf, msg, _ = found
    assert (iperf.measure, iperf.unit) == ("completion", "s")
    # from its start at 1 s to its last byte at 3 s
    assert iperf.value == pytest.approx(2.0)
    assert iperf.share_difference == 0.0
    assert (msg.measure, msg.value, msg.share_difference) == ("answered requests", 2.0, None)
    assert all(row.ok for row in found if row.value)


def test_figures_are_means_and_shares_differ_in_points(
    recording: Recording, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    ends = recording.table("connection_ends")
    later = changed("connection_ends", ends.with_columns(pl.col("last_byte_ns") + 1_000_000_000))
    iperf = rows([later, recording], [recording])[0]
    assert iperf.value == pytest.approx(2.5)
    assert iperf.ratio == pytest.approx(1.25)
    assert not iperf.ok
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
    assert not single.ok


def test_what_sends_to_the_end_of_the_run_has_a_goodput(recording: Recording) -> None:
    for application in recording.plan["applications"]:
        application["work"].pop("size_bytes", None)
    iperf = rows([recording], [recording])[0]
    assert (iperf.measure, iperf.unit) == ("goodput", "Mbps")
    assert iperf.value


@pytest.mark.parametrize(
    ("value", "share", "ok"),
    [(10.4, None, True), (10.6, None, False), (9.6, 5.0, True), (9.4, None, False), (10.0, 5.1, False)],
)
def test_tolerances(value: float, share: float | None, ok: bool) -> None:
    assert Row("a", "goodput", "Mbps", value, 10.0, share).ok is ok


def test_a_figure_that_neither_has_is_no_difference() -> None:
    assert Row("a", "mean delay", "ms", None, None, None).ok
    assert not Row("a", "mean delay", "ms", None, 10.0, None).ok
    assert not Row("a", "mean delay", "ms", 10.0, None, None).ok


def test_every_file_is_an_entry_and_every_entry_a_scenario() -> None:
    files = {path.stem for path in fidelity.FOLDER.glob("*.toml")} - {"catalogue", "labs"}
    assert files == {entry.name for entry in fidelity.catalogue()}
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
    assert Row("transfer", "answered requests", "", 0.0, 0.0, None).ok
    assert not Row("transfer", "answered requests", "", 1.0, 0.0, None).ok
