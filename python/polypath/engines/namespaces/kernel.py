"""The settings of a stack that a kernel accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from polypath import registry
from polypath.engines.base import EngineError
from polypath.engines.namespaces import algorithms

if TYPE_CHECKING:
    from polypath.plan.types import Stack


#: TCP_TIMEOUT_INIT, which has no switch.
_INITIAL_RTO_NS: Final = 1_000_000_000

_DELAYED_ACK: Final = 40_000_000
"""TCP_DELACK_MIN in nanoseconds."""

_MTU_PROBING: Final = {"off": 0, "black-hole": 1, "on": 2}


def _seconds(period: int) -> int:
    """As the kernel has it in a file; raises EngineError."""
    if period % 1_000_000_000:
        raise EngineError(f"Linux takes whole seconds, not {period / 1e9:g} s, for timeouts of net.mptcp")
    return period // 1_000_000_000


#: Settings that a plan names where they are not as usual, with their files below /proc/sys/net/mptcp.
_SELDOM: Final[Mapping[str, tuple[str, Callable[[Any], int]]]] = {
    "allow_join_initial_addr_port": ("allow_join_initial_addr_port", int),
    "add_addr_timeout_ns": ("add_addr_timeout", _seconds),
    "close_timeout_ns": ("close_timeout", _seconds),
    "stale_loss_cnt": ("stale_loss_cnt", int),
    "blackhole_timeout_ns": ("blackhole_timeout", _seconds),
    "syn_retrans_before_tcp_fallback": ("syn_retrans_before_tcp_fallback", int),
    "add_addr_v6_port_drop_ts": ("add_addr_v6_port_drop_ts", int),
}

#: The value of net.ipv4.tcp_ecn for accurate feedback, and classic ECN where the peer lacks that.
_ACCURATE_ECN: Final = 3

#: What the rest of the transport's settings becomes here, of a route, an interface or a socket.
_KNOWN: Final = frozenset(
    {
        "autotuning",
        "mtu",
        "initial_window",
        "sack",
        "timestamps",
        "window_scaling",
        "ecn",
        "accurate_ecn",
        "checksum",
        "nagle",
        "cork",
        "rto_min_ns",
        "user_timeout_ns",
        "mtu_probing",
        "recovery",
        "delayed_ack_ns",
        *_SELDOM,
        "rto_initial_ns",
    }
)

_ANY_RECEIVE_BUFFER: Final = (7, 0)
"""Before it net.ipv4.tcp_rmem may be one byte: so it is in 6.12, and no longer in 7.2."""


def version(release: str) -> tuple[int, int]:
    """The first two numbers of what `uname -r` prints."""
    major, minor = release.split(".")[:2]
    return int(major), int("".join(filter(str.isdigit, minor)) or 0)


class Kernel:
    """The kernel of our own; another one may have less."""

    #: Whether a host's congestion control is the namespace's, or each application has to ask for it.
    congestion_of_host = True
    #: Further subflows that a connection may have (Linux, net/mptcp/pm_kernel.c).
    most_subflows = 64
    #: Of a receive buffer in bytes, by the kernel's sysctl (net/ipv4/sysctl_net_ipv4.c, tcp_min_rcvbuf).
    least_receive_buffer = 4096

    def be_of(self, release: str) -> None:
        """Knows the limits of that release."""
        if version(release) < _ANY_RECEIVE_BUFFER:
            self.least_receive_buffer = 1

    #: The switch, below /proc/sys/net, that puts paths into the hands of a program, and its value.
    userspace_paths = ("mptcp/path_manager", "userspace")

    def settings(self, stack: Stack) -> dict[str, object]:
        """A host's transport settings as files below /proc/sys/net. Raises EngineError."""
        for each in registry.find("profile", stack["profile"]).parameters:
            of_kernel = each.only in ("", "tcp") and each.field not in _KNOWN
            if of_kernel and stack.get(each.field, each.default) != each.default:
                raise EngineError(f"no kernel can be told '{each.name}'; leave it out")
        if stack["rto_initial_ns"] != _INITIAL_RTO_NS:
            raise EngineError(f"Linux has rto_initial {_INITIAL_RTO_NS / 1e6:g} ms only: a constant")
        if stack["delayed_ack_ns"] not in (0, _DELAYED_ACK):
            raise EngineError("Linux has delayed_ack 40 ms, a constant, or 0 s, the quickack of a route")
        if (stack.get("recovery") or "prr") != "prr":
            raise EngineError(f"Linux has recovery 'prr' only, not '{stack['recovery']}': it cannot be switched off")
        if stack["rto_min_ns"] % 1000:
            raise EngineError("Linux takes rto_min in whole microseconds")
        if min(stack["receive_buffer"]) < self.least_receive_buffer:
            raise EngineError(
                f"Linux takes receive buffers from {self.least_receive_buffer} bytes on (net.ipv4.tcp_rmem),"
                f" not {min(stack['receive_buffer'])}"
            )
        return {
            "ipv4/tcp_rmem": " ".join(map(str, stack["receive_buffer"])),
            "ipv4/tcp_wmem": " ".join(map(str, stack["send_buffer"])),
            "ipv4/tcp_moderate_rcvbuf": int(stack["autotuning"]),
            "ipv4/tcp_sack": int(stack["sack"]),
            "ipv4/tcp_timestamps": int(stack["timestamps"]),
            "ipv4/tcp_window_scaling": int(stack["window_scaling"]),
            "ipv4/tcp_ecn": _ACCURATE_ECN if stack.get("accurate_ecn") else int(stack["ecn"]),
            "ipv4/tcp_rto_min_us": stack["rto_min_ns"] // 1000,
            "ipv4/tcp_mtu_probing": _MTU_PROBING[stack.get("mtu_probing") or "off"],
            "ipv4/tcp_no_metrics_save": 1,
            "ipv4/tcp_congestion_control": self.congestion(stack),
            "mptcp/scheduler": self.scheduler(stack),
            "mptcp/checksum_enabled": int(stack["checksum"]),
            **{f"mptcp/{name}": value(stack.get(field)) for field, (name, value) in _SELDOM.items() if field in stack},
        }

    def congestion(self, stack: Stack) -> str:
        """The kernel's name of the congestion control. Raises EngineError."""
        return algorithms.congestion(stack["congestion"])

    def scheduler(self, stack: Stack) -> str:
        """The kernel's name of the packet scheduler. Raises EngineError."""
        return algorithms.scheduler(stack["scheduler"])
