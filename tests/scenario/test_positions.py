"""The places of keys, on every Python that runs Polypath."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import polypath
from polypath.scenario.positions import Positions

SOURCES = sorted(Path(polypath.__file__).parent.glob("**/*.py"))
POSSESSIVE = re.compile(r"""[\])"'\w.}][*+?}]\+(?=["'()|\[])""")


@pytest.mark.parametrize("quoted", ['"a, \\"b\\""', "'a'", '"""a "" b"""""', "'''a '' b'''"])
def test_a_key_behind_a_string_has_its_line(quoted: str) -> None:
    assert Positions(f"a = [\n  {quoted}, {quoted},\n]\nb = 1\n").line(("b",)) == 4


def test_no_pattern_is_possessive_which_python_before_3_11_5_matches_wrongly() -> None:
    """https://github.com/python/cpython/issues/106052: Debian 12 has 3.11.2."""
    assert POSSESSIVE.search(r'''re.compile(r"(?:[^"\\]|\\.)*+"''')
    assert [path for path in SOURCES if POSSESSIVE.search(path.read_text(encoding="utf-8"))] == []
