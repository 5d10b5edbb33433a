"""Peers that fall silent: how a connection over them ends, and when."""

import polars as pl
import pytest

import polypath
from polypath import labs
from polypath.results import Recording

SECOND = 1_000_000_000
#: In seconds.
CUT = 1.5


def cut(
    transport: str, paths: tuple[int, ...], settings: list[str], side: str = "client", reverse: bool = False
) -> Recording:
    """A transfer of which some paths, or that to the server alone, go dark at `CUT`."""
    scenario = labs.get("aggregation").scenario()
    own = [f"host.{side}.{setting}" for setting in settings]
    own += [f"application.iperf.transport={transport}", f"application.iperf.reverse={str(reverse).lower()}"]
    text = scenario.with_settings([*own, "duration=40 s"]).to_toml()
    events = "".join(f'\n[[event]]\nat = "{CUT} s"\nlink = "path{path}"\nup = false\n' for path in paths)
    return polypath.run(polypath.Scenario.parse(text + events, "cut"))


def ended(recording: Recording) -> tuple[str, float | None]:
    row = recording.table("connection_ends").row(0, named=True)
    return row["state"], None if row["end_ns"] is None else row["end_ns"] / SECOND


KEEPALIVE = ["keepalive=true", "keepalive_time=3 s", "keepalive_interval=1 s", "keepalive_probes=4"]


@pytest.mark.parametrize(("transport", "paths"), [("tcp", (0,)), ("mptcp", (0, 1))])
def test_a_receiver_hears_of_its_peers_death_by_keepalive_alone(transport: str, paths: tuple[int, ...]) -> None:
    assert ended(cut(transport, paths, [], reverse=True)) == ("open", None)
    state, end = ended(cut(transport, paths, KEEPALIVE, reverse=True))
    # What travels on a link that goes down is lost: the last packet came at most the time of one, 0.6 ms, before.
    assert state == "timed-out"
    assert end is not None
    assert CUT + 7 - 0.001 <= end <= CUT + 7


@pytest.mark.parametrize(("transport", "paths"), [("tcp", (0,)), ("mptcp", (0, 1))])
def test_the_user_timeout_counts_from_the_first_retransmission(transport: str, paths: tuple[int, ...]) -> None:
    assert ended(cut(transport, paths, []))[0] == "open"
    state, end = ended(cut(transport, paths, ["user_timeout=5 s"]))
    assert state == "timed-out"
    assert end is not None
    assert CUT + 5 <= end <= CUT + 5 + 1


def test_a_subflow_given_up_leaves_the_connection() -> None:
    recording = cut("mptcp", (1,), ["user_timeout=5 s"])
    assert ended(recording)[0] == "finished"
    closed = recording.table("events").filter((pl.col("kind") == "subflow-closed") & (pl.col("host") == "client"))
    first = closed.row(0, named=True)
    assert first["subflow"] == 1
    assert CUT + 5 <= first["time_ns"] / SECOND <= CUT + 5 + 1
