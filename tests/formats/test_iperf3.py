"""iperf3's JSON: the keys that it has, with the Recording's figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import polypath
from polypath.cli import app
from polypath.cli.errors import InputError
from polypath.cli.export import export
from polypath.formats import iperf3
from polypath.results import Recording, metrics

SCENARIO = """
duration = "8 s"
[defaults]
path_manager = "fullmesh"
[host.client]
[host.server]
[router.r]
[link.a]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "10 ms"
loss = "1 %"
[link.b]
ends = ["client:eth1", "r"]
rate = "20 Mbps"
delay = "20 ms"
[link.c]
ends = ["r", "server"]
[[application]]
name = "iperf"
"""

_TIMES = {"start": "number", "end": "number", "seconds": "number"}
_RATE = {"bytes": "integer", "bits_per_second": "number"}
_SENT = _TIMES | _RATE | {"retransmits": "integer", "sender": "boolean"}
_RECEIVED = _TIMES | _RATE | {"sender": "boolean"}

#: What `iperf3 -J` of iperf 3.12 prints at the client, of TCP.
REAL: dict[str, Any] = {
    "start": {
        "connected": [
            {
                "socket": "integer",
                "local_host": "string",
                "local_port": "integer",
                "remote_host": "string",
                "remote_port": "integer",
            }
        ],
        "version": "string",
        "system_info": "string",
        "timestamp": {"time": "string", "timesecs": "integer"},
        "connecting_to": {"host": "string", "port": "integer"},
        "cookie": "string",
        "tcp_mss_default": "integer",
        "target_bitrate": "integer",
        "sock_bufsize": "integer",
        "sndbuf_actual": "integer",
        "rcvbuf_actual": "integer",
        "test_start": {
            "protocol": "string",
            "num_streams": "integer",
            "blksize": "integer",
            "omit": "integer",
            "duration": "integer",
            "bytes": "integer",
            "blocks": "integer",
            "reverse": "integer",
            "tos": "integer",
            "target_bitrate": "integer",
        },
    },
    "intervals": [
        {
            "streams": [
                {
                    "socket": "integer",
                    **_SENT,
                    "snd_cwnd": "integer",
                    "snd_wnd": "integer",
                    "rtt": "integer",
                    "rttvar": "integer",
                    "pmtu": "integer",
                    "omitted": "boolean",
                }
            ],
            "sum": _SENT | {"omitted": "boolean"},
        }
    ],
    "end": {
        "streams": [
            {
                "sender": {
                    "socket": "integer",
                    **_SENT,
                    "max_snd_cwnd": "integer",
                    "max_snd_wnd": "integer",
                    "max_rtt": "integer",
                    "min_rtt": "integer",
                    "mean_rtt": "integer",
                },
                "receiver": {"socket": "integer", **_RECEIVED},
            }
        ],
        "sum_sent": _SENT,
        "sum_received": _RECEIVED,
        "cpu_utilization_percent": {
            "host_total": "number",
            "host_user": "number",
            "host_system": "number",
            "remote_total": "number",
            "remote_user": "number",
            "remote_system": "number",
        },
        "sender_tcp_congestion": "string",
        "receiver_tcp_congestion": "string",
    },
    "title": "string",
    "extra_data": "string",
}

#: What no Recording knows.
UNKNOWN = {
    ".start.system_info",
    ".start.timestamp.time",
    ".start.timestamp.timesecs",
    ".start.cookie",
    ".start.tcp_mss_default",
    ".start.sock_bufsize",
    ".start.sndbuf_actual",
    ".start.rcvbuf_actual",
    ".intervals[].streams[].snd_cwnd",
    ".intervals[].streams[].snd_wnd",
    ".intervals[].streams[].pmtu",
    ".end.streams[].sender.max_snd_cwnd",
    ".end.streams[].sender.max_snd_wnd",
    *(f".end.cpu_utilization_percent.{side}_{of}" for side in ("host", "remote") for of in ("total", "user", "system")),
}
OF_ONE_SUBFLOW = {
    *(f".intervals[].streams[].{name}" for name in ("rtt", "rttvar")),
    *(f".end.streams[].sender.{name}_rtt" for name in ("max", "min", "mean")),
}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The path of each value that holds no others."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, f"{path}[]")
    else:
        yield path, value


def kind(value: Any) -> set[str]:
    """The types of JSON that a value has; a whole number is a number, too."""
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int):
        return {"integer", "number"}
    return {"number"} if isinstance(value, float) else {"string"}


Ran = Callable[..., Recording]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run of one application, with its segments."""
    path = tmp_path_factory.mktemp("iperf3") / "one.toml"

    @cache
    def run(application: str, *settings: str) -> Recording:
        path.write_text(SCENARIO + application)
        return polypath.run(polypath.Scenario.load(path).with_settings(list(settings)), segments=True)

    return run


TIMED = 'kind = "bulk"\nduration = "3 s"\n'
STREAM = 'kind = "stream"\nrate = "5 Mbps"\nduration = "3 s"\n'


def test_the_keys_are_those_of_iperf3_with_their_types(ran: Ran) -> None:
    real = dict(leaves(REAL))
    one = dict(leaves(iperf3.document(ran(STREAM, "application.iperf.transport=tcp"))))
    assert set(real) - set(one) == UNKNOWN
    assert not set(one) - set(real)
    two = dict(leaves(iperf3.document(ran(TIMED))))
    assert set(one) - set(two) == OF_ONE_SUBFLOW | {".start.test_start.blksize"}
    for found in (one, two):
        assert {path for path, value in found.items() if real[path] not in kind(value)} == set()


@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic", "mpquic"])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_figures_are_the_recording_s(ran: Ran, transport: str, reverse: bool) -> None:
    recording = ran(
        'kind = "bulk"\nsize = "3 MB"\n',
        f"application.iperf.transport={transport}",
        f"application.iperf.reverse={str(reverse).lower()}",
    )
    (of,) = metrics.connections(recording)
    found = iperf3.document(recording)
    end, test = found["end"], found["start"]["test_start"]
    assert of.bytes == 3_000_000
    assert (
        end["sum_received"]["bytes"]
        == end["sum_sent"]["bytes"]
        == sum(each["sum"]["bytes"] for each in found["intervals"])
        == of.bytes
    )
    assert end["sum_received"]["bits_per_second"] == pytest.approx(metrics.goodput(recording, of))
    assert end["sum_received"]["end"] == of.until_ns / 1e9
    assert [each["sum"]["start"] for each in found["intervals"]] == list(range(len(found["intervals"])))
    resent = recording.table("segments").filter(side=of.sender, kind="retransmission").height
    assert end["sum_sent"]["retransmits"] == sum(each["sum"]["retransmits"] for each in found["intervals"]) == resent
    assert test["reverse"] == int(reverse)
    assert {value for path, value in leaves(found) if path.endswith(".sender")} == {not reverse}
    assert test["protocol"] == ("QUIC" if "quic" in transport else "TCP")
    assert len(end["streams"]) == 1


#: Paths that lose, spoil and repeat packets, one of which goes away with data in its queue.
ROUGH = """
duration = "900 ms"
[defaults]
profile = "PROFILE"
path_manager = "fullmesh"
scheduler = "SCHEDULER"
[host.client]
[host.server]
[router.r]
[link.a]
ends = ["client:eth0", "r"]
rate = "20 Mbps"
delay = "15 ms"
queue = "30 kB"
jitter = "2 ms"
corrupt = "1 %"
[link.b]
ends = ["client:eth1", "r"]
rate = "5 Mbps"
delay = "20 ms"
queue = "3 packets"
loss = "2 %"
duplicate = "1 %"
[link.b.backward]
rate = "4 Mbps"
[link.c]
ends = ["r", "server"]
delay = "1 ms"
[[application]]
name = "iperf"
kind = "bulk"
count = 2
start = "100 ms"
transport = "TRANSPORT"
size = "500 kB"
reverse = REVERSE
[[event]]
at = "333 ms"
interface = "client:eth1"
up = false
[[event]]
at = "400 ms"
link = "c"
delay = "11 ms"
[record]
interval = "50 ms"
"""


@pytest.mark.parametrize("reverse", ["false", "true"])
@pytest.mark.parametrize(("profile", "scheduler"), [("linux", "default"), ("rfc", "default"), ("rfc", "redundant")])
@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic", "mpquic"])
def test_no_more_arrives_than_was_sent_and_every_sum_agrees(
    transport: str, profile: str, scheduler: str, reverse: str
) -> None:
    given = {"TRANSPORT": transport, "PROFILE": profile, "SCHEDULER": scheduler, "REVERSE": reverse}
    text = ROUGH
    for name, value in given.items():
        text = text.replace(name, value)
    scenario = polypath.Scenario.parse(text, "rough")
    for seed in range(1, 13):
        found = iperf3.document(polypath.run(scenario, seed=seed, segments=True))
        end, intervals = found["end"], found["intervals"]
        for stream in end["streams"]:
            assert stream["sender"]["bytes"] >= stream["receiver"]["bytes"]
        for side in ("sender", "receiver"):
            total = end["sum_sent" if side == "sender" else "sum_received"]
            for name in ("bytes", "retransmits") if side == "sender" else ("bytes",):
                assert total[name] == sum(stream[side][name] for stream in end["streams"])
        for each in intervals:
            for name in ("bytes", "retransmits"):
                assert each["sum"][name] == sum(stream[name] for stream in each["streams"])
        for name, total in (("bytes", end["sum_received"]), ("retransmits", end["sum_sent"])):
            assert total[name] == sum(each["sum"][name] for each in intervals)


def test_intervals_are_seconds_and_add_up_to_the_goodput_s_series(ran: Ran) -> None:
    recording = ran(TIMED)
    (of,) = metrics.connections(recording)
    intervals = iperf3.document(recording)["intervals"]
    for number, each in enumerate(intervals[:3]):
        rate = metrics.goodput(recording, of, number * 10**9, (number + 1) * 10**9)
        assert each["sum"]["bits_per_second"] == pytest.approx(rate, abs=8)
        assert each["streams"][0]["bytes"] == each["sum"]["bytes"]
    assert sum(each["sum"]["bytes"] for each in intervals) == of.bytes


def test_what_was_sent_is_more_than_what_arrived_of_a_run_that_was_cut_off(ran: Ran) -> None:
    end = iperf3.document(ran('kind = "bulk"\n', "duration=2 s"))["end"]
    assert end["sum_sent"]["bytes"] > end["sum_received"]["bytes"]


def test_a_transfer_of_one_subflow_has_its_round_trips(ran: Ran) -> None:
    recording = ran(TIMED, "application.iperf.transport=tcp")
    (of,) = metrics.connections(recording)
    samples = metrics.srtt_us(recording, of, metrics.subflows(recording, of)[0])
    found = iperf3.document(recording)
    sender = found["end"]["streams"][0]["sender"]
    assert (sender["min_rtt"], sender["max_rtt"]) == (min(samples), max(samples))
    first = recording.table("subflows").filter(pl.col("time_ns") <= 10**9, side="client").sort("time_ns").tail(1)
    assert found["intervals"][0]["streams"][0]["rtt"] == first["srtt_us"][0]
    assert found["end"]["sender_tcp_congestion"] == "lia"


def test_segments_that_were_not_recorded_leave_out_retransmits(ran: Ran) -> None:
    recording = ran(TIMED)
    tables = {name: table for name, table in recording.tables.items() if name != "segments"}
    found = iperf3.document(replace(recording, tables=tables))
    assert not [path for path, _ in leaves(found) if path.endswith("retransmits")]


def test_reinjections_that_an_engine_does_not_count_leave_out_what_was_sent(ran: Ran) -> None:
    recording = ran(TIMED)
    ends = recording.table("subflow_ends").with_columns(client_reinjected_bytes=pl.lit(None, pl.UInt64))
    end = iperf3.document(replace(recording, tables={**recording.tables, "subflow_ends": ends}))["end"]
    assert "bytes" not in end["sum_sent"]
    assert end["sum_received"]["bytes"] > 0


def test_connections_side_by_side_are_streams_of_one_test(ran: Ran) -> None:
    recording = ran(TIMED + "count = 3\n")
    found = iperf3.document(recording)
    assert found == iperf3.document(recording, "iperf")
    assert found["start"]["test_start"]["num_streams"] == len(found["end"]["streams"]) == 3
    own = [each["receiver"]["bytes"] for each in found["end"]["streams"]]
    assert own == [each.bytes for each in metrics.connections(recording)]
    assert found["end"]["sum_received"]["bytes"] == sum(own)
    second = iperf3.document(recording, "iperf-2")
    assert second["end"]["streams"][0]["receiver"]["bytes"] == own[1]


@pytest.mark.parametrize(("size", "back", "reverse"), [("1 MB", "3 MB", 1), ("3 MB", "1 MB", 0)])
def test_a_two_way_transfer_is_the_direction_that_carried_more(ran: Ran, size: str, back: str, reverse: int) -> None:
    recording = ran(f'kind = "bulk"\nsize = "{size}"\nreverse_size = "{back}"\n')
    found = iperf3.document(recording, "iperf")
    test = found["start"]["test_start"]
    assert (test["reverse"], test["bytes"]) == (reverse, 3_000_000)
    assert found["end"]["sum_received"]["bytes"] == 3_000_000


def test_one_of_several_transfers_has_to_be_named(ran: Ran) -> None:
    back = '[[application]]\nname = "back"\nkind = "bulk"\nduration = "2 s"\nreverse = true\n'
    ping = '[[application]]\nname = "ping"\nkind = "ping"\n'
    recording = ran(TIMED + back + ping)
    with pytest.raises(iperf3.ShapeError, match=r"several transfers; name one with --application: iperf, back$"):
        iperf3.document(recording)
    with pytest.raises(iperf3.ShapeError, match=r"no transfer is called 'ping'; there is iperf, back$"):
        iperf3.document(recording, "ping")
    assert iperf3.document(recording, "back")["start"]["test_start"]["reverse"] == 1
    lone = ran('kind = "fetch"\nsize = "1 kB"\n')
    with pytest.raises(iperf3.ShapeError, match="no application of the run is a transfer"):
        iperf3.document(lone)


def test_the_commands_print_and_write_it(ran: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.toml"
    path.write_text(SCENARIO + TIMED)
    recording = ran(TIMED)
    done = CliRunner().invoke(app, ["run", str(path), "--json", "--iperf3"])
    assert done.exit_code == 0, done.output
    expected = iperf3.document(replace(recording, metadata=replace(recording.metadata, scenario="one")))
    assert json.loads(done.stdout) == expected
    summed = CliRunner().invoke(app, ["run", str(path), "--json"])
    with_account = polypath.run(polypath.Scenario.load(path), account=True)
    assert json.loads(summed.stdout) == polypath.summary(with_account)
    recording.save(tmp_path / "run")
    export("iperf3", tmp_path / "run", tmp_path / "run.json", "iperf")
    assert capsys.readouterr().err.startswith("1 stream in ")
    assert json.loads((tmp_path / "run.json").read_text())["end"] == expected["end"]
    with pytest.raises(InputError, match="--application is of iperf3; csv has all of them"):
        export("csv", tmp_path / "run", tmp_path / "tables", "iperf")


def test_a_capture_has_the_form_too(ran: Ran, tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(SCENARIO + TIMED)
    done = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "run"), "--pcap", "hosts"])
    assert done.exit_code == 0, done.output
    seen = polypath.from_pcap(*(tmp_path / "run" / "capture").iterdir(), segments=True)
    found, expected = iperf3.document(seen)["end"], iperf3.document(ran(TIMED))["end"]
    assert found["sum_received"]["bytes"] == expected["sum_received"]["bytes"]
    assert found["sum_sent"]["bytes"] == expected["sum_sent"]["bytes"]
    assert "sender_tcp_congestion" not in found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["aggregation", "--json"], "--json prints one run; choose with --run: tcp, mptcp, window-100kB, both-ways"),
        (["aggregation", "--iperf3"], "--iperf3 prints one run; choose with --run"),
        (
            ["aggregation", "--run", "tcp", "--vary", "seeds=2", "--json"],
            "--json prints one run; fix what the scenario varies with --set and --seed",
        ),
        (["aggregation", "--run", "tcp", "--application", "iperf"], "--application chooses a transfer for --iperf3"),
        (["aggregation", "--run", "both-ways", "--iperf3"], "name one with --application: iperf, back"),
    ],
)
def test_what_cannot_be_printed_is_said(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["run", *arguments])
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
