"""A tree that follows another: only what changed is copied, so that make compiles only that."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from polypath.engines.linux.kernel.cache import KernelError
from polypath.engines.linux.kernel.tree import Tree

_INDEX: Final = "followed.json"
_SKIPPED: Final = frozenset({".git"})

_About = tuple[int, int]


class Followed:
    """A person's tree, which is never written to, and the copy of it that is built."""

    def __init__(self, tree: Tree, other: Path) -> None:
        self._tree = tree
        self._other = other.resolve()
        self._index = tree.path.with_name(_INDEX)

    def update(self) -> bool:
        """Copies what changed since the last time and removes what is gone; true where the copy is a new one. Raises
        KernelError."""
        if not (self._other / "arch" / "um").is_dir():
            raise KernelError(f"{self._other} is no kernel source with arch/um")
        before = self._read()
        fresh = before is None
        if before is None:
            self._tree.remove()
            before = {}
        now = dict(self._files())
        try:
            for file, about in now.items():
                if before.get(file) != about:
                    self._copy(file, keep_time=fresh)
            for file in before.keys() - now.keys():
                self._tree.upstream(file).unlink(missing_ok=True)
                (self._tree.path / file).unlink(missing_ok=True)
        except OSError as error:
            raise KernelError(f"cannot copy {self._other}: {error.strerror or error}") from error
        self._index.write_text(json.dumps({"from": str(self._other), "files": now}), encoding="utf-8")
        return fresh

    def _read(self) -> dict[str, _About] | None:
        try:
            data = json.loads(self._index.read_text(encoding="utf-8"))
            if data["from"] != str(self._other) or not self._tree.path.is_dir():
                return None
            return {file: (size, time) for file, (size, time) in data["files"].items()}
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _files(self) -> Iterator[tuple[str, _About]]:
        folders = [""]
        while folders:
            at = folders.pop()
            with os.scandir(self._other / at) as entries:
                for entry in entries:
                    path = f"{at}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in _SKIPPED:
                            folders.append(f"{path}/")
                    elif entry.name not in _SKIPPED:
                        about = entry.stat(follow_symlinks=False)
                        yield path, (about.st_size, about.st_mtime_ns)

    def _copy(self, file: str, keep_time: bool) -> None:
        """A file that changed is new to make, however old it says it is."""
        source, target = self._other / file, self._tree.upstream(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        copy = shutil.copy2 if keep_time else shutil.copy
        copy(source, target, follow_symlinks=False)
