"""What a results directory holds, and clearing it of an earlier run."""

from __future__ import annotations

from pathlib import Path

from polypath.results.files import OutputError

MANIFEST = "manifest.json"
PLAN = "plan.json"
SCENARIO = "scenario.toml"
SUMMARY = "summary.json"
EVENTS = "events"
SERIES = "series"
CAPTURE = "capture"
PLOTS = "plots"

_OWN_FILES = (MANIFEST, PLAN, SCENARIO, SUMMARY, f"{EVENTS}.parquet")
_OWN_FOLDERS = ((SERIES, "*.parquet"), (CAPTURE, "*.pcapng"), (PLOTS, "*.png"))


def table_path(directory: Path, name: str) -> Path:
    return directory / f"{name}.parquet" if name == EVENTS else directory / SERIES / f"{name}.parquet"


def clear(directory: Path) -> None:
    """Removes the results of an earlier run, which a manifest tells; leaves any other directory as it is."""
    if not (directory / MANIFEST).exists():
        return
    owned = [directory / name for name in _OWN_FILES]
    for folder, pattern in _OWN_FOLDERS:
        owned += sorted((directory / folder).glob(pattern))
    try:
        for path in owned:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot replace {error.filename}: {error.strerror or error}") from error
