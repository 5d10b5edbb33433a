"""Configuring, compiling and installing the kernel."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from polypath.engines import owned
from polypath.engines.base import EngineError
from polypath.engines.linux.kernel import source as sources
from polypath.engines.linux.kernel.cache import VARIANTS, Installed, KernelError, Recipe, cache, installed, key, recipe
from polypath.engines.linux.kernel.tree import Tree
from polypath.engines.namespaces import programs
from polypath.engines.trusted import Untrusted

#: Called with what is being done, and with the steps done so far and in all (0: not known).
Progress = Callable[[str, int, int], None]

#: Programs that the build runs, by Debian's package.
_TOOLS = {
    "gcc": "gcc",
    "ld": "binutils",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "patch": "patch",
    "tar": "tar",
    "xz": "xz-utils",
}
_LOG = "build.log"
#: Of the folder in which a kernel is until it has passed its trial.
_PARTIAL = "new-"
#: Lines that a whole build prints, for the progress bar only.
_STEPS = 1500
#: Who built when, where and how often is in a kernel's version, and the version in its entropy (drivers/char/random.c,
#: random_init_early): the same for everyone, so that runs are.
_SAME = {
    "KBUILD_BUILD_TIMESTAMP": "@0",
    "KBUILD_BUILD_HOST": "polypath",
    "KBUILD_BUILD_USER": "polypath",
    "KBUILD_BUILD_VERSION": "1",
}


def supported() -> None:
    """Raises KernelError on a machine that User Mode Linux does not run on."""
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine not in ("x86_64", "AMD64"):
        raise KernelError(
            f"engine linux needs Linux on x86-64 (User Mode Linux), and this is {system} on {machine}; "
            "--engine live runs on the machine's own Linux, --engine sim anywhere"
        )


def build(
    given: Path | None,
    variant: str,
    jobs: int,
    trial: Callable[[Installed], None],
    progress: Progress = lambda what, done, total: None,
    warn: Callable[[str], None] = lambda text: None,
) -> tuple[Installed, bool]:
    """The kernel of the present recipe, and whether it had to be built. Raises KernelError.

    A kernel is installed once `trial`, which raises EngineError, has passed it. The applications are compiled along
    with it, so that the first run need not.
    """
    supported()
    wanted = recipe()
    if wanted is None:
        raise KernelError("this installation has no kernel recipe; build from a clone of the repository")
    own = None if given is None else sources.given(given)
    if (kernel := _built(wanted, variant, own)) is not None:
        programs.build()
        kernel.choose()
        return kernel, False
    require_tools()
    progress("compiling the applications", 0, 0)
    programs.build()
    with owned.alone(programs.own("kernel") / "lock"):
        if own is not None:
            return _made(own, wanted, variant, jobs, trial, progress), True
        pins = wanted.pins()
        for source in sources.fetched(pins, cache() / "download", lambda what: progress(what, 0, 0)):
            if source.identity != pins[0].identity:
                warn(f"{pins[0].package} {pins[0].version} cannot be fetched: {source} takes its place")
            try:
                return _made(source, wanted, variant, jobs, trial, progress), True
            except KernelError as error:
                if source.identity in {pin.identity for pin in pins}:
                    raise
                warn(f"{source} does not do: {error}")
    raise KernelError("the recipe names no source; give a kernel source with --source")


def _built(wanted: Recipe, variant: str, own: sources.Source | None) -> Installed | None:
    """The kernel that is installed and unchanged: from the user's own source, or from the best pin."""
    digest = wanted.digest(variant)
    fitting = [kernel for kernel in reversed(installed()) if kernel.recipe == digest and _is_intact(kernel)]
    if own is not None:
        return next((kernel for kernel in fitting if kernel.source == own.identity), None)
    ranked = [kernel for pin in wanted.pins() for kernel in fitting if pin.is_of(kernel.source)]
    return ranked[0] if ranked else None


def _is_intact(kernel: Installed) -> bool:
    try:
        kernel.require_own()
        kernel.executable.require_intact()
    except Untrusted:
        return False
    return True


def _made(
    source: sources.Source,
    wanted: Recipe,
    variant: str,
    jobs: int,
    trial: Callable[[Installed], None],
    progress: Progress,
) -> Installed:
    progress("preparing the source", 0, 0)
    tree = Tree(cache())
    objects = _objects(variant)
    if tree.prepare(source, wanted):
        for each in ("", *VARIANTS):
            shutil.rmtree(_objects(each), ignore_errors=True)
    configure(tree.path, objects, wanted, variant)
    compile_(tree.path, objects, jobs, progress)
    digest = wanted.digest(variant)
    return install(
        tree.path,
        objects,
        cache() / key(digest, source.identity),
        {"source": source.identity, "recipe": digest, "variant": variant},
        lambda kernel: attempt(kernel, trial, progress),
    )


def _objects(variant: str) -> Path:
    return cache() / (f"build-{variant}" if variant else "build")


def attempt(kernel: Installed, trial: Callable[[Installed], None], progress: Progress) -> None:
    progress("trying the kernel", 0, 0)
    try:
        trial(kernel)
    except EngineError as error:
        raise KernelError(f"Linux {kernel.release} fails its trial: {error}") from error


def require_tools() -> None:
    missing = sorted({package for tool, package in _TOOLS.items() if shutil.which(tool) is None})
    if missing:
        raise KernelError(f"building the kernel needs {', '.join(missing)} (apt-get install {' '.join(missing)})")


def _make(tree: Path, objects: Path) -> list[str]:
    return [
        "make",
        "-C",
        str(tree),
        "ARCH=um",
        f"O={objects}",
        *(f"{name}={value}" for name, value in _SAME.items()),
    ]


def configure(tree: Path, objects: Path, wanted: Recipe, variant: str) -> None:
    """Writes .config where it would change."""
    objects.mkdir(parents=True, exist_ok=True)
    lines = [line for path in wanted.fragments(variant) for line in path.read_text("utf-8").splitlines()]
    asked = [line for line in lines if line.startswith("CONFIG_")]
    config = objects / ".config"
    stamp = objects / "fragment"
    if config.is_file() and stamp.is_file() and stamp.read_text("utf-8") == "\n".join(asked):
        return
    with tempfile.NamedTemporaryFile("w", suffix=".config", encoding="utf-8") as fragment:
        fragment.write("\n".join(asked) + "\n")
        fragment.flush()
        sources.run([*_make(tree, objects), f"KCONFIG_ALLCONFIG={fragment.name}", "allnoconfig"])
    got = set(config.read_text("utf-8").splitlines())
    refused = [line for line in asked if line not in got and not _is_off(line, got)]
    if refused:
        raise KernelError(f"this kernel does not take {', '.join(refused)}")
    stamp.write_text("\n".join(asked), encoding="utf-8")


def _is_off(asked: str, got: set[str]) -> bool:
    """Whether a limit of zero is asked for, which switches off what this kernel does not have at all."""
    name, _, value = asked.partition("=")
    return value == "0" and not any(line.startswith(f"{name}=") for line in got)


def compile_(tree: Path, objects: Path, jobs: int, progress: Progress) -> None:
    log = objects / _LOG
    command = ["nice", *_make(tree, objects), f"-j{jobs}", "linux"]
    environment = {**os.environ, "LC_ALL": "C"}
    with (
        log.open("w", encoding="utf-8") as written,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            process_group=0,
        ) as make,
    ):
        assert make.stdout is not None
        done = 0
        try:
            for line in make.stdout:
                written.write(line)
                done += line.startswith("  ")
                progress("compiling the kernel", min(done, _STEPS), _STEPS)
        except BaseException:
            os.killpg(make.pid, 15)
            raise
    if make.returncode != 0:
        errors = [line.strip() for line in log.read_text("utf-8").splitlines() if re.search(r"\berror\b|\*\*\*", line)]
        raise KernelError(f"the kernel does not compile: {errors[0] if errors else 'see the log'} (log: {log})")


def install(
    tree: Path, objects: Path, folder: Path, about: Mapping[str, str], trial: Callable[[Installed], None]
) -> Installed:
    """Puts the compiled kernel into its folder once `trial` has passed it; `about` has the rest of its
    description."""
    owned.clear(folder.parent, _PARTIAL)
    with owned.made(folder.parent, _PARTIAL) as place:
        partial = place / "kernel"
        partial.mkdir(mode=0o755)
        sources.run(["strip", "-o", str(partial / "linux"), str(objects / "linux")])
        (partial / "linux").chmod(0o755)
        kernel = Installed(
            folder=partial,
            release=sources.run([*_make(tree, objects), "-s", "kernelrelease"]).strip(),
            compiler=sources.run(["gcc", "--version"]).splitlines()[0],
            sha256=sources.file_sum(partial / "linux"),
            **about,
        )
        trial(kernel)
        kernel.save()
        owned.replace(partial, folder, place)
    return Installed.load(folder)
