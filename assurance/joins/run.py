"""Runs cases on both engines: several of them, each on hosts of its own, are one scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from polypath import Scenario, run
from polypath.engines import Options
from polypath.engines.linux import LinuxEngine
from polypath.results import Recording

from .case import COUNTED, Case

#: Cases that share a boot of the guest.
TOGETHER = 12


@dataclass(frozen=True)
class Outcome:
    """What was counted of a case, other counters being 0."""

    case: Case
    simulator: dict[str, int]
    kernel: dict[str, int]

    def differences(self) -> list[str]:
        names = sorted({*self.case.expect, *self.simulator, *self.kernel})
        return [name for name in names if self.simulator.get(name, 0) != self.kernel.get(name, 0)]

    def unexpected(self) -> list[str]:
        """Counters of the kernel that are not what upstream's script asks for."""
        return [name for name, value in self.case.expect.items() if self.kernel.get(name, 0) != value]


def scenario(cases: Sequence[Case]) -> Scenario:
    texts = [case.text(net) for net, case in enumerate(cases, 1)]
    head = ['duration = "9 s"', "[defaults]", 'profile = "linux"']
    return Scenario.parse("\n".join([*head, *texts]), "cases.toml")


def counted(recording: Recording, number: int) -> list[dict[str, int]]:
    found: list[dict[str, int]] = [{} for _ in range(number)]
    for row in recording.table("counters").iter_rows(named=True):
        label, _, side = str(row["host"]).rpartition("-")
        counter = str(row["name"]).removeprefix("MPTcpExt")
        if counter in COUNTED and row["value"]:
            found[int(label.removeprefix("case")) - 1][f"{side} {counter}"] = row["value"]
    return found


def simulated(cases: Sequence[Case]) -> list[dict[str, int]]:
    return counted(run(scenario(cases)), len(cases))


def measured(cases: Sequence[Case]) -> list[dict[str, int]]:
    return counted(LinuxEngine().run(scenario(cases).plan(None), Options()), len(cases))


def groups(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    for first in range(0, len(cases), TOGETHER):
        yield cases[first : first + TOGETHER]


def outcomes(cases: Sequence[Case]) -> Iterator[Outcome]:
    for group in groups(cases):
        for case, told, real in zip(group, simulated(group), measured(group), strict=True):
            yield Outcome(case, told, real)
