"""`polypath bisect`: the search in a repository of git. Figures are in a file of each commit; nothing is compiled."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polypath import Scenario, run, summary
from polypath.bisect import Bisection, Repository
from polypath.engines.base import EngineError
from polypath.engines.linux.kernel import source
from polypath.engines.linux.kernel.cache import Recipe
from polypath.engines.linux.kernel.tree import Tree


def _git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., Path]:
    """A repository of a commit for each value, each with a tag of its number."""

    def made(*values: str) -> Path:
        folder = tmp_path / "repository"
        folder.mkdir()
        _git(folder, "init", "-q")
        for number, value in enumerate(values):
            (folder / "value").write_text(f"{value} {number}")
            _git(folder, "add", "value")
            _git(folder, "commit", "-q", "-m", f"change {number}")
            _git(folder, "tag", f"v{number}")
        return folder

    return made


def _figure(tree: Path) -> float:
    value = (tree / "value").read_text().split()[0]
    if value == "broken":
        raise EngineError("it does not compile")
    return float(value)


def _search(folder: Path, kept: Path, good: str = "v0", bad: str = "v8") -> Bisection:
    return Bisection(Repository(folder), good, bad, kept)


def test_it_ends_at_the_planted_commit_in_few_steps(repository: Callable[..., Path], tmp_path: Path) -> None:
    search = _search(repository("9", "9", "9.1", "9", "9", "9", "5", "5", "5.2"), tmp_path / "kept")
    steps = list(search.run(_figure))
    assert search.found().subject == "change 6"
    assert search.found().others == []
    assert len(steps) <= 2 + 3
    assert [step.verdict for step in steps[:2]] == ["good", "bad"]


#: A path of 40 ms and one of 10 ms, and a flow that either can carry.
RULE_SCENARIO = """
duration = "3 s"
[host.client]
scheduler = "value.py:Rule"
path_manager = "fullmesh"
[host.server]
[link.far]
ends = ["client:eth0", "server:eth0"]
rate = "10 Mbps"
delay = "40 ms"
[link.near]
ends = ["client:eth1", "server:eth1"]
rate = "10 Mbps"
delay = "10 ms"
[[application]]
name = "flow"
kind = "stream"
rate = "2 Mbps"
block = "5 kB"
"""
RULE = """class Rule:
    # revision {}
    def select(self, view):
        ready = [path for path in view.paths if path.ready]
        return {}(ready, key=lambda path: path.srtt).index if ready else None
"""


def test_a_rule_that_changed_is_found_by_what_it_does(repository: Callable[..., Path], tmp_path: Path) -> None:
    """The rule turns from the lowest to the highest round trip: the share of a path changes, and goodput does not. The
    other commits change the text alone."""
    folder = repository("0")
    for number in range(1, 9):
        (folder / "value.py").write_text(RULE.format(number, "max" if number >= 5 else "min"))
        _git(folder, "add", "value.py")
        _git(folder, "commit", "-q", "-m", f"rule {number}")
        _git(folder, "tag", f"r{number}")
    goodput: list[float] = []

    def share(tree: Path) -> float:
        (tree / "rule.toml").write_text(RULE_SCENARIO)
        (connection,) = summary(run(Scenario.load(tree / "rule.toml")))["connections"]
        (tree / "rule.toml").unlink()
        goodput.append(connection["goodput_mbps"])
        return float(connection["subflows"][0]["share"])

    search = _search(folder, tmp_path / "kept", "r1", "r8")
    steps = list(search.run(share))
    assert search.found().subject == "rule 5"
    assert len(steps) <= 2 + 3
    assert all(step.value is not None and step.value < 0.2 for step in steps if step.verdict == "good")
    assert all(step.value is not None and step.value > 0.8 for step in steps if step.verdict == "bad")
    assert max(goodput) < 1.05 * min(goodput)


def test_a_commit_that_does_not_compile_is_skipped_and_named(repository: Callable[..., Path], tmp_path: Path) -> None:
    search = _search(repository("9", "9", "9", "9", "9", "broken", "5", "5", "5"), tmp_path / "kept")
    steps = list(search.run(_figure))
    found = search.found()
    assert found.subject == "change 6"
    assert [step.commit for step in steps if step.value is None] == list(found.others)
    assert len(found.others) == 1


def test_an_interrupted_search_goes_on_where_it_was(repository: Callable[..., Path], tmp_path: Path) -> None:
    folder = repository("9", "9", "9", "9", "9", "9", "9", "5", "5")
    asked: list[str] = []

    def figure(tree: Path) -> float:
        if len(asked) == 3:
            asked.append("interrupted")
            raise KeyboardInterrupt
        asked.append((tree / "value").read_text())
        return _figure(tree)

    with pytest.raises(KeyboardInterrupt):
        list(_search(folder, tmp_path / "kept").run(figure))
    search = _search(folder, tmp_path / "kept")
    list(search.run(figure))
    assert search.found().subject == "change 7"
    assert len(set(asked)) == len(asked)
    search.close()
    assert not (tmp_path / "kept" / "tree").exists()


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [
        ("v8", "v0", "--good is no ancestor of --bad"),
        ("v0", "v0", "the same commit"),
        ("v0", "v77", "no commit 'v77'"),
        ("v0", "v1", "the same figure, 9"),
    ],
)
def test_ends_that_do_not_do_are_told_in_a_line(
    repository: Callable[..., Path], tmp_path: Path, good: str, bad: str, says: str
) -> None:
    folder = repository("9", "9", "9", "9", "9", "9", "5", "5", "5")
    with pytest.raises(EngineError, match=says):
        list(_search(folder, tmp_path / "kept", good, bad).run(_figure))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--measure", "godput"), "did you mean 'goodput'"),
        (("--host", "sever"), "no host 'sever'; did you mean 'server'"),
        ((), "is no git repository"),
    ],
)
def test_the_command_tells_a_fault_in_a_line(polypath: Any, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    scenario = Path(__file__).parents[1] / "linux" / "pair.toml"
    outcome = polypath("bisect", str(scenario), "--source", str(tmp_path), "--good", "a", "--bad", "b", *words)
    assert outcome.code == 2
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


def test_files_over_the_shipped_source_go_as_they_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_ROOM", 0)
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "config.fragment").write_text("")
    recipe, given = Recipe(tmp_path / "recipe"), tmp_path / "given"
    for name in ("Makefile", "arch/um/Kconfig", "net/a.c"):
        (given / name).parent.mkdir(parents=True, exist_ok=True)
        (given / name).write_text("shipped")
    shipped, tree = Tree(tmp_path / "shipped"), Tree(tmp_path / "ours")
    (tmp_path / "ours").mkdir()
    shipped.prepare(source.given(given), recipe)
    tree.share(shipped)
    over = tmp_path / "over"
    (over / "net").mkdir(parents=True)
    (over / "net/a.c").write_text("other")
    (over / "net/b.c").write_text("new")
    tree.lay_over(over, shipped)
    assert (tree.path / "net/a.c").read_text() == "other"
    assert (shipped.path / "net/a.c").read_text() == "shipped"
    tree.lay_over(None, shipped)
    assert (tree.path / "net/a.c").read_text() == "shipped"
    assert not (tree.path / "net/b.c").exists()
