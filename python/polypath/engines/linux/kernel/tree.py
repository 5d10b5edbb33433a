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
#: Beside the tree: the files of another folder that are in it.
_OVER = "over.txt"
_CREATED = re.compile(r"^--- /dev/null\n\+\+\+ b/(\S+)", re.MULTILINE)
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
        self.apply(recipe, source.identity)
        return fresh

    def apply(self, recipe: Recipe, identity: str) -> None:
        """Applies the recipe to a tree that is there, of a source of that identity. Raises KernelError."""
        added = self._apply(recipe, self._read().get("added", []))
        self._state.write_text(json.dumps({"source": identity, "added": added}) + "\n", encoding="utf-8")

    def identity(self) -> str | None:
        """That of the source in the tree; None: there is no whole one."""
        found = self._read().get("source")
        return found if isinstance(found, str) and self.path.is_dir() else None

    def upstream(self, file: str) -> Path:
        """Where a file is as the source has it: beside the tree if the recipe changed it."""
        kept = self._originals / file
        return kept if kept.exists() else self.path / file

    def lay_over(self, folder: Path | None, other: Tree) -> None:
        """Replaces files by those of a folder. Files of an earlier folder that this one lacks become as in the other
        tree, which is of the same source."""
        index = self.path.with_name(_OVER)
        before = index.read_text(encoding="utf-8").splitlines() if index.is_file() else []
        paths = [] if folder is None else [path for path in sorted(folder.rglob("*")) if path.is_file()]
        now = {str(path.relative_to(folder)): path for path in paths if folder and ".git" not in path.parts}
        for file in before:
            if file not in now:
                _put(self.upstream(file), other.upstream(file))
        for file, path in now.items():
            _put(self.upstream(file), path)
        index.write_text("".join(f"{file}\n" for file in now), encoding="utf-8")

    def remove(self) -> None:
        """Removes the tree with all that is known of it."""
        self._state.unlink(missing_ok=True)
        for folder in (self._originals, self.path):
            shutil.rmtree(folder, ignore_errors=True)

    def share(self, other: Tree) -> None:
        """Becomes another tree, whose files it shares until one of both changes them. Raises KernelError."""
        self.remove()
        run(["cp", "-al", str(other.path), str(self.path)])
        if other._originals.is_dir():
            run(["cp", "-a", str(other._originals), str(self._originals)])
        shutil.copyfile(other._state, self._state)
        kept = [path.relative_to(self._originals) for path in self._originals.rglob("*") if path.is_file()]
        for file in {*map(str, kept), *self._read().get("added", [])}:
            (self.path / file).unlink(missing_ok=True)
            shutil.copy2(other.path / file, self.path / file)

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self._state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def _apply(self, recipe: Recipe, previous: list[str]) -> list[str]:
        texts = [patch.read_text("utf-8") for patch in recipe.patches()]
        created = {name for text in texts for name in _CREATED.findall(text)}
        touched = {name for text in texts for name in _TOUCHED.findall(text)} - created
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
            added = {*sources, *(file for file in created if (stage / file).is_file())}
            for file, path in sources.items():
                (stage / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, stage / file)
            for path in sorted(stage.rglob("*")):
                if path.is_file():
                    _replace(self.path / path.relative_to(stage), path)
        for gone in set(previous) - added:
            (self.path / gone).unlink(missing_ok=True)
        return sorted(added)

    def _keep(self, file: str) -> None:
        kept = self._originals / file
        if kept.exists():
            return
        if not (self.path / file).is_file():
            raise KernelError(f"this kernel has no {file}, which a patch changes")
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.path / file, kept)


def _put(target: Path, source: Path) -> None:
    """Has the target be what the source is, or gone as it is; one that stays is not written."""
    if source.is_file():
        _replace(target, source)
    else:
        target.unlink(missing_ok=True)


def _replace(target: Path, new: Path) -> None:
    """Writes only what differs, so that make compiles only what differs. Another tree may share the old file."""
    content = new.read_bytes()
    if not target.is_file() or target.read_bytes() != content:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_bytes(content)
