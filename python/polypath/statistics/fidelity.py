"""The distance between two engines' figures of a scenario, over several runs of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final, Literal

from polypath.measures import REGISTRY
from polypath.registry import traffic
from polypath.results import metrics
from polypath.results.recording import Recording

#: Goodput, completion time and delay agree within this part of the reference's, shares within these points.
TOLERANCE = 0.05
SHARE_TOLERANCE = 5.0

OK: Final = "ok"
OFF: Final = "off"
#: There is no figure on either engine: that is no agreement.
NOT_COMPARED: Final = "not compared"
Verdict = Literal["ok", "off", "not compared"]


@dataclass(frozen=True)
class Row:
    """A figure of a connection on both engines, and with its main one the largest difference in a subflow's share."""

    connection: str
    measure: str
    unit: str
    value: float | None
    reference: float | None
    #: Points of per cent; None: there is but one subflow, or it is with another figure.
    share_difference: float | None
    #: Standard errors of the two means; None where there is one run.
    error: float | None = None
    reference_error: float | None = None

    @property
    def ratio(self) -> float | None:
        """The figure over the reference's; None where either is missing."""
        return self.value / self.reference if self.value is not None and self.reference else None

    @property
    def verdict(self) -> Verdict:
        """Whether both are within the tolerances."""
        if self.share_difference is not None and self.share_difference > SHARE_TOLERANCE:
            return OFF
        if self.value is None and self.reference is None:
            return NOT_COMPARED
        near = self.value == self.reference or (self.ratio is not None and abs(self.ratio - 1) <= TOLERANCE)
        return OK if near else OFF


def verdict(rows: Sequence[Row]) -> Verdict:
    """That of a scenario: it agrees where all its figures do."""
    found = {row.verdict for row in rows}
    if OFF in found:
        return OFF
    return OK if found == {OK} else NOT_COMPARED


def rows(runs: Sequence[Recording], reference: Sequence[Recording]) -> list[Row]:
    """The rows of each connection of the scenario; figures are means over the runs."""
    names = [connection.name for connection in metrics.connections(reference[0])]
    found = []
    for name in names:
        unanswered = any(_unanswered(run, name) for run in (*runs, *reference))
        share = _share_difference(runs, reference, name)
        for (measure, unit, values), (_, _, others) in zip(
            _figures(runs, name, unanswered), _figures(reference, name, unanswered), strict=True
        ):
            for row in _compared(name, measure, unit, values, others):
                found.append(replace(row, share_difference=share))
                share = None
    return found


def _compared(
    name: str, measure: str, unit: str, values: Sequence[float | None], others: Sequence[float | None]
) -> Iterator[Row]:
    """The means; where runs have no figure, how many have one, and the means of the others."""
    have, have_others = ([value for value in each if value is not None] for each in (values, others))
    if (have or have_others) and (len(have) < len(values) or len(have_others) < len(others)):
        counted = "finished" if measure == "completion" else f"runs with {measure}"
        yield Row(name, counted, "runs", float(len(have)), float(len(have_others)), None)
        if len(values) == len(others):  # of the same plans
            pairs = [(a, b) for a, b in zip(values, others, strict=True) if a is not None and b is not None]
            have, have_others = [a for a, _ in pairs], [b for _, b in pairs]
        if not have or not have_others:
            return
    errors = _standard_error(have), _standard_error(have_others)
    yield Row(name, measure, unit, _mean(have), _mean(have_others), None, *errors)


def _unanswered(run: Recording, name: str) -> bool:
    return None in metrics.delays(run, metrics.connection(run, name))


_Figure = tuple[str, str, list[float | None]]


def _figures(runs: Sequence[Recording], name: str, unanswered: bool) -> list[_Figure]:
    """The figures to compare.

    - If the application sends for a time or to the end of the run, it is goodput.
    - Requests have their mean delay, and videos their rate and stalls.
    - Other applications have their completion time.

    If requests are unanswered in a run of either engine, a mean would compare different requests. The figure is then
    the number of answers.
    """
    work = next(each["work"] for each in runs[0].plan["applications"] if each["name"] == name)
    of = [(run, metrics.connection(run, name)) for run in runs]
    if work["kind"] == "request-response":
        if unanswered:
            delays = [[delay for delay in metrics.delays(run, each) if delay is not None] for run, each in of]
            return [("answered requests", "", [float(len(each)) for each in delays])]
        return _measured(of, "delay_mean")
    if work["kind"] == "video":
        return _measured(of, "video_rate", "video_stalled")
    sent = traffic(work["kind"])
    to_the_end = sent.direction == "one-way" and sent.delays == "none" and work.get("size_bytes") is None
    if work.get("duration_ns") is None and not to_the_end:
        return _measured(of, "completion")
    return _measured(of, "goodput")


def _measured(of: Sequence[tuple[Recording, metrics.Connection]], *names: str) -> list[_Figure]:
    return [
        (each.label, each.unit.shown, [each.shown(run, connection) for run, connection in of])
        for each in map(REGISTRY.__getitem__, names)
    ]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _standard_error(values: Sequence[float]) -> float | None:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else None


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
            total[path] = total.get(path, 0.0) + 100 * (subflow.share or 0.0) / len(runs)
    return total
