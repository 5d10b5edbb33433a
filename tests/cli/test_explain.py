"""polypath explain shows why connections were not faster, of a stored result or of a run made for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polypath import engines
from polypath.engines import Options
from polypath.scenario import Scenario

from ..explain.test_account import WIFI_LTE


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    plan = Scenario.parse(WIFI_LTE, "home.toml").with_settings(["duration=5 s"]).plan()
    engines.get("sim").run(plan, Options(account=True)).save(tmp_path / "stored")
    return tmp_path / "stored"


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_stored_result(polypath: Any, stored: Path) -> None:
    outcome = polypath("explain", stored)
    assert (outcome.code, outcome.err) == (0, "")
    found = rows(outcome.out)
    assert found[0].startswith("get: ")
    assert "that its links could have carried in 5 s" in found[0]
    assert any(row.startswith("random loss wifi ") for row in found)
    assert any(
        "The window on wifi was short after wifi had lost packets at random; most of all at" in row for row in found
    )


def test_the_folder_of_one_result_stands_for_it(polypath: Any, stored: Path) -> None:
    assert polypath("explain", stored.parent).out == polypath("explain", stored).out


def test_what_noq_waits_for_is_not_known(polypath: Any, tmp_path: Path) -> None:
    text = WIFI_LTE.replace("mptcp", "quic").replace("[host.server]", '[host.server]\nstack = "noq"')
    (tmp_path / "noq.toml").write_text(text)
    outcome = polypath("explain", tmp_path / "noq.toml", "--set", "duration=1 s")
    assert outcome.code == 2
    assert outcome.err.strip().endswith("no account was kept; noq does not tell what it waits for")


def test_json_has_the_parts(polypath: Any, stored: Path) -> None:
    told = json.loads(polypath("explain", stored, "--json").out)
    (connection,) = told["connections"]
    assert connection["capacity_bytes"] == connection["delivered_bytes"] + sum(
        each["bytes"] for each in connection["account"]
    )
    assert {"cause", "path", "at", "head", "bytes", "worst_s"} == set(connection["account"][0])
    assert "verified" not in connection


def test_a_stretch_of_time(polypath: Any, stored: Path) -> None:
    told = json.loads(polypath("explain", stored, "--since", "2", "--until", "3", "--json").out)
    (connection,) = told["connections"]
    assert (connection["since_s"], connection["until_s"]) == (2, 3)
    assert connection["capacity_bytes"] == pytest.approx(50e6 / 8, rel=1e-4)


def test_verified(polypath: Any, stored: Path) -> None:
    told = json.loads(polypath("explain", stored, "--verify", "1", "--json").out)
    ((trial,),) = (each["verified"] for each in told["connections"])
    assert (trial["cause"], trial["at"], trial["remedy"]) == ("random-loss", "wifi", "no loss")
    assert trial["gained_bytes"] > trial["said_bytes"] / 2
    assert "without by said MB came MB" in " ".join(rows(polypath("explain", stored, "--verify", "1").out))


def test_a_result_without_an_account_is_named(polypath: Any, tmp_path: Path) -> None:
    engines.get("sim").run(Scenario.parse(WIFI_LTE, "x").with_settings(["duration=1 s"]).plan()).save(tmp_path / "bare")
    outcome = polypath("explain", tmp_path / "bare")
    assert outcome.code == 2
    assert outcome.err.strip().endswith("the result was stored without one: run it again")


def test_links_without_a_rate_bound_nothing(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "free.toml").write_text(
        'duration = "1 s"\nhost = { client = {}, server = {} }\nlink.path = { ends = ["client", "server"] }\n'
        'application = [{ kind = "bulk", size = "1 MB" }]\n'
    )
    outcome = polypath("explain", tmp_path / "free.toml")
    assert outcome.code == 2
    assert "no link on the way has a rate" in outcome.err


def test_the_time_of_requests_is_divided(polypath: Any, tmp_path: Path) -> None:
    scenario = tmp_path / "asked.toml"
    scenario.write_text(
        'duration = "5 s"\n[host.client]\n[host.server]\n'
        '[link.a]\nends = ["client", "server"]\nrate = "10 Mbps"\ndelay = "20 ms"\n'
        '[[application]]\nname = "api"\nkind = "request-response"\ntransport = "tcp"\n'
        'count = 5\nrequest = "200 B"\nresponse = "30 kB"\nthink = "10 ms"\n'
    )
    lines = polypath("explain", str(scenario)).out.splitlines()
    at = lines.index(next(line for line in lines if line.startswith("5 requests; the slowest began at ")))
    rows = {line.rsplit(maxsplit=3)[0].strip(): line.split() for line in lines[at + 2 : at + 6]}
    assert set(rows) == {"propagation", "transmission of the answer", "window, pacing, scheduler", "application"}
    assert rows["application"][-3] == "10.0"
    (connection,) = json.loads(polypath("explain", str(scenario), "--json").out)["connections"]
    assert len(connection["requests"]) == 5
    first = connection["requests"][0]
    assert sum(
        first[f"{part}_s"] for part in ("propagation", "transmission", "queue", "loss", "window", "application")
    ) == (pytest.approx(first["delay_s"]))


def test_what_has_no_account_is_named(polypath: Any, tmp_path: Path) -> None:
    scenario = tmp_path / "beside.toml"
    scenario.write_text(
        'duration = "2 s"\n[host.client]\n[host.server]\n'
        '[link.a]\nends = ["client", "server"]\nrate = "10 Mbps"\ndelay = "20 ms"\n'
        '[[application]]\nname = "file"\nkind = "bulk"\ntransport = "tcp"\n'
        '[[application]]\nname = "noise"\nkind = "cbr"\nrate = "2 Mbps"\n'
    )
    assert polypath("explain", str(scenario)).out.splitlines()[-1] == "without an account: noise (UDP)"
