"""An account adds up to what the links could have carried, and changes nothing of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from polypath import engines, labs
from polypath.cli import jobs
from polypath.engines import Options
from polypath.results import Recording, account, metrics, reasons
from polypath.results.account import Account
from polypath.results.metrics import SECOND
from polypath.scenario import Scenario

WIFI_LTE: Final = """
duration = "20 s"
[host.client]
[host.server]
[router.r]
[link.wifi]
ends = ["client:wifi", "r"]
rate = "30 Mbps"
delay = "10 ms"
loss = "1 %"
queue = "50 packets"
[link.lte]
ends = ["client:lte", "r"]
rate = "20 Mbps"
delay = "30 ms"
queue = "500 packets"
[link.server]
ends = ["r", "server"]
[[application]]
name = "get"
kind = "bulk"
transport = "mptcp"
reverse = true
duration = "20 s"
"""
#: Of each cause a part of a byte is not told.
ROUNDING: Final = 40


def ran(text: str, *settings: str) -> Recording:
    plan = Scenario.parse(text, "x.toml").with_settings(list(settings)).plan()
    return engines.get("sim").run(plan, Options(account=True))


def kept(recording: Recording, name: str, since_ns: int = 0, until_ns: int | None = None) -> Account:
    found = account.of_connection(recording, metrics.connection(recording, name), since_ns, until_ns)
    assert found is not None
    return found


def charged(found: Account, cause: str, path: str | None = None) -> int:
    return sum(each.bytes for each in found.charges if each.cause == cause and path in (None, each.path))


def test_the_parts_add_up_to_what_the_links_could_carry() -> None:
    found = kept(ran(WIFI_LTE), "get")
    assert found.capacity_bytes == found.delivered_bytes + sum(each.bytes for each in found.charges)
    assert found.capacity_bytes == pytest.approx(20 * 50e6 / 8, abs=ROUNDING)


@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic", "mpquic"])
def test_what_was_delivered_is_what_the_application_got(transport: str) -> None:
    recording = ran(WIFI_LTE, f"application.get.transport={transport}", "application.get.size=5 MB")
    connection = metrics.connection(recording, "get")
    assert connection.finished
    found = kept(recording, "get")
    assert found.delivered_bytes == 5_000_000
    assert charged(found, "under-way") == pytest.approx(0, abs=ROUNDING)


@pytest.mark.parametrize("transport", ["tcp", "quic", "mpquic"])
def test_a_transfer_that_was_sent_has_not_an_application_without_data(transport: str) -> None:
    settings = f"application.get.transport={transport}", "application.get.size=100 kB", "link.wifi.loss=0 %"
    found = kept(ran(WIFI_LTE, *settings), "get")
    assert charged(found, "finished") > 0
    # Both links idle until the last acknowledgement, and wait for no other data.
    assert charged(found, "application") < 0.01 * charged(found, "finished")


def test_stretches_of_time_add_up_to_the_whole() -> None:
    recording = ran(WIFI_LTE)
    middle = 7 * SECOND
    whole, first, second = kept(recording, "get"), kept(recording, "get", 0, middle), kept(recording, "get", middle)
    for name in ("capacity_bytes", "delivered_bytes"):
        assert getattr(whole, name) == getattr(first, name) + getattr(second, name)
    for cause in {each.cause for each in whole.charges}:
        assert charged(whole, cause) == charged(first, cause) + charged(second, cause)


def test_random_loss_on_wifi_is_what_holds_wifi_back() -> None:
    found = kept(ran(WIFI_LTE), "get")
    first, second = found.charges[:2]
    assert (first.cause, first.path, first.at) == ("random-loss", "wifi", "wifi")
    assert (second.cause, second.path) == ("coupling", "wifi")
    uncoupled = kept(ran(WIFI_LTE, "defaults.congestion=reno"), "get")
    assert charged(uncoupled, "coupling") == 0
    gained = uncoupled.delivered_bytes - found.delivered_bytes
    assert charged(found, "coupling") == pytest.approx(gained, rel=0.5)


def test_a_link_that_is_down_could_have_carried_its_rate() -> None:
    outage = '\n[[event]]\nat = "5 s"\nlink = "lte"\nup = false\n'
    found = kept(ran(WIFI_LTE + outage), "get")
    assert found.capacity_bytes == pytest.approx(20 * 50e6 / 8, abs=ROUNDING)
    assert charged(found, "down", "lte") == pytest.approx(15 * 20e6 / 8, rel=0.01)


def test_a_link_that_loses_every_packet_is_down() -> None:
    away = '\n[[event]]\nat = "5 s"\nlink = "lte"\nloss = "100 %"\n'
    found = kept(ran(WIFI_LTE.replace('loss = "1 %"', "") + away), "get")
    assert charged(found, "down", "lte") == pytest.approx(15 * 20e6 / 8, rel=0.02)
    assert charged(found, "random-loss", "lte") < 0.01 * charged(found, "down", "lte")


def test_a_link_that_never_comes_up_does_not_count() -> None:
    down = WIFI_LTE.replace("[link.lte]", "[link.lte]\nup = false")
    found = kept(ran(down), "get")
    assert found.capacity_bytes == pytest.approx(20 * 30e6 / 8, abs=ROUNDING)
    assert {each.path for each in found.charges} == {"wifi"}
    later = kept(ran(down + '\n[[event]]\nat = "15 s"\nlink = "lte"\nup = true\n'), "get")
    assert later.capacity_bytes == pytest.approx(20 * 50e6 / 8, abs=ROUNDING)
    assert charged(later, "down", "lte") == pytest.approx(15 * 20e6 / 8, rel=0.02)


def test_a_subflow_that_was_reset_is_not_just_closed() -> None:
    (job,) = jobs.of_target("failover", ["nat-forgets"], ['duration="75 s"'], None)
    recording = engines.get("sim").run(job.plan, Options(account=True))
    charges = kept(recording, "transfer").charges
    closed = next(each for each in charges if each.cause == "closed")
    assert (closed.path, closed.reset) == ("path1", True)
    assert reasons.sentence(closed) == "The subflow over path1 was reset"


def test_a_rate_that_changes_is_counted_as_it_changes() -> None:
    slower = '\n[[event]]\nat = "5 s"\nlink = "lte"\nrate = "4 Mbps"\n'
    found = kept(ran(WIFI_LTE + slower), "get")
    expected = (20 * 30e6 + 5 * 20e6 + 15 * 4e6) / 8
    assert found.capacity_bytes == pytest.approx(expected, abs=ROUNDING)


def test_a_shared_link_counts_once() -> None:
    recording = ran(WIFI_LTE.replace('ends = ["r", "server"]', 'ends = ["r", "server"]\nrate = "25 Mbps"'))
    found = kept(recording, "get")
    assert found.capacity_bytes == pytest.approx(20 * 25e6 / 8, abs=ROUNDING)
    assert {each.path for each in found.charges} == {"server"}


def test_what_others_could_use_is_no_charge_of_ones_own() -> None:
    """Two connections that lose at random are not charged both with what the link leaves idle."""
    text = WIFI_LTE.replace("mptcp", "tcp")
    other = text[text.index("[[application]]") :].replace("get", "other")
    recording = ran(text + other)
    one, second = kept(recording, "get"), kept(recording, "other")
    idle = charged(one, "random-loss") + charged(second, "random-loss")
    carried = one.delivered_bytes + second.delivered_bytes
    assert idle + carried == pytest.approx(one.capacity_bytes, rel=0.1)


def test_an_account_kept_aside_changes_neither_tables_nor_hash() -> None:
    plan = Scenario.parse(WIFI_LTE, "x").plan()
    plain, aside = engines.get("sim").run(plan), engines.get("sim").run(plan, Options(account=True))
    assert plain.table("account").is_empty()
    assert aside.table("account").height
    for name in ("subflows", "connections", "links", "events", "counters"):
        assert plain.table(name).equals(aside.table(name)), name
    assert plain.metadata.recording_sha256 == aside.metadata.recording_sha256
    asked = engines.get("sim").run(Scenario.parse(WIFI_LTE, "x").with_settings(["record.account=true"]).plan())
    assert asked.metadata.recording_sha256 != plain.metadata.recording_sha256
    assert asked.table("account").equals(aside.table("account"))


def test_a_link_that_follows_a_trace_could_carry_its_opportunities(tmp_path: Path) -> None:
    (tmp_path / "four.trace").write_text("\n".join(str(each) for each in range(3, 3001, 3)) + "\n")
    text = WIFI_LTE.replace('rate = "20 Mbps"', f'rate = {{ trace = "{tmp_path}/four.trace" }}')
    found = kept(ran(text), "get")
    opportunities = 20_000 // 3
    assert found.capacity_bytes == pytest.approx(20 * 30e6 / 8 + opportunities * 1500, rel=1e-3)


def test_under_a_controller_no_account_is_kept() -> None:
    lab = labs.get("fat-tree-controller").scenario()
    recording = engines.get("sim").run(
        lab.with_settings(["duration=200 ms", "topology.interfaces=1"]).plan(), Options(account=True)
    )
    assert recording.table("account").is_empty()
