"""Each day other kinds, and another number of each; `make sabotage` is the campaign."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.slow import others_slow

from . import hostile, sweeps
from .registry import ALL, Lost

#: They need what the set-up of the tests does not install, or take long.
ELSEWHERE = {"sweep-clock", "sweep-slow-disk"}
CHEAP = [
    each for each in ALL.values() if each.area in ("sweep", "files") and not each.mounts and each.name not in ELSEWHERE
]
TODAY = datetime.now(UTC).date().toordinal()


def _of_today(area: str) -> str:
    own = [each.name for each in CHEAP if each.area == area]
    return own[TODAY % len(own)]


@pytest.mark.parametrize("name", others_slow([each.name for each in CHEAP], *map(_of_today, ("sweep", "files"))))
def test_nothing_is_lost(name: str, tmp_path: Path) -> None:
    what = ALL[name]
    what.trial(random.Random(f"{what.name} {TODAY}"), tmp_path / "trial")


def test_what_is_lost_is_found(tmp_path: Path) -> None:
    place = sweeps.Place(tmp_path / "trial")
    place.finish()
    (point,) = [path for path in place.out.glob("*seed=3*") if path.is_dir()]
    table = next(point.glob("*.parquet"))
    whole = table.read_bytes()
    table.unlink()
    with pytest.raises(Lost, match=f"missing: .*{table.name}"):
        place.compare()
    table.write_bytes(whole + b"\0")
    with pytest.raises(Lost, match=f"differs: .*{table.name}"):
        place.compare()
    table.write_bytes(whole)
    (point / "stray").write_text("x")
    with pytest.raises(Lost, match=r"left behind: .*stray"):
        place.compare()
    (point / "stray").unlink()
    place.scenario.write_text(sweeps.SCENARIO + "\n")
    with pytest.raises(Lost, match=r"sweep\.toml of the person's"):
        place.compare()


@pytest.mark.parametrize(
    ("arguments", "named", "lost"),
    [
        (["run", "missing.toml"], ["other.toml"], "does not say which file is wrong"),
        (["--nothing"], [], "does not say which file is wrong"),
    ],
)
def test_what_is_said_badly_is_found(arguments: list[str], named: list[str], lost: str, tmp_path: Path) -> None:
    with pytest.raises(Lost, match=lost):
        hostile.offered(tmp_path, *arguments, named=named)
