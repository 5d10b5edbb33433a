"""The controller of a scenario, which controls its routers and switches."""

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
    """The path of a flow; default: "hashed"."""
    app: Annotated[str, AfterValidator(_readable), WithJsonSchema({"type": "string", "pattern": r"\.py$"})] | None = (
        None
    )
    """Replaces a routing: an os-ken application, "my_app.py", beside the scenario. It speaks OpenFlow 1.3 with the
    switches over the control links, in simulated time."""
    mode: Literal["proactive", "reactive", "hybrid"] = "reactive"
    """When the tables are filled. "proactive": before the run. "reactive": by each flow's first packet, which goes to
    the controller. "hybrid": reactive at switches with hosts, proactive at the others."""
    rate: Rate | None = None
    """Rate of each switch's link to the controller; default: messages take no time to send."""
    delay: Time = 0
    """One-way delay of each such link."""
    processing: Time = 0
    """The controller's time per message; it handles one at a time."""
    idle_timeout: Time | None = None
    """Lifetime of a flow's entry without packets; "0 s": for ever. Default: "10 s" in mode reactive, for ever in mode
    hybrid."""

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
