"""Export for qvis: what its loader (QlogLoaderV2.ts) and its views read, a file for each path."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from polypath.cli import app

TEXT = """
name = "two-paths"
[defaults]
profile = "rfc"
[host.client]
ack_path = "fastest"
[host.server]
[router.r]
[link.path0]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "10 ms"
[link.path1]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "30 ms"
loss = "1%"
[link.server]
ends = ["r", "server"]
[[application]]
name = "get"
kind = "fetch"
size = "400 kB"
transport = "mpquic"
"""


def polypath(*arguments: object) -> str:
    outcome = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qvis")
    scenario = folder / "two.toml"
    scenario.write_text(TEXT, encoding="utf-8")
    polypath("run", scenario, "--out", folder / "result", "--qlog")
    return folder / "result"


@pytest.fixture(scope="module")
def exported(result: Path) -> list[dict[str, Any]]:
    out = result.with_name("qvis")
    assert "2 files" in polypath("export", "qvis", result, "-o", out)
    files = sorted(out.iterdir())
    assert [file.name for file in files] == ["connection0_path0.qlog", "connection0_path1.qlog"]
    texts = [file.read_text(encoding="utf-8") for file in files]
    # The loader guesses the form from the first bytes.
    assert all("qlog_version" in text[:1024] for text in texts)
    return [json.loads(text) for text in texts]


def test_a_file_has_what_the_loader_demands(exported: list[dict[str, Any]]) -> None:
    for file in exported:
        assert (file["qlog_version"], file["qlog_format"]) == ("0.3", "JSON")
        assert [trace["vantage_point"]["type"] for trace in file["traces"]] == ["client", "server"]
        for trace in file["traces"]:
            assert trace["common_fields"]["time_format"] == "relative"
            times = [event["time"] for event in trace["events"]]
            assert times == sorted(times)
            for event in trace["events"]:
                assert event["name"].count(":") == 1
                header = event["data"].get("header")
                assert header is None or not {"packet_size", "payload_length"} & set(header)
                assert "packet_type" not in event["data"]
                assert "path_id" not in json.dumps(event["data"].get("header", {}))


def numbers(trace: dict[str, Any], name: str) -> set[int]:
    events = [event for event in trace["events"] if event["name"] == name]
    headers = [event["data"]["header"] for event in events]
    return {head["packet_number"] for head in headers if head["packet_type"] == "1RTT" and "packet_number" in head}


def test_a_path_has_a_number_space_of_its_own(exported: list[dict[str, Any]]) -> None:
    for file in exported:
        client, server = file["traces"]
        sent = numbers(server, "transport:packet_sent")
        received = numbers(client, "transport:packet_received")
        lost = numbers(server, "recovery:packet_lost")
        assert sent == set(range(len(sent)))
        assert received == sent - lost


def test_acknowledgements_that_came_on_another_path_are_there(exported: list[dict[str, Any]]) -> None:
    _, server = exported[1]["traces"]
    sent = numbers(server, "transport:packet_sent")
    acknowledged = set()
    foreign = 0
    for event in server["events"]:
        if event["name"] != "transport:packet_received":
            continue
        for frame in event["data"]["frames"]:
            if frame["frame_type"] == "ack" and event["data"]["header"]["packet_type"] == "1RTT":
                foreign += "packet_number" not in event["data"]["header"]
                for ends in frame["acked_ranges"]:
                    acknowledged |= set(range(ends[0], ends[-1] + 1))
    assert foreign > 10
    assert acknowledged <= sent
    assert len(acknowledged) > len(sent) / 2


def test_congestion_and_streams_have_the_fields_that_are_drawn(exported: list[dict[str, Any]]) -> None:
    _, server = exported[0]["traces"]
    drawn = [event["data"] for event in server["events"] if event["name"] == "recovery:metrics_updated"]
    for field in ("congestion_window", "bytes_in_flight", "smoothed_rtt", "min_rtt", "latest_rtt"):
        assert any(field in data for data in drawn)
    streams = [
        frame
        for event in server["events"]
        if event["name"] == "transport:packet_sent"
        for frame in event["data"]["frames"]
        if frame["frame_type"] == "stream"
    ]
    assert streams
    assert all(frame["length"] > 0 for frame in streams if not frame["fin"])
    set_by = [event["data"]["owner"] for event in server["events"] if event["name"] == "transport:parameters_set"]
    assert set_by == ["local", "remote"]


@pytest.mark.parametrize("kept", [0, 5000])
def test_a_qlog_that_is_cut_short_is_named(result: Path, tmp_path: Path, kept: int) -> None:
    copy = tmp_path / "result"
    shutil.copytree(result, copy)
    qlog = copy / "qlog" / "connection0_client.sqlog"
    qlog.write_bytes(qlog.read_bytes()[:kept])
    outcome = CliRunner().invoke(app, ["export", "qvis", str(copy), "-o", str(tmp_path / "qvis")])
    assert str(outcome.exception) == f"{qlog}: this is no whole qlog"
    assert not (tmp_path / "qvis").exists()


def test_a_qlog_that_is_too_large_or_not_ours_is_named(result: Path, tmp_path: Path) -> None:
    copy = tmp_path / "result"
    shutil.copytree(result, copy)
    qlog = copy / "qlog" / "connection0_client.sqlog"

    def said() -> str:
        outcome = CliRunner().invoke(app, ["export", "qvis", str(copy), "-o", str(tmp_path / "qvis")])
        return str(outcome.exception)

    head, *records = qlog.read_text().split("\x1e")[1:]
    for other in ("{}", "[]", "7", '{"name": 7}', '{"tuple": "p0", "name": "quic:packet_sent"}', '{"tuple": "x"}'):
        qlog.write_text("\x1e".join(["", head, other, *records]))
        assert said() == f"{copy / 'qlog' / 'connection0'}: a record is not as runs write it"
    with qlog.open("r+b") as file:
        file.truncate(10**12)
    assert said().startswith(f"{copy / 'qlog'} has 1e+06 MB to read, more than 125 MB; a result may take 4 GB")
    assert not (tmp_path / "qvis").exists()


def test_a_result_without_qlogs_says_what_is_missing(tmp_path: Path) -> None:
    scenario = tmp_path / "two.toml"
    scenario.write_text(TEXT, encoding="utf-8")
    polypath("run", scenario, "--out", tmp_path / "result")
    outcome = CliRunner().invoke(app, ["export", "qvis", str(tmp_path / "result"), "-o", str(tmp_path / "qvis")])
    assert outcome.exit_code != 0
    assert "has no qlogs; the run needs `--qlog`" in str(outcome.exception)
    assert not (tmp_path / "qvis").exists()
