"""A run that its owner steps: to a time, to the next decision, to an event; what is seen and changed in between."""

from polypath.stepping.decisions import CongestionDecision, Decision, Interval, PathManagerDecision, SchedulerDecision
from polypath.stepping.run import Event, Observed, Run, Snapshot

__all__ = [
    "CongestionDecision",
    "Decision",
    "Event",
    "Interval",
    "Observed",
    "PathManagerDecision",
    "Run",
    "SchedulerDecision",
    "Snapshot",
]
