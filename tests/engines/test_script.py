"""Schedulers and path managers in Python: same bytes as in Rust, and what goes wrong with its place."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

from polypath import EngineError, Recording, Scenario, ScenarioError, run, summary
from polypath.cli.jobs import of_target
from polypath.engines import ScriptFailed

TWO_PATHS = """
duration = "{duration}"
[defaults]
profile = "mptcp.org"
[host.client]
{client}
[host.server]
[router.r]
[link.path0]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "10 ms"
queue = "50 packets"
[link.path1]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "20 ms"
queue = "50 packets"
loss = "0.5 %"
[link.server]
ends = ["r:eth2", "server"]
[[application]]
name = "bulk"
kind = "bulk"
"""

LOWEST_RTT = """
class LowestRtt:
    def select(self, view):
        ready = [path for path in view.paths if path.ready]
        return min(ready, key=lambda path: path.srtt).index if ready else None
"""


def scenario(folder: Path, client: str, source: str = "", duration: str = "3 s") -> Scenario:
    (folder / "own.py").write_text(source)
    file = folder / "scenario.toml"
    file.write_text(TWO_PATHS.format(client=client, duration=duration))
    return Scenario.load(file)


def failure(folder: Path, body: str) -> str:
    source = f"class Own:\n    def select(self, view):\n        {body}\n"
    with pytest.raises(ScriptFailed) as caught:
        run(scenario(folder, 'scheduler = "own.py:Own"', source))
    return str(caught.value)


def same(one: Recording, other: Recording) -> bool:
    return one.metadata.recording_sha256 == other.metadata.recording_sha256


def test_the_same_rule_gives_the_same_packets_as_in_rust(tmp_path: Path) -> None:
    python, rust = (of_target("python-scheduler", [name], [], None)[0].scenario for name in ("python", "rust"))
    assert same(run(python), run(rust))


def test_where_the_file_lies_is_not_in_the_plan(tmp_path: Path) -> None:
    plans = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        made = scenario(tmp_path / name, 'scheduler = "own.py:LowestRtt"', LOWEST_RTT)
        plans.append(made.model_copy(update={"name": "same"}).plan())
    assert plans[0] == plans[1]
    assert str(tmp_path) not in plans[0].json()


def test_a_plan_runs_without_its_file(tmp_path: Path) -> None:
    plan = scenario(tmp_path, 'scheduler = "own.py:LowestRtt"', LOWEST_RTT).plan()
    before = run(plan)
    (tmp_path / "own.py").unlink()
    assert same(run(plan), before)


def test_loss_and_reinjection_are_survived(tmp_path: Path) -> None:
    recording = run(scenario(tmp_path, 'scheduler = "own.py:LowestRtt"', LOWEST_RTT))
    delivered = summary(recording)["connections"][0]["bytes"]
    assert delivered > 3e6


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return view.paths[9].index", "own.py:3: IndexError: tuple index out of range (Own.select, 0."),
        ("return 1 / 0", "own.py:3: ZeroDivisionError: division by zero"),
        ("return 'fast'", "own.py:2: TypeError: select returned 'fast'; it must return the index of a path"),
        ("return True", "own.py:2: TypeError: select returned True"),
        ("return -1", "own.py:2: ValueError: select returned path -1; the connection has paths 0 to 0"),
        ("return (0, view.sent)", "own.py:2: ValueError: select repeats offset"),
        ("return (0, None)", "own.py:2: ValueError: select repeats offset None; it may repeat offsets "),
        ("return (0, -1)", "own.py:2: ValueError: select repeats offset -1; it may repeat offsets "),
        ("return (0, 1 << 64)", "own.py:2: ValueError: select repeats offset 18446744073709551616; it may repeat"),
        ("return None", "own.py:2: ValueError: sends nothing from 0."),
        ("raise SystemExit(3)", "own.py:3: SystemExit: 3"),
    ],
)
def test_a_scheduler_that_fails_ends_the_run_with_its_own_line(tmp_path: Path, body: str, expected: str) -> None:
    assert failure(tmp_path, body).startswith(expected)


def test_what_cannot_be_made_is_said_before_the_run(tmp_path: Path) -> None:
    source = "class Own:\n    def __init__(self, k):\n        self.k = 1 / k\n    def select(self, view): ...\n"
    with pytest.raises(EngineError, match=r"own\.py:3: ZeroDivisionError"):
        run(scenario(tmp_path, 'scheduler = { kind = "own.py:Own", k = 0 }', source))
    with pytest.raises(EngineError, match="unexpected keyword argument 'q'"):
        run(scenario(tmp_path, 'scheduler = { kind = "own.py:Own", q = 0 }', source))


@pytest.mark.parametrize(
    ("client", "source", "expected"),
    [
        ('scheduler = "other.py:Own"', "", "other.py: no such file"),
        ('scheduler = "own.py:Own"', "class Owns:\n    def select(self, view): ...", "did you mean 'Owns'?"),
        ('scheduler = "own.py:Own"', "class Own: ...", "own.py:1: class 'Own' has no method 'select(self, view)'"),
        ('scheduler = "own.py:Own"', "def f(:", "own.py:1: invalid syntax"),
        ('path_manager = "own.py:Own"', "class Own: ...", "has no method 'manage(self, view)'"),
        (
            'congestion = "own.py:Own"',
            "class Own: ...",
            "own.py:1: class 'Own' has no method 'on_ack(self, path, ack)'",
        ),
    ],
)
def test_a_wrong_reference_is_an_error_at_its_line(tmp_path: Path, client: str, source: str, expected: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(tmp_path, client, source)
    assert str(caught.value).startswith(f"{tmp_path / 'scenario.toml'}:6: ")
    assert expected in str(caught.value)


def test_it_is_known_where_a_class_was_named(tmp_path: Path) -> None:
    made = scenario(tmp_path, 'scheduler = "own.py:LowestRtt"', LOWEST_RTT).with_settings(["duration=1 s"])
    assert made.where_named("own.py:LowestRtt") == f"{tmp_path / 'scenario.toml'}:6"
    assert made.where_named("own.py:Other") is None


PATH_MANAGER = """
class Later:
    wake = 1.0

    def manage(self, view):
        if not view.client or view.now < 1.0:
            return []
        self.wake = 2.0 if view.now < 2.0 else None
        other, peer = view.local[1].address, view.remote[0].address
        if view.now < 2.0:
            return [("open", other, peer)]
        return [("backup", other, peer)]
"""


def subflow_events(recording: Recording, kind: str) -> list[float]:
    events = recording.table("events").filter((pl.col("kind") == kind) & (pl.col("subflow") == 1))
    return [time / 1e9 for time in events["time_ns"]]


def test_a_path_manager_in_python_acts_at_its_times(tmp_path: Path) -> None:
    recording = run(scenario(tmp_path, 'path_manager = "own.py:Later"', PATH_MANAGER, "4 s"))
    assert subflow_events(recording, "subflow-established")[0] == pytest.approx(1.1, abs=0.05)
    assert subflow_events(recording, "priority-changed")[0] == pytest.approx(2.05, abs=0.05)


def test_the_scripted_path_manager_does_the_same(tmp_path: Path) -> None:
    steps = '["1 s open 10.0.1.1 10.0.2.2", "2000 ms backup 10.0.1.1 10.0.2.2"]'
    scripted = f'path_manager = {{ kind = "scripted", steps = {steps} }}'
    python = run(scenario(tmp_path, 'path_manager = "own.py:Later"', PATH_MANAGER, "4 s"))
    assert same(run(scenario(tmp_path, scripted, duration="4 s")), python)


WOKEN_ONCE = """
class Own:
    wake = 0.5
    asked = 0

    def manage(self, view):
        self.asked += 1
        if self.asked > 20:
            raise RuntimeError(f"asked {self.asked} times")
        if view.client and view.now >= self.wake:
            return [("open", view.local[1].address, view.remote[0].address)]
        return []
"""


@pytest.mark.parametrize("transport", ["mptcp", "mpquic"])
def test_a_wake_that_has_passed_counts_for_nothing(tmp_path: Path, transport: str) -> None:
    made = scenario(tmp_path, 'path_manager = "own.py:Own"', WOKEN_ONCE, "2 s")
    recording = run(made.with_settings([f"application.bulk.transport={transport}"]))
    assert subflow_events(recording, "subflow-established")[0] == pytest.approx(0.6, abs=0.1)


TURNS_TO_THE_OTHER = """
class Own:
    def manage(self, view):
        first, second = view.local
        pairs = [own for own, _ in view.subflows]
        if view.client and not second.up:
            assert second.address not in pairs
            return [("normal", first.address, view.remote[0].address)]
        return [("open", second.address, view.remote[0].address)] if view.client and len(pairs) == 1 else []
"""


@pytest.mark.parametrize("transport", ["mptcp", "mpquic"])
def test_a_path_manager_hears_of_an_address_that_goes(tmp_path: Path, transport: str) -> None:
    """The first path is a backup until the second address goes."""
    made = scenario(tmp_path, 'path_manager = "own.py:Own"', TURNS_TO_THE_OTHER, "3 s")
    made = made.with_settings([f"application.bulk.transport={transport}"])
    made = made.with_more("event", [
        {"at": "500 ms", "interface": "client:eth0", "backup": True},
        {"at": "2 s", "interface": "client:eth1", "up": False},
    ])  # fmt: skip
    events = run(made).table("events").filter((pl.col("kind") == "priority-changed") & (pl.col("subflow") == 0))
    times = [time / 1e9 for time in events["time_ns"]]
    assert times[-1] == pytest.approx(2.0, abs=0.1)


REPEATS_THE_END = """
class Own:
    repeats = True
    at, asked = None, 0

    def select(self, view):
        ready = [path for path in view.paths if path.ready]
        if not ready:
            return None
        best = min(ready, key=lambda path: path.srtt).index
        if view.offset is not None or view.una == view.sent:
            return best
        self.at, self.asked = view.now, self.asked + 1 if self.at == view.now else 0
        if self.asked > 1000:
            raise RuntimeError(f"asked {self.asked} times at one instant")
        return (best, view.sent - 1)
"""


def test_a_repetition_of_what_has_arrived_over_quic_is_to_wait(tmp_path: Path) -> None:
    made = scenario(tmp_path, 'scheduler = "own.py:Own"', REPEATS_THE_END, "20 s")
    settings = ["application.bulk.transport=mpquic", "application.bulk.size=300 kB", "link.path0.loss=5 %"]
    (connection,) = summary(run(made.with_settings(settings)))["connections"]
    assert connection["bytes"] == 300_000


def test_each_connection_has_one_instance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And one is made to see that it can be."""
    counted = LOWEST_RTT + "\n    def __init__(self):\n        print('made')\n"
    made = scenario(tmp_path, 'scheduler = "own.py:LowestRtt"', counted, "1 s")
    more = made.with_more("application", [{"kind": "bulk", "name": f"more{number}"} for number in range(2)])
    assert len(more.application) == 3
    run(more)
    assert capsys.readouterr().out.split() == ["made"] * 4


def test_a_scheduler_may_wait_for_a_failed_path(tmp_path: Path) -> None:
    """What is in flight there is sent again and again, and is acknowledged once the path is back."""
    first = "class Own:\n    def select(self, view):\n        return 0\n"
    made = scenario(tmp_path, 'path_manager = "fullmesh"\nscheduler = "own.py:Own"', first, "6 s")
    made = made.with_more("event", [
        {"at": "1 s", "link": "path0", "up": False},
        {"at": "4 s", "link": "path0", "up": True},
    ])  # fmt: skip
    (connection,) = summary(run(made))["connections"]
    assert connection["bytes"] > 1e6


CLOSES_WHAT_THE_CLIENT_OPENED = """
class Own:
    wake = 1.0

    def manage(self, view):
        if view.now < 1.0:
            return []
        return [({verb}, *pair) for pair in view.subflows[1:]]
"""


@pytest.mark.parametrize(("verb", "kind"), [("'close'", "subflow-closed"), ("'backup'", "priority-changed")])
@pytest.mark.parametrize("transport", ["mptcp", "mpquic"])
def test_an_accepting_host_manages_what_its_peer_opened(tmp_path: Path, transport: str, verb: str, kind: str) -> None:
    source = CLOSES_WHAT_THE_CLIENT_OPENED.format(verb=verb)
    text = TWO_PATHS.replace("[host.server]", '[host.server]\npath_manager = "own.py:Own"')
    scenario(tmp_path, "", source)
    file = tmp_path / "scenario.toml"
    file.write_text(text.format(client='path_manager = "fullmesh"', duration="2 s"))
    recording = run(Scenario.load(file).with_settings([f"application.bulk.transport={transport}"]))
    assert subflow_events(recording, kind)[0] == pytest.approx(1.05, abs=0.1)


def test_a_path_manager_fails_at_a_time_of_the_run(tmp_path: Path) -> None:
    source = "class Own:\n    wake = 0.5\n    def manage(self, view):\n        assert view.now < 0.5\n"
    made = scenario(tmp_path, 'path_manager = "own.py:Own"', source)
    with pytest.raises(ScriptFailed, match=r"own\.py:4: AssertionError \(Own\.manage, 2\.5\d+ s into the run\)"):
        run(made.with_settings(["application.bulk.start=2 s", "duration=4 s"]))


EQUAL_BYTES = """
class Own:
    def __init__(self):
        self.bytes = {0: 0, 1: 0}

    def select(self, view):
        usable = [path.index for path in view.paths if path.usable]
        return min(usable, key=self.bytes.get, default=None)

    def carried(self, path, size, new):
        assert size
        self.bytes[path] += size
"""


@pytest.mark.parametrize("scheduler", ["own.py:Own", "equal", "balanced"])
def test_messages_in_datagrams_count_for_schedulers(tmp_path: Path, scheduler: str) -> None:
    made = scenario(tmp_path, f'path_manager = "fullmesh"\nscheduler = "{scheduler}"', EQUAL_BYTES)
    data = made.to_data()
    messages = {"kind": "messages", "size": "1000 B", "interval": "10 ms", "duration": "2 s"}
    data["application"] = [messages | {"name": "messages", "transport": "mpquic"}]
    data["link"]["path1"].pop("loss")
    ends = run(Scenario.from_data(data)).table("link_ends").filter(pl.col("direction") == "forward")
    first, second, _ = ends["sent_bytes"]
    assert second > 0.4 * (first + second)


@pytest.mark.parametrize("transport", ["mptcp", "mpquic"])
def test_a_server_opens_subflows_where_the_protocol_lets_it(tmp_path: Path, transport: str) -> None:
    source = """
class Own:
    def manage(self, view):
        own, peer = view.local[0].address, view.remote[-1].address
        return [("open", own, peer)] if not view.client and len(view.subflows) < 2 else []
"""
    text = TWO_PATHS.replace("[host.server]", '[host.server]\npath_manager = "own.py:Own"')
    scenario(tmp_path, "", source)
    file = tmp_path / "scenario.toml"
    file.write_text(text.format(client="", duration="1 s"))
    made = Scenario.load(file).with_settings([f"application.bulk.transport={transport}"])
    if transport == "mptcp":
        assert subflow_events(run(made), "subflow-established")
        return
    with pytest.raises(ScriptFailed, match=r"own\.py:3: ValueError: over Multipath QUIC only the client opens paths"):
        run(made)


@pytest.mark.parametrize(("transport", "known"), [("mptcp", 2), ("mpquic", 0)])
def test_what_the_peer_knows_is_announced(tmp_path: Path, transport: str, known: int) -> None:
    source = f"""
class Own:
    wake = 0.5

    def manage(self, view):
        if view.client and view.now >= 0.5:
            assert len(view.announced) == {known}, view.announced
        return [("announce", view.local[-1].address)] if view.client and view.now == 0 else []
"""
    made = scenario(tmp_path, 'path_manager = "own.py:Own"', source, "1 s")
    run(made.with_settings([f"application.bulk.transport={transport}"]))


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_a_file_may_have_dataclasses(tmp_path: Path, future: str) -> None:
    source = f"""{future}
from dataclasses import dataclass, field

@dataclass
class Turn:
    paths: list[int] = field(default_factory=list)

class Own:
    def __init__(self):
        self.turn = Turn([0])

    def select(self, view):
        return self.turn.paths[0]
"""
    run(scenario(tmp_path, 'scheduler = "own.py:Own"', source, "1 s"))
    assert not [name for name in sys.modules if name.startswith("own")]


def test_a_file_named_as_a_library_leaves_the_library_alone(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("import json\n" + LOWEST_RTT.replace("ready =", "json.dumps({}); ready ="))
    run(scenario(tmp_path, 'scheduler = "json.py:LowestRtt"', duration="1 s"))


def test_of_two_files_of_one_name_the_one_that_failed_is_named(tmp_path: Path) -> None:
    for folder, body in (("a", "return 0"), ("b", "return 1 / 0")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.py").write_text(f"class Own:\n    def select(self, view):\n        {body}\n")
    text = TWO_PATHS.format(client='scheduler = "a/own.py:Own"', duration="1 s")
    file = tmp_path / "scenario.toml"
    file.write_text(text.replace("[host.server]", '[host.server]\nscheduler = "b/own.py:Own"') + "reverse = true\n")
    made = Scenario.load(file)
    with pytest.raises(ScriptFailed, match=r"own\.py:3: ZeroDivisionError") as caught:
        run(made)
    assert made.where_named(caught.value.script, caught.value.source) == f"{file}:8"


def test_what_quic_lost_is_placed_without_asking(tmp_path: Path) -> None:
    """On the path of lowest RTT, which the rule never chooses once there is another."""
    source = """
class Own:
    def select(self, view):
        assert view.offset == view.sent, "asked about a repetition"
        return 1 if len(view.paths) > 1 and view.paths[1].established else 0

    def carried(self, path, size, new):
        assert new or path != 0, f"path {path} repeats"
"""
    made = scenario(tmp_path, 'path_manager = "fullmesh"\nscheduler = "own.py:Own"', source)
    run(made)
    with pytest.raises(ScriptFailed, match="AssertionError: path 0 repeats"):
        run(made.with_settings(["application.bulk.transport=mpquic"]))


def test_a_packet_of_quic_that_begins_with_a_repetition_is_one(tmp_path: Path) -> None:
    """Though the rest of it is new: what counts as new is less than what was sent for the first time."""
    source = """
class Own:
    told = 0

    def select(self, view):
        assert view.sent <= self.told, "new bytes in a repetition"
        return 0

    def carried(self, path, size, new):
        self.told += size if new else 0
"""
    made = scenario(tmp_path, 'scheduler = "own.py:Own"', source).with_settings(["link.path0.loss=2 %"])
    run(made)
    with pytest.raises(ScriptFailed, match="AssertionError: new bytes in a repetition"):
        run(made.with_settings(["application.bulk.transport=mpquic"]))


def test_pacing_is_part_of_what_a_scheduler_sees(tmp_path: Path) -> None:
    """Over QUIC whatever controls the window, over TCP in the profile `linux` alone."""
    source = """
class Own:
    def select(self, view):
        for path in view.paths:
            assert path.srtt == 0 or (path.pacing_rate > 0) is {rate}, path.pacing_rate
            assert not path.ready or path.room > 0
            assert {paced} or path.room == max(0, path.cwnd - path.in_flight), "paced"
        return min((path.index for path in view.paths if path.ready), default=None)
"""
    for transport, profile, rate in (("mptcp", "rfc", False), ("mptcp", "linux", True), ("mpquic", "rfc", True)):
        settings = [f"application.bulk.transport={transport}", f"defaults.profile={profile}"]
        for paced in (True, False):
            text = source.format(rate=rate, paced=paced)
            made = scenario(tmp_path, 'path_manager = "fullmesh"\nscheduler = "own.py:Own"', text, "1 s")
            if transport == "mptcp" or paced:
                run(made.with_settings(settings))
            else:
                with pytest.raises(ScriptFailed, match="AssertionError: paced"):
                    run(made.with_settings(settings))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("7", "TypeError: manage returned 7; it must return a list of actions"),
        (
            "[('open', view.local[0].address, view.remote[0].address, '10.0.0.9')]",
            "'10.0.0.9'); gateways must be a list of addresses",
        ),
        ("setattr(self, 'wake', '1 s')", "TypeError: wake is '1 s'; it must be a number of seconds, or None"),
        ("[('open',)]", "TypeError: manage returned ('open',); an action must be a tuple: open, close,"),
        ("[('open', '1.2.3.4', '10.0.2.2')]", "ValueError: 1.2.3.4 is no address of this host"),
        ("[('announce', 'x')]", "ValueError: 'x' is no address"),
    ],
)
def test_a_path_manager_that_fails_ends_the_run(tmp_path: Path, answer: str, expected: str) -> None:
    source = f"class Own:\n    def manage(self, view):\n        return {answer}\n"
    with pytest.raises(ScriptFailed) as caught:
        run(scenario(tmp_path, 'path_manager = "own.py:Own"', source))
    assert str(caught.value).startswith("own.py:2: ")
    assert expected in str(caught.value)


def test_empty_arguments_stay_when_nothing_is_left_out(tmp_path: Path) -> None:
    made = scenario(tmp_path, 'scheduler = { kind = "own.py:LowestRtt", f = "", e = {}, a = { b = "" } }', LOWEST_RTT)
    for whole in (made.resolved(), Scenario.parse(made.to_toml(resolved=True), "x.toml")):
        chosen = whole.host["client"].scheduler
        assert chosen is not None
        assert chosen.parameters == {"f": "", "e": {}, "a": {"b": ""}}
        assert whole.plan() == made.plan()


@pytest.mark.parametrize("value", ["inf", "nan", "2020-01-01", "[1, { a = -inf }]"])
def test_an_argument_that_no_plan_carries_is_an_error_at_its_line(tmp_path: Path, value: str) -> None:
    with pytest.raises(ScenarioError, match=r"argument 'k' of .*own\.py:LowestRtt is ") as caught:
        scenario(tmp_path, f'scheduler = {{ kind = "own.py:LowestRtt", k = {value} }}', LOWEST_RTT)
    assert str(caught.value).startswith(f"{tmp_path / 'scenario.toml'}:6: ")
    assert "; it takes texts, finite numbers, booleans, lists and tables" in str(caught.value)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("open 10.0.1.1 10.0.2.2", "is no time"),
        ("2 h open 10.0.1.1 10.0.2.2", "a time is in s, ms or us, not 'h'"),
        ("2 s shut 10.0.1.1 10.0.2.2", "'shut' is none of open, close"),
        ("2 s open 10.0.1.1", "open takes a local and a remote address"),
        ("2 s announce 10.0.1.300", "'10.0.1.300' is no address"),
    ],
)
def test_a_wrong_step_is_an_error_at_its_line(tmp_path: Path, step: str, expected: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(tmp_path, f'path_manager = {{ kind = "scripted", steps = ["{step}"] }}')
    assert str(caught.value).startswith(f"{tmp_path / 'scenario.toml'}:6: ")
    assert expected in str(caught.value)


CONTROL = """
class Own:
    def select(self, view):
        {control}
        ready = [path.index for path in view.paths if path.ready]
        return ready[0] if ready and view.kind == "data" else None
"""


def download(folder: Path, setting: str, control: str) -> Recording:
    """A client of Multipath QUIC gets a file, and tells limits meanwhile."""
    scenario(folder, f'scheduler = "own.py:Own"\n{setting}', CONTROL.format(control=control), duration="20 s")
    file = folder / "scenario.toml"
    text = file.read_text().replace('kind = "bulk"', 'kind = "fetch"\nsize = "1 MB"\ntransport = "mpquic"')
    file.write_text(text)
    return run(Scenario.load(file))


@pytest.mark.parametrize(("setting", "kind"), [("control_path", "control"), ("ack_path", "acknowledgement")])
def test_packets_without_data_are_shown_where_that_is_asked_for(tmp_path: Path, setting: str, kind: str) -> None:
    refuse = f'assert view.kind != "{kind}", "asked about one"'
    download(tmp_path, 'receive_buffer = "100 kB"', refuse)
    with pytest.raises(ScriptFailed, match="asked about one"):
        download(tmp_path, f'receive_buffer = "100 kB"\n{setting} = "scheduler"', refuse)


def test_control_packets_go_where_a_class_wants_them(tmp_path: Path) -> None:
    settings = 'receive_buffer = "100 kB"\ncontrol_path = "scheduler"'
    left = download(tmp_path, settings, "pass")
    placed = download(tmp_path, settings, 'if view.kind == "control": return len(view.paths) - 1')
    assert not same(left, placed)
