"""Damaged captures: an error in one line, or a partial result that says so, and never a crash."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.capture.conftest import pcap, read

from polypath.capture import CaptureError, Traced, trace
from polypath.measures.summary import summary
from polypath.results import Recording, metrics

CASES = 240


def damaged(whole: bytes, dice: random.Random) -> tuple[str, bytes]:
    """A way of damage, and what it leaves."""
    at, other = sorted(dice.randrange(len(whole)) for _ in range(2))
    match dice.choice(("cut", "flipped", "removed", "repeated", "zeroed", "noise", "headless")):
        case "cut":
            return "cut", whole[:at]
        case "headless":
            return "headless", dice.randbytes(4) + whole[4:] if at % 2 else whole[at:]
        case "removed":
            return "removed", whole[:at] + whole[other:]
        case "repeated":
            return "repeated", whole[:other] + whole[at:]
        case "zeroed":
            end = min(other, at + dice.randrange(1, 3000))
            return "zeroed", whole[:at] + bytes(end - at) + whole[end:]
        case "noise":
            end = at + dice.randrange(1, 400)
            return "noise", whole[:at] + dice.randbytes(end - at) + whole[end:]
        case _:
            changed = bytearray(whole)
            for _ in range(dice.randrange(1, 60)):
                changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
            return "flipped", bytes(changed)


def traced(path: Path) -> Traced | CaptureError:
    try:
        return trace([path], segments=True)
    except CaptureError as error:
        return error


@pytest.mark.parametrize("form", ["pcapng", "pcap"])
def test_damage_is_said_or_read_over(form: str, small: tuple[Recording, list[Path]], tmp_path: Path) -> None:
    packets = read(small[1][0])[:300]
    source = small[1][0] if form == "pcapng" else pcap(tmp_path / "whole.pcap", packets, snaplen=300)
    whole = source.read_bytes()[:150_000]
    dice = random.Random(1)
    outcomes = {"error": 0, "partial": 0, "whole": 0}
    for case in range(CASES // 2):
        how, content = damaged(whole, dice)
        path = tmp_path / f"{case}.{form}"
        path.write_bytes(content)
        told = traced(path)
        path.unlink()
        if isinstance(told, CaptureError):
            assert str(path) in str(told)
            assert "\n" not in str(told)
            outcomes["error"] += 1
            continue
        summary(told.recording)
        for connection in metrics.connections(told.recording):
            metrics.goodput_series(told.recording, connection)
        said = [note for note in told.notes if str(path) in note]
        outcomes["partial" if said else "whole"] += 1
        # A whole packet's end may be the file's.
        assert said or how != "cut" or content == whole[: len(content)]
    assert outcomes["error"] > 0
    assert outcomes["partial"] > CASES // 8


def test_a_file_that_ends_within_a_packet(small: tuple[Recording, list[Path]], tmp_path: Path) -> None:
    whole = small[1][0].read_bytes()
    path = tmp_path / "cut.pcapng"
    path.write_bytes(whole[: len(whole) // 2 + 1])
    told = trace([path])
    assert [note for note in told.notes if "ends within a packet" in note]
    assert 0 < metrics.connections(told.recording)[0].bytes < metrics.connections(small[0])[0].bytes
