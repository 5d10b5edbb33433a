"""Exports of tables: CSV, and graphs for xplot."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.conftest import sack_blocks

from polypath.cli.errors import InputError
from polypath.cli.export import export
from polypath.results import OutputError, Recording


def test_graphs_have_data_copies_and_acknowledgements(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "run")
    export("xplot", tmp_path / "run", tmp_path / "graphs")
    names = {path.name for path in (tmp_path / "graphs").iterdir()}
    assert names == {"connection0_subflow0_client_tsg.xpl", "connection0_subflow1_client_tsg.xpl",
                     "connection0_client_dsn.xpl"}  # fmt: skip
    lines = (tmp_path / "graphs" / "connection0_subflow0_client_tsg.xpl").read_text().splitlines()
    assert lines[:3] == ["timeval unsigned", "title", "handmade: iperf, client ==> server, subflow 0"]
    assert lines[7:11] == ["white", "darrow 1.050000 0", "uarrow 1.050000 1400", "line 1.050000 0 1.050000 1400"]
    assert lines[11:17] == [
        "magenta",
        "darrow 1.200000 1400",
        "uarrow 1.200000 2800",
        "line 1.200000 1400 1.200000 2800",
        "atext 1.200000 2800",
        "I",
    ]
    assert lines[-1] == "go"
    numbers = (tmp_path / "graphs" / "connection0_client_dsn.xpl").read_text().splitlines()
    assert [line for line in numbers if line.startswith("uarrow")] == [
        "uarrow 1.050000 1400",
        "uarrow 1.090000 2800",
        "uarrow 1.200000 2800",
    ]
    assert "blue" in numbers


def test_acknowledgements_are_a_staircase_with_ticks(
    recording: Recording, tmp_path: Path, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    rows = recording.table("segments")
    ack = rows.row(3)
    later = [(ack[0] + 1_000_000, *ack[1:]), (ack[0] + 2_000_000, *ack[1:5], 2800, *ack[6:])]
    made = changed("segments", pl.concat([rows, pl.DataFrame(later, schema=rows.schema, orient="row")]))
    made.save(tmp_path / "run")
    export("xplot", tmp_path / "run", tmp_path / "graphs")
    text = (tmp_path / "graphs" / "connection0_subflow0_client_tsg.xpl").read_text()
    assert "green\nline 1.250000 1400 1.251000 1400\ndtick 1.251000 1400\n" in text
    assert "green\nline 1.251000 1400 1.252000 1400\nline 1.252000 1400 1.252000 2800\n" in text


def test_sack_blocks_are_lines_with_a_letter(
    recording: Recording, tmp_path: Path, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    changed("sack_blocks", sack_blocks()).save(tmp_path / "run")
    export("xplot", tmp_path / "run", tmp_path / "graphs")
    text = (tmp_path / "graphs" / "connection0_subflow0_client_tsg.xpl").read_text()
    assert "purple\nline 1.250000 1 1.250000 701\natext 1.250000 701\nD\n" in text
    assert "purple\nline 1.250000 2101 1.250000 2801\natext 1.250000 2801\nS\n" in text
    assert "purple" not in (tmp_path / "graphs" / "connection0_subflow1_client_tsg.xpl").read_text()


def test_packet_numbers_are_no_places_in_a_subflow(
    recording: Recording, tmp_path: Path, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    ends = recording.table("connection_ends").with_columns(transport=pl.lit("mpquic"))
    changed("connection_ends", ends).save(tmp_path / "run")
    export("xplot", tmp_path / "run", tmp_path / "graphs")
    assert {path.name for path in (tmp_path / "graphs").iterdir()} == {"connection0_client_dsn.xpl"}


def test_a_run_without_segments_is_refused(
    recording: Recording, tmp_path: Path, changed: Callable[[str, pl.DataFrame], Recording]
) -> None:
    changed("segments", recording.table("segments").clear()).save(tmp_path / "run")
    with pytest.raises(OutputError, match="has no segments; the run needs `--plot`"):
        export("xplot", tmp_path / "run", tmp_path / "graphs")
    assert not (tmp_path / "graphs").exists()


def test_csv_has_every_table(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "run")
    export("csv", tmp_path / "run", tmp_path / "tables")
    assert {path.stem for path in (tmp_path / "tables").iterdir()} == set(recording.tables)
    assert pl.read_csv(tmp_path / "tables" / "requests.csv").height == recording.table("requests").height


def test_an_unknown_format_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is csv, iperf3, netanim, qvis, xplot"):
        export("excel", tmp_path, tmp_path / "out")
