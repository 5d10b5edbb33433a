"""aioquic as the QUIC stack of a host: a stack in Python with one path."""

from pathlib import Path

import pytest
from tests.engines.test_picoquic import plan, run
from tests.engines.test_quic import APPLICATIONS, FETCH, only

from polypath.results import metrics
from polypath.stacks import STACKS

MISSING = STACKS["aioquic"].missing()
needs_aioquic = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
PAIRINGS = [("aioquic", "aioquic"), ("aioquic", "polypath"), ("polypath", "aioquic"), ("noq", "aioquic")]
QUIC = FETCH.replace("mpquic", "quic")


@needs_aioquic
@pytest.mark.parametrize("pair", PAIRINGS)
def test_a_file_arrives_whole_in_any_pairing(pair: tuple[str, str]) -> None:
    connection = only(run(pair, QUIC))
    assert connection.finished
    assert connection.bytes == 1_000_000


@needs_aioquic
@pytest.mark.parametrize("pair", PAIRINGS[:3])
@pytest.mark.parametrize("application", APPLICATIONS)
def test_every_application_ends(pair: tuple[str, str], application: str) -> None:
    connection = only(run(pair, f'{application}\ntransport = "quic"'))
    assert connection.finished
    assert connection.bytes > 0


@needs_aioquic
def test_a_peer_of_one_path_has_one(tmp_path: Path) -> None:
    recording = run(("polypath", "aioquic"), FETCH)
    assert only(recording).finished
    assert len(metrics.subflows(recording, only(recording))) == 1


@needs_aioquic
@pytest.mark.parametrize("pair", PAIRINGS)
def test_equal_seeds_give_equal_bytes(pair: tuple[str, str], tmp_path: Path) -> None:
    files = []
    for again in ("one", "two"):
        run(pair, QUIC, "", "link.path0.loss=1 %", captures="hosts", directory=tmp_path / again)
        files.append([next((tmp_path / again).rglob(f"{host}.pcapng")).read_bytes() for host in ("client", "server")])
    assert files[0] == files[1]


def test_what_aioquic_does_not_have_is_refused() -> None:
    with pytest.raises(Exception, match="runs aioquic: its application would have to send a Retry"):
        plan(("polypath", "aioquic"), QUIC, "", "host.server.retry=true")
