"""What the documentation's commands print is what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..scripts import loaded
from ..slow import others_slow

ROOT = Path(__file__).parents[2]
console = loaded(ROOT / "docs" / "console.py")

#: What someone new reads first, and two whose commands are cheap: other commands, of captures and of traces.
FIRST = ("README.md", "docs/tutorial.md", "docs/capture.md", "docs/wifi.md")


@pytest.mark.parametrize("page", others_slow(console.PAGES, *FIRST))
def test_commands_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
    for shown in console.shown((ROOT / page).read_text(encoding="utf-8"), tmp_path):
        assert shown.matches, f"$ {shown.command}\n{shown.printed}\nrun: python docs/console.py {page}"


def test_another_output_is_noticed_and_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = (
        "`words`:\n\n```toml\na\nb\n```\n\n```console\n$ cat words\na\nc\n$ echo 1 2 3; \\\n  echo 4\n1 ..\n..\n```\n"
    )
    page.write_text(text, encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert [each.matches for each in console.shown(text, folder)] == [False, True]
    assert console.refresh(page) == ["cat words"]
    assert page.read_text(encoding="utf-8") == text.replace("\nc\n", "\nb\n")


def test_a_command_without_output_has_to_succeed_and_cd_lasts_to_the_end_of_its_fence(tmp_path: Path) -> None:
    text = (
        "<!-- $ mkdir made -->\n\n```console\n$ cd made\n$ echo 1 > file\n$ false\n```\n\n"
        "```console\n$ test -e made/file\n```\n"
    )
    assert [each.matches for each in console.shown(text, tmp_path)] == [True, True, False, True]
