"""Figures of one run in all the places where they stand."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import polypath
from polypath import Recording, report
from polypath.cli import app, console
from polypath.formats import EXPORTERS, iperf3
from polypath.measures.summary import to_json
from polypath.results import account, metrics

from .case import Case
from .compare import same_rows, same_tables
from .relation import Broken, need, relation, require


@relation(
    "A result that is saved and loaded has the same tables, plan and summary.",
    "The folder holds the Recording.",
)
def stored(case: Case, random: Random) -> None:
    folder = case.folder()
    case.detailed.save(folder)
    loaded = Recording.load(folder)
    same_tables(case.detailed.tables, loaded.tables)
    require(loaded.plan == case.detailed.plan and loaded.metadata == case.detailed.metadata, "plan or manifest differ")
    require(to_json(polypath.summary(loaded)) == to_json(polypath.summary(case.detailed)), "the summary differs")


@relation(
    "The page's figures equal those of summary.json.",
    "The same functions compute both from the Recording.",
)
def page(case: Case, random: Random) -> None:
    made = report.build(report.Page("drawn", "0", [report.Labelled("drawn", case.recording)]))
    figures = json.loads(json.dumps(made["runs"][0]["summary"]))
    wanted = json.loads(to_json(polypath.summary(case.recording)))
    for connection in wanted["connections"]:
        del connection["goodput_series"], connection["requests"]["delay_s"]
    require(figures == wanted, "its summary differs")
    events = case.recording.table("events")
    require(made["runs"][0]["events_of"] == events.height, "it counts other events")


@relation(
    "`polypath run --json` prints the content of `summary.json`, and both equal the run's summary in memory.",
    "A Recording has one summary.",
    weight=0.4,
)
def printed(case: Case, random: Random) -> None:
    need("name" in case.data)
    folder = case.folder()
    file = folder / "drawn.toml"
    file.write_text(case.text, encoding="utf-8")
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console.out, "verbatim", out.write)
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            app(["run", str(file), "--json", "--out", str(folder / "out")], standalone_mode=False)
    asked = polypath.run(case.plan, account=account.is_read(case.plan.view))
    text = to_json(polypath.summary(asked))
    require(out.getvalue() == text, "what is printed differs")
    (stored_at,) = (folder / "out").rglob("summary.json")
    require(stored_at.read_text(encoding="utf-8") == text, "summary.json differs")
    require(
        (stored_at.parent / "plan.json").read_text(encoding="utf-8").strip() == case.plan.json(), "plan.json differs"
    )


def _exported(form: str, case: Case) -> Path:
    out = case.folder() / "out"
    if EXPORTERS[form].folder:
        out.mkdir()
    EXPORTERS[form].write(case.detailed, case.folder(), out, None)
    return out


@relation(
    "The CSV files of an export read back as the tables.",
    "They are the tables as text.",
)
def csv_files(case: Case, random: Random) -> None:
    out = _exported("csv", case)
    files = {file.stem: file for file in out.iterdir()}
    require(files.keys() >= case.detailed.tables.keys(), f"of tables there are only {sorted(files)}")
    for name, table in case.detailed.tables.items():
        read = pl.read_csv(files[name], schema=dict(table.schema))
        text = [column for column, kind in table.schema.items() if kind == pl.String]
        one, other = (each.with_columns(pl.col(column).fill_null("") for column in text) for each in (table, read))
        same_rows(one, other, name)


@relation(
    "xplot's graphs have a line for each data segment, at its place and time.",
    "A graph draws the table of segments.",
)
def xplot_graphs(case: Case, random: Random) -> None:
    segments = case.detailed.table("segments").filter(pl.col("payload_bytes") > 0)
    need(segments.height > 0)
    out = _exported("xplot", case)
    for (connection, side), rows in segments.group_by("connection", "side"):
        graph = out / f"connection{connection}_{side}_dsn.xpl"
        known = rows.filter(pl.col("dsn").is_not_null())
        if not known.height:
            require(not graph.exists(), f"{graph.name} is of no segment")
            continue
        lines = re.findall(r"^line (\S+) (\d+) \1 (\d+)$", graph.read_text(encoding="utf-8"), re.MULTILINE)
        ordered = known.sort("time_ns", maintain_order=True)
        wanted = [
            (f"{time // 10**9}.{time % 10**9 // 1000:06}", str(low), str(low + size))
            for time, low, size in ordered.select("time_ns", "dsn", "payload_bytes").iter_rows()
        ]
        require(lines == wanted, f"{graph.name} has {len(lines)} lines for {len(wanted)} segments, or at other places")


@relation(
    "In iperf3's form intervals and streams add up to the sums, and no more is received than was sent.",
    "A byte is received in one interval of one stream, after it was sent.",
)
def iperf3_sums(case: Case, random: Random) -> None:
    known = [
        each
        for each in metrics.connections(case.recording)
        if each.id is not None and case.plan.view["applications"][each.application]["work"]["kind"] in iperf3.KINDS
    ]
    need(bool(known))
    name = random.choice(known).name
    try:
        found = iperf3.document(case.recording, name)
    except iperf3.ShapeError as error:
        raise Broken(f"no form of {name}: {error}") from error
    end = found["end"]
    intervals = sum(each["sum"]["bytes"] for each in found["intervals"])
    require(intervals == end["sum_received"]["bytes"], f"intervals have {intervals}, the sum {end['sum_received']}")
    for which, total in (("receiver", "sum_received"), ("sender", "sum_sent")):
        parts = [stream[which].get("bytes") for stream in end["streams"]]
        if None not in parts:
            require(sum(parts) == end[total]["bytes"], f"{total} is {end[total]['bytes']}, of streams {parts}")
    for each in found["intervals"]:
        total = sum(stream["bytes"] for stream in each["streams"])
        require(total == each["sum"]["bytes"], f"an interval's sum is {each['sum']['bytes']}, of streams {total}")
    (connection,) = [each for each in known if each.name == name]
    require(end["sum_received"]["bytes"] == connection.bytes, "the bytes are not the connection's")
    if "bytes" in end["sum_sent"]:
        sent, received = end["sum_sent"]["bytes"], end["sum_received"]["bytes"]
        require(sent >= received, f"sent {sent}, received {received}")


def shares(figures: dict[str, Any]) -> list[float]:
    """The shares of a connection's subflows; none if its bytes are not counted by path."""
    told = [each["share"] for each in figures["subflows"]]
    known = [share for share in told if share is not None]
    require(len(known) in (0, len(told)), f"{figures['name']} has some shares alone")
    return known


@relation(
    "Shares of subflows add up to one, or are all zero or unknown. A summary's rates are its bytes over its times.",
    "Each byte that arrived did so on one subflow.",
)
def shares_and_rates(case: Case, random: Random) -> None:
    for each in polypath.summary(case.recording)["connections"]:
        parts = shares(each)
        total = sum(parts)
        require(total == 0 or abs(total - 1) <= 1e-6 * len(parts), f"shares of {each['name']} make {total}")
        passed = each["end_s"] - each["start_s"]
        rate = each["goodput_mbps"]
        if rate is not None and passed > 0:
            require(
                abs(rate - each["bytes"] * 8 / passed / 1e6) <= 1e-6 + rate * 1e-9,
                f"{each['name']}: {rate} Mbps of {each['bytes']} bytes in {passed} s",
            )
