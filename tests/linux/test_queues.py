"""Queue disciplines beside the kernel's own."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from polypath.engines.linux.kernel import KernelError, find
from polypath.engines.linux.kernel.make import supported

from ..scripts import loaded
from ..slow import others_slow

PAGE = Path(__file__).parents[2] / "docs" / "queues.py"


@pytest.mark.parametrize("discipline", others_slow(("fq-codel", "fq-pie", "pie"), "fq-codel"))
def test_four_connections_wait_as_long_as_in_the_kernel(discipline: str) -> None:
    """The other cases are in docs/queues.md. With one seed in 170 two connections share one of fq-codel's queues."""
    try:
        supported()
        find()
    except KernelError as error:
        pytest.skip(str(error))
    module = loaded(PAGE)
    scenario = module.described(discipline, "cubic", 4, 10, 20, seed=1)
    ours, theirs = (median(module.waited(engine, scenario, seed) for seed in (1, 2, 3)) for engine in ("sim", "linux"))
    assert ours == pytest.approx(theirs, rel=module.TOLERANCE)
    # Each holds its own delay, so that agreeing means something.
    assert 0.005 < theirs < 0.020
