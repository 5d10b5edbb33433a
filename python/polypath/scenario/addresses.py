"""Addresses that no connection of their host can use, although the scenario may intend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from polypath.scenario.network import Host
from polypath.scenario.tables import Tables

_MOST_OF_A_FAMILY: Final = {"mptcp.org": 8}
"""Addresses of IPv4 and of IPv6 each that a connection of Multipath TCP takes (mptcp.org `MPTCP_MAX_ADDR`)."""


def left_out(resolved: Tables, over: dict[str, set[str]]) -> Iterator[str]:
    """A line for each host of which addresses count for nothing; `over`: by host the transports of its applications."""
    for name, host in resolved.host.items():
        own = [address for interface in host.interface.values() for address in interface.address or []]
        if "mptcp" in over.get(name, ()):
            yield from _beyond(name, host, Counter(address.version for address in own))
        manager = host.path_manager
        if manager is None or manager.name != "endpoints":
            continue
        for text in manager.parameters.get("endpoints", ()):
            address = str(text).split()[0]
            if ip_address(address) not in own:
                yield f"path manager 'endpoints' of host {name} names {address}, which is no address of that host"


def _beyond(name: str, host: Host, counts: Counter[int]) -> Iterator[str]:
    most = _MOST_OF_A_FAMILY.get(host.profile or "")
    for version, count in sorted(counts.items()):
        if most is not None and count > most:
            yield (
                f"host {name} has {count} addresses of IPv{version}: Multipath TCP of profile {host.profile} takes the"
                f" first {most} of them, as its kernel does (MPTCP_MAX_ADDR)"
            )
