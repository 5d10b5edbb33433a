"""PNG files of our own encoder hold matplotlib's pixels."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from polypath import plots
from polypath.plots.png import encoded
from polypath.results import Recording


def decoded(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


def test_the_pixels_are_matplotlib_s(recording: Recording) -> None:
    figure = plots.figure(recording, "rate")
    assert figure is not None
    content, reference = io.BytesIO(), io.BytesIO()
    with plots.style():
        plots.write(figure, content)
        FigureCanvasAgg(figure)
        figure.savefig(reference, format="png")
    own, theirs = decoded(content.getvalue()), decoded(reference.getvalue())
    assert own.mode == "RGB"
    assert own.size == theirs.size
    assert np.array_equal(np.asarray(own), np.asarray(theirs.convert("RGB")))
    assert own.info["Software"] == "polypath"
    assert own.info["dpi"] == pytest.approx((150, 150), abs=0.1)


def test_what_is_transparent_stays_so() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (7, 5, 4), np.uint8)
    image = decoded(encoded(pixels, 150, {}))
    assert image.mode == "RGBA"
    assert np.array_equal(np.asarray(image), pixels)


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1)])
def test_any_size_is_read_back(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (*size, 4), np.uint8)
    pixels[:, :, 3] = 255
    image = decoded(encoded(pixels, 150, {"Software": "x"}))
    assert image.mode == "RGB"
    assert np.array_equal(np.asarray(image), pixels[:, :, :3])
    assert image.info["dpi"] == pytest.approx((150, 150), abs=0.1)
