"""noq as the QUIC stack of a host: against itself and against Polypath's endpoint in both roles."""

from pathlib import Path
from typing import Any

import pytest
from tests.engines.test_quic import APPLICATIONS, FETCH, TEXT, _tshark, only

from polypath import fidelity
from polypath.engines import get
from polypath.engines.base import EngineError, Options
from polypath.results import Recording, metrics
from polypath.scenario import Scenario
from polypath.statistics.fidelity import rows

BOTH = ("client", "server")
PAIRINGS = [BOTH, ("client",), ("server",)]


def run(
    noq: tuple[str, ...] = BOTH,
    application: str = FETCH,
    more: str = "",
    settings: tuple[str, ...] = (),
    client: str = "",
    **options: Any,
) -> Recording:
    text = TEXT.format(application=application, more=more, defaults="")
    text = text.replace("[host.client]", f"[host.client]\n{client}")
    made = [f"host.{host}.stack=noq" for host in noq]
    plan = Scenario.parse(text, "noq.toml").with_settings([*made, *settings]).plan()
    return get("sim").run(plan, Options(**options))


@pytest.mark.parametrize("noq", PAIRINGS)
@pytest.mark.parametrize(("transport", "paths"), [("quic", 1), ("mpquic", 2)])
def test_a_file_arrives_whole_in_any_pairing(noq: tuple[str, ...], transport: str, paths: int) -> None:
    recording = run(noq, FETCH.replace("mpquic", transport))
    connection = only(recording)
    assert connection.transport == transport
    assert connection.finished
    assert connection.bytes == 1_000_000
    found = metrics.subflows(recording, connection)
    assert len(found) == paths
    assert all(path.established_ns is not None for path in found)
    assert all((path.bytes or 0) > 1_000_000 / paths / 2 for path in found)


@pytest.mark.parametrize("noq", PAIRINGS)
@pytest.mark.parametrize("application", APPLICATIONS)
def test_every_application_ends(noq: tuple[str, ...], application: str) -> None:
    connection = only(run(noq, f'{application}\ntransport = "mpquic"'))
    assert connection.finished
    assert connection.bytes > 0


@pytest.mark.parametrize("noq", [*PAIRINGS, ()])
def test_a_client_waits_for_streams_that_its_peer_admits_later(noq: tuple[str, ...]) -> None:
    # A server of noq admits 100 at first, and may say so of more in a packet without data.
    connection = only(run(noq, 'kind = "fetch"\nsize = "32 B"\ncount = 400\nparallel = 100\ntransport = "quic"'))
    assert connection.finished
    assert connection.bytes == 400 * 32


@pytest.mark.parametrize("noq", PAIRINGS)
def test_equal_seeds_give_equal_recordings(noq: tuple[str, ...]) -> None:
    # 3 MB are more than the at most 1000 packets after which noq takes new keys for the first time.
    application = FETCH.replace("1 MB", "3 MB")
    loss = ("link.path0.loss=1 %",)
    assert (
        run(noq, application, settings=loss).metadata.recording_sha256
        == run(noq, application, settings=loss).metadata.recording_sha256
    )


def test_another_seed_gives_another_recording() -> None:
    loss = ("link.path0.loss=1 %",)
    assert run(settings=loss).metadata.recording_sha256 != run(settings=(*loss, "seed=2")).metadata.recording_sha256


@pytest.mark.parametrize("noq", PAIRINGS)
def test_captures_change_nothing_and_tshark_decrypts_them(noq: tuple[str, ...], tmp_path: Path) -> None:
    quic = FETCH.replace("1 MB", "100 kB").replace("mpquic", "quic")
    plain = run(noq, quic)
    captured = run(noq, quic, captures="hosts", directory=tmp_path)
    assert plain.metadata.recording_sha256 == captured.metadata.recording_sha256
    for name in BOTH:
        (file,) = tmp_path.rglob(f"{name}.pcapng")
        lines = _tshark(file, "-T", "fields", "-e", "quic.frame_type")
        assert len(lines) > 100
        assert all(lines), "every packet shows its frames"
        assert not _tshark(file, "-Y", "quic.decryption_failed or _ws.malformed")


def test_captures_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    for again in ("one", "two"):
        run(captures="hosts", directory=tmp_path / again)
    for name in BOTH:
        one, two = (next((tmp_path / again).rglob(f"{name}.pcapng")).read_bytes() for again in ("one", "two"))
        assert one == two


def test_rows_of_noq_say_what_it_tells() -> None:
    recording = run()
    sender = recording.table("subflows").filter(side="server")
    assert sender["cwnd_packets"].max() > 20  # type: ignore[operator]
    assert sender["in_flight_packets"].max() > 20  # type: ignore[operator]
    # Two ways of 20 ms, and what it waits in the queue of 64 kB at 10 Mbps.
    late = sender.filter(sender["time_ns"] > 200_000_000)["srtt_us"]
    assert 39_000 < late.min() < late.max() < 120_000  # type: ignore[operator]
    kinds = recording.table("events")["kind"].to_list()
    assert kinds.count("subflow-established") == 4
    assert kinds.count("connection-closed") == 2


@pytest.mark.parametrize("noq", PAIRINGS)
def test_a_backup_stays_unused(noq: tuple[str, ...]) -> None:
    recording = run(noq, client="interface = { eth0 = {}, eth1 = { backup = true } }")
    first, backup = metrics.subflows(recording, only(recording))
    assert only(recording).finished
    assert not first.backup
    assert backup.backup
    assert backup.bytes is not None
    assert first.bytes is not None
    assert backup.bytes < 20_000 < first.bytes


@pytest.mark.parametrize("noq", PAIRINGS)
def test_an_interface_that_goes_down_is_abandoned(noq: tuple[str, ...]) -> None:
    events = '[[event]]\nat = "0.3 s"\ninterface = "client:eth0"\nup = false'
    recording = run(noq, FETCH.replace("1 MB", "3 MB"), more=events)
    first, _ = metrics.subflows(recording, only(recording))
    assert only(recording).finished
    assert first.closed_ns is not None
    assert first.closed_ns < 400_000_000


@pytest.mark.parametrize("noq", PAIRINGS)
def test_the_path_manager_opens_paths_of_noq(noq: tuple[str, ...]) -> None:
    steps = 'path_manager = { kind = "scripted", steps = ["200 ms open 10.0.1.1 10.0.2.2"] }'
    recording = run(noq, FETCH.replace("1 MB", "3 MB"), client=steps)
    _, second = metrics.subflows(recording, only(recording))
    assert only(recording).finished
    assert second.established_ns is not None
    assert 240_000_000 < second.established_ns < 400_000_000


@pytest.mark.parametrize("noq", PAIRINGS)
def test_a_nat_that_forgets_is_followed_to_its_new_port(noq: tuple[str, ...]) -> None:
    application = 'kind = "request-response"\ncount = 4\ninterval = "3 s"\nrequest = "5 kB"\nresponse = "50 kB"\n'
    text = TEXT.format(application=f'{application}transport = "quic"', more="", defaults="").replace(
        '"client:eth0", "r"]', '"client:eth0", "r"]\nmiddlebox = { kind = "nat", timeout_s = 1, keep_ports = false }'
    )
    made = [f"host.{host}.stack=noq" for host in noq]
    recording = get("sim").run(Scenario.parse(text, "noq.toml").with_settings(made).plan())
    assert only(recording).finished
    known = metrics.Delays.of(metrics.delays(recording, only(recording)))
    assert len(known.answered) == 4


def test_both_stacks_and_tcp_share_a_host() -> None:
    tcp = '[[application]]\nname = "tcp"\nkind = "fetch"\nsize = "1 MB"\ntransport = "mptcp"\n'
    polypath = 'stack = { stack = "polypath" }\n'
    quic = f'[[application]]\nname = "own"\n{FETCH}\n{polypath}'
    recording = run(more=f"{tcp}{polypath}{quic}", settings=())
    assert all(connection.finished for connection in metrics.connections(recording))
    assert [connection.transport for connection in metrics.connections(recording)] == ["mpquic", "mptcp", "mpquic"]


def test_linux_says_that_it_has_no_quic() -> None:
    text = TEXT.format(application=FETCH, more="", defaults='stack = "noq"')
    with pytest.raises(EngineError, match="which Linux does not have"):
        get("linux").run(Scenario.parse(text, "noq.toml").plan())


@pytest.mark.parametrize("name", ["quic-fetch-1MB", "quic-small-queue", "mpquic-delays"])
def test_both_stacks_come_to_the_same_figures(name: str) -> None:
    entry = next(entry for entry in fidelity.catalogue() if entry.name == name)
    own, noq = (
        [get("sim").run(plan) for plan in entry.plans(settings)]
        for settings in (entry.polypath, ("defaults.stack=noq",))
    )
    assert [row.verdict for row in rows(own, noq)] == ["ok"]


def test_a_dead_path_holds_up_noq_longer() -> None:
    entry = next(entry for entry in fidelity.catalogue() if entry.name == "mpquic-failover")
    own, noq = (
        metrics.subflows(recording, only(recording))
        for settings in (entry.polypath, ("defaults.stack=noq",))
        for recording in [get("sim").run(entry.plans(settings)[0])]
    )
    assert max(path.closed_ns or 0 for path in own) < max(path.closed_ns or 0 for path in noq)
    assert (own[0].share or 0) < (noq[0].share or 0)
