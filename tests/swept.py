"""What is in the folder of a sweep, to be compared with what is in another."""

from __future__ import annotations

import json
from pathlib import Path

from polypath.results import layout


def contents(out: Path) -> dict[str, bytes]:
    """Every file but figures, lock and journal; of manifests and the index what does not say how long it took."""
    found = {}
    for path in out.rglob("*"):
        if not path.is_file() or path.suffix == ".png" or path.name in (".polypath.lock", layout.JOURNAL):
            continue
        content = path.read_bytes()
        if path.name in (layout.MANIFEST, layout.INDEX):
            told = {**json.loads(content), "wall_s": None}
            if path.name == layout.INDEX:
                told["files"] = None
            content = json.dumps(told).encode()
        found[str(path.relative_to(out))] = content
    return found
