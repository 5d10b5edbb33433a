"""polypath exposure: an eavesdropper's view of each connection, by place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from polypath.cli import complete, one_run
from polypath.cli.console import out, table, warn
from polypath.cli.errors import DONE, INTERRUPTED
from polypath.cli.options import Runs, Seed, Settings
from polypath.engines import Options
from polypath.results import Recording
from polypath.results.exposure import AES_BLOCK_BYTES, Exposure, Stream, left_out, links_to_read
from polypath.results.exposure import exposure as exposures
from polypath.results.phrases import counted

#: Sets of links with a row, those that see most.
_MOST_SETS: Final = 20


def exposure(
    target: Annotated[
        str, typer.Argument(metavar="DIR|LAB|SCENARIO.toml", show_default=False, autocompletion=complete.targets)
    ],
    links: Annotated[
        int, typer.Option("--links", metavar="K", min=1, max=16, help="Also every set of this many links at once.")
    ] = 1,
    cbc: Annotated[
        int, typer.Option("--cbc", metavar="BYTES", min=1, max=1 << 20, help="Block of the cipher in CBC mode.")
    ] = AES_BLOCK_BYTES,
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON instead of tables.")] = False,
) -> int:
    """Show how much of each connection an eavesdropper on links, nodes or paths gets.

    The target is a stored result with segments (`run --plot`, `trace --plot`), or a lab's run or a scenario, which is
    run here. There are columns for each direction.

    `seen` is the share of the bytes. `longest` and `runs` are the longest run of bytes without a gap, and the number of
    runs. `messages` counts requests or responses seen whole. `in CBC` counts blocks that a known key opens. `alterable`
    counts bytes that can be altered unnoticed if the next segment of another subflow has each segment's MAC. `with
    keys` counts bytes that can be read if each subflow's keys are negotiated on another one.

    Examples: `polypath exposure results/mptcp`, `polypath exposure aggregation --run mptcp --links 2`,
    `polypath exposure scenario.toml --set defaults.scheduler=equal --json`.
    """
    recording = one_run.recording(target, settings or (), seed, runs or (), lambda _: Options(segments=True))
    found = exposures(recording, links=links, block_bytes=cbc)
    if names := left_out(recording):
        warn(f"{', '.join(names)}: no figures of UDP, ICMP, datagrams of QUIC, or several streams of QUIC")
    elif not found:
        warn("no connection sent any data")
    if as_json:
        out.verbatim(json.dumps(_data(recording, found, cbc), indent=2) + "\n")
    else:
        _show(recording, found)
    return INTERRUPTED if recording.metadata.interrupted else DONE


def _by_stream(found: Sequence[Exposure]) -> Iterator[tuple[Stream, list[Exposure]]]:
    streams = {(each.stream.connection, each.stream.side): each.stream for each in found}
    for key, stream in streams.items():
        yield stream, [each for each in found if (each.stream.connection, each.stream.side) == key]


def _show(recording: Recording, found: Sequence[Exposure]) -> None:
    numbers = ("seen", "longest", "runs", "messages", "in CBC", "alterable", "with keys")
    for stream, own in _by_stream(found):
        out.print(f"[bold]{escape(_heading(recording, stream))}[/bold]")
        rows = table("", "place", *numbers, numbers=frozenset(numbers), whole=frozenset(numbers))
        sets = sorted((each for each in own if each.tap.kind == "links"), key=lambda each: -each.share)
        for each in [each for each in own if each.tap.kind != "links"] + sets[:_MOST_SETS]:
            rows.add_row(each.tap.kind, escape(each.tap.name), *_row(each))
        out.print(rows)
        if len(sets) > _MOST_SETS:
            out.print(f"and {len(sets) - _MOST_SETS} more sets, which see no more; --json has all")
        out.print()


def _heading(recording: Recording, stream: Stream) -> str:
    needed = links_to_read(recording, stream.connection)
    parts = [f"{stream.name} from the {stream.side}: {stream.bytes:,} bytes"]
    if stream.unlocated_bytes:
        parts.append(f"{stream.unlocated_bytes:,} of them in no recorded segment")
    if needed is not None:
        parts.append(f"with keys on the neighbour, {counted(needed, 'link')} to tap to read anything")
    return "; ".join(parts)


def _row(each: Exposure) -> tuple[str, ...]:
    messages = "" if each.messages_share is None else f"{each.messages_share:.1%}"
    return (
        f"{each.share:.1%}",
        f"{each.longest_bytes:,}",
        f"{each.runs:,}",
        messages,
        f"{each.readable_share:.1%}",
        f"{each.alterable_share:.1%}",
        f"{each.keyed_share:.1%}",
    )


def _data(recording: Recording, found: Sequence[Exposure], block_bytes: int) -> dict[str, Any]:
    return {
        "scenario": recording.metadata.scenario,
        "block_bytes": block_bytes,
        "streams": [
            {
                "connection": stream.name,
                "side": stream.side,
                "bytes": stream.bytes,
                "unlocated_bytes": stream.unlocated_bytes,
                "links_to_read": links_to_read(recording, stream.connection),
                "places": [{"kind": each.tap.kind, "name": each.tap.name, **each.figures()} for each in own],
            }
            for stream, own in _by_stream(found)
        ],
    }
