"""The documentation against the tree: links, commands, generated pages."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from polypath import labs, registry

from ..scripts import loaded

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RECORDS = ROOT / "assurance" / "records"
COMMAND = Path(sysconfig.get_path("scripts")) / "polypath"
PAGES = [
    ROOT / "README.md",
    *(page for folder in (DOCS, DOCS / "model", RECORDS) for page in sorted(folder.glob("*.md"))),
]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def _generate() -> ModuleType:
    """docs/generate.py, whose neighbours it imports."""
    sys.path.insert(0, str(DOCS))
    return loaded(DOCS / "generate.py")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("docs") / "reference"
    _generate().write(directory)
    return directory


def _links(text: str) -> list[str]:
    found = re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text))
    return [link for link in found if "://" not in link and not link.startswith(("mailto:", "playground:"))]


def _anchors(text: str) -> set[str]:
    """The names that headings get on GitHub."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _dangling(page: Path, text: str, reference: Path) -> list[str]:
    dangling = []
    place = DOCS / "reference" / page.parent.relative_to(reference) if reference in page.parents else page.parent
    for link in _links(text):
        name, _, anchor = link.partition("#")
        target = (place / name).resolve() if name else page
        if DOCS / "reference" in target.parents and reference in page.parents:
            target = reference / target.relative_to(DOCS / "reference")
        elif DOCS / "reference" in target.parents:
            dangling.append(link)  # in the repository's own view, where that folder is not
            continue
        if not target.exists() or (anchor and anchor not in _anchors(target.read_text(encoding="utf-8"))):
            dangling.append(link)
    return dangling


def _unknown_commands(text: str, known: set[str]) -> set[str]:
    code = "\n".join(FENCE.findall(text) + re.findall(r"`[^`\n]+`", FENCE.sub("", text)))
    return set(re.findall(r"polypath ([a-z-]+)\b", code)) - known


@pytest.fixture(scope="module")
def commands() -> set[str]:
    done = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"^│ ([a-z-]+)  ", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path, reference: Path) -> None:
    assert _dangling(page, page.read_text(encoding="utf-8"), reference) == []


def test_the_changes_have_no_links_which_would_differ_between_the_repository_and_the_documentation() -> None:
    assert _links((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path, commands: set[str]) -> None:
    assert {"run", "check", "schema"} <= commands
    assert _unknown_commands(page.read_text(encoding="utf-8"), commands) == set()


def test_links_of_generated_pages_resolve(reference: Path) -> None:
    for page in reference.glob("*.md"):
        assert _dangling(page, page.read_text(encoding="utf-8"), reference) == []


def test_links_of_published_records_lead_from_their_place(tmp_path: Path) -> None:
    records = loaded(DOCS / "records.py")
    records.publish(tmp_path)
    published = sorted((tmp_path / records.FOLDER).glob("*.md"))
    assert [page.name for page in published] == sorted(page.name for page in RECORDS.glob("*.md"))
    for page in published:
        names = {link.partition("#")[0] for link in _links(page.read_text(encoding="utf-8"))} - {""}
        beside, elsewhere = ({name for name in names if name.startswith("..") is far} for far in (False, True))
        assert all((page.parent / name).exists() for name in beside)
        assert all((DOCS / records.FOLDER / name).resolve().exists() for name in elsewhere)
    text = "[a](../assurance/records/tab.md) [b](../../assurance/records/tab.md#top)"
    assert records.published(text) == "[a](evidence/tab.md) [b](../evidence/tab.md#top)"


def test_every_lab_has_a_page_with_its_network(reference: Path) -> None:
    folder = reference / "labs"
    assert {page.stem for page in folder.glob("*.md")} == set(labs.names())
    for page in folder.glob("*.md"):
        assert _dangling(page, page.read_text(encoding="utf-8"), reference) == [f"{page.stem}.svg"]
    laboratories = loaded(DOCS / "laboratories.py")
    laboratories.draw(folder, ["failover"])
    assert "40 Mbps" in (folder / "failover.svg").read_text(encoding="utf-8")
    assert '`event.1.at="5 s"`' in (folder / "failover.md").read_text(encoding="utf-8")


def test_a_dangling_link_and_an_unknown_command_are_noticed(reference: Path) -> None:
    text = "[a](model.md) [b](nowhere.md) [c](model.md#nowhere) `polypath fly`"
    assert _dangling(DOCS / "index.md", text, reference) == ["nowhere.md", "model.md#nowhere"]
    assert _unknown_commands(text, {"run"}) == {"fly"}


def test_every_algorithm_and_setting_is_on_its_page(reference: Path) -> None:
    algorithms = (reference / "algorithms.md").read_text(encoding="utf-8")
    for kind in registry.KINDS:
        for name in registry.entries(kind):
            assert f"### `{name}`" in algorithms
    scenario = (reference / "scenario.md").read_text(encoding="utf-8")
    assert "| `duration` | such as `100 ms` or `30 s` | `60 s` |" in scenario
    assert "| `bad_loss` | such as `1 %` or `0.05 %` | `100 %` |" in scenario
    assert "| `packet` | such as `10 MB` or `64 KiB` | `1.2 kB` |" in scenario


def test_every_lab_is_on_the_validation_page() -> None:
    page = (RECORDS / "validation.md").read_text(encoding="utf-8")
    for lab in (ROOT / "python" / "polypath" / "labs").glob("*/lab.toml"):
        assert f"Lab `{lab.parent.name}`" in page
