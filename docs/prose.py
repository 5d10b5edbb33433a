"""Checks the project's prose against docs/prose.toml: python docs/prose.py [--count] [FILE..]

It reads pages, docstrings, the help of commands and the heads of Rust's modules.
A finding is a line `file:line: what: text`.
"""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

DOCS = Path(__file__).parent
ROOT = DOCS.parent
RULES = DOCS / "prose.toml"

LONGEST = 25
"""Words of a sentence; `code`, a link's target and a number with its unit are one or none."""

_END = re.compile(r"(?<=[.!?:;])[\"')\]]*\s+(?=[\"'(\[`]?[A-Z0-9`])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs|cf|al|etc|No|Fig|Sec|[A-Z])\.$")


@dataclass(frozen=True, slots=True)
class Sentence:
    path: Path
    line: int
    text: str

    @property
    def words(self) -> int:
        if not any(sign.isalpha() for sign in self.text):
            return 0  # A list of numbers is no sentence.
        return sum(any(sign.isalnum() for sign in word) for word in self.text.split())


@dataclass(frozen=True, slots=True)
class Finding:
    sentence: Sentence
    what: str

    def __str__(self) -> str:
        path = self.sentence.path
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        return f"{shown}:{self.sentence.line}: {self.what}: {self.sentence.text}"


@functools.cache
def rules() -> dict[str, Any]:
    return tomllib.loads(RULES.read_text(encoding="utf-8"))


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(rule["pattern"] if rule.get("case") else f"(?i:{rule['pattern']})"), rule["instead"])
        for rule in rules()["rule"]
    )


def split(text: str) -> Iterator[str]:
    """The sentences of a paragraph. A colon or a semicolon ends one only where a capital follows."""
    begun = ""
    for part in _END.split(text):
        begun = f"{begun} {part}".strip()
        if not _ABBREVIATION.search(begun):
            yield begun
            begun = ""
    if begun:
        yield begun


def _words(inline: Token) -> str:
    """The text of a paragraph as it is read, with `code` as one word."""
    shown = []
    for child in inline.children or ():
        match child.type:
            case "text":
                shown.append(child.content)
            case "code_inline":
                shown.append("`" + child.content.replace(" ", "_") + "`")
            case "softbreak" | "hardbreak":
                shown.append(" ")
    return " ".join("".join(shown).split())


def of_markdown(path: Path, text: str, first: int = 1) -> Iterator[Sentence]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "inline":
            line = first + (token.map[0] if token.map else 0)
            yield from (Sentence(path, line, sentence) for sentence in split(_words(token)))


def of_python(path: Path, text: str) -> Iterator[Sentence]:
    """Docstrings, and the help of commands and options."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Module(body=body) | ast.ClassDef(body=body) | ast.FunctionDef(body=body):
                match body:
                    case [ast.Expr(value=ast.Constant(value=str(said), lineno=line)), *_]:
                        yield from of_markdown(path, inspect.cleandoc(said), line)
            case ast.keyword(arg="help", value=ast.Constant(value=str(said), lineno=line)):
                yield from of_markdown(path, said, line)


def of_rust(path: Path, text: str) -> Iterator[Sentence]:
    """The `//!` lines of the module."""
    head = [line.strip().removeprefix("//!").removeprefix(" ") for line in text.splitlines() if line.startswith("//!")]
    return of_markdown(path, "\n".join(head))


READERS = {".md": of_markdown, ".py": of_python, ".rs": of_rust}


def tracked() -> list[Path]:
    """What is held to the rules."""
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    left_out = tuple(rules()["left_out"])
    names = (name for name in told.splitlines() if not name.startswith(left_out))
    return [ROOT / name for name in names if Path(name).suffix in READERS]


def sentences(paths: Iterable[Path]) -> Iterator[Sentence]:
    for path in paths:
        if path.is_file():
            yield from READERS.get(path.suffix, of_markdown)(path, path.read_text(encoding="utf-8"))


def findings(paths: Iterable[Path]) -> Iterator[Finding]:
    for sentence in sentences(paths):
        if sentence.words > LONGEST:
            yield Finding(sentence, f"{sentence.words} words, at most {LONGEST}")
        for pattern, instead in _patterns():
            if pattern.search(sentence.text):
                yield Finding(sentence, f"write {instead}")


def kind(path: Path) -> str:
    """The part of the project whose findings are counted together: a page, or all heads of one language."""
    return str(path.relative_to(ROOT)) if path.suffix == ".md" else f"*{path.suffix}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="files; all that git knows unless given")
    parser.add_argument("--count", action="store_true", help="the number of findings of each page alone")
    parser.add_argument("--kept", action="store_true", help="only those of pages that have more than prose.toml says")
    asked = parser.parse_args()
    found = list(findings([path.resolve() for path in asked.paths] or tracked()))
    if asked.kept:
        counted = Counter(kind(each.sentence.path) for each in found)
        left = rules().get("left", {})
        found = [each for each in found if counted[kind(each.sentence.path)] > left.get(kind(each.sentence.path), 0)]
    if asked.count:
        for name, count in sorted(Counter(kind(each.sentence.path) for each in found).items()):
            print(f"{count:5}  {name}")
    else:
        print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
