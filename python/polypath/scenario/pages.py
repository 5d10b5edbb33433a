"""The objects of a web page: from a table in the scenario, a CSV file, or a HAR file (HTTP Archive 1.2)."""

from __future__ import annotations

import csv
import heapq
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from polypath.scenario.errors import ScenarioError
from polypath.scenario.reading import decimal, read_text
from polypath.units import nearest

MOST_OBJECTS: Final = 10_000
MOST_BYTES: Final = 10**15
"""Of an object, as of every size of a scenario."""
_MOST_MS: Final = 10**9
_LONGEST_PATH: Final = 1000

COLUMNS: Final = ("object", "size_bytes", "after", "think_ms")
"""Of a CSV file; the first two are needed."""


@dataclass(frozen=True)
class Wanted:
    """An object: what it is called, what the request asks for, its size, what it waits for, and the server's time."""

    name: str
    path: str
    size: int
    after: tuple[str, ...] = ()
    think_ns: int = 0


def ordered(objects: Sequence[Wanted], filename: str | None = None) -> tuple[Wanted, ...]:
    """The objects, each behind those that it waits for and otherwise as they stand.

    Raises ScenarioError for a name that stands twice or is unknown, and for objects that wait for each other. It has
    numbers of a file's objects, whose names are the file's.
    """

    def shown(number: int) -> str:
        return f"'{objects[number].name}'" if filename is None else str(number + 1)

    place: dict[str, int] = {}
    for number, each in enumerate(objects):
        if each.name in place:
            what = (
                f"are called {shown(number)}"
                if filename is None
                else f"have one name: {place[each.name] + 1}, {number + 1}"
            )
            raise ScenarioError(f"two objects {what}", filename)
        place[each.name] = number
    if not objects:
        raise ScenarioError("a page needs an object", filename)
    if len(objects) > MOST_OBJECTS:
        raise ScenarioError(f"the page has {len(objects)} objects, and {MOST_OBJECTS} at most are taken", filename)
    waiting = [len(set(each.after)) for each in objects]
    dependents: list[list[int]] = [[] for _ in objects]
    for number, each in enumerate(objects):
        for name in dict.fromkeys(each.after):
            if name not in place:
                if filename is not None:
                    raise ScenarioError(f"object {shown(number)} waits for one that is not there", filename)
                hint = nearest(name, place)
                raise ScenarioError(f"object '{each.name}' waits for '{name}', and there is none", hint=hint)
            dependents[place[name]].append(number)
    free = [number for number, count in enumerate(waiting) if not count]
    found: list[Wanted] = []
    while free:
        number = heapq.heappop(free)
        found.append(objects[number])
        for dependent in dependents[number]:
            waiting[dependent] -= 1
            if not waiting[dependent]:
                heapq.heappush(free, dependent)
    if len(found) < len(objects):
        circle = " waits for ".join(map(shown, _circle(objects, waiting, place)))
        raise ScenarioError(f"objects wait for each other: {circle}", filename)
    return tuple(found)


def _circle(objects: Sequence[Wanted], waiting: Sequence[int], place: Mapping[str, int]) -> list[int]:
    """Objects, each of which waits for the next; the last is the first."""
    number = next(number for number, count in enumerate(waiting) if count)
    seen: dict[int, None] = {}
    while number not in seen:
        seen[number] = None
        number = next(place[other] for other in objects[number].after if waiting[place[other]])
    order = list(seen)
    return [*order[order.index(number) :], number]


def path_of(name: str) -> str:
    """A path of HTTP for an object's name."""
    return "/" + quote(name.lstrip("/"), safe="/?&=:+,;@!$*'()~-._")[: _LONGEST_PATH - 1]


def of_csv(filename: str) -> tuple[Wanted, ...]:
    """The objects of a CSV file. Raises ScenarioError that names file and line."""
    return _of_csv(read_text(Path(filename), "table of a page's objects"), filename)


def of_har(filename: str) -> tuple[Wanted, ...]:
    """The objects of a HAR file. Raises ScenarioError that names file and entry."""
    return _of_har(read_text(Path(filename), "HAR file"), filename)[0]


def faults_of_har(filename: str) -> Sequence[str]:
    """A line for each entry of a HAR file that is left out because something in it is wrong. Raises ScenarioError."""
    return _of_har(read_text(Path(filename), "HAR file"), filename)[1]


@lru_cache(maxsize=8)
def _of_csv(text: str, filename: str) -> tuple[Wanted, ...]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, filename)
        objects = [
            _row(dict(zip(header, cells, strict=False)), len(cells) == len(header), filename, reader.line_num)
            for cells in reader
            if cells
        ]
    except csv.Error as error:
        raise ScenarioError(f"this is no CSV: {error}", filename, reader.line_num) from error
    if not objects:
        raise ScenarioError("there are no rows below the header", filename, 1)
    return ordered(objects, filename)


def _check_header(header: list[str], filename: str) -> None:
    for number, name in enumerate(header, 1):
        if name not in COLUMNS:
            raise ScenarioError(f"column {number} is none of {', '.join(COLUMNS)}", filename, 1)
    for name in COLUMNS[:2]:
        if name not in header:
            raise ScenarioError(f"there is no column '{name}'", filename, 1)
    if len(set(header)) < len(header):
        raise ScenarioError("a column stands twice", filename, 1)


def _row(cells: Mapping[str, str], whole: bool, filename: str, line: int) -> Wanted:
    if not whole:
        raise ScenarioError("the row has not as many values as there are columns", filename, line)
    name = cells["object"].strip()
    if not name:
        raise ScenarioError("the object has no name", filename, line)
    size = cells["size_bytes"].strip()
    if not re.fullmatch(r"[0-9]{1,18}", size, re.ASCII) or int(size) > MOST_BYTES:
        raise ScenarioError(f"size_bytes: must be a whole number from 0 to {MOST_BYTES}", filename, line)
    think = cells.get("think_ms", "").strip() or "0"
    ms = decimal(think)
    if not 0 <= ms <= _MOST_MS:
        raise ScenarioError(f"think_ms: must be a number from 0 to {_MOST_MS}", filename, line)
    return Wanted(name, path_of(name), int(size), tuple(cells.get("after", "").split()), round(ms * 1_000_000))


@lru_cache(maxsize=8)
def _of_har(text: str, filename: str) -> tuple[tuple[Wanted, ...], tuple[str, ...]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise ScenarioError("this is no HAR file: not JSON", filename, line) from error
    log = data.get("log") if isinstance(data, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise ScenarioError("this is no HAR file: there is no list log.entries", filename)
    found: list[_Entry] = []
    faults: list[ScenarioError] = []
    for number, described in enumerate(entries):
        try:
            found.append(_Entry(number, described, filename))
        except ScenarioError as fault:
            faults.append(fault)
    found = [entry for entry in found if entry.crossed]
    if not found:
        raise faults[0] if faults else ScenarioError("no entry of the file has a response", filename)
    if len(found) > MOST_OBJECTS:
        raise ScenarioError(f"the file has {len(found)} entries, and {MOST_OBJECTS} at most are taken", filename)
    names: dict[int, str] = {}
    first: dict[str, str] = {}
    taken: set[str] = set()
    times: dict[str, int] = {}
    paths: dict[tuple[str, int], str] = {}
    sizes: dict[str, int] = {}
    last: dict[str, int] = {}
    for entry in found:
        entry.tell_apart(paths, sizes, last)
        name = entry.url
        while name in taken:
            times[entry.url] = times.get(entry.url, 1) + 1
            name = f"{entry.url}#{times[entry.url]}"
        taken.add(name)
        names[entry.number] = name
        first.setdefault(entry.url, name)
    page = names[found[0].number]
    wanted = ordered(
        [
            Wanted(name, entry.path, entry.size, tuple(_needs(entry, name, page, first)))
            for entry in found
            for name in (names[entry.number],)
        ],
        filename,
    )
    return wanted, tuple(f"{fault}; the entry is left out" for fault in faults)


def _needs(entry: _Entry, name: str, page: str, first: Mapping[str, str]) -> Iterator[str]:
    """What an entry waits for: what had it loaded, where the file says so and has it; or else the page."""
    if name == page:
        return
    yield next((first[url] for url in entry.initiators() if url in first and first[url] != name), page)


class _Entry:
    """An entry of a HAR file, as far as it counts here."""

    def __init__(self, number: int, entry: object, filename: str) -> None:
        self.number = number
        self._filename = filename
        self._entry = self._table(entry, "it")
        request = self._table(self._entry.get("request"), "request")
        response = self._table(self._entry.get("response"), "response")
        url = request.get("url")
        if not isinstance(url, str) or not url:
            raise self._fault("request.url is no text")
        self.url = url
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise self._fault("request.url is no URL") from error
        status = response.get("status")
        #: Whether anything came over the network for it.
        self.crossed = parts.scheme in ("http", "https") and status != 0
        self.path = path_of(parts.path + (f"?{parts.query}" if parts.query else ""))
        self.size = self._size(response) if self.crossed else 0

    def tell_apart(self, paths: dict[tuple[str, int], str], sizes: dict[str, int], last: dict[str, int]) -> None:
        """Takes a path whose object has this size: one server has the objects of all hosts.

        `paths` has the path of each path and size before, `sizes` the size behind each path, `last` the number that a
        path took last."""
        asked = self.path
        known = paths.get((asked, self.size))
        if known is not None:
            self.path = known
            return
        while sizes.setdefault(self.path, self.size) != self.size:
            last[asked] = last.get(asked, 1) + 1
            self.path = f"{asked}{'&' if '?' in asked else '?'}{last[asked]}"
        paths[asked, self.size] = self.path

    def initiators(self) -> Iterator[str]:
        """URLs of what had it loaded, as Chromium writes them; the nearest first."""
        initiator = self._entry.get("_initiator")
        if not isinstance(initiator, dict):
            return
        if isinstance(url := initiator.get("url"), str):
            yield url
        stack = initiator.get("stack")
        frames = stack.get("callFrames") if isinstance(stack, dict) else None
        for frame in frames if isinstance(frames, list) else []:
            if isinstance(frame, dict) and isinstance(url := frame.get("url"), str):
                yield url

    def _size(self, response: Mapping[str, Any]) -> int:
        """The length of the body on the wire, or else after decompression.

        HAR 1.2 has -1 for what is not known, and some programs have other negative numbers. Chromium has the bytes
        on the wire in `_transferSize`, with the headers, and WebPageTest in `_bytesIn`; none of them means a cache.
        """
        body = self._number(response.get("bodySize"), "response.bodySize")
        if body is not None:
            return body
        headers = self._number(response.get("headersSize"), "response.headersSize") or 0
        for of, key in ((response, "_transferSize"), (self._entry, "_bytesIn")):
            sent = self._number(of.get(key), key)
            if sent:
                return max(0, sent - headers)
        content = self._table(response.get("content", {}), "response.content")
        size = self._number(content.get("size"), "response.content.size")
        if size is None:
            raise self._fault("neither response.bodySize nor response.content.size says how long the body is")
        return size

    def _number(self, value: object, what: str) -> int | None:
        """A size; None for one that is not known."""
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value, re.ASCII):
            value = int(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value > MOST_BYTES:
            raise self._fault(f"{what} must be a whole number from 0 to {MOST_BYTES}, or negative if it is not known")
        return value if value >= 0 else None

    def _table(self, value: object, what: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._fault(f"{what} is no object")
        return value

    def _fault(self, what: str) -> ScenarioError:
        return ScenarioError(f"entry {self.number}: {what}", self._filename)
