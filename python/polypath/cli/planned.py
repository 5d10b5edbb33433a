"""How a plan is shown before its run: hosts, settings, applications, paths, events."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape

from polypath.cli.console import out, table
from polypath.cli.jobs import Job
from polypath.plan.access import settings_of_host, stack
from polypath.plan.routes import Route, is_determined, routes
from polypath.plan.routing import PathOfSubflow
from polypath.results.phrases import counted
from polypath.scenario import describe_topology
from polypath.scenario.vary import SEED, Axis, label
from polypath.units import BY_SUFFIX, RATE, SIZE, TIME, Quantity, format_share

if TYPE_CHECKING:
    from polypath.plan.data import PlanData, Program
    from polypath.plan.types import (
        Application,
        EndpointAction,
        Event,
        FullmeshAction,
        InterfaceAction,
        LinkAction,
        MigrateAction,
        PriorityAction,
        Work,
    )

#: Rows of a table; `--json` has the others.
_MOST_ROWS: Final = 40
_SETTINGS: Final = ("profile", "scheduler", "path_manager", "congestion", "receive_buffer", "send_buffer")


def show(job: Job) -> None:
    """Prints the run, or the first point of a sweep."""
    plan = job.points[0].plan.view
    found = routes(plan)
    out.print(f"[bold]{escape(job.name)}[/bold]")
    out.print(escape(_length(job, plan)))
    for axis in job.scenario.axes:
        if axis.listed:
            out.print()
            _print((axis.name, *axis.paths), list(_drawn(axis)))
    out.print(describe_topology(job.points[0].scenario), markup=False, no_wrap=True, overflow="ignore", crop=False)
    out.print()
    _print(("host", "interface", "address", "link"), list(_interfaces(plan)))
    _print(("settings of", *(name.replace("_", " ") for name in _SETTINGS)), list(_stacks(plan)))
    _print(
        ("application", "transport", "from", "to", "starts", "work"),
        [_application(plan, each) for each in plan["applications"]],
    )
    _print(
        ("program", "host", "transport", "starts", "command"),
        [_program(plan, each) for each in plan.get("programs", ())],
    )
    _print(("path of", "from", "to", "links", "rate", "RTT", ""), [_route(plan, route) for route in found])
    if not is_determined(plan, found):
        out.print("Which of several paths a flow takes is chosen in the run.\n")
    _print(("at", "event"), [_event(plan, event) for event in plan.get("events", ())])


def data(job: Job) -> dict[str, Any]:
    """The same for machines; rates in bit/s, times in s."""
    plan = job.points[0].plan
    found = routes(plan.view)
    return {
        "name": job.name,
        "axes": {axis.name: axis.labels for axis in job.scenario.axes},
        "drawn": {
            axis.name: {value.label: dict(value.settings) for value in axis.values}
            for axis in job.scenario.axes
            if axis.listed
        },
        "points": len(job.points),
        "plan_sha256": plan.sha256(),
        "plan": plan.data,
        "routes_determined": is_determined(plan.view, found),
        "routes": [
            {
                "application": plan.view["applications"][route.application]["name"],
                "source": route.source,
                "destination": route.destination,
                "interface": route.interface,
                "first": route.first,
                "backup": route.backup,
                "links": _links(plan.view, route.there),
                "links_back": _links(plan.view, route.back),
                "rate_bps": route.rate_bps(plan.view),
                "rate_back_bps": route.rate_bps(plan.view, reverse=True),
                "rtt_s": route.rtt_s,
            }
            for route in found
        ],
    }


def _length(job: Job, plan: PlanData) -> str:
    ends = f"seed {plan['seed']}, ends at {TIME.shown(plan['duration_ns'])} at the latest"
    if not job.varies:
        return f"one run: {ends}"
    seeds = job.scenario.adaptive
    most = {} if seeds is None else {SEED: f" to {seeds.most}"}
    axes = ", ".join(f"{axis.name} ({len(axis.values)}{most.get(axis.name, '')})" for axis in job.scenario.axes)
    return f"a sweep of {counted(len(job.points), 'point')} over {axes}; the first one, {job.points[0].title}: {ends}"


def _drawn(axis: Axis) -> Iterator[tuple[str, ...]]:
    for value in axis.values:
        yield value.label, *(label(value.settings.get(path, "")) for path in axis.paths)


def _print(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    shown = table(*headings, numbers=frozenset({"rate", "RTT"}))
    for row in rows[:_MOST_ROWS]:
        shown.add_row(*map(escape, row))
    out.print(shown)
    if len(rows) > _MOST_ROWS:
        out.print(f"and {len(rows) - _MOST_ROWS} more; --json has all")
    out.print()


def _interfaces(plan: PlanData) -> Iterator[tuple[str, ...]]:
    at = {(link[end]["node"], link[end]["interface"]): link["name"] for link in plan["links"] for end in ("a", "b")}
    for number, node in enumerate(plan["nodes"]):
        if node["kind"] == "host":
            for place, one in enumerate(node["interfaces"]):
                name = one["name"] + (" (backup)" if one["backup"] else "")
                yield node["name"], name, ", ".join(one["addresses"]), at.get((number, place), "")


def _stacks(plan: PlanData) -> Iterator[tuple[str, ...]]:
    """The settings of hosts that talk, then those of applications that have their own; equal ones in one row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for program in plan.get("programs", ()):
        node = plan["nodes"][program["host"]]
        names = rows.setdefault(tuple(_setting(settings_of_host(node)[key]) for key in _SETTINGS), [])
        if node["name"] not in names:
            names.append(node["name"])
    for application in plan["applications"]:
        for side in ("client", "server"):
            found = stack(plan, application, side)
            if found is None or application["transport"] in ("udp", "icmp"):
                continue
            own = application.get(f"{side}_stack") is not None
            name = f"{application['name']}, {side}" if own else plan["nodes"][application[side]]["name"]
            names = rows.setdefault(tuple(_setting(found[key]) for key in _SETTINGS), [])
            if name not in names:
                names.append(name)
    for values, names in rows.items():
        yield _several(names), *values


def _several(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _setting(value: Any) -> str:
    match value:
        case None:
            return ""
        case int():
            return SIZE.format(value)
        case [int(least), *_, int(most)]:
            return f"{SIZE.format(least)} to {SIZE.format(most)}"
        case {"name": str(name)}:
            return name
        case _:
            return str(value)


def _application(plan: PlanData, application: Application) -> tuple[str, ...]:
    port = "" if application["transport"] == "icmp" else f":{application['port']}"
    client, server = (plan["nodes"][application[side]]["name"] for side in ("client", "server"))
    return (
        application["name"],
        application["transport"],
        client,
        f"{server}{port}",
        TIME.shown(application["start_ns"]),
        _work(application["work"]),
    )


def _program(plan: PlanData, program: Program) -> tuple[str, ...]:
    return (
        program["name"] + (" (background)" if program["background"] else ""),
        plan["nodes"][program["host"]]["name"],
        program["transport"],
        TIME.shown(program["start_ns"]),
        shlex.join(program["command"]),
    )


def _work(work: Work) -> str:
    """The kind, and its parameters that are set."""
    given = {key: value for key, value in work.items() if value not in (None, 0)}
    return ", ".join([str(work["kind"]), *_parameters(given)])


def _parameters(given: Mapping[str, Any]) -> Iterator[str]:
    """As a scenario writes them, but for objects of a page, which are counted."""
    for key, value in given.items():
        name, _, unit = key.rpartition("_")
        if key == "kind":
            continue
        if value is True:
            yield key
        elif isinstance(value, Mapping):
            own = ", ".join(_parameters(value))
            yield f"{key} {value['kind']}" + (f" ({own})" if own else "")
        elif isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
            yield counted(len(value), key.removesuffix("s"))
        elif unit in BY_SUFFIX:
            yield f"{name or key} {_amount(BY_SUFFIX[unit], value)}".replace("bytes ", "")
        else:
            yield f"{key} {value}"


def _amount(quantity: Quantity, value: int | Sequence[int]) -> str:
    return quantity.shown(value) if isinstance(value, int) else f"[{', '.join(map(quantity.shown, value))}]"


def _route(plan: PlanData, route: Route) -> tuple[str, ...]:
    application = plan["applications"][route.application]
    there, back = _links(plan, route.there), _links(plan, route.back)
    ways = "chosen in the run" if there is None else " → ".join(there)
    if there is not None and back is not None and back != there[::-1]:
        ways += f"; back {' → '.join(back)}"
    notes = [name for name, given in (("first", route.first), ("backup", route.backup)) if given]
    rate = "" if there is None else _rates(route.rate_bps(plan), route.rate_bps(plan, reverse=True))
    rtt = "" if route.rtt_s is None else TIME.shown(round(route.rtt_s * 1e9))
    return application["name"], route.source, route.destination, ways, rate, rtt, ", ".join(notes)


def _rates(there: int | None, back: int | None) -> str:
    if there == back:
        return "any" if there is None else RATE.shown(there)
    return " / ".join("any" if rate is None else RATE.shown(rate) for rate in (there, back))


def _links(plan: PlanData, path: PathOfSubflow | None) -> list[str] | None:
    return None if path is None else [plan["links"][hop.link]["name"] for hop in path.hops]


def _event(plan: PlanData, event: Event) -> tuple[str, str]:
    action = event["action"]
    if action["kind"] == "link":
        what = f"link {plan['links'][action['link']]['name']}"
        if action["direction"] != "both":
            what += f", {action['direction']}"
        changes = list(_of_a_link(action))
    elif action["kind"] == "flush":
        what, changes = f"host {plan['nodes'][action['node']]['name']}", ["endpoints flushed"]
    else:
        node = plan["nodes"][action["node"]]
        names = [interface["name"] for interface in node["interfaces"]]
        what, changes = f"interface {node['name']}:{names[action['interface']]}", [_of_an_interface(action, names)]
    return TIME.shown(event["at_ns"]), f"{what}: {', '.join(changes)}"


def _of_a_link(action: LinkAction) -> Iterator[str]:
    if (rate := action.get("rate_bps")) is not None:
        yield f"rate {RATE.shown(rate)}"
    if (delay := action.get("delay_ns")) is not None:
        yield f"delay {TIME.shown(delay)}"
    if (loss := action.get("loss")) is not None:
        yield f"loss {loss['kind']}" + (f" {format_share(loss['probability'])}" if loss["kind"] == "random" else "")
    if (queue := action.get("queue")) is not None:
        yield f"queue {queue['kind']}" + (f" {format_share(queue['probability'])}" if queue["kind"] == "red" else "")
    if (up := action.get("up")) is not None:
        yield "up" if up else "down"


def _of_an_interface(
    action: InterfaceAction | PriorityAction | FullmeshAction | EndpointAction | MigrateAction, names: Sequence[str]
) -> str:
    match action["kind"]:
        case "interface":
            return "up" if action["up"] else "down"
        case "priority":
            return "backup" if action["backup"] else "no backup"
        case "fullmesh":
            return "fullmesh" if action["fullmesh"] else "no fullmesh"
        case "endpoint":
            return "endpoint" if action["endpoint"] else "no endpoint"
        case "migrate":
            return f"migrates to {names[action['to']]}"
