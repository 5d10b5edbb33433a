"""packetdrill's scripts, the options of each, and the possible outcomes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / "target" / "packetdrill"
SCRIPTS = TARGET / "scripts"
TOOL = TARGET / "packetdrill"

SUITES = ("tcp", "mptcp")
OUTCOMES = ("passed", "failed", "not supported")

#: Options as the suites' own runner has them.
VERSIONS = {
    "IPv4": [
        "--ip_version=ipv4",
        "--local_ip=192.168.0.2",
        "--gateway_ip=192.168.0.1",
        "--netmask_ip=255.255.0.0",
        "--remote_ip=192.0.2.1/24",
        *("-D", "TFO_COOKIE=de4f234f0f433a55"),
        *("-D", "CMSG_LEVEL_IP=SOL_IP"),
        *("-D", "CMSG_TYPE_RECVERR=IP_RECVERR"),
    ],
    "IPv6": [
        "--ip_version=ipv6",
        "--mtu=1520",
        "--local_ip=fd3d:fa7b:d17d::0",
        "--gateway_ip=fd3d:fa7b:d17d:8888::0",
        "--remote_ip=2001:DB8::1/32",
        *("-D", "TFO_COOKIE=6aa6ae70c288023b"),
        *("-D", "CMSG_LEVEL_IP=SOL_IPV6"),
        *("-D", "CMSG_TYPE_RECVERR=IPV6_RECVERR"),
    ],
}
#: Scripts whose names end so are of the other version.
FOREIGN = {"IPv4": "v6.pkt", "IPv6": "v4.pkt"}

#: Times in a complaint, in seconds, and how far the clocks of two runs are apart at most.
_TIME = re.compile(r"\b\d+\.\d+\b")
_APART = 0.004
_RAISED = re.compile(r"\w+Error\b")


@dataclass(frozen=True)
class Result:
    """One script over one IP version; `said` is packetdrill's complaint, or what is not supported."""

    script: str
    version: str
    outcome: str
    said: str

    @property
    def differs(self) -> bool:
        return self.outcome != "passed"

    @property
    def complaint(self) -> str:
        """What packetdrill says first, from the script's line on, and what the script's own calculation says."""
        name = self.script.rpartition("/")[2]
        lines = self.said.splitlines()
        first = next((line for line in lines if line.startswith(f"{name}:")), lines[0] if lines else "")
        raised = [line for line in lines if _RAISED.match(line)]
        return ": ".join([first.removeprefix(f"{name}:").strip(), *raised])

    def departs_as(self, other: "Result") -> bool:
        """Whether both depart from the script in the same line in the same way, at the same time."""
        mine, its = ([float(time) for time in _TIME.findall(it.complaint)] for it in (self, other))
        return (
            self.outcome == other.outcome == "failed"
            and _TIME.sub("", self.complaint) == _TIME.sub("", other.complaint)
            and all(abs(here - there) < _APART for here, there in zip(mine, its, strict=True))
        )


def scripts(patterns: Sequence[str]) -> list[tuple[str, str]]:
    """Paths of scripts below the suites, sorted, each with its IP versions; those that match one of the patterns, if
    there are any."""
    found = [str(path.relative_to(SCRIPTS)) for suite in SUITES for path in sorted((SCRIPTS / suite).rglob("*.pkt"))]
    chosen = [it for it in found if not patterns or any(fnmatch(it, pattern) for pattern in patterns)]
    return [(it, version) for it in chosen for version in VERSIONS if not it.endswith(FOREIGN[version])]
