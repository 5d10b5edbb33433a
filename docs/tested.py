"""Counts what tests Polypath, and writes the page: python docs/tested.py"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
RECORDS = ROOT / "assurance" / "records"
PAGE = RECORDS / "tested.md"

Row = tuple[str, str, str]
"""What is tested, how many, and the command that counts or runs them."""


def printed(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def text(page: str) -> str:
    return (RECORDS / page).read_text(encoding="utf-8")


def found(pattern: str, page: str) -> str:
    """The one place of a page where a figure stands."""
    (place,) = re.findall(pattern, text(page), re.MULTILINE)
    return str(place)


def last_cells(page: str) -> Counter[str]:
    """The verdicts that end the rows of a page's tables."""
    rows = (line for line in text(page).splitlines() if line.startswith("| "))
    return Counter(row.split("|")[-2].strip(" *") for row in rows)


def rust() -> Row:
    told = printed("cargo", "test", "--workspace", "--locked", "--quiet", "--", "--list")
    return "Rust: units, packet scripts, properties, whole endpoints", f"{told.count(': test'):,} tests", "`cargo test`"


def python() -> Row:
    told = printed(sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "").splitlines()[-1]
    return (
        "Python: scenarios, results, the command line, captures through tshark, the page in a browser",
        f"{int(told.split()[0]):,} tests",
        "`pytest`",
    )


def campaigns() -> Iterator[Row]:
    cells = last_cells("validation.md")
    missed = cells["miss"] + cells["chance"]
    yield (
        "Labs against published figures",
        f"{cells['ok']} expectations met, {missed} missed with a cause",
        "`polypath check --all`",
    )
    agree = found(r"^(\d+ of \d+) scenarios agree", "fidelity.md")
    yield "Scenarios beside the Linux kernel", f"{agree} agree", "`polypath compare --all`"
    agree = found(r"^(\d+ of \d+) scenarios agree", "fidelity-noq.md")
    yield "Scenarios of QUIC beside noq-proto", f"{agree} agree", "`polypath compare --engines sim,noq`"
    ran = found(r"drawn, [\d,]+ refused, ([\d,]+) run", "beside.md")
    yield "Random plans on both engines", f"{ran} run, every byte compared", "`make beside`"
    ran = found(r"In [\d,]+ of the other ([\d,]+) set-ups", "subflows.md")
    alike = found(r"In ([\d,]+) of the other [\d,]+ set-ups", "subflows.md")
    what = "Random set-ups of path management on both engines"
    yield what, f"{alike} of {ran} alike in all counters", "`make subflows`"
    held = found(r"among those that fit: ([\d,]+) times", "metamorphic.md")
    relations = found(r"to five of the\n(\d+) relations", "metamorphic.md")
    yield "Metamorphic relations", f"{relations} relations, applied {held} times", "`make metamorphic`"
    first, last = found(r"ran scenarios ([\d,]+ to [\d,]+)\.?:?", "campaign.md").replace(",", "").split(" to ")
    yield "Random scenarios", f"{int(last) - int(first) + 1:,} in the last campaign", "`make campaign`"
    played = Counter(word for row in _table("interop.md", 7) for word in (cell.split()[0] for cell in row[1:]))
    yield (
        "Published test cases of QUIC, three other stacks, both roles",
        f"{played['passed']} passed, {played['failed:']} failed, {played['not']} not offered",
        "`make interop`",
    )
    outcomes = Counter[str]()
    for row in _table("conformance.md", 9):
        if row[1].isdigit():
            outcomes.update(
                dict(zip(("passed", "failed", "not supported", "both", "kernel"), map(int, row[2:7]), strict=True))
            )
    linux = outcomes["both"] + outcomes["kernel"]
    yield (
        "packetdrill's scripts, IPv4 and IPv6",
        f"{outcomes['passed']} passed, {outcomes['failed']} failed, {outcomes['not supported']} not supported; "
        f"{outcomes['both']} of the {linux} that Linux passes",
        "`make packetdrill`",
    )
    rows = [row for row in _table("sabotage.md", 4) if row[1].replace(",", "").isdigit()]
    blows = sum(int(row[2].replace(",", "")) for row in rows)
    lost = sum(row[3] != "nothing" for row in rows)
    yield "Sabotage", f"{len(rows)} kinds, {blows:,} attacks, {lost or 'nothing'} lost", "`make sabotage`"
    rows = [row for row in _table("hostile.md", 5) if row[1].isdigit()]
    trials, worked, told = (sum(int(row[at]) for row in rows) for at in (1, 2, 3))
    yield (
        "Commands on hostile machines",
        f"{len(rows)} machines, {trials:,} trials: {worked:,} worked, {told:,} ended with one true line",
        "`make hostile`",
    )
    shares = [re.findall(r"^(\d+) of (\d+), ", row[9])[0] for row in _table("mutants.md", 11) if row[1].isdigit()]
    noticed, faults = (sum(int(share[at]) for share in shares) for at in range(2))
    yield "Faults put into the code", f"{noticed} of {faults} noticed", "`make mutants`"
    cases = found(r"([\d,]+) cases of each of the four", "fuzzing.md").replace(",", "")
    yield (
        "Attacks on whole endpoints of Multipath TCP",
        f"{4 * int(cases):,} cases",
        "`cargo test -p polypath-transport --test attack`",
    )
    targets = len(list((ROOT / "assurance" / "fuzz" / "fuzz_targets").glob("*.rs")))
    yield "Fuzz targets", f"{targets}", "`cargo fuzz list --fuzz-dir assurance/fuzz`"
    hours, executions, crashes = found(r"^\| all \| ([\d.]+ \| [\d,]+ \| \d+) \|", "fuzzing.md").split(" | ")
    yield "Fuzzing", f"{hours} hours of CPU time, {executions} executions, {crashes} found", "`make fuzz`"
    bounds = (ROOT / "benches" / "instructions.toml").read_text(encoding="utf-8")
    gates = bounds.count("\ninstructions = ") + bounds.count("\nat_most = ")
    yield "Gates on instructions per packet-hop", f"{gates}", "`make test-speed`"
    fences = sum(
        path.read_text(encoding="utf-8").count("```console\n") for path in (*DOCS.glob("*.md"), ROOT / "README.md")
    )
    yield "Blocks of commands in the documentation, all run by tests", f"{fences}", "`pytest tests/docs`"


def _table(page: str, width: int) -> Iterator[list[str]]:
    """Rows of so many cells, headings and rules left out."""
    for line in text(page).splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and len(cells) == width and not cells[1].startswith(("noq", "trials", "run")):
            yield cells


def page() -> str:
    lines = [
        "# How it is tested",
        "",
        "How many tests of each kind there are, and which command runs them.",
        "",
        f"`python docs/tested.py` counted them on {datetime.now(UTC).date()}. Figures of campaigns come from their",
        "pages, which the commands in the last column write. [Evidence](../../docs/evidence.md) links those pages.",
        "",
        "| test | number | command |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in (rust(), python(), *campaigns()))]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
