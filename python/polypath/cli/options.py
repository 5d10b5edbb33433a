"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from polypath.cli.errors import InputError
from polypath.recorded import NAMED, SAID, Captures
from polypath.units import nearest


def _folder(text: str) -> Path:
    if not text.strip():
        raise typer.BadParameter("the name is empty; name a folder")
    return Path(text)


Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change the scenario, e.g. --set 'link.path0.rate=10 Mbps'."),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**63 - 1, help="Seed of the random streams, instead of the scenario's."),
]
Axes = Annotated[
    list[str] | None,
    typer.Option("--vary", metavar="PATH=A,B,C", help="Add an axis: run every value, e.g. --vary seeds=10."),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, max=1024, help="Points of a sweep that run at a time. Default: one per core."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="tcp://HOST:PORT|slurm", help="Compute a sweep's points on a Dask cluster; needs the extra 'cluster'."
    ),
]
Runs = Annotated[list[str] | None, typer.Option("--run", metavar="NAME", help="Only this run of the lab (repeatable).")]
OutFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        parser=_folder,
        help="Write results to a new or an empty folder, or replace an earlier result; a sweep's points are kept.",
    ),
]
Application = Annotated[
    str | None,
    typer.Option(
        "--application", metavar="NAME", help="For iperf3's format: the transfer to write, if there are several."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the content of summary.json instead of tables.")]
AsIperf3 = Annotated[bool, typer.Option("--iperf3", help="Print a transfer as `iperf3 -J` does instead of tables.")]
OutFile = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write to this file instead of printing.")]
KeyLogs = Annotated[
    list[Path] | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        show_default=False,
        help="A TLS key log, to decrypt QUIC packets (repeatable). Default: the file in SSLKEYLOGFILE.",
    ),
]


def key_logs(named: list[Path] | None) -> list[Path]:
    """The named key logs, otherwise the one that programs on this computer write, if it exists."""
    file = Path(os.environ.get("SSLKEYLOGFILE", ""))
    return named or ([file] if file.is_file() else [])


Pcap = Annotated[Captures, typer.Option(SAID["captures"].option, help=SAID["captures"].help)]
Qlog = Annotated[bool, typer.Option(SAID["qlogs"].option, help=SAID["qlogs"].help)]
More = Annotated[
    list[str] | None,
    typer.Option("--record", metavar="NAME", help=f"Also record {', '.join(NAMED)} (repeatable)."),
]


def settings_of(recorded: Sequence[str]) -> list[str]:
    """What `--record` sets in a scenario. Raises InputError."""
    for name in recorded:
        if name not in NAMED:
            hint = nearest(name, NAMED)
            better = f"did you mean '{hint}'?" if hint else f"there is {', '.join(NAMED)}"
            raise InputError(f"--record: unknown name '{name}'; {better}")
    return [f"record.{name}=true" for name in recorded]
