"""The experiment file."""

from __future__ import annotations

from dataclasses import dataclass

from polypath.formats.minitopo.lines import Line, read_lines
from polypath.scenario.errors import ScenarioError

COMMON_DEFAULTS = {
    "xpType": "none",
    "mptcpEnabled": "1",
    "sched": "default",
    "congctrl": "olia",
    "kpm": "fullmesh",
    "kpmc": "fullmesh",
    "kpms": "fullmesh",
    "upmc": "fullmesh",
    "upms": "fullmesh",
    "upmc_args": "",
    "upms_args": "",
    "rmem": "10240 87380 16777216",
    "wmem": "4096 16384 4194304",
    "autocork": "1",
    "earlyRetrans": "3",
    "expiration": "300",
    "metric": "-1",
    "bufferAutotuning": "1",
    "clientPcap": "no",
    "serverPcap": "no",
    "snaplen_pcap": "65535",
    "pingCount": "5",
    "priority_path_0": "0",
    "priority_path_1": "0",
    "backup_path_0": "0",
    "backup_path_1": "0",
}
"""Keys of every experiment with minitopo's defaults."""

RANDOM = "random"
"""The file that minitopo makes, as long as `file_size` says."""
_FILE = {"file": RANDOM, "file_size": "1024"}
TYPE_DEFAULTS: dict[str, dict[str, str]] = {
    "none": {},
    "ping": {},
    "iperf": {"iperfTime": "10", "iperfParallel": "1"},
    "iperfScenario": {"iperfScenarioFMSublows": "1"},
    "http": _FILE,
    "https": _FILE,
    "sendfile": _FILE,
    "quic": {**_FILE, "quicMultipath": "0"},
    "pquic": {"pquicSize": "10240000", "pquicPlugins": "", "pquicClientPlugins": "", "pquicServerPlugins": ""},
    "msg": {"msgClientSleep": "5.0", "msgServerSleep": "5.0", "msgNbRequests": "5", "msgBytes": "1200"},
}
"""The experiments that run here, each with its own keys and minitopo's defaults."""

NOT_YET: dict[str, tuple[str, ...]] = {
    "netperf": ("netperfTestlen", "netperfTestname", "netperfReqresSize"),
    "ditg": (
        "ditgKBytes",
        "ditgConstantPacketSize",
        "ditgMeanPoissonPacketsSec",
        "ditgConstantPacketsSec",
        "ditgBurstsOnPacketsSec",
        "ditgBurstsOffPacketsSec",
    ),
    "siri": (
        "siriRunTime",
        "siriQuerySize",
        "siriResponseSize",
        "siriDelayQueryResponse",
        "siriMinPayloadSize",
        "siriMaxPayloadSize",
        "siriIntervalTimeMs",
        "siriBufferSize",
        "siriBurstSize",
        "siriIntervalBurstTimeMs",
    ),
    "sirihttp": (),
    "sirimsg": (),
    "quicsiri": (),
}
"""Experiments that minitopo runs and this project does not yet, with their keys."""

BROKEN = ("nc", "ncpv", "ab", "vlc", "epload")
"""Experiments that do not run in minitopo itself."""

ALIASES = {"snaplenPcap": "snaplen_pcap"}
"""Keys that people write, and those that minitopo reads."""


@dataclass
class Experiment:
    """An experiment file's content. Every key that could be written is in `values`."""

    file: str
    raw: dict[str, str]
    """As written."""
    values: dict[str, str]
    """With aliases replaced and defaults filled in."""
    lines: dict[str, Line]
    """Where a key is written, by its real name."""
    warnings: list[str]

    @property
    def xp_type(self) -> str:
        """The experiment's type."""
        return self.values["xpType"]

    def line(self, key: str) -> Line:
        """The key's line; a key at its default stands on no line."""
        return self.lines.get(key) or _Absent(key, self.values[key], self.file, 0)


class _Absent(Line):
    """A key that is not written."""

    def error(self, message: str, hint: str | None = None) -> ScenarioError:
        return ScenarioError(message, self.file, None, hint)


def parse_xp(text: str, file: str) -> Experiment:
    """Reads an experiment file of any type that minitopo has; raises ScenarioError with every fault found."""
    known = set(COMMON_DEFAULTS) | {key for keys in TYPE_DEFAULTS.values() for key in keys}
    known |= {key for keys in NOT_YET.values() for key in keys}
    written = read_lines(text, file)
    kind = next((line.value for line in written if line.key == "xpType"), COMMON_DEFAULTS["xpType"])
    own = set(COMMON_DEFAULTS) | set(TYPE_DEFAULTS.get(kind, ())) | set(NOT_YET.get(kind, ()))
    raw: dict[str, str] = {}
    lines: dict[str, Line] = {}
    errors: list[ScenarioError] = []
    warnings: list[str] = []
    for line in written:
        key = ALIASES.get(line.key, line.key)
        if key not in known and kind not in TYPE_DEFAULTS:
            continue  # the type is refused, whose keys nobody knows
        if key not in known:
            warnings.append(line.unknown(own))
        elif key in lines:
            errors.append(line.error(f"'{line.key}' is given twice"))
        else:
            raw[line.key] = line.value
            lines[key] = line
            if key != line.key:
                warnings.append(f"{line.key} is read as {key}; minitopo itself ignores it")
    if errors:
        raise ScenarioError.collect(errors)
    values = COMMON_DEFAULTS | TYPE_DEFAULTS.get(kind, {})
    warnings += [f"{key} has no effect with xpType:{kind}" for key in lines if key not in own]
    values = values | {key: line.value for key, line in lines.items()}
    return Experiment(file, raw, values, lines, warnings)
