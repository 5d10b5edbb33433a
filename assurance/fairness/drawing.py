"""The heat map: shares of every controller beside every other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from .pairs import CONTROLS, QUEUES, ROUND_TRIPS

Shares = Mapping[tuple[int, float, str, str], float]


def draw(shares: Shares, file: Path) -> None:
    """A panel for each round trip and queue; a field has the share of the row's controller beside the column's."""
    figure, panels = pyplot.subplots(
        len(ROUND_TRIPS), len(QUEUES), figsize=(13, 9), sharex=True, sharey=True, layout="constrained"
    )
    image = None
    for line, round_trip in zip(panels, ROUND_TRIPS, strict=True):
        for panel, queue in zip(line, QUEUES, strict=True):
            fields = [
                [shares.get((round_trip, queue, own, beside), float("nan")) for beside in CONTROLS] for own in CONTROLS
            ]
            image = panel.imshow(fields, vmin=0, vmax=1, cmap="RdBu")
            panel.set_title(f"{round_trip} ms, queue of {queue:g} products", fontsize=10)
            panel.set_xticks(range(len(CONTROLS)), CONTROLS, rotation=90, fontsize=8)
            panel.set_yticks(range(len(CONTROLS)), CONTROLS, fontsize=8)
            for row, values in enumerate(fields):
                for column, value in enumerate(values):
                    if value == value:
                        dark = abs(value - 0.5) > 0.3
                        panel.text(
                            column,
                            row,
                            f"{100 * value:.0f}",
                            ha="center",
                            va="center",
                            fontsize=6,
                            color="white" if dark else "black",
                        )
    if image is not None:
        figure.colorbar(image, ax=panels, label="share of the row's controller beside the column's", shrink=0.7)
    figure.savefig(file, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
