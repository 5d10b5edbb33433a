"""The notebook runs from its first cell to its last, and shows what it is about."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "two-paths.ipynb"


def shown(cell: Any) -> str:
    """The HTML of a cell's output, else its text."""
    data = cell["outputs"][-1]["data"]
    return str(data.get("text/html", data["text/plain"]))


@pytest.mark.filterwarnings("ignore")
def test_the_notebook(tmp_path: Path) -> None:
    notebook: Any = nbformat.reads(NOTEBOOK.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    scenario, run, table, pandas, rate, beginning, sweep, compared, report = [
        cell for cell in notebook["cells"] if cell["cell_type"] == "code"
    ]
    assert "<b>aggregation</b>" in shown(scenario)
    assert "data:image/svg+xml;base64," in shown(run)
    assert "eth1" in shown(table)
    assert "srtt_us" in shown(pandas)
    for figure in (rate, beginning):
        assert "image/png" in figure["outputs"][-1]["data"]
    assert "goodput (Mbps)" in shown(sweep)
    assert "p_holm" in shown(compared)
    assert shown(report).startswith("<iframe srcdoc=")
