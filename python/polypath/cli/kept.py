"""The runs of an engine, kept in a folder, so that a comparison can be repeated without them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from polypath.results import Recording, folder
from polypath.results.files import OutputError
from polypath.scenario import Plan


class Kept:
    """A folder of Recordings, one of each plan that an engine of these versions has run; without it nothing is kept."""

    def __init__(self, directory: Path | None, versions: Mapping[str, str]) -> None:
        self._directory = directory
        self._versions = versions

    def find(self, name: str, plan: Plan) -> Recording | None:
        """The whole run of this plan; None where there is none, or where a file of it was changed."""
        place = self._place(name, plan)
        if place is None or not folder.intact(place, folder.RUN):
            return None
        try:
            recording = Recording.load(place)
        except OutputError:
            return None
        made = recording.metadata
        same = made.plan_sha256 == plan.sha256() and self._versions.items() <= made.versions.items()
        return recording if same and not made.interrupted else None

    def keep(self, name: str, plan: Plan, recording: Recording) -> None:
        """Raises OutputError."""
        place = self._place(name, plan)
        if place is not None:
            recording.save(place)

    def _place(self, name: str, plan: Plan) -> Path | None:
        return None if self._directory is None else self._directory / name / plan.sha256()[:16]
