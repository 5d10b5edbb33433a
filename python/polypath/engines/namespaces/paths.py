"""Path managers as endpoints and limits of `ip mptcp`, or as Polypath's own in user space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from polypath.engines.base import EngineError
from polypath.engines.namespaces import algorithms
from polypath.engines.namespaces.kernel import Kernel
from polypath.engines.namespaces.topology import End, Network
from polypath.plan.access import settings_of_host

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Application

#: Linux, net/mptcp/pm_kernel.c: addresses that one connection uses.
_MOST_ADDRESSES = 8


#: A function of the shell: the number of an endpoint by its address, of what `ip mptcp endpoint show` prints.
NUMBER: Final = """number() {
    while read -r address rest; do
        test "$address" = "$1" || continue
        set -- $rest
        while test "$1" != id; do shift; done
        echo "$2"
        return
    done
}
"""


@dataclass(frozen=True)
class Endpoint:
    """An address that the kernel's path manager works with."""

    number: int
    address: str
    device: str
    flags: tuple[str, ...]
    port: str = ""
    #: Where the order matters, as the kernel's list has it.
    place: int = 0
    #: It goes and returns with its interface.
    leaves: bool = True

    def add(self, numbered: bool = True) -> str:
        number = ("id", str(self.number)) if numbered else ()
        port = ("port", self.port) if self.port else ()
        return " ".join(("mptcp endpoint add", self.address, *number, "dev", self.device, *self.flags, *port))

    def add_again(self, ip: str) -> str:
        """For a shell. Meanwhile the kernel may have made an endpoint of its own, for an address that is none but has a
        subflow, with that number (`mptcp_pm_nl_append_new_local_addr`). Then the kernel chooses another one."""
        return f"{ip} {self.add()} 2>/dev/null || {ip} {self.add(numbered=False)}"

    def delete(self) -> str:
        return f"mptcp endpoint delete id {self.number}"

    def delete_again(self, ip: str) -> str:
        """For a shell that knows `NUMBER`: an endpoint whose number may not be that of the setup."""
        return f'{ip} mptcp endpoint delete id "$({ip} mptcp endpoint show | number {self.address})"'

    def changed(self, flags: Mapping[str, bool]) -> Endpoint:
        """With flags or without; one for signal is never for fullmesh (`mptcp_pm_nl_set_flags`)."""
        if "signal" in self.flags:
            flags = {flag: value for flag, value in flags.items() if flag != "fullmesh"}
        kept = [flag for flag in self.flags if flag not in flags]
        return replace(self, flags=(*kept, *(flag for flag, value in flags.items() if value)))

    def change(self) -> str:
        """A flag that is not named is taken away."""
        return f"mptcp endpoint change id {self.number} {self._told()}"

    def change_again(self, ip: str) -> str:
        """As `delete_again`."""
        return f'{ip} mptcp endpoint change id "$({ip} mptcp endpoint show | number {self.address})" {self._told()}'

    def _told(self) -> str:
        told = (flag if flag in self.flags else f"no{flag}" for flag in ("backup", "fullmesh"))
        return " ".join(told)


@dataclass
class Paths:
    """What a host's path manager comes to."""

    #: Further subflows of a connection at most, and accepted announcements.
    subflows: int
    endpoints: dict[End, list[Endpoint]] = field(default_factory=dict)
    #: Options of the path manager in user space (programs/paths.c); none: the kernel's own is in charge.
    userspace: str = ""
    accepted: int = _MOST_ADDRESSES
    #: The last interface that is up keeps its endpoints as it goes down, and its subflows go on trying.
    keeps_last: bool = True

    def commands(self) -> list[str]:
        """Lines for `ip -batch`."""
        limits = f"mptcp limits set subflows {self.subflows} add_addr_accepted {self.accepted}"
        endpoints = [endpoint for group in self.endpoints.values() for endpoint in group]
        return [limits, *(endpoint.add() for endpoint in sorted(endpoints, key=lambda each: each.place))]


def of_host(network: Network, kernel: Kernel, node: int) -> Paths:
    """The path manager of a host, for the applications that it is client or server of. Raises EngineError."""
    choice = settings_of_host(network.nodes[node])["path_manager"]
    name, parameters = choice["name"], choice.get("parameters") or {}
    algorithms.refuse(name)
    if name not in MANAGERS:
        raise algorithms.lacks("path-manager", name, MANAGERS)
    return MANAGERS[name](network, kernel, node, parameters)


def _endpoints(network: Network, kernel: Kernel, node: int, flags: tuple[str, ...]) -> Paths:
    table = network.nodes[node]["interfaces"]
    found: dict[End, list[Endpoint]] = {}
    number = 0
    for end in network.ends(node):
        interface = table[end.interface]
        for address in interface["addresses"]:
            number += 1
            own = (*flags, "backup") if interface["backup"] else flags
            found.setdefault(end, []).append(Endpoint(number, address, network.device(end), own))
    if number > _MOST_ADDRESSES:
        host = network.nodes[node]["name"]
        raise EngineError(
            f"Linux takes {_MOST_ADDRESSES} addresses of a host into a connection, and {host} has {number}"
        )
    return Paths(kernel.most_subflows, endpoints=found)


def _passive(network: Network, kernel: Kernel, node: int, parameters: Mapping[str, Any]) -> Paths:
    return replace(_followed(network, kernel, node), accepted=0)


def _followed(network: Network, kernel: Kernel, node: int) -> Paths:
    """Nothing is opened or announced. Interfaces that are or become backups have their addresses as endpoints without a
    task, because the kernel sends MP_PRIO only for endpoints. It also answers MP_JOIN with the backup flag only for
    them (`mptcp_pm_is_backup`). They outlast their interfaces, since no path manager removes them.
    """
    plan = network.plan
    actions = (event["action"] for event in plan["events"])
    backups = any(interface["backup"] for interface in network.nodes[node]["interfaces"])
    changes = any(action["kind"] == "priority" and action["node"] == node for action in actions)
    if not (backups or changes or "clients" in plan):
        return Paths(kernel.most_subflows)
    paths = _endpoints(network, kernel, node, ())
    kept = {end: [replace(each, leaves=False) for each in group] for end, group in paths.endpoints.items()}
    return replace(paths, endpoints=kept)


def clients(plan: PlanData) -> set[int]:
    """The hosts that open connections: of applications the clients, of programs those not in the background, and in a
    session those that it names."""
    found = {application["client"] for application in plan["applications"]}
    found |= {program["host"] for program in plan.get("programs", ()) if not program["background"]}
    return found | set(plan.get("clients", ()))


def _fullmesh(network: Network, kernel: Kernel, node: int, parameters: Mapping[str, Any]) -> Paths:
    client = node in clients(network.plan)
    server = any(application["server"] == node for application in network.plan["applications"])
    if client and server and not network.plan.get("programs"):
        host = network.nodes[node]["name"]
        raise EngineError(f"Linux has fullmesh on a host that is a client or a server, and {host} is both")
    pairs = int(parameters.get("num_subflows", 1))
    if client and pairs > 1:
        return _userspace(network, kernel, node, pairs, mesh=True)
    if client:
        paths = _endpoints(network, kernel, node, ("subflow", "fullmesh"))
        _require_room(network, kernel, node, paths.endpoints)
        return paths
    paths = _endpoints(network, kernel, node, ("signal",))
    return paths if sum(map(len, paths.endpoints.values())) > 1 else _followed(network, kernel, node)


def _require_room(
    network: Network, kernel: Kernel, node: int, own: Mapping[End, list[Endpoint]], of_a_pair: int = 1
) -> None:
    """Raises EngineError where a connection of an application would have more subflows than the kernel allows: it would
    leave them out without a word."""
    for application in network.plan["applications"]:
        if application["client"] != node or application["transport"] != "mptcp":
            continue
        pairs = sum(
            network.next_hop(node, ip_address(remote), end.interface) is not None
            for end, endpoints in own.items()
            for endpoint in endpoints
            for remote in _told(network, application)
            if (":" in endpoint.address) == (":" in remote)
        )
        further = pairs * of_a_pair - 1
        if further > kernel.most_subflows:
            client, server = (network.nodes[application[side]]["name"] for side in ("client", "server"))
            raise EngineError(
                f"Linux opens {kernel.most_subflows} further subflows of a connection at most here, and fullmesh of"
                f" {client} has {further} to {server}"
            )


def _told(network: Network, application: Application) -> list[str]:
    """The addresses of its server that a client comes to know."""
    server = network.nodes[application["server"]]
    addresses = [address for interface in server["interfaces"] for address in interface["addresses"]]
    choice = settings_of_host(server)["path_manager"]
    flags = str((choice.get("parameters") or {}).get("flags", ""))
    if choice["name"] == "fullmesh" or (choice["name"] == "endpoints" and "signal" in flags):
        return addresses
    return [application["destination"] or addresses[0]]


def _kernel(network: Network, kernel: Kernel, node: int, parameters: Mapping[str, Any]) -> Paths:
    flags = str(parameters.get("flags", "subflow")).replace("fullmesh", "subflow fullmesh")
    chosen = parameters.get("endpoints") or []
    if chosen:
        paths = _chosen(_endpoints(network, kernel, node, ()), chosen)
    elif flags == "none":
        paths = _followed(network, kernel, node)
    else:
        paths = _endpoints(network, kernel, node, tuple(flags.split()))
    paths.subflows = int(parameters.get("subflows", 2))
    if paths.subflows > kernel.most_subflows:
        host = network.nodes[node]["name"]
        raise EngineError(
            f"Linux opens {kernel.most_subflows} further subflows of a connection at most here, and endpoints of {host}"
            f" has subflows = {paths.subflows}"
        )
    paths.accepted = int(parameters.get("add_addr_accepted", 0))
    paths.keeps_last = False
    return paths


def _chosen(every: Paths, texts: Sequence[str]) -> Paths:
    """Only the addresses that are named, in their order, with what is said of each; ids stay as they are."""
    at = {endpoint.address: (end, endpoint) for end, group in every.endpoints.items() for endpoint in group}
    found: dict[End, list[Endpoint]] = {}
    for place, text in enumerate(texts):
        address, *words = text.split()
        port = words[words.index("port") + 1] if "port" in words else ""
        flags = words[: words.index("port")] + words[words.index("port") + 2 :] if port else words
        if (where := at.pop(str(ip_address(address)), None)) is None:
            raise EngineError(f"path manager endpoints names {address}, which is no address of its host, or twice")
        end, endpoint = where
        own = replace(endpoint, flags=(*flags, *endpoint.flags), port=port, place=place)
        found.setdefault(end, []).append(own)
    return replace(every, endpoints=found)


def _ndiffports(network: Network, kernel: Kernel, node: int, parameters: Mapping[str, Any]) -> Paths:
    client = node in clients(network.plan)
    return (
        _userspace(network, kernel, node, int(parameters.get("num_subflows", 2)), mesh=False)
        if client
        else _passive(network, kernel, node, {})
    )


def _userspace(network: Network, kernel: Kernel, node: int, subflows: int, mesh: bool) -> Paths:
    """The kernel's own path manager opens one subflow for a pair of addresses; more need one in user space."""
    if subflows > kernel.most_subflows:
        raise EngineError(f"Linux opens {kernel.most_subflows} subflows of a connection at most, not {subflows}")
    kept = _endpoints(network, kernel, node, ())
    if mesh:
        _require_room(network, kernel, node, kept.endpoints, subflows)
    own = ",".join(
        f"{endpoint.address}@{endpoint.device}" + ("*" if "backup" in endpoint.flags else "")
        for group in kept.endpoints.values()
        for endpoint in group
    )
    return Paths(kernel.most_subflows, userspace=f"subflows={subflows} mesh={int(mesh)} own={own}")


MANAGERS: Final[Mapping[str, Callable[[Network, Kernel, int, Mapping[str, Any]], Paths]]] = {
    "default": _passive,
    "fullmesh": _fullmesh,
    "ndiffports": _ndiffports,
    "endpoints": _kernel,
}
