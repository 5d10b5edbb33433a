"""An axis whose values are drawn at random: networks from a stated distribution.

The axis is a table with these keys:

    [vary.network]
    draw = 60                                              how many
    seed = 1                                               of the draws, not of the runs; 1 if left out
    csv = "lines.csv"                                      each value draws a row, whose cells {COLUMN} stands for
    set = { "link.dsl.rate" = "{rate_mbps} Mbps", "link.lte.delay" = { uniform = ["10 ms", "90 ms"] } }

A setting is one of

    { uniform = ["10 ms", "90 ms"] }                       evenly between two bounds
    { log_uniform = ["1 Mbps", "100 Mbps"] }               its logarithm evenly
    { one_of = ["0 %", "0.1 %", "1 %"] }                   one of these values, evenly
    { .., follows = "link.dsl.rate", correlation = -0.7 }  not independent of another setting of the axis

and a text or number as it is. The values between bounds have four significant digits. A value depends on nothing but
the seed, its number and its setting: to draw more keeps those that were drawn.

Settings that follow each other are drawn through a Gaussian copula: `correlation` is that of the normal scores of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, sqrt
from statistics import NormalDist
from typing import Any, Final

from polypath import units
from polypath.scenario import draws, rows
from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import fault
from polypath.units import Quantity, UnitError, nearest

KEYS: Final = ("draw", "seed", "csv", "set")
MOST: Final = 10_000

_DIGITS: Final = 4
_NORMAL: Final = NormalDist()
_KINDS: Final = ("uniform", "log_uniform", "one_of")


@dataclass(frozen=True)
class Drawn:
    """A value of the axis: its label, and what it sets."""

    label: str
    settings: Mapping[str, Any]


def is_drawn(given: object) -> bool:
    """Whether an axis draws its values. One of values with labels has tables alone."""
    return isinstance(given, Mapping) and not isinstance(given.get("draw", {}), Mapping)


def values(given: Mapping[str, Any], literal: Callable[[str], Any]) -> list[Drawn]:
    """The values of an axis that `check` has accepted; `literal` reads a cell that is a setting's whole value."""
    count = given["draw"]
    return [Drawn(f"n{number}", dict(_value(given, number, literal))) for number in range(1, count + 1)]


def _value(given: Mapping[str, Any], number: int, literal: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    stream = f"axis {given.get('seed', 1)} {number}"
    there: Mapping[str, str] = {}
    if "csv" in given:
        table = rows.table_of(given)
        _, cells = table.rows[draws.below(len(table.rows), f"{stream} row")]
        there = dict(zip(table.columns, cells, strict=True))
    scores: dict[str, float] = {}
    for path in _in_order(given["set"]):
        how = given["set"][path]
        if isinstance(how, Mapping) and (kind := _kind(how)) is not None:
            scores[path] = _score(how, scores, f"{stream} {path}")
            yield path, _at(kind, how[kind], _NORMAL.cdf(scores[path]))
        else:
            yield from rows.settings_of({path: how}, there, literal)


def _score(how: Mapping[str, Any], scores: Mapping[str, float], stream: str) -> float:
    """A standard normal number, which the setting's place in its distribution follows from."""
    own = _NORMAL.inv_cdf(draws.fraction(stream) + 2**-54)
    if "follows" not in how:
        return own
    strength = how["correlation"]
    return float(strength * scores[how["follows"]] + sqrt(1 - strength**2) * own)


def _at(kind: str, given: Sequence[Any], share: float) -> Any:
    """The value with that share of the distribution below it."""
    if kind == "one_of":
        return given[min(int(share * len(given)), len(given) - 1)]
    scale = _scale(given)
    low, high = (scale.number(bound) for bound in given)
    if kind == "uniform":
        return scale.text(low + share * (high - low))
    return scale.text(exp(log(low) + share * (log(high) - log(low))))


@dataclass(frozen=True)
class _Scale:
    """How the bounds of a distribution are read as numbers, and a number between them is written."""

    number: Callable[[Any], float]
    text: Callable[[float], Any]


def _of(quantity: Quantity) -> _Scale:
    return _Scale(lambda bound: quantity.parse(bound), lambda number: quantity.shown(round(_rounded(number))))


_SHARE: Final = _Scale(units.parse_share, lambda number: units.format_share(_rounded(number)))
_WHOLE: Final = _Scale(int, round)
_NUMBER: Final = _Scale(float, lambda number: _rounded(number))


def _rounded(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")


def _scale(bounds: Sequence[Any]) -> _Scale:
    """Raises UnitError for bounds that are not two of one quantity."""
    if all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds):
        return _WHOLE
    if all(isinstance(bound, int | float) and not isinstance(bound, bool) and isfinite(bound) for bound in bounds):
        return _NUMBER
    for scale in (*map(_of, (units.RATE, units.TIME, units.SIZE, units.PACKETS)), _SHARE):
        try:
            for bound in bounds:
                scale.number(bound)
        except UnitError:
            continue
        return scale
    raise UnitError(f"{bounds[0]!r} and {bounds[1]!r} are no two numbers of one unit")


def _kind(how: Mapping[str, Any]) -> str | None:
    return next((kind for kind in _KINDS if kind in how), None)


def _in_order(settings: Mapping[str, Any]) -> list[str]:
    """The settings, each after the one that it follows."""
    order: list[str] = []

    def add(path: str) -> None:
        how = settings[path]
        if path not in order:
            if isinstance(how, Mapping) and "follows" in how:
                add(how["follows"])
            order.append(path)

    for path in settings:
        add(path)
    return order


def check(key: str, given: Mapping[str, Any]) -> None:
    """Raises the fault of an axis that is not as this module's text has it."""
    for name in given:
        if name not in KEYS:
            hint = nearest(name, KEYS)
            message = f"unknown key '{name}' in axis '{key}', which draws its values"
            raise fault(message if hint else f"{message}; there is {', '.join(KEYS)}", hint, at=(key, name))
    _check_whole(key, given, "draw", 1, MOST)
    _check_whole(key, given, "seed", 0, 2**63 - 1)
    if not isinstance(given.get("set"), Mapping) or not given["set"]:
        example = 'set = { "link.path0.rate" = { log_uniform = ["1 Mbps", "100 Mbps"] } }'
        raise fault(f"axis '{key}' sets nothing: give it {example}", at=(key, "set") if "set" in given else (key,))
    columns: Sequence[str] | None = None
    if "csv" in given:
        try:
            columns = rows.table_of(given).columns
        except ScenarioError as error:
            raise fault(str(error), at=(key, "csv")) from error
    for path, how in given["set"].items():
        at = (key, "set", path)
        if isinstance(how, Mapping) and _kind(how) is not None:
            _check_distribution(given["set"], path, how, at)
        elif isinstance(how, Mapping):
            for name in how:
                if (hint := nearest(name, _KINDS)) is not None:
                    raise fault(f"'{path}': there is no distribution '{name}'", hint, at=(*at, name))
        for name in rows.columns_in(how):
            if columns is None:
                raise fault(f"axis '{key}' has no file with a column '{name}': give it csv = \"..\"", at=at)
            if name not in columns:
                raise fault(f"{given['csv']} has no column '{name}'", at=at)


def _check_whole(key: str, given: Mapping[str, Any], name: str, least: int, most: int) -> None:
    value = given.get(name, least)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise fault(f"axis '{key}': '{name}' is a whole number, {least} to {most}, not {value!r}", at=(key, name))


def _check_distribution(
    settings: Mapping[str, Any], path: str, how: Mapping[str, Any], at: tuple[str | int, ...]
) -> None:
    kind = _kind(how)
    assert kind is not None
    for name in how:
        if name not in (kind, "follows", "correlation"):
            hint = nearest(name, ("follows", "correlation"))
            raise fault(f"'{path}' is drawn from '{kind}', which takes no '{name}'", hint, at=(*at, name))
    given = how[kind]
    if not isinstance(given, list) or not given or (kind != "one_of" and len(given) != 2):
        wanted = "a list of values" if kind == "one_of" else "a list of two bounds"
        raise fault(f"'{kind}' of '{path}' is {wanted}", at=(*at, kind))
    if kind != "one_of":
        try:
            scale = _scale(given)
        except UnitError as error:
            raise fault(f"'{kind}' of '{path}': {error.message}", error.hint, at=(*at, kind)) from error
        low, high = (scale.number(bound) for bound in given)
        if not low < high:
            raise fault(f"'{kind}' of '{path}': the second bound must be above the first", at=(*at, kind))
        if kind == "log_uniform" and low <= 0:
            raise fault(f"'{kind}' of '{path}': the first bound must be above 0", at=(*at, kind))
    _check_following(settings, path, how, at)


def _check_following(settings: Mapping[str, Any], path: str, how: Mapping[str, Any], at: tuple[str | int, ...]) -> None:
    if ("follows" in how) != ("correlation" in how):
        raise fault(f"'{path}': 'follows' and 'correlation' go together", at=at)
    if "follows" not in how:
        return
    seen, one = {path}, how
    while isinstance(one, Mapping) and "follows" in one:
        other = one["follows"]
        leads = settings.get(other) if isinstance(other, str) else None
        if not isinstance(leads, Mapping) or _kind(leads) is None:
            hint = nearest(str(other), settings)
            raise fault(f"'{path}' follows '{other}', which the axis does not draw", hint, at=(*at, "follows"))
        if other in seen:
            raise fault(f"'{path}' follows itself", at=(*at, "follows"))
        seen.add(other)
        one = leads
    strength = how["correlation"]
    if not isinstance(strength, int | float) or isinstance(strength, bool) or not -1 <= strength <= 1:
        raise fault(f"'correlation' of '{path}' is a number from -1 to 1, not {strength!r}", at=(*at, "correlation"))
