"""Writes the table of docs/architecture.md that compares the sources of two commits.

usage: python docs/house.py BEFORE AFTER
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import networkx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.rust_files import Crate, Size  # noqa: E402

PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- house.py writes from here -->\n", "<!-- to here -->\n"

#: How many of the largest owners are named.
LARGEST = 5

#: Rings are looked for between the files of these.
FILES = (("lab", ()), ("transport", ("mptcp",)), ("transport", ("quic",)))

APPLICATIONS = ("bulk", "stream", "request-response", "fetch", "ping-pong", "messages", "video", "page", "ping")
NAMED = re.compile(rf"""["']({"|".join(APPLICATIONS)})["']""")
ASKED = re.compile(r"\bProfile::[A-Z]\w*|\bprofile\.\w+\(")
HINTS = re.compile(r"#\[(?:inline\((?:always|never)\)|cold)\]")


def tree(commit: str, into: Path) -> Path:
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(into, filter="data")
    return into


def sources(folder: Path, *ends: str) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.suffix in ends and path.is_file())


def lines(folder: Path, *ends: str) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in sources(folder, *ends))


def places(pattern: re.Pattern[str], files: Iterator[Path]) -> int:
    return sum(len(pattern.findall(path.read_text(encoding="utf-8"))) for path in files)


def owners(root: Path) -> dict[str, Size]:
    return {
        "/".join((folder.parent.name, *module)) + f"::{name}": size
        for folder in sorted(root.glob("crates/*/src"))
        for (*module, name), size in Crate.at(folder).sizes().items()
    }


def in_rings(uses: Mapping[object, set[object]]) -> int:
    graph = networkx.DiGraph([(one, other) for one, others in uses.items() for other in others])
    return sum(len(ring) for ring in networkx.strongly_connected_components(graph) if len(ring) > 1)


def modules(crate: Crate) -> dict[object, set[object]]:
    """Which module of the transport uses which."""
    uses: dict[object, set[object]] = {}
    for file, others in crate.uses().items():
        if file:
            uses.setdefault(file[0], set()).update({other[0] for other in others if other} - {file[0]})
    return uses


def counted(root: Path) -> dict[str, str]:
    crates = root / "crates"
    found = {"modules of `transport` in rings": str(in_rings(modules(Crate.at(crates / "transport" / "src"))))}
    for name, under in FILES:
        where = "/".join((name, *under))
        found[f"files of `{where}` in rings"] = str(in_rings(Crate.at(crates / name / "src").uses(under)))
    python = root / "python" / "polypath"
    outside = (path for path in sources(python, ".py") if "labs" not in path.relative_to(python).parts)
    found["names of applications in Python"] = str(places(NAMED, outside))
    asking = (
        path
        for crate in ("transport", "lab")
        for path in sources(crates / crate / "src", ".rs")
        if "settings" not in path.parts and "config" not in path.parts
    )
    found["places that ask for a profile"] = str(places(ASKED, asking))
    rust = (path for path in sources(crates, ".rs") if "src" in path.parts)
    found["hints to the compiler"] = str(places(HINTS, rust))
    for folder in sorted(crates.glob("*/src")):
        found[f"lines of `{folder.parent.name}`"] = f"{lines(folder, '.rs'):,}"
    found["lines of the Python package"] = f"{lines(python, '.py'):,}"
    found["lines of tests"] = f"{lines(root / 'tests', '.py') + tests_in_rust(crates):,}"
    found["lines of `assurance`"] = f"{lines(root / 'assurance', '.py', '.rs'):,}"
    return found


def tests_in_rust(crates: Path) -> int:
    return sum(lines(folder, ".rs") for folder in crates.glob("*/tests"))


def largest(before: Mapping[str, Size], after: Mapping[str, Size]) -> Iterator[tuple[str, str, str]]:
    def by(sizes: Mapping[str, Size]) -> Callable[[str], int]:
        return lambda name: sizes[name].fields + sizes[name].methods

    told = [*sorted(before, key=by(before))[-LARGEST:][::-1], *sorted(after, key=by(after))[-LARGEST:][::-1]]
    for name in dict.fromkeys(told):
        yield f"`{name}`", *(f"{of[name].fields}, {of[name].methods}" if name in of else "" for of in (before, after))


def table(before: str, after: str) -> str:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        roots = tree(before, Path(one)), tree(after, Path(other))
        first, then = map(counted, roots)
        rows = [*largest(*map(owners, roots))]
        rows += [(name, first.get(name, ""), then.get(name, "")) for name in {**first, **then}]
    head = f"| | `{before[:8]}` | `{after[:8]}` |\n|---|---|---|\n"
    return head + "".join(f"| {name} | {one} | {other} |\n" for name, one, other in rows)


def main() -> None:
    before, after = sys.argv[1:]
    page = PAGE.read_text(encoding="utf-8")
    start, rest = page.split(BEGIN)
    _, end = rest.split(END)
    PAGE.write_text(f"{start}{BEGIN}{table(before, after)}{END}{end}", encoding="utf-8")


if __name__ == "__main__":
    main()
