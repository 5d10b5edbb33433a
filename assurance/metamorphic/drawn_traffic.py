"""Applications of every kind and transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polypath import registry

from . import drawn_stacks
from .chance import Chance
from .drawn_network import Net

#: How likely each transport is where a kind has it.
_WEIGHTS = {"mptcp": 4, "tcp": 3, "mpquic": 3, "quic": 2, "udp": 1, "icmp": 1}


def applications(chance: Chance, net: Net, duration_ms: int) -> list[dict[str, Any]]:
    """One to four, on pairs of the network."""
    return [_application(chance, net, duration_ms) for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4)))]


def _application(chance: Chance, net: Net, duration_ms: int) -> dict[str, Any]:
    kind = chance.choices(list(_KINDS), [weight for weight, _ in _KINDS.values()])[0]
    over = list(registry.entries("application")[kind].transports)
    if net.opens_subflows and "mpquic" in over:
        over.remove("mpquic")
    transport = chance.choices(over, [_WEIGHTS[each] for each in over])[0]
    client, server = chance.choice(net.pairs)
    made: dict[str, Any] = {"kind": kind, "transport": transport}
    if (client, server) != ("client", "server"):
        made |= {"client": client, "server": server}
    if chance.happens(0.5):
        made["start"] = f"{chance.randint(0, 500 * duration_ms)} us"
    rest = duration_ms - 500 if duration_ms > 1000 else duration_ms / 4
    made |= _KINDS[kind][1](chance, rest)
    if kind in ("bulk", "stream") and chance.happens(0.1):
        made |= {"name": f"many{chance.randint(0, 10**6)}", "count": chance.choice((2, 3))}
    if transport not in ("tcp", "mptcp"):
        made.pop("tls", None)
    if transport not in ("quic", "mpquic"):
        for name in ("parallel", "streams"):
            made.pop(name, None)
    if chance.happens(0.12) and transport not in ("udp", "icmp"):
        where = chance.choice(("stack", "stack", "client_stack", "server_stack"))
        if own := drawn_stacks.of_application(chance, transport):
            made[where] = own
    if chance.happens(0.1):
        made["port"] = chance.randint(6000, 60_000)
    return made


def _lasting(chance: Chance, rest_ms: float) -> dict[str, Any]:
    return {"duration": chance.time(rest_ms / 4, rest_ms)} if chance.happens(0.6) else {}


def _bulk(chance: Chance, rest_ms: float) -> dict[str, Any]:
    if chance.happens(0.15):
        return {"size": chance.size(1, 200_000), "reverse_size": chance.size(1, 200_000)}
    reverse = {"reverse": True} if chance.happens(0.35) else {}
    if chance.happens(0.6):
        return reverse | {"size": chance.size(1, 400_000)}
    return reverse | _lasting(chance, rest_ms)


def _stream(chance: Chance, rest_ms: float) -> dict[str, Any]:
    made = {"rate": chance.rate(0.1, 4), **_lasting(chance, rest_ms)}
    if chance.happens(0.7):
        made["block"] = chance.size(200, 20_000)
    return made | ({"reverse": True} if chance.happens(0.35) else {})


def _requests(chance: Chance, rest_ms: float) -> dict[str, Any]:
    made: dict[str, Any] = {
        "count": chance.randint(1, 12),
        "request": chance.size(1, 4000),
        "response": chance.size(1, 30_000),
    }
    if chance.happens(0.6):
        made["interval"] = chance.time(1, 200)
    return made | ({"think": chance.time(0.1, 50)} if chance.happens(0.3) else {})


def _fetch(chance: Chance, rest_ms: float) -> dict[str, Any]:
    made: dict[str, Any] = {"size": chance.size(1, 60_000), "count": chance.randint(1, 6)}
    if chance.happens(0.3):
        made["tls"] = chance.choice(("1.2", "1.3"))
    if chance.happens(0.5):
        made["parallel"] = chance.randint(1, 4)
    return made | ({"streams": chance.choice(("each", "ordered", "one"))} if chance.happens(0.5) else {})


def _ping_pong(chance: Chance, rest_ms: float) -> dict[str, Any]:
    made: dict[str, Any] = {"size": chance.size(1, 5000)}
    return made | ({"count": chance.randint(1, 15)} if chance.happens(0.6) else _lasting(chance, rest_ms))


def _messages(chance: Chance, rest_ms: float) -> dict[str, Any]:
    made: dict[str, Any] = {"size": chance.size(1, 1100), **_lasting(chance, rest_ms)}
    made |= {"interval": chance.time(5, 100)} if chance.happens(0.5) else {"rate": chance.rate(0.05, 1)}
    if chance.happens(0.4):
        made["delivery"] = "stream"
    return made | ({"reverse": True} if chance.happens(0.35) else {})


def _video(chance: Chance, rest_ms: float) -> dict[str, Any]:
    made: dict[str, Any] = {
        "segment": chance.time(100, 400),
        "buffer": chance.time(800, 3000),
        "rates": [f"{rate} kbps" for rate in sorted(chance.sample(range(100, 3000), 3))],
        "rule": chance.choice(("throughput", "buffer", "fixed")),
    }
    return made | ({"length": chance.time(200, 2000)} if chance.happens(0.5) else {})


def _page(chance: Chance, rest_ms: float) -> dict[str, Any]:
    objects: list[dict[str, Any]] = []
    for number in range(chance.randint(1, 6)):
        one: dict[str, Any] = {"name": f"o{number}", "size": chance.size(1, 30_000)}
        if objects and chance.happens(0.6):
            one["after"] = [chance.choice(objects)["name"]]
        if chance.happens(0.2):
            one["think"] = chance.time(0.1, 30)
        objects.append(one)
    return {"objects": objects}


def _ping(chance: Chance, rest_ms: float) -> dict[str, Any]:
    made = {"interval": chance.time(10, 300), "payload": chance.size(1, 1400)}
    return made | ({"count": chance.randint(1, 10)} if chance.happens(0.6) else _lasting(chance, rest_ms))


def _cbr(chance: Chance, rest_ms: float) -> dict[str, Any]:
    return {"rate": chance.rate(0.05, 3), "packet": chance.size(20, 1400), **_lasting(chance, rest_ms)}


def _on_off(chance: Chance, rest_ms: float) -> dict[str, Any]:
    pauses = {"on": chance.time(10, 200), "off": chance.time(10, 200)}
    return {"rate": chance.rate(0.2, 4), "packet": chance.size(20, 1400), **pauses, **_lasting(chance, rest_ms)}


_KINDS: dict[str, tuple[float, Callable[[Chance, float], dict[str, Any]]]] = {
    "bulk": (5, _bulk),
    "stream": (2, _stream),
    "request-response": (2, _requests),
    "fetch": (2, _fetch),
    "ping-pong": (1, _ping_pong),
    "messages": (1, _messages),
    "video": (1, _video),
    "page": (1, _page),
    "ping": (1, _ping),
    "cbr": (1.5, _cbr),
    "on-off": (1, _on_off),
}
"""Of each kind how likely it is, and what it says."""
