"""What became of the packets that were routed into tunnels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polypath.results.recording import Recording


@dataclass(frozen=True)
class Direction:
    """One direction of a tunnel, in packets."""

    name: str
    #: The link whose packets it carries.
    link: str
    #: "forward" (from the tunnel's client) or "backward".
    direction: str
    entered: int
    carried: int
    carried_bytes: int
    left: int
    unconnected: int
    queue_full: int
    too_long: int
    unfit: int
    reordered: int
    late: int

    @property
    def lost(self) -> int:
        """Taken by the connection, and not out at the far end: lost, or still under way when the run ended."""
        return self.carried - self.left


def of(recording: Recording) -> Iterator[Direction]:
    """Every direction of every tunnel, in the plan's order."""
    plan = recording.plan
    for row in recording.table("tunnels").iter_rows(named=True):
        application = plan["applications"][row["application"]]
        yield Direction(
            name=application["name"],
            link=plan["links"][application["work"]["link"]]["name"],
            direction=str(row["direction"]),
            carried_bytes=row["carried_bytes"],
            **{
                name: row[f"{name}_packets"]
                for name in (
                    "entered",
                    "carried",
                    "left",
                    "unconnected",
                    "queue_full",
                    "too_long",
                    "unfit",
                    "reordered",
                    "late",
                )
            },
        )
