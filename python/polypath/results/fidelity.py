"""How far an engine's figures of a scenario are from another's, over several runs of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from polypath.results import metrics
from polypath.results.recording import Recording

#: Goodput, completion time and delay agree within this part of the reference's, shares within these points.
TOLERANCE = 0.05
SHARE_TOLERANCE = 5.0


@dataclass(frozen=True)
class Row:
    """The main figure of a connection on both engines, and the largest difference in a subflow's share."""

    connection: str
    measure: str
    unit: str
    value: float | None
    reference: float | None
    #: Points of per cent; None: there is but one subflow.
    share_difference: float | None
    #: Standard errors of the two means; None where there is one run.
    error: float | None = None
    reference_error: float | None = None

    @property
    def ratio(self) -> float | None:
        """The figure over the reference's; None where either is missing."""
        return self.value / self.reference if self.value is not None and self.reference else None

    @property
    def ok(self) -> bool:
        """Whether both are within the tolerances, or neither has a figure: nothing was answered on either."""
        if self.value is None and self.reference is None:
            return self.share_difference is None or self.share_difference <= SHARE_TOLERANCE
        near = self.value == self.reference or (self.ratio is not None and abs(self.ratio - 1) <= TOLERANCE)
        return near and (self.share_difference is None or self.share_difference <= SHARE_TOLERANCE)


def rows(runs: Sequence[Recording], reference: Sequence[Recording]) -> list[Row]:
    """A row for each connection of the scenario; figures are means over the runs."""
    names = [connection.name for connection in metrics.connections(reference[0])]
    found = []
    for name in names:
        unanswered = any(_unanswered(run, name) for run in (*runs, *reference))
        measure, unit, values = _figures(runs, name, unanswered)
        _, _, others = _figures(reference, name, unanswered)
        found.append(
            Row(
                name,
                measure,
                unit,
                _mean(values),
                _mean(others),
                _share_difference(runs, reference, name),
                _standard_error(values),
                _standard_error(others),
            )
        )
    return found


def _unanswered(run: Recording, name: str) -> bool:
    return None in metrics.delays(run, metrics.connection(run, name))


def _figures(runs: Sequence[Recording], name: str, unanswered: bool) -> tuple[str, str, list[float | None]]:
    """Goodput of what sends for a time or to the end of the run, mean delay of requests, completion time of others.

    Where requests are unanswered in a run of either engine, a mean of the others' delays would compare different
    requests: the figure is then how many were answered.
    """
    work = next(each["work"] for each in runs[0].plan["applications"] if each["name"] == name)
    of = [(run, metrics.connection(run, name)) for run in runs]
    if work["kind"] == "request-response":
        delays = [[delay for delay in metrics.delays(run, each) if delay is not None] for run, each in of]
        if unanswered:
            return "answered requests", "", [float(len(each)) for each in delays]
        return "mean delay", "ms", [fmean(each) / 1e6 if each else None for each in delays]
    to_the_end = work["kind"] in {"bulk", "stream"} and work.get("size_bytes") is None
    if work.get("duration_ns") is None and not to_the_end:
        completion = [metrics.completion_ns(each) for _, each in of]
        return "completion", "s", [None if time is None else time / 1e9 for time in completion]
    goodput = [metrics.goodput(run, each) for run, each in of]
    return "goodput", "Mbps", [None if rate is None else rate / 1e6 for rate in goodput]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _standard_error(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return stdev(known) / len(known) ** 0.5 if len(known) == len(values) > 1 else None


def _share_difference(runs: Sequence[Recording], reference: Sequence[Recording], name: str) -> float | None:
    shares, others = _shares(runs, name), _shares(reference, name)
    if max(len(shares), len(others)) < 2:
        return None
    paths = shares.keys() | others.keys()
    return max(abs(shares.get(path, 0.0) - others.get(path, 0.0)) for path in paths)


def _shares(runs: Sequence[Recording], name: str) -> Mapping[tuple[str, str], float]:
    """Mean share of each pair of addresses in per cent."""
    total: dict[tuple[str, str], float] = {}
    for run in runs:
        for subflow in metrics.subflows(run, metrics.connection(run, name)):
            path = (subflow.source.rpartition(":")[0], subflow.destination.rpartition(":")[0])
            total[path] = total.get(path, 0.0) + 100 * subflow.share / len(runs)
    return total
