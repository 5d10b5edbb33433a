"""A scenario drawn from a number: a network of few nodes, what runs over it for up to three seconds, what happens."""

from __future__ import annotations

from typing import Any

from . import drawn_links, drawn_stacks, drawn_traffic, toml
from .chance import Chance
from .drawn_network import Net, network

#: Few of them, so that a shift of three seconds is a whole number of each.
INTERVALS = ("10 ms", "20 ms", "50 ms", "100 ms", "250 ms", "500 ms")


def scenario(number: int) -> str:
    """The text of the scenario with this number."""
    return toml.text(_data(Chance(f"metamorphic {number}"), number))


def _data(chance: Chance, number: int) -> dict[str, Any]:
    duration = round(1000 * chance.spread(0.3, 3.0))
    net = network(chance)
    traffic = drawn_traffic.applications(chance, net, duration)
    over = {each["transport"] for each in traffic}
    data: dict[str, Any] = {
        "name": f"s{number}",
        "seed": number % 1000,
        "duration": f"{duration} ms",
        "defaults": drawn_stacks.stack(chance, net, over),
        **net.tables,
    }
    if chance.happens(0.8):
        data["record"] = {"interval": chance.choice(INTERVALS)}
    for host in data.get("host", {}).values():
        if not net.quiet and chance.happens(0.3):
            host |= drawn_stacks.some(chance, net, over)
    data["application"] = traffic
    if not net.quiet and chance.happens(0.6) and (events := drawn_links.events(chance, net, duration, over)):
        data["event"] = events
    return data


__all__ = ["Net", "scenario"]
