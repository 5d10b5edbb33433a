from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from polypath.plots import REGISTRY, save, save_all
from polypath.plots.base import colour, style
from polypath.results import Recording


def numbers(data: object) -> Any:
    return np.asarray(data).tolist()


def drawn(name: str, recording: Recording) -> Figure:
    figure = REGISTRY[name].draw(recording)
    assert figure is not None
    return figure


@pytest.mark.parametrize("name", REGISTRY)
def test_every_plot_has_labelled_axes_and_the_title(name: str, recording: Recording) -> None:
    figure = drawn(name, recording)
    assert figure.get_suptitle() == "handmade"
    for axes in figure.axes:
        if axes.axison:
            assert axes.get_ylabel()
    assert figure.axes[-1].get_xlabel() or name == "topology"


@pytest.mark.parametrize("name", REGISTRY)
def test_nothing_to_show_gives_no_figure(name: str, recording: Recording) -> None:
    assert REGISTRY[name].draw(Recording({}, {"applications": []}, recording.metadata)) is None


def test_rate_stacks_to_what_arrived(recording: Recording) -> None:
    iperf = drawn("rate", recording).axes[0]
    top = max(point[1] for area in iperf.collections for point in numbers(area.get_paths()[0].vertices))
    assert top == pytest.approx(12.0 + 4.0)
    legend = iperf.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "subflow 0 (eth0)",
        "subflow 1 (eth1, backup)",
        "goodput",
    ]


def test_sequence_colours_by_subflow_and_marks_what_is_sent_again(recording: Recording) -> None:
    whole, beginning = drawn("sequence", recording).axes
    first, again = whole.collections
    assert numbers(first.get_offsets()) == [[1.05, 0.0], [1.09, 0.0014]]
    assert [to_hex(tint) for tint in numbers(first.get_facecolor())] == [colour(0).lower(), colour(1).lower()]
    assert numbers(again.get_offsets()) == [pytest.approx([1.2, 0.0014])]
    assert [numbers(each.get_offsets()) for each in beginning.collections] == [[[1.05, 0.0]]]
    legend = beginning.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "subflow 0 (eth0)",
        "subflow 1 (eth1, backup)",
        "subflow 0 (eth0), reinjection",
    ]


def test_window_leaves_out_rtt_before_the_first_measurement(recording: Recording) -> None:
    windows, delays = drawn("window", recording).axes
    assert numbers(windows.lines[0].get_xdata()) == [1.0, 2.0, 3.0]
    assert numbers(delays.lines[0].get_ydata()) == [40.0, 60.0]


def test_delays_in_the_order_of_sending_and_the_unanswered_marked(recording: Recording) -> None:
    over_time, distribution = drawn("delays", recording).axes
    assert numbers(over_time.lines[0].get_ydata()) == [55.0, 45.0]
    assert numbers(over_time.collections[0].get_offsets()) == [[2.0, 0.0]]
    assert distribution.get_xlabel() == "delay (ms)"


def test_waits_stack_by_cause_and_say_where_what_was_missing_came(recording: Recording) -> None:
    over_time, causes = drawn("waits", recording).axes
    assert over_time.get_ylabel() == "waiting (kB)"
    rows = [text.get_text() for text in causes.get_yticklabels()]
    assert rows == [
        "within subflow 0 (eth0)",
        "between subflows, came on subflow 0 (eth0)",
        "between subflows, came on subflow 1 (eth1, backup)",
        "between subflows, nothing came",
    ]
    legend = causes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["late", "retransmitted", "missing"]
    widths = {str(bars.get_label()): [bar.get_width() for bar in bars] for bars in causes.containers}
    assert widths == {
        "late": pytest.approx([0, 0, 0.4, 0]),
        "retransmitted": pytest.approx([0.2, 0.1, 0, 0]),
        "missing": pytest.approx([0, 0, 0, 0.05]),
    }


def test_topology_names_nodes_and_links(recording: Recording) -> None:
    (axes,) = drawn("topology", recording).axes
    texts = {text.get_text() for text in axes.texts}
    assert {"client", "router", "server", "path0\n20 Mbps, 20 ms", "path1\n10 Mbps, 40 ms", "core"} <= texts


ARRANGED = ("rate", "window", "sequence", "waits")


@pytest.mark.parametrize("name", ARRANGED)
def test_everything_lies_within_the_picture(name: str, recording: Recording) -> None:
    large = recording.table("subflows").with_columns(pl.col("cwnd_packets") * 30_000)
    figure = drawn(name, replace(recording, tables={**recording.tables, "subflows": large}))
    width, height = figure.get_size_inches()
    edges = figure.get_tightbbox()
    assert 0 <= edges.x0 <= edges.x1 <= width
    assert 0 <= edges.y0 <= edges.y1 <= height


def test_panels_keep_the_names_of_connections(recording: Recording) -> None:
    with style():
        panels = drawn("window", recording).axes
    assert [axes.get_title(loc="left") for axes in panels] == ["iperf", ""]


@pytest.mark.parametrize("name", ARRANGED)
def test_a_picture_is_drawn_once(
    name: str, recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = Axes.draw
    count = []

    def counted(axes: Axes, *given: Any, **options: Any) -> None:
        count.append(axes)
        draw(axes, *given, **options)

    monkeypatch.setattr(Axes, "draw", counted)
    save(name, recording, tmp_path / "x.png")
    assert len(count) == len(set(count)) > 0


def test_sequence_draws_a_point_for_what_cannot_be_told_apart(recording: Recording) -> None:
    segments = recording.table("segments")
    (first,) = segments.head(1).iter_rows()
    many = pl.DataFrame(
        [(1_050_000_000 + 10 * number, *first[1:4], number, 0, number, 1400, "data") for number in range(20_000)],
        schema=segments.schema,
        orient="row",
    )
    whole, _ = drawn("sequence", replace(recording, tables={**recording.tables, "segments": many})).axes
    (points,) = whole.collections
    assert 1000 < len(numbers(points.get_offsets())) < 3000


def test_an_interrupted_run_says_so(recording: Recording) -> None:
    cut = replace(recording, metadata=replace(recording.metadata, interrupted=True))
    assert drawn("rate", cut).get_suptitle() == "handmade (interrupted)"


def test_files_are_whole_pngs_and_equal_each_time(recording: Recording, tmp_path: Path) -> None:
    paths = save_all(recording, tmp_path)
    assert [path.name for path in paths] == [f"{name}.png" for name in REGISTRY]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths}
    first = paths[0].read_bytes()
    assert first.startswith(b"\x89PNG")
    assert first.endswith(b"IEND\xaeB`\x82")
    save("rate", recording, tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == first


def test_an_unknown_plot(recording: Recording, tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        save("pie", recording, tmp_path / "pie.png")
