"""The run itself: its time, what is seen, what is changed, and how it is taken back."""

from __future__ import annotations

import json
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from polypath import _core
from polypath.engines import EngineError, script
from polypath.engines.base import Outcome, require_own
from polypath.interface import Target, found
from polypath.results import Recording
from polypath.running import named
from polypath.scenario import Plan, Scenario, ScenarioError
from polypath.stepping import outside
from polypath.stepping.decisions import CLASSES, Askers, Decision
from polypath.stepping.turns import Asked, Turns
from polypath.units import nearest

_SOURCE: Final = Path(outside.__file__)
_SECOND: Final = 1_000_000_000

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """Something that the run recorded, a row of table `events` (docs/recording.md)."""

    #: s.
    time: float
    kind: str
    #: The host, the application and the link that it is of; None where it is of none.
    host: str | None
    application: str | None
    link: str | None
    #: Its number in its connection.
    subflow: int | None
    value: Any
    detail: str


@dataclass(frozen=True)
class Observed:
    """How a run stands. Rows have the columns of docs/recording.md, and the name of their application or link."""

    #: s.
    time: float
    #: A row for each side of each connection.
    connections: Sequence[Row]
    #: A row for each subflow or path at each side.
    subflows: Sequence[Row]
    #: A row for each direction of each link.
    links: Sequence[Row]


@dataclass(frozen=True)
class Snapshot:
    """A moment of a run, as what led to it. `Run.restore` comes to it again by the same answers and changes."""

    scenario: Scenario
    seed: int
    decide: Mapping[str, float | None]
    now_ns: int
    #: What the owner answered and changed, each with its time.
    answers: Sequence[Any]
    changes: Sequence[tuple[int, Mapping[str, Any]]]
    undecided: bool


class _Loader(script.Loader):
    """Makes what is decided outside, and what a plan carries in Python."""

    def __init__(self, askers: Askers, algorithms: Mapping[str, Callable[[], object]]) -> None:
        super().__init__()
        self._askers, self._algorithms = askers, algorithms
        self._source = _SOURCE.read_text(encoding="utf-8")

    def __call__(self, kind: str, parameters: str) -> object:
        plan = json.loads(parameters)
        if plan["source"] != self._source:
            return super().__call__(kind, parameters)
        settings = dict(plan["arguments"])
        key = settings.pop("key")
        if key in self._algorithms:
            return self._algorithms[key]()
        return self._askers.made(plan["class"], key, settings)


class _Course:
    """The simulation as it advances, on whichever thread. The run may be dropped meanwhile."""

    def __init__(self, simulation: _core.Simulation) -> None:
        self.simulation = simulation
        self.finished = False
        #: Ctrl-C came: the simulation stops when it can.
        self.halted = False
        self.to(0, False)

    def to(self, until_ns: int, events: bool) -> None:
        """Where the call that goes on, or the next one, is to end."""
        self._until_ns, self._events = until_ns, events
        self.halted = False

    def advance(self) -> None:
        simulation = self.simulation
        known = simulation.recorded_events
        while not self.finished and simulation.now_ns < self._until_ns and not self.halted:
            step = simulation.step_to_event if self._events else simulation.step
            self.finished = step(self._until_ns)
            if self._events and simulation.recorded_events > known:
                return


class Run:
    """A run of the simulator that its owner steps.

        with polypath.Run("scenario.toml", decide=["host.client.scheduler"]) as run:
            while (decision := run.step()) is not None:
                decision.answer(min(range(len(decision.view.paths)), key=lambda path: ..))
            recording = run.recording()

    `decide` names keys of the scenario that its owner decides: schedulers, congestion controls and path managers, of
    a host, an application or the defaults. {"host.client.congestion": 0.1} asks for a window each 0.1 s; without a
    time, each acknowledgement asks. `algorithms` gives such keys a class of the caller's own, or what makes an
    instance of one for each connection (docs/python.md).

    Raises ScenarioError, and EngineError for a run that cannot be stepped.
    """

    def __init__(
        self,
        target: Target,
        *,
        seed: int | None = None,
        decide: Iterable[str] | Mapping[str, float | None] = (),
        algorithms: Mapping[str, Callable[[], object]] | None = None,
    ) -> None:
        self._name, self._scenario, _ = found(target)
        self._decide = dict(decide) if isinstance(decide, Mapping) else dict.fromkeys(decide)
        self._algorithms = dict(algorithms or {})
        self._prepared = _prepared(self._scenario, self._decide, self._algorithms)
        self._plan = self._prepared.plan(seed)
        _require_steppable(self._plan)
        self._end_ns = int(self._plan.view["duration_ns"])
        self._started = time.perf_counter()
        turns = Turns() if self._decide else None
        self._turns = turns
        self._loader = _Loader(Askers(turns.ask if turns is not None else _nobody), self._algorithms)
        self._closing = weakref.finalize(self, _close, turns, self._loader)
        simulation = self._guarded(lambda: _core.Simulation(self._plan.json(), "none", None, self._loader))
        self._course, self._simulation = _Course(simulation), simulation
        #: A decision without an answer, or a call that Ctrl-C left.
        self._decision: Decision | None = None
        self._left = False
        self._now_ns = 0
        self._known, self._happened = 0, deque[Event]()
        self._answers: list[Any] = []
        self._changes: list[tuple[int, dict[str, Any]]] = []
        self._actions: list[tuple[int, dict[str, Any]]] = []

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def now(self) -> float:
        """Simulated time in seconds."""
        return (self._now_ns if self._decision is None else round(self._decision.time * _SECOND)) / _SECOND

    @property
    def finished(self) -> bool:
        """Every application ended, or the duration of the scenario is up."""
        return self._course.finished

    @property
    def decision(self) -> Decision | None:
        """The decision that waits for its answer; None where there is none, as between two instants."""
        return None if self._decision is None or self._decision.answered else self._decision

    @property
    def plan(self) -> Plan:
        """What is run, with the changes so far among its events."""
        data = self._plan.data
        own = [{"at_ns": at, "action": action} for at, action in self._actions]
        data["events"] = sorted([*data["events"], *own], key=lambda event: event["at_ns"])
        return Plan(data)

    def step(self, until: float | None = None, *, events: bool = False) -> Decision | Event | None:
        """Goes on to `until` seconds, to the end of the run if left out, or to the next decision. With `events`, to the
        next event as well.

        Gives the decision, which is to be answered before the next step; or the event; None at `until` and at the end.
        Raises EngineError where the run fails, and where a decision is open.
        """
        if (open_ := self.decision) is not None:
            raise EngineError(f"the decision of {open_.key} is open: answer it before the next step")
        if self._happened and events:
            return self._happened.popleft()
        if self.finished:
            return None
        self._require_open()
        until_ns = self._end_ns if until is None else min(round(until * _SECOND), self._end_ns)
        self._ask(until_ns, events)
        if self._decision is None:
            self._note(events)
        return self._decision or (self._happened.popleft() if self._happened else None)

    def observe(self) -> Observed:
        """How connections, subflows and links stand now. Raises EngineError while a decision is open, since it is asked
        in the middle of an instant; `view` and `path` of the decision tell what can be known there."""
        self._require_between("observed")
        tables = self._simulation.observe()
        applications = [each["name"] for each in self._plan.view["applications"]]
        links = [each["name"] for each in self._plan.view["links"]]

        def rows(table: str, column: str, label: str, names: Sequence[str]) -> list[Row]:
            return [{label: names[row[column]], **row} for row in tables.get(table, ())]

        return Observed(
            self.now,
            rows("connections", "connection", "application", applications),
            rows("subflows", "connection", "application", applications),
            rows("links", "link", "name", links),
        )

    def change(self, **event: Any) -> None:
        """Changes a link, an interface, a switch or a host now, in the words of `[[event]]`.

        `run.change(link="lte", rate="2 Mbps")`, `run.change(interface="client:eth0", up=False)`. Raises ScenarioError
        for what no event can say, and EngineError while a decision is open.
        """
        self._require_between("changed")
        if "at" in event:
            raise ScenarioError("a change takes no 'at': it happens now; step the run to its time first")
        written = {"at": f"{self._now_ns} ns", **event}
        for action in self._prepared.actions(written):
            self._guarded(lambda action=action: self._simulation.change(json.dumps(action)))  # type: ignore[misc]
            self._actions.append((self._now_ns, action))
        self._changes.append((self._now_ns, dict(event)))

    def snapshot(self) -> Snapshot:
        """This moment, to come back to. It holds the answers and changes so far, and to restore it runs them again:
        that takes as long as the run took so far. Raises EngineError for a run with `algorithms`, of whose state
        nothing is known here."""
        if self._algorithms:
            raise EngineError("a run with algorithms of the caller's own has no snapshot: their state is not known")
        answers = list(self._answers)
        if self._decision is not None and self._decision.answered:
            answers.append(self._decision.given)
        seed = int(self._plan.view["seed"])
        now = round(self.now * _SECOND)
        return Snapshot(
            self._scenario, seed, dict(self._decide), now, answers, list(self._changes), self.decision is not None
        )

    @classmethod
    def restore(cls, snapshot: Snapshot) -> Run:
        """A run at the moment of a snapshot; the one that it was taken of goes on undisturbed."""
        run = cls(snapshot.scenario, seed=snapshot.seed, decide=snapshot.decide)
        answers = deque(snapshot.answers)
        for at_ns, event in snapshot.changes:
            run._replay(at_ns, answers)
            run.change(**event)
        run._replay(snapshot.now_ns, answers, undecided=snapshot.undecided)
        return run

    def recording(self) -> Recording:
        """Ends the run where it stands, and gives what it recorded. Raises EngineError while a decision is open."""
        self._require_between("recorded")
        native = self._guarded(self._simulation.recording)
        end_ns = self._now_ns
        frames = {name: pl.DataFrame(native.table(name)) for name in native.names}
        outcome = Outcome(frames, native.sha256, end_ns, not self.finished, {})
        self.close()
        return named(outcome.recording("sim", self.plan, self._started), self._name, self._scenario)

    def close(self) -> None:
        """Ends the run; what it recorded is dropped."""
        self._closing()

    def _replay(self, until_ns: int, answers: deque[Any], undecided: bool = False) -> None:
        while answers or undecided or self._now_ns < until_ns:
            decision = self.step(until_ns / _SECOND)
            if not isinstance(decision, Decision) or not answers:
                return
            decision.give(answers.popleft())

    def _ask(self, until_ns: int, events: bool) -> None:
        """Goes on until the next decision, if one comes."""
        before, self._decision = self._decision, None
        if before is not None:
            self._answers.append(before.given)
        self._course.to(until_ns, events)
        turns, advance = self._turns, self._course.advance

        def go() -> Any:
            if turns is None:
                return advance()
            if self._left:
                self._left = False
                return turns.wait()
            return turns.call(advance) if before is None else turns.answer(before.given)

        try:
            outcome = self._guarded(go)
        except KeyboardInterrupt:
            self._course.halted = True
            self._left = self._turns is not None
            raise
        if isinstance(outcome, Asked):
            self._decision = outcome.question

    def _note(self, events: bool) -> None:
        """Keeps the time, and what happened where that is asked for."""
        self._now_ns = self._simulation.now_ns
        known, self._known = self._known, self._simulation.recorded_events
        if events:
            rows = self._simulation.events_since(known).get("events", ())
            self._happened.extend(self._event(row) for row in rows)

    def _event(self, row: Row) -> Event:
        view = self._plan.view
        connection, link = row["connection"], row["link"]
        return Event(
            row["time_ns"] / _SECOND,
            row["kind"],
            row["host"] or None,
            None if connection is None else view["applications"][connection]["name"],
            None if link is None else view["links"][link]["name"],
            row["subflow"],
            row["value"],
            row["detail"],
        )

    def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except _core.ScriptError as error:
            self._closing()
            raise script.failed(error, self._loader) from error
        except (_core.PlanError, RuntimeError, OSError) as error:
            if isinstance(error, EngineError):
                raise
            blamed = self._loader.blamed()
            self._closing()
            raise blamed or EngineError(" ".join(str(error).split())) from error

    def _require_open(self) -> None:
        if not self._closing.alive:
            raise EngineError("the run is closed")

    def _require_between(self, what: str) -> None:
        self._require_open()
        if self._decision is not None or self._left:
            raise EngineError(f"the run cannot be {what} in the middle of an instant: step it to a time first")


def _prepared(
    scenario: Scenario, decide: Mapping[str, float | None], algorithms: Mapping[str, Callable[[], object]]
) -> Scenario:
    """The scenario with outside.py in each place that is decided. Raises EngineError."""
    settings: dict[str, Any] = {}
    for key in (*decide, *algorithms):
        last = key.rpartition(".")[2]
        if last not in CLASSES:
            hint = nearest(last, CLASSES)
            better = f"did you mean '{key.removesuffix(last)}{hint}'?" if hint else f"it ends in {', '.join(CLASSES)}"
            raise EngineError(f"'{key}' cannot be decided; {better}")
        if key in settings:
            raise EngineError(f"'{key}' is named twice, in decide and in algorithms")
        chosen: dict[str, Any] = {"kind": f"{_SOURCE}:{CLASSES[last]}", "key": key}
        interval = decide.get(key)
        if last == "congestion":
            chosen["interval"] = 0.0 if interval is None else float(interval)
        elif interval is not None:
            raise EngineError(f"'{key}' takes no interval: only a congestion control is asked at intervals")
        settings[key] = chosen
    return scenario.with_(settings)


def _require_steppable(plan: Plan) -> None:
    if (plan.view.get("controller") or {}).get("app"):
        raise EngineError("a run with an os-ken application cannot be stepped; use polypath.run")
    require_own(plan.view, "the simulator")
    for each in plan.view.get("programs", ()):
        raise EngineError(f"application '{each['name']}' is a program of the machine, which the simulator cannot run")


def _nobody(decision: Decision) -> Any:
    raise EngineError(f"nobody decides {decision.key}")


def _close(turns: Turns | None, loader: script.Loader) -> None:
    if turns is not None:
        turns.close()
    loader.close()
