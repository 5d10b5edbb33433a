"""Figures as text, with their significant digits."""

from __future__ import annotations

import math
from typing import Final


def rounded(value: float, uncertainty: float = 0.0) -> str:
    """As many digits as leave two of an uncertainty; four without one."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    is_known = uncertainty > 0 and math.isfinite(uncertainty)
    digits = 1 - _magnitude(uncertainty) if is_known else 3 - _magnitude(value)
    if digits <= 0:
        return f"{round(value, digits):,.0f}"
    text = f"{value:,.{digits}f}"
    return text if is_known else text.rstrip("0").rstrip(".")


def percent(part: float) -> str:
    """A change in percent with its sign, two digits: +12 %, -0.31 %, +330 %."""
    value = 100 * part
    places = 1 - _magnitude(value)
    return f"{round(value, places):+,.{max(places, 0)}f} %"


def estimated(mean: float, low: float, high: float) -> str:
    """A mean with its interval: ± half of it, or from where to where if it is not symmetric."""
    half = (high - low) / 2
    if math.isclose(high - mean, mean - low, rel_tol=0.1):
        return f"{rounded(mean, half)} ± {rounded(half, half)}"
    return f"{rounded(mean, mean - low)} ({rounded(low, low)} to {rounded(high, high - mean)})"


#: What the second kind of `agreement` means.
ONE_VALUE: Final = "(all n): one value in all n runs, which differ otherwise; how rare another is they do not say"


def agreement(method: str, runs: int) -> str:
    """What follows a mean that has no interval because all runs gave the same value, if that is why."""
    return {"deterministic": " =", "constant": f" (all {runs})"}.get(method, "")


def _magnitude(value: float) -> int:
    """The power of ten of a number's first digit."""
    return math.floor(math.log10(abs(value))) if value else 0
