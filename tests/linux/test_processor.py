"""Each guest keeps to one processor, and no two to the same."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from polypath.engines.linux import guest, processor
from polypath.engines.linux.kernel import find
from polypath.engines.namespaces import run
from polypath.results import Recording

from ..processes import inside

LIMIT = run.Limit("POLYPATH_TEST_LIMIT", 60.0)
RESERVE = "from polypath.engines.linux import processor\nwith processor.reserved() as number: print(number)"


@pytest.fixture
def single() -> Iterator[int]:
    """A processor that no guest of this machine has; this thread may use no other."""
    before = os.sched_getaffinity(0)
    with processor.reserved() as free:
        pass
    if free is None:
        pytest.skip("guests have all processors")
    os.sched_setaffinity(0, {free})
    yield free
    os.sched_setaffinity(0, before)


def test_two_guests_do_not_share_a_processor(single: int) -> None:
    with processor.reserved() as first, processor.reserved() as second:
        other = subprocess.run([sys.executable, "-c", RESERVE], capture_output=True, text=True, check=True)
    assert (first, second, other.stdout) == (single, None, "None\n")


def test_a_processor_is_free_again_afterwards(single: int) -> None:
    for _ in range(2):
        with processor.reserved() as number:
            assert number == single


def test_a_run_keeps_to_its_processor_and_its_caller_does_not(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    for number in before:
        ended = run.follow(
            ["grep", "Cpus_allowed_list", "/proc/self/status"], tmp_path, LIMIT, lambda now: None, number
        )
        assert ended.log[0].split() == ["Cpus_allowed_list:", str(number)]
    ended = run.follow(["nproc"], tmp_path, LIMIT, lambda now: None)
    assert ended.log == [str(len(before))]
    assert os.sched_getaffinity(0) == before


def test_all_of_a_guest_keeps_to_one(linux: Callable[..., Recording], monkeypatch: pytest.MonkeyPatch) -> None:
    # other guests of the machine may have them all
    monkeypatch.setattr(processor, "_NAME", f"\0polypath-test-{os.getpid()}-{{}}")
    waits = "echo progress 1\nuntil [ -e /run/job/out/seen ]; do :; done\n"
    allowed: list[set[int]] = []

    def look(now: int) -> None:
        allowed.extend(os.sched_getaffinity(int(process)) for process in inside(folder))
        (folder / "out" / "seen").touch()

    with guest.folder(find(), {"setup.sh": waits, "job": "end 1 0\n", "collect.sh": ""}, {}) as folder:
        guest.boot(folder, 1, 256, look)
    # its kernel and the shell at least
    assert len(allowed) > 1
    assert len(set.union(*allowed)) == 1
