"""The file: the built program with a page's data in it.

Data is JSON in an element that no browser runs, with every character escaped that could end it. The last line holds the
SHA-256 of all before, by which a later command knows a page that nobody has edited.
"""

from __future__ import annotations

import hashlib
import html as markup
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

_PLACE: Final = re.compile("<!-- (?P<part>[a-z]+) -->")
_SEAL: Final = "<!-- polypath report, sha256 "
#: What could end the element of the data or start another, and what JavaScript takes for the end of a line.
_ESCAPED: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def html(page: Mapping[str, Any]) -> str:
    """The whole file."""
    return filled("page.html", page, {})


def filled(template: str, page: Mapping[str, Any], more: Mapping[str, str]) -> str:
    """The whole file, of a built program that has places for more than the page's title and data."""
    text = files("polypath.report").joinpath(template).read_text(encoding="utf-8")
    parts = {"title": markup.escape(_plain(str(page["title"]))), "data": escaped(page), **more}
    return sealed(_PLACE.sub(lambda found: parts[found["part"]], text))


def sealed(text: str) -> str:
    """A page with the line that tells later whether somebody edited it."""
    return f"{text}{_SEAL}{_digest(text)} -->\n"


def escaped(data: Any) -> str:
    """JSON that is safe within an element `script`. Characters that no text may hold are replaced."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPED.items():
        text = text.replace(character, escape)
    return text.encode("utf-8", "replace").decode("utf-8")


def is_unchanged(path: Path) -> bool:
    """Whether a file is a report page without later edits."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    body, seal, rest = text.rpartition(_SEAL)
    return bool(seal) and rest == f"{_digest(body)} -->\n"


def _plain(text: str) -> str:
    """Without control characters, which no HTML may hold."""
    return "".join(each if each.isprintable() else " " for each in text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
