"""Completions of command line arguments, from the text typed so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def labs(incomplete: str) -> list[str]:
    """Names of labs, then folders of one's own; with a beginning, folders that may lead to one."""
    folders = (each for each in _files(incomplete, ".toml") if each.endswith("/"))
    return _named(incomplete) + [each for each in folders if incomplete or (Path(each) / "lab.toml").is_file()]


def targets(incomplete: str) -> list[str]:
    """Names of labs, then folders and scenario files."""
    return _named(incomplete) + _files(incomplete, ".toml")


def labs_and_results(incomplete: str) -> list[str]:
    """Names of labs, then folders."""
    return _named(incomplete) + [each for each in _files(incomplete, ".toml") if each.endswith("/")]


def _named(incomplete: str) -> list[str]:
    from polypath import labs as known

    return [name for name in known.names() if name.startswith(incomplete)]


def folders(incomplete: str) -> list[str]:
    """Names of folders."""
    return [each for each in _files(incomplete, "/") if each.endswith("/")]


def bundles(incomplete: str) -> list[str]:
    """Names of folders and zip files."""
    return _files(incomplete, ".zip")


def engines(incomplete: str) -> list[str]:
    """Names of engines."""
    from polypath import engines as known

    return [name for name in known.REGISTRY if name.startswith(incomplete)]


def kinds(incomplete: str) -> list[str]:
    """Kinds of algorithms."""
    from polypath.registry import KINDS

    return [kind for kind in KINDS if kind.startswith(incomplete)]


def template(what: str) -> Callable[[str], Sequence[str]]:
    """Words that a new scenario takes for something."""

    def found(incomplete: str) -> list[str]:
        from polypath.scenario.template import choices

        return [word for word in choices(what) if word.startswith(incomplete)]

    return found


def _files(incomplete: str, suffix: str) -> list[str]:
    """Files of a suffix and folders whose names go on from there; hidden ones only if that is asked for."""
    folder, _, begin = incomplete.rpartition("/")
    place = Path(folder or ("/" if incomplete.startswith("/") else "."))
    try:
        inside = sorted(place.iterdir())
    except OSError:
        return []
    before = incomplete[: len(incomplete) - len(begin)]
    return [
        f"{before}{path.name}" + ("/" if path.is_dir() else "")
        for path in inside
        if path.name.startswith(begin)
        and (begin or not path.name.startswith("."))
        and (path.is_dir() or path.suffix == suffix)
    ]
