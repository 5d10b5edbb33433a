"""polypath twin: a scenario that reproduces a capture, or the counters of sockets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from polypath.cli import progress
from polypath.cli.console import err, out, table, warn
from polypath.cli.errors import DONE
from polypath.cli.options import KeyLogs, OutFile, key_logs
from polypath.cli.write import require_new, require_not_read, write
from polypath.twin.made import Twin, make


def twin(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE.pcap[ng]..|FILE.json|FILE.log",
            help="A capture at one end, captures at both ends, the output of `iperf3 -J`, or a log of `ss -ti`.",
            show_default=False,
        ),
    ],
    connection: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|N",
            help="The connection: its name or number (from 1) in `polypath trace`. Default: the one with most bytes.",
        ),
    ] = None,
    keys: KeyLogs = None,
    out_file: OutFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print values, intervals and the scenario as JSON.")] = False,
) -> int:
    """Make a scenario that reproduces a capture.

    The packets give each path's rate, delay, jitter, queue and random loss, each with an interval. Trials give
    congestion control and scheduler: the twin is run and captured as the original was. A table shows how close the
    twin is.

    It reads TCP, Multipath TCP, and QUIC whose secrets are in the capture or in a key log.

    The output of `iperf3 -J`, or a log of `ss -ti`, gives less than a capture. Intervals are then wider, and notes list
    the missing information.

    Examples: `polypath twin client.pcapng --out twin.toml`, `polypath twin client.pcapng server.pcapng --json`,
    `polypath twin iperf.json --out twin.toml`.
    """
    logs = key_logs(keys)
    if out_file is not None:
        require_not_read(out_file, *files, *logs)
        require_new(out_file)
    with progress.runs("twin") as told:
        made = make(files, connection, told, logs)
    for note in made.notes:
        warn(note)
    if out_file is not None:
        write(made.text, out_file)
    if as_json:
        out.verbatim(json.dumps(made.data(), indent=2) + "\n")
    elif out_file is None:
        out.verbatim(made.text)
    else:
        _show(made)
        err.print(f"scenario in {out_file}", markup=False)
    return DONE


def _show(made: Twin) -> None:
    rows = table("", "path", made.source, "twin", "", numbers=frozenset((made.source, "twin")))
    for each in made.rows:
        figures = ("" if value is None else f"{value:.4g}" for value in (each.capture, each.twin))
        rows.add_row(each.figure, each.path, *figures, each.unit)
    out.print(rows)
