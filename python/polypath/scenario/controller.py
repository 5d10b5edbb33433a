"""The controller of a scenario: what rules its routers and switches."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, WithJsonSchema, model_validator

from polypath.registry import RegistryError
from polypath.scenario import script
from polypath.scenario.algorithms import Algorithm, Routing, resolved
from polypath.scenario.base import Model
from polypath.scenario.fields import Rate, Time, fault

IDLE_TIMEOUT = 10_000_000_000
"""RipL-POX's IDLE_TIMEOUT."""


def _readable(name: str) -> str:
    if not name.endswith(".py"):
        raise fault(f"{name!r} is no Python file, such as 'my_app.py'")
    try:
        script.app(name)
    except RegistryError as error:
        raise fault(error.message, error.hint) from error
    return name


class Controller(Model):
    """A controller of all routers and switches, which then forward by flow tables as OpenFlow has them."""

    routing: Routing | None = None
    """Which path a flow takes; left out: "hashed"."""
    app: Annotated[str, AfterValidator(_readable), WithJsonSchema({"type": "string", "pattern": r"\.py$"})] | None = (
        None
    )
    """In place of a routing: an os-ken application, "my_app.py", beside the scenario. It speaks OpenFlow 1.3 with the
    switches over the control links, and its time is the simulated one."""
    mode: Literal["proactive", "reactive", "hybrid"] = "reactive"
    """When the tables are filled: before the run ("proactive"), by each flow's first packet, which goes to the
    controller ("reactive"), or so at the switches that hosts are at and beforehand at the others ("hybrid")."""
    rate: Rate | None = None
    """Rate of each switch's link to the controller; left out: messages take no time to send."""
    delay: Time = 0
    """One-way delay of each such link."""
    processing: Time = 0
    """How long the controller works on a message; it does one after the other."""
    idle_timeout: Time | None = None
    """How long an entry for a flow stays without a packet; "0 s": for good. Left out: "10 s" in mode reactive, for
    good in mode hybrid."""

    @property
    def rule(self) -> Algorithm:
        """The routing, given or not."""
        return self.routing or Algorithm(name="hashed")

    @model_validator(mode="after")
    def _app_alone(self) -> Controller:
        if self.app is not None:
            for name in ("routing", "mode", "idle_timeout"):
                if name in self.model_fields_set:
                    raise fault(f"the application decides itself: with 'app' there is no '{name}'", None, (name,))
        return self

    def plan(self) -> dict[str, Any]:
        """What a plan says of it."""
        if self.app is not None:
            links = {"rate_bps": self.rate, "delay_ns": self.delay, "processing_ns": self.processing}
            return {"app": script.app(self.app), **links}
        default = IDLE_TIMEOUT if self.mode == "reactive" else 0
        idle = default if self.idle_timeout is None else self.idle_timeout
        return {
            "routing": resolved("controller", self.rule),
            "mode": self.mode,
            "rate_bps": self.rate,
            "delay_ns": self.delay,
            "processing_ns": self.processing,
            "idle_timeout_ns": idle or None,
        }
