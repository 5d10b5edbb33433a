"""Kernels with schedulers of a Plan's own, each from a C file beside the scenario: the recipe's kernel and these."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polypath.engines import owned
from polypath.engines.linux.kernel import cache, make
from polypath.engines.linux.kernel.cache import Installed, KernelError, Recipe
from polypath.engines.linux.kernel.named import shared
from polypath.engines.linux.kernel.tree import Tree
from polypath.engines.namespaces import algorithms, programs
from polypath.plan.access import SIDES, own_stack
from polypath.scenario import compiled

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

_FOLDER: Final = "schedulers"
_PART: Final = "own"
#: What the file becomes in the tree: its faults are told by its own name and lines.
_WHOLE: Final = '#define OWN_NAME "{kernel_name}"\n#include "own.h"\n#line 1 "{file}"\n{source}'


@dataclass(frozen=True)
class _WithSchedulers(Recipe):
    """The recipe, and schedulers by their names in the kernel."""

    written: Mapping[str, Path]

    def patches(self) -> list[Path]:
        return [*super().patches(), *sorted((self.folder / _PART).glob("*.patch"))]

    def sources(self) -> dict[str, Path]:
        own = {f"net/mptcp/{name}.c": path for name, path in self.written.items()}
        return super().sources() | {"net/mptcp/own.h": self.folder / _PART / "own.h"} | own


def used(plan: PlanData) -> dict[str, dict[str, str]]:
    """The schedulers in C of a Plan, by their names in the kernel: file and source of each."""
    stacks = [node.get("stack") for node in plan["nodes"]]
    stacks += [own_stack(application, side) for application in plan["applications"] for side in SIDES]
    chosen = [
        dict(stack["scheduler"]["parameters"])
        for stack in stacks
        if stack and stack["scheduler"]["name"] == compiled.NAME
    ]
    return {algorithms.own_name(each): each for each in chosen}


def require_on_usual(plan: PlanData) -> None:
    """Raises KernelError where a host has such a scheduler, and a kernel by name, which does not have it."""
    for node in plan["nodes"]:
        kernel = plan.get("kernels", {}).get(node["name"])
        stack = node.get("stack")
        if kernel is not None and stack and stack["scheduler"]["name"] == compiled.NAME:
            file = stack["scheduler"]["parameters"]["file"]
            raise KernelError(
                f"host '{node['name']}' has the kernel '{kernel}' and the scheduler '{file}', which is compiled into"
                " the recipe's kernel only; leave one out"
            )


def find(schedulers: Mapping[str, Mapping[str, str]], jobs: int) -> Installed:
    """The recipe's kernel with these schedulers, compiled where it is not there yet. Raises KernelError with the
    compiler's first complaint."""
    recipe = cache.recipe()
    if recipe is None:
        raise KernelError(
            "this installation has no kernel recipe, which schedulers in C need; use a clone of the repository"
        )
    place = programs.own("kernel", _FOLDER)
    written = {name: place / f"{name}.c" for name in sorted(schedulers)}
    wanted = _WithSchedulers(recipe.folder, written)
    with owned.alone(programs.own("kernel") / "lock"):
        for name, path in written.items():
            text = _WHOLE.format(kernel_name=name, **schedulers[name])
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
        digest = wanted.digest()
        folder = place / hashlib.sha256(digest.encode()).hexdigest()[:16]
        if (kernel := next(iter(cache.readable([folder / cache.DESCRIPTION])), None)) is not None:
            kernel.require_own()
            return kernel
        make.require_tools()
        tree, objects = Tree(place), place / "build"
        identity = shared(tree, objects)
        tree.apply(wanted, identity)
        make.configure(tree.path, objects, wanted, "")
        make.compile_(tree.path, objects, jobs, lambda what, done, total: None)
        about = {"source": identity, "recipe": digest, "variant": "", "base": recipe.digest()}
        files = ", ".join(schedulers[name]["file"] for name in written)
        about["provenance"] = f"{identity}, schedulers {files}"
        return make.install(tree.path, objects, folder, about, lambda kernel: None)
