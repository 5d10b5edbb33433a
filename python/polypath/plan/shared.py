"""Parts of a plan that many plans have in common, such as traces: written and read once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from polypath.plan.types import Channel


#: Stands in a plan's text where a shared part belongs. No text of a scenario has this character.
_PLACE: Final = "\0shared {}\0"
_SIDES: Final = ("forward", "backward")
_PLACES: Final = re.compile(r'"\\u0000shared \d+\\u0000"')


class Shared:
    """JSON data that nobody changes, with its text."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def value(self) -> Part:
        return Part(self)


class Part(list[Any]):
    """The data of a shared part, which is a list, in plans that were read."""

    def __init__(self, of: Shared) -> None:
        super().__init__(json.loads(of.text))
        self.of = of

    def __reduce__(self) -> tuple[Any, ...]:
        return _part, (self.of.text,)


@lru_cache(maxsize=32)
def of(text: str) -> Shared:
    """The part with that text: one for all plans of a process."""
    return Shared(text)


def _part(text: str) -> Part:
    return of(text).value


def encoded(plan: Mapping[str, Any], **options: Any) -> str:
    """A plan that was read as JSON, without encoding its traces again. The options are those of `json.dumps`."""
    links = [{**link, **{side: _lean(link[side]) for side in _SIDES if side in link}} for link in plan.get("links", ())]
    return whole(*written({**plan, "links": links} if links else plan, partial(json.dumps, **options)))


def _lean(channel: Channel) -> Mapping[str, Any]:
    trace = channel.get("trace")
    gaps = trace and trace["gaps_ms"]
    return {**channel, "trace": {**trace, "gaps_ms": gaps.of}} if trace and isinstance(gaps, Part) else channel


def written(data: Any, dumps: Callable[..., str]) -> tuple[str, list[str]]:
    """The data as text, with a place for each shared part, and the texts of these in order. `dumps` is `json.dumps`
    with its options."""
    parts: list[str] = []

    def place(part: object) -> str | dict[Any, Any]:
        if isinstance(part, Mapping):
            return dict(part)
        if not isinstance(part, Shared):
            raise TypeError(f"{type(part).__name__} is no JSON")
        parts.append(part.text)
        return _PLACE.format(len(parts) - 1)

    return dumps(data, default=place), parts


def whole(text: str, parts: Sequence[str]) -> str:
    """The text with its parts."""
    if not parts:
        return text
    given = iter(parts)
    return _PLACES.sub(lambda _: next(given), text)


def read(text: str, parts: Sequence[str]) -> Any:
    """The data, whose parts are those of other plans, too: for those who change nothing in it."""
    if not parts:
        return json.loads(text)
    places = {_PLACE.format(number): of(part) for number, part in enumerate(parts)}

    def put(table: dict[str, Any]) -> dict[str, Any]:
        for key, value in table.items():
            if isinstance(value, str) and value in places:
                table[key] = places[value].value
        return table

    return json.loads(text, object_hook=put)
