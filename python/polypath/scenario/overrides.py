"""Axes that a host or an application does not follow, because it has a setting of its own."""

from __future__ import annotations

from collections.abc import Iterator

from polypath.scenario.stack import SETTINGS
from polypath.scenario.tables import Tables, application_names
from polypath.scenario.vary import Axis


def overrides(tables: Tables, axis: Axis) -> list[str]:
    """The tables that set themselves what the axis varies in a more general one, as "host.server".

    Of applications only where all of them do: one with a setting of its own may be what the others are compared with.
    """
    found = [table for path in axis.paths for table in _of(tables, path.split("."))]
    return list(dict.fromkeys(found))


def _of(tables: Tables, steps: list[str]) -> Iterator[str]:
    match steps:
        case ["defaults", key, *_] if key in SETTINGS:
            for name, host in tables.host.items():
                if getattr(host, key) is not None:
                    yield f"host.{name}"
            yield from _applications(tables, None, key)
        case ["host", host_name, key, *_] if key in SETTINGS:
            yield from _applications(tables, host_name, key)


def _applications(tables: Tables, host: str | None, key: str) -> list[str]:
    found = []
    for name, application in zip(application_names(tables), tables.application, strict=True):
        for side in ("client", "server"):
            if host not in (None, getattr(application, side)):
                continue
            own = [
                f"application.{name}.{table}"
                for table in ("stack", f"{side}_stack")
                if getattr(getattr(application, table, None), key, None) is not None
            ]
            if not own:
                return []
            found += own
    return found
