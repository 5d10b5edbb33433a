"""The files that contain the simulator: the playground, and a report whose runs can be changed."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from polypath.errors import PolypathError
from polypath.playground.presets import Preset
from polypath.report import filled, sealed
from polypath.results.palette import PALETTE

_DATA: Final = "<!-- data -->"
_SIMULATOR: Final = "<!-- simulator -->"


class PlaygroundError(PolypathError):
    """The page cannot be made."""


def html(presets: Sequence[Preset], version: str, told: Callable[[int], None] = lambda done: None) -> str:
    """The whole file; `told` is called with the number of presets that are there.

    Raises PlaygroundError without the simulator, ScenarioError for a preset that has no plan.
    """
    require_built()
    found = []
    for each in presets:
        found.append(each.data())
        told(len(found))
    template = files("polypath.report").joinpath("playground.html").read_text(encoding="utf-8")
    data = {"version": version, "palette": list(PALETTE), "presets": found}
    simulator = _packed(_simulator().read_bytes())
    return sealed(template.replace(_DATA, _packed(_json(data))).replace(_SIMULATOR, simulator))


def live(
    page: Mapping[str, Any], presets: Sequence[Preset | None], told: Callable[[int], None] = lambda done: None
) -> str:
    """The whole file of a report that contains the simulator. `presets` has one for each run that can be changed.

    Raises PlaygroundError without the simulator, ScenarioError for a preset that has no plan.
    """
    require_built()
    found = []
    for each in presets:
        found.append(None if each is None else each.data())
        told(len(found))
    simulator = _packed(_simulator().read_bytes())
    return filled("live.html", page, {"presets": _packed(_json(found)), "simulator": simulator})


def require_built() -> None:
    """Raises PlaygroundError if this installation does not have the simulator for browsers."""
    if not _simulator().is_file():
        raise PlaygroundError("this installation has no simulator for browsers; build it with: make web")


def _simulator() -> Any:
    return files("polypath.playground").joinpath("simulator.wasm")


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _packed(data: bytes) -> str:
    """Compressed, in base64; the same bytes give the same text."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")
