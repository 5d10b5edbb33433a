"""How Sphinx builds the documentation."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402

generate.write(HERE / "reference")

project = "Polypath"
copyright = "the Polypath authors"
extensions = ["myst_parser"]
exclude_patterns = ["_build", "reference/instructions.md"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
html_theme = "pydata_sphinx_theme"
html_title = "Polypath"
html_sidebars = {"**": []}
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_theme_options = {"navbar_end": ["theme-switcher"], "secondary_sidebar_items": ["page-toc"]}
highlight_language = "none"
