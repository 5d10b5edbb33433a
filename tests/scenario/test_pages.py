"""A page's objects: of the scenario, of CSV and HAR files, good and hostile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polypath.formats.plan import scenario_of
from polypath.scenario import Scenario, ScenarioError, pages

SCENARIO = """
[host.client]
[host.server]
[link.l]
ends = ["client", "server"]
[[application]]
kind = "page"
transport = "tcp"
"""


def plan_of(text: str, folder: Path | None = None) -> list[dict[str, Any]]:
    scenario = Scenario.parse(SCENARIO + text, "page.toml", folder=folder)
    applications: list[dict[str, Any]] = scenario.plan().data["applications"]
    return applications


def entry(url: str, size: object = 100, **more: object) -> dict[str, Any]:
    return {"request": {"url": url}, "response": {"status": 200, "bodySize": size}, **more}


def har(folder: Path, entries: object) -> str:
    file = folder / "page.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}), encoding="utf-8")
    return str(file)


def fault_of(folder: Path, entries: object) -> str:
    with pytest.raises(ScenarioError) as caught:
        pages.of_har(har(folder, entries))
    return str(caught.value).removeprefix(f"{folder}/")


def test_objects_come_behind_what_they_wait_for() -> None:
    text = 'objects = [{ name = "b", size = "2 B", after = ["a"], think = "5 ms" }, { name = "a", size = "0 B" }]'
    (page,) = plan_of(text)
    assert page["work"]["objects"] == [
        {"name": "a", "path": "/a", "size_bytes": 0, "after": [], "think_ns": 0},
        {"name": "b", "path": "/b", "size_bytes": 2, "after": [0], "think_ns": 5_000_000},
    ]


def test_further_connections_name_the_first() -> None:
    applications = plan_of(
        'connections = 3\nport = 8000\nstart_jitter = "1 s"\nobjects = [{ name = "a", size = "1 B" }]'
    )
    assert [each["name"] for each in applications] == ["page-1", "page-2", "page-3"]
    assert [each["port"] for each in applications] == [8000, 8001, 8002]
    assert [each["work"].get("of") for each in applications] == [None, 0, 0]
    assert len({each["start_ns"] for each in applications}) == 1


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "a page takes its objects from one of 'objects', 'csv' and 'har'"),
        ('csv = "a.csv"\nhar = "a.har"', "a page takes its objects from one of 'objects', 'csv' and 'har'"),
        ('objects = [{ name = "a", size = "1 B", after = ["b"] }]', "object 'a' waits for 'b', and there is none"),
        ('objects = [{ name = "a", size = "1 B", after = ["a"] }]', "wait for each other: 'a' waits for 'a'"),
        (
            'objects = [{ name = "a", size = "1 B", after = ["b"] }, { name = "b", size = "1 B", after = ["a"] }]',
            "objects wait for each other: 'a' waits for 'b' waits for 'a'",
        ),
        ('objects = [{ name = "a", size = "1 B" }, { name = "a", size = "1 B" }]', "two objects are called 'a'"),
        ('objects = [{ name = "a", size = "9999999 GB" }]', "is too large: at most 1000000 GB"),
    ],
)
def test_what_is_no_page_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        plan_of(text)
    assert fault in str(caught.value)
    assert str(caught.value).startswith("page.toml:")


def test_a_plan_gives_the_page_back() -> None:
    text = 'objects = [{ name = "b", size = "2 B", after = ["a c"], think = "5 ms" }, { name = "a c", size = "0 B" }]'
    plan = Scenario.parse(SCENARIO + text, "page.toml").plan()
    assert scenario_of(plan, "plan.json").plan() == plan


def test_a_two_way_transfer_comes_back_from_its_plan() -> None:
    text = SCENARIO.replace('"page"', '"bulk"') + 'size = "2 MB"\nreverse_size = "1 MB"\n'
    plan = Scenario.parse(text, "bulk.toml").plan()
    assert plan.data["applications"][0]["work"]["reverse_bytes"] == 1_000_000
    assert scenario_of(plan, "plan.json").plan() == plan


def test_quic_has_one_connection() -> None:
    text = SCENARIO.replace('"tcp"', '"quic"') + 'connections = 2\nobjects = [{ name = "a", size = "1 B" }]'
    with pytest.raises(ScenarioError, match="over QUIC the objects of a page are on streams of one connection"):
        Scenario.parse(text, "page.toml")


def test_a_table_beside_the_scenario(tmp_path: Path) -> None:
    table = "object,size_bytes,after,think_ms\nindex.html,3000,,2.5\na b.png,70,index.html,\n"
    (tmp_path / "page.csv").write_text(table, encoding="utf-8")
    (page,) = plan_of('csv = "page.csv"', tmp_path)
    first, second = page["work"]["objects"]
    assert (first["size_bytes"], first["think_ns"], first["after"]) == (3000, 2_500_000, [])
    assert (second["path"], second["after"]) == ("/a%20b.png", [0])


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ("object,size\na,1\n", "page.csv:1: column 2 is none of object, size_bytes"),
        ("object\na\n", "page.csv:1: there is no column 'size_bytes'"),
        ("object,size_bytes\n", "page.csv:1: there are no rows below the header"),
        ("object,size_bytes\na,-1\n", "page.csv:2: size_bytes: must be a whole number"),
        ("object,size_bytes\na,1\nb,1e3\n", "page.csv:3: size_bytes: must be a whole number"),
        ("object,size_bytes\na,999999999999999999\n", "page.csv:2: size_bytes: must be a whole number"),
        ("object,size_bytes,think_ms\na,1,1_0\n", "page.csv:2: think_ms: must be a number"),
        ('object,size_bytes\n"a,1\n', "page.csv:2: this is no CSV: unexpected end of data"),
        ("object,size_bytes,think_ms\na,1,nan\n", "page.csv:2: think_ms: must be a number"),
        ("object,size_bytes\na\n", "page.csv:2: the row has not as many values as there are columns"),
        ("object,size_bytes\n,5\n", "page.csv:2: the object has no name"),
        ("object,size_bytes,after\na,1,b\nb,1,a\n", "page.csv: objects wait for each other: 1 waits for 2"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, table: str, fault: str) -> None:
    file = tmp_path / "page.csv"
    file.write_text(table, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        pages.of_csv(str(file))
    assert fault in str(caught.value)


def test_a_har_file_with_initiators(tmp_path: Path) -> None:
    frames = {"callFrames": [{"url": "https://x.org/app.js"}]}
    entries = [
        entry("https://x.org/", 5000),
        entry("data:image/png;base64,AA", -1),
        entry("https://x.org/app.js?v=1", -1) | {"response": {"bodySize": -1, "content": {"size": 900}}},
        entry("https://x.org/app.js", 800),
        entry("https://cdn.org/late.png", 70, _initiator={"type": "script", "stack": frames}),
        entry("https://cdn.org/late.png", 70, _initiator={"url": "https://x.org/nowhere"}),
        entry("https://x.org/blocked") | {"response": {"status": 0, "bodySize": -1}},
    ]
    found = pages.of_har(har(tmp_path, entries))
    page, script = "https://x.org/", "https://x.org/app.js"
    assert [(each.name, each.path, each.size, each.after) for each in found] == [
        (page, "/", 5000, ()),
        ("https://x.org/app.js?v=1", "/app.js?v=1", 900, (page,)),
        (script, "/app.js", 800, (page,)),
        ("https://cdn.org/late.png", "/late.png", 70, (script,)),
        ("https://cdn.org/late.png#2", "/late.png", 70, (page,)),
    ]


def test_entries_of_one_path_that_differ_are_told_apart(tmp_path: Path) -> None:
    urls = {
        "https://x.org/": 5000,
        "https://ad.org/": 70,
        "https://log.org/": 80,
        "https://log.org/?q": 5,
        "http://ad.org/?q": 6,
    }
    found = pages.of_har(har(tmp_path, [entry(url, size) for url, size in urls.items()]))
    assert {each.path: each.size for each in found} == {"/": 5000, "/?2": 70, "/?3": 80, "/?q": 5, "/?q&2": 6}


@pytest.mark.parametrize("size", [1.5, True, "12 B", 10**30, [1]])
def test_a_hostile_size_names_its_entry_and_leaves_the_others(tmp_path: Path, size: object) -> None:
    entries = [entry("http://x/"), entry("http://x/a", size), entry("http://x/b")]
    file = har(tmp_path, entries)
    assert [each.name for each in pages.of_har(file)] == ["http://x/", "http://x/b"]
    (fault,) = pages.faults_of_har(file)
    assert "page.har: entry 1: response.bodySize must be a whole number from 0 to " in fault
    assert fault.endswith("; the entry is left out")
    made = Scenario.parse(SCENARIO + 'har = "page.har"', "page.toml", folder=tmp_path)
    assert made.unused == [fault]


@pytest.mark.parametrize("size", [-1, -2, -300, None, "-1"])
@pytest.mark.parametrize(
    ("response", "more", "expected"),
    [
        ({"_transferSize": 700}, {}, 700),
        ({"_transferSize": 700, "headersSize": 200}, {}, 500),
        ({"_transferSize": 700, "headersSize": -1}, {"_bytesIn": 900}, 700),
        ({"_transferSize": -1}, {"_bytesIn": "900"}, 900),
        ({"_transferSize": 0, "content": {"size": 1234}}, {"_bytesIn": 0}, 1234),
        ({"content": {"size": 1234}}, {}, 1234),
        ({"content": {"size": 0}}, {}, 0),
    ],
)
def test_sizes_by_dialect(
    tmp_path: Path, size: object, response: dict[str, Any], more: dict[str, Any], expected: int
) -> None:
    described = entry("http://x/", size, **more)
    described["response"] |= response
    (found,) = pages.of_har(har(tmp_path, [described]))
    assert found.size == expected


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([], "page.har: no entry of the file has a response"),
        ({}, "page.har: this is no HAR file: there is no list log.entries"),
        ([7], "page.har: entry 0: it is no object"),
        ([{"request": {}, "response": {}}], "page.har: entry 0: request.url is no text"),
        ([{"request": {"url": "http://["}, "response": {}}], "page.har: entry 0: request.url is no URL"),
        ([{"request": {"url": "http://x/"}}], "page.har: entry 0: response is no object"),
        (
            [{"request": {"url": "http://x/"}, "response": {}}],
            "page.har: entry 0: neither response.bodySize nor response.content.size says",
        ),
        (
            [
                entry("http://x/"),
                entry("http://x/a", _initiator={"url": "http://x/b"}),
                entry("http://x/b", _initiator={"url": "http://x/a"}),
            ],
            "page.har: objects wait for each other: 2 waits for 3 waits for 2",
        ),
    ],
)
def test_a_har_file_that_is_none_is_refused(tmp_path: Path, entries: object, fault: str) -> None:
    assert fault in fault_of(tmp_path, entries)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"log": []}', "7"])
def test_text_that_is_no_har_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "page.har"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match="this is no HAR file"):
        pages.of_har(str(file))
