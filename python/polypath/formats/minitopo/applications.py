"""The traffic of each type of experiment: one function per type, registered in `TRAFFIC`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from polypath.formats.minitopo.experiment import Experiment
from polypath.formats.minitopo.lines import at_least_one, not_negative, positive, switch
from polypath.formats.minitopo.topology import Topology
from polypath.units import nearest

KIB = 1024
PATIENCE_S = 60.0
"""How long a run may go on after its applications should be done."""


@dataclass
class Traffic:
    """Applications, how long the run may take, and settings of single hosts."""

    applications: list[dict[str, Any]]
    duration_s: float
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    head_start_s: Decimal = Decimal(2)
    """netem's clock starts this long before the client does."""


def _transport(experiment: Experiment) -> str:
    return "mptcp" if experiment.line("mptcpEnabled").read(switch, "0 or 1") else "tcp"


def _time(seconds: float) -> str:
    return f"{Decimal(str(seconds)):f} s"


def _nothing(topology: Topology, experiment: Experiment) -> Traffic:
    return Traffic([], 10.0)


def _ping(topology: Topology, experiment: Experiment) -> Traffic:
    """One path after the other, every client address to the server's first."""
    count = experiment.line("pingCount").read(at_least_one, "a number of requests")
    applications = [
        {
            "name": f"ping-{client.id}",
            "kind": "ping",
            "source": f"{topology.left_subnet}{client.id}.1",
            "destination": f"{topology.right_subnet}0.1",
            "count": count,
        }
        for client in topology.side("c2r")
    ]
    for index, application in enumerate(applications):
        application["start"] = f"{index * count} s"
    return Traffic(applications, len(applications) * count + PATIENCE_S, head_start_s=Decimal(0))


def _iperf(topology: Topology, experiment: Experiment) -> Traffic:
    seconds = experiment.line("iperfTime").read(positive, "a time in seconds")
    parallel = experiment.line("iperfParallel").read(at_least_one, "a number of connections")
    names = ["iperf"] if parallel == 1 else [f"iperf-{number + 1}" for number in range(parallel)]
    transport = _transport(experiment)
    applications = [
        {"name": name, "kind": "bulk", "transport": transport, "duration": _time(seconds)} for name in names
    ]
    return Traffic(applications, seconds + PATIENCE_S)


def _iperf_scenario(topology: Topology, experiment: Experiment) -> Traffic:
    """MPTCP for 50 s; from 10 s and from 20 s, TCP with reno for 20 s on the first and on the second bottleneck."""
    line = experiment.line("xpType")
    if topology.topo_type != "MultiIfMultiClient" or len(topology.side("c2r")) < 2:
        raise line.error("xpType 'iperfScenario' needs topoType:MultiIfMultiClient with two paths c2r or more")
    subflows = experiment.line("iperfScenarioFMSublows").read(at_least_one, "a number of subflows")
    applications: list[dict[str, Any]] = [
        {"name": "iperf", "kind": "bulk", "transport": _transport(experiment), "duration": "50 s"},
    ]
    applications += [
        {
            "name": f"tcp_{number}",
            "kind": "bulk",
            "client": f"client_{number}",
            "server": f"server_{number}",
            "transport": "tcp",
            "start": f"{10 * number} s",
            "duration": "20 s",
            "stack": {"congestion": "reno"},
        }
        for number in (1, 2)
    ]
    manager = experiment.line("kpmc" if "kpmc" in experiment.lines else "kpm").value
    hosts: dict[str, dict[str, Any]] = {}
    if manager == "fullmesh":
        hosts["client"] = {"path_manager": {"kind": manager, "num_subflows": subflows}}
    return Traffic(applications, 50.0 + PATIENCE_S, hosts)


def _fetch(topology: Topology, experiment: Experiment) -> Traffic:
    kilobytes = experiment.line("file_size").read(at_least_one, "a size in kB")
    application = {
        "name": experiment.xp_type,
        "kind": "fetch",
        "transport": _transport(experiment),
        "size": f"{kilobytes * KIB} B",
    }
    return Traffic([application], _patience_s(topology, kilobytes * KIB))


def _send_file(topology: Topology, experiment: Experiment) -> Traffic:
    return replace(_fetch(topology, experiment), head_start_s=Decimal("0.1"))


def _secure_fetch(topology: Topology, experiment: Experiment) -> Traffic:
    """minitopo fetches with wget, which in systems of its time uses GnuTLS 3.5: TLS 1.2."""
    traffic = _fetch(topology, experiment)
    for application in traffic.applications:
        application["tls"] = "1.2"
    return traffic


def _msg(topology: Topology, experiment: Experiment) -> Traffic:
    """The client sends msgBytes and the server answers with as many; both switch Nagle's algorithm off."""
    sleep = experiment.line("msgClientSleep").read(not_negative, "a time in seconds")
    think = experiment.line("msgServerSleep").read(not_negative, "a time in seconds")
    requests = experiment.line("msgNbRequests").read(at_least_one, "a number of requests")
    size = experiment.line("msgBytes").read(at_least_one, "a size in bytes")
    application = {
        "name": "msg",
        "kind": "request-response",
        "transport": _transport(experiment),
        "count": requests,
        "interval": _time(sleep),
        "think": _time(think),
        "request": f"{size} B",
        "response": f"{size} B",
        "stack": {"nagle": False},
    }
    return Traffic([application], requests * (sleep + think + 1) + PATIENCE_S)


_MULTIPATH_PLUGINS: dict[str, tuple[str, bool]] = {
    "multipath_rtt_cond.plugin": ("default", False),
    "multipath_rtt_cond_asym.plugin": ("default", True),
    "multipath_rr_cond.plugin": ("roundrobin", False),
}
"""PQUIC's plugins by file name: their scheduler, and whether the last addresses are used instead of the first."""
UNIFLOWS = 2
"""Paths on which a host with one of these plugins sends."""


def _pquic(topology: Topology, experiment: Experiment) -> Traffic:
    """PQUIC: NewReno, and a scheduler that is asked for every packet, acknowledgements included."""
    size = experiment.line("pquicSize").read(at_least_one, "a size in bytes")
    application: dict[str, Any] = {
        "name": "pquic",
        "kind": "fetch",
        "transport": "quic",
        "size": f"{size} B",
        "stack": {"congestion": "reno"},
    }
    for side in ("client", "server"):
        own = f"pquic{side.title()}Plugins"
        stack = _plugins(topology, experiment, own if own in experiment.lines else "pquicPlugins")
        if stack is not None:
            application |= {"transport": "mpquic", f"{side}_stack": stack}
    return Traffic([application], _patience_s(topology, size))


def _plugins(topology: Topology, experiment: Experiment, key: str) -> dict[str, Any] | None:
    """What the plugins make of a host; None without any that is about several paths."""
    line, paths = experiment.line(key), len(topology.side("c2r"))
    stack: dict[str, Any] | None = None
    for plugin in filter(None, (one.strip() for one in line.value.split(","))):
        name = plugin.rsplit("/", 1)[-1]
        if name not in _MULTIPATH_PLUGINS:
            known = ", ".join(_MULTIPATH_PLUGINS)
            hint = nearest(name, _MULTIPATH_PLUGINS)
            message = f"{line.key}: unknown plugin '{name}'"
            raise line.error(message if hint else f"{message}; there is {known}", hint)
        scheduler, last = _MULTIPATH_PLUGINS[name]
        first = max(paths - UNIFLOWS, 0) if last else 0
        stack = {"scheduler": scheduler, "ack_path": "scheduler"}
        if paths > UNIFLOWS:
            stack["send_paths"] = list(range(first, first + UNIFLOWS))
    return stack


def _quic(topology: Topology, experiment: Experiment) -> Traffic:
    """The Multipath QUIC of quic-go (De Coninck and Bonaventure, CoNEXT 2017): CUBIC on one path, OLIA on several."""
    kilobytes = experiment.line("file_size").read(at_least_one, "a size in kB")
    multipath = experiment.line("quicMultipath").read(switch, "0 or 1")
    application: dict[str, Any] = {
        "name": "quic",
        "kind": "fetch",
        "transport": "mpquic" if multipath else "quic",
        "size": f"{kilobytes * KIB} B",
        "stack": {"congestion": "olia" if multipath else "cubic", "scheduler": "default"},
    }
    return Traffic([application], _patience_s(topology, kilobytes * KIB))


def _patience_s(topology: Topology, size: int) -> float:
    """How long a fetch may take at a tenth of the slowest link's rate, and more."""
    slowest = min(link.bw_mbps for link in topology.links)
    return round(10 * size * 8 / (slowest * 1e6) + PATIENCE_S, 9)


TRAFFIC: dict[str, Callable[[Topology, Experiment], Traffic]] = {
    "none": _nothing,
    "ping": _ping,
    "iperf": _iperf,
    "iperfScenario": _iperf_scenario,
    "http": _fetch,
    "https": _secure_fetch,
    "sendfile": _send_file,
    "msg": _msg,
    "quic": _quic,
    "pquic": _pquic,
}
"""The experiments that run here; `experiment.TYPE_DEFAULTS` has their keys."""
