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
        _REPORTS,
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


_REPORTS: Final = """## Reports for the maintainers

Each report has the rule, what the stack does, and the command that shows it.

### noq-proto 1.4: a path that goes dark keeps its data

- *Rule*: lost frames may be sent again on any path (RFC 9000 section 13.3). A probe timeout alone does not declare
  packets lost (RFC 9002 section 6.2). So the data of a silent path is free once the path is abandoned (RFC 10069
  section 3.4). An acknowledgement may leave on any path (RFC 10069 section 5.1).
- *Observed*: the first of two paths drops everything from 1 s on. About 2.0 of 4 MB arrive, or 1.1 of 3 MB if the other
  path is a backup. The transfer does not end within 60 s. It makes no difference which side noq plays, and against
  whom: ten cells of the matrix.
- *Cause*: `TransportConfig::default_path_max_idle_timeout` is `None`, so that the silent path is never abandoned.
  Acknowledgements leave on the open path of lowest id, also if it is silent.
- *What would help*: a default for this timeout once multipath is negotiated. Or a path that got no acknowledgement for
  several probe timeouts hands its data to others, and carries no acknowledgements.
- *Shown by*: `polypath interop --stacks polypath,noq --case mp-failover --case mp-backup-takes-over --networks 0`

### picoquic 1.1.53: connection IDs of former addresses are not retired

- *Rule*: an endpoint that no longer uses a connection ID retires it (RFC 9000 section 5.1.2). Its peer then issues
  another one (section 5.1.1).
- *Observed*: a NAT gives the client other ports, over one path. The server takes another connection ID of the client
  for each port, and sends no RETIRE_CONNECTION_ID. A client with one spare ID has none left for the second port. The
  server then answers to the former port, and of four answers of 50 kB the first one arrives.
- *What would help*: RETIRE_CONNECTION_ID for the former address once the new one is validated.
- *On our side*: two IDs for each path suffice if the peer retires them. Section 5.1.1 asks for a sufficient number,
  without naming it. noq has eight active ones, quic-go six. Polypath's endpoint has two.
- *Shown by*: `polypath interop --stacks polypath,picoquic --case rebind-port --networks 0`
"""


def _absent() -> Iterator[str]:
    yield """## Stacks that take no part

- tquic 1.6 speaks draft 05 of multipath and could meet only itself. It asks the system for the time and for randomness
  while it sends and receives (`Instant::now`, `thread_rng`), so that it cannot run in virtual time.
- Programs with stacks in other languages run on engine `linux` or `live` ([programs](../../docs/programs.md)).

These stacks have one path: the sources of the first three name neither `initial_max_path_id` nor PATH_ABANDON. Files
were fetched over loopback, with `polypath quic` at the other end:

| stack | from | versions of QUIC | tried |
|---|---|---|---|
| quinn-proto 0.11.19 | the Rust registry | 1, drafts 29 to 34 | [the published cases](interop.md), in both roles |
| quic-go 0.65.0 | the Go proxy | 1, 2 | a file of 3 MB arrived in both roles, over version 1 |
| quiche 0.30.0 | the Rust registry | 1 | its source was read, not compiled |
| ngtcp2 0.12.1 | Debian 12 | not read | no connection: its programs offer HTTP/3, ours `hq-interop` (TLS alert 120) |
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
