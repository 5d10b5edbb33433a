"""Congestion controls in Python: same bytes as in Rust, over every transport, and what goes wrong with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from polypath import EngineError, Scenario, ScenarioError, run, summary
from polypath.engines import ScriptFailed

SCENARIO = """
duration = "4 s"
{defaults}
[host.client]
congestion = {congestion}
[host.server]
congestion = {congestion}
[router.r]
[link.path0]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "10 ms"
queue = "30 packets"
[link.path1]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "20 ms"
queue = "50 packets"
loss = "0.5 %"
[link.server]
ends = ["r:eth2", "server"]
[[application]]
name = "bulk"
kind = "bulk"
transport = "{transport}"
"""

RENO = """
class Reno:
    def on_ack(self, path, ack):
        if not ack.cwnd_limited:
            return
        acked = ack.packets
        if path.in_slow_start:
            acked = path.slow_start(acked)
            if acked == 0:
                return
        path.additive_increase(path.cwnd, acked)
"""

LIA = """
import math


def window(path):
    if path.potentially_failed:
        return min(path.cwnd, 1)
    if path.state == "Recovery" and path.ssthresh is not None:
        return min(path.cwnd, path.ssthresh)
    return path.cwnd


class Lia:
    credit = 0.0

    def on_ack(self, path, ack):
        if not ack.cwnd_limited:
            return
        acked = ack.packets
        if path.in_slow_start:
            acked = path.slow_start(acked)
            if acked == 0:
                return
        best = total = 0.0
        for other in path.paths:
            if other.established and other.srtt > 0:
                srtt = float(round(other.srtt * 1e9))
                rate = window(other) / srtt
                best, total = max(best, rate / srtt), total + rate
        increase = best / (total * total) if total > 0 else math.inf
        self.credit += acked * min(increase, 1.0 / path.cwnd)
        whole = math.trunc(self.credit)
        self.credit -= whole
        path.cwnd += whole

    def on_state(self, path, state):
        if state in ("CWR", "Recovery", "Loss"):
            self.credit = 0.0
"""

#: examples/bbr.py
BBR = (Path(__file__).resolve().parents[2] / "examples" / "bbr.py").read_text(encoding="utf-8")

RATE = """
class Rate:
    paces = True

    def __init__(self, gain=1.0):
        self.gain, self.best = gain, []

    def on_established(self, path):
        path.pacing_rate = 100_000

    def control(self, path, ack, sample):
        if sample.rate is not None:
            self.best = (self.best + [(ack.now, sample.rate)])[-50:]
        rate = max((rate for _, rate in self.best), default=100_000)
        path.pacing_rate = max(self.gain * rate, 1)
        path.cwnd = max(4, int(2 * rate * (path.min_rtt or 0.1) / path.mss))
"""


def scenario(folder: Path, congestion: str, source: str, transport: str, profile: str | None = None) -> Scenario:
    (folder / "own.py").write_text(source)
    file = folder / "scenario.toml"
    defaults = f'[defaults]\nprofile = "{profile}"' if profile else ""
    file.write_text(SCENARIO.format(congestion=congestion, transport=transport, defaults=defaults))
    return Scenario.load(file)


@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic", "mpquic"])
@pytest.mark.parametrize(("name", "source"), [("reno", RENO), ("lia", LIA), ("bbr", BBR)])
def test_a_rule_in_python_gives_the_bytes_of_the_same_in_rust(
    tmp_path: Path, name: str, source: str, transport: str
) -> None:
    own = run(scenario(tmp_path, f'"own.py:{name.title()}"', source, transport))
    built_in = run(scenario(tmp_path, f'"{name}"', source, transport))
    assert own.metadata.recording_sha256 == built_in.metadata.recording_sha256
    assert summary(own)["connections"][0]["goodput_mbps"] > 3


@pytest.mark.parametrize(
    "settings",
    [
        {"duration": "13 s", "link.path0.loss": "2 %"},
        {
            "duration": "13 s",
            "application.bulk.kind": "stream",
            "application.bulk.rate": "2 Mbps",
            "application.bulk.block": "500 kB",
        },
        {"link.path0.queue": "4 packets", "link.path0.rate": "1 Mbps"},
        {"seed": 77, "link.path0.jitter": "3 ms"},
    ],
)
def test_bbr_in_python_is_bbr_where_it_probes_idles_and_is_policed(tmp_path: Path, settings: dict[str, object]) -> None:
    own = scenario(tmp_path, '"own.py:Bbr"', BBR, "tcp").with_(settings)
    built_in = scenario(tmp_path, '"bbr"', BBR, "tcp").with_(settings)
    assert run(own).metadata.recording_sha256 == run(built_in).metadata.recording_sha256


@pytest.mark.parametrize("transport", ["tcp", "mpquic"])
def test_one_that_sets_a_rate_fills_the_path(tmp_path: Path, transport: str) -> None:
    made = '{ kind = "own.py:Rate", gain = 1.2 }'
    fast = summary(run(scenario(tmp_path, made, RATE, transport)))["connections"][0]["goodput_mbps"]
    slow = summary(run(scenario(tmp_path, made.replace("1.2", "0.7"), RATE, transport)))["connections"][0]
    assert fast > 6 > slow["goodput_mbps"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "path.cwnd = 0",
            "own.py:4: ValueError: cwnd is set to 0; it must be a whole number of packets, 1 to 1073741824",
        ),
        ("path.cwnd = 2.5", "own.py:4: ValueError: cwnd is set to 2.5; it must be a whole number of packets"),
        ("path.ssthresh = -1", "own.py:4: ValueError: ssthresh is set to -1; it must be a whole number of packets"),
        (
            "path.pacing_rate = 'fast'",
            "own.py:4: ValueError: pacing_rate is set to 'fast'; it must be a number of bytes per second, at least 1",
        ),
        ("path.nothing", "own.py:4: AttributeError: 'polypath._core.ControlledPath' object has no attribute 'nothing'"),
        ("1 / 0", "own.py:4: ZeroDivisionError: division by zero"),
    ],
)
def test_one_that_fails_ends_the_run_with_its_own_line(tmp_path: Path, body: str, expected: str) -> None:
    source = f"class Own:\n    def on_ack(self, path, ack):\n        ack.packets\n        {body}\n"
    with pytest.raises(ScriptFailed) as caught:
        run(scenario(tmp_path, '"own.py:Own"', source, "tcp"))
    assert str(caught.value).startswith(expected)
    assert "(Own.on_ack, " in str(caught.value)


@pytest.mark.parametrize("transport", ["tcp", "mpquic"])
def test_what_a_method_returns_is_checked(tmp_path: Path, transport: str) -> None:
    source = f"{RENO}\n    def ssthresh(self, path):\n        return 0\n".replace("class Reno", "class Own")
    with pytest.raises(ScriptFailed, match="ssthresh returned 0; it must be a whole number of packets"):
        run(scenario(tmp_path, '"own.py:Own"', source, transport))


def test_its_threshold_and_states_are_followed(tmp_path: Path) -> None:
    gentle = RENO + "\n    def ssthresh(self, path):\n        return max(path.cwnd * 9 // 10, 2)\n"
    halved = summary(run(scenario(tmp_path, '"own.py:Reno"', RENO, "mptcp")))["connections"][0]["goodput_mbps"]
    gentler = summary(run(scenario(tmp_path, '"own.py:Reno"', gentle, "mptcp")))["connections"][0]["goodput_mbps"]
    assert gentler > halved


def test_a_window_that_nothing_sets_is_refused_before_the_run(tmp_path: Path) -> None:
    source = "class Own:\n    paces = True\n    def on_ack(self, path, ack): ...\n"
    with pytest.raises(EngineError, match="Own with paces = True has no method 'control'"):
        run(scenario(tmp_path, '"own.py:Own"', source, "tcp"))


def test_a_host_that_runs_noq_has_its_own(tmp_path: Path) -> None:
    made = scenario(tmp_path, '"own.py:Reno"', RENO, "quic")
    text = Path(tmp_path / "scenario.toml").read_text().replace("[host.server]", '[host.server]\nstack = "noq"')
    (tmp_path / "scenario.toml").write_text(text)
    assert made is not None
    with pytest.raises(ScenarioError, match=r"own\.py:Reno' cannot run on 'server', which runs noq"):
        Scenario.load(tmp_path / "scenario.toml")
