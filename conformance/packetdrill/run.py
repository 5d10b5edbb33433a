"""Runs packetdrill's scripts against Polypath's endpoints and compares what differs with reasons.toml.

usage: run.py [--out FILE] [--jobs N] [--verbose] [PATTERN ...]
Exit code 1 if a difference has no reason, or a reason no difference.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / "target" / "packetdrill"
SCRIPTS = TARGET / "source" / "gtests" / "net"
TOOL = SCRIPTS / "packetdrill" / "packetdrill"
LIBRARY = ROOT / "target" / "debug" / "libpolypath_packetdrill.so"

SUITES = ("tcp", "mptcp")
OUTCOMES = ("passed", "failed", "not supported")
#: Seconds of real time after which a script is given up.
LIMIT = 60
UNSUPPORTED = re.compile(r"^polypath: (.*) is not supported$", re.MULTILINE)

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


@dataclass(frozen=True)
class Reason:
    scripts: Sequence[str]
    text: str
    versions: Sequence[str] = tuple(VERSIONS)

    def covers(self, result: Result) -> bool:
        return result.version in self.versions and any(fnmatch(result.script, pattern) for pattern in self.scripts)


def scripts(patterns: Sequence[str]) -> list[str]:
    """Paths of scripts below the suites, sorted; those that match one of the patterns, if there are any."""
    found = [str(path.relative_to(SCRIPTS)) for suite in SUITES for path in sorted((SCRIPTS / suite).rglob("*.pkt"))]
    return [script for script in found if not patterns or any(fnmatch(script, pattern) for pattern in patterns)]


def run(script: str, version: str) -> Result:
    """Runs one script."""
    path = SCRIPTS / script
    with tempfile.NamedTemporaryFile(prefix="polypath-commands-") as commands:
        environment = {
            **os.environ,
            "LD_PRELOAD": str(LIBRARY),
            "POLYPATH_COMMANDS": commands.name,
            "PATH": f"{TARGET / 'commands'}:{os.environ['PATH']}",
        }
        command = [
            TOOL,
            f"--so_filename={LIBRARY}",
            "--send_omit_free",
            f"--code_command={sys.executable}",
            *VERSIONS[version],
            path.name,
        ]
        process = subprocess.Popen(
            command,
            cwd=path.parent,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
        )
        try:
            said, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0] + "\nno end within a minute"
        Path(f"/tmp/sysctl_restore_{process.pid}.sh").unlink(missing_ok=True)
    if process.returncode == 0:
        return Result(script, version, "passed", "")
    if missing := UNSUPPORTED.search(said):
        return Result(script, version, "not supported", missing[1])
    return Result(script, version, "failed", said.strip())


def reasons() -> list[Reason]:
    """What reasons.toml states."""
    stated = tomllib.loads((HERE / "reasons.toml").read_text())["difference"]
    return [Reason(it["scripts"], it["reason"], tuple(it.get("versions", VERSIONS))) for it in stated]


def why(result: Result, stated: Iterable[Reason]) -> str:
    """The reason of a difference; what is not supported is one by itself."""
    found = next((reason.text for reason in stated if reason.covers(result)), "")
    return found or (f"not supported: {result.said}" if result.outcome == "not supported" else "")


def counted(results: Iterable[Result], suite: str, version: str) -> Counter[str]:
    """How many scripts of a suite had each outcome."""
    return Counter(it.outcome for it in results if it.version == version and it.script.startswith(f"{suite}/"))


def page(results: Sequence[Result], stated: Sequence[Reason]) -> str:
    """The page of the documentation: counts, then every script."""
    lines = [(HERE / "page.md").read_text().rstrip(), ""]
    lines += ["| suite | run | passed | failed | not supported |", "|---|---|---|---|---|"]
    for suite in SUITES:
        for version in VERSIONS:
            count = counted(results, suite, version)
            numbers = [str(count[outcome]) for outcome in OUTCOMES]
            lines.append(f"| {suite}, {version} | {count.total()} | {' | '.join(numbers)} |")
    lines += ["", "| script | outcome | reason |", "|---|---|---|"]
    for script in dict.fromkeys(it.script for it in results):
        of = [it for it in results if it.script == script]
        same = len({(it.outcome, why(it, stated)) for it in of}) == 1
        for result in of[:1] if same else of:
            shown = script if same else f"{script}, {result.version}"
            lines.append(f"| {shown} | {result.outcome} | {why(result, stated)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the table there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="scripts at a time")
    parser.add_argument("--verbose", action="store_true", help="show what packetdrill says")
    parser.add_argument("patterns", nargs="*", help="only these scripts, as mptcp/dss/*")
    given = parser.parse_args()
    if not TOOL.exists():
        print(f"{TOOL} does not exist; conformance/packetdrill/fetch makes it", file=sys.stderr)
        return 2
    if not LIBRARY.exists():
        print(f"{LIBRARY} does not exist; cargo build -p polypath-packetdrill makes it", file=sys.stderr)
        return 2
    found = scripts(given.patterns)
    chosen = [(it, version) for it in found for version in VERSIONS if not it.endswith(FOREIGN[version])]
    with ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(lambda it: run(*it), chosen))
    stated = reasons()
    wrong = 0
    for result in results:
        unexplained = result.differs and not why(result, stated)
        wrong += unexplained
        if unexplained or given.verbose:
            print(f"{result.outcome:13}  {result.script} ({result.version})")
            if given.verbose and result.said:
                print("    " + result.said.replace("\n", "\n    "))
    if not given.patterns:
        for reason in stated:
            if not any(result.differs and reason.covers(result) for result in results):
                print(f"stale reason: {', '.join(reason.scripts)}: {reason.text}")
                wrong += 1
    for suite in SUITES:
        for version in VERSIONS:
            count = counted(results, suite, version)
            print(f"{suite}, {version}: " + ", ".join(f"{count[outcome]} {outcome}" for outcome in OUTCOMES))
    if given.out:
        given.out.write_text(page(results, stated))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
