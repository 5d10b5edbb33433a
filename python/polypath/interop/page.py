"""The matrix and the measurements as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Final

from polypath.interop.cases import CASES
from polypath.interop.explained import explanations
from polypath.interop.matrix import Cell
from polypath.interop.networks import Measured
from polypath.interop.participants import PARTICIPANTS
from polypath.results.files import OutputError, require_writable

Pair = tuple[str, str]
_TITLE: Final = "# Multipath QUIC: every stack against every other"


def page(pairs: Sequence[Pair], cells: Sequence[Cell], measured: Sequence[Measured], command: str) -> str:
    """The whole of it."""
    parts = (
        *_head(command, cells, measured),
        *_stacks(),
        *_matrix(pairs, cells),
        *_differences(cells),
        *_figures(pairs, measured),
        *_absent(),
    )
    return "\n".join(parts)


def require_replaceable(path: Path) -> None:
    """Raises OutputError if a page cannot be written there, or would replace another file."""
    require_writable(path.parent)
    if path.exists() and not path.read_bytes().startswith(_TITLE.encode()):
        raise OutputError(f"{path} exists and is no such page; name another file, or remove it")


def digest(cells: Sequence[Cell], measured: Sequence[Measured]) -> str:
    """The hash of all that was recorded."""
    hashes = [cell.hash for cell in cells] + [each.hash for each in measured]
    return sha256("".join(hashes).encode()).hexdigest()


def _head(command: str, cells: Sequence[Cell], measured: Sequence[Measured]) -> Iterator[str]:
    passed = sum(cell.passed is True for cell in cells)
    failed = sum(cell.passed is False for cell in cells)
    skipped = len(cells) - passed - failed
    yield f"""{_TITLE}

How stacks of QUIC and Multipath QUIC by different people work together, in one deterministic network.

Each stack runs unchanged on a host of the simulator, in virtual time, with real TLS and real packets. One command
makes this page, and a rerun makes the same page:

```sh
{command}
```

With `--kept FILE`, a call that was interrupted goes on where it stopped, and makes the same page.

The page has {len(cells)} cells: {passed} passed, {failed} failed and {skipped} were not played. The hash of all
recordings is `{digest(cells, measured)[:32]}`.

The stacks `picoquic` and `aioquic` need the extras of their names ([what to install](../../docs/model/picoquic.md)).
[The other page](interop.md) has the published test cases of single-path QUIC, where packets on the wire decide.
Here recordings of both ends decide.
"""


def _stacks() -> Iterator[str]:
    yield "## Stacks\n"
    yield "| `stack` | version | multipath |"
    yield "|---|---|---|"
    for each in PARTICIPANTS.values():
        there = "" if each.missing() is None else f" ({each.missing()})"
        yield f"| `{each.name}` | {each.title}{there} | {each.speaks} |"
    yield ""


def _matrix(pairs: Sequence[Pair], cells: Sequence[Cell]) -> Iterator[str]:
    by_key = {(cell.case, cell.client, cell.server): cell for cell in cells}
    for group, title in (("runner", "Test cases of one path"), ("multipath", "Test cases of several paths")):
        cases = [case for case in CASES if case.group == group and any(cell.case == case.name for cell in cells)]
        if not cases:
            continue
        shown: list[Pair] = []
        left_out: list[str] = []
        for pair in pairs:
            of = [by_key[case.name, *pair] for case in cases if (case.name, *pair) in by_key]
            never = {cell.reason for cell in of} if of and all(cell.passed is None for cell in of) else set()
            if len(never) == 1:
                left_out += never
            else:
                shown.append(pair)
        yield f"## {title}\n"
        yield "Columns are client → server. Cases with random loss hold for three seeds.\n"
        yield f"| test case | {' | '.join(f'{client} → {server}' for client, server in shown)} |"
        yield "|---" * (len(shown) + 1) + "|"
        notes: dict[str, int] = {}
        for case in cases:
            words = [_word(by_key.get((case.name, *pair)), notes) for pair in shown]
            yield f"| {case.name} | {' | '.join(words)} |"
        yield ""
        if notes:
            yield from (f"{number}. {note}" for note, number in notes.items())
            yield ""
        for reason in dict.fromkeys(left_out):
            yield f"{left_out.count(reason)} pairs are not played: {reason}.\n"
        yield "| test case | requirement |"
        yield "|---|---|"
        yield from (f"| {case.name} | {case.requirement} |" for case in cases)
        yield ""


def _word(cell: Cell | None, notes: dict[str, int]) -> str:
    """What a table says of a cell, with the number of its reason."""
    if cell is None or cell.passed:
        return "" if cell is None else "passed"
    where = "" if cell.passed is None else f"{cell.case}, {cell.client} → {cell.server}: "
    number = notes.setdefault(f"{where}{cell.reason}", len(notes) + 1)
    return f"{'not played' if cell.passed is None else 'failed'} [{number}]"


def _differences(cells: Sequence[Cell]) -> Iterator[str]:
    found = list(explanations(cells))
    if not found:
        return
    yield "## Differences, traced\n"
    for covered, text in found:
        cases = dict.fromkeys(cell.case for cell in covered)
        pairs = dict.fromkeys(f"{cell.client} → {cell.server}" for cell in covered)
        yield f"- **{', '.join(cases)}** ({', '.join(pairs)}). {text}"
    yield ""


def _absent() -> Iterator[str]:
    yield """## Stacks that take no part

- tquic 1.6 speaks draft 05 of multipath and could meet only itself. It asks the system for the time and for randomness
  while it sends and receives (`Instant::now`, `thread_rng`), so that it cannot run in virtual time.
- Programs with stacks in other languages run on engine `linux` or `live` ([programs](../../docs/programs.md)).
"""


def _figures(pairs: Sequence[Pair], measured: Sequence[Measured]) -> Iterator[str]:
    if not measured:
        return
    count = len({each.network for each in measured})
    yield f"""## Performance over {count} network{"" if count == 1 else "s"}

Each of two paths has a rate of 2 to 20 Mbit/s and a delay of 5 to 80 ms. Its queue has 0.5 to 2 products of rate and
round trip. Half of the paths lose 0.01 to 1 % of the packets. A client fetches what both paths carry in 2 s, with
CUBIC as congestion control.

- *Completion* is the time divided by what both rates together need: 1.0 is the best. The median and the worst.
- *Share* is by how much the first path's part of the bytes differs from its part of the rates. The median.
- *Gap* is the longest time without data after the first path drops everything at 1 s. The median and the worst.
- *Ended* counts the transfers that ended within 120 s: of those without failure, and of those with it.
"""
    yield "| client → server | completion | worst | share | gap | worst | ended |"
    yield "|---|---|---|---|---|---|---|"
    for client, server in pairs:
        of = [each for each in measured if (each.client, each.server) == (client, server)]
        if not of:
            continue
        problem = next((each.problem for each in of if each.problem), None)
        if problem is not None:
            yield f"| {client} → {server} | {problem} | | | | | |"
            continue
        done = [each.completion for each in of if each.completion is not None]
        gaps = [each.gap_s for each in of if each.gap_s is not None]
        shares = [abs(each.share - each.fair) for each in of if each.share is not None]
        ends = f"{len(done)} and {len(gaps)} of {len(of)}"
        yield (
            f"| {client} → {server} | {_number(done, median)} | {_number(done, max)} | {median(shares):.0%} "
            f"| {_number(gaps, median, ' s')} | {_number(gaps, max, ' s')} | {ends} |"
        )
    yield ""


def _number(values: Sequence[float], of: Callable[[Sequence[float]], float], unit: str = "") -> str:
    return f"{of(values):.2f}{unit}" if values else "–"
