"""Runs set-ups: several, each on hosts of its own, are one scenario, so that they share a boot of the guest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random

from polypath import Scenario, run
from polypath.results import Recording

from . import connect, joining, simult
from .setup import Place, Run, Seen, SetUp

SET_UPS: tuple[SetUp, ...] = (*simult.SET_UPS, *connect.SET_UPS, *joining.SET_UPS)
SCRIPTS = tuple(dict.fromkeys(each.script for each in SET_UPS))
_BOUNDS = {(each.script, each.name): each.bound_ms for each in SET_UPS}
#: Settings of all hosts. Twenty connections of a host reserve their buffers together.
_DEFAULTS = {
    joining.SCRIPT: ('receive_buffer = "400 kB"', 'send_buffer = "400 kB"'),
}
#: Set-ups that share a boot. A guest has room for some sixty namespaces.
TOGETHER = 12
_DURATION = "70 s"


@dataclass(frozen=True)
class Row:
    """A run of a set-up on an engine, or several: why it has not passed, and how long its transfer took."""

    engine: str
    script: str
    name: str
    number: int
    runs: int
    faults: list[str]
    took_ms: float | None

    def reasons(self) -> list[str]:
        """Why it has not passed: its faults, and a time beyond its set-up's."""
        bound = _BOUNDS[self.script, self.name]
        late = self.took_ms is not None and bound is not None and self.took_ms > bound
        return [*self.faults, f"it took {self.took_ms:,.0f} of {bound:,} ms"] if late else self.faults

    def json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, line: str) -> Row:
        return cls(**json.loads(line))


@dataclass(frozen=True)
class Group:
    """Set-ups that run together, on an engine and with a number, of which everything is drawn."""

    engine: str
    #: Places in SET_UPS, which unlike these go to another process.
    places: tuple[int, ...]
    number: int

    @property
    def set_ups(self) -> list[SetUp]:
        return [SET_UPS[place] for place in self.places]

    def drawn(self) -> tuple[str, list[Run]]:
        """The scenario, and each of its runs."""
        runs = []
        for net, each in enumerate(self.set_ups, 1):
            random = Random(f"{each.script} {each.name} {self.number}")
            runs.append(each.draw(Place(f"case{net}", net), random))
        head = [f'duration = "{_DURATION}"', f"seed = {self.number + 1}", "[record]", 'interval = "10 s"']
        defaults = ["[defaults]", 'profile = "linux"', *_DEFAULTS.get(self.set_ups[0].script, ())]
        return "\n".join([*head, *defaults, *(each.text for each in runs), ""]), runs

    def rows(self) -> list[Row]:
        text, runs = self.drawn()
        found = []
        seen = _seen(run(Scenario.parse(text, "selftests.toml"), engine=self.engine), len(runs))
        for set_up, drawn, each in zip(self.set_ups, runs, seen, strict=True):
            took, faults = each.took_ms, drawn.faults(each)
            name = (self.engine, set_up.script, set_up.name, self.number, set_up.runs)
            found.append(Row(*name, faults, took and round(took, 1)))
        return found


def groups(engine: str, scripts: Sequence[str], first: int, count: int) -> list[Group]:
    """So that each set-up has that many runs, or a few more: those with low numbers first."""
    found = []
    for script, runs in sorted({(each.script, each.runs) for each in SET_UPS if each.script in scripts}):
        own = [place for place, each in enumerate(SET_UPS) if (each.script, each.runs) == (script, runs)]
        for number in range(first // runs, -(-(first + count) // runs)):
            for at in range(0, len(own), TOGETHER):
                found.append(Group(engine, tuple(own[at : at + TOGETHER]), number))
    return sorted(found, key=lambda group: group.number * group.set_ups[0].runs)


def _seen(recording: Recording, runs: int) -> list[Seen]:
    connections = {row["name"]: row for row in recording.table("connection_ends").iter_rows(named=True)}
    counters: list[dict[str, int]] = [{} for _ in range(runs)]
    for host, name, value in recording.table("counters").select("host", "name", "value").iter_rows():
        label, _, own = str(host).partition("-")
        if value:
            counters[int(label.removeprefix("case")) - 1][f"{own} {name}"] = value
    return [Seen(connections[f"case{number}"], each) for number, each in enumerate(counters, 1)]
