"""polypath upgrade: scenarios and labs in the present form of the language."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from polypath.cli import complete
from polypath.cli.console import err, out, printable
from polypath.cli.errors import DONE, MISSED, InputError
from polypath.cli.options import OutFile
from polypath.cli.write import require_new
from polypath.results.files import OutputError, replacing, write_with
from polypath.scenario import former
from polypath.scenario.reading import read_bytes

#: Ends the name of what `--in-place` keeps of a file.
_KEPT: Final = ".before-upgrade"


class _File(NamedTuple):
    path: Path
    content: bytes
    made: former.Rewritten

    @property
    def kept(self) -> Path:
        return self.path.with_name(f"{self.path.name}{_KEPT}")


def upgrade(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE.toml|FOLDER..",
            help="A scenario, a lab's or a rubric's file, or a folder with such files.",
            show_default=False,
            autocompletion=complete.targets,
        ),
    ],
    in_place: Annotated[
        bool,
        typer.Option("--in-place", help=f"Rewrite the files. The original of FILE.toml is kept as FILE.toml{_KEPT}."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing. The exit code is 1 if a file has an old form.")
    ] = False,
    out_file: OutFile = None,
) -> int:
    """Show scenarios and labs in the present form of the language, or rewrite them.

    It takes rubrics, too. It replaces only old forms. Comments, layout and all else stay as they are, and the plans
    stay the same. Each old form is listed with its line and the new one.

    Without an option, it prints one file in the new form. `--out` writes that into a new file. `--in-place` rewrites
    any number of files, and keeps each original beside.

    Examples: `polypath upgrade scenario.toml`, `polypath upgrade mylab --check`, `polypath upgrade *.toml --in-place`.
    """
    if sum((in_place, check, out_file is not None)) > 1:
        raise InputError("--in-place, --check and --out exclude each other")
    found = [_read(path) for path in _expanded(files)]
    if not in_place and not check and len(found) > 1:
        raise InputError(f"{len(found)} files: --in-place rewrites them, --check lists their old forms")
    if out_file is not None:
        require_new(out_file)
    for each in found:
        for line, said in each.made.changes:
            err.print(f"{printable(str(each.path))}:{line}: {printable(said)}", markup=False)
    if check:
        return MISSED if any(each.made.changes for each in found) else DONE
    if in_place:
        _replace([each for each in found if each.made.changes])
    else:
        (only,) = found
        if out_file is None:
            out.verbatim(only.made.text.replace("\r\n", "\n"))
        else:
            write_with(out_file, lambda temporary: temporary.write_bytes(only.content))
    return DONE


def _expanded(paths: Sequence[Path]) -> list[Path]:
    """The files, and those of folders, each once. Raises InputError where a folder has none."""
    return list(dict.fromkeys(file for path in paths for file in _of(path)))


def _of(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    inside = sorted(path.glob("*.toml"))
    if not inside:
        raise InputError(f"{path} has no file that ends in .toml")
    yield from inside


def _read(path: Path) -> _File:
    """Raises ScenarioError."""
    return _File(path, *former.of_bytes(read_bytes(path, "scenario"), str(path)))


def _replace(files: Sequence[_File]) -> None:
    """Rewrites files, after all originals are kept. Raises InputError, OutputError."""
    for each in files:
        require_new(each.kept)
    for each in files:
        try:
            shutil.copy2(each.path, each.kept)
        except OSError as error:
            raise OutputError(f"cannot write {each.kept}: {error.strerror or error}") from error
    for each in files:
        with replacing(each.path.resolve()) as temporary:
            temporary.write_bytes(each.content)
            shutil.copymode(each.path, temporary)
        shown = printable(str(each.path))
        err.print(f"rewrote {shown}; the original is {printable(str(each.kept))}", markup=False)
