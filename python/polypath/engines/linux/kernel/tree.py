"""A source tree with the recipe's patches and files in it, changed as little as possible from build to build."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from polypath.engines.linux.kernel.cache import KernelError, Recipe
from polypath.engines.linux.kernel.source import Source, run

#: Beside the tree: what it was unpacked from, and the files that the recipe put in or changed.
_STATE = "source.json"
_TOUCHED = re.compile(r"^\+\+\+ b/(\S+)", re.MULTILINE)


class Tree:
    """The tree `source` in a work folder; `originals` keeps the files that patches change, as they were."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "source"
        self._originals = folder / "originals"
        self._state = folder / _STATE

    def prepare(self, source: Source, recipe: Recipe) -> bool:
        """Unpacks where needed and applies the recipe; true where the tree is a new one. Raises KernelError."""
        state = self._read()
        fresh = state.get("source") != source.identity or not self.path.is_dir()
        if fresh:
            self._state.unlink(missing_ok=True)
            shutil.rmtree(self._originals, ignore_errors=True)
            source.unpack(self.path)
            state = {}
        added = self._apply(recipe, state.get("added", []))
        self._state.write_text(json.dumps({"source": source.identity, "added": added}) + "\n", encoding="utf-8")
        return fresh

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self._state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def _apply(self, recipe: Recipe, previous: list[str]) -> list[str]:
        touched = sorted({name for patch in recipe.patches() for name in _TOUCHED.findall(patch.read_text("utf-8"))})
        kept = [str(path.relative_to(self._originals)) for path in self._originals.rglob("*") if path.is_file()]
        with tempfile.TemporaryDirectory() as name:
            stage = Path(name)
            for file in sorted({*touched, *kept}):
                self._keep(file)
                (stage / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self._originals / file, stage / file)
            for patch in recipe.patches():
                try:
                    run(["patch", "-p1", "-s", "-F2", "--no-backup-if-mismatch", "-d", name, "-i", str(patch)])
                except KernelError as error:
                    raise KernelError(f"{patch.name} does not apply to this kernel: {error}") from error
            sources = recipe.sources()
            for file, path in sources.items():
                (stage / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, stage / file)
            for path in sorted(stage.rglob("*")):
                if path.is_file():
                    _replace(self.path / path.relative_to(stage), path)
        for gone in set(previous) - set(sources):
            (self.path / gone).unlink(missing_ok=True)
        return sorted(sources)

    def _keep(self, file: str) -> None:
        kept = self._originals / file
        if kept.exists():
            return
        if not (self.path / file).is_file():
            raise KernelError(f"this kernel has no {file}, which a patch changes")
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.path / file, kept)


def _replace(target: Path, new: Path) -> None:
    """Writes only what differs, so that make compiles only what differs."""
    content = new.read_bytes()
    if not target.is_file() or target.read_bytes() != content:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
