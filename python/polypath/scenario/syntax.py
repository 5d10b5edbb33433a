"""Errors in a text that is not TOML, in Polypath's words."""

from __future__ import annotations

import re
import tomllib

from polypath.scenario.errors import ScenarioError

_AT = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")
_BARE = re.compile(r"""\s*(?P<key>[^=]+?)\s*=\s*(?P<value>[^\s"'\[{#][^"'\[{#=]*?)\s*(?:#.*)?""")
_WORD = re.compile(r"[A-Za-z_‘’“”][\w.:-]*[‘’“”]?")
_PAIR = re.compile(r"\s*(?P<key>[A-Za-z0-9_-]+)\s*=.*")
#: What tomllib says of a text without quotes.
_UNQUOTED = ("Invalid value", "Expected newline or end of document after a statement")
#: What it says of a text without an end, and how that text begins.
_ENDLESS = {'Expected "\'"': "'", "Expected \"'''\"": "'''", "Unterminated string": '"""'}
#: What other languages call what TOML calls true and false.
_TRUTHS = {"true": "true", "yes": "true", "false": "false", "no": "false"}
#: What other languages call nothing.
_NOTHING = ("null", "nil", "None")
#: What word processors make of quotes.
_ROUND_QUOTES = "‘’“”"
_TWICE = re.compile(r"Cannot declare \((?P<key>.*?),?\) twice")
#: Python reads no longer numbers.
_LONG_NUMBER = re.compile(r"(?<![0-9_])[0-9][0-9_]{4300,}")
#: In a longer line nobody forgot a quote.
_LONGEST_LINE = 1000
#: Parts of a dotted key; tomllib's time grows with their square.
MOST_PARTS = 64
_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_PARTS = re.compile(_PART)
#: Where a dot may stand that parts no key, and keys.
_TOKEN = re.compile(
    r'"{3}(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'{3}(?:[^']|'(?!''))*'{3,5}"
    r"|#[^\n]*"
    rf"|(?P<key>{_PART}(?:[ \t]*\.[ \t]*{_PART})*)",
    re.DOTALL,
)


def require_shallow(text: str, filename: str) -> None:
    """Raises ScenarioError for a key of more parts than `MOST_PARTS`, with its line."""
    if text.count(".") < MOST_PARTS:
        return
    for token in _TOKEN.finditer(text):
        key = token["key"]
        if key is not None and key.count(".") >= MOST_PARTS and len(_PARTS.findall(key)) > MOST_PARTS:
            line = _line(text, token.start())
            raise ScenarioError(f"invalid TOML: the key has more than {MOST_PARTS} parts", filename, line)


def fault(error: ValueError, text: str, filename: str) -> ScenarioError:
    """What tomllib says of a text, in our words and with a line."""
    message = str(error)
    if not isinstance(error, tomllib.TOMLDecodeError):
        long = _LONG_NUMBER.search(text)
        if long is None:
            return ScenarioError(f"invalid TOML: {message}", filename)
        return ScenarioError("invalid TOML: a number of too many digits", filename, _line(text, long.start()))
    line, column = text.count("\n") + 1, 0
    at = _AT.search(message)
    if at is not None:
        message = message[: at.start()]
        if at["line"]:
            line, column = int(at["line"]), int(at["column"])
    if message in _ENDLESS:
        quote = _ENDLESS[message]
        return ScenarioError(
            f"invalid TOML: a text begins with {quote} and does not end", filename, _line(text, text.rfind(quote))
        )
    if (key := _duplicate(message, text.split("\n")[line - 1])) is not None:
        return ScenarioError(f"duplicate name: {key}", filename, line)
    said = f"{message[:1].lower()}{message[1:]}"
    hint = _quotes(message, text.split("\n")[line - 1], column)
    return ScenarioError(f"invalid TOML: {hint or said}", filename, line)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _duplicate(message: str, line: str) -> str | None:
    if (twice := _TWICE.fullmatch(message)) is not None:
        return ".".join(part.strip().strip("'") for part in twice["key"].split(",")) + " is declared already"
    if message == "Cannot overwrite a value" and (pair := _PAIR.fullmatch(line)) is not None:
        return f"{pair['key']} is given already"
    return None


def _quotes(message: str, line: str, column: int) -> str | None:
    """What to write in place of a word without quotes."""
    if message not in _UNQUOTED or len(line) > _LONGEST_LINE:
        return None
    if (bare := _BARE.fullmatch(line)) is not None:
        return _instead(bare["value"], f"{bare['key']} = ")
    word = _WORD.match(line, column - 1) if column and message == "Invalid value" else None
    return None if word is None else _instead(word[0])


def _instead(value: str, key: str = "") -> str:
    if value in _NOTHING:
        return f"there is no {value}; leave the key out"
    truth = _TRUTHS.get(value.lower())
    return f"write {key}{truth}" if truth else f'a text stands in quotes: {key}"{value.strip(_ROUND_QUOTES)}"'
