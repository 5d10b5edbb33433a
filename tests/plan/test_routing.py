"""The ways that a plan gives are those that packets take in a run."""

import random
from collections import Counter
from typing import Any

import polars as pl
import pytest

from polypath import _core, engines, run
from polypath.plan.routing import Routing, Undetermined
from polypath.scenario import Plan, Scenario

ROUTINGS = ("shortest-path", "shortest-path", "ecmp", "in-turn", "spread")


def drawn(seed: int) -> Plan:
    """Some routers, a host that forwards, links between them at random, and static routes that may lead astray."""
    draw = random.Random(seed)
    inner = [f"r{number}" for number in range(draw.randint(2, 5))]
    relay = draw.random() < 0.3
    text = ['duration = "3 s"', f'routing = "{draw.choice(ROUTINGS)}"', "[host.client]", "[host.server]"]
    text += [f"[router.{name}]" for name in inner] + ["[host.relay]\nforwards = true"] * relay
    around = inner + ["relay"] * relay
    wires = [(draw.choice(around[:number]), name) for number, name in enumerate(around) if number]
    pairs = (draw.sample(around, 2) for _ in range(draw.randint(0, 4)))
    wires += [(a, b) for a, b in pairs]
    wires += [(f"{host}:eth{number}", draw.choice(around)) for host in ("client", "server") for number in range(2)]
    for number, (a, b) in enumerate(wires):
        text.append(
            f'[link.l{number}]\nends = ["{a}", "{b}"]\nrate = "10 Mbps"\ndelay = "{draw.choice([1, 1, 2, 5])} ms"'
        )
    text.append('[[application]]\nkind = "bulk"\ntransport = "tcp"\nsize = "20 kB"')
    data = Scenario.parse("\n".join(text), "x").plan(seed).data
    if data["routing"] != "spread":
        data["routes"] += [_route(draw, data) for _ in range(draw.randint(0, 3))]
    (application,) = data["applications"]
    for end, host in (("source", "client"), ("destination", "server")):
        node = next(each for each in data["nodes"] if each["name"] == host)
        application[end] = draw.choice(node["interfaces"])["addresses"][0]
    return Plan(data)


def _route(draw: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    node, table = draw.choice([each for each in enumerate(data["nodes"]) if each[1]["name"] != "server"])
    address = draw.choice([each for one in data["nodes"][:2] for own in one["interfaces"] for each in own["addresses"]])
    source = draw.choice(data["nodes"][0]["interfaces"])["addresses"][0]
    return {
        "node": node,
        "source": draw.choice([None, {"address": source, "length": draw.choice([8, 24, 32])}]),
        "destination": {"address": address, "length": draw.choice([8, 24, 32])},
        "interface": draw.randrange(len(table["interfaces"])),
    }


def ways(plan: Plan) -> list[set[tuple[int, str]] | None]:
    """There and back; None where none leads there."""
    routing = Routing(plan.view)
    (application,) = plan.data["applications"]
    ends = application["source"], application["destination"]
    found = [routing.between(*ends), routing.between(*reversed(ends))]
    return [None if each is None else {(hop.link, hop.direction) for hop in each.hops} for each in found]


def others(plan: Plan) -> list[set[tuple[int, str]]]:
    """The ways back from the other addresses of the host that answers."""
    routing = Routing(plan.view)
    (application,) = plan.data["applications"]
    node, _ = routing.owner(application["destination"]) or (0, 0)
    addresses = [address for each in plan.view["nodes"][node]["interfaces"] for address in each.get("addresses", ())]
    found = [routing.between(address, application["source"]) for address in addresses]
    return [{(hop.link, hop.direction) for hop in each.hops} for each in found if each is not None]


def outcome(seed: int) -> str:
    plan = drawn(seed)
    try:
        there, back = ways(plan)
        # an answer leaves by another interface where the one that owns its source leads nowhere
        answers = [back] if back is not None else [set(), *others(plan)]
    except Undetermined:
        assert plan.view["routing"] != "shortest-path"
        return "undetermined"
    if there is None:
        with pytest.raises(engines.EngineError):
            run(plan)
        return "refused"
    table = run(plan).table("link_ends").filter(pl.col("sent_packets") > 0)
    sent = set(table.select("link", "direction").iter_rows())
    assert any(sent == there | answer for answer in answers)
    return "settled" if plan.view["routing"] == "shortest-path" else "without a choice"


def test_packets_take_the_ways_of_the_plan() -> None:
    counts = Counter(outcome(seed) for seed in range(300))
    assert min(counts[each] for each in ("settled", "without a choice", "undetermined", "refused")) >= 10


def test_the_engine_s_own_questions() -> None:
    plan = drawn(0)
    routes = _core.Routes(plan.json())
    (application,) = plan.data["applications"]
    client, source, destination = (application[key] for key in ("client", "source", "destination"))
    assert routes.way(client, source, "192.0.2.1") is None
    assert routes.way(len(plan.view["nodes"]), source, destination) is None
    with pytest.raises(ValueError, match="'nobody' is no IP address"):
        routes.way(client, "nobody", destination)
    links = plan.data["links"]
    links[0]["a"]["interface"] = 9
    with pytest.raises(_core.PlanError, match="link l0: there is no interface 9"):
        _core.Routes(Plan(plan.data | {"links": links}).json())
