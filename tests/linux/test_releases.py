"""Kernels older than the one that the recipe was written for."""

from pathlib import Path

import pytest

from polypath.engines.linux import releases
from polypath.engines.linux.kernel import Installed


@pytest.mark.parametrize(
    ("release", "subflows", "switch"),
    [
        ("7.2.12", 64, "mptcp/path_manager"),
        ("7.0-rc1", 64, "mptcp/path_manager"),
        ("6.18.3+", 8, "mptcp/path_manager"),
        ("6.12.117", 8, "mptcp/pm_type"),
    ],
)
def test_what_a_release_can_be_told(release: str, subflows: int, switch: str) -> None:
    means = releases.of(Installed(Path(), release, "source", "recipe", "", "gcc", "00"))
    assert (means.most_subflows, means.userspace_paths[0]) == (subflows, switch)
