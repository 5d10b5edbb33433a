"""polypath kernel: the kernel that `--engine linux` runs on."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from polypath.cli.console import err, warn
from polypath.cli.errors import BAD_INPUT, DONE
from polypath.engines import trusted
from polypath.engines.linux import kernel
from polypath.engines.linux.kernel import KernelError
from polypath.engines.linux.trial import trial
from polypath.engines.trusted import Untrusted

app = typer.Typer(
    add_completion=False,
    help="Build the kernel of `--engine linux`, and show its state.",
    no_args_is_help=True,
)


_Debug = Annotated[bool, typer.Option("--debug", help="The kernel with KASAN and lockdep: slow, for soak tests.")]
_Conformance = Annotated[
    bool, typer.Option("--conformance", help="The kernel with TUN and MD5 signatures, for packetdrill's scripts.")
]


@app.command()
def build(
    source: Annotated[
        Path | None,
        typer.Option("--source", metavar="PATH", help="A kernel source tree or tarball instead of Debian's package."),
    ] = None,
    debug: _Debug = False,
    conformance: _Conformance = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="A further kernel, which hosts choose by this name.")
    ] = None,
    patch: Annotated[
        list[Path] | None, typer.Option("--patch", metavar="FILE", help="A patch on the source of --name; repeatable.")
    ] = None,
    fragment: Annotated[
        str | None,
        typer.Option("--fragment", metavar="NAME|FILE", help="More configuration of --name: debug, kasan or a file."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Compilers that run at a time.")] = os.cpu_count()
    or 1,
) -> int:
    """Fetch, patch, compile, test and store the kernel in the user's cache. Once built, this is instant.

    If the first source of `source.toml` cannot be fetched, the newest release of its series replaces it, or the next
    source. Runs use the kernel that was requested last.

    With `--name`, the kernel is one of its own. `host.NAME.kernel` of a scenario chooses it. Without `--source` it is
    the shipped source with patches. A second call with the name alone builds what changed.

    Examples: `polypath kernel build --jobs 4`, `polypath kernel build --source linux-7.2.12.tar.xz`,
    `polypath kernel build --name mine --patch slower.patch`.
    """
    if name is None and (patch or fragment):
        raise KernelError("--patch and --fragment are for a kernel with a name; add --name")
    if name is not None and (debug or conformance):
        raise KernelError("a kernel with a name takes --fragment debug or --fragment conformance")
    started = time.monotonic()
    stage = "looking for the kernel"
    with _shown() as bar:
        task = bar.add_task(stage, total=None)

        def progress(what: str, done: int, total: int) -> None:
            nonlocal stage
            if what != stage and not err.is_terminal:
                typer.echo(what, err=True)
            stage = what
            bar.update(task, description=what, completed=done, total=total or None)

        if name is not None:
            request = kernel.named.Request(
                None if source is None else str(source.resolve()),
                tuple(str(path.resolve()) for path in patch or ()),
                str(Path(fragment).resolve()) if fragment and Path(fragment).is_file() else fragment,
            )
            built, new = kernel.named.build(name, request, jobs, trial, progress), True
        else:
            built, new = kernel.build(source, _variant(debug, conformance), jobs, trial, progress, warn)
    took = f"built in {time.monotonic() - started:.0f} s" if new else "already built"
    typer.echo(f"Linux {built.release} {took}: {built.binary}")
    return DONE


@app.command("list")
def list_() -> int:
    """Show the kernels that a host of a scenario can have, by name.

    Example: `polypath kernel list`.
    """
    known = kernel.named.names()
    if not known:
        raise KernelError("no kernel is built yet; run `polypath kernel build`")
    widths = [
        max(map(len, column)) for column in zip(*((name, each.release) for name, each in known.items()), strict=True)
    ]
    for name, each in known.items():
        made_of = each.provenance or each.source.rpartition(" ")[0]
        typer.echo(f"{name:{widths[0]}}  {each.release:{widths[1]}}  {each.sha256[:12]}  {made_of}")
    return DONE


@app.command()
def status(
    debug: _Debug = False,
    conformance: _Conformance = False,
) -> int:
    """Show whether the kernel is built, up to date and unmodified; exit code 2 otherwise.

    Example: `polypath kernel status`.
    """
    try:
        kernel.supported()
        found = kernel.chosen(_variant(debug, conformance))
    except KernelError as error:
        typer.echo(str(error))
        return BAD_INPUT
    about = found.binary.stat()
    typer.echo(f"Linux {found.release} (User Mode Linux), {about.st_size / 1e6:.1f} MB")
    typer.echo(f"  binary    {found.binary}")
    typer.echo(f"  source    {found.source}")
    typer.echo(f"  compiler  {found.compiler}")
    typer.echo(f"  sha256    {found.sha256}")
    typer.echo(f"  owner     {trusted.owner(found.binary)}, mode {stat.S_IMODE(about.st_mode):04o}")
    try:
        found.require_own()
        found.executable.require_intact()
    except Untrusted as error:
        typer.echo(f"  verdict   {error}")
        return BAD_INPUT
    typer.echo("  verdict   as it was installed")
    return DONE


@app.command()
def wheel(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the wheel.")] = Path(),
    debug: _Debug = False,
    conformance: _Conformance = False,
) -> int:
    """Pack the built kernel, with its recipe, as a separate Python package: other machines need no compiler.

    Example: `polypath kernel wheel --out wheels`.
    """
    typer.echo(kernel.pack(kernel.find(_variant(debug, conformance)), out))
    return DONE


def _variant(debug: bool, conformance: bool) -> str:
    if debug and conformance:
        raise KernelError("--debug and --conformance are two kernels; give one of them")
    return "debug" if debug else "conformance" if conformance else ""


def _shown() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
