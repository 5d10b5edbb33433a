"""Names of figures that were settled: what a scenario, a claim or a stored table may still say."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Final

#: Names that were settled, with or without the unit, and what they are now.
OLD: Final[Mapping[str, str]] = {
    "mean_goodput": "goodput_mean",
    "mean_throughput": "throughput_mean",
    "completion_mean": "flow_mean",
    "blocked_s": "blocked_time",
    "blocked_kb": "blocked_data",
    "video": "video_rate",
    "video_mbps": "video_rate_mbps",
    "startup": "video_startup",
    "startup_s": "video_startup_s",
    "stalled": "video_stalled",
    "stalled_s": "video_stalled_s",
}


def settled(name: str) -> str:
    """The present name of a measure or a column; for an old one with a warning that tells it."""
    if name not in OLD:
        return name
    now = OLD[name]
    warnings.warn(f"the measure '{name}' is now called '{now}'", FutureWarning, stacklevel=2)
    return now
