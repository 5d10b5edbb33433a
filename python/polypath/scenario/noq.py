"""Settings that a host with the stack noq does not support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from polypath import registry
from polypath.scenario import script
from polypath.scenario.algorithms import Algorithm
from polypath.scenario.errors import Problem
from polypath.scenario.positions import Path
from polypath.scenario.stack import NOQ, Stack, settings
from polypath.scenario.tables import Tables
from polypath.scenario.traffic import QUIC, Application, Messages, Tunnel

#: Settings that noq has rules of its own for, with the only value that says what it does, if one does.
ITS_OWN: Final[Mapping[str, tuple[Any, str]]] = {
    "scheduler": (None, "it sends on the open path of lowest id whose window has room"),
    "ack_path": (None, "acknowledgements leave on the open path of lowest id"),
    "control_path": (None, "control frames leave on the open path of lowest id"),
    "send_paths": ([], "it sends on every open path"),
    "autotuning": (False, "its receive window is fixed"),
    "ecn": (True, "it always marks its packets"),
}
#: Parameters with which noq's algorithm of the same name does what Polypath's does.
ITS_PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "cubic": {"hystart": False, "fast_convergence": True},
    "fullmesh": {"num_subflows": 1},
}
KINDS: Final[Mapping[str, registry.Kind]] = {"congestion": "congestion", "path_manager": "path-manager"}

Level = tuple[Path, Stack]
"""A table of settings, and where it was written."""


def faults(tables: Tables, path: Path, application: Application, side: str, stack: Stack) -> Iterator[Problem]:
    """What an end of an application cannot have if it is noq. `tables` are as they were written."""
    if stack.stack != NOQ:
        return
    host: str = getattr(application, side)
    if application.transport not in QUIC:
        message = (
            f"'{host}' runs noq, which speaks QUIC and nothing else, and the transport is '{application.transport}'; "
            f'take transport = "quic" or "mpquic", or {side}_stack = {{ stack = "polypath" }}'
        )
        yield Problem((*path, "transport"), message)
        return
    if isinstance(application, Messages) and application.delivery == "datagrams":
        message = f"'{host}' runs noq, which has no datagrams here; take delivery = \"stream\""
        yield Problem((*path, "delivery"), message)
    if isinstance(application, Tunnel):
        message = f"'{host}' runs noq, which has no datagrams here; take {side}_stack = {{ stack = \"polypath\" }}"
        yield Problem((*path, "kind"), message)
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
            yield from _setting((*where, key), host, key, value)


def _setting(where: Path, host: str, key: str, value: Any) -> Iterator[Problem]:
    if key in ITS_OWN:
        own, reason = ITS_OWN[key]
        if own is None or value != own:
            way_out = "leave it out" if where[0] == "host" else f"leave it out for '{host}'"
            yield Problem(where, f"'{key}' cannot be set on '{host}', which runs noq: {reason}; {way_out}")
    elif key in KINDS:
        yield from _algorithm(where, host, key, value)


def _algorithm(where: Path, host: str, key: str, chosen: Algorithm) -> Iterator[Problem]:
    kind = KINDS[key]
    if script.is_script(chosen.name):
        if kind == "congestion":
            message = f"'{chosen.name}' cannot run on '{host}', which runs noq: its congestion controls are its own"
            yield Problem(where, message)
        return
    reason = registry.find(kind, chosen.name).not_on_noq
    if reason is not None:
        known = registry.entries(kind).values()
        rest = ", ".join(entry.name for entry in known if entry.not_on_noq is None)
        title = registry.TITLES[kind]
        message = f"{title} '{chosen.name}' cannot run on '{host}', which runs noq: {reason}; there is {rest}"
        yield Problem(where, message)
        return
    own = ITS_PARAMETERS.get(chosen.name, {})
    for name, value in chosen.parameters.items():
        if kind == "path-manager" and name not in own:
            continue
        if name not in own or value != own[name]:
            what = f"it has {name} = {str(own[name]).lower()}" if name in own else "it has no such parameter"
            yield Problem(
                (*where, name), f"'{name}' of {chosen.name} cannot be set on '{host}', which runs noq: {what}"
            )
