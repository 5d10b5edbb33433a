"""The kernel's coupled congestion controls, compiled as they are for a program of their own, beside the formulas."""

import ctypes
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "coupled"
KERNEL = Path(__file__).parents[2] / "kernel" / "net" / "mptcp"
#: States of congestion (Linux include/uapi/linux/tcp.h, enum tcp_ca_state).
CWR, RECOVERY, LOSS = 2, 3, 4
SUBFLOWS = 8


@dataclass(frozen=True)
class View:
    """Subflows of a connection: packets, microseconds, bytes acknowledged before a loss and since."""

    windows: list[int]
    rtts: list[int]
    before: list[int]
    since: list[int]

    @property
    def rates(self) -> list[float]:
        return [window / rtt for window, rtt in zip(self.windows, self.rtts, strict=True)]

    def coupled(self, me: int) -> float:
        """The increase that the three have in common: w_r / rtt_r^2 over the square of the sum of w_p / rtt_p."""
        return self.rates[me] / self.rtts[me] / sum(self.rates) ** 2

    def lia(self, me: int) -> float:
        """RFC 6356 section 3."""
        return min(max(map(self.coupled, range(len(self.windows)))), 1 / self.windows[me])

    def olia(self, me: int) -> float:
        """draft-khalili-mptcp-congestion-control-05 section 3."""
        paths = range(len(self.windows))
        between = [max(pair) for pair in zip(self.before, self.since, strict=True)]
        quality = [length / rtt**2 for length, rtt in zip(between, self.rtts, strict=True)]
        largest = [path for path in paths if self.windows[path] == max(self.windows)]
        collected = [path for path in paths if quality[path] == max(quality) and path not in largest]
        alpha = 0.0
        if me in collected:
            alpha = 1 / len(paths) / len(collected)
        elif collected and me in largest:
            alpha = -1 / len(paths) / len(largest)
        return self.coupled(me) + alpha / self.windows[me]

    def balia(self, me: int) -> float:
        """draft-walid-mptcp-congestion-control-04 section 3; the kernel's alpha ends at 1000."""
        alpha = min(max(self.rates) / self.rates[me], 1000)
        return self.coupled(me) * (1 + alpha) / 2 * (4 + alpha) / 5

    def balia_threshold(self, me: int) -> float:
        return self.windows[me] * (1 - min(max(self.rates) / self.rates[me], 1.5) / 2)


class Control:
    """One congestion control and a connection that it looks at."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.gain.restype = library.credit.restype = ctypes.c_double
        library.congest.argtypes = [ctypes.c_uint, ctypes.c_uint8, ctypes.c_uint64]
        assert library.start() == 0

    @contextmanager
    def connection(self, view: View, state: int = RECOVERY) -> Iterator[ctypes.CDLL]:
        count = len(view.windows)
        windows = (ctypes.c_uint32 * count)(*view.windows)
        rtts = (ctypes.c_uint32 * count)(*view.rtts)
        self.library.set_up(count, windows, rtts, (ctypes.c_uint64 * count)(*view.before))
        for me in range(count):
            self.library.congest(me, state, view.since[me])
        try:
            yield self.library
        finally:
            self.library.tear_down(count)


@pytest.fixture(scope="module")
def controls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Control]:
    folder = tmp_path_factory.mktemp("coupled")
    found = {}
    for name in ("lia", "olia", "balia"):
        library = folder / f"{name}.so"
        sources = [HERE / "driver.c", KERNEL / "coupled.c", KERNEL / f"coupled_{name}.c"]
        flags = ["-std=gnu11", "-O1", "-Wall", "-Werror", "-fwrapv", "-shared", "-fPIC", "-Wl,-Bsymbolic"]
        includes = [f"-I{HERE}", f"-I{KERNEL}"]
        subprocess.run(["cc", *flags, *includes, "-o", library, *sources], check=True)
        found[name] = Control(ctypes.CDLL(str(library)))
    return found


def _views(count: int) -> Iterator[View]:
    """From one packet to tens of thousands, from 0.1 ms to half a second, with windows that are alike."""
    chance = random.Random(5)
    for _ in range(count):
        paths = range(chance.randint(2, SUBFLOWS))
        top = chance.choice([3, 50, 20_000])
        yield View(
            windows=[chance.randint(1, top) for _ in paths],
            rtts=[round(10 ** chance.uniform(2, 5.7)) for _ in paths],
            before=[round(10 ** chance.uniform(0, 10)) for _ in paths],
            since=[round(10 ** chance.uniform(0, 10)) for _ in paths],
        )


#: Of the terms of an increase, and in packets: what the fixed points of rates and of the credit (2^-24) leave out.
RELATIVE, ABSOLUTE = 1e-3, 4 / 2**24


@pytest.mark.parametrize("name", ["lia", "olia", "balia"])
def test_an_acknowledged_packet_adds_what_the_formula_says(controls: dict[str, Control], name: str) -> None:
    for view in _views(2000):
        for me in range(len(view.windows)):
            with controls[name].connection(view) as connection:
                expected = getattr(view, name)(me)
                if expected < 0 and view.windows[me] == 1:
                    continue
                error = RELATIVE * (abs(expected) + 2 * view.coupled(me)) + ABSOLUTE
                assert connection.gain(me) == pytest.approx(expected, abs=error), (view, me)


def test_a_loss_leaves_what_the_formula_says(controls: dict[str, Control]) -> None:
    for view in _views(2000):
        for me, window in enumerate(view.windows):
            with controls["balia"].connection(view) as connection:
                left = view.balia_threshold(me)
                least, most = (max(int(left + error), 1) for error in (-1e-3 * window, 1e-3 * window))
                assert least <= connection.threshold(me) <= most, (view, me)
            with controls["olia"].connection(view) as connection:
                assert connection.threshold(me) == max(window // 2, 1)


def test_balia_halves_as_newreno_does(controls: dict[str, Control]) -> None:
    """On the fastest path alpha is one; half of an odd window is rounded down (RFC 5681, `tcp_reno_ssthresh`)."""
    for window in (2, 3, 4, 5, 11):
        view = View(windows=[window, 1], rtts=[20_000, 20_000], before=[1, 1], since=[1, 1])
        with controls["balia"].connection(view) as connection:
            assert connection.threshold(0) == window // 2


@pytest.mark.parametrize(("name", "kept"), [("lia", False), ("balia", False), ("olia", True)])
@pytest.mark.parametrize("state", [CWR, RECOVERY, LOSS])
def test_a_reduction_drops_what_made_no_packet_yet(
    controls: dict[str, Control], name: str, kept: bool, state: int
) -> None:
    """In lia and balia, as NewReno's counter; olia's file keeps its own."""
    view = View(windows=[10, 20], rtts=[20_000, 20_000], before=[60_000, 90_000], since=[50_000, 10])
    with controls[name].connection(view) as connection:
        connection.gain(1)
        earned = connection.credit(1)
        assert earned != 0
        connection.congest(1, state, 10)
        assert connection.credit(1) == (earned if kept else 0)


@pytest.mark.parametrize("state", [CWR, RECOVERY, LOSS])
def test_olia_counts_the_bytes_between_reductions_of_any_kind(controls: dict[str, Control], state: int) -> None:
    """A path that lost nothing for long collects; its bytes count from the last reduction, also a tail loss's (CWR)."""
    view = View(windows=[10, 20], rtts=[20_000, 20_000], before=[60_000, 90_000], since=[50_000, 10])
    with controls["olia"].connection(view, state) as connection:
        collects_not = connection.gain(0)
    later = View(windows=[10, 20], rtts=[20_000, 20_000], before=[60_000, 90_000], since=[91_000, 10])
    with controls["olia"].connection(later, state) as connection:
        collects = connection.gain(0)
    assert collects_not == pytest.approx(view.olia(0), rel=RELATIVE)
    assert collects == pytest.approx(later.olia(0), rel=RELATIVE)
    assert collects > collects_not
