"""A first scenario, with a line of explanation above each line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from polypath import registry
from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import NAME_PATTERN
from polypath.scenario.model import Scenario
from polypath.scenario.stack import of_profile
from polypath.units import RATE, TIME, Quantity, UnitError, nearest

TRANSPORTS: Final = ("mptcp", "tcp", "mpquic", "quic")

#: Rate and one-way delay of access links by name: round figures that Polypath chooses, to be replaced by one's own.
KNOWN_PATHS: Final = {
    "ethernet": ("100 Mbps", "2 ms"),
    "fibre": ("100 Mbps", "5 ms"),
    "wifi": ("30 Mbps", "10 ms"),
    "dsl": ("16 Mbps", "15 ms"),
    "5g": ("100 Mbps", "15 ms"),
    "lte": ("15 Mbps", "30 ms"),
    "satellite": ("20 Mbps", "300 ms"),
}
_OTHER: Final = ("10 Mbps", "20 ms")
_MOST_PATHS: Final = 16
_QUEUE: Final = "100 packets"

#: Of each kind of application its keys, each with a value and what it says.
_WORK: Final = {
    "bulk": [("duration", '"10 s"', "The client sends as much as it can for this long.")],
    "stream": [
        ("rate", '"5 Mbps"', "The client offers this rate."),
        ("duration", '"10 s"', "It does so for this long."),
    ],
    "fetch": [("size", '"5 MB"', "The client asks for a file of this size, as a browser does.")],
    "request-response": [
        ("count", "50", "The client sends this many requests; the next one waits for the answer."),
        ("interval", '"100 ms"', "An answered request is followed by the next one after this time."),
        ("request", '"200 B"', "The size of a request."),
        ("response", '"20 kB"', "The size of an answer."),
    ],
    "ping-pong": [
        ("size", '"1 kB"', "Client and server send each other this much in turn."),
        ("duration", '"10 s"', "They do so for this long."),
    ],
}
APPLICATIONS: Final = tuple(_WORK)


@dataclass(frozen=True)
class Path:
    """A path from the client: the name of its link, its rate and its delay in one direction, as text with units."""

    name: str
    rate: str
    delay: str


@dataclass(frozen=True)
class Wanted:
    """What the scenario is to be made of."""

    paths: Sequence[Path] = field(default_factory=lambda: parsed_paths("wifi,lte"))
    transport: str = "mptcp"
    application: str = "bulk"
    duration: str = "20 s"
    profile: str = "rfc"
    #: None: the profile's.
    scheduler: str | None = None
    congestion: str | None = None


def parsed_paths(text: str) -> list[Path]:
    """A number, "3", or names with a comma between, each with a rate and a delay unless it is a known one.

    "wifi", "wifi=50 Mbps", "mine=50 Mbps/5 ms". Raises ScenarioError.
    """
    if text.strip().isdecimal():
        count = int(text)
        if not 1 <= count <= _MOST_PATHS:
            raise ScenarioError(f"{count} paths: give a number from 1 to {_MOST_PATHS}")
        return [Path(f"path{number}", *_OTHER) for number in range(count)]
    found = [_parsed_path(part) for part in text.split(",")]
    names = [path.name for path in found]
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError(f"two paths are named '{name}'")
    if len(found) > _MOST_PATHS:
        raise ScenarioError(f"{len(found)} paths: give {_MOST_PATHS} at most")
    return found


def _parsed_path(text: str) -> Path:
    name, equals, given = (part.strip() for part in text.partition("="))
    if not name:
        raise ScenarioError("a path has no name; write names with a comma between, such as wifi,lte, or a number")
    if not re.fullmatch(NAME_PATTERN, name):
        raise ScenarioError(f"{name!r} is no name of a path: letters, digits, '_' and '-', at most 63 of them")
    if name == "server":
        raise ScenarioError("a path cannot be named 'server': that is the link to the server")
    is_known = name in KNOWN_PATHS
    rate, delay = KNOWN_PATHS.get(name, _OTHER)
    own_rate, stroke, own_delay = (part.strip() for part in given.replace("bit/s", "bps").partition("/"))
    if not own_rate and (equals or not is_known):
        raise _lacks("rate", name, f"{rate}/{delay}")
    rate = _quantity(RATE, own_rate, name) or rate
    if not own_delay and (stroke or not is_known):
        raise _lacks("delay", name, f"{rate}/{delay}")
    return Path(name, rate, _quantity(TIME, own_delay, name) or delay)


def _lacks(what: str, name: str, example: str) -> ScenarioError:
    message = f"path '{name}' has no {what}; write {name}={example}"
    if name in KNOWN_PATHS:
        return ScenarioError(f"{message}, or {name} alone")
    hint = nearest(name, KNOWN_PATHS)
    return ScenarioError(message if hint else f"{message}; names that need none: {', '.join(KNOWN_PATHS)}", hint=hint)


def _quantity(quantity: Quantity, text: str, name: str) -> str:
    if text:
        try:
            quantity.parse(text, positive=True)
        except UnitError as error:
            raise ScenarioError(f"path '{name}': {error.message}", hint=error.hint) from error
    return text


def require_known(what: str, word: str) -> None:
    """Raises ScenarioError, with the nearest known word, unless `word` is one of `what`."""
    known = choices(what)
    if word not in known:
        hint = nearest(word, known)
        raise ScenarioError(f"unknown {what} '{word}'" + ("" if hint else f"; there is {', '.join(known)}"), hint=hint)


def choices(what: str) -> list[str]:
    """The words that a template takes for its transport, application, profile, scheduler or congestion."""
    match what:
        case "transport":
            return list(TRANSPORTS)
        case "application":
            return list(APPLICATIONS)
        case "profile":
            return list(registry.entries("profile"))
        case "scheduler":
            return list(registry.entries("scheduler"))
        case _:
            return list(registry.entries("congestion"))


def text(wanted: Wanted, file: str = "scenario.toml") -> str:
    """The scenario as TOML. Raises ScenarioError where what is wanted does not go together."""
    made = "\n".join(_lines(wanted, file)) + "\n"
    Scenario.parse(made, file).plan()
    return made


def _lines(wanted: Wanted, file: str) -> Iterator[str]:
    yield "# A network with several paths, what runs over it, and what happens to it."
    yield f"# Check it with `polypath validate {file}`, run it with `polypath run {file}`."
    yield "# `polypath schema` prints all keys, for an editor to complete and check."
    yield ""
    yield "# The run ends here at the latest, or when every application is done."
    yield f'duration = "{wanted.duration}"'
    yield "# The same seed gives the same result; another one draws other losses and times."
    yield "seed = 1"
    yield ""
    yield from _defaults(wanted)
    yield "# The two hosts. An address is given to each of their interfaces."
    yield "[host.client]"
    yield "[host.server]"
    yield ""
    yield "# Where the paths meet."
    yield "[router.r]"
    yield ""
    for number, path in enumerate(wanted.paths):
        yield from _path(number, path)
    yield "# From the router to the server. Without a rate, it is never the bottleneck."
    yield "[link.server]"
    yield "# Its two ends."
    yield 'ends = ["r", "server"]'
    yield ""
    yield from _application(wanted)
    yield from _event(wanted)


def _defaults(wanted: Wanted) -> Iterator[str]:
    yield "# Transport settings of both hosts; a host's own table may set others."
    yield "[defaults]"
    yield "# Whose defaults apply: of the specifications (rfc), upstream Linux (linux), the older kernel (mptcp.org)."
    yield f'profile = "{wanted.profile}"'
    yield "# Opens a subflow between each address of the client and each of the server."
    yield 'path_manager = "fullmesh"'
    for key, value, what in (
        ("scheduler", wanted.scheduler, "Which path carries the next segment"),
        ("congestion", wanted.congestion, "How fast each path may send"),
    ):
        kind = "scheduler" if key == "scheduler" else "congestion"
        yield f"# {what}; `polypath algorithms {kind}` lists what there is."
        yield f'{key} = "{value}"' if value else f'# {key} = "{_usual(key, wanted.profile)}"'
    yield ""


def _usual(key: str, profile: str) -> str:
    return str(getattr(of_profile(profile)[key], "name", ""))


def _path(number: int, path: Path) -> Iterator[str]:
    yield f"# Path {number + 1}: the client's interface eth{number}."
    yield f"[link.{path.name}]"
    yield "# Its two ends, a node and an interface each; interfaces are named in order where that is left out."
    yield f'ends = ["client:eth{number}", "r"]'
    yield "# What it carries in each direction, headers included."
    yield f'rate = "{path.rate}"'
    yield "# The time from one end to the other; a round trip is twice that."
    yield f'delay = "{path.delay}"'
    yield "# What waits for the link at each end; packets beyond are dropped."
    yield f'queue = "{_QUEUE}"'
    yield "# Part of the packets that are lost at random; take the mark away to lose some."
    yield '# loss = "0.1 %"'
    yield ""


def _application(wanted: Wanted) -> Iterator[str]:
    entry = registry.entries("application")[wanted.application]
    yield "# What runs. Several tables [[application]] run side by side."
    yield "[[application]]"
    yield "# Its name in the results."
    yield f'name = "{wanted.application}"'
    yield f"# {entry.description}."
    yield f'kind = "{wanted.application}"'
    yield f"# What it runs over: {', '.join(TRANSPORTS)}."
    yield f'transport = "{wanted.transport}"'
    yield "# Which hosts it joins."
    yield 'client = "client"'
    yield "# The other one."
    yield 'server = "server"'
    for key, value, what in _WORK[wanted.application]:
        yield f"# {what}"
        short = key == "duration" and TIME.parse(wanted.duration) < TIME.parse(value.strip('"'))
        yield f'{key} = "{wanted.duration}"' if short else f"{key} = {value}"
    yield ""


def _event(wanted: Wanted) -> Iterator[str]:
    yield "# What happens on the way; take the marks away to cut the first path."
    yield "# [[event]]"
    yield '# at = "5 s"'
    yield f'# link = "{wanted.paths[0].name}"'
    yield "# up = false"
