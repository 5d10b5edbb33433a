"""The playground: labs and scenarios as one page that contains the simulator.

`document.html(presets)` is the file. Its program is `report/playground.html`, and its simulator `simulator.wasm`; `make
web` builds them from `web/` and `crates/web`.
"""

from polypath.playground.document import PlaygroundError, html, require_built
from polypath.playground.presets import Preset, of_lab, of_scenario

__all__ = ["PlaygroundError", "Preset", "html", "of_lab", "of_scenario", "require_built"]
