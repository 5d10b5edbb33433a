"""Transport settings of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polypath import registry
from polypath.scenario.quic import without_effect
from polypath.scenario.stack import DEFAULT_PROFILE

from .chance import Chance

if TYPE_CHECKING:
    from .drawn_network import Net

#: Settings whose draws are said here rather than by the registry's bounds.
_OWN = frozenset({"mtu", "initial_window"})


def stack(chance: Chance, net: Net, over: set[str]) -> dict[str, Any]:
    """Settings of all hosts: a profile, algorithms, and a few others."""
    made: dict[str, Any] = {}
    if chance.happens(0.7):
        made["profile"] = chance.choice(list(registry.entries("profile")))
    made |= some(chance, net, over)
    if "mpquic" in over and made.get("profile") == "linux":
        made.setdefault("scheduler", chance.algorithm("scheduler", without=_not_over_quic()))
    return made


def some(chance: Chance, net: Net, over: set[str]) -> dict[str, Any]:
    """Algorithms and a few other settings."""
    made: dict[str, Any] = {}
    if chance.happens(0.5):
        made["scheduler"] = chance.algorithm("scheduler", without=_not_over_quic() if "mpquic" in over else ())
    if chance.happens(0.5):
        made["congestion"] = chance.algorithm("congestion")
    if chance.happens(0.5) and not net.opens_subflows:
        made["path_manager"] = chance.algorithm("path-manager", without=("binder", "scripted"))
    if chance.happens(0.2):
        made["receive_buffer"] = _buffer(chance)
    if chance.happens(0.15):
        made["send_buffer"] = _buffer(chance)
    if chance.happens(0.15):
        made["initial_window"] = chance.randint(1, 40)
    if chance.happens(0.06):
        made["mtu"] = chance.choice((1280, 1400, 9000))
    made |= _switches(chance)
    if over & {"quic", "mpquic"} and chance.happens(0.1):
        made["ack_frequency"] = chance.randint(2, 20)
    if chance.happens(0.05):
        made |= {"keepalive": True, "keepalive_time": chance.time(50, 800)}
    return made


def _not_over_quic() -> list[str]:
    return [name for name, entry in registry.entries("scheduler").items() if entry.not_over_quic]


def _buffer(chance: Chance) -> str | list[str]:
    if chance.happens(0.6):
        return chance.size(6000, 500_000)
    least = round(chance.spread(4000, 20_000))
    return [f"{least} B", f"{least * 4} B", f"{least * chance.randint(8, 60)} B"]


def _switches(chance: Chance) -> dict[str, Any]:
    """Settings that are on or off, or one of a few words."""
    known = registry.find("profile", DEFAULT_PROFILE).parameters
    usual = [each for each in known if each.name not in _OWN and (each.choices or each.kind == "boolean")]
    return {each.name: chance.parameter(each) for each in usual if chance.happens(0.06)}


def of_application(chance: Chance, over: str) -> dict[str, Any]:
    """What an application of this transport may say of its own."""
    refused = without_effect(over)
    made: dict[str, Any] = {}
    if "congestion" not in refused and chance.happens(0.6):
        made["congestion"] = chance.algorithm("congestion")
    if "nagle" not in refused and chance.happens(0.4):
        made["nagle"] = chance.happens(0.5)
    if "receive_buffer" not in refused and chance.happens(0.3):
        made["receive_buffer"] = _buffer(chance)
    return made
