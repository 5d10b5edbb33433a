"""Kernels by name: those of the recipe by release or variant, and a person's own, each with a tree and objects."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polypath.engines import owned
from polypath.engines.linux.kernel import cache, make
from polypath.engines.linux.kernel import source as sources
from polypath.engines.linux.kernel.cache import VARIANTS, Installed, KernelError, Recipe
from polypath.engines.linux.kernel.follow import Followed
from polypath.engines.linux.kernel.tree import Tree
from polypath.engines.namespaces import programs
from polypath.results.recording import KERNEL_OF
from polypath.units import nearest

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

_NAME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]{0,30}$")
_RELEASE: Final = re.compile(r"^\d+(\.\d+)+$")
_FOLDER: Final = "named"
_KERNEL: Final = "kernel"
_REQUEST: Final = "request.json"


@dataclass(frozen=True)
class Request:
    """What a kernel is made of, besides the recipe; paths are absolute."""

    #: A tree or a tarball; without it, the source of the recipe's kernel.
    source: str | None = None
    patches: tuple[str, ...] = ()
    #: A variant of the recipe, or a file.
    fragment: str | None = None
    #: Without a source: a folder with files that take the place of the shipped ones.
    over: str | None = None


@dataclass(frozen=True)
class _Changed(Recipe):
    """The recipe with a person's patches and configuration on top."""

    more_patches: tuple[Path, ...] = ()
    fragment: Path | None = None

    def patches(self) -> list[Path]:
        return [*super().patches(), *self.more_patches]

    def fragments(self, variant: str) -> list[Path]:
        return [*super().fragments(""), *([self.fragment] if self.fragment else [])]


def names() -> dict[str, Installed]:
    """Every kernel that a host can have, by name: the recipe's by release and variant, then a person's own."""
    found: dict[str, Installed] = {}
    for variant in ("", *VARIANTS):
        try:
            kernel = cache.chosen(variant)
        except KernelError:
            continue
        found[variant or _series(kernel.release)] = kernel
    for kernel in cache.installed():
        if not kernel.variant:
            found.setdefault(_series(kernel.release), kernel)
    return found | own()


def own() -> dict[str, Installed]:
    """Those that were built with a name."""
    places = sorted((cache.cache() / _FOLDER).glob(f"*/{_KERNEL}/{cache.DESCRIPTION}"))
    return {kernel.name: kernel for kernel in cache.readable(places) if kernel.name}


def find(name: str) -> Installed:
    """The kernel of that name, to be run. Raises KernelError, with the nearest name and the command that builds it, and
    Untrusted where another user could have put it there."""
    known = names()
    kernel = known.get(name) or next((each for each in known.values() if _is_release(each, name)), None)
    if kernel is None:
        raise KernelError(_unknown(name, list(known)))
    wanted = cache.recipe()
    if kernel.name and wanted is not None and kernel.base != wanted.digest():
        raise KernelError(f"the kernel '{name}' is out of date; run `polypath kernel build --name {name}`")
    kernel.require_own()
    return kernel


def told(plan: PlanData) -> dict[str, str]:
    """The kernels that hosts of a Plan name, as a run's record has them among its versions. Raises KernelError."""
    found = {}
    for host, name in plan.get("kernels", {}).items():
        kernel = find(name)
        made_of = kernel.provenance or kernel.source
        found[f"{KERNEL_OF}{host}"] = f"{name}: {kernel.release}, sha256 {kernel.sha256}, {made_of}"
    return found


def _unknown(name: str, known: Sequence[str]) -> str:
    hint = nearest(name, known)
    better = f"did you mean '{hint}'?" if hint else f"there is {', '.join(known) or 'none yet'};"
    if _RELEASE.match(name):
        return f"no kernel {name} is built; {better} `polypath kernel build --source PATH` builds one"
    if name in VARIANTS:
        return f"the kernel '{name}' is not built; run `polypath kernel build --{name}`"
    command = f"polypath kernel build --name {name} --source PATH" if _NAME.match(name) else "polypath kernel build"
    return f"unknown kernel '{name}'; {better} `{command}` builds one of that name"


def _series(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _is_release(kernel: Installed, name: str) -> bool:
    return not kernel.name and not kernel.variant and kernel.release == name


def build(
    name: str,
    request: Request,
    jobs: int,
    trial: Callable[[Installed], None] | None,
    progress: make.Progress = lambda what, done, total: None,
) -> Installed:
    """Builds the kernel of that name, or builds it again with what changed. An empty request repeats the one before.
    Raises KernelError."""
    make.supported()
    _require_name(name)
    recipe = cache.recipe()
    if recipe is None:
        raise KernelError("this installation has no kernel recipe; build from a clone of the repository")
    place = cache.cache() / _FOLDER / name
    if request == Request():
        request = _before(place)
    wanted = _Changed(recipe.folder, tuple(map(Path, request.patches)), _fragment(recipe, request.fragment))
    for path in (*wanted.more_patches, *([wanted.fragment] if wanted.fragment else [])):
        if not path.is_file():
            raise KernelError(f"there is no file {path}")
    make.require_tools()
    progress("compiling the applications", 0, 0)
    programs.build()
    (cache.cache() / _FOLDER).mkdir(mode=0o755, parents=True, exist_ok=True)
    place.mkdir(mode=0o755, exist_ok=True)
    with owned.alone(programs.own("kernel") / "lock"):
        progress("preparing the source", 0, 0)
        tree, objects = Tree(place), place / "build"
        identity = _prepare(tree, objects, request, wanted)
        make.configure(tree.path, objects, wanted, "")
        make.compile_(tree.path, objects, jobs, progress)
        return make.install(
            tree.path,
            objects,
            place / _KERNEL,
            {
                "source": identity,
                "recipe": wanted.digest(),
                "variant": "",
                "name": name,
                "base": recipe.digest(),
                "provenance": _provenance(identity, wanted),
            },
            lambda kernel: _finish(kernel, place, request, trial, progress),
        )


def _finish(
    kernel: Installed,
    place: Path,
    request: Request,
    trial: Callable[[Installed], None] | None,
    progress: make.Progress,
) -> None:
    if trial is not None:
        make.attempt(kernel, trial, progress)
    (place / _REQUEST).write_text(json.dumps(asdict(request)) + "\n", encoding="utf-8")


def _require_name(name: str) -> None:
    if not _NAME.match(name) or name in VARIANTS:
        taken = " is taken by a kernel of the recipe" if name in VARIANTS else ""
        raise KernelError(
            f"the name '{name}'{taken or ' does not do'}; a name begins with a letter and has up to 31 letters, digits,"
            " dots, dashes and underscores"
        )


def _before(place: Path) -> Request:
    try:
        data = json.loads((place / _REQUEST).read_text(encoding="utf-8"))
        return Request(data["source"], tuple(data["patches"]), data["fragment"], data.get("over"))
    except (OSError, ValueError, KeyError, TypeError):
        raise KernelError(f"what is the kernel '{place.name}' made of? Give --source, --patch or --fragment") from None


def _fragment(recipe: Recipe, given: str | None) -> Path | None:
    if given is None:
        return None
    ours = recipe.folder / f"{given}.fragment"
    if "/" not in given and ours.is_file():
        return ours
    if Path(given).is_file():
        return Path(given)
    known = sorted(path.stem for path in recipe.folder.glob("*.fragment") if path.stem != "config")
    hint = nearest(given, known)
    raise KernelError(
        f"there is no fragment '{given}'; "
        + (f"did you mean '{hint}'?" if hint else f"it is a file, or one of {', '.join(known)}")
    )


def _prepare(tree: Tree, objects: Path, request: Request, wanted: Recipe) -> str:
    """Leaves the changed source in the tree, and objects beside it if others can be taken. The source's identity."""
    if request.source is not None and Path(request.source).is_dir():
        source = sources.given(Path(request.source))
        followed = Followed(tree, Path(request.source))
        if followed.update():
            shutil.rmtree(objects, ignore_errors=True)
        tree.apply(wanted, source.identity)
        return _of_git(Path(request.source)) or source.identity
    if request.source is not None:
        source = sources.given(Path(request.source))
        if tree.prepare(source, wanted):
            shutil.rmtree(objects, ignore_errors=True)
        return source.identity
    identity = shared(tree, objects)
    over = request.over and Path(request.over)
    tree.lay_over(over or None, Tree(cache.cache()))
    tree.apply(wanted, identity)
    return f"{identity}, {_of_git(over)}" if over else identity


def shared(tree: Tree, objects: Path) -> str:
    """Has the tree and its objects begin as those of the recipe's kernel, where they are not of its source; its
    identity. Raises KernelError."""
    shipped = Tree(cache.cache())
    identity = shipped.identity()
    if identity is None or not shipped.path.is_dir():
        raise KernelError(
            "the source of the recipe's kernel is not here; run `polypath kernel build`, or give --source"
        )
    if tree.identity() != identity:
        shutil.rmtree(objects, ignore_errors=True)
        tree.share(shipped)
        _share_objects(cache.cache() / "build", objects, shipped.path, tree.path)
    return identity


def _share_objects(theirs: Path, ours: Path, their_tree: Path, our_tree: Path) -> None:
    """Copies compiled objects, of the same source at another path: make compares the commands that made them."""
    if not (theirs / "linux").is_file():
        return
    sources.run(["cp", "-a", "--reflink=auto", str(theirs), str(ours)])
    (ours / "linux").unlink()
    old, new = str(their_tree).encode(), str(our_tree).encode()
    own_old, own_new = str(theirs).encode(), str(ours).encode()
    for path in [*ours.rglob(".*.cmd"), *ours.rglob("*.cmd"), ours / "Makefile"]:
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if (changed := content.replace(old, new).replace(own_old, own_new)) != content:
                path.write_bytes(changed)
    link = ours / "source"
    link.unlink(missing_ok=True)
    link.symlink_to(our_tree)


def _of_git(folder: Path) -> str | None:
    """The commit of a tree that is in a repository of its own, with its changes told."""
    if not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"commit {done.stdout.strip()}" if done.returncode == 0 else None


def _provenance(identity: str, wanted: _Changed) -> str:
    added = [path for path in (*wanted.more_patches, wanted.fragment) if path is not None]
    return ", ".join([identity, *(f"{path.name} {sources.file_sum(path)[:12]}" for path in added)])
