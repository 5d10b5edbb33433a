"""Conversion of minitopo's two files to a scenario."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from polypath import registry
from polypath.formats.minitopo.applications import TRAFFIC, Traffic
from polypath.formats.minitopo.experiment import BROKEN, NOT_YET, RANDOM, TYPE_DEFAULTS, Experiment
from polypath.formats.minitopo.lines import count, switch
from polypath.formats.minitopo.netem import link_change
from polypath.formats.minitopo.topology import Link, Topology
from polypath.scenario import Scenario
from polypath.scenario.errors import ScenarioError
from polypath.units import nearest

BURST_BYTES = 15000

_SILENT = {
    "autocork": "corking by itself is not modelled",
    "earlyRetrans": "RACK-TLP takes the place of early retransmit",
    "expiration": "no scheduler here reads it",
    "metric": "no scheduler here reads it",
    "upmc": "user-space path managers are not there yet",
    "upms": "user-space path managers are not there yet",
    "upmc_args": "user-space path managers are not there yet",
    "upms_args": "user-space path managers are not there yet",
    "clientPcap": "captures are asked for with --pcap",
    "serverPcap": "captures are asked for with --pcap",
    "snaplen_pcap": "captures hold whole packets",
    "priority_path_0": "no scheduler here reads link priorities",
    "priority_path_1": "no scheduler here reads link priorities",
}
"""Keys without effect, and why."""


def convert(topology: Topology, experiment: Experiment) -> tuple[Scenario, list[str]]:
    """The scenario, and warnings, one line each; raises ScenarioError."""
    refuse(experiment)
    warnings = topology.warnings + experiment.warnings
    for reason in dict.fromkeys(_SILENT.values()):
        keys = [experiment.lines[key].key for key, why in _SILENT.items() if why == reason and key in experiment.lines]
        if keys:
            warnings.append(f"{', '.join(keys)} {'has' if len(keys) == 1 else 'have'} no effect: {reason}")
    if "pingCount" in experiment.lines and experiment.xp_type != "ping":
        warnings.append("pingCount has no effect: paths need no warming up before the experiment")
    if "file" in TYPE_DEFAULTS[experiment.xp_type] and experiment.values["file"] != RANDOM:
        warnings.append("file has no effect: the length of that file is not known; file_size is fetched")
    data = _network(topology, experiment)
    traffic = TRAFFIC[experiment.xp_type](topology, experiment)
    events, ignored = _events(topology, traffic)
    data |= {
        "name": _name(topology.file, experiment.file),
        "duration": _seconds(traffic.duration_s),
        "defaults": _stack(experiment),
        "application": traffic.applications,
        "event": events,
    }
    for host, stack in {**_path_managers(experiment), **traffic.hosts}.items():
        data["host"][host] |= stack
    try:
        return Scenario.from_data(data), warnings + ignored
    except ScenarioError as error:
        for one in error.errors:
            one.file = one.file or experiment.file
        raise


def refuse(experiment: Experiment) -> None:
    """Raises ScenarioError for an experiment that does not run here, by its name."""
    kind, line = experiment.xp_type, experiment.line("xpType")
    if kind in TYPE_DEFAULTS:
        return
    if kind.lower() in NOT_YET:
        raise line.error(f"xpType '{kind}' is not there yet")
    if kind.lower() in BROKEN:
        raise line.error(f"xpType '{kind}' does not run in minitopo itself")
    raise line.error(f"unknown xpType '{kind}'", nearest(kind, [*TYPE_DEFAULTS, *NOT_YET, *BROKEN]))


def _name(topo: str, xp: str) -> str:
    parts = [re.sub(r"[^A-Za-z0-9_-]+", "-", Path(file).stem) for file in (topo, xp)]
    return "-".join(part for part in parts if part)[:63].lstrip("-") or "minitopo"


def _seconds(seconds: float | Decimal) -> str:
    text = f"{Decimal(str(seconds)):f}"
    return f"{text} s"


def _ms(milliseconds: float) -> str:
    return f"{Decimal(str(milliseconds)):f} ms"


def _stack(experiment: Experiment) -> dict[str, Any]:
    return {
        "profile": "mptcp.org",
        "scheduler": _algorithm(experiment, "sched", "scheduler"),
        "congestion": _algorithm(experiment, "congctrl", "congestion"),
        "path_manager": _algorithm(experiment, "kpm", "path-manager"),
        "receive_buffer": _buffer(experiment, "rmem"),
        "send_buffer": _buffer(experiment, "wmem"),
        "autotuning": experiment.line("bufferAutotuning").read(switch, "0 or 1"),
    }


def _path_managers(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """The managers of the two sides, where they are set apart."""
    sides = {"client": "kpmc", "server": "kpms"}
    return {
        host: {"path_manager": _algorithm(experiment, key, "path-manager")}
        for host, key in sides.items()
        if key in experiment.lines
    }


def _algorithm(experiment: Experiment, key: str, kind: registry.Kind) -> str:
    line = experiment.line(key)
    try:
        return registry.find(kind, line.value).name
    except registry.RegistryError as error:
        raise line.error(f"{key}: {error.message}", error.hint) from error


def _buffer(experiment: Experiment, key: str) -> list[str]:
    line = experiment.line(key)
    sizes = [line.read(count, "three sizes in bytes", word) for word in line.value.split()]
    if len(sizes) != 3 or sizes != sorted(sizes) or sizes[0] == 0:
        raise line.error(f"{key}: {line.value!r} is not minimum, default and maximum in bytes")
    return [f"{size} B" for size in sizes]


def _network(topology: Topology, experiment: Experiment) -> dict[str, Any]:
    left, right = topology.side("c2r"), topology.side("r2s")
    shared = topology.topo_type == "MultiIfMultiClient"
    hosts: dict[str, Any] = {"client": {"interface": {}}, "server": {"interface": {}}}
    router: dict[str, Any] = {}
    switches: dict[str, Any] = {}
    links: dict[str, Any] = {}
    for link in left:
        subnet = f"{topology.left_subnet}{link.id}"
        port = f"c{link.id}"
        hosts["client"]["interface"][f"eth{link.id}"] = {
            "address": f"{subnet}.1",
            "backup": bool(link.backup) or _backup(experiment, link.id),
        }
        router[port] = {"address": f"{subnet}.2"}
        name = f"path_c2r_{link.id}"
        if shared:
            extra, segment = f"client_{link.id + 1}", f"switch_{link.id}"
            switches[segment] = {}
            hosts[extra] = {"interface": {"eth0": {"address": f"{subnet}.10"}}}
            links[f"access_{link.id}"] = {"ends": [f"client:eth{link.id}", segment]}
            links[f"access_{extra}"] = {"ends": [f"{extra}:eth0", segment]}
            links[name] = {"ends": [segment, f"r:{port}"], **_shape(link)}
        else:
            links[name] = {"ends": [f"client:eth{link.id}", f"r:{port}"], **_shape(link)}
    servers = [(f"eth{link.id}", link.id, f"path_r2s_{link.id}", _shape(link)) for link in right]
    for interface, number, name, shape in servers or [("eth0", 0, "path_server", {})]:
        _attach(topology, hosts["server"], router, links, ("server", interface, number, name), shape)
    for index in range(len(left) if shared else 0):
        extra = f"server_{index + 1}"
        hosts[extra] = {"interface": {}}
        number = max(len(right), 1) + index
        _attach(topology, hosts[extra], router, links, (extra, "eth0", number, f"path_{extra}"), {})
    return {"host": hosts, "router": {"r": {"interface": router}}, "switch": switches, "link": links}


def _attach(
    topology: Topology,
    host: dict[str, Any],
    router: dict[str, Any],
    links: dict[str, Any],
    place: tuple[str, str, int, str],
    shape: dict[str, Any],
) -> None:
    name, interface, number, link = place
    host["interface"][interface] = {"address": f"{topology.right_subnet}{number}.1"}
    router[f"s{number}"] = {"address": f"{topology.right_subnet}{number}.2"}
    links[link] = {"ends": [f"r:s{number}", f"{name}:{interface}"], **shape}


def _backup(experiment: Experiment, interface: int) -> bool:
    key = f"backup_path_{interface}"
    return key in experiment.values and experiment.line(key).read(count, "0 or 1") > 0


def _shape(link: Link) -> dict[str, Any]:
    shape = {
        "rate": f"{Decimal(str(link.bw_mbps)):f} Mbps",
        "delay": _ms(link.delay_ms),
        "queue": f"{int(link.tbf_limit_bytes)} B",
        "burst": f"{BURST_BYTES} B",
    }
    return shape | ({"loss": f"{Decimal(str(link.loss_pct)):f} %"} if link.loss_pct else {})


def _events(topology: Topology, traffic: Traffic) -> tuple[list[dict[str, Any]], list[str]]:
    events, ignored = [], []
    for link in topology.links:
        for change in link.netem_at:
            at = max(Decimal(str(change.at)) - traffic.head_start_s, Decimal(0))
            if at >= Decimal(str(traffic.duration_s)):
                ignored.append(f"{change.line.key} at {change.at:g} has no effect: the experiment is over by then")
                continue
            values, without_effect = link_change(change)
            events.append({"at": _seconds(at), "link": f"path_{link.type}_{link.id}", **values})
            ignored += without_effect
    return events, ignored
