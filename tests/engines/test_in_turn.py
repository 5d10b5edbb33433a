"""Routing `in-turn`: each new flow takes the next of the equal paths."""

import polars as pl
import pytest

import polypath
from polypath import Scenario

NETWORK = """
duration = "5 s"
routing = "in-turn"
[host.c]
[host.s]
[router.a]
[router.b]
[router.p]
[router.q]
[link.ca]
ends = ["c", "a"]
[link.ap]
ends = ["a", "p"]
[link.aq]
ends = ["a", "q"]
[link.pb]
ends = ["p", "b"]
[link.qb]
ends = ["q", "b"]
[link.bs]
ends = ["b", "s"]
"""
STREAM = """
[[application]]
kind = "cbr"
rate = "1 Mbps"
client = "c"
server = "s"
start = "{} s"
duration = "1 s"
"""


@pytest.mark.parametrize(("streams", "used"), [(1, {"ap"}), (2, {"ap", "aq"})])
def test_flows_alone_take_turns(streams: int, used: set[str]) -> None:
    text = NETWORK + "".join(STREAM.format(2 * number) for number in range(streams))
    ends = polypath.run(Scenario.parse(text, "turns")).table("link_ends")
    sent = ends.filter(pl.col("name").is_in(["ap", "aq"]), pl.col("direction") == "forward", pl.col("sent_bytes") > 0)
    assert set(sent["name"]) == used


def test_an_account_takes_no_turn() -> None:
    bulk = '[[application]]\nkind = "bulk"\nclient = "c"\nserver = "s"\nduration = "500 ms"\n'
    limited = NETWORK.replace('ends = ["c", "a"]', 'ends = ["c", "a"]\nrate = "5 Mbps"')
    plan = Scenario.parse(limited + bulk, "turns").plan()
    without, kept = (polypath.run(plan, account=account) for account in (False, True))
    assert not kept.table("account").is_empty()
    assert kept.metadata.recording_sha256 == without.metadata.recording_sha256
