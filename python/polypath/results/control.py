"""The activity of a controller and its switches in a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from polypath.results.metrics import Delays
from polypath.results.recording import Recording


@dataclass(frozen=True)
class Control:
    """Totals over all switches, the greatest table, and how flows were set up."""

    packet_ins: int
    packet_outs: int
    flow_mods: int
    group_mods: int
    flows_removed: int
    port_statuses: int
    dropped_packets: int
    switches: int
    #: The most entries that each switch ever had.
    max_entries: Sequence[int]
    #: Of each flow from its first packet at a switch that did not know it until that packet was sent on, in ns.
    delays: Delays

    @property
    def most_entries(self) -> int:
        return max(self.max_entries, default=0)

    @cached_property
    def mean_delay_ns(self) -> float | None:
        """None where no flow was set up, or one never was."""
        answered = self.delays.answered
        return sum(answered) / len(answered) if answered and not self.delays.unanswered else None


def of(recording: Recording) -> Control | None:
    """None where no controller ruled."""
    ends = recording.table("switch_ends")
    if ends.is_empty():
        return None
    setups = recording.table("flow_setups")["delay_ns"].to_list()
    return Control(
        **{
            name: int(ends[name].sum())
            for name in (
                "packet_ins",
                "packet_outs",
                "flow_mods",
                "group_mods",
                "flows_removed",
                "port_statuses",
                "dropped_packets",
            )
        },
        switches=len(ends),
        max_entries=ends["max_entries"].to_list(),
        delays=Delays.of(setups),
    )
