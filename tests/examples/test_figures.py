"""The examples in Python do what they say."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_figure_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    found = runpy.run_path(str(EXAMPLES / "figures.py"))
    figure = found["figure"]
    assert isinstance(figure, Figure)
    assert (tmp_path / "backup.pdf").read_bytes().startswith(b"%PDF")
    cdf, rtt, sequence = figure.axes
    assert cdf.get_legend_handles_labels()[1] == ["normal", "backup"]
    assert rtt.get_legend_handles_labels()[1] == [
        "normal, path0",
        "normal, path1",
        "backup, path0",
        "backup, path1, backup",
    ]
    assert sequence.collections
    assert [text.get_text() for text in sequence.texts] == ["path0: 100 % loss"]
