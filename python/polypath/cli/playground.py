"""polypath playground: labs and scenarios as a page that contains the simulator."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from polypath import _core, labs
from polypath.cli import complete, jobs, progress
from polypath.cli.console import err, warn
from polypath.cli.errors import DONE, InputError
from polypath.cli.options import Settings
from polypath.playground import Preset, command, html, of_lab, of_scenario, require_built
from polypath.report import is_unchanged
from polypath.results.files import write_text

_USUAL: Final = "playground.html"


def playground(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LAB|SCENARIO.toml..]",
            help="The content of the page. Default: every lab that needs neither a kernel nor Python.",
            show_default=False,
            autocompletion=complete.targets,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page to write.")] = Path(_USUAL),
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    settings: Settings = None,
) -> int:
    """Write labs and scenarios as a page that contains the simulator.

    The page has controls for rates, delays, losses, queues, buffers, schedulers, path managers, congestion controls and
    transports. A change runs at once, in the page, with the same bytes as `polypath run`. The page needs no network.

    Examples: `polypath playground --open`, `polypath playground aggregation blest`,
    `polypath playground mine.toml --out mine.html`.
    """
    require_built()
    if out.is_symlink() or (out.exists() and not is_unchanged(out)):
        raise InputError(f"{out} exists and is not an unchanged page; name another file with --out, or remove it")
    given = targets or [name for name in labs.names() if any(of_lab(labs.get(name)))]
    presets = [preset for target in given for preset in _of(target, settings or ())]
    with progress.points("playground", "presets") as told:
        text = html(presets, _core.version(), lambda done: told(done, len(presets)))
    write_text(out, text)
    err.print(f"playground with {len(presets)} presets in {out}", markup=False)
    if show and not webbrowser.open(out.resolve().as_uri()):
        warn(f"no browser was found; open {out}")
    return DONE


def _of(target: str, settings: Sequence[str]) -> Iterator[Preset]:
    if (lab := labs.find(target)) is None:
        for job in jobs.of_target(target, (), settings, None):
            yield of_scenario(job.scenario, command(target, settings=settings))
        return
    if settings:
        raise InputError("--set is of scenario files; a lab's settings are changed in the page")
    found = list(of_lab(lab))
    if not found:
        raise InputError(
            f"the playground cannot run '{target}': each of its runs varies something, is too large, or has Python"
        )
    yield from found
