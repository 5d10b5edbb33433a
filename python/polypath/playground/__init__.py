"""The playground: labs and scenarios as one page that contains the simulator.

`document.html(presets)` is the file, and `document.live(page, presets)` a report whose runs can be changed. Their
programs are `report/playground.html` and `report/live.html`, and their simulator is `simulator.wasm`; `make web` builds
them from `web/` and `crates/web`.
"""

from polypath.playground.document import PlaygroundError, html, live, require_built
from polypath.playground.presets import Preset, command, of_lab, of_scenario

__all__ = ["PlaygroundError", "Preset", "command", "html", "live", "of_lab", "of_scenario", "require_built"]
