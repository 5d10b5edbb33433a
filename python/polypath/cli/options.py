"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


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
