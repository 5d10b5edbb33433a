"""Captures that gzip has compressed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from polypath.capture import CaptureError, trace
from polypath.results import Recording, metrics


def test_what_is_compressed_says_the_same(small: tuple[Recording, list[Path]], tmp_path: Path) -> None:
    plain = small[1][0]
    half = len(plain.read_bytes()) // 2
    content = plain.read_bytes()
    # as of two files that were compressed and joined (RFC 1952 section 2.2); the first ends within the first block
    (tmp_path / "client.pcapng.gz").write_bytes(gzip.compress(content[:30]) + gzip.compress(content[30:]))
    (tmp_path / "unnamed").write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]))
    for name in ("client.pcapng.gz", "unnamed"):
        told = trace([tmp_path / name])
        assert told.recording.metadata.recording_sha256 == trace([plain]).recording.metadata.recording_sha256
        assert not [note for note in told.notes if "gzip" in note]
    assert trace([tmp_path / "client.pcapng.gz"]).recording.metadata.scenario == "client"


def test_what_is_cut_or_damaged_is_read_up_to_there(small: tuple[Recording, list[Path]], tmp_path: Path) -> None:
    whole = gzip.compress(small[1][0].read_bytes())
    path = tmp_path / "client.pcapng.gz"
    middle = len(whole) // 2
    for content in (whole[:middle], whole[:-8], whole[:middle] + bytes(64) + whole[middle + 64 :], whole + b"no gzip"):
        path.write_bytes(content)
        told = trace([path])
        assert [note for note in told.notes if f"{path}: its gzip data are cut or damaged; " in note]
        assert metrics.connections(told.recording)[0].bytes > 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x1f\x8b", "its gzip data are cut or damaged"),
        (b"\x1f\x8b\x08\0 and no more of it", "its gzip data are cut or damaged"),
        (gzip.compress(b""), "not a capture"),
        (gzip.compress(b"no capture at all"), "not a capture"),
        (gzip.compress(gzip.compress(b"twice")), "not a capture"),
    ],
    ids=["no header", "no data", "empty", "text", "twice"],
)
def test_nothing_in_it(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=f"x.gz: {message}"):
        trace([path])
