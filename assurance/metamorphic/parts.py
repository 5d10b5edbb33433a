"""Parts of the network that nobody uses, that are called otherwise, or that stand elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Any

import polars as pl

import polypath
from polypath import Recording, Scenario, ScenarioError
from polypath.scenario.tables import split_end

from . import drawn
from .case import Case, planned, ran
from .changes import (
    addresses_back,
    directions,
    draws_on_the_way,
    explicit_interfaces,
    readdressed,
    relabel,
)
from .compare import Change, renamed, same, same_tables
from .relation import Unfit, need, relation, require

#: Tables with positions of nodes.
_OF_NODES = ("switches", "switch_ends", "flow_setups", "bridge_ports", "bridge_ends")


def _without(recording: Recording, links: Collection[str], hosts: Collection[str], nodes: int) -> dict[str, Any]:
    """A run's tables without links and hosts that were added behind all others. Raises Broken if one of the links
    carried anything. `nodes` is the number of added nodes before the routers."""
    made = dict(recording.tables)
    ends = made["link_ends"]
    added = ends.filter(pl.col("name").is_in(list(links)))
    require(added.height == 2 * len(links), "the added link has no totals")
    counts = ("sent_packets", "dropped_packets", "lost_packets", "max_queue_packets", "busy_ns")
    require(not any(added[name].sum() for name in counts), f"packets on an unused link: {added.rows()}")
    made["link_ends"] = ends.filter(~pl.col("name").is_in(list(links)))
    made["links"] = made["links"].filter(~pl.col("link").is_in(added["link"].unique().to_list()))
    made["counters"] = made["counters"].filter(~pl.col("host").is_in(list(hosts)))
    for name in _OF_NODES:
        if name in made and nodes:
            made[name] = made[name].with_columns((pl.col("switch") - nodes).cast(pl.UInt32))
    return made


_LINK = {"rate": "1 Mbps", "delay": "1 ms", "loss": "1 %", "jitter": "1 ms"}


@relation(
    "Two hosts with a link between them, added behind the others, change nothing.",
    "No route leads there, and each link draws from its own stream, named by its place. ECMP is left out, "
    "because its hash also covers the nodes' places.",
)
def unused_hosts(case: Case, random: Random) -> None:
    need(case.data.get("routing") != "ecmp")
    data = case.copy()
    data.setdefault("host", {}).update({"unused1": {}, "unused2": {}})
    data.setdefault("link", {})["unused"] = {"ends": ["unused1", "unused2"], **_LINK}
    other = ran(data)
    same_tables(case.recording.tables, _without(other, ["unused"], ["unused1", "unused2"], 2))


@relation(
    "A host behind one more link of a router, added behind the others, changes nothing.",
    "The link leads nowhere else, and nothing is sent to the host.",
)
def unused_stub(case: Case, random: Random) -> None:
    need("controller" not in case.data and "bridging" not in case.data and case.data.get("routing") != "ecmp")
    routers = list(case.tables.router)
    need(bool(routers))
    data = case.copy()
    data.setdefault("host", {})["unused"] = {}
    data.setdefault("link", {})["stub"] = {"ends": [random.choice(routers), "unused"], **_LINK}
    same_tables(case.recording.tables, _without(ran(data), ["stub"], ["unused"], 0))


@relation(
    "Other names of nodes, interfaces, links, media and applications change nothing but names.",
    "A plan knows positions; names are for people. Only `start_jitter` draws by a name.",
)
def relabelled(case: Case, random: Random) -> None:
    need("topology" not in case.data)
    data = case.copy()
    explicit_interfaces(data, case.tables)
    names: dict[str, str] = {}

    def rename(name: str) -> str:
        return names.setdefault(name, f"{chr(ord('z') - len(names) % 26)}{len(names)}")

    relabel(data, rename)
    for number, application in enumerate(data["application"]):
        application["name"] = f"work{9 - number}"
    plan = planned(data)
    applications = {
        old["name"]: new["name"]
        for old, new in zip(case.plan.data["applications"], plan.view["applications"], strict=True)
    }
    of_parts = renamed(host=names, interface=names)
    change = _in_events(names)
    ours = {name: change(of_parts(table)) for name, table in case.recording.tables.items()}
    ours["connection_ends"] = renamed(name=applications)(ours["connection_ends"])
    for name in ("link_ends", "switch_ends", "bridge_ends"):
        if name in ours:
            ours[name] = renamed(name=names)(ours[name])
    same_tables(ours, polypath.run(plan).tables)


def _in_events(names: dict[str, str]) -> Change:
    """Details of events that begin with an interface's name."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        if "detail" not in table.columns:
            return table
        first = pl.col("detail").str.extract(r"^(\S*)", 1)
        words = pl.concat_str(first.replace(names), pl.col("detail").str.strip_prefix(first))
        return table.with_columns(
            detail=pl.when(pl.col("kind") == "interface-changed").then(words).otherwise(pl.col("detail"))
        )

    return change


@relation(
    "Other addresses in the same order change nothing but addresses.",
    "Routes follow the addresses. Only a hash of a flow looks at their bits.",
)
def readdressing(case: Case, random: Random) -> None:
    plan = case.plan.data
    need(plan["routing"] == "shortest-path" and "controller" not in plan)
    need(all(channel["queue"]["kind"] not in ("drr", "fq-codel", "fq-pie") for channel in directions(plan)))
    shift = random.randint(1, 60)
    data = readdressed(case.scenario.resolved().to_data(), shift)
    other = polypath.run(Scenario.from_data(data))
    back = addresses_back(shift)
    same_tables(case.recording.tables, {name: back(table) for name, table in other.tables.items()})


@relation(
    "Hosts and routers in another order change nothing.",
    "Links and applications name the random streams, and events are ordered by time and link.",
)
def reordered_nodes(case: Case, random: Random) -> None:
    need(not {"topology", "controller", "bridging"} & case.data.keys() and case.data.get("routing") != "ecmp")
    data = case.copy()
    for group in ("host", "router", "switch"):
        if group in data:
            data[group] = dict(reversed(data[group].items()))
    same(case.recording, ran(data), counters=lambda table: table.sort("host", "name"))


@relation(
    "A longer limit of a drop-tail queue that never reached its own changes nothing.",
    "A limit is checked only if a packet does not fit, and all fitted.",
)
def longer_queue(case: Case, random: Random) -> None:
    ends = case.recording.table("link_ends")
    changed = {event.get("link") for event in case.data.get("event", ()) if "queue" in event}
    fitting = []
    for number, link in enumerate(case.plan.data["links"]):
        rows = ends.filter(pl.col("link") == number)
        queues = [link[side]["queue"] for side in ("forward", "backward")]
        limits = [(each.get("packets"), each.get("bytes")) for each in queues]
        if (
            link["name"] in case.data.get("link", {})
            and link["name"] not in changed
            and all(each["kind"] == "drop-tail" for each in queues)
            and any(limits[0])
            and not rows["dropped_packets"].sum()
        ):
            fitting.append(link)
    need(bool(fitting))
    link = random.choice(fitting)
    queue = link["forward"]["queue"]
    data = case.copy()
    data["link"][link["name"]]["queue"] = (
        f"{2 * queue['bytes']} B" if queue.get("bytes") else f"{2 * queue['packets'] + 1} packets"
    )
    same(case.recording, ran(data))


@relation(
    "Another rate of an unused direction changes nothing.",
    "A rate affects only the packets sent at it; routes look at delays.",
)
def rate_of_an_idle_direction(case: Case, random: Random) -> None:
    rows = case.recording.table("link_ends").filter(
        (pl.col("sent_packets") == 0) & (pl.col("dropped_packets") == 0) & (pl.col("lost_packets") == 0)
    )
    idle = [
        (name, way)
        for name, way in rows.select("name", "direction").iter_rows()
        if isinstance(case.data.get("link", {}).get(name, {}).get("rate"), str)
    ]
    need(bool(idle))
    name, way = random.choice(idle)
    data = case.copy()
    data["link"][name].setdefault(way, {})["rate"] = f"{random.randint(100, 9000)} kbps"
    same(case.recording, ran(data))


@relation(
    "Static routes over a router's own links to the addresses at their other ends change nothing.",
    "The only path with the fewest links uses that link.",
    weight=3,
)
def routes_as_taken(case: Case, random: Random) -> None:
    need(not {"topology", "controller", "bridging", "route"} & case.data.keys())
    data = case.copy()
    explicit_interfaces(data, case.tables)
    data["route"] = [
        {"node": router, "destination": f"{address}/{address.max_prefixlen}", "interface": interface}
        for link in case.tables.link.values()
        for near, far in (link.ends, reversed(link.ends))
        for router, interface, host, at in [(*split_end(near), *split_end(far))]
        if router in case.tables.router and host in case.tables.host
        for address in case.tables.host[host].interface[str(at)].address or []
    ]
    need(bool(data["route"]))
    same(case.recording, ran(data))


@relation(
    "If both hosts and all links are alike, swapping client and server mirrors all figures.",
    "Nothing depends on which end a host is. Only rows of one instant follow the order of directions.",
    weight=20,
)
def mirrored(case: Case, random: Random) -> None:
    plan = case.plan.data
    need(list(case.data.get("host", ())) == ["client", "server"] and not {"router", "switch"} & case.data.keys())
    need(not draws_on_the_way(plan))
    need(plan["nodes"][0]["stack"] == plan["nodes"][1]["stack"])
    need(all(not host.get("interface") for host in case.data["host"].values()))
    need(all(link["forward"] == link["backward"] and not link.get("middleboxes") for link in plan["links"]))
    need(not any("direction" in event or "interface" in event for event in case.data.get("event", ())))
    need(not any(f"{side}_stack" in each for each in case.data["application"] for side in ("client", "server")))
    data = case.copy()
    for application in data["application"]:
        application |= {"client": "server", "server": "client"}
    ours = {name: _by_time(table) for name, table in case.recording.tables.items()}
    same_tables(ours, {name: _by_time(_mirrored(table)) for name, table in ran(data).tables.items()})


def _by_time(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of one instant in an order of their own: theirs is that of the links' directions."""
    return table.sort(table.columns, maintain_order=True) if "time_ns" in table.columns else table


_OTHER_HOST = {"client": "server", "server": "client"}
_OTHER_WAY = {"forward": "backward", "backward": "forward"}


def _mirrored(table: pl.DataFrame) -> pl.DataFrame:
    """Host and direction of each row exchanged, addresses for those at the link's other end."""
    made = renamed(host=_OTHER_HOST, direction=_OTHER_WAY)(table)
    texts = [name for name in ("source", "destination", "detail") if name in made.columns]
    there = r"\b(10\.0\.\d+\.)1\b", r"\b(10\.0\.\d+\.)2\b"
    for name in texts:
        column = pl.col(name).str.replace_all(there[0], "${1}#").str.replace_all(there[1], "${1}1")
        made = made.with_columns(column.str.replace_all("#", "2", literal=True))
    if "direction" in made.columns:
        order = ["time_ns", "link"] if "time_ns" in made.columns else ["link"]
        made = made.sort(*order, pl.col("direction") == "backward", maintain_order=True)
    if made.columns == ["host", "name", "value"]:
        made = made.sort("host", maintain_order=True)
    return made


@relation(
    "A second network without a link to the first, added behind it, does not change the first.",
    "The two share no link and no host. Random streams of the first keep their places: links by order, "
    "connections by the order of their starts.",
)
def two_networks(case: Case, random: Random) -> None:
    need(not {"topology", "controller", "bridging"} & case.data.keys() and case.lasts)
    # These hash the numbers of flows, which count all that began before.
    need(not any(f'"{kind}"' in case.text for kind in ("drr", "fq-codel", "fq-pie")))
    second = Case(drawn.scenario(random.randrange(10**9)), case.folder())
    try:
        added = readdressed(second.scenario.resolved().to_data(), 100)
    except ScenarioError as error:
        raise Unfit from error
    need(not {"topology", "controller", "bridging"} & second.data.keys())
    explicit_interfaces(added, second.tables)
    relabel(added, lambda name: f"second-{name}")
    data = case.copy()
    for group in ("host", "router", "switch", "link", "medium"):
        if group in added:
            data[group] = {**data.get(group, {}), **added[group]}
    data["route"] = [*data.get("route", []), *added.get("route", [])]
    need(len(data["application"]) == len(case.plan.data["applications"]))
    for application, known in zip(data["application"], case.plan.data["applications"], strict=True):
        application |= {"name": known["name"], "port": known["port"]}
    duration = case.plan.data["duration_ns"]
    latest = max(each["start_ns"] for each in case.plan.data["applications"])
    for application, known in zip(added.get("application", []), second.plan.view["applications"], strict=True):
        start = latest + known["start_ns"]
        if start < duration:
            data["application"].append(application | {"name": f"second-{application['name']}", "start": f"{start} ns"})
    data["event"] = data.get("event", []) + [
        event for event, known in zip(added.get("event", []), second.scenario.event, strict=True) if known.at < duration
    ]
    both = ran(data)
    first = {name: _of_first(table, case) for name, table in both.tables.items()}
    known = case.recording.tables
    same_tables(known, {name: table for name, table in first.items() if name in known or table.height})


def _of_first(table: pl.DataFrame, case: Case) -> pl.DataFrame:
    """The rows about the links, hosts and applications of a case, which stand before all others."""
    links, applications = len(case.plan.view["links"]), len(case.plan.view["applications"])
    connections = case.recording.table("connection_ends").height
    own = {"link": links, "application": applications, "connection": connections}
    for name, count in own.items():
        if name in table.columns:
            table = table.filter(pl.col(name).is_null() | (pl.col(name) < count))
    if "host" in table.columns:
        table = table.filter(~pl.col("host").str.starts_with("second-"))
    return table
