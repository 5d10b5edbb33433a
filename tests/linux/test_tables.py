"""What the guest's programs wrote becomes tables. No kernel is needed here."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from polypath.engines.linux.engine import translate
from polypath.engines.namespaces.tables import Tables
from polypath.scenario import Scenario

Read = Callable[..., dict[str, pl.DataFrame]]

CREATED, ESTABLISHED, CLOSED, JOINED, ENDED, PRIORITY = 1, 2, 3, 10, 11, 13


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The tables of a scenario whose programs wrote these files."""

    def tables(scenario: Scenario, files: Mapping[str, list[str]]) -> dict[str, pl.DataFrame]:
        job, _ = translate(scenario.plan(None).data)
        for name, lines in files.items():
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return Tables(job, tmp_path).frames()

    return tables


def path_event(time: int, kind: int, local: str, remote: str, *, server: bool = False, backup: bool = False) -> str:
    ends = " ".join(end.replace(":", " ") for end in (local, remote))
    return f"N {time} {kind} 7 {server:d} {backup:d} {ends} 0"


def hosts(scenario: Scenario) -> dict[str, int]:
    return {node["name"]: index for index, node in enumerate(scenario.plan(None).data["nodes"])}


TWO_SERVERS = """
duration = "3 s"
[defaults]
path_manager = "fullmesh"
[host.client]
[host.one]
[host.two]
[router.r]
[link.w]
ends = ["client", "r"]
[link.s1]
ends = ["r", "one"]
[link.s2]
ends = ["r", "two"]
[[application]]
kind = "fetch"
name = "first"
server = "one"
port = 80
size = "1 kB"
[[application]]
kind = "fetch"
name = "second"
server = "two"
port = 80
size = "1 kB"
"""


def test_two_servers_may_have_the_same_port(read: Read) -> None:
    scenario = Scenario.parse(TWO_SERVERS, "two")
    nodes = scenario.plan(None).data["nodes"]
    place = hosts(scenario)
    client, server = (nodes[place[name]]["interfaces"][0]["addresses"][0] for name in ("client", "two"))
    ends = f"{client}:1025", f"{server}:80"
    found = read(
        scenario,
        {
            "end": ["3000000000"],
            f"paths-{place['client']}": [path_event(1, CREATED, *ends), path_event(2, CLOSED, *ends)],
            f"paths-{place['two']}": [
                path_event(1, CREATED, *ends[::-1], server=True),
                path_event(3, CLOSED, *ends[::-1], server=True),
            ],
        },
    )
    assert found["events"].select("host", "connection").rows() == [("client", 1), ("two", 1)]
