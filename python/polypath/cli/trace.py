"""polypath trace: captures of real traffic as the result of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polypath.capture import trace as read
from polypath.cli import output, result
from polypath.cli.console import err, out, warn
from polypath.cli.errors import DONE, INTERRUPTED, InputError
from polypath.cli.figures import Drawing
from polypath.cli.options import AsJson, KeyLogs, OutFolder, key_logs
from polypath.measures.summary import summary, to_json
from polypath.results import folder
from polypath.units import TIME, UnitError


def trace(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE.pcap[ng]..",
            help="Captures; several may show the same traffic at different places.",
            show_default=False,
        ),
    ],
    directory: OutFolder = None,
    plot: Annotated[bool, typer.Option("--plot", help="Record every segment and draw plots; needs --out.")] = False,
    as_json: AsJson = False,
    keys: KeyLogs = None,
    interval: Annotated[str, typer.Option(metavar="TIME", help="Time between samples, e.g. '10 ms'.")] = "100 ms",
) -> int:
    """Read captures of real traffic, and show their connections as `run` does.

    It reads TCP, Multipath TCP of versions 0 and 1, and QUIC, in pcap or pcapng files of tcpdump, Wireshark or `run
    --pcap`. Files of the same traffic from several interfaces or hosts are combined. QUIC shows its datagrams by path.
    It also shows its packets if the capture or a key log has the secrets.

    Examples: `polypath trace phone.pcap`, `polypath trace client.pcapng server.pcapng --out results --plot`.
    """
    if plot and directory is None:
        raise InputError("--plot needs --out DIR to write to")
    interval_ns = _interval(interval)
    logs = key_logs(keys)
    if directory is None:
        traced = read(files, interval_ns=interval_ns, keys=logs)
    else:
        with folder.claim(directory, folder.RUN, [*files, *logs]) as held:
            traced = read(files, interval_ns=interval_ns, segments=plot, keys=logs)
            output.save(traced.recording, None, held, held.stage())
            if plot and not traced.recording.metadata.interrupted:
                with output.figures_last(held.shown):
                    output.draw(traced.recording, held, Drawing())
    for note in traced.notes:
        warn(note)
    if as_json:
        out.verbatim(to_json(summary(traced.recording)))
    else:
        result.show(traced.recording, traced.recording.metadata.scenario)
    if directory is not None:
        err.print(f"results in {directory}", markup=False)
    return INTERRUPTED if traced.recording.metadata.interrupted else DONE


def _interval(text: str) -> int:
    try:
        return TIME.parse(text, positive=True)
    except UnitError as error:
        raise InputError(f"--interval: {error.message}") from error
