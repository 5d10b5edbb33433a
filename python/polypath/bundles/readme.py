"""The README of a bundle, for a reviewer."""

from __future__ import annotations

from collections.abc import Sequence

from polypath import _core
from polypath.bundles import layout
from polypath.bundles.results import Result
from polypath.results.phrases import counted

#: Runs whose hashes it shows; bundle.json and the manifests have all.
_SHOWN = 20


def text(name: str, description: str, file: str, results: Sequence[Result]) -> str:
    """In Markdown."""
    lines = [f"# {name}", ""]
    if description:
        lines += [description, ""]
    lines += [
        "This bundle has results of Polypath, a multipath transport lab, and everything that made them. One command",
        "runs all of it again, and says hash by hash what came out the same:",
        "",
        "```sh",
        f"polypath rerun {file}",
        "```",
        "",
        f"The results were made with Polypath {_core.version()}. `{layout.ENVIRONMENT}` has the other versions.",
        "",
        "| where | what |",
        "|---|---|",
        f"| `{layout.RESULTS}/` | the folders of results, each with its scenario, plan, inputs and manifest |",
        f"| `{layout.TABLES}/` | their tables as CSV |",
        f"| `{layout.INDEX}` | the SHA-256 of every file |",
        f"| `{layout.CRATE}` | the description as an RO-Crate 1.2 |",
        "",
        "| result | scenario | engine | runs |",
        "|---|---|---|---|",
        *(f"| `{each.name}` | {_cell(each.scenario)} | {each.engine} | {len(each.runs)} |" for each in results),
        "",
    ]
    runs = [(each, run) for each in results for run in each.runs]
    lines += ["| run | SHA-256 of the recording |", "|---|---|"]
    for each, run in runs[:_SHOWN]:
        place = each.name if run.name == "." else f"{each.name}/{run.name}"
        lines.append(f"| `{_cell(place)}` | `{run.manifest.recording_sha256}` |")
    if len(runs) > _SHOWN:
        lines += ["", f"The manifests have those of {counted(len(runs) - _SHOWN, 'more run')}."]
    return "\n".join(lines) + "\n"


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("`", "'")
