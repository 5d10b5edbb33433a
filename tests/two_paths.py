"""A network of two paths with one fetch over them, as a scenario that a person writes."""

from __future__ import annotations


def fetching(size: str) -> str:
    """The scenario, in TOML."""
    return f"""
duration = "3 s"
host = {{ client = {{}}, server = {{}} }}
link.wifi = {{ ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms" }}
link.lte = {{ ends = ["client", "server"], rate = "5 Mbps", delay = "30 ms" }}
defaults.path_manager = "fullmesh"
[[application]]
name = "get"
kind = "fetch"
transport = "mptcp"
size = "{size}"
"""
