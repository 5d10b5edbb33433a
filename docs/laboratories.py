"""The catalogue of labs: a page each, of its README, topology, runs and files, and a table of all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from polypath import labs, plots
from polypath.cli import jobs
from polypath.plots.style import Look

FOLDER = "labs"
#: What a lab's folder has that is shown as text, and as what it is highlighted.
LANGUAGES = {".toml": "toml", ".py": "python"}


def page() -> str:
    """The table of labs, which leads to their pages."""
    found = labs.catalogue()
    rows = [
        f"| [`{name}`]({FOLDER}/{name}.md) | {_cell(lab.title)} | {_cell(lab.question)} |"
        for name, lab in found.items()
    ]
    return "\n".join(
        [
            "# Labs",
            "",
            "`polypath run NAME` runs a lab, `polypath check NAME` compares with what is published of it, and"
            " `polypath show NAME` says here what its page says.",
            "",
            "| lab | title | question |",
            "| --- | --- | --- |",
            *rows,
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *(f"{FOLDER}/{name}" for name in found),
            "```",
            "",
        ]
    )


def pages() -> dict[str, str]:
    """The page of each lab, by its file's name."""
    return {f"{name}.md": _lab(lab) for name, lab in labs.catalogue().items()}


def draw(directory: Path, names: Iterable[str]) -> None:
    """Draws the networks of labs into a folder, as their pages show them."""
    for name in names:
        lab = labs.get(name)
        first = jobs.of_lab(lab, [lab.runs[0].name], [], None)[0]
        plots.save("topology", first.nothing_yet, directory / f"{name}.svg", Look(titles=False))


def _lab(lab: labs.Lab) -> str:
    title, text = lab.readme.split("\n", 1)
    files = [path for path in sorted(lab.folder.iterdir()) if path.suffix in LANGUAGES]
    parts = [
        title,
        f"![Topology of {lab.name}]({lab.name}.svg)",
        text.replace("](../../../../docs/", "](../../").strip(),
        "## Runs",
        _runs(lab),
        *_questions(lab),
        f"Source: {lab.source}.",
        "## Files",
        *(f"`{path.name}`:\n\n```{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}```" for path in files),
    ]
    return "\n\n".join(parts) + "\n"


def _runs(lab: labs.Lab) -> str:
    one = len(lab.runs) == 1
    rows = [
        f"| {'' if one else f'`{run.name}`'} | {_settings(run.settings)} | {_settings(run.vary)} |" for run in lab.runs
    ]
    return "\n".join(["| run | settings | varied |", "| --- | --- | --- |", *rows])


def _questions(lab: labs.Lab) -> list[str]:
    """What a reader should be able to explain; the hints are folded."""
    if not lab.questions:
        return []
    asked = [f"{number}. {each.question}" for number, each in enumerate(lab.questions, start=1)]
    hints = [f"{number}. {each.hint}" for number, each in enumerate(lab.questions, start=1)]
    folded = ["<details>", "<summary>Hints</summary>", "", *hints, "", "</details>"]
    return ["## Could you explain?", "\n".join(asked), "\n".join(folded)]


def _settings(given: list[str]) -> str:
    return "<br>".join(f"`{_cell(each)}`" for each in given)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
