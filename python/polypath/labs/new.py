"""The files of a new lab, which runs as it stands, with comments that teach."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from polypath.labs.catalogue import names
from polypath.labs.lab import FILE, SCENARIO
from polypath.scenario import ScenarioError, template
from polypath.scenario.fields import NAME_PATTERN

#: Of the scenario that `polypath new` writes without options: two paths of 30 and 15 Mbps, one transfer of ten seconds.
_LAB: Final = """\
# A lab: a question, a scenario that answers it, and claims that `check` holds the answer to.
#
#   polypath show {folder}      the question, what to expect and what to try
#   polypath run {folder}       every run; --run one-path runs one of them
#   polypath check {folder}     the claims below: exit code 1 where one does not hold
#   polypath report {folder}    one interactive page, with the claims
#
# The network and what runs over it stand in scenario.toml, which `polypath validate` explains.

# What the lab is called, and what it asks.
title = "Two paths at once"
question = "How much does a second, slower path add to a transfer?"

# Where the question or its figures come from; may be left out.
# source = "A paper, a lecture, a measurement of your own"

# What the answer should be, and why. Write it before the first run: a surprise then is one.
expectation = \"\"\"
Multipath TCP adds the rate of the slower path, so the transfer is about half as fast again. It takes a little longer to
reach that rate, because the second subflow begins after the first.
\"\"\"

# What a reader may try next, an item each.
tries = [
    "polypath run {folder} --run two-paths --set link.lte.delay=\\"150 ms\\": is the sum still reached?",
    "polypath run {folder} --run two-paths --set defaults.receive_buffer=\\"100 kB\\": what limits it now?",
    "polypath run {folder} --run two-paths --vary defaults.scheduler=default,roundrobin: does the scheduler matter?",
]

# The runs: the scenario with some settings, each as --set takes it; `vary` takes axes as --vary does.
[[run]]
name = "one-path"
set = ["application.bulk.transport=tcp"]

[[run]]
name = "two-paths"

# A question that a reader should be able to answer afterwards. `polypath show {folder} --hints` prints the hint.
[[ask]]
question = "Why is the sum of both paths not quite reached?"
hint = "Compare the bytes of a frame with its payload, and the beginnings of the two subflows in the column `rate`."

# A claim: a measure, of which run and connection, and its bounds, `min`, `max` or both.
[[expect]]
name = "two paths over one"
measure = "goodput"
run = "two-paths"
connection = "bulk"
# The figure is this run's divided by the other run's. Without the line it is the goodput itself, in Mbps.
relative_to = {{ run = "one-path" }}
min = 1.3
max = 1.5
unit = "x one path"
# What was published of it, if anything was, and why it is known to be missed, if it is.
# published = "1.4 times as fast"
# cause = "..."
"""


def files(folder: Path) -> Mapping[str, str]:
    """The text of each file of a new lab in a folder. Raises ScenarioError for a name that is none, or is taken."""
    if not re.fullmatch(NAME_PATTERN, folder.name):
        raise ScenarioError(f"{folder.name!r} is no name of a lab: letters, digits, '_' and '-', at most 63 of them")
    if folder.name in names():
        raise ScenarioError(f"lab '{folder.name}' comes with Polypath; choose another name")
    plain = re.fullmatch(r"[A-Za-z0-9_./-]+", str(folder))
    return {
        SCENARIO: template.text(template.Wanted(), str(folder / SCENARIO)),
        FILE: _LAB.format(folder=folder if plain else folder.name),
    }
