"""Names as short as tells runs apart."""

from pathlib import Path

import pytest

from polypath.results.names import of_folders, told_apart


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (
            ["phone (defaults.scheduler=default, seed=1)", "phone (defaults.scheduler=redundant, seed=1)"],
            ["default", "redundant"],
        ),
        (
            ["phone (rate=1 Mbps, seed=1)", "phone (rate=2 Mbps, seed=1)", "phone (rate=2 Mbps, seed=2)"],
            ["rate=1 Mbps, seed=1", "rate=2 Mbps, seed=1", "rate=2 Mbps, seed=2"],
        ),
        (
            ["p (defaults.scheduler=default, seed=1)", "p (defaults.scheduler=redundant, seed=2)"],
            ["scheduler=default, seed=1", "scheduler=redundant, seed=2"],
        ),
        (
            ["p (link.a.rate=1, link.b.rate=1)", "p (link.a.rate=2, link.b.rate=3)"],
            ["link.a.rate=1, link.b.rate=1", "link.a.rate=2, link.b.rate=3"],
        ),
        (["a (x=1)", "b (x=1)"], ["a (x=1)", "b (x=1)"]),
        (["a (x=1)", "a (x=1)"], ["a (x=1)", "a (x=1)"]),
        (["a (x=1)", "a"], ["a (x=1)", "a"]),
        (["aggregation/tcp", "aggregation/mptcp"], ["tcp", "mptcp"]),
        (["aggregation/tcp", "failover/mptcp"], ["aggregation/tcp", "failover/mptcp"]),
        (["aggregation/tcp"], ["aggregation/tcp"]),
        (["phone (seed=1)"], ["phone (seed=1)"]),
        ([], []),
    ],
)
def test_what_all_have_is_left_out(names: list[str], short: list[str]) -> None:
    assert told_apart(names) == short


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["before", "after"], ["before", "after"]),
        (["a/x", "b/x"], ["a", "b"]),
        (["before/tcp", "before/mptcp", "after/tcp"], ["before/tcp", "before/mptcp", "after/tcp"]),
        (["a/x", "x"], ["a", "runs"]),
        (["a", "a"], ["a", "a"]),
        ([], []),
    ],
)
def test_folders_are_told_apart(folders: list[str], names: list[str]) -> None:
    assert of_folders([Path("/runs") / folder for folder in folders]) == names
