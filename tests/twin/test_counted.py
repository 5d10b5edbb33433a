"""Twins of what iperf3 and ss print."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from polypath.capture import CaptureError
from polypath.twin import counted, sockets
from polypath.twin.made import Twin, make

#: Of a link of 20 Mbps and 20 ms one way with room for 50 packets, as bytes each 0.5 s and round trips in microseconds.
BUSY = [(900_000, 45_000, 0), *[(1_195_000, 62_000, 0), (1_195_000, 68_000, 3), (1_195_000, 50_000, 0)] * 4]


def interval(number: int, size: int, rtt: int, again: int, sender: bool = True) -> dict[str, Any]:
    more = {"retransmits": again, "snd_cwnd": 200_000, "rtt": rtt} if sender else {}
    stream = {"socket": 5, "start": number / 2, "end": (number + 1) / 2, "bytes": size, "omitted": False, **more}
    return {"streams": [stream], "sum": {}}


def iperf3(rows: Sequence[tuple[int, int, int]] = BUSY, **changes: Any) -> dict[str, Any]:
    reverse = bool(changes.get("reverse"))
    told = [interval(number, *row) for number, row in enumerate(rows)]
    seen = [interval(number, *row, sender=not reverse) for number, row in enumerate(rows)]
    test = {"protocol": "TCP", "num_streams": 1, "blksize": 131072, "duration": len(rows) / 2, "bytes": 0, "blocks": 0}
    test |= {
        "reverse": 0,
        "target_bitrate": 0,
        **{key: changes[key] for key in changes if key in ("reverse", "protocol")},
    }
    ends = {"local_host": "10.0.0.1", "local_port": 41976, "remote_host": "10.0.0.2", "remote_port": 5201, "socket": 5}
    found = {
        "start": {"connected": [ends], "tcp_mss_default": 1448, "sock_bufsize": 0, "test_start": test},
        "intervals": seen,
        "end": {"sum_sent": {"retransmits": sum(row[2] for row in rows)}, "sender_tcp_congestion": "cubic"},
    }
    if changes.get("server_output"):
        found["server_output_json"] = {"intervals": told}
    return found


def twin_of(found: Any, tmp_path: Path) -> Twin:
    file = tmp_path / "iperf.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    return make([file])


def test_iperf3_tells_rate_delay_and_queue(tmp_path: Path) -> None:
    made = twin_of(iperf3(), tmp_path)
    found = made.network.paths[0].estimate
    assert found.rate_bps is not None
    assert found.delay_s is not None
    assert found.queue_bytes is not None
    assert found.rate_bps.value == pytest.approx(1_195_000 * 16 * 1514 / 1448, rel=0.001)
    assert found.rate_bps.low <= 20e6 <= found.rate_bps.high
    assert found.delay_s.value == pytest.approx(0.0225)
    assert found.delay_s.low <= 0.020 <= found.delay_s.high
    # 12 losses, and the longest round trip 23 ms above the least.
    assert found.overflows == 12
    assert found.queue_bytes.value == pytest.approx(0.023 * found.rate_bps.value / 8)
    assert (made.pattern.kind, made.pattern.settings) == ("bulk", {"duration": "6.5 s"})
    assert made.trial.choice.congestion == "cubic"
    assert made.source == "iperf3"
    assert any("ss -ti" in note for note in made.notes)
    goodput = next(row for row in made.rows if row.figure == "goodput" and row.path == "all")
    assert goodput.twin == pytest.approx(goodput.capture or 0, rel=0.1)


def test_a_link_that_never_queued_may_be_faster(tmp_path: Path) -> None:
    made = twin_of(iperf3([(500_000, 40_000, 0)] * 6), tmp_path)
    found = made.network.paths[0].estimate
    assert found.queue_bytes is None
    assert found.rate_bps is not None
    assert found.rate_bps.high == pytest.approx(2 * found.rate_bps.value)
    assert any("no queue was seen" in note for note in made.notes)


def test_losses_without_a_queue_are_random(tmp_path: Path) -> None:
    made = twin_of(iperf3([(500_000, 40_000, 3)] * 6), tmp_path)
    loss = made.network.paths[0].estimate.loss
    assert loss is not None
    assert loss.value == pytest.approx(18 / (3_000_000 / 1448), rel=0.01)
    assert loss.low < loss.value < loss.high


def test_in_reverse_the_servers_figures_count(tmp_path: Path) -> None:
    made = twin_of(iperf3(reverse=1, server_output=True), tmp_path)
    assert made.network.paths[0].sender == "server"
    assert made.pattern.settings["reverse"] is True
    assert made.network.paths[0].estimate.delay_s is not None
    bare = twin_of(iperf3(reverse=1), tmp_path)
    assert bare.network.paths[0].estimate.delay_s is None
    assert any("--get-server-output" in note for note in bare.notes)


def test_a_controller_that_no_scenario_has_gives_way_to_the_default(tmp_path: Path) -> None:
    found = iperf3()
    found["end"]["sender_tcp_congestion"] = "hybla"
    made = twin_of(found, tmp_path)
    assert made.trial.choice.congestion == "cubic"
    assert "# hybla; Linux's default" in made.text


def test_a_stream_of_events_is_read_as_one_object(tmp_path: Path) -> None:
    found = iperf3()
    lines = [{"event": "start", "data": found["start"]}]
    lines += [{"event": "interval", "data": each} for each in found["intervals"]]
    lines += [{"event": "end", "data": found["end"]}]
    file = tmp_path / "stream.json"
    file.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    assert make([file]).text == twin_of(found, tmp_path).text


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"start": {}, "error": "unable to connect"}, "the test failed: unable to connect"),
        (iperf3(protocol="UDP"), "a test over UDP"),
        ({"a": 1}, "not what `iperf3 -J` prints"),
        ([], "not what `iperf3 -J` prints"),
        (iperf3([(0, 40_000, 0)]), "not what `iperf3 -J` prints"),
    ],
)
def test_what_is_no_test_over_tcp_is_refused_in_a_line(found: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "iperf.json"
    file.write_text(" {" if found == [] else json.dumps(found), encoding="utf-8")
    with pytest.raises(CaptureError, match=message):
        make([file])


def line(
    time: float, acked: int, rtt: float, again: int = 0, ends: str = "10.0.0.1:41976 10.0.0.2:5201", more: str = ""
) -> str:
    """As ss of iproute2 6.1 prints it with -tinH."""
    retrans = f" retrans:0/{again}" if again else ""
    return (
        f"{1_700_000_000 + time:.9f}\n"
        f"ESTAB 0      0      {ends}\n"
        f"\t cubic wscale:7,7 rto:241 rtt:{rtt}/1.5 ato:40 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:100"
        f" bytes_sent:{acked} bytes_acked:{acked} bytes_received:1 segs_out:6 segs_in:3 data_segs_out:{acked // 1448}"
        f" send 2891446bps pacing_rate 5782832bps delivered:2 busy:{int(time * 1e3)}ms{retrans}{more}"
        f" rcv_space:14480 rcv_ssthresh:64088 minrtt:40.059 snd_wnd:65152\n"
    )


def log(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "ss.log"
    file.write_text(text, encoding="utf-8")
    return file


def test_ss_tells_the_least_round_trip_and_what_left_the_queue(tmp_path: Path) -> None:
    text = "".join(line(0.1 * n, 239_000 * n, 41 + n % 24, again=n // 10) for n in range(1, 60))
    made = make([log(tmp_path, text)])
    found = made.network.paths[0].estimate
    assert found.rate_bps is not None
    assert found.delay_s is not None
    assert found.queue_bytes is not None
    assert found.rate_bps.value == pytest.approx(239_000 * 80 * 1514 / 1448, rel=0.001)
    assert found.delay_s.value == pytest.approx(0.04006 / 2, rel=0.001)
    assert found.delay_s.high - found.delay_s.low < 0.005
    assert made.source == "ss"
    assert made.network.name == "10.0.0.2:5201"


def test_ss_of_one_moment_tells_totals(tmp_path: Path) -> None:
    text = line(4.0, 4_000_000, 60, again=20).partition("\n")[2]
    made = make([log(tmp_path, "State Recv-Q Send-Q\n" + text)])
    found = made.network.paths[0].estimate
    assert found.rate_bps is not None
    assert found.rate_bps.value == pytest.approx(8e6 * 1514 / 1448, rel=0.001)
    assert any("without times" in note for note in made.notes)


def test_ss_groups_subflows_by_their_token(tmp_path: Path) -> None:
    token = " tcp-ulp-mptcp flags:Mec token:0000(id:0)/5a3f9c12(id:0) seq:1 sfseq:1 ssnoff:0 maplen:0"
    other = token.replace("(id:0)", "(id:1)")
    text = "".join(
        line(0.1 * n, 120_000 * n, 60, more=token)
        + line(0.1 * n, 60_000 * n, 80, ends="10.0.1.1:5 10.0.0.2:5201", more=other)
        for n in range(1, 20)
    )
    made = make([log(tmp_path, text)])
    assert [path.source for path in made.network.paths] == ["10.0.0.1", "10.0.1.1"]
    assert 'transport = "mptcp"' in made.text


def test_ss_tells_what_limited_the_sender(tmp_path: Path) -> None:
    text = "".join(line(0.1 * n, 60_000 * n, 41, more=f" rwnd_limited:{90 * n}ms(90.0%)") for n in range(1, 20))
    made = make([log(tmp_path, text)])
    assert made.trial.choice.receive_buffer == 65152
    assert any("the receive window limited it for 90% of its time" in note for note in made.notes)


def test_a_receivers_sockets_tell_less(tmp_path: Path) -> None:
    text = "".join(
        line(0.1 * n, 100, 41).replace("bytes_received:1", f"bytes_received:{120_000 * n}") for n in range(1, 20)
    )
    made = make([log(tmp_path, text)])
    assert made.network.paths[0].sender == "server"
    assert any("at the sender does" in note for note in made.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("State Recv-Q\n", "no connection with its counters"),
        ("ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic cwnd:10\n", "carried no data"),
        ("ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic cwnd:10 bytes_acked:99\n", "for how long"),
    ],
)
def test_what_tells_nothing_is_refused_in_a_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=message):
        make([log(tmp_path, text)])


def test_a_capture_is_no_log(tmp_path: Path) -> None:
    file = tmp_path / "a.pcap"
    file.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    assert counted.reader(file) is None
    assert counted.reader(tmp_path / "missing") is None


def test_a_listening_socket_and_ipv6_are_read() -> None:
    text = "LISTEN 0 128 0.0.0.0:22 0.0.0.0:*\n" + line(1, 1000, 40, ends="[2001:db8::1]:5 [2001:db8::2]:6")
    found = list(sockets._readings(text))
    assert [(each.local, each.remote) for each in found] == [("[2001:db8::1]:5", "[2001:db8::2]:6")]
