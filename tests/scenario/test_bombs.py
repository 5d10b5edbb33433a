"""Files made to take time or memory: one line each, soon."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from polypath.scenario import Plan, Scenario, ScenarioError, pages, reading, syntax, tables, validate, vary
from polypath.scenario.positions import Positions

NETWORK = """
[host.client]
[host.server]
[link.path0]
ends = ["client", "server"]
rate = "20 Mbps"
[[application]]
kind = "bulk"
"""


def lines(work: Callable[[], object]) -> int:
    """How many lines of Python it executes: what time it takes, on any computer."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def refusal(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "s.toml")
    return str(caught.value)


DEEP = syntax.MOST_PARTS + 1


@pytest.mark.parametrize(
    "text",
    [
        "\n" + ".".join(["a"] * DEEP) + " = 1\n",
        "\n[" + " . ".join(["a-b_1"] * DEEP) + "]\n",
        "\n" + ".".join(['"a.\\"b"', "'c d'"] * DEEP) + " = 1\n",
        "'''\n''''\n".replace("'''\n", "a='''\n", 1) + ".".join(["b"] * DEEP) + " = 1\n",
    ],
)
def test_a_key_of_many_parts_is_refused_at_its_line(text: str) -> None:
    line = 3 if "'''" in text else 2
    assert refusal(text) == f"s.toml:{line}: invalid TOML: the key has more than {syntax.MOST_PARTS} parts"


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * syntax.MOST_PARTS) + " = 1\n",
        f'description = "{"a." * DEEP}b"\n',
        f"description = '{'a.' * DEEP}b'\n",
        f'description = """\n{"a." * DEEP}b""" # and two quotes: {"c." * DEEP}d\n',
        f"description = '''\n{'a.' * DEEP}b''''' # {'c.' * DEEP}d\n",
        "duration = " + "1.5\n# " * DEEP + "\n",
    ],
)
def test_other_texts_with_many_dots_are_none(text: str) -> None:
    syntax.require_shallow(text, "s.toml")


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "{a = " * 5000])
def test_deep_nesting_is_refused(text: str) -> None:
    assert refusal(text) == "s.toml: invalid TOML: nested too deeply"


def test_strings_are_passed_over_as_a_whole() -> None:
    def read(size: int) -> int:
        long = "\n".join(["x" * 50, '""'] * size)
        text = f'description = """{long}"""\n{NETWORK}'
        return lines(lambda: Positions(text))

    assert read(400) < 1.1 * read(1)


def test_an_axis_that_is_too_long_is_refused_before_its_values_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vary, "MOST_POINTS", 3)
    axis = '[vary]\n"link.path0.rate" = ["1 Mbps", "1 Mbps", "1 Mbps", "1 Mbps"]\n'
    assert refusal(NETWORK + axis).endswith("the axes span more than 3 points")


def test_comparing_the_values_of_an_axis_takes_time_for_each() -> None:
    def checked(count: int) -> int:
        return lines(lambda: vary.check({"link.path0.rate": [f"{number} Mbps" for number in range(count)]}))

    assert checked(800) < 3 * checked(400)
    with pytest.raises(ValueError, match="has the value '1 Mbps' twice"):
        vary.check({"link.path0.rate": ["1 Mbps", "2 Mbps", "1 Mbps"]})


def test_naming_applications_takes_time_for_each() -> None:
    def named(count: int) -> int:
        given: Any = SimpleNamespace(application=[SimpleNamespace(name=None, kind="bulk")] * count)
        return lines(lambda: tables.application_names(given))

    assert named(400) < 3 * named(200)
    names = [None, "bulk-2", None, None, "bulk-3"]
    given: Any = SimpleNamespace(application=[SimpleNamespace(name=name, kind="bulk") for name in names])
    assert tables.application_names(given) == ["bulk", "bulk-2", "bulk-4", "bulk-5", "bulk-3"]


def test_no_more_faults_are_told_than_somebody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "_MOST", 3)
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse("".join(f"k{number} = 1\n" for number in range(9)) + NETWORK, "s.toml")
    assert [str(error) for error in caught.value.errors][3:] == ["s.toml:3: and 6 more faults"]


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="no /proc here")
def test_a_file_with_more_in_it_than_its_size_says_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_BYTES", 10)
    with pytest.raises(ScenarioError, match=r"/proc/self/status: the file has more; a trace has at most"):
        reading.read_text(Path("/proc/self/status"), "trace")


def har(*entries: dict[str, Any]) -> str:
    return json.dumps({"log": {"entries": list(entries)}})


def entry(url: str, size: int) -> dict[str, Any]:
    return {"request": {"url": url}, "response": {"status": 200, "bodySize": size}}


@pytest.mark.parametrize("sizes", ["one", "each its own"])
def test_a_page_that_asks_for_one_url_again_and_again_takes_time_for_each(sizes: str) -> None:
    def read(count: int) -> int:
        text = har(*(entry("http://x/a", 7 if sizes == "one" else number) for number in range(count)))
        return lines(lambda: pages._of_har.__wrapped__(text, "page.har"))

    assert read(400) < 3 * read(200)


def test_objects_of_one_url_keep_their_names_and_paths() -> None:
    text = har(*(entry(url, size) for url, size in [("http://x/a", 1), ("http://x/a", 2), ("http://y/a", 1)]))
    found = {each.name: (each.path, each.size) for each in pages._of_har(text, "page.har")[0]}
    assert found == {"http://x/a": ("/a", 1), "http://x/a#2": ("/a?2", 2), "http://y/a": ("/a", 1)}


DIGITS = "1" * 5000


@pytest.mark.parametrize("text", [DIGITS, "[" * 100_000, '{"a": ' * 100_000])
def test_json_that_python_does_not_read_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)
    with pytest.raises(ScenarioError, match="this is no HAR file: not JSON"):
        pages.of_har(str(file))
    with pytest.raises(ScenarioError, match="this is no plan: not JSON"):
        Plan.load(file)


def test_a_python_file_that_python_does_not_read_is_none(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("x = " + "-" * 200_000 + "1\n")
    (tmp_path / "s.toml").write_text(NETWORK + '[defaults]\nscheduler = "own.py:Own"\n')
    with pytest.raises(ScenarioError, match=r"own\.py"):
        Scenario.load(tmp_path / "s.toml")
