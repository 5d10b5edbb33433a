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
from polypath.results.files import require_writable, write_text
from polypath.statistics.fidelity import OFF, Row, Verdict, rows, verdict


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
        outcome = Outcome(entry, _description(entry), rows(recordings[base], recordings[other]))
        outcomes.append(outcome)
    _show(outcomes, base, other)
    if markdown is not None:
        write_text(markdown, page(outcomes, base, other))
    return MISSED if any(outcome.verdict == OFF and not outcome.entry.cause for outcome in outcomes) else DONE


def _description(entry: Entry) -> str:
    """What the scenario is, and what is changed in it."""
    described = entry.scenario().description or ""
    changed = ", ".join(f"`{setting}`" for setting in entry.settings)
    return f"{described.removesuffix('.')}; {changed}" if changed else described


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

How close the simulator's profile `linux` comes to the upstream kernel, scenario by scenario.

Each scenario runs on the simulator and on the kernel in virtual time. The scenarios are in `python/polypath/fidelity`.
This page is written by

    polypath compare --all --markdown assurance/records/fidelity.md

- A figure is the mean over the given number of runs.
- Both engines run the same plans, but their random losses differ.
- If one choice decides a whole figure, the runs differ in a size or a time. The means are then those of the
  distribution.
- Nothing is tuned for a scenario. A difference is reported as one, with its cause if known.
- If neither engine has a figure, nothing is compared.
- If only some runs have a figure, their number is compared, and the figures of those runs.
"""

_NOQ = """# Fidelity: two endpoints of QUIC side by side

How close Polypath's QUIC endpoint comes to noq-proto 1.4, an implementation of QUIC and Multipath QUIC by others.

The same scenarios run twice in the simulator: once with Polypath's own endpoint on every host, once with noq-proto.
Each endpoint of noq-proto runs in virtual time with real TLS and packets.
The scenarios are in `python/polypath/fidelity`. This page is written by

    polypath compare --all --engines sim,noq --markdown assurance/records/fidelity-noq.md

- A figure is the mean over the given number of runs.
- Both stacks use the same seeds, but random losses hit different packets.
- Nothing is tuned for a scenario. A difference is reported as one, with its cause if known.
- Congestion control is NewReno, and buffers are the same on both.
- noq acknowledges on the open path of lowest id, here the fastest. Polypath's endpoint does so here
  (`ack_path = "fastest"`), not by default.
- A path held back by its pacer counts as full, as in noq (`waits_for_pacer = false`).

[The model](../../docs/model/noq.md) lists noq's other rules.

`mpquic-failover` differs by a rule of Polypath's. A path with two unanswered probes hands its data to
the others. It then carries only probes until one is answered, perhaps a probe timeout after the link is back.
In noq a path always stays in use. It returns sooner and carries more, so the transfer takes longer.
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
