"""How the advantage of a setting's value changes with the properties of the networks.

For each property, networks are ordered by it. Spearman's rank correlation compares this order with that of the value's
ratio to the base. The geometric mean of the ratio is given below and above the median of the property. The p-values are
corrected for all rows of a table (Holm 1979). A correlation tells no cause: properties that were drawn together move
together.

Properties are the numbers of the axes that span the networks, and of the settings of drawn ones. Where several settings
end in the same word, as `link.wifi.rate` and `link.lte.rate`, the largest over the smallest is a property, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any, Final

import polars as pl

from polypath.results.axes import SEED, Axis
from polypath.statistics import paired
from polypath.statistics.across import blocks

#: Fewer networks have no row.
FEWEST: Final = 8

COLUMNS: Final[Mapping[str, Any]] = {
    "connection": pl.String,
    "measure": pl.String,
    "value": pl.String,
    "base": pl.String,
    "property": pl.String,
    "unit": pl.String,
    "networks": pl.UInt32,
    "correlation": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "median": pl.Float64,
    "ratio_below": pl.Float64,
    "ratio_above": pl.Float64,
}
"""What `along` gives. `correlation` is Spearman's, of the property with the ratio."""


def along(
    points: pl.DataFrame,
    axes: Sequence[Axis],
    by: str,
    base: str,
    networks: Sequence[str],
    measures: Mapping[str, Sequence[str]],
) -> pl.DataFrame:
    """A row for each connection, measure, value of axis `by` and property of the networks. Columns: COLUMNS."""
    known = _properties(axes, networks)
    (axis,) = (axis for axis in axes if axis.name == by)
    labels = [base, *(label for label in axis.labels if label != base)]
    rows: list[dict[str, Any]] = []
    for (connection,), group in points.group_by("connection", maintain_order=True):
        for measure in measures[str(connection)]:
            found = blocks(group, by, base, labels, networks, measure, compared=False)
            for label in labels[1:]:
                ratios = {
                    block.network: math.log(block.means[label] / block.means[base])
                    for block in found
                    if all(math.isfinite(block.means[each]) and block.means[each] > 0 for each in (label, base))
                }
                if len(ratios) < FEWEST or len({round(ratio, 12) for ratio in ratios.values()}) == 1:
                    continue
                head = {"connection": connection, "measure": measure, "value": label, "base": base}
                rows += [
                    {**head, "property": name, "unit": unit, **_compared(values, ratios)}
                    for name, (unit, values) in known.items()
                    if len({values[network] for network in ratios}) > 1
                ]
    corrected = paired.holm([row["p"] for row in rows])
    made = [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]
    return pl.DataFrame(made, schema=dict(COLUMNS))


_Values = Mapping[tuple[str, ...], float]


def _properties(axes: Sequence[Axis], networks: Sequence[str]) -> dict[str, tuple[str, _Values]]:
    """The unit of each property, and its value in each network."""
    spanning = [next(axis for axis in axes if axis.name == name) for name in networks if name != SEED]
    single: dict[str, tuple[str, int, Mapping[str, float]]] = {}
    for place, axis in enumerate(spanning):
        if axis.numbers is not None:
            single[axis.name] = (axis.unit, place, dict(zip(axis.labels, axis.numbers, strict=True)))
        for path, (unit, numbers) in axis.properties.items():
            single[path] = (unit, place, dict(zip(axis.labels, numbers, strict=True)))
    every: list[tuple[str, ...]] = [()]
    for axis in spanning:
        every = [(*before, label) for before in every for label in axis.labels]
    found: dict[str, tuple[str, _Values]] = {
        name: (unit, {network: values[network[place]] for network in every})
        for name, (unit, place, values) in single.items()
    }
    for last in dict.fromkeys(name.rpartition(".")[2] for name in single):
        alike = [values for name, (_, values) in found.items() if name.rpartition(".")[2] == last]
        if len(alike) > 1 and all(min(values.values()) > 0 for values in alike):
            ratio = {
                network: max(values[network] for values in alike) / min(values[network] for values in alike)
                for network in every
            }
            found[f"{last} ratio"] = ("", ratio)
    return found


def _compared(values: _Values, ratios: Mapping[tuple[str, ...], float]) -> dict[str, Any]:
    from scipy.stats import spearmanr

    own = [values[network] for network in ratios]
    told = spearmanr(own, list(ratios.values()))
    middle = median(own)
    below = [ratio for network, ratio in ratios.items() if values[network] <= middle]
    above = [ratio for network, ratio in ratios.items() if values[network] > middle]
    return {
        "networks": len(ratios),
        "correlation": float(told.statistic),
        "p": float(told.pvalue),
        "median": middle,
        "ratio_below": math.exp(fmean(below)),
        "ratio_above": math.exp(fmean(above)) if above else None,
    }
