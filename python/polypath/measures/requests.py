"""Figures of an application's requests."""

from __future__ import annotations

from polypath.measures.measure import MILLISECONDS, NUMBER, PART, REQUESTS, Figure, Measure, over_connection
from polypath.results import metrics
from polypath.results.metrics import FEWEST, Connection, Delays
from polypath.results.recording import Recording


def _sends(recording: Recording, of: Connection) -> bool:
    return over_connection(recording, of) and bool(metrics.delays(recording, of))


def _delays_ns(recording: Recording, of: Connection, skip: int, last: int | None) -> list[int | None]:
    """The delays of the last `last` requests after the first `skip`."""
    everything = metrics.delays(recording, of)[skip:]
    return everything if last is None else everything[max(0, len(everything) - last) :]


def _answered_ns(recording: Recording, of: Connection, skip: int, last: int | None) -> list[int]:
    return [delay for delay in _delays_ns(recording, of, skip, last) if delay is not None]


def _all_answered_ns(recording: Recording, of: Connection, skip: int, last: int | None) -> list[int]:
    """Raises MetricError where some are unanswered: a figure of the others would pass for that of all."""
    chosen = _delays_ns(recording, of, skip, last)
    unanswered = sum(delay is None for delay in chosen)
    if unanswered:
        raise metrics.MetricError(f"{unanswered} of {len(chosen)} requests are unanswered")
    return [delay for delay in chosen if delay is not None]


def _delay_min(recording: Recording, of: Connection, *, skip: int = 0, last: int | None = None) -> Figure:
    return min(_answered_ns(recording, of, skip, last), default=None)


def _delay_max(recording: Recording, of: Connection, *, skip: int = 0, last: int | None = None) -> Figure:
    return max(_all_answered_ns(recording, of, skip, last), default=None)


def _delay_first(recording: Recording, of: Connection, *, skip: int = 0, last: int | None = None) -> Figure:
    return next(iter(_answered_ns(recording, of, skip, last)), None)


def _delay_mean(recording: Recording, of: Connection, *, skip: int = 0, last: int | None = None) -> Figure:
    values = _all_answered_ns(recording, of, skip, last)
    return sum(values) / len(values) if values else None


def _between(values: list[int], low_ms: float, high_ms: float) -> int:
    return sum(low_ms <= value / 1e6 <= high_ms for value in values)


def _delay_count_between(
    recording: Recording, of: Connection, *, low_ms: float, high_ms: float, skip: int = 0, last: int | None = None
) -> Figure:
    return float(_between(_answered_ns(recording, of, skip, last), low_ms, high_ms))


def _delay_fraction(
    recording: Recording, of: Connection, *, low_ms: float, high_ms: float, skip: int = 0, last: int | None = None
) -> Figure:
    sent = len(_delays_ns(recording, of, skip, last))
    return _between(_answered_ns(recording, of, skip, last), low_ms, high_ms) / sent if sent else None


def _unanswered(recording: Recording, of: Connection) -> Figure:
    return sum(delay is None for delay in metrics.delays(recording, of))


def _percentile(name: str, key: str, part: float, heading: str, title: str, words: str, *, beside: bool) -> Measure:
    """Fewer requests are no figure, but what stopped before it sent them all did not finish."""
    fewest = FEWEST[key]

    def delay(recording: Recording, of: Connection, *, skip: int = 0, last: int | None = None) -> Figure:
        chosen = _delays_ns(recording, of, skip, last)
        if 0 < len(chosen) < fewest:
            raise metrics.MetricError(f"measure 'delay_{name}' needs {fewest} requests, and there are {len(chosen)}")
        return Delays.of(chosen).quantile(part)

    return Measure(
        f"delay_{name}",
        MILLISECONDS,
        "requests",
        title,
        f"{title}; a request without an answer is longer than any",
        delay,
        heading=heading,
        words=words,
        kept=("requests", f"{name}_s"),
        beside=beside,
        applies=_sends,
        needs=("requests", fewest),
        unfinished=lambda row: row["requests"] is not None and (row["requests"] >= fewest or row["finished"] is False),
    )


FIGURES = (
    _percentile("median", "p50", 0.5, "delay ms", "median delay of the requests", "median delay", beside=True),
    _percentile("p95", "p95", 0.95, "95 % ms", "95th percentile of the delay", "", beside=False),
    _percentile("p99", "p99", 0.99, "99 % ms", "99th percentile of the delay", "", beside=False),
    Measure(
        "unanswered",
        REQUESTS,
        "requests",
        "requests without an answer",
        "requests without an answer",
        _unanswered,
        heading="unanswered",
        kept=("requests", "unanswered"),
        beside=True,
        applies=_sends,
    ),
    Measure("delay_min", MILLISECONDS, "requests", "least delay", "least delay of the requests", _delay_min),
    Measure("delay_max", MILLISECONDS, "requests", "greatest delay", "greatest delay of the requests", _delay_max),
    Measure(
        "delay_first", MILLISECONDS, "requests", "first delay", "delay of the first answered request", _delay_first
    ),
    Measure(
        "delay_mean",
        MILLISECONDS,
        "requests",
        "mean delay",
        "mean delay of the requests",
        _delay_mean,
        words="mean delay",
    ),
    Measure(
        "delay_fraction",
        PART,
        "requests",
        "part of the requests",
        "part of the requests with a delay between two bounds",
        _delay_fraction,
    ),
    Measure(
        "delay_count_between",
        NUMBER,
        "requests",
        "number of requests",
        "requests with a delay between two bounds",
        _delay_count_between,
    ),
)
