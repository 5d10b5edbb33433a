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
    int | None, typer.Option("--jobs", min=1, max=1024, help="Points of a sweep run at a time; left out: one a core.")
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
        help="Write results there: into a new or an empty folder, or in the place of an earlier result; "
        "a sweep's points are kept.",
    ),
]
Application = Annotated[
    str | None,
    typer.Option("--application", metavar="NAME", help="With iperf3's form: which of several transfers is meant."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print what summary.json holds instead of tables.")]
AsIperf3 = Annotated[bool, typer.Option("--iperf3", help="Print a transfer as `iperf3 -J` does instead of tables.")]
OutFile = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write there instead of printing.")]
KeyLogs = Annotated[
    list[Path] | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        show_default=False,
        help="A key log of TLS, to open packets of QUIC (repeatable); left out, the one that SSLKEYLOGFILE names.",
    ),
]


def key_logs(named: list[Path] | None) -> list[Path]:
    """Those that were named, or the one that programs on this machine write, if there is one."""
    file = Path(os.environ.get("SSLKEYLOGFILE", ""))
    return named or ([file] if file.is_file() else [])
