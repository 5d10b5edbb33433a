"""A miss that the lab explains is shown as one and does not fail a check; any other does."""

from pathlib import Path

import pytest

from polypath.cli import check as command
from polypath.labs import Lab, get
from polypath.results.expectations import Row


@pytest.fixture
def lab() -> Lab:
    return get("congestion")


def rows(lab: Lab, missed: set[str]) -> list[Row]:
    return [Row(each.name, each.published, "", "", each.name not in missed) for each in lab.expectations]


@pytest.mark.parametrize(("explained", "code"), [(True, 0), (False, 1)])
def test_only_unexplained_misses_fail(lab: Lab, explained: bool, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    known = command.causes(lab)
    others = {each.name for each in lab.expectations} - set(known)
    missed = set(known) if explained else {min(others)}
    assert missed
    monkeypatch.setattr(command, "_measured", lambda labs, todo, parallel: [(lab, rows(lab, missed))])
    assert command.check(["congestion"]) == code


def test_the_page_says_why(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = command.causes(lab)
    monkeypatch.setattr(command, "_measured", lambda labs, todo, parallel: [(lab, rows(lab, set(known)))])
    page = tmp_path / "page.md"
    command.check(["congestion"], markdown=page)
    for name, cause in known.items():
        assert f"Known miss, {name}: {cause}" in " ".join(page.read_text().split())
