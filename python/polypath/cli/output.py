"""Writing a run to its results directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polypath.results import OutputError, Recording, layout, summary
from polypath.results.files import PARTIAL, write_text
from polypath.results.summary import to_json


@contextmanager
def capture_directory(directory: Path) -> Iterator[Path]:
    """A folder for captures being written; nothing of it is left when the block ends."""
    folder = directory / f".{layout.CAPTURE}.{os.getpid()}{PARTIAL}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    except OSError as error:
        raise OutputError(f"cannot write captures: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def save(recording: Recording, scenario_toml: str, captures: Path | None, directory: Path, plots: bool) -> None:
    """Writes everything that `polypath run --out` leaves. Raises OutputError."""

    def extras() -> None:
        write_text(directory / layout.SCENARIO, scenario_toml)
        write_text(directory / layout.SUMMARY, to_json(summary(recording)))
        if captures is not None:
            _move(captures, directory / layout.CAPTURE)
        if plots:
            from polypath.plots import save_all

            save_all(recording, directory / layout.PLOTS)

    recording.save(directory, extras)


def _move(source: Path, target: Path) -> None:
    try:
        target.mkdir(exist_ok=True)
        for path in sorted(source.iterdir()):
            path.replace(target / path.name)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror or error}") from error
