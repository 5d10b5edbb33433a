"""Writing a run to its results folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from polypath.cli import figures
from polypath.cli.console import warn
from polypath.cli.figures import Drawing
from polypath.results import OutputError, Recording, layout
from polypath.results.folder import Folder
from polypath.results.recording import Written


def save(recording: Recording, scenario: Written | None, held: Folder, staged: Path) -> None:
    """Writes everything that `polypath run --out` leaves but figures; captures are in `staged`. Raises OutputError.

    What was captured has no scenario.
    """
    replace(recording, scenario=scenario).commit(held, staged)


@contextmanager
def figures_last(directory: Path, what: str = "figures") -> Iterator[None]:
    """Draws figures, or a comparison, last. If that is interrupted, a message says that the rest of the result is
    complete.
    """
    try:
        yield
    except KeyboardInterrupt:
        warn(f"the result in {directory} is complete but has no {what}")
        raise
    except OSError as error:
        reason = error if isinstance(error, OutputError) else error.strerror or error
        raise OutputError(f"the result in {directory} is complete but has no {what}: {reason}") from error


def draw(
    recording: Recording,
    held: Folder,
    wanted: Drawing,
    shown: Callable[[int, int], None] = lambda done, total: None,
) -> list[str]:
    """Adds figures to the result that `save` wrote; those asked for that it has nothing for. Raises OutputError."""
    figures.ready()
    from polypath import plots

    names = figures.of_runs(wanted)
    staged = held.stage() / layout.PLOTS
    saved = plots.save_all(
        recording,
        staged,
        plots.USUAL if names is None else names,
        wanted.form,
        wanted.look,
        smooth_s=wanted.smooth_s,
        progress=shown,
    )
    held.commit(keep=True)
    return [name for name in names or () if staged / plots.file_name(name, wanted.form) not in saved]
