"""Settings that a host with a stack by others does not support."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polypath import registry
from polypath.scenario import script
from polypath.scenario.algorithms import Algorithm
from polypath.scenario.errors import Problem
from polypath.scenario.positions import Path
from polypath.scenario.stack import AIOQUIC, NOQ, PICOQUIC, Stack, settings
from polypath.scenario.tables import Tables
from polypath.scenario.traffic import QUIC, Application, Messages, Tunnel


@dataclass(frozen=True)
class Rules:
    """What a stack by others does by rules of its own."""

    #: Settings that it has such rules for, with the only value that says what it does, if one does.
    own: Mapping[str, tuple[Any, str]]
    #: Parameters with which its algorithm of the same name does what Polypath's does.
    parameters: Mapping[str, Mapping[str, Any]]
    #: Why it cannot have an algorithm of a kind and name.
    lacks: Callable[[registry.Kind, str], str | None]


def _not_on_noq(kind: registry.Kind, name: str) -> str | None:
    return registry.find(kind, name).not_on_noq


def _has_only(*controls: str) -> Callable[[registry.Kind, str], str | None]:
    def lacks(kind: registry.Kind, name: str) -> str | None:
        if kind != "congestion":
            # The lab is the application of each, and opens their paths in the same way.
            return registry.find(kind, name).not_on_noq
        return None if name in controls else "it has none of that name"

    return lacks


RULES: Final[Mapping[str, Rules]] = {
    NOQ: Rules(
        own={
            "scheduler": (None, "it sends on the open path of lowest id whose window has room"),
            "ack_path": (None, "acknowledgements leave on the open path of lowest id"),
            "control_path": (None, "control frames leave on the open path of lowest id"),
            "send_paths": ([], "it sends on every open path"),
            "autotuning": (False, "its receive window is fixed"),
            "ecn": (True, "it always marks its packets"),
            "careful_resume": (False, "it keeps nothing of a path for later connections"),
        },
        parameters={
            "cubic": {"hystart": False, "fast_convergence": True},
            "fullmesh": {"num_subflows": 1},
        },
        lacks=_not_on_noq,
    ),
    PICOQUIC: Rules(
        own={
            "scheduler": (None, "it sends on the path with room that sent longest ago"),
            "ack_path": (None, "acknowledgements leave on the path with the least round trip"),
            "control_path": (None, "it chooses the path of control frames by itself"),
            "send_paths": ([], "it sends on every open path"),
            "autotuning": (True, "its receive window grows with what was received"),
            "receive_buffer": (None, "its receive window grows with what was received"),
            "send_buffer": (None, "it asks for data when a packet leaves, and keeps none"),
            "initial_window": (None, "its first window is its own"),
            "ecn": (False, "its calls take no codepoints for what it sends"),
            "ack_frequency": (None, "it decides by itself how often it asks for acknowledgements"),
            "resumption": (False, "its tickets are for a run of its own"),
            "careful_resume": (False, "it keeps it in its tickets, which are for a run of its own"),
        },
        parameters={"cubic": {}, "reno": {}, "bbr": {}, "bbr3": {}, "fullmesh": {"num_subflows": 1}},
        lacks=_has_only("reno", "cubic", "bbr", "bbr3"),
    ),
    AIOQUIC: Rules(
        own={
            "scheduler": (None, "it has one path"),
            "ack_path": (None, "it has one path"),
            "control_path": (None, "it has one path"),
            "send_paths": ([], "it has one path"),
            "autotuning": (True, "its receive window doubles as it is used"),
            "receive_buffer": (None, "its receive window doubles as it is used"),
            "send_buffer": (None, "it is given data as it sends"),
            "initial_window": (None, "its first window is its own"),
            "keepalive": (False, "it sends nothing while it is idle"),
            "retry": (False, "its application would have to send a Retry"),
            "ecn": (False, "its calls take no codepoints"),
            "ack_frequency": (None, "it does not have the extension"),
            "resumption": (False, "its tickets are for a run of its own"),
            "careful_resume": (False, "it keeps nothing of a path for later connections"),
        },
        parameters={"cubic": {}, "reno": {}, "fullmesh": {"num_subflows": 1}},
        lacks=_has_only("reno", "cubic"),
    ),
}
KINDS: Final[Mapping[str, registry.Kind]] = {"congestion": "congestion", "path_manager": "path-manager"}

Level = tuple[Path, Stack]
"""A table of settings, and where it was written."""


def faults(tables: Tables, path: Path, application: Application, side: str, stack: Stack) -> Iterator[Problem]:
    """What an end of an application cannot have if it is a stack by others. `tables` are as they were written."""
    name = stack.stack
    if name is None or name not in RULES:
        return
    host: str = getattr(application, side)
    if application.transport not in QUIC:
        message = (
            f"'{host}' runs {name}, which speaks QUIC and nothing else, "
            f"and the transport is '{application.transport}'; "
            f'take transport = "quic" or "mpquic", or {side}_stack = {{ stack = "polypath" }}'
        )
        yield Problem((*path, "transport"), message)
        return
    if isinstance(application, Messages) and application.delivery == "datagrams":
        message = f"'{host}' runs {name}, which has no datagrams here; take delivery = \"stream\""
        yield Problem((*path, "delivery"), message)
    if isinstance(application, Tunnel):
        remedy = f'take {side}_stack = {{ stack = "polypath" }}'
        yield Problem((*path, "kind"), f"'{host}' runs {name}, which has no datagrams here; {remedy}")
    levels: Sequence[Level] = (
        ((*path, f"{side}_stack"), getattr(application, f"{side}_stack")),
        ((*path, "stack"), application.stack),
        (("host", host), tables.host.get(host, Stack.empty())),
        (("defaults",), tables.defaults),
    )
    single = application.transport == "quic"
    known: set[str] = set()
    for where, level in levels:
        for key, value in settings(level).items():
            if key in known:
                continue
            known.add(key)
            if single and key in ("scheduler", "path_manager", "ack_path", "control_path", "send_paths"):
                continue
            yield from _setting((*where, key), host, name, key, value)


def _setting(where: Path, host: str, stack: str, key: str, value: Any) -> Iterator[Problem]:
    if key in (its_own := RULES[stack].own):
        own, reason = its_own[key]
        if own is None or value != own:
            way_out = "leave it out" if where[0] == "host" else f"leave it out for '{host}'"
            yield Problem(where, f"'{key}' cannot be set on '{host}', which runs {stack}: {reason}; {way_out}")
    elif key in KINDS:
        yield from _algorithm(where, host, stack, key, value)


def _algorithm(where: Path, host: str, stack: str, key: str, chosen: Algorithm) -> Iterator[Problem]:
    kind = KINDS[key]
    if script.is_script(chosen.name):
        if kind == "congestion":
            message = f"'{chosen.name}' cannot run on '{host}', which runs {stack}: its congestion controls are its own"
            yield Problem(where, message)
        return
    rules = RULES[stack]
    reason = rules.lacks(kind, chosen.name)
    if reason is not None:
        rest = ", ".join(name for name in registry.entries(kind) if rules.lacks(kind, name) is None)
        title = registry.TITLES[kind]
        message = f"{title} '{chosen.name}' cannot run on '{host}', which runs {stack}: {reason}; there is {rest}"
        yield Problem(where, message)
        return
    own = rules.parameters.get(chosen.name, {})
    for name, value in chosen.parameters.items():
        if kind == "path-manager" and name not in own:
            continue
        if name not in own or value != own[name]:
            what = f"it has {name} = {str(own[name]).lower()}" if name in own else "it has no such parameter"
            yield Problem(
                (*where, name), f"'{name}' of {chosen.name} cannot be set on '{host}', which runs {stack}: {what}"
            )
