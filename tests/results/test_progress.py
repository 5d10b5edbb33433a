"""What a notebook shows while a run or a sweep goes on."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import polypath
from polypath import progress, sweeps
from polypath.scenario import Scenario

SCENARIO = """
name = "small"
duration = "2 s"
host = { client = {}, server = {} }
link.path0 = { ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms" }
application = [{ kind = "bulk" }]
"""


class Cell:
    """Stands in for a kernel of IPython: what is displayed is kept, the last state of each display."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.now = 0.0
        self.kernel: object | None = object()

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Cell:
        assert raw
        assert display_id
        self.shown.append(data["text/html"])
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(data["text/html"])

    def clock(self) -> float:
        """Each look at it takes half a second."""
        self.now += 0.5
        return self.now


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    made = Cell()
    shell: Any = SimpleNamespace(get_ipython=lambda: made, display=SimpleNamespace(display=made.display))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=made.clock))
    return made


def test_a_run_has_a_bar_that_goes_at_its_end(cell: Cell) -> None:
    polypath.run(Scenario.parse(SCENARIO, "a.toml"))
    *bars, last = cell.shown
    assert bars
    for bar in bars:
        assert bar.startswith('<progress value="')
        assert bar.endswith(" of 2 s simulated")
        assert "> small: " in bar
    assert last == ""


def test_a_sweep_has_a_bar_from_its_first_point_on(cell: Cell) -> None:
    scenario = Scenario.parse(SCENARIO + '[vary]\n"link.path0.rate" = ["5 Mbps", "10 Mbps"]\n', "a.toml")
    sweeps.run([sweeps.Sweep("rates", scenario, sweeps.points(scenario))], jobs=1)
    assert [bar.partition("> ")[2] for bar in cell.shown] == [
        "rates: 0 of 2 points",
        "rates: 1 of 2 points",
        "rates: 2 of 2 points",
        "",
    ]


def test_a_bar_goes_where_a_run_fails(cell: Cell) -> None:
    def fail() -> None:
        with progress.of_run("<b>") as bar:
            for now in range(4):
                bar(now, 4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(cell.shown) > 1
    assert cell.shown[0].endswith("</progress> &lt;b&gt;: 0.0 of 4e-09 s simulated")
    assert cell.shown[-1] == ""


def test_who_brings_a_callback_has_no_bar(cell: Cell) -> None:
    polypath.run(Scenario.parse(SCENARIO, "a.toml"), progress=lambda now, end: None)
    assert cell.shown == []


def test_a_terminal_has_no_bar(cell: Cell) -> None:
    cell.kernel = None
    polypath.run(Scenario.parse(SCENARIO, "a.toml"))
    assert cell.shown == []
