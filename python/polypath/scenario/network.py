"""The network of a scenario: hosts, routers, switches, links."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from polypath import units
from polypath.scenario.algorithms import Middleboxes
from polypath.scenario.base import Model
from polypath.scenario.conditions import Conditions
from polypath.scenario.declared import OneOf
from polypath.scenario.fields import (
    Addresses,
    Depth,
    Kernel,
    Name,
    OrText,
    Prefix,
    Share,
    Size,
    Time,
    fault,
)
from polypath.scenario.models import Discipline, LossModel
from polypath.scenario.stack import Stack
from polypath.scenario.traces import DeliveryTrace, LinkRate
from polypath.scenario.wifi import Wifi
from polypath.units import UnitError

MS = 1_000_000


class Interface(Model):
    """A network interface. Those that links need and nobody describes are made up: eth0, eth1, in the links' order."""

    address: Addresses | None = None
    """One address or a list of them, IPv4 or IPv6; default: assigned automatically."""
    backup: bool = False
    """Subflows that the host opens from this interface request to be backups (RFC 8684 section 3.3.8)."""


class Host(Stack):
    """An end system with its transport settings."""

    interface: dict[Name, Interface] = Field(default_factory=dict)
    """The host's interfaces by name."""
    kernel: Kernel | None = None
    """The kernel that the host runs on in engine linux, as `polypath kernel list` names it; without it, the one that is
    built. Other engines refuse it."""
    forwards: bool = False
    """Whether it forwards packets of others, like a router or the servers of BCube. Its own packets leave through the
    interface of their source address and never come back through it."""


class Router(Model):
    """A router. It takes a path of fewest hops unless a route says otherwise."""

    interface: dict[Name, Interface] = Field(default_factory=dict)
    """The router's interfaces by name; they need no addresses."""


class Switch(Model):
    """A switch: forwards without delay and has no address."""


def _read_queue(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise fault(f"expected a length with its unit, such as '{value} packets' or '213 kB', not {value}")
    if isinstance(value, bool | list):
        raise fault("expected a length, such as '80 packets' or '213 kB', or a table")
    if not isinstance(value, str):
        return value
    try:
        unit, limit = units.parse_queue_limit(value)
    except UnitError as error:
        raise fault(error.message, error.hint) from error
    quantity = units.PACKETS if unit == "packets" else units.SIZE
    return {"kind": "drop-tail", unit: quantity.format(limit)}


def _write_queue(value: Discipline) -> str | dict[str, Any]:
    written = value.model_dump(mode="json", exclude_none=True)
    if value.kind == "drop-tail" and len(written) == 2:
        return str(written.get("packets") or written.get("bytes"))
    return written


Queue = Annotated[
    Discipline,
    OneOf(Discipline),
    BeforeValidator(_read_queue),
    PlainSerializer(_write_queue, return_type=str | dict[str, Any]),
    OrText(units.QUEUE_PATTERN, "80 packets", "213 kB"),
]
"""A drop-tail queue by its length, or a queue discipline with its parameters."""


def _read_loss(value: object) -> object:
    return value if isinstance(value, dict | Model) else {"kind": "random", "probability": _share_text(value)}


def _share_text(value: object) -> str:
    try:
        return units.format_share(units.parse_share(value))
    except UnitError as error:
        raise fault(error.message, error.hint) from error


def _write_loss(value: LossModel) -> str | dict[str, Any]:
    written = value.model_dump(mode="json")
    return str(written["probability"]) if value.kind == "random" else written


Loss = Annotated[
    LossModel,
    OneOf(LossModel),
    BeforeValidator(_read_loss),
    PlainSerializer(_write_loss, return_type=str | dict[str, Any]),
    OrText(units.SHARE_PATTERN, "1 %", "0.05 %"),
]
"""A share of packets lost at random, or a loss model with its parameters."""


ETHERNET_BYTES: Final = 14
"""What a link takes of a packet besides its IP length, if it does not say otherwise."""
USUAL_MTU: Final = 1500
"""What counts as the longest IP packet of a link that has no `mtu`."""


class Channel(Model):
    """One direction of a link; what is left out is as the link says."""

    rate: LinkRate | None = None
    """Rate on the wire, `overhead` included; or `{ trace = "lte.up" }`, a Mahimahi trace of delivery opportunities of
    1500 bytes; default: packets take no time to send."""
    wifi: Wifi | None = None
    """Wi-Fi instead of a rate: `{ mcs = 7, error = "10 %" }`."""
    conditions: Conditions | None = None
    """Rate, delay and loss over time: `{ csv = "walk.csv", loop = true }`. Other keys of the link apply until a row
    changes them."""
    delay: Time | None = None
    """One-way propagation delay."""
    queue: Queue | None = None
    """Queue before the link: "80 packets", "213 kB", or a discipline; default: 1000 packets (Linux's txqueuelen)."""
    queue_at: Literal["link", "host-netem", "host-tbf"] | None = None
    """Place of the queue: at the "link", behind the sender's interface, or on the sending host's interface, in netem as
    in Mininet ("host-netem") or in tbf ("host-tbf"). On the interface, a full queue is congestion that the host notices
    at once, not a loss. tbf, unlike netem, charges packets to their socket. The socket stops sending while about a
    millisecond's worth or two buffers of its own wait (TCP small queues). Only directions that begin at a host are
    concerned; default: "link"."""
    bypass: Depth | None = None
    """Packets of up to this IP length neither queue nor take time to send, and only have the delay. Some simulators let
    acknowledgements skip the network in this way; no real link does. Default: none."""
    loss: Loss | None = None
    """Fraction of packets lost, or a loss model."""
    jitter: Time | None = None
    """Standard deviation of the delay (normal distribution); packets keep their order."""
    burst: Depth | None = None
    """Depth of the token bucket, at least a packet of `mtu` or 1500 bytes with its `overhead`; default: packets leave
    one after the other at the rate."""
    reorder: Share | None = None
    """Fraction of packets that overtake delayed ones (netem's reorder)."""
    duplicate: Share | None = None
    """Fraction of packets that arrive twice."""
    corrupt: Share | None = None
    """Fraction of packets that arrive with a wrong checksum."""
    overhead: int | None = Field(default=None, ge=0, le=1000)
    """Link-layer bytes of a packet besides its IP length, counted in rate and byte limits. Default: 14 (Ethernet); 0 on
    a link that follows a trace; over Wi-Fi 38 (header, LLC and FCS of a data frame), or 36 in 802.11a."""
    mtu: int | None = Field(default=None, ge=576, le=65535)
    """Longest IP packet in bytes, at least 1280 for IPv6; default: any. A host sends no longer ones on its own link. A
    router drops them and notifies the sender (RFC 1191, RFC 8201)."""
    icmp: bool | None = None
    """Whether a router notifies senders of packets longer than `mtu`; otherwise these are lost silently."""
    up: bool | None = None
    """Whether the link is up when the run starts."""

    @property
    def trace(self) -> DeliveryTrace | None:
        """The trace that it follows in place of a rate."""
        return self.rate if isinstance(self.rate, DeliveryTrace) else None

    def given(self) -> dict[str, Any]:
        """What a direction of a link says, by name, without what it leaves out."""
        return {name: value for name in Channel.model_fields if (value := getattr(self, name)) is not None}


class Link(Channel):
    """A bidirectional link; both directions are alike unless `forward` or `backward` says otherwise."""

    ends: Annotated[
        list[str],
        Field(min_length=2, max_length=2),
        WithJsonSchema(
            {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 2,
                "maxItems": 2,
                "examples": [["client:eth0", "r"], ["r", "server"]],
            }
        ),
    ]
    """The two ends: a host, router or switch, with its interface ("client:eth0") or without ("r")."""
    middlebox: Middleboxes | None = None
    """A middlebox that changes packets, or several in order from the first end. If one end is a host, they are at the
    other end, otherwise at the second."""
    price_per_gb: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)
    """What 10⁹ bytes of IP packets cost, in any currency, both directions together. It changes only results."""
    cap: Size | None = None
    """Bytes of IP packets that a contract includes, both directions together. Results tell how many were beyond it; it
    neither slows the link nor changes the price."""
    forward: Channel = Field(default_factory=Channel.empty)
    """Differences in the direction from the first end to the second."""
    backward: Channel = Field(default_factory=Channel.empty)
    """Differences in the direction from the second end to the first."""


class Route(Model):
    """A static route: packets at `node` that match leave by `interface`."""

    node: str
    """The host or router."""
    source: Prefix | None = None
    """The packets' source; default: any."""
    destination: Prefix
    """The packets' destination."""
    interface: str
    """The interface through which they leave."""
