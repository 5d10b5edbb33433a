"""A host's transport settings, and the profiles that set them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, create_model

from polypath import registry, units
from polypath.scenario import declared
from polypath.scenario.algorithms import Algorithm, Congestion, PathManager, Scheduler
from polypath.scenario.base import Model
from polypath.scenario.fields import Buffer, Period, fault, is_fixed
from polypath.scenario.frequency import OFF, Frequency

SECOND = units.SECOND

DEFAULT_PROFILE = "rfc"

OURS = "polypath"
NOQ = "noq"
PICOQUIC = "picoquic"
AIOQUIC = "aioquic"
"""Stacks of others that a host can speak QUIC with."""

_AS_THEY_SHIP: Final[Mapping[str, Mapping[str, Any]]] = {
    NOQ: {
        "congestion": Algorithm(name="cubic"),
        "receive_buffer": [1_250_000] * 3,
        "send_buffer": [10_000_000] * 3,
        "autotuning": False,
        "ecn": True,
    },
    PICOQUIC: {"congestion": Algorithm(name="reno"), "autotuning": True, "ecn": False},
    AIOQUIC: {"congestion": Algorithm(name="reno"), "autotuning": True, "ecn": False},
}
"""Settings of noq-proto 1.4, picoquic 1.1 and aioquic 1.7 where they differ from every profile's."""


def _check_profile(value: str) -> str:
    try:
        registry.find("profile", value)
    except registry.RegistryError as error:
        raise fault(error.message, error.hint) from error
    return value


ProfileName = Annotated[
    str, AfterValidator(_check_profile), WithJsonSchema({"type": "string", "enum": list(registry.entries("profile"))})
]


class _Own(Model):
    """Settings of which a scenario says more than the engine's registry, and what sets them all."""

    stack: Literal["polypath", "noq", "picoquic", "aioquic"] | None = None
    """The QUIC implementation: Polypath's own endpoint, or a separate implementation (in the simulator): noq-proto,
    picoquic, or aioquic, which has one path. The last two need the extra of their name. Their defaults then replace
    those of the profile."""
    profile: ProfileName | None = None
    """The implementation whose defaults apply: `rfc`, `mptcp.org` or `linux`."""
    scheduler: Scheduler | None = None
    """The packet scheduler."""
    path_manager: PathManager | None = None
    """The path manager, which decides which subflows are opened."""
    congestion: Congestion | None = None
    """Congestion control."""
    receive_buffer: Buffer | None = None
    """Receive buffer: one fixed size (autotuning is then off), or minimum, default and maximum (tcp_rmem)."""
    send_buffer: Buffer | None = None
    """Send buffer: one fixed size, or minimum, default and maximum (tcp_wmem)."""
    keepalive: bool | None = None
    """Whether an idle peer is probed (RFC 9293 section 3.8.4, SO_KEEPALIVE); in Multipath TCP on each subflow."""
    keepalive_time: Period | None = None
    """Silence before the first keep-alive probe (tcp_keepalive_time)."""
    keepalive_interval: Period | None = None
    """Time between keep-alive probes (tcp_keepalive_intvl)."""
    keepalive_probes: int | None = Field(default=None, ge=1, le=127)
    """Unanswered keep-alive probes after which the peer is given up (tcp_keepalive_probes)."""
    send_paths: list[Annotated[int, Field(ge=0, le=2**32 - 1)]] | None = None
    """Path ids of Multipath QUIC on which this host sends data and acknowledgements, as long as one of them works; []
    means all. Ids count up from 0 in the order in which the client opens paths."""
    ack_frequency: Frequency | None = None
    """Number of packets that a QUIC peer acknowledges together instead of two, or a table
    (draft-ietf-quic-ack-frequency-14). Both ends need it: a host that requests it also offers it. noq always offers it.
    0: neither requested nor offered."""


if TYPE_CHECKING:

    class Stack(_Own):
        """What `create_model` makes below."""

        def __getattr__(self, name: str) -> Any: ...
else:
    Stack = create_model(
        "Stack",
        __base__=_Own,
        __module__=__name__,
        __doc__="Transport settings. What is left out comes from the level above: host, [defaults], profile.",
        **declared.optional(registry.find("profile", DEFAULT_PROFILE)),
    )


SETTINGS = tuple(Stack.model_fields)

ALGORITHMS: Final[Mapping[str, registry.Kind]] = {
    "scheduler": "scheduler",
    "path_manager": "path-manager",
    "congestion": "congestion",
}
"""The kinds of those settings that are algorithms."""

BUFFERS: Final = ("receive_buffer", "send_buffer")

_IN_EVERY_PROFILE: Final[Mapping[str, Any]] = {
    "keepalive": False,
    "keepalive_time": 7200 * SECOND,
    "keepalive_interval": 75 * SECOND,
    "keepalive_probes": 9,
    "send_paths": [],
    "ack_frequency": OFF,
}


@cache
def of_profile(profile: str) -> Mapping[str, Any]:
    """A profile's settings, by name."""
    entry = registry.find("profile", profile)
    planned = entry.settings
    return {
        "profile": profile,
        **{name: Algorithm(**planned[name]) for name in ALGORITHMS},
        **{name: planned[name] for name in BUFFERS},
        **_IN_EVERY_PROFILE,
        **{each.name: each.default for each in entry.parameters},
    }


def settings(stack: Stack) -> dict[str, Any]:
    """What a level sets, by name, without what it leaves out."""
    if stack is Stack.empty():
        return {}
    return {name: value for name in SETTINGS if (value := getattr(stack, name)) is not None}


def merge(levels: Iterable[Stack]) -> Stack:
    """The complete settings from levels that go from general to specific; the most specific profile is the base."""
    given: dict[str, Any] = {}
    autotuning = None
    for level in levels:
        own = settings(level)
        autotuning = own.get("autotuning", autotuning)
        if "receive_buffer" in own:
            # a fixed size turns it off, until a more specific level has three sizes again
            own.setdefault("autotuning", False if is_fixed(own["receive_buffer"]) else autotuning)
        given |= own
    given = {name: value for name, value in given.items() if value is not None}
    base = of_profile(given.get("profile", DEFAULT_PROFILE))
    if (ships := _AS_THEY_SHIP.get(given.get("stack", ""))) is not None:
        base = {**base, **ships}
    return Stack.model_construct(**{**base, **given})
