"""What every preset of the playground records in a browser's tab, beside what the simulator records here.

usage: python -m assurance.tab [--out PAGE] [--count N --first N]
Exit code 1 where a hash differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from polypath.engines.sim import Simulator
from polypath.labs import get, names
from polypath.playground import Preset, html, of_lab

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "web"
TEXT = HERE / "page.md"


@dataclass(frozen=True)
class Recorded:
    """A preset in the tab and here."""

    name: str
    #: None: the tab did not finish, and said why.
    tab: str | None
    here: str
    said: str

    @property
    def same(self) -> bool:
        return self.tab == self.here


def presets() -> list[Preset]:
    """Every preset of every lab."""
    return [preset for name in names() for preset in of_lab(get(name))]


def recorded(of: Sequence[Preset]) -> list[Recorded]:
    """Opens a page with these presets in a browser, one after the other, and runs each here as well."""
    with TemporaryDirectory(prefix="polypath-tab-") as scratch:
        page = Path(scratch) / "playground.html"
        page.write_text(html(of, "0"), encoding="utf-8")
        in_tab = _in_tab(page, [preset.name for preset in of])
    found = []
    for preset in of:
        here = Simulator().run(preset.scenario.plan()).metadata.recording_sha256
        told = in_tab[preset.name]
        found.append(Recorded(preset.name, told["recording"], here, str(told["said"])))
    return found


def _in_tab(page: Path, asked: Sequence[str]) -> Mapping[str, Mapping[str, str | None]]:
    done = subprocess.run(
        ["node", "recorded.mjs", str(page)],
        cwd=WEB,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    found: Mapping[str, Mapping[str, str | None]] = json.loads(done.stdout)
    return found


def text(found: Sequence[Recorded]) -> str:
    rows = [
        f"| {each.name} | `{each.here[:16]}` | {'the same' if each.same else f'**{each.tab or each.said}**'} |"
        for each in found
    ]
    table = "\n".join(["| preset | recording, SHA-256 | in the tab |", "|---|---|---|", *rows])
    same = sum(each.same for each in found)
    return TEXT.read_text(encoding="utf-8").format(count=len(found), same=same, table=table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="PAGE", help="the documentation's page to write")
    parser.add_argument("--count", type=int, help="number of presets; left out: all")
    parser.add_argument("--first", type=int, default=0, help="from this one on, again from the first after the last")
    asked = parser.parse_args()
    every = presets()
    count = len(every) if asked.count is None else min(asked.count, len(every))
    found = recorded([every[(asked.first + place) % len(every)] for place in range(count)])
    for each in found:
        if not each.same:
            print(f"{each.name}: {each.tab or each.said} in the tab, {each.here} here")
    print(f"{sum(each.same for each in found)} of {len(found)} presets record the same bytes in the tab and here")
    if asked.out is not None:
        asked.out.write_text(text(found), encoding="utf-8")
    return 0 if all(each.same for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
