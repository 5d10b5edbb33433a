"""qlogs of QUIC: accepted by the drafts' schema, complete, and without influence on the run."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from polypath.engines import get
from polypath.engines.base import EngineError, Options
from polypath.results import Recording, metrics
from polypath.scenario import Scenario

from ..slow import others_slow

SCHEMA = Path(__file__).parent / "qlog.schema.json"
TEXT = """
name = "qlog"
duration = "20 s"
[defaults]
profile = "rfc"
scheduler = "{scheduler}"
[host.client]
[host.server]
[router.r]
[link.path0]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "20 ms"
{path0}
[link.path1]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "20 ms"
[link.server]
ends = ["r", "server"]
[[application]]
name = "get"
kind = "fetch"
size = "{size}"
transport = "{transport}"
{more}
"""


def run(
    folder: Path | None,
    transport: str = "mpquic",
    size: str = "200 kB",
    path0: str = "",
    more: str = "",
    scheduler: str = "default",
) -> Recording:
    text = TEXT.format(transport=transport, size=size, path0=path0, more=more, scheduler=scheduler)
    return get("sim").run(Scenario.parse(text, "qlog.toml").plan(), Options(qlogs=folder))


@cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


def records(file: Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON text sequence (RFC 7464)."""
    texts = file.read_text(encoding="utf-8").split("\x1e")
    assert texts[0] == ""
    for text in texts[1:]:
        assert text.endswith("\n")
        yield json.loads(text)


def events(file: Path, *names: str) -> list[dict[str, Any]]:
    found = [event for event in list(records(file))[1:] if not names or event["name"].removeprefix("quic:") in names]
    assert [event["time"] for event in found] == sorted(event["time"] for event in found)
    return found


def sides(folder: Path) -> list[Path]:
    return [folder / f"connection0_{side}.sqlog" for side in ("client", "server")]


LOSS = 'loss = "2%"'


@pytest.mark.parametrize(
    ("path0", "transport"), others_slow(product(("", LOSS), ("quic", "mpquic")), (LOSS, "quic"), (LOSS, "mpquic"))
)
def test_the_schema_accepts_every_record(tmp_path: Path, transport: str, path0: str) -> None:
    run(tmp_path, transport, path0=path0)
    for file, side in zip(sides(tmp_path), ("client", "server"), strict=True):
        head, *rest = records(file)
        validator("QlogFileSeq").validate(head)
        assert head["trace"]["vantage_point"] == {"name": side, "type": side}
        for event in rest:
            validator("Event").validate(event)
    heads = [next(records(file)) for file in sides(tmp_path)]
    assert len({head["trace"]["common_fields"]["group_id"] for head in heads}) == 1


def test_the_schema_refuses_what_the_drafts_do_not_name(tmp_path: Path) -> None:
    run(tmp_path)
    sent = events(sides(tmp_path)[0], "packet_sent")[-1]
    sent["data"]["header"]["packet_type"] = "1rtt"
    assert not validator("Event").is_valid(sent)
    sent["data"]["header"]["packet_type"] = "1RTT"
    assert validator("Event").is_valid(sent)
    sent["data"]["frames"][0]["extra"] = 1
    assert not validator("Event").is_valid(sent)


def test_a_qlog_changes_no_result(tmp_path: Path) -> None:
    plain, logged = run(None, path0='loss = "1%"'), run(tmp_path / "a", path0='loss = "1%"')
    assert plain.metadata.recording_sha256 == logged.metadata.recording_sha256
    run(tmp_path / "b", path0='loss = "1%"')
    for first, second in zip(sides(tmp_path / "a"), sides(tmp_path / "b"), strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_packets_that_arrive_were_sent_with_the_same_frames(tmp_path: Path) -> None:
    recording = run(tmp_path)
    client, server = sides(tmp_path)

    def packets(file: Path, name: str) -> Counter[str]:
        return Counter(json.dumps(event["data"], sort_keys=True) for event in events(file, name))

    probes = {"is_mtu_probe_packet": True}
    for there, here in ((server, client), (client, server)):
        sent = Counter(
            json.dumps({key: value for key, value in event["data"].items() if key not in probes}, sort_keys=True)
            for event in events(there, "packet_sent")
        )
        received = packets(here, "packet_received")
        assert received
        assert not received - sent
    streams = [
        frame["raw"]["length"]
        for event in events(client, "packet_received")
        for frame in event["data"]["frames"]
        if frame["frame_type"] == "stream"
    ]
    assert sum(streams) >= 200_000
    assert {event["data"]["header"].get("path_id") for event in events(client, "packet_received")} == {None, 0, 1}
    (connection,) = metrics.connections(recording)
    assert connection.finished


def test_losses_are_told_with_the_packets_that_were_lost(tmp_path: Path) -> None:
    run(tmp_path, size="500 kB", path0='loss = "3%"')
    client, server = sides(tmp_path)
    lost = events(server, "packet_lost")
    assert len(lost) > 3

    def number(event: dict[str, Any]) -> tuple[str, int, int]:
        header = event["data"]["header"]
        return header["packet_type"], header.get("path_id", 0), header["packet_number"]

    sent = {number(event) for event in events(server, "packet_sent")}
    received = {number(event) for event in events(client, "packet_received")}
    assert {number(event) for event in lost} <= sent
    # Links of a fixed delay bring nothing out of order: what is taken for lost did not arrive.
    assert not {number(event) for event in lost} & received
    assert {event["data"]["header"]["path_id"] for event in lost} == {0}
    states = [event["data"]["new"] for event in events(server, "congestion_state_updated")]
    assert "recovery" in states


def test_metrics_are_those_of_the_recording(tmp_path: Path) -> None:
    recording = run(tmp_path)
    metrics_of: dict[int, dict[str, float]] = {0: {}, 1: {}}
    for event in events(sides(tmp_path)[1], "recovery_metrics_updated"):
        metrics_of[event["data"].pop("path_id")].update(event["data"])
    table = recording.table("subflows").to_dicts()
    for path, known in metrics_of.items():
        last = [row for row in table if row["side"] == "server" and row["subflow"] == path][-1]
        assert known["smoothed_rtt"] == pytest.approx(last["srtt_us"] / 1e3, abs=1e-3)
        assert known["packets_in_flight"] == last["in_flight_packets"]


def test_how_a_connection_ends_is_told_on_both_sides(tmp_path: Path) -> None:
    run(tmp_path)
    closed = [events(file, "connection_closed") for file in sides(tmp_path)]
    ((here,), (there,)) = closed
    assert here["data"]["initiator"] == "local"
    assert there["data"]["initiator"] == "remote"
    assert here["time"] < there["time"]


def test_an_interface_that_goes_down_ends_its_tuple(tmp_path: Path) -> None:
    down = '[[event]]\nat = "0.3 s"\ninterface = "client:eth0"\nup = false'
    run(tmp_path, size="1 MB", more=down)
    assigned = [event["data"] for event in events(sides(tmp_path)[0], "tuple_assigned")]
    assert [data["tuple_id"] for data in assigned] == ["p0", "p1", "p0"]
    assert "tuple_local" in assigned[0]
    assert assigned[0]["tuple_remote"] == {"ip_v4": "10.0.2.2", "port_v4": 5001}
    assert set(assigned[2]) == {"tuple_id"}


def test_a_spoiled_packet_is_dropped(tmp_path: Path) -> None:
    run(tmp_path, path0='corrupt = "5%"')
    dropped = [event["data"]["trigger"] for event in events(sides(tmp_path)[0], "packet_dropped")]
    assert "decryption_failure" in dropped


def test_what_is_dropped_is_told_by_its_number_space(tmp_path: Path) -> None:
    """A datagram with an Initial whose keys are gone and a Handshake packet of the same number, which is taken."""
    down = '[[event]]\nat = "35 ms"\nlink = "path0"\ndirection = "forward"\nup = false\n'
    run(tmp_path, "quic", more=down + down.replace("35 ms", "1200 ms").replace("false", "true"))
    dropped = events(sides(tmp_path)[0], "packet_dropped")
    assert {event["data"]["header"]["packet_type"] for event in dropped} == {"initial"}
    received = events(sides(tmp_path)[0], "packet_received")
    assert sum(event["data"]["header"]["packet_type"] == "handshake" for event in received) > 1


def test_a_folder_that_holds_files_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "notes.txt"
    kept.write_text("mine", encoding="utf-8")
    with pytest.raises(EngineError, match="name a new or empty folder"):
        run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert kept.read_text(encoding="utf-8") == "mine"


def test_a_run_over_tcp_has_no_qlogs(tmp_path: Path) -> None:
    run(tmp_path, "tcp")
    assert not list(tmp_path.iterdir())
