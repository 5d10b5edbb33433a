"""Settings and addresses without effect, because no application's transport has them, and entries that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polypath.scenario.addresses import left_out
from polypath.scenario.pages import faults_of_har
from polypath.scenario.quic import without_effect
from polypath.scenario.stack import Stack, settings
from polypath.scenario.tables import Tables, between_hosts, commands
from polypath.scenario.traffic import TRANSPORTS, Page


def unused(written: Tables, resolved: Tables) -> list[str]:
    """A line for each, of `[defaults]` and of hosts; `resolved` is `written` with nothing left out."""
    of_host: dict[str, set[str]] = {}
    for _, one in between_hosts(resolved):
        for end in (one.client, one.server):
            of_host.setdefault(end, set()).add(one.transport)
    for _, program in commands(resolved):
        of_host.setdefault(program.host, set()).add(program.transport)
    everywhere = set().union(*of_host.values())
    found = list(_of(written.defaults, "[defaults]", everywhere))
    for name, host in written.host.items():
        found += _of(host, f"[host.{name}]", of_host.get(name, set()))
    return [*found, *left_out(resolved, of_host), *_entries(written)]


def _entries(written: Tables) -> Iterator[str]:
    """Entries of HAR files that are no objects of their page."""
    for application in written.application:
        if isinstance(application, Page) and application.har is not None:
            yield from faults_of_har(application.har)


def _of(stack: Stack, table: str, over: Iterable[str]) -> Iterator[str]:
    refused = [without_effect(transport) for transport in over]
    if not refused:
        return
    names = " and ".join(name for transport, name in TRANSPORTS.items() if transport in over)
    for key in settings(stack):
        if all(key in each for each in refused):
            yield f"'{key}' of {table} changes nothing: its applications run over {names}"
