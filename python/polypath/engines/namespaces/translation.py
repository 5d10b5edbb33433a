"""Conversion of a Plan to the files of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from polypath.engines.base import Captures, EngineError
from polypath.engines.namespaces.job import Job
from polypath.engines.namespaces.kernel import Kernel
from polypath.engines.namespaces.setup import Setup
from polypath.engines.namespaces.topology import Network
from polypath.engines.namespaces.wires import Wires
from polypath.scenario.traffic import QUIC

if TYPE_CHECKING:
    from polypath.plan.data import PlanData


def translate(
    data: PlanData, captures: Captures, wires: Callable[[Network], Wires], kernel: Kernel
) -> tuple[Job, dict[str, str]]:
    """The job and all files of a run's folder. Raises EngineError for a plan beyond the engine's means."""
    if data["version"] != 1:
        raise EngineError(f"this engine reads plans of version 1, not {data['version']}")
    _check_transports(data)
    _check_relays(data)
    _check_middleboxes(data)
    _check_wifi(data)
    _check_record(data)
    _check_controller(data)
    _check_ports(data)
    network = Network(data)
    laid = wires(network)
    setup = Setup(network, laid, kernel)
    job = Job(network, laid, setup, kernel, captures)
    return job, setup.files | job.files | laid.files()


def _check_transports(data: PlanData) -> None:
    for application in data["applications"]:
        if application["transport"] in QUIC:
            raise EngineError(
                f"application '{application['name']}' uses QUIC, which Linux does not have; --engine sim has it"
            )


def _check_relays(data: PlanData) -> None:
    for application in data["applications"]:
        if application["work"]["kind"] == "relay":
            raise EngineError(f"application '{application['name']}' is a proxy's relay; --engine sim has it")
        if application["work"]["kind"] == "tunnel":
            raise EngineError(f"application '{application['name']}' is a tunnel; --engine sim has it")


def _check_middleboxes(data: PlanData) -> None:
    for link in data["links"]:
        for middlebox in link.get("middleboxes", ()):
            raise EngineError(
                f"link {link['name']} has a middlebox, {middlebox['name']}: the kernel's links have none"
                " (engine sim has)"
            )


def _check_wifi(data: PlanData) -> None:
    for link in data["links"]:
        if "wifi" in link["forward"] or "wifi" in link["backward"]:
            raise EngineError(
                f"link {link['name']} is Wi-Fi, which the kernel's links are not (engine sim has it); 'conditions' of a"
                " CSV file give a rate, delay and loss over time"
            )


def _check_record(data: PlanData) -> None:
    if data["record"]["decisions"]:
        raise EngineError("Linux does not tell what its schedulers decide: [record] decisions is for engine sim")


def _check_controller(data: PlanData) -> None:
    if data.get("controller") is not None:
        raise EngineError("Linux's routers have no flow tables that a controller could fill (engine sim has)")
    if data.get("bridging") is not None:
        raise EngineError("this engine's switches are routers of the kernel, no bridges (engine sim has bridges)")


def _check_ports(data: PlanData) -> None:
    listeners = set()
    for application in data["applications"]:
        key = (application["server"], application["port"], application["transport"])
        if key in listeners and application["transport"] != "icmp":
            raise EngineError(
                f"two applications share port {application['port']} of a server; on Linux they need two ports"
            )
        listeners.add(key)
