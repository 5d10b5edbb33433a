"""The commands, each over small files of a person's: what it reads is there before, and what it makes is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .registry import Command

_NETWORK: Final = """name = "small"
duration = "200 ms"

[host.client]
[host.server]

[link.path0]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "5 ms"

[link.path1]
ends = ["client", "server"]
rate = "5 Mbps"
delay = "10 ms"
"""
_APPLICATION: Final = """
[[application]]
name = "transfer"
kind = "bulk"
transport = "{}"
"""
_OWN: Final = """class Own:
    def select(self, view):
        return next((path.index for path in view.paths if path.ready), None)
"""
#: The person's own files.
FILES: Final[Mapping[str, str]] = {
    "small.toml": _NETWORK + _APPLICATION.format("mptcp"),
    "quic.toml": _NETWORK + _APPLICATION.format("mpquic"),
    "own.toml": _NETWORK + _APPLICATION.format("mptcp") + '\n[defaults]\nscheduler = "own.py:Own"\n',
    "live.toml": _NETWORK + _APPLICATION.format("tcp") + '\n[defaults]\ncongestion = "cubic"\n',
    "own.py": _OWN,
    "notes.txt": "what I saw\n",
}
#: What makes the results that commands read, by their folders.
STORED: Final[Mapping[str, tuple[str, ...]]] = {
    "stored": ("run", "small.toml", "--out", "stored", "--plot", "--pcap", "links"),
    "logged": ("run", "quic.toml", "--out", "logged", "--qlog"),
}

ALL: Final = (
    Command("validate", ("validate", "small.toml", "--plot", "network.svg"), ("network.svg",)),
    Command("run", ("run", "small.toml", "--out", "out"), ("out",)),
    Command("run-plot", ("run", "small.toml", "--out", "out", "--plot"), ("out",)),
    Command("run-pcap", ("run", "small.toml", "--out", "out", "--pcap", "hosts"), ("out",)),
    Command("run-qlog", ("run", "quic.toml", "--out", "out", "--qlog"), ("out",)),
    Command("run-python", ("run", "own.toml", "--out", "out"), ("out",)),
    Command("sweep", ("run", "small.toml", "--vary", "seeds=2", "--jobs", "2", "--out", "out"), ("out",), lines=True),
    Command(
        "compare",
        ("compare", "small.toml", "--by", "defaults.scheduler=default,roundrobin", "--seeds", "2", "--out", "out"),
        ("out",),
        lines=True,
    ),
    Command("show", ("show", "stored")),
    Command("plot", ("plot", "stored", "logged", "--kind", "rate", "--out", "figures"), ("figures",)),
    Command("report", ("report", "stored", "--out", "page.html"), ("page.html",)),
    Command("exposure", ("exposure", "stored", "--links", "1")),
    Command("trace", ("trace", "stored/capture/path0.pcapng", "stored/capture/path1.pcapng")),
    Command("export-csv", ("export", "csv", "stored", "--out", "made"), ("made",)),
    Command("export-iperf3", ("export", "iperf3", "stored", "--out", "made"), ("made",)),
    Command("export-xplot", ("export", "xplot", "stored", "--out", "made"), ("made",)),
    Command("export-netanim", ("export", "netanim", "stored", "--out", "made"), ("made",)),
    Command("export-qvis", ("export", "qvis", "logged", "--out", "made"), ("made",)),
    Command("bundle", ("bundle", "stored", "--out", "made.zip"), ("made.zip",)),
    Command("new-lab", ("new", "lab", "fresh"), ("fresh",)),
    Command("import", ("import", "stored/plan.json", "--out", "made.toml"), ("made.toml",)),
    Command("new-trace", ("new-trace", "lte", "lte.up"), ("lte.up",)),
    Command("upgrade", ("upgrade", "small.toml", "--out", "now.toml"), ("now.toml",)),
    Command("labs", ("labs",)),
    Command("kernel-status", ("kernel", "status"), exact=False, answers=True),
    Command("run-linux", ("run", "small.toml", "--engine", "linux", "--out", "out"), ("out",), exact=False),
    Command("exec-linux", ("exec", "small.toml", "--", "true"), exact=False),
    Command("run-live", ("run", "live.toml", "--engine", "live", "--out", "out"), ("out",), exact=False),
)
COMMANDS: Final[Mapping[str, Command]] = {each.name: each for each in ALL}
