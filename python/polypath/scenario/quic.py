"""Settings that QUIC connections do not support, or only they support."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

from polypath import registry
from polypath.scenario import others, script
from polypath.scenario.errors import Problem
from polypath.scenario.positions import Path
from polypath.scenario.stack import DEFAULT_PROFILE, SETTINGS, Stack, settings
from polypath.scenario.tables import Tables, between_hosts, directions, host_stack, split_end
from polypath.scenario.traffic import QUIC, Application, MeasuredApplication

#: A path takes datagrams of 1200 bytes (RFC 9000 section 14), with UDP's header and that of IPv4 or IPv6.
LEAST_MTU: Final = {4: 1228, 6: 1248}


#: Settings of TCP, Multipath TCP included; of QUIC; and of Multipath QUIC, beside those that the engine declares.
OF_TCP: Final = frozenset({"keepalive_interval", "keepalive_probes"})
OF_QUIC: Final = frozenset({"ack_frequency"})
OF_MULTIPATH_QUIC: Final = frozenset({"send_paths"})

OfHost = Callable[[str], Stack]
"""The complete settings of a host, by its name."""


def _only(what: str) -> frozenset[str]:
    known = registry.find("profile", DEFAULT_PROFILE).parameters
    return frozenset(each.name for each in known if each.only == what)


def faults(written: Tables, tables: Tables, applications: Sequence[tuple[int, Application]]) -> list[Problem]:
    """What no application of QUIC can run with, and settings of QUIC's in others.

    `written` is the scenario without what was filled in; each application comes with its position among all.
    """
    as_written = dict(between_hosts(written))
    found = [problem for index, one in as_written.items() for problem in _settings(written, index, one)]
    of_host = cache(lambda host: host_stack(tables, host))
    for index, application in applications:
        path = ("application", index)
        found += _faults(tables, path, application, of_host)
        for side in ("client", "server"):
            stack = _stack(of_host, application, side)
            found += others.faults(written, path, as_written[index], side, stack)
    return [*found, *_migrations(tables, [application for _, application in applications], of_host)]


def _migrations(tables: Tables, applications: Sequence[Application], of_host: OfHost) -> Iterator[Problem]:
    """Only clients of QUIC migrate (RFC 9000 section 9)."""
    for index, event in enumerate(tables.event):
        if event.interface is None or event.migrate_to is None:
            continue
        host, path = split_end(event.interface)[0], ("event", index, "migrate_to")
        own = [application for application in applications if application.client == host]
        over = [application for application in own if application.transport in QUIC]
        if not over:
            what = sorted({application.transport for application in own})
            said = f"is a client over {' and '.join(what)} alone" if what else "is the client of no application"
            message = f"only clients of QUIC migrate (RFC 9000 section 9), and '{host}' {said}"
            yield Problem(path, f'{message}; take transport = "quic" or "mpquic"')
        for application in over:
            name = _stack(of_host, application, "client").stack
            if application.transport == "mpquic" and name in others.RULES:
                message = f"'{host}' runs {name}, which moves no path of Multipath QUIC: it opens another one instead"
                yield Problem(path, f'{message}; take transport = "quic" there')


def _stack(of_host: OfHost, application: Application, side: str) -> Stack:
    """The complete settings of an end of an application."""
    own: Stack = getattr(application, f"{side}_stack")
    return own if settings(own) else of_host(getattr(application, side))


@cache
def without_effect(transport: str) -> frozenset[str]:
    """The settings that a transport has no use of; for `stack` see `others`."""
    if transport in ("udp", "icmp"):
        return frozenset(SETTINGS) - {"stack"}
    others = frozenset() if transport == "mpquic" else OF_MULTIPATH_QUIC | _only("mpquic")
    return others | (OF_TCP | _only("tcp") if transport in QUIC else OF_QUIC | _only("quic"))


def _settings(tables: Tables, index: int, application: Application) -> Iterator[Problem]:
    """Settings of an application's own that its transport does not have; its hosts' may be for other applications."""
    over = application.transport
    refused = without_effect(over)
    owners = {"stack": application.client, "client_stack": application.client, "server_stack": application.server}
    for table, host in owners.items():
        own = {key: value for key, value in settings(getattr(application, table)).items() if key in refused}
        hosts = settings(host_stack(tables, host)) if own else {}
        for key, value in own.items():
            if value != hosts.get(key):
                message = f"'{key}' changes nothing for an application over {over}; leave it out"
                yield Problem(("application", index, table, key), message)


def _faults(tables: Tables, path: Path, application: Application, of_host: OfHost) -> Iterator[Problem]:
    if application.transport not in QUIC:
        if application.kind == "fetch":
            for key, default in (("parallel", 1), ("streams", "each")):
                if getattr(application, key) != default:
                    message = f"'{key}' is about streams of QUIC, and the transport is '{application.transport}'"
                    yield Problem((*path, key), message)
        return
    if application.kind == "fetch" and application.tls is not None:
        yield Problem((*path, "tls"), "QUIC has a TLS 1.3 handshake of its own (RFC 9001); leave 'tls' out")
    if isinstance(application, MeasuredApplication) and application.program is not None:
        yield Problem((*path, "program"), f"'{application.program}' does not speak QUIC; leave 'program' out")
    for side in ("client", "server"):
        host = getattr(application, side)
        stack = _stack(of_host, application, side)
        yield from _scheduler(path, application, host, stack)
        yield from _mtu(tables, path, application, host, stack)


def _scheduler(path: Path, application: Application, host: str, stack: Stack) -> Iterator[Problem]:
    chosen = stack.scheduler
    if application.transport == "quic" or chosen is None or script.is_script(chosen.name):
        return
    reason = registry.find("scheduler", chosen.name).not_over_quic
    if reason is not None:
        message = f"scheduler '{chosen.name}' of '{host}' does not run over QUIC: {reason}; choose another one"
        yield Problem(path, message, "default")


def _mtu(tables: Tables, path: Path, application: Application, host: str, stack: Stack) -> Iterator[Problem]:
    version = 6 if application.source is not None and application.source.version == 6 else 4
    least = LEAST_MTU[version]
    mtu = stack.mtu
    if mtu is not None and mtu < least:
        yield Problem(path, f"QUIC needs packets of {least} bytes over IPv{version}, and 'mtu' of '{host}' is {mtu}")
    for name, link in tables.link.items():
        for end, side in zip(link.ends, directions(link), strict=True):
            if split_end(end)[0] == host and side.mtu is not None and side.mtu < least:
                message = f"QUIC needs packets of {least} bytes over IPv{version}, and link '{name}' takes {side.mtu}"
                yield Problem(path, message)
