"""The comparison of two engines over the catalogue of scenarios: `polypath compare --all`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from polypath.cli import agreement, contenders
from polypath.cli.console import out
from polypath.cli.errors import DONE, MISSED
from polypath.fidelity import Entry, catalogue
from polypath.results.fidelity import OFF, Row, Verdict, rows, verdict
from polypath.results.files import require_writable, write_text


@dataclass(frozen=True)
class Outcome:
    """A scenario of the catalogue and what came of it."""

    entry: Entry
    description: str
    rows: Sequence[Row]

    @property
    def verdict(self) -> Verdict:
        return verdict(self.rows)


def run(base: str, other: str, markdown: Path | None) -> int:
    """Holds engine `base` against `other`; exit code 1 on a difference whose cause the catalogue does not state."""
    if markdown is not None:
        require_writable(markdown.parent)
    made = {name: contenders.get(name) for name in (base, other)}
    reference = _reference(base, other)
    outcomes = []
    for entry in catalogue():
        if entry.reference != reference:
            continue
        recordings = {
            name: [
                agreement.recorded(one.engine, f"{entry.name} on {name}", plan)
                for plan in entry.plans(one.settings or entry.polypath)
            ]
            for name, one in made.items()
        }
        outcome = Outcome(entry, entry.scenario().description or "", rows(recordings[base], recordings[other]))
        outcomes.append(outcome)
    _show(outcomes, base, other)
    if markdown is not None:
        write_text(markdown, page(outcomes, base, other))
    return MISSED if any(outcome.verdict == OFF and not outcome.entry.cause for outcome in outcomes) else DONE


def _reference(base: str, other: str) -> str:
    """The reference of the entries to run."""
    return contenders.NOQ if contenders.NOQ in (base, other) else "linux"


def _show(outcomes: Sequence[Outcome], base: str, other: str) -> None:
    agreement.show("scenario", [(outcome.entry.name, outcome.rows) for outcome in outcomes], base, other)
    for outcome in outcomes:
        if outcome.verdict == OFF and outcome.entry.cause:
            out.print(f"{escape(outcome.entry.name)}: {escape(' '.join(outcome.entry.cause.split()))}")
    out.print(_count(outcomes))


def _count(outcomes: Sequence[Outcome]) -> str:
    return agreement.count("scenarios", [outcome.verdict for outcome in outcomes])


_KERNEL = """# Fidelity: the simulator beside the kernel

The same scenarios, in the profile `linux`, on the simulator and on the upstream kernel in virtual time. The scenarios
are in `python/polypath/fidelity`; this page was written by

    polypath compare --all --markdown docs/fidelity.md

A figure is the mean over the runs given, with the same plans on both engines, whose random losses still differ. Where
one choice decides a whole figure, the runs differ in a size or a time, and the means are of the distribution. Nothing
is tuned for a scenario; a difference is reported as one, with its cause where it is known. Where neither engine has a
figure nothing is compared; where some runs have none, how many have one is compared, and the others' figures.
"""

_NOQ = """# Fidelity: two endpoints of QUIC side by side

The same scenarios in the simulator, once with Polypath's own endpoint on every host and once with noq-proto 1.4, an
implementation of QUIC and Multipath QUIC by others, which runs there in virtual time with real TLS and packets. The
scenarios are in `python/polypath/fidelity`; this page was written by

    polypath compare --all --engines sim,noq --markdown docs/fidelity-noq.md

A figure is the mean over the runs given, with the same seeds on both, whose random losses still meet other packets.
Nothing is tuned for a scenario; a difference is reported as one, with its cause where it is known. What noq does
otherwise by its own rules is in [the model](model.md).

Congestion control is NewReno, and buffers are the same on both. Acknowledgements of noq leave on the open path of
lowest id, here the fastest; Polypath's endpoint does the same here (`ack_path = "fastest"`), not by default. A path
held back by its pacer counts as full, as in noq (`waits_for_pacer = false`).

`mpquic-failover` differs by a rule of Polypath's. A path whose probes stay unanswered twice leaves what it carries to
the others, and gets probes alone until one is answered, which may be a probe timeout after the link is back. noq never
takes a path out of use: the path is back sooner and carries more, and the transfer takes longer.
"""


def page(outcomes: Sequence[Outcome], base: str, other: str) -> str:
    """The outcome as Markdown."""
    head = _NOQ if _reference(base, other) == contenders.NOQ else _KERNEL
    lines = [head, f"{_count(outcomes)}.", ""]
    compared = [
        ((f"`{outcome.entry.name}`", outcome.description, str(outcome.entry.seeds)), outcome.rows)
        for outcome in outcomes
    ]
    lines += agreement.markdown({"scenario": "---", "": "---", "runs": "---:"}, compared, base, other)
    known = [outcome for outcome in outcomes if outcome.verdict == OFF and outcome.entry.cause]
    if known:
        lines += ["", "## Where they differ", ""]
        lines += [f"- `{outcome.entry.name}`: {' '.join(outcome.entry.cause.split())}" for outcome in known]
    return "\n".join(lines) + "\n"
