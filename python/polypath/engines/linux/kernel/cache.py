"""Built kernels in the user's cache, and the recipe that shows whether one is up to date."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.machinery import PathFinder
from pathlib import Path

import polypath
from polypath import folders
from polypath.engines import trusted
from polypath.engines.base import EngineError
from polypath.engines.trusted import Executable

#: Names a folder with config.fragment, patches/ and net/mptcp/ in place of the repository's.
RECIPE_VARIABLE = "POLYPATH_KERNEL_RECIPE"
#: Kernels beside the ordinary one, each with a fragment of its own name on top of the configuration.
VARIANTS = ("debug", "conformance")
#: A kernel can come as a wheel of this package (wheel.py).
PACKAGE = "polypath_linux"
DESCRIPTION = "kernel.json"
_BINARY = "linux"


class KernelError(EngineError):
    """The kernel cannot be built or is not there; the message is one line."""


def cache() -> Path:
    """The folder for sources, objects and kernels."""
    return folders.cache() / "kernel"


@dataclass(frozen=True)
class Pin:
    """A distribution's source package that the recipe was written for."""

    package: str
    version: str
    suite: str
    sha256: str

    @property
    def tarball(self) -> str:
        """Where the source is in the package."""
        return f"usr/src/{self.package}.tar.xz"

    @property
    def identity(self) -> str:
        return f"{self.package} {self.version} {self.sha256}"

    def is_of(self, identity: str) -> bool:
        """Whether a source is this one or another release of its series."""
        return identity.startswith(f"{self.package} ")


@dataclass(frozen=True)
class Recipe:
    """The folder kernel/ of the repository: configuration, patches and sources of our own."""

    folder: Path

    def pins(self) -> list[Pin]:
        """The sources that fit, the first first."""
        described = tomllib.loads((self.folder / "source.toml").read_text(encoding="utf-8"))
        return [Pin(**each) for each in described.get("source", ())]

    def patches(self) -> list[Path]:
        return sorted((self.folder / "patches").glob("*.patch"))

    def sources(self) -> dict[str, Path]:
        """Our own files by their path in the kernel tree."""
        found = sorted((self.folder / "net").rglob("*.[ch]"))
        return {str(path.relative_to(self.folder)): path for path in found}

    def fragments(self, variant: str) -> list[Path]:
        return [self.folder / f"{name}.fragment" for name in ("config", variant) if name]

    def digest(self, variant: str = "") -> str:
        """Changes when any input of the build does, besides the kernel's source itself."""
        sum_ = hashlib.sha256()
        for path in [*self.fragments(variant), *self.patches(), *self.sources().values()]:
            content = path.read_bytes()
            name = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path.name
            sum_.update(f"{name} {len(content)}\n".encode())
            sum_.update(content)
        return sum_.hexdigest()


def recipe() -> Recipe | None:
    """The repository's recipe; None where Polypath was installed without it."""
    given = os.environ.get(RECIPE_VARIABLE)
    folder = Path(given) if given else Path(polypath.__file__).resolve().parents[2] / "kernel"
    return Recipe(folder) if (folder / "source.toml").is_file() else None


@dataclass(frozen=True)
class Installed:
    """A kernel that is ready to boot."""

    folder: Path
    release: str
    source: str
    recipe: str
    variant: str
    compiler: str
    sha256: str
    #: Of a person's own: its name, the digest of the recipe below it, and what it is made of.
    name: str = ""
    base: str = ""
    provenance: str = ""

    @property
    def binary(self) -> Path:
        return self.folder / _BINARY

    @property
    def executable(self) -> Executable:
        """The binary with the hash that was recorded when it was installed."""
        return Executable(self.binary, self.sha256, self._remedy)

    def require_own(self) -> None:
        """Raises Untrusted where another user could have put one of its files there."""
        root = folders.cache() if self.folder.is_relative_to(folders.cache()) else self.folder
        for path in (self.description, self.binary):
            trusted.require_own(path, root, self._remedy)

    @property
    def _remedy(self) -> str:
        more = f" --name {self.name}" if self.name else f" --{self.variant}" if self.variant else ""
        command = f"polypath kernel build{more}"
        return f"run `{command}`" if self.folder.is_relative_to(folders.cache()) else f"install {PACKAGE} again"

    @property
    def description(self) -> Path:
        """The file that says all this."""
        return self.folder / DESCRIPTION

    def save(self) -> None:
        data = {
            name: value for name, value in asdict(self).items() if name != "folder" and (value or name == "variant")
        }
        self.description.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        self.description.chmod(0o644)

    def choose(self) -> None:
        """Makes it the one that runs take, where several are of the present recipe."""
        with suppress(OSError):
            os.utime(self.description)

    @classmethod
    def load(cls, folder: Path) -> Installed:
        data = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if "variant" not in data:  # as it was before there were two
            data["variant"] = "debug" if data.pop("debug") else ""
        return cls(folder=folder, **data)


def key(recipe_digest: str, source: str) -> str:
    return hashlib.sha256(f"{recipe_digest} {source}".encode()).hexdigest()[:16]


def installed() -> list[Installed]:
    """The kernel of the package and every one in the cache, with the last one chosen at the end. Unreadable ones are
    skipped.
    """
    packaged = package()
    paths = [] if packaged is None else [packaged / DESCRIPTION]
    built = sorted(cache().glob(f"*/{DESCRIPTION}"), key=lambda path: (path.stat().st_mtime_ns, path))
    return list(readable([*paths, *built]))


def package() -> Path | None:
    """Where the wheel of a kernel is installed; None: it is not. It is looked for, never imported."""
    found = PathFinder.find_spec(PACKAGE)
    places = list(found.submodule_search_locations or []) if found else []
    return Path(places[0]) if places else None


def readable(paths: Iterable[Path]) -> Iterable[Installed]:
    for path in paths:
        try:
            kernel = Installed.load(path.parent)
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if kernel.binary.is_file():
            yield kernel


def chosen(variant: str = "") -> Installed:
    """The kernel of the present recipe, whoever put it there. Raises KernelError, with the way out, where there is
    none."""
    kernels = [kernel for kernel in installed() if kernel.variant == variant]
    wanted = recipe()
    if wanted is None:
        fitting = kernels
    else:
        digest = wanted.digest(variant)
        fitting = [kernel for kernel in kernels if kernel.recipe == digest]
    if fitting:
        return fitting[-1]
    command = "polypath kernel build" + (f" --{variant}" if variant else "")
    state = "is out of date" if kernels else "is not built yet"
    raise KernelError(f"the kernel of engine linux {state}; run `{command}`")


def find(variant: str = "") -> Installed:
    """The kernel of the present recipe, to be run; its content is looked at when it is copied to be executed. Raises
    KernelError as `chosen`, and Untrusted where another user could have put it there."""
    kernel = chosen(variant)
    kernel.require_own()
    return kernel
