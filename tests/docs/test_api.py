"""The page of the Python package has every public name, with its signature and a docstring."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import polypath

DOCS = Path(__file__).parents[2] / "docs"
MODULES = (
    "polypath",
    "polypath.results",
    "polypath.results.metrics",
    "polypath.sweeps",
    "polypath.plots",
    "polypath.labs",
)


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module("api")
    sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def page(api: Any) -> str:
    return str(api.page())


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_on_the_page(page: str, module: str) -> None:
    assert f"## `{module}`" in page
    for name in getattr(importlib.import_module(module), "__all__", ()):
        assert any(f"# `{place}.{name}`" in page for place in (module, "polypath")), name


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(api: Any, module: str) -> None:
    found = api.names(module)
    assert found
    lacking = [each.name for each in found if not each.text]
    lacking += [
        f"{each.name}.{own.name}" for each in found for own in each.members if own.kind != "attribute" and not own.text
    ]
    assert lacking == []


def test_a_name_without_a_docstring_is_noticed(api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bare.py").write_text(
        '__all__ = ["Thing", "told", "work"]\n'
        "#: A number.\ntold = 1\n"
        'class Thing:\n    """A thing."""\n\n    def do(self, what: str, *, twice: bool = False) -> int: ...\n'
        "def work(*given): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    thing, told, work = api.names("bare")
    assert (thing.text, told.text, work.text) == ("A thing.", "A number.", "")
    assert [(own.signature, own.text) for own in thing.members] == [
        ("def do(what: str, *, twice: bool = False) -> int", "")
    ]


def test_the_page_is_the_same_each_time(api: Any, page: str) -> None:
    assert api.page() == page
    assert " at 0x" not in page


def test_signatures_are_those_of_the_source(page: str) -> None:
    assert polypath.from_pcap.__doc__ is not None
    head, _, text = page.partition("### `polypath.from_pcap`")[2].partition("```python\n")[2].partition("\n```")
    assert head.splitlines() == [
        "def from_pcap(",
        "    *files: Path | str,",
        "    interval_ns: int | None = None,",
        "    segments: bool = False,",
        ") -> Recording",
    ]
    assert text.split("\n\n")[1] == polypath.from_pcap.__doc__.split("\n\n")[0]


def test_pages_that_docstrings_name_are_links(page: str) -> None:
    assert "[recording.md](../recording.md)" in page
    assert "docs/recording.md" not in page


def test_captures_without_a_folder_are_refused() -> None:
    lab = polypath.labs.get("aggregation")
    with pytest.raises(polypath.EngineError, match="captures of hosts need a directory to go to"):
        polypath.run(lab.runs[0].of(lab.scenario()), captures="hosts")
