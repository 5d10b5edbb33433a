"""The playback of a video: rates, stalls, and the buffer (the table `chunks`, docs/video.md)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from polypath.results import metrics
from polypath.results.metrics import SECOND
from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.plan.types import VideoWork


@dataclass(frozen=True)
class Stall:
    """The picture stood still between two times in ns, to the end of what is seen where nothing more was shown."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Playback:
    """The playback of a video until the run's end; if its connection failed, until the scenario's end."""

    #: From the first request to the first picture, in ns; None: none was shown.
    startup_ns: int | None
    stalls: Sequence[Stall]
    #: Mean over the segments shown, in bit/s; None: none was.
    rate_bps: float | None
    #: How often one that was shown had another rate than the one before.
    switches: int
    #: Segments whose play began before that; all, where the whole video came.
    shown: int

    @property
    def stalled_ns(self) -> int | None:
        """How long the picture stood still after it began; None: it never did."""
        return None if self.startup_ns is None else sum(each.end_ns - each.begin_ns for each in self.stalls)


def playback(recording: Recording, of: metrics.Connection) -> Playback | None:
    """None for an application that is no video."""
    work = _work(recording, of)
    if work is None:
        return None
    end, segment = _end(recording, of), int(work["segment_ns"])
    chunks = _chunks(recording, of)
    settled = [each for each in chunks if each["played_ns"] is not None]
    whole = work["segments"] == len(settled)
    shown = settled if whole else [each for each in settled if each["played_ns"] < end]
    rates = [each["rate_bps"] for each in shown]
    return Playback(
        startup_ns=shown[0]["played_ns"] - chunks[0]["asked_ns"] if shown else None,
        stalls=list(_stalls(shown, segment, end, whole=whole)),
        rate_bps=sum(rates) / len(rates) if rates else None,
        switches=sum(before != after for before, after in pairwise(rates)),
        shown=len(shown),
    )


def buffered(recording: Recording, of: metrics.Connection) -> tuple[list[int], list[float]]:
    """Times in ns, and the seconds of video that are there to play: a line between the points."""
    work = _work(recording, of)
    end, segment = _end(recording, of), 0 if work is None else int(work["segment_ns"])
    chunks = [each for each in _chunks(recording, of) if each["arrived_ns"] is not None]
    arrivals = [each["arrived_ns"] for each in chunks]
    plays = [each["played_ns"] for each in chunks if each["played_ns"] is not None]
    turns = {at for begin in plays for at in (begin, begin + segment) if at < end}
    times: list[int] = []
    depths: list[float] = []
    for at in sorted(turns | set(arrivals) | {end}):
        begun = bisect_left(plays, at)
        played = (begun - 1) * segment + min(at - plays[begun - 1], segment) if begun else 0
        # before and after what comes at that instant
        for come in dict.fromkeys((bisect_left(arrivals, at), bisect_right(arrivals, at))):
            times.append(at)
            depths.append((come * segment - played) / SECOND)
    return times, depths


def asked(recording: Recording, of: metrics.Connection) -> tuple[list[int], list[float]]:
    """When segments were asked for, in ns, and their rates in bit/s."""
    chunks = _chunks(recording, of)
    return [each["asked_ns"] for each in chunks], [float(each["rate_bps"]) for each in chunks]


def _end(recording: Recording, of: metrics.Connection) -> int:
    """A run may end with a connection that failed; the picture stands still from then on all the same."""
    return max(recording.metadata.end_ns, of.until_ns)


def _stalls(shown: Sequence[dict[str, Any]], segment: int, end: int, *, whole: bool) -> Iterator[Stall]:
    begins = [each["played_ns"] for each in shown]
    for before, after in pairwise(begins):
        if after > before + segment:
            yield Stall(before + segment, after)
    if begins and not whole and begins[-1] + segment < end:
        yield Stall(begins[-1] + segment, end)


def _work(recording: Recording, of: metrics.Connection) -> VideoWork | None:
    applications = recording.plan.get("applications", [])
    if of.application >= len(applications):
        return None
    work = applications[of.application]["work"]
    return work if work["kind"] == "video" else None


def _chunks(recording: Recording, of: metrics.Connection) -> list[dict[str, Any]]:
    rows = recording.table("chunks")
    return rows.filter(rows["application"] == of.application).sort("index").to_dicts()
