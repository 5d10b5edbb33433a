"""What older kernels than the one that the recipe was written for can be told."""

from __future__ import annotations

from polypath.engines.linux.kernel import Installed
from polypath.engines.namespaces.kernel import Kernel

_EIGHT_SUBFLOWS = (7, 0)
"""Before it MPTCP_PM_ADDR_MAX (net/mptcp/pm_netlink.c), 8, is the limit of subflows as well."""
_NUMBERED_PATH_MANAGER = (6, 16)
"""Before it net.mptcp.pm_type is the only switch (net/mptcp/ctrl.c)."""

_ANY_RECEIVE_BUFFER = (7, 0)
"""Before it net.ipv4.tcp_rmem may be one byte: so it is in 6.12, and no longer in 7.2."""


def of(kernel: Installed) -> Kernel:
    """The means of an installed kernel."""
    major, minor = kernel.release.split(".")[:2]
    release = (int(major), int("".join(filter(str.isdigit, minor)) or 0))
    means = Kernel()
    if release < _EIGHT_SUBFLOWS:
        means.most_subflows = 8
    if release < _NUMBERED_PATH_MANAGER:
        means.userspace_paths = ("mptcp/pm_type", "1")
    if release < _ANY_RECEIVE_BUFFER:
        means.least_receive_buffer = 1
    return means
