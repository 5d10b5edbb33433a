"""What holds of every command on every machine: it works as on a friendly one, or ends with one true line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from polypath.errors import PolypathError
from polypath.results import Recording, layout

from .place import Done, Place
from .registry import Command, Machine, Start, Wrong, tree

#: As documented: done, a miss, an error.
EXITS: Final = (0, 1, 2)
#: Said besides what a command is about.
NOTICES: Final = re.compile(
    r"warning: .+|polypath: .+ runs code with your rights: .+|\d+ of \d+ points are done; the same command goes on .+"
)
#: What is there only while a command runs.
PARTIAL: Final = re.compile(r"\.partial(/|$)|\.polypath-|\.polypath\.(?!lock)")
#: Not the same each time.
TIMES: Final = re.compile(r"\d+(\.\d+)? m?s\b|seed \d+")


def judge(place: Place, command: Command, machine: Machine, start: Start, done: Done) -> None:
    """Raises Wrong."""
    _said(place, command, machine, start, done)
    if done.running:
        raise Wrong(f"processes are left: {', '.join(done.running)}")
    after = tree(place.work)
    if gone := [name for name in place.before if after.get(name) != place.before[name]]:
        raise Wrong(f"the person's {gone[0]} was changed or removed")
    new = {name: content for name, content in after.items() if name not in place.before}
    if stray := [name for name in new if Path(name).parts[0] not in command.makes]:
        raise Wrong(f"{stray[0]} is left behind")
    if hidden := [name for name in new if PARTIAL.search(name)]:
        raise Wrong(f"{hidden[0]} is left behind")
    if more := place.listed() - place.found:
        raise Wrong(f"{min(more)} is left behind")
    expected = place.prepared.made(command)
    if done.code == int(place.prepared.said(command, "code")) == 0:
        _whole(place, command, start, done, new, expected)
    _results(place, command, new, expected)


def _said(place: Place, command: Command, machine: Machine, start: Start, done: Done) -> None:
    if done.code not in (*EXITS, int(place.prepared.said(command, "code"))):
        raise Wrong(f"it ended with {done.code}: {done.err.strip()[-300:]}")
    for text in (done.err, done.out):
        if "Traceback" in text or "panicked" in text or 'File "' in text:
            raise Wrong(f"a traceback: {text.strip()[-300:]}")
    if command.answers and done.code != 0 and done.out:
        done = replace(done, out="", err=f"polypath: {done.out}")
    usual = set(TIMES.sub("", place.prepared.said(command, "err")).splitlines())
    lines = [line for line in done.err.splitlines() if line.strip() and not NOTICES.fullmatch(line)]
    news = [line for line in lines if TIMES.sub("", line) not in usual]
    if done.code == int(place.prepared.said(command, "code")):
        if news:
            raise Wrong(f"it succeeded, and said: {news[0]}")
        return
    if not start.said:
        return
    if not news or (len(news) > 1 and not command.lines):
        raise Wrong(f"it ended with {done.code} and {len(news)} lines: {' / '.join(news)[:400]}")
    for line in news:
        if not line.startswith("polypath: "):
            raise Wrong(f"it ended with {done.code} and said: {line}")
        if not re.search(machine.says, line):
            raise Wrong(f"it blames something else: {line}")


def _whole(
    place: Place, command: Command, start: Start, done: Done, new: dict[str, bytes], expected: dict[str, bytes]
) -> None:
    """What it promised is there, and is that of a friendly machine."""
    if missing := [name for name in expected if name not in new]:
        raise Wrong(f"it succeeded without {missing[0]}")
    if more := [name for name in new if name not in expected]:
        raise Wrong(f"it left {more[0]}, which a friendly machine does not have")
    if not command.exact:
        return
    if start.shown and TIMES.sub("", done.out) != TIMES.sub("", place.prepared.said(command, "out")):
        raise Wrong(f"it prints something else: {done.out[:300]}")
    here, there = (str(each).encode() for each in (place.folder, place.prepared.folder / command.name))
    if other := [name for name in expected if not _same(name, expected[name].replace(there, here), new[name])]:
        raise Wrong(f"{other[0]} differs from that of a friendly machine")


def _same(name: str, one: bytes, other: bytes) -> bool:
    """Whether two files say the same, but for how long it took."""
    if one == other or name.endswith((layout.JOURNAL, ".lock")):
        return True
    if Path(name).name not in (layout.MANIFEST, layout.INDEX):
        return False
    lasting = [
        {key: value for key, value in json.loads(each).items() if key not in ("wall_s", "files")}
        for each in (one, other)
    ]
    return lasting[0] == lasting[1]


def _results(place: Place, command: Command, new: dict[str, bytes], expected: dict[str, bytes]) -> None:
    """A folder that counts as a finished result holds that of a run that happened."""
    for name in new:
        path = Path(name)
        if path.name != layout.MANIFEST:
            continue
        try:
            Recording.load(place.work / path.parent)
        except PolypathError as error:
            raise Wrong(f"{path.parent} counts as a result, but: {error}") from None
        tables = [each for each in new if each.endswith(".parquet") and each.startswith(f"{path.parent}/")]
        if command.exact and (other := [each for each in tables if new[each] != expected.get(each)]):
            raise Wrong(f"{other[0]} is not what the run had")
