"""Differences between stacks, traced to the rule on either side: printed for the cells that they explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from polypath.interop.matrix import Cell


@dataclass(frozen=True)
class Explanation:
    """Why some cells fail."""

    cases: tuple[str, ...]
    #: Who has to be client, and server; empty for anyone.
    clients: tuple[str, ...]
    servers: tuple[str, ...]
    text: str
    #: One of the two is enough.
    either: bool = False

    def covers(self, cell: Cell) -> bool:
        """Whether it explains a cell that failed."""
        client = not self.clients or cell.client in self.clients
        server = not self.servers or cell.server in self.servers
        return (
            cell.passed is False
            and cell.case in self.cases
            and (client or server if self.either else client and server)
        )


EXPLAINED: Final = (
    Explanation(
        ("mp-failover", "mp-recovery", "mp-backup-takes-over"),
        ("noq",),
        ("noq",),
        "As it ships, noq never abandons a silent path: paths have no idle timeout. What was in flight on it is not "
        "sent on another path. Acknowledgements leave on the open path of lowest id, and those of the path that works "
        "die on the one that does not. An application of noq can set `default_path_max_idle_timeout`.",
        either=True,
    ),
    Explanation(
        ("rebind-port",),
        ("polypath",),
        ("picoquic",),
        "picoquic's server takes another connection ID of the client for each of its addresses (RFC 9000 section 9.5). "
        "It does not retire the former one, as section 5.1.2 asks. Polypath's client offers one spare ID, and another "
        "one when an ID is retired (section 5.1.1). None is left for the second rebinding, and picoquic answers to the "
        "former port. noq's client offers seven.",
    ),
)


def explanations(cells: Sequence[Cell]) -> Iterator[tuple[list[Cell], str]]:
    """Each explanation of a failed cell, with all that it explains."""
    for each in EXPLAINED:
        covered = [cell for cell in cells if each.covers(cell)]
        if covered:
            yield covered, each.text
