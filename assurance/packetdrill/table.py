"""The page of the documentation: counts, every script, and packetdrill's messages for those that the kernel fails."""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from suite import HERE, OUTCOMES, SUITES, VERSIONS, Result

#: Where a script passes.
PLACES = ("both", "the kernel only", "the endpoints only", "neither")


@dataclass(frozen=True)
class Reason:
    """An entry of reasons.toml."""

    scripts: Sequence[str]
    text: str
    versions: Sequence[str] = tuple(VERSIONS)

    def covers(self, result: Result) -> bool:
        return result.version in self.versions and any(fnmatch(result.script, pattern) for pattern in self.scripts)


@dataclass(frozen=True)
class Pair:
    """One script over one IP version: its outcomes on the endpoints and on the kernel."""

    ours: Result
    kernel: Result
    release: str
    stated: str

    @property
    def name(self) -> str:
        return f"{self.ours.script} ({self.ours.version})"

    @property
    def why(self) -> str:
        """The reason of a difference from the script; a missing feature is a reason of its own."""
        if self.stated or not self.ours.differs:
            return self.stated if self.ours.differs else ""
        if self.ours.departs_as(self.kernel):
            return f"as Linux {self.release}, for which packetdrill reports the same"
        return f"not supported: {self.ours.said}" if self.ours.outcome == "not supported" else ""

    @property
    def unexplained(self) -> bool:
        return self.ours.differs and not self.why


def reasons() -> list[Reason]:
    """What reasons.toml states."""
    stated = tomllib.loads((HERE / "reasons.toml").read_text())["difference"]
    return [Reason(it["scripts"], it["reason"], tuple(it.get("versions", VERSIONS))) for it in stated]


def stale(pairs: Iterable[Pair], stated: Iterable[Reason]) -> list[Reason]:
    """Reasons that no script needs."""
    ours = [it.ours for it in pairs if it.ours.differs]
    return [reason for reason in stated if not any(reason.covers(result) for result in ours)]


def counts(pairs: Iterable[Pair], suite: str, version: str) -> tuple[Counter[str], Counter[str]]:
    """How many scripts of a suite had each outcome with the endpoints, and how many pass where."""
    of = [it for it in pairs if it.ours.version == version and it.ours.script.startswith(f"{suite}/")]
    return Counter(it.ours.outcome for it in of), Counter(_where(it) for it in of)


def _where(pair: Pair) -> str:
    if pair.kernel.differs:
        return PLACES[3] if pair.ours.differs else PLACES[2]
    return PLACES[1] if pair.ours.differs else PLACES[0]


def page(pairs: Sequence[Pair], release: str) -> str:
    """All of it."""
    lines = [(HERE / "page.md").read_text().rstrip().replace("{release}", release), ""]
    heads = ["suite", "run", *OUTCOMES, f"pass on {PLACES[0]}", *PLACES[1:]]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for suite in SUITES:
        for version in VERSIONS:
            outcomes, places = counts(pairs, suite, version)
            numbers = [outcomes[it] for it in OUTCOMES] + [places[it] for it in PLACES]
            lines.append(f"| {suite}, {version} | {outcomes.total()} | {' | '.join(map(str, numbers))} |")
    lines += ["", f"| script | outcome | Linux {release} | reason |", "|---|---|---|---|"]
    for shown, pair in _rows(pairs, lambda it: (it.ours.outcome, it.kernel.outcome, it.why)):
        lines.append(f"| {shown} | {pair.ours.outcome} | {pair.kernel.outcome} | {pair.why} |")
    lines += ["", f"## Where Linux {release} departs", "", "| script | packetdrill's message |", "|---|---|"]
    failed = [it for it in pairs if it.kernel.differs]
    for shown, pair in _rows(failed, lambda it: it.kernel.complaint):
        lines.append(f"| {shown} | {_cell(pair.kernel.complaint)} |")
    return "\n".join(lines) + "\n"


def _rows(pairs: Sequence[Pair], seen: Callable[[Pair], object]) -> Iterator[tuple[str, Pair]]:
    """One of each script, or one of each IP version where what is seen differs; with the name to show."""
    for script in dict.fromkeys(it.ours.script for it in pairs):
        of = [it for it in pairs if it.ours.script == script]
        same = len({seen(it) for it in of}) == 1
        for pair in of[:1] if same else of:
            yield (script if same else f"{script}, {pair.ours.version}"), pair


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
