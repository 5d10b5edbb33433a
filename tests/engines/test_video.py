"""A player of adaptive video: what it asks for, when it plays, when it stands still."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from polypath import _core, measures
from polypath.engines import EngineError, get
from polypath.formats.plan import scenario_of
from polypath.measures.summary import summary
from polypath.results import Recording, metrics, notes, video
from polypath.scenario import Plan, Scenario, ScenarioError

SECOND = 1_000_000_000
TEXT = """
name = "film"
duration = "60 s"
[defaults]
profile = "rfc"
[host.client]
[host.server]
[link.wifi]
ends = ["client:eth0", "server"]
rate = "3 Mbps"
delay = "20 ms"
queue = "100 kB"
loss = "0.1 %"
[[application]]
name = "film"
kind = "video"
transport = "tcp"
rates = ["500 kbps", "1 Mbps", "2 Mbps", "4 Mbps"]
segment = "2 s"
"""
DIP = """
[[event]]
at = "20 s"
link = "wifi"
rate = "300 kbps"
[[event]]
at = "40 s"
link = "wifi"
rate = "3 Mbps"
"""


def run(*settings: str, text: str = TEXT) -> Recording:
    return get("sim").run(Scenario.parse(text, "film.toml").with_settings(list(settings)).plan())


def chunks(recording: Recording) -> list[dict[str, Any]]:
    return recording.table("chunks").to_dicts()


def seen(recording: Recording) -> video.Playback:
    found = video.playback(recording, metrics.connection(recording, "film"))
    assert found is not None
    return found


def held(recording: Recording, at: int, segment: int) -> int:
    """What a player has in hand, from arrivals and times of play alone."""
    come = sum(each["arrived_ns"] is not None and each["arrived_ns"] <= at for each in chunks(recording))
    begun = [int(each["played_ns"]) for each in chunks(recording) if each["played_ns"] is not None]
    played = sum(min(max(at - begin, 0), segment) for begin in begun)
    return int(come) * segment - played


@pytest.mark.parametrize("rule", ["throughput", "buffer", "fixed"])
@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic", "mpquic"])
def test_a_player_keeps_its_rules(rule: str, transport: str) -> None:
    settings = (f"application.film.rule={rule}", f"application.film.transport={transport}")
    recording = run(*settings, "application.film.buffer=9 s", "application.film.startup=4 s", text=TEXT + DIP)
    segment, rows = 2 * SECOND, chunks(recording)
    assert len(rows) > 10
    assert [each["index"] for each in rows] == list(range(len(rows)))
    for each in rows:
        assert each["rate_bps"] == [500_000, 1_000_000, 2_000_000, 4_000_000][each["representation"]]
        assert each["bytes"] == each["rate_bps"] * 2 // 8
        assert each["buffer_ns"] == held(recording, each["asked_ns"], segment)
        assert each["buffer_ns"] + segment <= 9 * SECOND
        assert each["played_ns"] is None or each["played_ns"] >= each["arrived_ns"]
    for before, after in pairwise(rows):
        assert after["asked_ns"] >= before["arrived_ns"]
        # At once, if there is room.
        assert after["asked_ns"] == before["arrived_ns"] or after["buffer_ns"] + segment == 9 * SECOND
        if after["played_ns"] is not None:
            assert after["played_ns"] >= before["played_ns"] + segment
    answered = [each["delay_ns"] for each in recording.table("requests").to_dicts()]
    assert answered == [each["arrived_ns"] and each["arrived_ns"] - each["asked_ns"] for each in rows]
    assert len({each["representation"] for each in rows}) == 1 or rule != "fixed"
    assert (
        recording.metadata.recording_sha256
        == run(
            *settings, "application.film.buffer=9 s", "application.film.startup=4 s", text=TEXT + DIP
        ).metadata.recording_sha256
    )


def test_the_rate_rule_asks_for_what_the_link_carries() -> None:
    rates = [each["rate_bps"] for each in chunks(run("duration=120 s"))]
    assert rates[0] == 500_000
    assert set(rates[5:]) == {2_000_000}
    fast = [each["rate_bps"] for each in chunks(run("link.wifi.rate=10 Mbps", "duration=120 s"))]
    assert set(fast[5:]) == {4_000_000}


def test_a_stall_is_the_time_that_the_link_leaves_the_player_without_pictures() -> None:
    recording = run('application.film.rule={kind="fixed", representation=2}', text=TEXT + DIP)
    found = seen(recording)
    # 30 s are there when the link slows down to 0.3 Mbps: a segment of 2 s takes more than 13 s.
    assert found.stalls
    assert found.switches == 0
    assert found.rate_bps == 2_000_000
    for stall in found.stalls:
        assert held(recording, stall.begin_ns, 2 * SECOND) == 0
        assert 0 <= held(recording, stall.end_ns - 1, 2 * SECOND) < 2 * SECOND
    assert found.stalled_ns == sum(each.end_ns - each.begin_ns for each in found.stalls) > SECOND
    times, depths = video.buffered(recording, metrics.connection(recording, "film"))
    assert times == sorted(times)
    after = dict(zip(times, depths, strict=True))
    assert after == pytest.approx({at: held(recording, at, 2 * SECOND) / SECOND for at in after})
    # What comes is a step: the instant is there twice.
    steps = [round(later - depth, 9) for depth, later in pairwise(depths)]
    arrivals = sum(each["arrived_ns"] is not None for each in chunks(recording))
    assert len(times) - len(after) == arrivals == sum(step == 2 for step in steps)


def test_a_film_that_ends_is_finished_and_stalls_no_more() -> None:
    recording = run("application.film.length=19 s")
    connection = metrics.connection(recording, "film")
    assert connection.finished is True
    assert len(chunks(recording)) == 10
    found = seen(recording)
    assert found.shown == 10
    assert not found.stalls
    assert run("application.film.length=300 s", "duration=20 s").table("connection_ends")["end_ns"].item() is None


def test_one_stall_is_told_with_its_length() -> None:
    recording = run(text=TEXT + DIP.replace("300 kbps", "10 kbps"))
    connection = metrics.connection(recording, "film")
    (stall,) = seen(recording).stalls
    (line, *_) = notes.of(recording, connection, metrics.subflows(recording, connection))
    assert f", 1 stall of {(stall.end_ns - stall.begin_ns) / SECOND:.1f} s, " in line


def test_what_is_told_of_it() -> None:
    recording = run(text=TEXT + DIP)
    connection, found = metrics.connection(recording, "film"), seen(recording)
    (line, *_) = notes.of(recording, connection, metrics.subflows(recording, connection))
    assert f"film: video at {(found.rate_bps or 0) / 1e6:.2f} Mbps on average, first picture after 0." in line
    assert f", 3 stalls, {(found.stalled_ns or 0) / SECOND:.1f} s in all, " in line
    told = summary(recording)["connections"][0]["video"]
    assert told["segments"] == found.shown
    assert found.stalled_ns is not None
    assert told["stalled_s"] == found.stalled_ns / SECOND
    figures = {
        "video_rate": told["mbps"],
        "video_startup": told["startup_s"],
        "video_stalled": told["stalled_s"],
        "video_switches": told["switches"],
    }
    assert figures["video_stalled"] > 0
    assert set(figures) == {name for name in measures.REGISTRY if name.startswith("video_")}
    for name, figure in figures.items():
        assert measures.REGISTRY[name](recording, {"connection": "film"}) == pytest.approx(figure)
    other = run(text=TEXT[: TEXT.index("[[")] + '[[application]]\nname = "film"\nkind = "bulk"\n')
    assert "video" not in summary(other)["connections"][0]
    with pytest.raises(metrics.MetricError, match="'film' is no video"):
        measures.REGISTRY["video_rate"](other, {"connection": "film"})


def test_it_comes_back_from_its_plan() -> None:
    rule = '{ kind = "buffer", reservoir = "3 s", cushion = "7 s" }'
    plan = Scenario.parse(TEXT + f'rule = {rule}\nlength = "31 s"\nstartup = "4 s"\n', "film.toml").plan()
    assert scenario_of(plan, "plan.json").plan() == plan


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('rates = ["1 Mbps", "500 kbps"]', "application 1: the rates rise from one to the next"),
        ("rates = []", "application 1: a video needs a rate"),
        ('segment = "1 ms"', "application 1: a segment plays for 10 ms at least"),
        ('buffer = "1 s"', "application 1: the buffer has no room for a segment"),
        ('segment = "40 s"', "application 1: the buffer has no room for a segment"),
        ('startup = "31 s"', "application 1: 'startup' is longer than 'buffer', so that nothing ever plays"),
        ('rule = "fastest"', "application 1.rule: unknown kind 'fastest'; there is throughput, buffer, fixed"),
        ('rule = { kind = "fixed", representation = 6 }', "there are 6 rates, numbered from 0"),
    ],
)
def test_what_cannot_be_played_is_refused_with_its_line(line: str, message: str) -> None:
    text = TEXT[: TEXT.index("rates =")] + f"{line}\n"
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "film.toml")
    assert f"film.toml:{text.count(chr(10))}: " in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rates_bps": [1_000_000, 500_000]}, "rates_bps: the rates rise from one to the next"),
        ({"rates_bps": []}, "rates_bps: a video needs a rate"),
        ({"rates_bps": [0]}, "rates_bps: a rate is above 0"),
        ({"segment_ns": 9_999_999}, "segment_ns: a segment plays for 10 ms at least"),
        ({"buffer_ns": SECOND}, "buffer_ns: the buffer has no room for a segment"),
        (
            {"rule": {"kind": "fixed", "representation": 6}},
            "rule.representation: there are 6 rates, numbered from 0",
        ),
    ],
)
def test_a_plan_of_what_cannot_be_played_names_the_field(change: dict[str, Any], message: str) -> None:
    data = Scenario.parse(TEXT[: TEXT.index("rates =")], "film.toml").plan().data
    assert _core.check(Plan(data).json()) is None
    work = data["applications"][0]["work"]
    work |= change
    assert _core.check(Plan(data).json()) == f"application film: {message}"
    with pytest.raises(EngineError, match=f"^application film: {message}$"):
        get("sim").run(Plan(data))
