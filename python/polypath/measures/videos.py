"""What somebody sees of a video."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from polypath.measures.measure import MBPS, NUMBER, SECONDS, Figure, Measure
from polypath.results import metrics, video
from polypath.results.metrics import Connection
from polypath.results.recording import Recording
from polypath.results.video import Playback


def _is_video(recording: Recording, of: Connection) -> bool:
    return video.playback(recording, of) is not None


def _of_video(row: Mapping[str, Any]) -> bool:
    return bool(row["application"] == "video")


def _seen(of: Callable[[Playback], Figure]) -> Callable[[Recording, Connection], Figure]:
    def compute(recording: Recording, connection: Connection) -> Figure:
        found = video.playback(recording, connection)
        if found is None:
            raise metrics.MetricError(f"'{connection.name}' is no video")
        return of(found)

    return compute


FIGURES = (
    Measure(
        "video_rate",
        MBPS,
        "video",
        "mean rate of the video shown",
        "mean rate of the segments of a video that were shown",
        _seen(lambda found: found.rate_bps),
        source="docs/video.md",
        heading="video Mbps",
        words="video",
        kept=("video", "mbps"),
        beside=True,
        applies=_is_video,
        more_is_better=True,
        unfinished=_of_video,
        beyond=-math.inf,
    ),
    Measure(
        "video_startup",
        SECONDS,
        "video",
        "time to the first picture",
        "time from a video's first request to its first picture",
        _seen(lambda found: found.startup_ns),
        source="docs/video.md",
        heading="startup s",
        words="first picture",
        kept=("video", "startup_s"),
        beside=True,
        applies=_is_video,
        unfinished=_of_video,
    ),
    Measure(
        "video_stalled",
        SECONDS,
        "video",
        "time that the picture stood still",
        "how long a video's picture stood still after it began",
        _seen(lambda found: found.stalled_ns),
        source="docs/video.md",
        heading="stalled s",
        words="stalled",
        kept=("video", "stalled_s"),
        beside=True,
        applies=_is_video,
        unfinished=_of_video,
    ),
    Measure(
        "video_switches",
        NUMBER,
        "video",
        "changes of the video's rate",
        "how often a video went on at another rate",
        _seen(lambda found: found.switches),
        source="docs/video.md",
        heading="switches",
        kept=("video", "switches"),
    ),
)
