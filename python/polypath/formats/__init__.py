"""Other tools' files: read into scenarios, and written from results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from polypath.errors import PolypathError
from polypath.results import Recording, layout
from polypath.results.files import write_csv


class ExportError(PolypathError, ValueError):
    """The result lacks what the format is made of; the message is one line."""


@dataclass(frozen=True)
class Exporter:
    """What writes a run in a format."""

    #: From the recording, its results folder and the application that is meant (None: the only one) to a new file, or
    #: into an empty folder; returns how many it wrote of `what`. Raises ExportError.
    write: Callable[[Recording, Path, Path, str | None], int]
    #: One of them.
    what: str
    #: Whether it fills a folder.
    folder: bool = False
    #: Whether it writes one application of several.
    one: bool = False


def _netanim(recording: Recording, directory: Path, out: Path, _: str | None) -> int:
    from polypath.formats import netanim
    from polypath.formats.pcapng import CaptureError

    try:
        with out.open("w", encoding="utf-8") as file:
            return netanim.write(recording, directory / layout.CAPTURE, file)
    except CaptureError as error:
        raise ExportError(str(error)) from error


def _qvis(recording: Recording, directory: Path, out: Path, _: str | None) -> int:
    from polypath.formats import qvis

    try:
        return qvis.write(recording, directory, out)
    except qvis.QlogError as error:
        raise ExportError(str(error)) from error


def _xplot(recording: Recording, directory: Path, out: Path, _: str | None) -> int:
    from polypath.formats import xplot

    try:
        return xplot.write(recording, out)
    except xplot.SegmentsError as error:
        raise ExportError(f"{directory}: {error}") from error


def _csv(recording: Recording, directory: Path, out: Path, _: str | None) -> int:
    for name, table in recording.tables.items():
        write_csv(out / f"{name}.csv", table)
    return len(recording.tables)


def _iperf3(recording: Recording, directory: Path, out: Path, application: str | None) -> int:
    from polypath.formats import iperf3

    try:
        return iperf3.write(recording, out, application)
    except iperf3.ShapeError as error:
        raise ExportError(f"{directory}: {error}") from error


EXPORTERS: Mapping[str, Exporter] = {
    "csv": Exporter(_csv, "table", folder=True),
    "iperf3": Exporter(_iperf3, "stream", one=True),
    "netanim": Exporter(_netanim, "packet"),
    "qvis": Exporter(_qvis, "file", folder=True),
    "xplot": Exporter(_xplot, "graph", folder=True),
}
"""By name. Only what is asked for is imported."""
