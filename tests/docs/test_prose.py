"""The project's prose keeps docs/prose.toml; what does not yet is counted there, and may only fall."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ..scripts import loaded

prose = loaded(Path(__file__).parents[2] / "docs" / "prose.py")


def told(tmp_path: Path, name: str, text: str) -> list[str]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return [finding.what for finding in prose.findings([path])]


def test_findings_do_not_grow() -> None:
    found = Counter(prose.kind(each.sentence.path) for each in prose.findings(prose.tracked()))
    assert dict(found) == prose.rules().get("left", {}), (
        "run: python docs/prose.py; a number in prose.toml may only fall"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("That this is long is a fact.", "write the subject first: no sentence begins with 'That .. is'"),
        ("Of all links one is slow.", "write the subject first: no sentence begins with 'Of ..'"),
        ("The windows are drawn anew.", "write 'again'"),
        ("Word " + " ".join(["word"] * 25) + ".", "26 words, at most 25"),
    ],
)
def test_a_finding_is_told(tmp_path: Path, text: str, what: str) -> None:
    assert told(tmp_path, "page.md", f"# Page\n\nA sentence. {text}\n") == [what]
    assert told(tmp_path, "module.py", f'def work():\n    """{text}"""\n') == [what]
    assert told(tmp_path, "module.rs", f"//! {text}\n\nfn work() {{}}\n") == [what]


def test_code_and_tables_are_read_as_a_reader_does(tmp_path: Path) -> None:
    words = " ".join(["word"] * 20)
    page = f"| a | b |\n|---|---|\n| {words} | {words} |\n\n`{words}` {words}.\n\n```sh\n{words} {words}\n```\n"
    assert told(tmp_path, "page.md", page) == []


def test_a_list_of_numbers_is_no_sentence(tmp_path: Path) -> None:
    numbers = ", ".join(["9,007"] * 30)
    assert told(tmp_path, "page.md", f"| a |\n|---|\n| {numbers} |\n") == []
    assert told(tmp_path, "page.md", f"These are {numbers}.\n") == ["32 words, at most 25"]


def test_sentences_end_where_a_reader_stops() -> None:
    text = "See e.g. RFC 8684 section 3.2. It names `a.b` here. A cwnd of 1.5 kB, cf. Fig. 2, ends here."
    assert list(prose.split(text)) == [
        "See e.g. RFC 8684 section 3.2.",
        "It names `a.b` here.",
        "A cwnd of 1.5 kB, cf. Fig. 2, ends here.",
    ]
