"""Twins of what iperf3 and ss print in the guest, whose network is known."""

from collections.abc import Callable
from pathlib import Path

import pytest

from polypath.engines import Options
from polypath.results import Recording
from polypath.twin.made import make

Run = Callable[..., Recording]


@pytest.fixture
def printed(linux: Run, tmp_path: Path) -> Path:
    """The folders of iperf3 and of ss, of a transfer over 20 Mbps and 20 ms with a queue of 80 packets."""
    linux("counters", options=Options(programs=tmp_path / "programs"))
    return tmp_path / "programs"


def test_counters_of_a_real_kernel_make_a_twin(printed: Path) -> None:
    for program, rate_off, delay_off in (("iperf", 0.05, 0.5), ("ss", 0.03, 0.02)):
        made = make([printed / program / "stdout"])
        found = made.network.paths[0].estimate
        assert found.rate_bps is not None
        assert found.delay_s is not None
        assert found.queue_bytes is not None
        assert found.rate_bps.value == pytest.approx(20e6, rel=rate_off)
        assert found.rate_bps.low < 20e6 < found.rate_bps.high
        assert found.delay_s.value == pytest.approx(0.020, rel=delay_off)
        assert found.delay_s.low < 0.020 < found.delay_s.high
        assert found.queue_bytes.low < 80 * 1514 < found.queue_bytes.high
        assert made.trial.choice.congestion == "cubic"
        capture, twin = next((row.capture, row.twin) for row in made.rows if row.figure == "goodput")
        assert twin == pytest.approx(capture or 0, rel=0.1)
