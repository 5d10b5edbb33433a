"""The arguments of `tc qdisc change .. netem`, as far as a scenario supports them (man tc-netem)."""

from __future__ import annotations

import re
from typing import Any

from polypath.formats.minitopo.lines import Line
from polypath.formats.minitopo.topology import NetemAt
from polypath.units import nearest

_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|usec|usecs|ms|msec|msecs|s|sec|secs)?")
_SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)%?")
_UNITS = {"": "us", "us": "us", "usec": "us", "usecs": "us", "ms": "ms", "msec": "ms", "msecs": "ms", "s": "s"}
_KNOWN = ("delay", "loss", "limit", "rate", "duplicate", "corrupt", "reorder")


def link_change(change: NetemAt) -> tuple[dict[str, Any], list[str]]:
    """What the change sets on a link, as an event has it, and what of it has no effect.

    `change` replaces all parameters at once, so a delay or loss that is not given becomes zero. Raises ScenarioError.
    """
    words = change.cmd.split()
    values: dict[str, Any] = {"delay": "0 s", "loss": "0 %"}
    ignored: list[str] = []
    while words:
        keyword = words.pop(0)
        if keyword not in _KNOWN:
            raise change.line.error(f"{change.line.key}: unknown netem argument {keyword!r}", nearest(keyword, _KNOWN))
        if not words:
            raise change.line.error(f"{change.line.key}: netem's {keyword!r} needs a value")
        word = words.pop(0)
        if keyword == "delay":
            values["delay"] = _time(word, change.line)
        elif keyword == "loss":
            if word == "random" and words:
                word = words.pop(0)
            values["loss"] = _share(word, change.line)
        elif keyword == "limit":
            ignored.append(f"{change.line.key}: netem's limit {word} has no effect; a link in flight has none")
        else:
            raise change.line.error(f"{change.line.key}: netem's {keyword!r} is not there yet")
    return values, ignored


def _time(word: str, line: Line) -> str:
    match = _TIME.fullmatch(word)
    if match is None:
        raise line.error(f"{line.key}: {word!r} is no time such as '20ms'")
    unit = match[2] or ""
    return f"{match[1]} {_UNITS.get(unit, 's')}"


def _share(word: str, line: Line) -> str:
    match = _SHARE.fullmatch(word)
    if match is None or float(match[1]) > 100:
        raise line.error(f"{line.key}: {word!r} is no share of packets such as '1%'")
    return f"{match[1]} %"
