"""QUIC and Multipath QUIC in the simulator: whole runs, captures, and what both ends count."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from polypath.engines import get
from polypath.engines.base import EngineError, Options
from polypath.results import Recording, causes, metrics
from polypath.scenario import Scenario

TEXT = """
name = "quic"
duration = "20 s"
[defaults]
profile = "rfc"
congestion = "cubic"
{defaults}
[host.client]
[host.server]
[router.r]
[link.path0]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "20 ms"
queue = "64 kB"
[link.path1]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "20 ms"
queue = "64 kB"
[link.server]
ends = ["r", "server"]
[[application]]
name = "get"
{application}
{more}
"""
FETCH = 'kind = "fetch"\nsize = "1 MB"\ntransport = "mpquic"'
APPLICATIONS = [
    'kind = "bulk"\nsize = "500 kB"',
    'kind = "bulk"\nsize = "500 kB"\nreverse = true',
    'kind = "bulk"\nduration = "1 s"',
    'kind = "stream"\nrate = "2 Mbps"\nduration = "2 s"',
    'kind = "request-response"\ncount = 5\nrequest = "20 kB"\nresponse = "40 kB"',
    'kind = "ping-pong"\nsize = "100 B"\ncount = 20',
    'kind = "fetch"\nsize = "50 kB"\ncount = 12\nparallel = 5',
    'kind = "fetch"\nsize = "50 kB"\ncount = 12\nparallel = 5\nstreams = "one"',
]


def run(application: str = FETCH, more: str = "", defaults: str = "", **options: Any) -> Recording:
    text = TEXT.format(application=application, more=more, defaults=defaults)
    return get("sim").run(Scenario.parse(text, "quic.toml").plan(), Options(**options))


@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic"])
def test_a_bulk_that_is_over_before_its_handshake_sends_nothing(transport: str) -> None:
    recording = run(f'kind = "bulk"\nduration = "5 ms"\ntransport = "{transport}"')
    assert only(recording).bytes == 0
    assert recording.metadata.end_ns < 1e9


def test_copies_count_on_the_path_that_brought_them() -> None:
    application = 'kind = "request-response"\ncount = 10\ninterval = "100 ms"\nrequest = "750 B"\nresponse = "750 B"'
    recording = run(
        f'{application}\ntransport = "mpquic"', defaults='scheduler = "redundant"\npath_manager = "fullmesh"'
    )
    first, second = metrics.subflows(recording, only(recording))
    assert first.bytes == 7500
    assert second.bytes is not None
    assert 5000 <= second.bytes <= 7500


def only(recording: Recording) -> metrics.Connection:
    (connection,) = metrics.connections(recording)
    return connection


@pytest.mark.parametrize("profile", ["rfc", "linux", "mptcp.org"])
def test_every_profile_carries_quic(profile: str) -> None:
    text = TEXT.replace('"rfc"', f'"{profile}"')
    application = 'kind = "bulk"\nsize = "500 kB"\ntransport = "quic"'
    scenario = Scenario.parse(text.format(application=application, more="", defaults=""), "quic.toml")
    of = only(get("sim").run(scenario.plan(), Options()))
    assert (of.bytes, of.finished) == (500_000, True)


@pytest.mark.parametrize(("transport", "paths"), [("quic", 1), ("mpquic", 2)])
def test_a_file_arrives_whole(transport: str, paths: int) -> None:
    # Nothing is lost, so no probe brings a copy.
    text = TEXT.format(application=FETCH.replace("mpquic", transport), more="", defaults="").replace("64 kB", "1 MB")
    recording = get("sim").run(Scenario.parse(text, "quic.toml").plan())
    connection = only(recording)
    assert connection.transport == transport
    assert connection.finished
    assert connection.bytes == 1_000_000
    found = metrics.subflows(recording, connection)
    assert len(found) == paths
    assert sum(path.bytes or 0 for path in found) == 1_000_000
    assert all(path.established_ns is not None for path in found)


@pytest.mark.parametrize("application", APPLICATIONS)
def test_every_application_ends(application: str) -> None:
    connection = only(run(f'{application}\ntransport = "mpquic"'))
    assert connection.finished
    assert connection.bytes > 0


@pytest.mark.parametrize("name", ["roundrobin", "redundant", "blest", "ecf", "sttf", "kbest", "balanced"])
def test_schedulers_run_unchanged(name: str) -> None:
    connection = only(run(defaults=f'scheduler = "{name}"'))
    assert connection.finished
    assert connection.bytes == 1_000_000


def test_a_link_that_goes_down_leaves_the_other() -> None:
    events = '[[event]]\nat = "0.3 s"\nlink = "path0"\nup = false'
    recording = run(FETCH.replace("1 MB", "3 MB"), more=events)
    assert only(recording).finished
    kinds = recording.table("events")["kind"].to_list()
    assert "potentially-failed" in kinds


def test_an_interface_that_goes_down_is_abandoned() -> None:
    events = '[[event]]\nat = "0.3 s"\ninterface = "client:eth0"\nup = false'
    recording = run(FETCH.replace("1 MB", "3 MB"), more=events)
    first, _ = metrics.subflows(recording, only(recording))
    assert only(recording).finished
    assert first.closed_ns is not None
    assert first.closed_ns < 400_000_000


@pytest.mark.parametrize("transport", ["quic", "mpquic"])
def test_a_nat_that_forgets_is_followed_to_its_new_port(transport: str) -> None:
    nat = 'middlebox = { kind = "nat", timeout_s = 1, keep_ports = false }'
    application = (
        'kind = "request-response"\ncount = 4\ninterval = "3 s"\nrequest = "5 kB"\nresponse = "50 kB"\n'
        f'transport = "{transport}"'
    )
    text = TEXT.format(application=application, more="", defaults="").replace(
        '"client:eth0", "r"]', f'"client:eth0", "r"]\n{nat}'
    )
    # The path behind the NAT is the better one.
    text = text.replace('ends = ["client:eth1", "r"]\nrate = "10 Mbps"', 'ends = ["client:eth1", "r"]\nrate = "1 Mbps"')
    recording = get("sim").run(Scenario.parse(text, "quic.toml").plan())
    assert only(recording).finished
    (translated,) = recording.table("middleboxes").to_dicts()
    assert translated["changed_packets"] > 50
    known = metrics.Delays.of(metrics.delays(recording, only(recording)))
    assert len(known.answered) == 4


def test_captures_change_nothing_and_tshark_decrypts_them(tmp_path: Path) -> None:
    quic = FETCH.replace("mpquic", "quic")
    plain = run(quic)
    captured = run(quic, captures="hosts", directory=tmp_path)
    assert plain.metadata.recording_sha256 == captured.metadata.recording_sha256
    for name in ("client", "server"):
        (file,) = tmp_path.rglob(f"{name}.pcapng")
        lines = _tshark(file, "-T", "fields", "-e", "quic.frame_type")
        assert len(lines) > 1000
        assert all(lines), "every packet shows its frames"
        assert not _tshark(file, "-Y", "quic.decryption_failed or _ws.malformed")
        sent = _tshark(file, "-Y", "ip.src != 10.0.0.1", "-T", "fields", "-e", "quic.stream.length")
        logged = _tshark(
            file, "-o", f"tls.keylog_file:{tmp_path / 'keys.log'}", "-T", "fields", "-e", "quic.frame_type"
        )
        assert logged == lines
        total = sum(int(length) for line in sent for length in line.split(",") if length)
        assert total >= 1_000_000


def test_captures_of_several_paths_change_nothing(tmp_path: Path) -> None:
    plain = run()
    captured = run(captures="hosts", directory=tmp_path)
    assert plain.metadata.recording_sha256 == captured.metadata.recording_sha256


def test_linux_says_that_it_has_no_quic() -> None:
    text = TEXT.format(application=FETCH, more="", defaults="")
    with pytest.raises(
        EngineError, match=r"^application 'get' uses QUIC, which Linux does not have; --engine sim has it$"
    ):
        get("linux").run(Scenario.parse(text, "quic.toml").plan())


def test_equal_seeds_give_equal_recordings() -> None:
    assert run().metadata.recording_sha256 == run().metadata.recording_sha256


def _tshark(file: Path, *arguments: str) -> list[str]:
    command = ["tshark", "-r", str(file), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_server_that_asks_for_a_token_costs_a_round_trip() -> None:
    plain, asked = (only(run(defaults=defaults)).established_ns for defaults in ("", "retry = true"))
    assert plain is not None
    assert asked is not None
    # 20 ms each way, and what the packets themselves take.
    assert 40_000_000 < asked - plain < 45_000_000
    recording = run(defaults="retry = true")
    assert only(recording).finished
    assert only(recording).bytes == 1_000_000


@pytest.mark.parametrize("stacks", [("polypath", "polypath"), ("polypath", "noq"), ("noq", "polypath")])
def test_a_later_connection_resumes_the_session(tmp_path: Path, stacks: tuple[str, str]) -> None:
    client, server = stacks
    more = f'client_stack.stack = "{client}"\nserver_stack.stack = "{server}"\n'
    more += f'[[application]]\nname = "again"\nstart = "5 s"\n{FETCH}\n{more}'
    for defaults, certificates in (("", 2), ("resumption = true", 1)):
        recording = run(more=more, defaults=defaults, captures="hosts", directory=tmp_path / str(certificates))
        assert all(each.finished for each in metrics.connections(recording))
        capture = tmp_path / str(certificates) / "client.pcapng"
        # RFC 8446 section 4: a message of type 11.
        found = _tshark(capture, "-Y", "tls.handshake.type == 11", "-T", "fields", "-e", "udp.stream")
        assert len(set(found)) == certificates


def test_the_account_of_what_waited_is_that_of_the_samples() -> None:
    more = '[record]\ninterval = "1 ms"\n[[event]]\nat = "0 s"\nlink = "path1"\ndelay = "60 ms"\nloss = "1%"'
    recording = run('kind = "fetch"\nsize = "1 MB"\ntransport = "mpquic"', more)
    of = only(recording)
    found = metrics.blocking(recording, of)
    assert found
    assert {each.level for each in found} == {"connection"}
    assert {"late", "reinjected"} <= {each.cause for each in found}
    samples = recording.groups("connections", ("connection", "side"), ("time_ns",))
    integral = sum(samples.column("reassembly_bytes", of.id, "client")) * 1e-3
    assert sum(each.byte_s for each in found) == pytest.approx(integral, rel=0.02)
    assert sum(each.time_ns for each in found) <= of.until_ns - of.start_ns
    kinds = {cause.kind for cause in causes.of_connection(recording, of)}
    assert "waiting" in kinds


def test_streams_of_their_own_wait_for_less() -> None:
    """Beside one stream for all files: over several, a hole holds up its own stream only."""
    lossy = '[[event]]\nat = "0 s"\nlink = "path0"\nloss = "2%"'
    waited = []
    for streams in ("each", "one"):
        files = f'kind = "fetch"\nsize = "50 kB"\ncount = 20\nparallel = 10\nstreams = "{streams}"\ntransport = "quic"'
        recording = run(files, lossy)
        found = metrics.blocking(recording, only(recording))
        assert found
        waited.append(sum(each.byte_s for each in found))
    assert 0 < waited[0] < 0.5 * waited[1]


@pytest.mark.parametrize("stack", ["polypath", "noq"])
def test_files_asked_for_first_come_first_where_streams_are_ordered(stack: str) -> None:
    ends = {}
    for streams in ("each", "ordered"):
        files = f'kind = "fetch"\nsize = "100 kB"\ncount = 10\nparallel = 10\nstreams = "{streams}"\ntransport = "quic"'
        recording = run(files, defaults=f'stack = "{stack}"')
        delays = recording.table("requests")["delay_ns"].to_list()
        assert len(delays) == 10
        ends[streams] = delays
    assert ends["ordered"] == sorted(ends["ordered"])
    assert ends["ordered"][0] < 0.4 * ends["each"][0]
    assert ends["ordered"][-1] == pytest.approx(ends["each"][-1], rel=0.05)
