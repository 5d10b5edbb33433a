"""The validation page of the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polypath.labs import Lab
from polypath.labs.expectations import Row

_HEAD = """# Validation

How the labs' figures compare with the published ones.

`polypath check` measured every figure below, with the scenarios, settings and seeds of the catalogue. The same
command prints the same figures anywhere. A miss is reported as a miss, with its cause if known.

[Behaviour](behaviour.md) has every packet scheduler and congestion control on six fixed networks of two paths.
[Fidelity](fidelity.md) and [the labs beside the kernel](fidelity-labs.md) compare with the upstream kernel.
"""


def validation_page(labs: Mapping[str, Lab], found: Mapping[str, Sequence[Row]]) -> str:
    """The result of a check as Markdown."""
    parts = [_HEAD]
    for name, rows in found.items():
        lab = labs[name]
        parts.append(f"## {lab.title}\n\n{lab.question}\n\nLab `{name}`; source: {lab.origin}\n")
        parts.append("| expectation | published | bound | measured | |\n|---|---|---|---|---|")
        for row in rows:
            cells = (row.name, row.published, row.bound, row.measured, "ok" if row.ok else "**miss**")
            parts.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
        parts.append("")
        known = {expectation.name: expectation.cause for expectation in lab.expectations}
        parts.extend(
            f"Known miss, {row.name}: {known[row.name]}\n" for row in rows if not row.ok and known.get(row.name)
        )
    return "\n".join(parts).rstrip() + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
