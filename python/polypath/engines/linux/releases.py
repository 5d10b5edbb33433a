"""Options of kernels that are older than the recipe's."""

from __future__ import annotations

from polypath.engines.linux.kernel import Installed
from polypath.engines.namespaces.kernel import Kernel, version

_EIGHT_SUBFLOWS = (7, 0)
"""Before it MPTCP_PM_ADDR_MAX (net/mptcp/pm_netlink.c), 8, is the limit of subflows as well."""
_NUMBERED_PATH_MANAGER = (6, 16)
"""Before it net.mptcp.pm_type is the only switch (net/mptcp/ctrl.c)."""


def of(kernel: Installed) -> Kernel:
    """The means of an installed kernel."""
    release = version(kernel.release)
    means = Kernel()
    means.be_of(kernel.release)
    if release < _EIGHT_SUBFLOWS:
        means.most_subflows = 8
    if release < _NUMBERED_PATH_MANAGER:
        means.userspace_paths = ("mptcp/pm_type", "1")
    return means
