"""The commands that a page shows, with what they print.

python docs/console.py [PAGE ..]    runs them and writes what they print into the pages; left out: all of PAGES

A fence ```console has commands after "$ ", each with its output; one without output has to succeed. Those of a page
run in order, in one folder, which has the repository's examples/; `cd` lasts to the fence's end. What must be there
before, and is not shown, is a comment <!-- $ COMMAND -->. A fence ```toml or ```python below "`NAME`:" is the file NAME
there, and below "`NAME` is `BASE` and:" BASE with its text after it. In an output a line ".." stands for any lines, and
" .." at a line's end for its rest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Pages whose commands print what is shown.
PAGES = (
    "README.md",
    "docs/bridges.md",
    "docs/bundles.md",
    "docs/capture.md",
    "docs/comparing.md",
    "docs/cookbook.md",
    "docs/curves.md",
    "docs/explain.md",
    "docs/exposure.md",
    "docs/figures.md",
    "docs/grading.md",
    "docs/lab.md",
    "docs/mininet.md",
    "docs/statistics.md",
    "docs/sweeps.md",
    "docs/tutorial.md",
    "docs/twin.md",
    "docs/validate.md",
    "docs/wifi.md",
)
WIDTH = 132
#: What depends on the machine: tshark's word to root, progress by the clock.
_PASSING = re.compile(r"Running as user|(?! ).*: \d+ of \d+ points$|.*: \d+ runs$")

_FENCE = re.compile(
    r"(?:`(?P<name>[\w.-]+)`(?: is `(?P<base>[\w.-]+)` and)?:\n\n)?"
    r"^```(?P<kind>console|toml|python)\n(?P<body>.*?)^```$|^<!-- \$ (?P<hidden>.*?) -->$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (?P<text>(?:.*\\\n)*.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """A command of a page, where its output stands there, and both outputs."""

    command: str
    span: tuple[int, int]
    expected: str
    printed: str
    succeeded: bool

    @property
    def matches(self) -> bool:
        if not self.expected.strip():
            return self.succeeded
        pattern = "\n".join(
            r"(?:.*\n)*?.*"
            if line == ".."
            else re.escape(line.removesuffix(" ..")) + (".*" if line.endswith(" ..") else "")
            for line in self.expected.splitlines()
        )
        return re.fullmatch(pattern, self.printed.rstrip("\n")) is not None


def shown(text: str, folder: Path) -> Iterator[Shown]:
    """Runs the commands of a page in a folder, one after the other."""
    (folder / "examples").symlink_to(ROOT / "examples")
    for fence in _FENCE.finditer(text):
        if fence["hidden"]:
            printed, succeeded = _run(fence["hidden"], folder)
            assert succeeded, f"{fence['hidden']}\n{printed}"
        elif fence["kind"] == "console":
            yield from _commands(fence["body"], fence.start("body"), folder)
        elif fence["name"]:
            base = (folder / fence["base"]).read_text(encoding="utf-8") if fence["base"] else ""
            (folder / fence["name"]).write_text(base + fence["body"], encoding="utf-8")


def _commands(body: str, start: int, folder: Path) -> Iterator[Shown]:
    for found in _COMMAND.finditer(body):
        first, last = (start + place for place in found.span("output"))
        command = found["text"].replace(".venv/bin/polypath", "polypath")
        if command.startswith("cd "):
            folder = folder / command.removeprefix("cd ")
        printed, succeeded = _run("true" if command.startswith("cd ") else command, folder)
        yield Shown(found["text"], (first, last), found["output"], printed, succeeded)


def _run(command: str, folder: Path) -> tuple[str, bool]:
    """Standard output and errors of a command, without blanks at the ends of lines, and whether it succeeded."""
    environment = {
        **os.environ,
        "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}",
        "HOME": str(folder),
        "COLUMNS": str(WIDTH),
        "LC_ALL": "C.UTF-8",
        "BROWSER": "true",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    lines = done.stdout.decode().splitlines()
    printed = "".join(line.rstrip() + "\n" for line in lines if not _PASSING.match(line)).rstrip("\n") + "\n"
    return printed, done.returncode == 0


def refresh(page: Path) -> list[str]:
    """Writes into a page what its commands print; the commands whose output changed."""
    text = page.read_text(encoding="utf-8")
    folder = Path(tempfile.mkdtemp())
    try:
        changed = [each for each in shown(text, folder) if not each.matches]
    finally:
        shutil.rmtree(folder)
    for each in reversed(changed):
        text = text[: each.span[0]] + each.printed + text[each.span[1] :]
    page.write_text(text, encoding="utf-8")
    return [each.command for each in changed]


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        for command in refresh(ROOT / name):
            print(f"{name}: changed: {command}")
