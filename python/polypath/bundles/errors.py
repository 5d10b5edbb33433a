"""Why a bundle cannot be made, or is none."""

from __future__ import annotations

from polypath.errors import PolypathError


class BundleError(PolypathError, ValueError):
    """The message is one line."""
