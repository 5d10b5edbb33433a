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
    Name,
    OrText,
    Prefix,
    Share,
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
    """One address or a list of them, IPv4 or IPv6; made up when left out."""
    backup: bool = False
    """Subflows that the host opens from this interface ask to be backups (RFC 8684 section 3.3.8)."""


class Host(Stack):
    """An end system with its transport settings."""

    interface: dict[Name, Interface] = Field(default_factory=dict)
    """The host's interfaces by name."""
    forwards: bool = False
    """Whether it forwards packets for others, as a router does and the servers of BCube. Its own packets leave by the
    interface that has their source address and never come back through it."""


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
    """Rate on the wire, `overhead` included; or `{ trace = "lte.up" }`, a trace of delivery opportunities of 1500 bytes
    as Mahimahi has them; left out: packets take no time to send."""
    wifi: Wifi | None = None
    """Wi-Fi in place of a rate: `{ mcs = 7, error = "10 %" }`."""
    conditions: Conditions | None = None
    """Rate, delay and loss over time: `{ csv = "walk.csv", loop = true }`. What is given beside it holds until a row
    says otherwise."""
    delay: Time | None = None
    """One-way propagation delay."""
    queue: Queue | None = None
    """Queue before the link: "80 packets", "213 kB", or a discipline; left out: 1000 packets (Linux's txqueuelen)."""
    queue_at: Literal["link", "host-netem", "host-tbf"] | None = None
    """Where the queue is: at the "link", behind the sender's interface, or on the interface of the host that sends, in
    netem as in Mininet ("host-netem") or in tbf ("host-tbf"). There a full queue is not a loss but congestion that the
    host hears of at once. tbf, unlike netem, leaves packets on their socket's account, which sends no more while about
    a millisecond's worth or two buffers of its own wait (TCP small queues). Of a link's two directions it concerns
    those that begin at a host; left out: "link"."""
    bypass: Depth | None = None
    """Packets of up to this IP length neither wait nor take time to send: they cross beside all others, with the delay
    alone. So simulators have it whose acknowledgements skip the network; no real link does. Left out: none do."""
    loss: Loss | None = None
    """Share of packets lost, or a loss model."""
    jitter: Time | None = None
    """Standard deviation of the delay (normal distribution); packets keep their order."""
    burst: Depth | None = None
    """Depth of the token bucket, at least a packet of `mtu` or 1500 bytes with its `overhead`; left out: packets leave
    one after the other at the rate."""
    reorder: Share | None = None
    """Share of packets that overtake those delayed (netem's reorder)."""
    duplicate: Share | None = None
    """Share of packets that arrive twice."""
    corrupt: Share | None = None
    """Share of packets that arrive with a wrong checksum."""
    overhead: int | None = Field(default=None, ge=0, le=1000)
    """Link-layer bytes of a packet besides its IP length, counted in rate and byte limits; left out: 14 (Ethernet),
    on a link that follows a trace 0, over Wi-Fi 38 (header, LLC and FCS of a data frame; 36 in 802.11a)."""
    mtu: int | None = Field(default=None, ge=576, le=65535)
    """Longest IP packet in bytes. A host sends no longer ones on its own link; a router drops them and tells the sender
    (RFC 1191, RFC 8201); at least 1280 for IPv6; left out: any."""
    icmp: bool | None = None
    """Whether a router tells senders of packets longer than `mtu`; if not, they vanish."""
    up: bool | None = None
    """Whether the link carries anything when the run starts."""

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
    """What changes packets on the way: a middlebox, or several in order from the first end; where one end is a host,
    they stand at the other, else at the second."""
    forward: Channel = Field(default_factory=Channel.empty)
    """What differs from the first end to the second."""
    backward: Channel = Field(default_factory=Channel.empty)
    """What differs from the second end to the first."""


class Route(Model):
    """A static route: packets at `node` that match leave by `interface`."""

    node: str
    """The host or router."""
    source: Prefix | None = None
    """The packets' source; left out: any."""
    destination: Prefix
    """The packets' destination."""
    interface: str
    """The interface that they leave by."""
