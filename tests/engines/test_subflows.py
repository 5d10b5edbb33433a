"""Subflows are told apart, whichever end opens them."""

from __future__ import annotations

import polars as pl

import polypath

BOTH_OPEN = """
duration = "1 s"

[defaults]
path_manager = "endpoints"

[host.client]

[host.server]

[link.path0]
ends = ["client", "server"]
rate = "4750 kbps"

[link.path1]
ends = ["client", "server"]
delay = "29079 us"

[[application]]
kind = "bulk"
"""
# away and back at both hosts at the same times
BOTH_OPEN += "".join(
    f'[[event]]\nat = "{at}"\ninterface = "{host}:eth1"\nup = {up}\n'
    for at, up in (("110 ms", "false"), ("310 ms", "true"))
    for host in ("client", "server")
)


def test_subflows_that_both_ends_open_at_once_have_numbers_of_their_own() -> None:
    recording = polypath.run(polypath.Scenario.parse(BOTH_OPEN, "both.toml"))
    ends = recording.table("subflow_ends")
    assert sorted(ends["subflow"]) == [0, 1, 2, 3]
    assert sorted(ends["destination_port"] == 5001) == [False, True, True, True]
    assert ends.filter(pl.col("server_received_bytes") > pl.col("client_sent_bytes")).is_empty()
    assert (ends["server_received_bytes"] > 0).all()
    sampled = recording.table("subflows").filter(pl.col("time_ns") % 100_000_000 == 0)
    places = ["time_ns", "side", "subflow"]
    assert sampled.select(places).unique().height == sampled.height > 0
    totals = sampled.filter(pl.col("side") == "client").group_by("subflow").agg(pl.col("sent_bytes").max())
    of = dict(totals.iter_rows())
    assert all(of[number] <= sent for number, sent in ends.select("subflow", "client_sent_bytes").iter_rows())
