"""A random plan, reduced to what the simulator and the kernel both have, so that both run the same one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from polypath.engines.linux.engine import translate
from polypath.engines.namespaces.algorithms import CONGESTION, SCHEDULERS
from polypath.engines.namespaces.kernel import Kernel
from polypath.scenario import Plan, Scenario

#: An algorithm in place of one that the kernel has not, or not with these parameters.
USUAL = {"scheduler": "linux", "congestion": "cubic", "path_manager": "fullmesh"}
KNOWN = {"scheduler": SCHEDULERS, "congestion": CONGESTION, "path_manager": {"fullmesh", "default"}}
#: What a host draws that every kernel can be told.
DRAWN = (
    "receive_buffer",
    "send_buffer",
    "mtu",
    "initial_window",
    "sack",
    "timestamps",
    "ecn",
    "checksum",
    "nagle",
    "cork",
)
#: In bytes, of the kernel's applications.
LEAST_DATAGRAM = 8
#: No guest waits longer for transfers.
LONGEST_NS = 600 * 10**9

TWO_HOSTS = """
duration = "1 s"
[defaults]
profile = "linux"
[host.client]
[host.server]
[link.path]
ends = ["client", "server"]
"""


def _stack(drawn: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    """The profile `linux` with what was drawn of buffers, options and algorithms."""
    stack = copy.deepcopy(usual) | {name: drawn[name] for name in DRAWN}
    stack["receive_buffer"] = [max(each, Kernel.least_receive_buffer) for each in drawn["receive_buffer"]]
    for kind, known in KNOWN.items():
        name = drawn[kind]["name"]
        stack[kind] = {"name": name if name in known else USUAL[kind], "parameters": {}}
    return stack


def _loss(loss: dict[str, Any]) -> dict[str, Any]:
    """The loss model; what the kernel does not have is replaced by its mean."""
    if loss["kind"] == "periodic":
        return {"kind": "random", "probability": 1 / loss["every"]}
    if loss["kind"] != "timed-gilbert-elliott":
        return loss
    good, bad = loss["good_time_ns"], loss["bad_time_ns"]
    mean = (good * loss["good_loss"] + bad * loss["bad_loss"]) / (good + bad)
    return {"kind": "random", "probability": mean} if mean else {"kind": "none"}


def _queue(queue: dict[str, Any]) -> dict[str, Any]:
    if queue["kind"] == "red":
        return {"kind": "drop-tail", "packets": queue.get("limit") or 100, "bytes": None}
    if queue["kind"] == "drop-tail" and queue["packets"] and queue["bytes"]:
        return queue | {"bytes": None}
    return queue


def _directions(link: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield link["forward"]
    yield link["backward"]


def reduced(plan: Plan) -> Plan:
    """The plan without middleboxes, other stacks and links that netem is not.

    Raises EngineError where that is not enough.
    """
    data = copy.deepcopy(plan.data)
    two_hosts = Scenario.parse(TWO_HOSTS, "two hosts").plan().data
    usual = two_hosts["nodes"][0]["stack"]
    data["routing"] = two_hosts["routing"]
    data["duration_ns"] = min(data["duration_ns"], LONGEST_NS)
    data["record"]["decisions"] = False
    for node in data["nodes"]:
        if node["stack"]:
            node["stack"] = _stack(node["stack"], usual)
    for link in data["links"]:
        link.pop("middleboxes", None)
        for direction in _directions(link):
            direction |= {"loss": _loss(direction["loss"]), "queue": _queue(direction["queue"]), "mtu": None}
    for application in data["applications"]:
        application |= {"client_stack": None, "server_stack": None}
        if "packet_bytes" in application["work"]:
            application["work"]["packet_bytes"] = max(application["work"]["packet_bytes"], LEAST_DATAGRAM)
    for event in data["events"]:
        if (loss := event["action"].get("loss")) is not None:
            event["action"]["loss"] = _loss(loss)
        if (queue := event["action"].get("queue")) is not None:
            event["action"]["queue"] = _queue(queue)
    made = Plan(data)
    translate(made.data)
    return made


def lossless(plan: Plan) -> bool:
    """Whether packets are lost by queues alone, and nothing changes that is not the plan's end."""
    directions = [direction for link in plan.data["links"] for direction in _directions(link)]
    troubles = ("reorder", "duplicate", "corrupt", "jitter_ns")
    quiet = all(each["loss"]["kind"] == "none" and not any(each[name] for name in troubles) for each in directions)
    return quiet and all(each["up"] for each in directions)
