"""The description of a bundle as an RO-Crate 1.2 (w3id.org/ro/crate/1.2), in JSON-LD.

"Root Data Entity" of the specification says what the root has: name, description, datePublished and license. "Data
Entities" and "Provenance of entities" (a CreateAction with instrument, object and result) describe the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from polypath import _core
from polypath.bundles import layout
from polypath.bundles.results import Result
from polypath.results import layout as places

_VERSION: Final = "https://w3id.org/ro/crate/1.2"
_SOFTWARE: Final = "#polypath"
_UNSTATED: Final = "The authors state no licence."
_TYPES: Final[Mapping[str, str]] = {
    ".csv": "text/csv",
    ".har": "application/json",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
}
_WHAT: Final[Mapping[str, str]] = {
    layout.README: "How to run the bundle again",
    layout.ENVIRONMENT: "The versions of what made the results",
    places.SCENARIO: "The scenario: network, transports, applications and events",
    places.PLAN: "The plan: the scenario with every value resolved",
    places.MANIFEST: "How the run came about, with the hashes of its plan, its recording and its files",
    places.SUMMARY: "The figures of the run",
    places.INDEX: "The sweep: axes, points, and the hashes of its files",
}


def described(
    name: str,
    description: str,
    licence: str,
    authors: Sequence[str],
    day: str,
    results: Sequence[Result],
    digests: Mapping[str, str],
) -> dict[str, Any]:
    """The metadata document; `digests` has the bundle's files with their SHA-256."""
    files = [each for each in sorted(digests) if _is_described(each, results)]
    people = [{"@id": f"#author-{number}", "@type": "Person", "name": each} for number, each in enumerate(authors, 1)]
    is_address = licence.startswith(("https://", "http://"))
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": name,
        "description": description or f"Results of Polypath that `polypath rerun` makes again: {name}.",
        "datePublished": day,
        "license": {"@id": licence} if is_address else licence or _UNSTATED,
        "author": [{"@id": each["@id"]} for each in people],
        "hasPart": [
            *({"@id": _id(each)} for each in files),
            *({"@id": _folder(each)} for each in results),
        ],
        "mentions": [{"@id": _action(each)} for each in results],
    }
    if not people:
        del root["author"]
    graph: list[dict[str, Any]] = [
        {
            "@id": layout.CRATE,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": _VERSION},
        },
        root,
        *people,
        *([{"@id": licence, "@type": "CreativeWork", "name": licence, "description": licence}] if is_address else []),
        {
            "@id": _SOFTWARE,
            "@type": "SoftwareApplication",
            "name": "Polypath",
            "description": "A multipath transport lab",
            "version": _core.version(),
        },
        *(entity for each in results for entity in _of_result(each, files)),
        *(_file(each, digests[each]) for each in files),
    ]
    return {"@context": f"{_VERSION}/context", "@graph": graph}


def _is_described(name: str, results: Sequence[Result]) -> bool:
    """Whether a file has a description of its own. Recorded tables have none, nor have the points of a sweep, which may
    be a hundred thousand: the index has their hashes."""
    if not name.startswith(f"{layout.RESULTS}/"):
        return True
    for each in results:
        below = name.removeprefix(f"{layout.RESULTS}/{each.name}/")
        if below != name:
            return below == each.kind.marker or (below in each.files and not below.endswith(".parquet"))
    return False


def _of_result(result: Result, files: Sequence[str]) -> Iterator[dict[str, Any]]:
    own = [each for each in files if each.startswith(f"{layout.RESULTS}/{result.name}/")]
    made_of = [each for each in own if _is_input(each.removeprefix(f"{layout.RESULTS}/{result.name}/"))]
    shown = [each for each in files if each.startswith(f"{layout.TABLES}/{result.name}/")]
    recording = f"#recording-{_id(result.name)}"
    yield {
        "@id": _folder(result),
        "@type": "Dataset",
        "name": f"{result.scenario} ({result.kind.what}, engine {result.engine})",
        "hasPart": [{"@id": _id(each)} for each in own],
        **({"identifier": {"@id": recording}} if result.is_run else {}),
    }
    if result.is_run:
        yield {
            "@id": recording,
            "@type": "PropertyValue",
            "name": "SHA-256 of the recording",
            "value": result.runs[0].manifest.recording_sha256,
        }
    yield {
        "@id": _action(result),
        "@type": "CreateAction",
        "name": f"Run of {result.scenario} on engine {result.engine}",
        "instrument": {"@id": _SOFTWARE},
        "object": [{"@id": _id(each)} for each in made_of],
        "result": [{"@id": _folder(result)}, *({"@id": _id(each)} for each in shown)],
    }


def _is_input(name: str) -> bool:
    return name in (places.SCENARIO, places.PLAN) or name.startswith(f"{places.INPUTS}/")


def _file(name: str, digest: str) -> dict[str, Any]:
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    return {
        "@id": _id(name),
        "@type": ["File", "SoftwareSourceCode"] if suffix == ".py" else "File",
        "name": _WHAT.get(path.name, path.name),
        "encodingFormat": _TYPES.get(suffix, "application/octet-stream"),
        "sha256": digest,
    }


def _folder(result: Result) -> str:
    return _id(f"{layout.RESULTS}/{result.name}/")


def _action(result: Result) -> str:
    return f"#run-{_id(result.name)}"


def _id(name: str) -> str:
    """A path as a relative URI (RFC 3986 section 3.3)."""
    return quote(name, safe="/=,+@!$&'()*;~-._")
