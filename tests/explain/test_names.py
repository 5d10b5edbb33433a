"""Causes have the same names in the simulator, in words and in the document."""

from __future__ import annotations

import re
from pathlib import Path

from polypath.results import reasons
from polypath.results.account import DELIVERED, Charge

from .planted import PLANTS

ROOT = Path(__file__).resolve().parents[2]


def documented() -> list[str]:
    table = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8").partition("## Causes")[2]
    return re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)


def simulated() -> list[str]:
    source = (ROOT / "crates" / "lab" / "src" / "account" / "cause.rs").read_text(encoding="utf-8")
    return re.findall(r'Self::\w+ => "([a-z-]+)",', source)


def test_names_are_the_same() -> None:
    assert sorted(simulated()) == sorted([*documented(), DELIVERED])
    assert {plant.cause for plant in PLANTS.values()} <= set(documented())


def test_every_cause_has_words() -> None:
    for cause in documented():
        charge = Charge(cause, "wifi", 1, "lte", "subflow 0", 0)
        assert reasons.title(charge).endswith("(lte)")
        assert "wifi" in reasons.sentence(charge) or "lte" in reasons.sentence(charge)
