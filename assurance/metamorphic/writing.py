"""The same scenario in other words: settings, units, defaults, and all the ways of a plan."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import polypath
from polypath import Plan, Scenario, ScenarioError, units
from polypath.formats.plan import scenario_of
from polypath.units import Quantity, UnitError

from . import toml
from .case import Case, planned
from .compare import same, same_plans
from .relation import Broken, need, relation, require


def _settable(data: dict[str, Any]) -> Iterator[tuple[list[str], Any]]:
    """Paths of single values, each with another value for it."""
    yield ["seed"], 77
    yield ["duration"], "3100 ms"
    for name, link in data.get("link", {}).items():
        for key, value in link.items():
            if key in ("rate", "delay", "jitter") and isinstance(value, str):
                yield ["link", name, key], "1234 kbps" if key == "rate" else "1234 us"
            if key == "queue" and isinstance(value, dict) and "limit" in value:
                yield ["link", name, key, "limit"], "1000 packets"
    for key, value in (("initial_window", 7), ("ecn", True), ("congestion", "reno"), ("receive_buffer", "100 kB")):
        yield ["defaults", key], value
        for name in data.get("host", {}):
            yield ["host", name, key], value
    for number, application in enumerate(data.get("application", ()), 1):
        yield ["application", str(number), "start"], "1 ms"
        for key, value in (("size", "777 B"), ("rate", "345 kbps"), ("duration", "99 ms"), ("count", 2)):
            if key in application:
                yield ["application", str(number), key], value
    for number, event in enumerate(data.get("event", ()), 1):
        yield ["event", str(number), "at"], "17 ms"
        if "delay" in event:
            yield ["event", str(number), "delay"], "3 ms"


def _put(data: dict[str, Any], path: list[str], value: Any) -> None:
    """Sets a value at a path as a person edits the file."""
    table: Any = data
    for step in path[:-1]:
        table = table[int(step) - 1] if isinstance(table, list) else table.setdefault(step, {})
    table[path[-1]] = value


def _edited(case: Case, paths: list[tuple[list[str], Any]]) -> dict[str, Any]:
    data = case.copy()
    for path, value in paths:
        _put(data, path, value)
    return data


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@relation(
    "`--set KEY=VALUE` equals the scenario with that value in its text.",
    "A setting replaces a value of the text, or a missing one.",
    weight=2,
)
def settings(case: Case, random: Random) -> None:
    chosen = random.sample(list(_settable(case.copy())), 3)
    texts = [f"{'.'.join(path)}={_text(value)}" for path, value in chosen]
    data = _edited(case, chosen)
    made, error = _outcome(lambda: Scenario.from_data(data))
    by_settings, other_error = _outcome(lambda: case.scenario.with_settings(texts))
    if made is None or by_settings is None:
        require(made is by_settings, f"with {texts} one of text and settings is refused: {error or other_error}")
        need(False)
        return
    require(made == by_settings, f"with {texts} the scenarios differ")
    same_plans(made.plan(), by_settings.plan())


def _outcome(make: Any) -> tuple[Scenario | None, str]:
    try:
        return make(), ""
    except ScenarioError as error:
        return None, str(error)


@relation(
    "A point of `[vary]` equals the scenario with its values.",
    "An axis sets the same keys as `--set`.",
    weight=2,
)
def point_of_a_sweep(case: Case, random: Random) -> None:
    (path, value), (other_path, other_value) = random.sample(list(_settable(case.copy())), 2)
    data = case.copy()
    data["vary"] = {".".join(path): [value]}
    if other_path != ["seed"]:
        data["vary"]["named"] = {"one": {".".join(other_path): other_value}, "none": {}}
    made, _ = _outcome(lambda: Scenario.from_data(_edited(case, [(path, value), (other_path, other_value)])))
    single, _ = _outcome(lambda: Scenario.from_data(_edited(case, [(path, value)])))
    need(made is not None and single is not None)
    assert made is not None
    assert single is not None
    swept = Scenario.from_data(data)
    first = swept.axes[0].values[0]
    if other_path == ["seed"]:
        same_plans(single.plan(), swept.at([first]).plan())
        return
    one, none = swept.axes[1].values
    same_plans(made.plan(), swept.at([first, one]).plan())
    same_plans(single.plan(), swept.at([first, none]).plan())
    same_plans(made.plan(), swept.with_settings(["named=one"]).at([first]).plan())


@relation(
    "`[defaults]` written at each host give the same plan.",
    "A host's own setting comes first, then that of `[defaults]`. A host's fixed buffer overrules the "
    "`autotuning` of `[defaults]`, though not its own.",
    weight=2,
)
def defaults_at_hosts(case: Case, random: Random) -> None:
    data = case.copy()
    usual = data.pop("defaults")
    need(bool(usual) and "topology" not in data)
    fixed = any("receive_buffer" in host for host in data["host"].values())
    need(not ("autotuning" in usual and fixed))
    data["host"] = {name: usual | host for name, host in data["host"].items()}
    same_plans(case.plan, planned(data))


@relation(
    "A link's settings written at each direction give the same plan.",
    "A direction's own setting comes first, then the link's.",
)
def settings_of_each_direction(case: Case, random: Random) -> None:
    data = case.copy()
    fitting = [link for link in data.get("link", {}).values() if len(link) > 1]
    need(bool(fitting))
    link = random.choice(fitting)
    whole = ("ends", "middlebox", "forward", "backward", "queue_at")
    common = {key: link.pop(key) for key in list(link) if key not in whole}
    for way in ("forward", "backward"):
        link[way] = common | link.get(way, {})
    same_plans(case.plan, planned(data))


@relation(
    "Quantities in other units give the same plan.",
    "A quantity is a whole number of its base unit in every notation.",
    weight=2,
)
def other_units(case: Case, random: Random) -> None:
    same_plans(case.plan, planned(_respelt(case.copy(), random)))


def _respelt(value: Any, random: Random) -> Any:
    if isinstance(value, dict):
        return {key: each if key in ("name", "gaps_ms") else _respelt(each, random) for key, each in value.items()}
    if isinstance(value, list):
        return [_respelt(each, random) for each in value]
    if isinstance(value, str):
        for quantity in units.QUANTITIES[:-1]:
            try:
                return _in_another_unit(quantity, quantity.parse(value), random)
            except UnitError:
                continue
    return value


def _in_another_unit(quantity: Quantity, number: int, random: Random) -> str:
    """Any exact text of it."""
    found = []
    for unit, size in quantity.units.items():
        amount = Decimal(number) / size
        text = f"{amount:f}"
        if len(text) < 30 and amount * size == number:
            found.append(f"{text}{random.choice(('', ' '))}{unit}")
    return random.choice(found)


@relation(
    "The scenario with all defaults written out gives the same plan, as data and as text. It is also its own "
    "resolved form.",
    "A missing setting has one meaning, which `resolved` writes.",
    weight=2,
)
def resolved(case: Case, random: Random) -> None:
    whole = case.scenario.resolved()
    same_plans(case.plan, whole.plan())
    require(whole.resolved() == whole, "resolved twice is another scenario")
    text = case.scenario.to_toml(resolved=True)
    require(Scenario.parse(text, "resolved.toml") == whole, "its text is another scenario")


@relation(
    "The scenario's text, data and copy equal the scenario.",
    "Written text reads back to the same.",
    weight=2,
)
def written(case: Case, random: Random) -> None:
    own = case.scenario
    require(Scenario.parse(own.to_toml(), "written.toml") == own, "its text is another scenario")
    require(Scenario.from_data(own.to_data()) == own, "its data is another scenario")
    require(pickle.loads(pickle.dumps(own)) == own, "its copy is another scenario")
    require(Scenario.parse(toml.text(own.to_data()), "written.toml") == own, "its data as TOML is another scenario")


#: Why a plan is no scenario's.
_NO_SCENARIO = ("controller is not turned", "bridges are not turned", "page over several connections")


@relation(
    "The scenario of a plan has that plan, and runs as it does.",
    "A plan is a scenario with positions for names. Its missing settings change nothing.",
    weight=2,
)
def imported(case: Case, random: Random) -> None:
    try:
        first = scenario_of(case.plan, "plan.json")
    except ScenarioError as error:
        need(not any(reason in str(error) for reason in _NO_SCENARIO))
        raise Broken(f"the plan is no scenario's: {error}") from error
    plan = first.plan()
    same_plans(plan, scenario_of(plan, "again.json").plan())
    same(case.recording, polypath.run(plan))


@relation(
    "A saved and loaded plan is the same, byte for byte, and so is its Recording.",
    "The plan is an engine's only input.",
)
def saved_plan(case: Case, random: Random) -> None:
    file = case.folder() / "plan.json"
    case.plan.save(file)
    loaded = Plan.load(file)
    require(loaded.sha256() == case.plan.sha256() and loaded.json() == case.plan.json(), "another plan was loaded")
    require(pickle.loads(pickle.dumps(loaded)) == loaded, "its copy is another plan")
    other = polypath.run(loaded)
    require(
        other.metadata.recording_sha256 == case.recording.metadata.recording_sha256,
        "the loaded plan has another Recording",
    )
    require(other.metadata.plan_sha256 == case.plan.sha256(), "the Recording names another plan")


@relation(
    "An application with `count` equals that many applications one after the other.",
    "Each of its connections sends as much, with its own name and port.",
    weight=3,
)
def count_written_out(case: Case, random: Random) -> None:
    several = [number for number, each in enumerate(case.data["application"]) if each["kind"] in ("bulk", "stream")]
    need(bool(several))
    data, other = case.copy(), case.copy()
    number = random.choice(several)
    count = random.choice((2, 3))
    name = case.scenario.application[number].name or f"many{number}"
    for each in (data, other):
        each["application"][number].pop("count", None)
        each["application"][number] |= {"name": name}
    data["application"][number]["count"] = count
    one = other["application"][number]
    first = one.get("port")
    other["application"][number : number + 1] = [
        one | {"name": f"{name}-{place + 1}"} | ({} if first is None else {"port": first + place})
        for place in range(count)
    ]
    same_plans(planned(data), planned(other))


@relation(
    "An application with a count of 0 has no effect.",
    "It is left out.",
)
def count_of_none(case: Case, random: Random) -> None:
    data = case.copy()
    client, server = (getattr(case.tables.application[0], side) for side in ("client", "server"))
    place = random.randint(0, len(data["application"]))
    for application, known in zip(data["application"], case.scenario.application, strict=True):
        need(known.kind != "bulk" or "name" in application)
    data["application"].insert(
        place, {"kind": "bulk", "count": 0, "size": "1 kB", "client": client, "server": server, "name": "nobody"}
    )
    same_plans(case.plan, planned(data))


@relation(
    "An application's `stack` written at both of its ends gives the same plan.",
    "An end's own setting comes first, then the application's `stack`.",
    weight=10,
)
def stack_at_both_ends(case: Case, random: Random) -> None:
    own = [number for number, each in enumerate(case.data["application"]) if "stack" in each]
    need(bool(own))
    data = case.copy()
    application = data["application"][random.choice(own)]
    common = application.pop("stack")
    for side in ("client_stack", "server_stack"):
        application[side] = common | application.get(side, {})
    same_plans(case.plan, planned(data))


@relation(
    "Settings of a table in another order give the same plan.",
    "A table of TOML has no order. Only nodes, links, interfaces and applications have one.",
)
def order_of_keys(case: Case, random: Random) -> None:
    same_plans(case.plan, planned(_reversed(case.copy())))


_ORDERED = ("host", "router", "switch", "link", "medium", "interface")


def _reversed(value: Any, *, ordered: bool = False) -> Any:
    if isinstance(value, list):
        return [_reversed(each) for each in value]
    if not isinstance(value, dict):
        return value
    items = list(value.items()) if ordered else list(reversed(value.items()))
    return {key: _reversed(each, ordered=key in _ORDERED) for key, each in items}


@relation(
    "A trace of deliveries written twice in a row is the same trace.",
    "It starts over at its last time.",
    weight=3,
)
def trace_written_twice(case: Case, random: Random) -> None:
    data = case.copy()
    following = [link for link in data.get("link", {}).values() if isinstance(link.get("rate"), dict)]
    need(bool(following))
    rate = random.choice(following)["rate"]
    rate["gaps_ms"] = f"{rate['gaps_ms']} {rate['gaps_ms']}"
    same(case.recording, polypath.run(planned(data)))


@relation(
    "Changes of a link as rows of a CSV file equal its events.",
    "`conditions` are events, written as a table.",
    weight=3,
)
def conditions_as_events(case: Case, random: Random) -> None:
    touched = {event.get("link") for event in case.data.get("event", ())}
    free = [
        name
        for name, link in case.data.get("link", {}).items()
        if name not in touched and isinstance(link.get("rate"), str) and not {"forward", "backward"} & link.keys()
    ]
    need(bool(free))
    name = random.choice(free)
    duration = case.plan.view["duration_ns"]
    times = sorted(random.sample(range(1, duration), random.randint(1, 4)))
    # A row that repeats what holds changes nothing, so none does.
    rates, delays = (random.sample(range(least, most), len(times)) for least, most in ((300, 9000), (1, 60_000)))
    drawn = list(zip(times, rates, delays, strict=True))
    rows = [f"{Decimal(at).scaleb(-9):f},{rate},{delay}" for at, rate, delay in drawn]
    file = case.folder() / "walk.csv"
    file.write_text("\n".join(["time_s,rate_kbps,delay_us", *rows]) + "\n", encoding="utf-8")
    by_file, by_events = case.copy(), case.copy()
    by_file["link"][name]["conditions"] = {"csv": str(file)}
    own = [
        {"at": f"{at} ns", "link": name, "rate": f"{rate} kbps", "delay": f"{delay} us"} for at, rate, delay in drawn
    ]
    by_events["event"] = [*own, *by_events.get("event", [])]
    same_plans(planned(by_file), planned(by_events))
