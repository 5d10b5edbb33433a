"""How Sphinx builds the documentation."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402
import laboratories  # noqa: E402
import records  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

from polypath import labs  # noqa: E402

generate.write(HERE / "reference")
laboratories.draw(HERE / "reference" / laboratories.FOLDER, labs.names())
records.publish(HERE)

project = "Polypath"
copyright = "the Polypath authors"
extensions = ["myst_parser"]
exclude_patterns = ["_build", "reference/instructions.md", "queues/text.md"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
# [a lab](playground:lab=aggregation%2Fmptcp) leads into the page that `make docs` builds.
myst_url_schemes = {"http": None, "https": None, "mailto": None, "playground": {"url": "try.html#{{path}}"}}
html_theme = "furo"
html_title = "Polypath"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
highlight_language = "none"


def _with_published_records(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = records.published(source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", _with_published_records)
