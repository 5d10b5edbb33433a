"""A host's transport settings, and the profiles that set them together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from polypath.scenario.algorithms import Algorithm, Congestion, PathManager, Scheduler
from polypath.scenario.base import Model
from polypath.scenario.fields import Buffer, Period, Time, fault, is_fixed
from polypath.scenario.frequency import OFF, Frequency
from polypath.units import nearest

KIB = 1024
MS = 1_000_000


@dataclass(frozen=True)
class Profile:
    """A named set of defaults: what some TCP/MPTCP implementation does when nobody tells it otherwise."""

    name: str
    description: str
    source: str
    settings: dict[str, Any]


_COMMON: dict[str, Any] = {
    "scheduler": Algorithm(name="default"),
    "path_manager": Algorithm(name="fullmesh"),
    "receive_buffer": [4 * KIB, 128 * KIB, 6 * KIB * KIB],
    "send_buffer": [4 * KIB, 16 * KIB, 4 * KIB * KIB],
    "autotuning": True,
    "mtu": 1500,
    "initial_window": 10,
    "sack": True,
    "timestamps": True,
    "window_scaling": True,
    "ecn": False,
    "checksum": False,
    "nagle": True,
    "cork": False,
    "rto_min": 200 * MS,
    "rto_initial": 1000 * MS,
    "delayed_ack": 40 * MS,
    "keepalive": False,
    "keepalive_time": 7200 * 1000 * MS,
    "keepalive_interval": 75 * 1000 * MS,
    "keepalive_probes": 9,
    "user_timeout": 0,
    "mtu_probing": "off",
    "recovery": "prr",
    "ack_path": "same",
    "control_path": "fastest",
    "send_paths": [],
    "retry": False,
    "ack_frequency": OFF,
}

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "rfc",
            "The specifications' algorithms and retransmission timeout, with Linux's other timers and its buffers.",
            "RFC 8684, RFC 6356 (lia), RFC 6928, RFC 6298",
            {**_COMMON, "congestion": Algorithm(name="lia"), "checksum": True, "rto_min": 1000 * MS},
        ),
        Profile(
            "mptcp.org",
            "The out-of-tree kernel that the literature of 2012-2020 measured, as minitopo sets it up.",
            "mptcp.org v0.9x; minitopo's defaults",
            {
                **_COMMON,
                "congestion": Algorithm(name="olia"),
                "receive_buffer": [10240, 87380, 16 * KIB * KIB],
                "checksum": True,
            },
        ),
        Profile(
            "linux",
            "The upstream kernel; without configured endpoints it opens no further subflows by itself.",
            "Linux, net/mptcp, Documentation/networking/mptcp-sysctl.rst, ip-sysctl.rst",
            {
                **_COMMON,
                "scheduler": Algorithm(name="linux"),
                "congestion": Algorithm(name="cubic"),
                "path_manager": Algorithm(name="default"),
            },
        ),
    )
}

DEFAULT_PROFILE = "rfc"

NOQ = "noq"
"""The stack of others that a host can speak QUIC with."""

_AS_NOQ_SHIPS: dict[str, Any] = {
    "congestion": Algorithm(name="cubic"),
    "receive_buffer": [1_250_000] * 3,
    "send_buffer": [10_000_000] * 3,
    "autotuning": False,
    "ecn": True,
}
"""Settings of noq-proto 1.4 where they differ from every profile's."""


def _check_profile(value: str) -> str:
    if value not in PROFILES:
        hint = nearest(value, PROFILES)
        message = f"unknown profile '{value}'"
        raise fault(message if hint else f"{message}; there is {', '.join(PROFILES)}", hint)
    return value


ProfileName = Annotated[str, AfterValidator(_check_profile), WithJsonSchema({"type": "string", "enum": list(PROFILES)})]


class Stack(Model):
    """Transport settings. What is left out comes from the level above: host, [defaults], profile."""

    stack: Literal["polypath", "noq"] | None = None
    """Who speaks QUIC: Polypath's own endpoint, or noq-proto, an implementation by others (in the simulator). noq's
    defaults then take the place of the profile's."""
    profile: ProfileName | None = None
    """The implementation whose defaults apply: `rfc`, `mptcp.org` or `linux`."""
    scheduler: Scheduler | None = None
    """The packet scheduler."""
    path_manager: PathManager | None = None
    """What decides which subflows are opened."""
    congestion: Congestion | None = None
    """Congestion control."""
    receive_buffer: Buffer | None = None
    """Receive buffer: one fixed size (autotuning is then off), or minimum, default and maximum (tcp_rmem)."""
    send_buffer: Buffer | None = None
    """Send buffer: one fixed size, or minimum, default and maximum (tcp_wmem)."""
    autotuning: bool | None = None
    """Whether the receive buffer grows by itself (tcp_moderate_rcvbuf)."""
    mtu: int | None = Field(default=None, ge=576, le=65535)
    """Largest IP packet in bytes."""
    initial_window: int | None = Field(default=None, ge=1, le=1000)
    """Initial congestion window in segments (RFC 6928)."""
    sack: bool | None = None
    """Selective acknowledgements (RFC 2018)."""
    timestamps: bool | None = None
    """Timestamps (RFC 7323 section 3)."""
    window_scaling: bool | None = None
    """Window scaling (RFC 7323 section 2)."""
    ecn: bool | None = None
    """Explicit congestion notification (RFC 3168)."""
    checksum: bool | None = None
    """Ask for DSS checksums (RFC 8684 section 3.3)."""
    nagle: bool | None = None
    """Nagle's algorithm (RFC 896); off is TCP_NODELAY."""
    cork: bool | None = None
    """Whether what is smaller than a segment waits for more (TCP_CORK, stronger than TCP_NODELAY): as long as something
    is in flight, then a retransmission timeout of at least 200 ms. The end of the stream takes it along, in the profile
    `linux` over TCP only."""
    rto_min: Period | None = None
    """Least retransmission timeout (RFC 6298 section 2.4)."""
    rto_initial: Period | None = None
    """Retransmission timeout before the first round-trip sample (RFC 6298 section 2.1)."""
    delayed_ack: Time | None = None
    """Longest delay of an acknowledgement (RFC 1122 section 4.2.3.2)."""
    keepalive: bool | None = None
    """Whether an idle peer is probed (RFC 9293 section 3.8.4, SO_KEEPALIVE); in Multipath TCP on each subflow."""
    keepalive_time: Period | None = None
    """Silence before the first keep-alive probe (tcp_keepalive_time)."""
    keepalive_interval: Period | None = None
    """Time between keep-alive probes (tcp_keepalive_intvl)."""
    keepalive_probes: int | None = Field(default=None, ge=1, le=127)
    """Unanswered keep-alive probes after which the peer is given up (tcp_keepalive_probes)."""
    user_timeout: Time | None = None
    """How long retransmission, a closed window or silence under keep-alive may last (TCP_USER_TIMEOUT); 0: no limit."""
    mtu_probing: Literal["off", "black-hole", "on"] | None = None
    """Whether a sender looks for the path's MTU itself (RFC 4821, tcp_mtu_probing): `off`, `black-hole` (once timeouts
    make it suspect that packets vanish for their length) or `on` (from the first segment)."""
    recovery: Literal["prr", "classic"] | None = None
    """How the window shrinks in loss recovery: `prr` (in proportion to what arrives, RFC 6937) or `classic` (to the
    threshold at once, so that nothing new leaves until as much has arrived; RFC 6675, RFC 6582)."""
    ack_path: Literal["same", "fastest", "scheduler"] | None = None
    """Which path of Multipath QUIC carries acknowledgements that travel alone: the one that they are about, the one of
    lowest RTT, or the one that the packet scheduler gives them."""
    control_path: Literal["fastest", "scheduler"] | None = None
    """Which path of Multipath QUIC carries packets of control frames alone, such as limits, connection ids and a path's
    status: the one of lowest RTT, or the one that the packet scheduler gives them. Probes and challenges are of a path
    and stay on it."""
    send_paths: list[Annotated[int, Field(ge=0, le=2**32 - 1)]] | None = None
    """Path ids of Multipath QUIC on which this host sends data and acknowledgements, as long as one of them works;
    [] is all. Ids count up from 0 in the order in which the client opens paths."""
    retry: bool | None = None
    """Whether a server of QUIC has each client return a token before it keeps anything of it (RFC 9000 section 8.1.2);
    that takes a round trip."""
    ack_frequency: Frequency | None = None
    """How many packets of this host's a peer of QUIC acknowledges together instead of two, or a table
    (draft-ietf-quic-ack-frequency-14). Both ends need it: a host that asks offers its peer the same. noq always offers
    it. 0: nothing is asked for or offered."""


SETTINGS = tuple(Stack.model_fields)


def settings(stack: Stack) -> dict[str, Any]:
    """What a level sets, by name, without what it leaves out."""
    if stack is Stack.empty():
        return {}
    return {name: value for name in SETTINGS if (value := getattr(stack, name)) is not None}


def merge(levels: Iterable[Stack]) -> Stack:
    """The complete settings from levels that go from general to specific; the most specific profile is the base."""
    given: dict[str, Any] = {}
    for level in levels:
        own = settings(level)
        if "receive_buffer" in own and is_fixed(own["receive_buffer"]):
            own.setdefault("autotuning", False)
        given |= own
    profile = given.pop("profile", DEFAULT_PROFILE)
    base = PROFILES[profile].settings
    if given.get("stack") == NOQ:
        base = base | _AS_NOQ_SHIPS
    return Stack.model_construct(**{**base, **given, "profile": profile})
