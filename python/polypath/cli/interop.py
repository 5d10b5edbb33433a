"""polypath interop: stacks of QUIC and Multipath QUIC against each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from polypath.cli.console import err, out
from polypath.cli.errors import DONE, InputError
from polypath.engines.base import EngineError
from polypath.interop import matrix, networks, page
from polypath.interop.cases import CASES
from polypath.interop.kept import Kept, Kind
from polypath.interop.participants import PARTICIPANTS
from polypath.results.files import write_text
from polypath.sweeps import cluster, executor

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Item = TypeVar("_Item")
_Result = TypeVar("_Result", bound="DataclassInstance")
_CELLS: Final = Kind("cell", matrix.Cell)
_MEASURED: Final = Kind("network", networks.Measured)
_NETWORKS = 30
_SEED = 1


def interop(
    stacks: Annotated[
        str | None, typer.Option("--stacks", metavar="NAME,..", help="Only these stacks. Default: all that are there.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--case", metavar="NAME", help="Only this test case (repeatable); `none` plays none."),
    ] = None,
    count: Annotated[
        int, typer.Option("--networks", metavar="N", min=0, help="Networks for performance; 0 for none.")
    ] = _NETWORKS,
    seed: Annotated[int, typer.Option("--seed", help="What the networks are drawn from.")] = _SEED,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes. Default: cores.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Also write a page.")] = None,
    kept: Annotated[
        Path | None,
        typer.Option("--kept", metavar="FILE", help="Keep each result there; the next call goes on after them."),
    ] = None,
) -> int:
    """Play every pair of QUIC stacks against each other, in both roles.

    Test cases are those of the interop runner that a simulator can play, and more for multipath. Then each pair
    transfers over drawn networks: completion, shares, and the gap when a path fails. A rerun gives the same result.

    With --kept, a call that was interrupted goes on, and its result is that of one call.

    A stack that is not installed takes no part unless --stacks names it; its cells then say why.

    Example: `polypath interop --stacks polypath,noq --networks 0`.
    """
    if markdown is not None:
        page.require_replaceable(markdown)
    rows = None if kept is None else Kept(kept, _program())
    cases = _cases(only)
    names = _names(stacks)
    pairs = [(client, server) for client in names for server in names]
    tasks = [(case, *pair) for case in cases for pair in pairs]
    cells = _results(jobs, matrix.by_name, tasks, _told, rows, _CELLS)
    work = [(network, *pair) for network in networks.drawn(count, seed) for pair in pairs if networks.together(pair)]
    found = _results(jobs, networks.by_name, work, _noted, rows, _MEASURED)
    text = page.page(pairs, cells, found, _command(stacks, only, count, seed, markdown))
    if markdown is None:
        out.print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        write_text(markdown, text)
        out.print(f"wrote {markdown}", markup=False)
    return DONE


def _results(
    jobs: int | None,
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    tell: Callable[[_Result], None],
    rows: Kept | None,
    kind: Kind[_Result],
) -> list[_Result]:
    """The results in the order of the items, each told and kept when it is there."""
    there = [None if rows is None else rows.find(kind, item) for item in items]
    results = {index: row for index, row in enumerate(there) if row is not None}
    missing = [index for index in range(len(items)) if index not in results]
    if not missing:
        return [results[index] for index in range(len(items))]
    with nullcontext() if rows is None else rows.open() as file:
        for place, result in executor.local(jobs, len(missing)).map(function, [items[index] for index in missing]):
            index = missing[place]
            if isinstance(result, executor.WorkerLost):
                raise EngineError(f"a process that played {items[index]} ended: {result}")
            tell(result)
            results[index] = result
            if rows is not None and file is not None:
                rows.add(file, kind, items[index], result)
    return [results[index] for index in range(len(items))]


def _program() -> str:
    """What results depend on besides their tasks: this Polypath, and the stacks by others."""
    stacks = {name: [each.title, each.missing()] for name, each in PARTICIPANTS.items()}
    return json.dumps([asdict(cluster.identity()), stacks], sort_keys=True)


def _told(cell: matrix.Cell) -> None:
    err.print(f"{cell.case}, {cell.client} to {cell.server}: {cell.word}", markup=False)


def _noted(measured: networks.Measured) -> None:
    err.print(f"network {measured.network}, {measured.client} to {measured.server}", markup=False)


def _names(stacks: str | None) -> list[str]:
    if stacks is None:
        there = [each.name for each in PARTICIPANTS.values() if each.missing() is None]
        for each in PARTICIPANTS.values():
            if (why := each.missing()) is not None:
                err.print(why, markup=False)
        return there
    names = [name.strip() for name in stacks.split(",") if name.strip()]
    for name in names:
        if name not in PARTICIPANTS:
            raise InputError(f"--stacks {name}: there is no such stack; there are {', '.join(PARTICIPANTS)}")
    if not names:
        raise InputError("--stacks names no stack")
    return list(dict.fromkeys(names))


def _cases(only: Sequence[str] | None) -> list[str]:
    known = [case.name for case in CASES]
    if only is None:
        return known
    wanted = [] if list(only) == ["none"] else list(only)
    for name in wanted:
        if name not in known:
            raise InputError(f"--case {name}: there is no such test case; there are {', '.join(known)}")
    return [name for name in known if name in wanted]


def _command(stacks: str | None, only: Sequence[str] | None, count: int, seed: int, markdown: Path | None) -> str:
    """The command that makes the page again."""
    words = ["polypath interop"]
    words += [] if stacks is None else [f"--stacks {stacks}"]
    words += [f"--case {name}" for name in only or ()]
    words += [] if count == _NETWORKS else [f"--networks {count}"]
    words += [] if seed == _SEED else [f"--seed {seed}"]
    words += [] if markdown is None else [f"--markdown {markdown}"]
    return " ".join(words)
