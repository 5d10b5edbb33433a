"""polypath new-trace: what it writes and what it refuses."""

from pathlib import Path
from typing import Any

import pytest

from polypath import labs
from polypath.scenario import synthetic

SHIPPED = [
    ("lte", "wifi-walk/lte.down", 1, 10),
    ("lte", "wifi-walk/lte.up", 2, 10),
    ("wifi-walk", "wifi-walk/walk.csv", 1, 60),
    ("satellite", "satellite-handover/satellite.csv", 1, 60),
]


@pytest.mark.parametrize(("kind", "file", "seed", "seconds"), SHIPPED)
def test_the_labs_files_are_what_it_writes(kind: str, file: str, seed: int, seconds: int) -> None:
    lab, _, name = file.partition("/")
    text = (labs.get(lab).folder / name).read_text(encoding="utf-8")
    assert text == synthetic.KINDS[kind].make(seed, seconds)


def test_it_writes_a_new_file_or_prints(polypath: Any, tmp_path: Path) -> None:
    file = tmp_path / "lte.up"
    outcome = polypath("new-trace", "lte", str(file), "--seed", "3", "--duration", "2 s")
    assert outcome.code == 0
    assert 'a link beside it takes rate = { trace = "lte.up" }' in outcome.err
    printed = polypath("new-trace", "lte", "--seed", "3", "--duration", "2 s")
    assert printed.out == file.read_text(encoding="utf-8") == synthetic.lte(3, 2)
    again = polypath("new-trace", "satellite", str(file))
    assert (again.code, "exists; name another file" in again.err) == (2, True)
    assert printed.out == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("satelite",), "unknown kind of trace 'satelite'; did you mean 'satellite'?"),
        (("qqqq",), "unknown kind of trace 'qqqq'; there is lte, wifi-walk, satellite"),
        (("lte", "--duration", "1500 ms"), "a trace has whole seconds, from 1 to 3600"),
        (("lte", "--duration", "2 hours"), "--duration 2 hours: "),
        (("lte", "--duration", "0 s"), "--duration 0 s: "),
    ],
)
def test_what_is_refused(polypath: Any, arguments: tuple[str, ...], message: str) -> None:
    outcome = polypath("new-trace", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
