"""Why a connection was not faster, in bytes that add up: the capacity of its links, and its use.

The simulator keeps the account (the table `account` of docs/recording.md). Each link that bounds a connection carried
something, or idled for a cause; what it could have carried is the sum. docs/explain.md tells the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from polypath.results import metrics
from polypath.results.metrics import Connection
from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

#: What reached the receiver for the first time; it is no cause.
DELIVERED: Final = "delivered"
#: Where there are more connections, nobody reads each one's account: it is kept where it is asked for.
_MOST_CONNECTIONS: Final = 100


@dataclass(frozen=True)
class Charge:
    """What one cause cost on one of the links that bound a connection."""

    #: A name of docs/explain.md.
    cause: str
    #: The link that sent or idled.
    path: str
    bytes: int
    #: The link that dropped or lost packets, or was down.
    at: str | None
    #: The subflow or path that carried the first byte that was not acknowledged.
    head: str | None
    #: When the sampling interval began in which it cost most.
    worst_ns: int
    #: A subflow over the link was reset, which says more than that it is closed.
    reset: bool = False


@dataclass(frozen=True)
class Account:
    """`capacity_bytes` is `delivered_bytes` and the bytes of all charges, exactly."""

    #: What its links could have carried.
    capacity_bytes: int
    delivered_bytes: int
    #: Costliest first.
    charges: Sequence[Charge]
    #: The stretch of time that it is of.
    since_ns: int
    until_ns: int

    def data(self) -> dict[str, Any]:
        """As `explain --json` and summary.json have it."""
        return {
            "capacity_bytes": self.capacity_bytes,
            "delivered_bytes": self.delivered_bytes,
            "since_s": self.since_ns / metrics.SECOND,
            "until_s": self.until_ns / metrics.SECOND,
            "account": [
                {
                    "cause": each.cause,
                    "path": each.path,
                    "at": each.at,
                    "head": each.head,
                    "bytes": each.bytes,
                    "worst_s": each.worst_ns / metrics.SECOND,
                }
                for each in self.charges
            ],
        }


def is_read(plan: PlanData) -> bool:
    """Whether a run of a plan has few enough connections for their accounts to be kept unasked."""
    return len(plan["applications"]) <= _MOST_CONNECTIONS


def of_connection(
    recording: Recording, of: Connection, since_ns: int = 0, until_ns: int | None = None
) -> Account | None:
    """The account of a connection's sender, or of a stretch of time between samples; None where none was kept."""
    kept = metrics.account(recording, of, since_ns, until_ns)
    if kept is None:
        return None
    return Account(**{**kept, "charges": [Charge(**each) for each in kept["charges"]]})
