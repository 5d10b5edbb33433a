"""Classes that a topology names for its nodes and links: their form in a scenario, or the reason why they have none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from polypath.scenario.errors import ScenarioError

Fault = Callable[[str, str | None], ScenarioError]

HOSTS: Final = frozenset({"Node", "Host", "CPULimitedHost"})
SWITCHES: Final = frozenset(
    {"Switch", "OVSSwitch", "OVSBridge", "UserSwitch", "IVSSwitch", "LinuxBridge"},
)
#: Classes of links whose interfaces tc shapes or may shape.
LINKS: Final = frozenset({"Link", "TCLink", "TCULink", "OVSLink"})
INTERFACES: Final = frozenset({"Intf", "TCIntf", "OVSIntf"})


def split(value: Any) -> tuple[Mapping[str, Any] | None, dict[str, Any]]:
    """The class behind a `cls`, and the options that partial functions around it give."""
    options: dict[str, Any] = {}
    while isinstance(value, dict) and "partial" in value:
        options = {**value["options"], **options}
        value = value["partial"]
    return (value["class"] if isinstance(value, dict) and "class" in value else None), options


def role(value: Any, *, switch: bool, fault: Fault) -> tuple[str, dict[str, Any]]:
    """Whether a node is a "host", "router" or "switch", and the options that its class comes with.

    A class of the file's own that turns on IP forwarding is a router. Raises what `fault` makes of a message.
    """
    if value is None:
        return ("switch" if switch else "host"), {}
    made, options = split(value)
    if made is None:
        raise fault("'cls' is no class of mininet.node", None)
    name, base = made["name"], made["base"]
    if base == "NAT":
        raise fault(f"class {name} is a gateway to the world outside, which a scenario has none of", None)
    if base not in (SWITCHES if switch else HOSTS):
        raise fault(f"class {name} is none of a {'switch' if switch else 'host'}", None)
    if made["changes"]:
        if made["forwards"] and not switch:
            return "router", options
        what = ", ".join(f"'{each}'" for each in made["changes"][:3])
        raise fault(f"class {name} is the file's own and defines {what}, which an import does not run", None)
    return ("switch" if switch else "host"), options


def link_options(given: Mapping[str, Any], fault: Fault) -> tuple[dict[str, Any], bool]:
    """A link's options with those that its class comes with, and whether its class ignores shaping.

    Raises what `fault` makes of a message.
    """
    options: dict[str, Any] = {}
    shapes: list[bool] = []
    for key, known in (("cls", LINKS), ("intf", INTERFACES), ("cls1", INTERFACES), ("cls2", INTERFACES)):
        if given.get(key) is None:
            continue
        made, extra = split(given[key])
        if made is None or made["base"] not in known:
            raise fault(f"'{key}' is no class of mininet.link", None)
        if made["changes"]:
            raise fault(f"class {made['name']} is the file's own, and an import does not run it", None)
        options |= extra
        shapes.append(made["base"].startswith("TC"))
    return {**options, **given}, bool(shapes) and not any(shapes)
