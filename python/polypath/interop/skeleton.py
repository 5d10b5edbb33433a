"""The scenario of test cases and of drawn networks: a client with two paths to a router, and a server behind it."""

from __future__ import annotations

from dataclasses import dataclass

from polypath.scenario import Scenario


@dataclass(frozen=True)
class Skeleton:
    """Tables between two stacks; each text is a table's lines."""

    name: str
    duration: str
    seed: int
    #: Lines of both links of the client.
    paths: tuple[str, str]
    #: Lines of the application, with the tables that follow.
    work: str
    transport: str = "mpquic"
    #: Lines of the hosts, and of what is recorded.
    client: str = ""
    server: str = ""
    record: str = ""

    def text(self, client: str, server: str) -> str:
        """The scenario as text, between two stacks by name."""
        first, second = self.paths
        return f"""
name = "{self.name}"
duration = "{self.duration}"
seed = {self.seed}
[defaults]
profile = "rfc"
congestion = "cubic"
[record]
{self.record}
[host.client]
stack = "{client}"
{self.client}
[host.server]
stack = "{server}"
{self.server}
[router.r]
[link.path0]
ends = ["client:eth0", "r"]
{first}
[link.path1]
ends = ["client:eth1", "r"]
{second}
[link.server]
ends = ["r", "server"]
[[application]]
name = "get"
transport = "{self.transport}"
{self.work}
"""

    def scenario(self, client: str, server: str) -> Scenario:
        return Scenario.parse(self.text(client, server), f"{self.name}.toml")
