"""The page's program: that the package has the current one, and that it works in a browser."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from polypath import cli
from polypath.cli import errors, paired
from polypath.cli.numbers import estimated
from polypath.measures.summary import summary
from polypath.report import Labelled, LabOf, Page, build, html
from polypath.results import Recording, metrics

from .conftest import DATAGRAMS, Ran

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
BUILT = ROOT / "python" / "polypath" / "report" / "page.html"
NAME = "<img src=x onerror=window.hacked=1></script><script>window.hacked=1</script>\n\u2028\x1b"


def call(*arguments: str | Path) -> None:
    with pytest.raises(SystemExit) as ended:
        errors.run(lambda: cli.app([str(each) for each in arguments], prog_name="polypath", standalone_mode=False))
    assert ended.value.code == 0, arguments


def node(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["node", *map(str, arguments)], cwd=WEB, capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_the_package_has_the_current_program(tmp_path: Path) -> None:
    done = node("build.mjs", tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("page.html", "live.html", "playground.html"):
        assert (tmp_path / name).read_bytes() == BUILT.with_name(name).read_bytes(), "web/ has changed: make web"


def test_the_program_s_types_are_sound() -> None:
    done = node(WEB / "node_modules" / "typescript" / "bin" / "tsc", "--noEmit")
    assert done.returncode == 0, done.stdout


def test_the_page_allows_nothing_but_itself() -> None:
    text = BUILT.read_text(encoding="utf-8")
    policy = text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_page_carries_the_notices_of_what_is_in_it() -> None:
    text = BUILT.read_text(encoding="utf-8")
    for name in json.loads((WEB / "package.json").read_text(encoding="utf-8"))["dependencies"]:
        licence = (WEB / "node_modules" / name / "LICENSE").read_text(encoding="utf-8").strip()
        assert licence.startswith("The MIT License")
        assert licence in text


def test_the_lock_file_names_no_registry() -> None:
    packages = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert not [name for name, each in packages.items() if "resolved" in each]


UNESTABLISHED = """
duration = "2 s"
defaults = { profile = "linux", path_manager = "fullmesh" }
host = { client = {}, server = {} }
link.wifi = { ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms" }
link.lte = { ends = ["client", "server"], rate = "10 Mbps", delay = "30 ms" }
[[application]]
name = "bulk"
kind = "bulk"
"""
"""Answers to two of the four subflows come over the other link, and are not for them."""


DIRECTIONS = """
duration = "100 ms"
host = { client = {}, server = {} }
link.wifi = { ends = ["client", "server"], rate = "20 Mbps", delay = "10 ms", loss = "7 %" }
link.dsl = { ends = ["client", "server"], forward.rate = "2 Mbps", backward.rate = "16 Mbps", delay = "30 ms" }
[[application]]
name = "bulk"
kind = "bulk"
"""
"""A percentage that no fraction of two has, and a link with two rates."""


CROWD = """
duration = "200 ms"
host = {{ server = {{}}, {hosts} }}
router.r = {{}}
link = {{ backbone = {{ ends = ["r", "server"] }}, {links} }}
application = [{applications}]
""".format(
    hosts=", ".join(f"h{number} = {{}}" for number in range(9)),
    links=", ".join(f'l{number} = {{ ends = ["h{number}", "r"], rate = "10 Mbps" }}' for number in range(9)),
    applications=", ".join(
        f'{{ name = "a{number}", kind = "bulk", client = "h{number % 9}", server = "server", start = "0 s" }}'
        for number in range(13)
    ),
)


UNANSWERED = """
duration = "2 s"
host = { client = {}, server = {} }
link.wifi = { ends = ["client", "server"], rate = "20 Mbps", delay = "10 ms" }
event = [{ at = "1 s", link = "wifi", up = false }]
[[application]]
name = "asks"
kind = "request-response"
count = 20
interval = "100 ms"
request = "200 B"
response = "20 kB"
"""


BESIDE = """
duration = "3 s"
bridging = {}
switch.s = {}
host = { a = {}, b = {} }
link.a = { ends = ["a", "s"], rate = "10 Mbps", delay = "1 ms" }
link.b = { ends = ["s", "b"], rate = "10 Mbps", delay = "1 ms" }
application = [
    { name = "small", kind = "bulk", transport = "tcp", client = "a", server = "b", size = "10 kB", group = "files" },
    { name = "large", kind = "bulk", transport = "tcp", client = "a", server = "b", size = "9 MB", group = "files" },
]
"""
"""Flows that count together, one of them unfinished, over a bridge."""


FAILING = """
name = "failing"
duration = "5 s"
defaults = { profile = "mptcp.org", path_manager = "fullmesh" }
host = { client = {}, server = {} }
router.r = {}
link.wifi = { ends = ["client:wlan0", "r"], rate = "20 Mbps", delay = "10 ms" }
link.lte = { ends = ["client:lte0", "r"], rate = "10 Mbps", delay = "30 ms" }
link.backbone = { ends = ["r", "server"] }
[[application]]
name = "bulk"
kind = "bulk"
[[event]]
at = "1 s"
link = "wifi"
up = false
"""
"""What waits behind bytes that Wi-Fi lost is delivered at once: a rate that no link has."""


def test_in_a_browser(tmp_path: Path, ran: Ran) -> None:
    results = tmp_path / "results"
    call("run", "aggregation", "--out", results, "--plot", "--run", "tcp", "--run", "mptcp", "--run", "window-100kB")
    call("report", results, "--out", tmp_path / "aggregation.html")
    compared = tmp_path / "compared"
    call("compare", "multipath-quic", "--run", "rtt", "--by", "link.path1.delay=10 ms,50 ms", "--seeds", "3",
         "--set", "link.path0.loss=1 %", "--set", "duration=4 s", "--out", compared, "--jobs", "1")  # fmt: skip
    call("report", compared, "--out", tmp_path / "sweep.html")
    failing = tmp_path / "failing.toml"
    failing.write_text(FAILING, encoding="utf-8")
    for name, scheduler in (("one", "default"), ("two", "redundant")):
        call("run", failing, "--set", f"defaults.scheduler={scheduler}", "--out", tmp_path / "failing" / name)
    call("report", tmp_path / "failing" / "one", tmp_path / "failing" / "two", "--out", tmp_path / "failing.html")
    call("run", failing, "--out", tmp_path / "captured", "--pcap", "hosts")
    call("trace", *sorted((tmp_path / "captured" / "capture").glob("*.pcapng")), "--out", tmp_path / "traced")
    call("report", tmp_path / "captured", tmp_path / "traced", "--out", tmp_path / "captured.html")
    call("report", "backup", "--run", "backup", "--out", tmp_path / "requests.html")
    call("compare", "backup", "--run", "backup", "--by", "defaults.scheduler=default,redundant", "--seeds", "2",
         "--set", "duration=4 s", "--out", tmp_path / "unfinished")  # fmt: skip
    call("report", tmp_path / "unfinished", "--out", tmp_path / "unfinished.html")
    for name, text in (("unestablished", UNESTABLISHED), ("directions", DIRECTIONS), ("unanswered", UNANSWERED),
                       ("datagrams", DATAGRAMS), ("beside", BESIDE)):  # fmt: skip
        scenario = tmp_path / f"{name}.toml"
        scenario.write_text(text, encoding="utf-8")
        call("report", scenario, "--out", tmp_path / f"{name}.html")
    crowd = tmp_path / "crowd.toml"
    crowd.write_text(CROWD, encoding="utf-8")
    call("report", crowd, failing, "--out", tmp_path / "crowd.html")
    (tmp_path / "crowded.html").write_text(crowded(ran("aggregation", "mptcp")), encoding="utf-8")
    (tmp_path / "hostile.html").write_text(hostile(ran("aggregation", "mptcp")), encoding="utf-8")
    names = ("tcp", "mptcp", "window-100kB")
    recordings = [Recording.load(results / name) for name in names]
    page = json.loads(data_of(tmp_path / "aggregation.html"))
    expected = {
        "results": [rows(each) for each in recordings],
        "expectations": [
            [each["name"], each["published"], each["bound"], each["measured"], "ok"]
            for each in page["labs"][0]["expectations"]
        ],
        "rate": rate(recordings[1]),
        "hostile": NAME,
        "matrix": matrix(compared / "rtt"),
        "compared": differences(compared / "rtt"),
    }
    assert len(expected["expectations"]) == 3
    (tmp_path / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    files = ("test/format.test.mjs", "test/smooth.test.mjs", "test/page.test.mjs")
    done = node("--test", "--test-reporter=tap", *files, POLYPATH_PAGES=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout


def rate(recording: Recording) -> dict[str, Any]:
    """The end of the run, and the edges of the intervals with the goodput in each."""
    (of,) = metrics.connections(recording)
    ends, mbps = metrics.goodput_series(recording, of)
    return {"end": recording.metadata.end_ns / 1e9, "edges": [of.start_ns / 1e9, *ends], "mbps": mbps}


def matrix(folder: Path) -> list[str]:
    """The figures of the sweep as the terminal rounds them."""
    rows = pl.read_parquet(folder / "statistics.parquet").filter(measure="completion_s").iter_rows(named=True)
    return [estimated(row["mean"], row["low"], row["high"]) for row in rows]


def differences(folder: Path) -> list[list[str]]:
    """The differences within seeds as the terminal prints them."""
    rows = pl.read_parquet(folder / "paired.parquet").filter(measure="completion_s").iter_rows(named=True)
    return [[row["link.path1.delay"], *paired.told(row).values()] for row in rows]


def data_of(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script")[0]


def rows(recording: Recording) -> list[list[str]]:
    """The table as the terminal has it, from the summary."""
    found = []
    of = summary(recording)["connections"]
    for connection in of:
        time = f"{connection['completion_s']:.3f} s"
        found.append(
            [connection["name"], connection["transport"], f"{connection['goodput_mbps']:.2f}", "", "", "", "", time]
        )
        for each in connection["subflows"]:
            found.append(
                [
                    f"{each['source']} → {each['destination']}",
                    each["interface"],
                    f"{each['goodput_mbps']:.2f}",
                    f"{each['share']:.1%}",
                    f"{each['srtt_ms']['mean']:.1f}",
                    f"{each['resent']:.2%}",
                    f"{each['reinjected_bytes']} B",
                    "",
                ]
            )
    assert len(of) == len(metrics.connections(recording))
    return found


def crowded(recording: Recording) -> str:
    """A page with more than it lists."""
    page = build(Page("crowded", "0", [Labelled("crowded", recording)]))
    (run,) = page["runs"]
    run["summary"]["links"] = run["summary"]["links"][:1] * 401
    (connection,) = run["connections"]
    connection["causes"] = connection["causes"][:1] * 9
    connection["notes"] = ["something"] * 41
    return html(page)


def hostile(recording: Recording) -> str:
    """A page on which every text that a person gives is hostile."""
    plan: Any = json.loads(json.dumps(recording.plan))
    for kind in ("nodes", "links", "applications"):
        for each in plan[kind]:
            each["name"] = NAME
    tables = {name: table.with_columns(pl.col(pl.String)) for name, table in recording.tables.items()}
    tables["connection_ends"] = tables["connection_ends"].with_columns(name=pl.lit(NAME))
    tables["link_ends"] = tables["link_ends"].with_columns(name=pl.lit(NAME))
    tables["subflow_ends"] = tables["subflow_ends"].with_columns(interface=pl.lit(NAME), source=pl.lit(NAME))
    tables["events"] = tables["events"].with_columns(kind=pl.lit(NAME), host=pl.lit(NAME), detail=pl.lit(NAME))
    made = replace(recording.metadata, scenario=NAME, engine=NAME, versions={NAME: NAME})
    run = Labelled(NAME, Recording(tables, plan, made), lab=NAME)
    return html(build(Page(NAME, NAME, [run], [LabOf(NAME, NAME, NAME, NAME, [], NAME)])))
