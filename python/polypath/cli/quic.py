"""polypath quic: files over our QUIC endpoint, on real UDP sockets."""

from __future__ import annotations

import json
import os
import secrets
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from polypath import _core
from polypath.cli.errors import DONE, InputError, require_unix

app = typer.Typer(
    add_completion=False,
    help="Serve and fetch files over QUIC or Multipath QUIC, on this computer's sockets.\n\nIt is for tests: the "
    "key of the certificate is public.",
    no_args_is_help=True,
)

Scheduler = Annotated[str | None, typer.Option(metavar="NAME", help="The packet scheduler.")]
Congestion = Annotated[str | None, typer.Option(metavar="NAME", help="The congestion control.")]
PathManager = Annotated[str | None, typer.Option(metavar="NAME", help="The path manager.")]
Single = Annotated[bool, typer.Option("--single", help="Use one path: do not offer the multipath extension.")]


@app.command()
def serve(
    path: Annotated[Path, typer.Argument(metavar="FOLDER|FILE", show_default=False)],
    listen: Annotated[
        list[str],
        typer.Option(metavar="ADDRESS:PORT", help="Address to listen on (repeatable). Port 0: a free one."),
    ],
    once: Annotated[bool, typer.Option("--once", help="End with the first connection.")] = False,
    scheduler: Scheduler = None,
    congestion: Congestion = None,
    path_manager: PathManager = None,
    single: Single = False,
    reset_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="32 secret bytes, such as from `head -c 32 /dev/urandom`. A server that starts with the same secret "
            "ends the connections of its predecessor.",
        ),
    ] = None,
) -> int:
    """Serve a folder's files, or one file by its name, until Ctrl-C.

    Example: `polypath quic serve files --listen 127.0.0.1:4433`.
    """
    require_unix()
    settings = {
        "root": str(path),
        "listen": [_socket("--listen", each) for each in listen],
        "once": once,
        "algorithms": _algorithms(scheduler, congestion, path_manager, single),
        "reset_key": None if reset_key is None else list(_secret(reset_key)),
        "seed": secrets.randbits(64),
    }
    _core.quic_serve(json.dumps(settings), _tell)
    return DONE


@app.command()
def fetch(
    target: Annotated[str, typer.Argument(metavar="ADDRESS:PORT/NAME", show_default=False)],
    sources: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="ADDRESS", help="A local address, for a separate path (repeatable)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write. Default: the file's own name.")
    ] = None,
    scheduler: Scheduler = None,
    congestion: Congestion = None,
    path_manager: PathManager = None,
    single: Single = False,
) -> int:
    """Fetch a file over a path from each local address.

    Example: `polypath quic fetch 192.0.2.1:4433/data.bin --from 192.0.2.7 --from 198.51.100.7`.
    """
    require_unix()
    server, slash, name = target.partition("/")
    if not slash or not name:
        raise InputError(f"'{target}' names no file; write ADDRESS:PORT/NAME, for example 127.0.0.1:4433/data.bin")
    settings = {
        "server": _socket("the server", server),
        "name": name,
        "from": [_address(each) for each in sources or ()],
        "algorithms": _algorithms(scheduler, congestion, path_manager, single),
        "seed": secrets.randbits(64),
    }
    file = out or Path(Path(name).name)
    try:
        into = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise InputError(f"{file} exists; name another file with --out, or remove it") from None
    try:
        found = json.loads(_core.quic_fetch(json.dumps(settings), into))
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    seconds = found["nanoseconds"] / 1e9
    typer.echo(f"{file}: {found['bytes']:,} bytes in {seconds:.3f} s, {found['bytes'] * 8e-6 / seconds:.1f} Mbps")
    typer.echo(f"sha256 {found['sha256']}")
    _show_paths(found["paths"], "received")
    return DONE


def _tell(text: str) -> None:
    news = json.loads(text)
    if news["news"] == "listening":
        typer.echo(f"listening at {', '.join(news['at'])}")
        return
    files = ", ".join(
        f"{name!r} ({'no such file' if size is None else f'{size:,} bytes'})" for name, size in news["asked"]
    )
    typer.echo(f"{news['client']} {news['how']}: {files or 'nothing asked for'}")
    _show_paths(news["paths"], "acked")


def _show_paths(paths: list[dict[str, Any]], which: str) -> None:
    word = {"received": "received", "acked": "acknowledged"}[which]
    for path in paths:
        typer.echo(f"  path {path['id']}  {path['local']} - {path['remote']}  {path[which]:,} bytes {word}")


def _algorithms(
    scheduler: str | None, congestion: str | None, path_manager: str | None, single: bool
) -> dict[str, object]:
    return {"scheduler": scheduler, "congestion": congestion, "path_manager": path_manager, "single": single}


def _secret(file: Path) -> bytes:
    """The 32 bytes of a file. Raises InputError."""
    try:
        secret = file.read_bytes()
    except OSError as error:
        raise InputError(f"--reset-key {file}: {error.strerror or error}") from error
    if len(secret) != 32:
        raise InputError(f"--reset-key {file} has {len(secret)} bytes; it takes 32")
    return secret


def _socket(what: str, text: str) -> str:
    """ADDRESS:PORT as the native module reads it; of IPv6 the address stands in brackets."""
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        address = ip_address(bare)
        if bracketed != (address.version == 6) or not port.isdecimal() or int(port) > 65535:
            raise ValueError
    except ValueError:
        example = "127.0.0.1:4433 or [::1]:4433"
        raise InputError(f"{what}: '{text}' is no ADDRESS:PORT; write it like {example}") from None
    return text


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise InputError(f"--from: '{text}' is no IP address; write it like 192.0.2.1 or 2001:db8::1") from None
