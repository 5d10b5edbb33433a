"""The names of the files in a results folder."""

from __future__ import annotations

from polypath import recorded

MANIFEST = "manifest.json"
PLAN = "plan.json"
SCENARIO = "scenario.toml"
#: The files that the scenario names: algorithms, traces, tables.
INPUTS = "inputs"
SUMMARY = "summary.json"
EVENTS = "events"
SERIES = "series"
CAPTURE = recorded.CAPTURE
#: What `capture` ends names with.
PCAPNG = ".pcapng"
KEY_LOG = f"{CAPTURE}/keys.log"
QLOG = recorded.QLOG
PROGRAMS = "programs"
#: What a program wrote, below its own folder.
PROGRAM_FILES = "files"
PLOTS = "plots"
REPORT = "report.html"
#: Formats of figures, by the suffix of their files.
FIGURES = ("png", "svg", "pdf")
#: Of a folder of figures that `polypath plot --out` wrote.
DRAWN = "figures.json"

#: Of a sweep.
INDEX = "sweep.json"
POINTS = "points.parquet"
STATISTICS = "statistics.parquet"
PAIRED = "paired.parquet"
ACROSS = "networks.parquet"
ALONG = "properties.parquet"
#: What is known of its finished points; not a part of the result.
JOURNAL = "points.jsonl"

#: Of a comparison of engines.
COMPARISON = "comparison.json"
RATES = "rates.png"


def capture(name: str) -> str:
    """The file below CAPTURE with the packets of a host or a link, as crates/lab/src/capture.rs names it, too."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name) + PCAPNG


def table_name(name: str) -> str:
    """A table's file below the folder."""
    return f"{name}.parquet" if name == EVENTS else f"{SERIES}/{name}.parquet"
