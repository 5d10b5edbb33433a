"""What the page is given."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from polypath import engines
from polypath.measures.summary import summary
from polypath.plots import lanes
from polypath.plots.style import colour
from polypath.report import Labelled, Page, build, html, is_unchanged, listing, series
from polypath.report.columns import differences
from polypath.report.document import escaped
from polypath.results import Recording, metrics
from polypath.scenario import Scenario

from .conftest import DATAGRAMS, Ran

#: Eight subflows for ten seconds.
EIGHT = ('defaults.path_manager={kind="ndiffports",num_subflows=8}', "link.path0.rate=100 Mbps")
HOSTILE = [
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "quote\" quote' back`tick ${1} {{script}}",
    "<!-- <script> --> ]]>",
    "line\nbreak\r\ttab \u2028 \u2029 \x00\x1b[31m\x7f",
    "&lt;b&gt; &amp; \\u003c",
    "javascript:window.hacked=1",
    "a lone \ud800 surrogate",
]


def page(*recordings: Recording) -> dict[str, Any]:
    return build(Page("page", "0", [Labelled(each.metadata.scenario, each) for each in recordings]))


def unpacked(run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(run["data"]), -15))
    return found


def summed(column: list[int]) -> list[int]:
    return list(accumulate(column))


def embedded(text: str) -> Any:
    """The data as a browser finds it: up to the first end of the element."""
    start = text.index('id="data">') + len('id="data">')
    return json.loads(text[start : text.index("</script", start)])


def test_the_figures_are_the_summary_s(ran: Ran) -> None:
    recording = ran("aggregation", "mptcp")
    figures = summary(recording)
    for connection in figures["connections"]:
        del connection["goodput_series"]
        del connection["requests"]["delay_s"]
    assert page(recording)["runs"][0]["summary"] == figures


def test_what_no_cell_says_is_said_as_in_the_terminal(ran: Ran) -> None:
    (run,) = page(ran("backup", "backup"))["runs"]
    (connection,) = run["connections"]
    first, *rest = connection["notes"]
    assert first.startswith("requests: 20 requests, delay median 35.0 ms")
    assert rest == ["  10.0.0.1:32768 → 10.0.2.2:5001: nothing arrived after 2.7 s"]


def test_series_are_those_of_the_metrics(ran: Ran) -> None:
    recording = ran("aggregation", "mptcp")
    data = unpacked(page(recording)["runs"][0])
    of = metrics.connections(recording)[0]
    ends, goodput = metrics.goodput_series(recording, of)
    rate = data["connections"]["0"]["rate"]
    # the first interval begins with the connection
    assert [time / 1e6 for time in summed(rate["t"])] == pytest.approx([of.start_ns / 1e9, *ends], abs=1e-6)
    assert [value / 1e6 for value in summed(rate["v"][0])] == pytest.approx([goodput[0], *goodput], abs=1e-6)
    first = metrics.subflows(recording, of)[0]
    own = metrics.subflow_series(recording, of, first)[1]
    assert [value / 1e6 for value in summed(rate["v"][1])] == pytest.approx([own[0], *own], abs=1e-6)


def test_datagrams_have_a_rate_of_their_own_and_none_by_path() -> None:
    recording = engines.get("sim").run(Scenario.parse(DATAGRAMS, "x").plan())
    (run,) = page(recording)["runs"]
    data = unpacked(run)["connections"]
    assert {lane["share"] for lane in run["summary"]["connections"][0]["subflows"]} == {None}
    assert "rate" not in data["2"]
    for number, of in enumerate(metrics.connections(recording)[:2]):
        _, goodput = metrics.goodput_series(recording, of)
        (rate,) = data[f"{number}"]["rate"]["v"]
        assert [value / 1e6 for value in summed(rate)] == pytest.approx([goodput[0], *goodput], abs=1e-6)


def test_every_segment_is_there_in_the_order_of_sending(ran: Ran) -> None:
    recording = ran("aggregation", "mptcp")
    sequence = unpacked(page(recording)["runs"][0])["connections"]["0"]["sequence"]
    rows = recording.table("segments").to_dicts()
    own = [row for row in rows if row["side"] == "client" and row["payload_bytes"] and row["dsn"] is not None]
    assert summed(sequence["t"]) == [row["time_ns"] for row in own]
    assert summed(sequence["dsn"]) == [row["dsn"] for row in own]
    assert summed(sequence["length"]) == [row["payload_bytes"] for row in own]
    assert sequence["count"] is None
    kinds = ("data", "retransmission", "reinjection")
    assert [kinds[kind] for kind in sequence["kind"]] == [row["kind"] for row in own]


def _single(run: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The page's single segments: time, sender, subflow, seq, options, TSval, data ACK, mapping's bytes."""
    found = unpacked(run)["connections"]["0"]["segments"]
    flags, texts = found["texts"]
    columns = (
        summed(found["t"]),
        [("client", "server")[side] for side in found["side"]],
        found["lane"],
        summed(found["seq"]),
        [flags[place] for place in found["flags"]],
        [texts[place] for place in found["options"]],
        _sparse(found["stamp"]),
        _sparse(found["data_ack"]),
        found["data_bytes"],
    )
    return sorted(zip(*columns, strict=True), key=str)


def _sparse(column: list[int | None]) -> list[int | None]:
    total, found = 0, []
    for step in column:
        total += step or 0
        found.append(None if step is None else total)
    return found


def test_single_segments_are_those_of_both_directions_with_their_headers(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = ran("aggregation", "mptcp")
    names = ("time_ns", "side", "subflow", "seq", "flags", "options", "timestamp", "data_ack", "data_bytes")
    segments = recording.table("segments").with_row_index("segment")
    rows = segments.join(recording.table("headers"), on="segment").select(names).rows()
    run = page(recording)["runs"][0]
    assert _single(run) == sorted(rows, key=str)
    options = " ".join({row[5] for row in rows})
    assert all(name in options for name in ("MSS=", "WS=", "SACK_PERM", "MP_CAPABLE", "MP_JOIN"))
    found = unpacked(run)["connections"]["0"]["segments"]
    blocks = recording.table("sack_blocks").sort("side", "subflow", "time_ns", maintain_order=True)
    assert found["every"] == [1, 1]
    assert summed(found["sacks"]["begin"]) == blocks["begin"].to_list()
    places = summed(found["sacks"]["row"])
    assert [summed(found["t"])[place] for place in places] == blocks["time_ns"].to_list()

    monkeypatch.setattr(listing, "MOST", 3000)
    fewer = page(recording)["runs"][0]
    kept = _single(fewer)
    assert len(kept) <= 3000 < len(rows)
    assert set(kept) < set(rows)
    assert {row for row in rows if row[5]} <= set(kept)
    special, others = unpacked(fewer)["connections"]["0"]["segments"]["every"]
    assert special == 1 < others
    monkeypatch.setattr(listing, "MOST", 20)
    special, _ = unpacked(page(recording)["runs"][0])["connections"]["0"]["segments"]["every"]
    assert special > 1


def test_answers_are_the_acks_and_sack_blocks_of_the_receiver(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = ran("aggregation", "mptcp")
    answers = unpacked(page(recording)["runs"][0])["connections"]["0"]["answers"]
    acks = [row for row in recording.table("segments").to_dicts() if row["side"] == "server" and row["ack"]]
    assert summed(answers["t"]) == [row["time_ns"] for row in acks]
    assert summed(answers["ack"]) == [row["ack"] for row in acks]
    assert answers["lane"] == [row["subflow"] for row in acks]
    blocks = recording.table("sack_blocks").filter(side="server").to_dicts()
    assert blocks
    sacks = answers["sacks"]
    assert summed(sacks["begin"]) == [row["begin"] for row in blocks]
    assert sacks["length"] == [row["end"] - row["begin"] for row in blocks]
    assert sacks["twice"] == [int(row["duplicate"]) for row in blocks]

    monkeypatch.setattr(series, "_MOST_ANSWERS", 100)
    fewer = unpacked(page(recording)["runs"][0])["connections"]["0"]["answers"]
    kept = list(zip(summed(fewer["t"]), fewer["lane"], summed(fewer["ack"]), strict=True))
    whole = [(row["time_ns"], row["subflow"], row["ack"]) for row in acks]
    assert set(kept) < set(whole)
    assert {max(row for row in whole if row[1] == lane) for lane in (0, 1)} <= set(kept)


def test_use_of_links_is_of_their_rate_when_it_changes(ran: Ran) -> None:
    recording = ran("failover", "busy-5", "duration=8 s")
    run = page(recording)["runs"][0]
    links = unpacked(run)["links"]
    times = summed(links["t"])
    forward = summed(links["use"][0])
    busy = [use for time, use in zip(times, forward, strict=True) if 2e6 < time <= 5e6]
    cut = [use for time, use in zip(times, forward, strict=True) if time > 5.1e6]
    assert min(busy) > 900
    assert set(cut) == {0}
    assert run["changes"] == [{"t": 5.0, "link": 0, "direction": "both", "up": False}]
    assert run["marks"] == [{"t": 5.0, "text": "path0: down"}]


def test_a_link_that_follows_a_trace_names_it(ran: Ran) -> None:
    network = page(ran("wifi-walk", "wifi", "duration=1 s"))["runs"][0]["network"]
    traces = {link["name"]: link["forward"]["trace"] for link in network["links"]}
    assert traces["lte"] == "lte.up"
    assert traces["wifi"] is None


def test_requests_wait_and_then_come_by_their_paths(ran: Ran) -> None:
    recording = ran("backup", "backup")
    requests = unpacked(page(recording)["runs"][0])["connections"]["0"]["requests"]
    rows = recording.table("requests").sort("sent_ns")
    assert requests["of"] == rows.height == 20
    assert [delay * 1000 for delay in requests["delay"]] == pytest.approx(rows["delay_ns"].to_list(), abs=500)
    for delay, first, by in zip(requests["delay"], requests["first"], requests["by"], strict=True):
        assert 0 < first < delay
        assert sum(by) >= 1000
    assert requests["by"][0][1] == 0  # the backup is not used before the path is cut
    assert requests["by"][-1][0] == 0


@pytest.mark.parametrize(("lab", "run"), [("backup", "backup"), ("scheduler-reqres", "rr")])
def test_paths_of_answers_are_known_without_segments(ran: Ran, lab: str, run: str) -> None:
    recording = ran(lab, run)
    bare = {
        name: table for name, table in recording.tables.items() if name not in ("segments", "headers", "sack_blocks")
    }
    told = unpacked(page(replace(recording, tables=bare))["runs"][0])["connections"]["0"]["requests"]
    assert told["sampled"]
    known = [each for each in told["by"] if each is not None]
    assert len(known) > len(told["by"]) / 3
    # Exact: as the endpoint counts at the instants of the samples, and nothing is in two answers.
    received = recording.table("subflow_ends").sort("subflow")["client_received_bytes"].to_list()
    whole = [sum(column) for column in zip(*known, strict=True)]
    assert all(part <= total for part, total in zip(whole, received, strict=True))
    seen = unpacked(page(recording)["runs"][0])["connections"]["0"]["requests"]
    assert not seen["sampled"]
    pairs = [(a, b) for a, b in zip(told["by"], seen["by"], strict=True) if a is not None]
    assert sum(a == b for a, b in pairs) > 0.8 * len(pairs)


def test_differences_leave_out_what_is_not_there() -> None:
    assert differences([3, None, 5, 4]) == [3, None, 2, -1]


def test_colours_go_by_path_and_shades_by_subflow(ran: Ran) -> None:
    subflows = page(ran("aggregation", "mptcp", *EIGHT))["runs"][0]["connections"][0]["subflows"]
    assert [(each["path"], each["shade"]) for each in subflows] == [(0, number) for number in range(8)]
    two = page(ran("aggregation", "mptcp"))["runs"][0]["connections"][0]["subflows"]
    assert [(each["path"], each["shade"]) for each in two] == [(0, 0), (1, 0)]


TWO_CLIENTS = """
name = "two-clients"
duration = "300 ms"
host = { phone = {}, laptop = {}, server = {} }
router.r = {}
defaults.path_manager = "fullmesh"
link.backbone = { ends = ["r", "server"], rate = "40 Mbps" }
link.dsl = { ends = ["laptop:eth0", "r"] }
link.wifi = { ends = ["phone:eth0", "r"] }
link.lte = { ends = ["phone:eth1", "r"] }
application = [{ name = "one", kind = "bulk", client = "phone" }, { name = "two", kind = "bulk", client = "laptop" }]
"""


def test_colours_are_of_links_as_in_the_figures_whatever_interfaces_are_called() -> None:
    recording = engines.get("sim").run(Scenario.parse(TWO_CLIENTS, "two-clients.toml").plan())
    run = page(recording)["runs"][0]
    found = [[each["path"] for each in connection["subflows"]] for connection in run["connections"]]
    assert found == [[1, 2], [0]]
    for of, paths in zip(metrics.connections(recording), found, strict=True):
        assert [lane.colour for lane in lanes(recording, of)] == [colour(number) for number in paths]
    links = {link["name"]: link["path"] for link in run["network"]["links"]}
    assert links == {"backbone": None, "dsl": 0, "wifi": 1, "lte": 2}


def test_ten_seconds_of_eight_subflows_stay_small(ran: Ran) -> None:
    recording = ran("aggregation", "mptcp", *EIGHT)
    assert recording.metadata.end_ns >= 10_000_000_000
    assert recording.table("segments").height > 50_000
    assert len(html(page(recording)).encode()) < 3_000_000


def test_a_page_is_the_same_each_time(ran: Ran) -> None:
    recording = ran("aggregation", "tcp")
    assert html(page(recording)) == html(page(replace(recording, tables=dict(recording.tables))))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_data(name: str) -> None:
    text = escaped({"name": name, name: 1})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["name"] == name.encode("utf-8", "replace").decode()
    whole = html({"title": name, "name": name})
    assert embedded(whole)["name"] == name.encode("utf-8", "replace").decode()
    assert whole.count("<script") == html({"title": "", "name": ""}).count("<script")


def test_a_page_knows_whether_it_was_edited(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html({"title": "a"}), encoding="utf-8")
    assert is_unchanged(path)
    path.write_text(path.read_text(encoding="utf-8").replace("polypath", "mine", 1), encoding="utf-8")
    assert not is_unchanged(path)
    path.write_bytes(b"\xff\x00 notes")
    assert not is_unchanged(path)
    assert not is_unchanged(tmp_path / "missing")


def kinds(recording: Recording) -> dict[str, tuple[float, str]]:
    found = page(recording)["runs"][0]["connections"][0]["causes"]
    return {each["kind"]: (each["time_s"], each["sentence"]) for each in reversed(found)}


def test_a_small_receive_window_is_what_cost_time(ran: Ran) -> None:
    time, sentence = kinds(ran("aggregation", "window-100kB"))["window"]
    assert time > 9
    assert sentence == "The receive window was full (median 50 kB) while a congestion window had room."
    assert "window" not in kinds(ran("aggregation", "mptcp"))


def test_a_cut_that_nothing_repairs_is_what_cost_time(ran: Ran) -> None:
    time, sentence = kinds(ran("failover", "nat-forgets", "duration=90 s"))["stalled"]
    assert time == pytest.approx(29.9, abs=0.11)
    assert "path0: down at 60 s" in sentence


def test_a_cause_leads_to_where_it_happened(ran: Ran) -> None:
    found = page(ran("failover", "busy-5", "duration=8 s"))["runs"][0]["connections"][0]["causes"]
    copy = next(each for each in found if "came as a copy" in each["sentence"])
    assert 5 < copy["at_s"] < 6.3  # after the timeout of the path that was cut at 5 s
