"""Closed forms for comparison with measured figures: one function and one registry entry each.

They take the plan and what was established, never what was delivered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from polypath.measures import Figure
from polypath.plan.routing import PathOfSubflow, Routing, address_of
from polypath.results import metrics, paths
from polypath.results.recording import Recording


@dataclass(frozen=True)
class Model:
    """A computed figure, its unit and where it is from."""

    name: str
    unit: str
    description: str
    source: str
    compute: Callable[..., Figure]

    def __call__(self, recording: Recording, parameters: Mapping[str, Any]) -> Figure:
        """Raises MetricError for parameters that the model does not take."""
        try:
            bound = inspect.signature(self.compute).bind(recording, **parameters)
        except TypeError as error:
            raise metrics.MetricError(f"model '{self.name}': {error}") from None
        return self.compute(*bound.args, **bound.kwargs)


def _found(recording: Recording, connection: str) -> tuple[list[PathOfSubflow], bool]:
    """The paths of established subflows, and whether most bytes go from server to client."""
    of = metrics.connection(recording, connection)
    application = recording.plan["applications"][of.application]
    ends = [
        (address_of(subflow.source), address_of(subflow.destination))
        for subflow in metrics.subflows(recording, of)
        if subflow.established_ns is not None
    ]
    routing = recording.once("routing", lambda: Routing(recording.plan))
    return routing.of_subflows(ends), paths.is_reverse(application)


def _paths(recording: Recording, connection: str) -> tuple[float | None, float | None]:
    """Rate in bit/s of the paths together, and their longest round-trip time in seconds."""
    found, reverse = _found(recording, connection)
    rate = paths.rate_bps(recording.plan, found, reverse=reverse)
    return rate, max((path.rtt_s for path in found), default=None)


def _capped(recording: Recording, connection: str, epsilon: float | None) -> tuple[float, float] | None:
    """Rate in bit/s of all paths and of the one that carries most, with no path above 1/n + epsilon of the bytes."""
    found, reverse = _found(recording, connection)
    rates = [paths.rate_bps(recording.plan, [path], reverse=reverse) for path in found]
    known = [rate for rate in rates if rate is not None]
    if not known or len(known) < len(rates):
        return None
    cap = 1.0 if epsilon is None else min(1.0, 1 / len(known) + epsilon)
    total = paths.capped_rate_bps(known, cap)
    return total, min(max(known), cap * total)


def capped(recording: Recording, *, connection: str, epsilon: float | None = None) -> Figure:
    found = _capped(recording, connection, epsilon)
    return None if found is None else found[0] / 1e6


def capped_share(recording: Recording, *, connection: str, epsilon: float | None = None) -> Figure:
    found = _capped(recording, connection, epsilon)
    return None if found is None else found[1] / found[0]


def links(recording: Recording, *, connection: str) -> Figure:
    rate, _ = _paths(recording, connection)
    return None if rate is None else rate / 1e6


def window(recording: Recording, *, connection: str) -> Figure:
    of = metrics.connection(recording, connection)
    rate, rtt = _paths(recording, connection)
    samples = recording.table("subflows").filter((pl.col("connection") == of.id) & (pl.col("side") == of.receiver))
    advertised = samples["receive_window_bytes"].max()
    if rate is None or not rtt or not isinstance(advertised, int):
        return None
    return paths.window_limit_bps(advertised, rtt, rate) / 1e6


REGISTRY: Mapping[str, Model] = {
    model.name: model
    for model in (
        Model("links", "Mbps", "what the links of the subflows carry together, headers included", "max-flow", links),
        Model(
            "window",
            "Mbps",
            "the largest advertised window each round-trip time, as far as the links carry it",
            "RFC 7323 section 1.1",
            window,
        ),
        Model(
            "capped",
            "Mbps",
            "what disjoint paths carry, headers included, if none has more than 1/n + epsilon of the bytes",
            "docs/exposure.md",
            capped,
        ),
        Model("capped_share", "", "the largest share of a path then", "docs/exposure.md", capped_share),
    )
}
