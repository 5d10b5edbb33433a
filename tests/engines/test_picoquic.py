"""picoquic as the QUIC stack of a host: against itself, noq and Polypath's endpoint in both roles."""

from pathlib import Path
from typing import Any

import pytest
from tests.engines.test_quic import APPLICATIONS, FETCH, TEXT, _tshark, only

from polypath.engines import get
from polypath.engines.base import EngineError, Options
from polypath.results import Recording, metrics
from polypath.scenario import Scenario
from polypath.stacks import STACKS

MISSING = STACKS["picoquic"].missing()
needs_picoquic = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

#: The stacks of client and server.
PAIRINGS = [
    ("picoquic", "picoquic"),
    ("picoquic", "polypath"),
    ("polypath", "picoquic"),
    ("picoquic", "noq"),
    ("noq", "picoquic"),
]


def plan(pair: tuple[str, str], application: str = FETCH, more: str = "", *settings: str, client: str = "") -> Any:
    text = TEXT.format(application=application, more=more, defaults="").replace('congestion = "cubic"', "")
    text = text.replace("[host.client]", f"[host.client]\n{client}")
    made = [f"host.{host}.stack={stack}" for host, stack in zip(("client", "server"), pair, strict=True)]
    return Scenario.parse(text, "picoquic.toml").with_settings([*made, *settings]).plan()


def run(pair: tuple[str, str], application: str = FETCH, more: str = "", *settings: str, **given: Any) -> Recording:
    client = given.pop("client", "")
    return get("sim").run(plan(pair, application, more, *settings, client=client), Options(**given))


@needs_picoquic
@pytest.mark.parametrize("pair", PAIRINGS)
@pytest.mark.parametrize(("transport", "paths"), [("quic", 1), ("mpquic", 2)])
def test_a_file_arrives_whole_in_any_pairing(pair: tuple[str, str], transport: str, paths: int) -> None:
    recording = run(pair, FETCH.replace("mpquic", transport))
    connection = only(recording)
    assert connection.finished
    assert connection.bytes == 1_000_000
    found = metrics.subflows(recording, connection)
    assert len(found) == paths
    assert all(path.established_ns is not None for path in found)
    assert all((path.bytes or 0) > 1_000_000 / paths / 4 for path in found)


@needs_picoquic
@pytest.mark.parametrize("pair", PAIRINGS[:3])
@pytest.mark.parametrize("application", APPLICATIONS)
def test_every_application_ends(pair: tuple[str, str], application: str) -> None:
    connection = only(run(pair, f'{application}\ntransport = "mpquic"'))
    assert connection.finished
    assert connection.bytes > 0


@needs_picoquic
@pytest.mark.parametrize("pair", PAIRINGS)
def test_equal_seeds_give_equal_bytes(pair: tuple[str, str], tmp_path: Path) -> None:
    loss = "link.path0.loss=1 %"
    files = []
    for again in ("one", "two"):
        run(pair, FETCH, "", loss, captures="hosts", directory=tmp_path / again)
        files.append([next((tmp_path / again).rglob(f"{host}.pcapng")).read_bytes() for host in ("client", "server")])
    assert files[0] == files[1]


@needs_picoquic
def test_another_seed_gives_another_recording() -> None:
    loss = "link.path0.loss=1 %"
    one, two = (run(PAIRINGS[0], FETCH, "", loss, f"seed={seed}") for seed in (1, 2))
    assert one.metadata.recording_sha256 != two.metadata.recording_sha256


@needs_picoquic
@pytest.mark.parametrize("pair", PAIRINGS)
def test_captures_change_nothing_and_tshark_decrypts_them(pair: tuple[str, str], tmp_path: Path) -> None:
    application = FETCH.replace("1 MB", "100 kB").replace("mpquic", "quic")
    plain = run(pair, application)
    captured = run(pair, application, captures="hosts", directory=tmp_path)
    assert plain.metadata.recording_sha256 == captured.metadata.recording_sha256
    (file,) = tmp_path.rglob("client.pcapng")
    lines = _tshark(file, "-T", "fields", "-e", "quic.frame_type")
    assert len(lines) > 50
    assert not _tshark(file, "-Y", "quic.decryption_failed or _ws.malformed")


@needs_picoquic
@pytest.mark.parametrize("pair", PAIRINGS)
def test_a_backup_stays_unused(pair: tuple[str, str]) -> None:
    recording = run(pair, client="interface = { eth0 = {}, eth1 = { backup = true } }")
    first, backup = metrics.subflows(recording, only(recording))
    assert only(recording).finished
    assert (backup.bytes or 0) < 40_000 < (first.bytes or 0)


@needs_picoquic
@pytest.mark.parametrize("pair", PAIRINGS)
def test_an_interface_that_goes_down_is_abandoned(pair: tuple[str, str]) -> None:
    events = '[[event]]\nat = "0.3 s"\ninterface = "client:eth0"\nup = false'
    recording = run(pair, FETCH.replace("1 MB", "3 MB"), events)
    first, _ = metrics.subflows(recording, only(recording))
    assert only(recording).finished
    assert first.closed_ns is not None
    assert first.closed_ns < 1_000_000_000


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("host.client.congestion=copa", "it has none of that name; there is reno, cubic, bbr, bbr3"),
        ("host.client.scheduler=roundrobin", "it sends on the path with room that sent longest ago"),
        ("host.client.path_manager=ndiffports", "it has one path between two addresses"),
        ("host.client.receive_buffer=1 MB", "its receive window grows with what was received"),
    ],
)
def test_what_picoquic_does_by_its_own_rules_is_refused(setting: str, problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        plan(("picoquic", "polypath"), FETCH, "", setting)


def test_a_stack_that_is_not_installed_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPATH_PICOQUIC", "/nowhere/at/all")
    from polypath.stacks import library

    library._found.cache_clear()
    try:
        with pytest.raises(EngineError, match=r"stack 'picoquic' is not there: POLYPATH_PICOQUIC names .* no file"):
            run(("picoquic", "polypath"))
    finally:
        library._found.cache_clear()
