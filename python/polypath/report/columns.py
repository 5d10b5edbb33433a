"""Columns of numbers in a page: whole numbers as differences, deflated, in base64."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any


def differences(values: Sequence[int | None]) -> list[int | None]:
    """Each value less the one before that is there; null where there is none."""
    found: list[int | None] = []
    before = 0
    for value in values:
        if value is None:
            found.append(None)
        else:
            found.append(value - before)
            before = value
    return found


def deflated(data: Mapping[str, Any]) -> str:
    """JSON, deflated (RFC 1951), in base64."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode("ascii")
