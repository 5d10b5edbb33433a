"""mininet.log: prints nothing."""

from __future__ import annotations

from typing import Any

from ._placeholder import placeholder as __getattr__  # noqa: F401


def setLogLevel(*_: Any, **__: Any) -> None:
    """Nothing is logged, at any level."""


info = debug = warn = warning = error = output = critical = setLogLevel
