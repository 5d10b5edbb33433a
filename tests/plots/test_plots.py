from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection, LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from tests.conftest import sack_blocks
from tests.handmade_plans import as_plan

from polypath import plots
from polypath.plots import REGISTRY, USUAL, Look, save, save_all
from polypath.plots.style import colour, shade, style
from polypath.results import MetricError, OutputError, Recording, UnknownName, metrics, schema

SECOND = 1_000_000_000


def numbers(data: object) -> Any:
    return np.asarray(data).tolist()


def drawn(name: str, recording: Recording) -> Figure:
    figure = plots.figure(recording, name)
    assert figure is not None
    return figure


def legends(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def filled(area: Collection) -> str:
    return to_hex(np.asarray(area.get_facecolor())[0])


def named(axes: Axes) -> list[str]:
    return [str(each) for each in axes.get_legend_handles_labels()[1]]


def with_event(recording: Recording, *times_s: float, up: bool = False) -> Recording:
    """The recording with path0 cut, or up, at these times, as the plan schedules it and the engine enters it."""
    action = {"kind": "link", "link": 0, "direction": "both", "up": up}
    events = [{"at_ns": int(time * SECOND), "action": action} for time in times_s]
    rows = [
        [each["at_ns"], "link-changed", "", None, None, 0, None, "both: down"]
        for each in events
        if int(str(each["at_ns"])) < recording.metadata.end_ns
    ]
    table = pl.DataFrame(rows, schema=dict(schema.TABLES["events"]), orient="row")
    entered = pl.concat([recording.table("events"), table])
    return replace(
        recording, tables={**recording.tables, "events": entered}, plan=as_plan({**recording.plan, "events": events})
    )


def suited(name: str, recording: Recording) -> Recording:
    """The recording, with a video in the place of its transfer for figures of one, or a group for those of groups."""
    if name in ("fct", "slowdown"):
        applications = [{**each, "group": "web"} for each in recording.plan["applications"]]
        return replace(recording, plan=as_plan({**recording.plan, "applications": applications}))
    if name not in ("player", "quality"):
        return recording
    work = {"kind": "video", "segment_ns": SECOND // 2, "segments": None}
    iperf, *others = recording.plan["applications"]
    rows = [[0, n, n * SECOND // 4, n * SECOND // 4 + 1, 0, 10**6, 62_500, 0, n * SECOND] for n in range(2)]
    chunks = pl.DataFrame(rows, schema=dict(schema.TABLES["chunks"]), orient="row")
    plan = as_plan({**recording.plan, "applications": [{**iperf, "work": work}, *others]})
    return replace(recording, tables={**recording.tables, "chunks": chunks}, plan=plan)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_plot_has_labelled_axes_and_the_title(name: str, recording: Recording) -> None:
    figure = drawn(name, suited(name, recording))
    assert figure.get_suptitle() == "handmade"
    for axes in figure.axes:
        if axes.axison:
            assert axes.get_ylabel()
    assert figure.axes[-1].get_xlabel() or name == "topology"


@pytest.mark.parametrize("name", REGISTRY)
def test_every_plot_goes_into_axes_that_are_there(name: str, recording: Recording) -> None:
    axes = Figure().subplots()
    options = {"connection": "iperf"} if name in ("rate", "acks") else {}
    recording = suited(name, recording)
    assert REGISTRY[name].draw(recording, axes, **options) is axes
    own = REGISTRY[name].draw(recording, **options)
    assert own is not axes
    assert own.figure is not axes.figure


@pytest.mark.parametrize("name", REGISTRY)
def test_every_plot_is_documented_with_units(name: str) -> None:
    kind = REGISTRY[name]
    assert getattr(plots, name) is kind.draw
    assert name in plots.__all__
    text = kind.draw.__doc__ or ""
    assert "(s)" in text or "(ms)" in text or name in ("beginning", "slowdown", "topology")


def test_a_distribution_of_which_nothing_was_answered_is_in_the_legend(recording: Recording) -> None:
    requests = recording.table("requests").with_columns(delay_ns=pl.lit(None, pl.Int64))
    silent = replace(recording, tables={**recording.tables, "requests": requests})
    axes = plots.cdf(recording, label="default")
    plots.cdf(silent, axes, label="redundant")
    assert axes.get_legend_handles_labels()[1] == ["default", "redundant: none answered"]


@pytest.mark.parametrize("name", REGISTRY)
def test_nothing_to_show_gives_no_figure(name: str, recording: Recording) -> None:
    empty = Recording({}, as_plan({"applications": []}), recording.metadata)
    assert plots.figure(empty, name) is None
    with pytest.raises(MetricError):
        REGISTRY[name].draw(empty)


def test_several_connections_have_to_be_told_apart(recording: Recording) -> None:
    with pytest.raises(MetricError, match="handmade has several connections; name one: iperf, msg"):
        plots.rate(recording)
    for draw in (plots.delays, plots.cdf):
        with pytest.raises(MetricError, match="iperf has nothing that this plot shows"):
            draw(recording, connection="iperf")
    bare = replace(recording, tables={**recording.tables, "segments": recording.table("segments").clear()})
    with pytest.raises(MetricError, match="iperf has nothing that this plot shows"):
        plots.sequence(bare, connection="iperf")
    with pytest.raises(MetricError, match="no connection is named 'x'"):
        plots.rate(recording, connection="x")


def test_rate_stacks_to_what_arrived(recording: Recording) -> None:
    iperf = drawn("rate", recording).axes[0]
    areas = [each for each in iperf.collections if not isinstance(each, LineCollection)]
    top = max(point[1] for area in areas for point in numbers(area.get_paths()[0].vertices))
    assert top == pytest.approx(12.0 + 4.0)
    assert legends(iperf) == ["path0", "path1, backup", "goodput"]


def test_the_axis_has_room_for_copies_that_arrive(recording: Recording) -> None:
    ends = recording.table("connection_ends").with_columns(pl.col("server_received_bytes") // 2)
    samples = recording.table("connections").with_columns(pl.col("delivered_bytes") // 2)
    twice = replace(recording, tables={**recording.tables, "connection_ends": ends, "connections": samples})
    assert plots.rate(twice, connection="iperf").get_ylim()[1] >= 12.0 + 4.0
    assert plots.rate(twice, connection="iperf", label="one").get_ylim()[1] < 12.0


def test_a_rate_is_over_some_round_trips_and_says_so(recording: Recording) -> None:
    quick = plots.rate(recording, connection="iperf")
    assert quick.get_title(loc="right") == "mean over 1 s"
    assert len(numbers(quick.lines[0].get_xdata())) == 3
    slow = recording.table("subflows").with_columns(srtt_us=pl.col("srtt_us") * 10)
    same = plots.rate(replace(recording, tables={**recording.tables, "subflows": slow}), connection="iperf")
    # no connection is a single interval
    assert same.get_title(loc="right") == "mean over 1 s"
    asked = plots.rate(recording, connection="iperf", smooth_s=2)
    assert asked.get_title(loc="right") == "mean over 2 s"
    assert numbers(asked.lines[0].get_ydata()) == [12.0, 12.0]
    # neither less than a sample nor more than all
    assert plots.rate(recording, connection="iperf", smooth_s=0.01).get_title(loc="right") == "mean over 1 s"
    assert plots.rate(recording, connection="iperf", smooth_s=100).get_title(loc="right") == "mean over 2 s"


def test_a_long_run_has_no_more_intervals_than_can_be_seen(recording: Recording) -> None:
    rows = [[SECOND + number * SECOND // 10, 0, "server", number, 0, 0, 0, 0] for number in range(1, 6000)]
    samples = pl.DataFrame(rows, schema=dict(schema.TABLES["connections"]), orient="row")
    ends = recording.table("connection_ends").with_columns(
        last_byte_ns=pl.lit(601 * SECOND), end_ns=pl.lit(601 * SECOND)
    )
    tables = {**recording.tables, "connections": samples, "connection_ends": ends}
    long = replace(recording, tables=tables, metadata=replace(recording.metadata, end_ns=602 * SECOND))
    assert plots.rate(long, connection="iperf").get_title(loc="right").startswith("mean over 2 s")


def burst(recording: Recording) -> Recording:
    """`iperf` sampled each 100 ms for 10 s at 1 MB/s over two subflows; the stream stands for 2 s, then comes."""
    times = [SECOND + number * SECOND // 10 for number in range(1, 100)]
    schemas = {name: dict(schema.TABLES[name]) for name in ("connections", "subflows")}
    whole, parts = [], []
    for number, time in enumerate(times, 1):
        total = number * 100_000
        held = total if not 40 <= number < 60 else 4_000_000
        whole.append([time, 0, "server", held, 0, 0, 0, 0])
        for subflow in (0, 1):
            row = recording.table("subflows").row(0, named=True)
            row |= {
                "time_ns": time,
                "side": "server",
                "subflow": subflow,
                "received_bytes": total // 2,
                "srtt_us": 20_000,
            }
            parts += [list(row.values()), list((row | {"side": "client"}).values())]
    ends = recording.table("connection_ends").with_columns(
        server_received_bytes=pl.when(pl.col("connection") == 0).then(10_000_000).otherwise(1000).cast(pl.UInt64),
        last_byte_ns=pl.when(pl.col("connection") == 0).then(11 * SECOND).otherwise(2 * SECOND),
        end_ns=pl.when(pl.col("connection") == 0).then(11 * SECOND),
    )
    lanes = recording.table("subflow_ends").with_columns(server_received_bytes=pl.lit(5_000_000, pl.UInt64))
    tables = {
        **recording.tables,
        "connections": pl.DataFrame(whole, schema=schemas["connections"], orient="row"),
        "subflows": pl.DataFrame(parts, schema=schemas["subflows"], orient="row"),
        "connection_ends": ends,
        "subflow_ends": lanes,
    }
    return replace(recording, tables=tables, metadata=replace(recording.metadata, end_ns=12 * SECOND))


def test_a_burst_of_reassembled_data_is_cut_off_and_said(recording: Recording) -> None:
    axes = plots.rate(burst(recording), connection="iperf")
    # 2 MB within 100 ms are 160 Mbps, but 8 Mbps arrive
    assert axes.get_ylim()[1] < 12
    assert axes.get_title(loc="right").startswith("mean over 100 ms; ▲ cut off: up to 1")
    (marks,) = [line for line in axes.lines if line.get_gid() == "cut"]
    assert numbers(marks.get_xdata()) == [pytest.approx(6.95)]
    smooth = plots.rate(burst(recording), connection="iperf", smooth_s=10)
    assert "cut off" not in smooth.get_title(loc="right")


def test_what_is_delivered_is_not_cut_off_where_no_subflow_counts_what_arrives(recording: Recording) -> None:
    """As of QUIC's datagrams."""
    none = pl.lit(0, pl.UInt64)
    subflows = recording.table("subflows").with_columns(received_bytes=none)
    ends = recording.table("subflow_ends").with_columns(server_received_bytes=none)
    tables = {**recording.tables, "subflows": subflows, "subflow_ends": ends}
    axes = plots.rate(replace(recording, tables=tables), connection="iperf")
    most = max(numbers(axes.lines[0].get_ydata()))
    assert axes.get_ylim()[1] == pytest.approx(1.05 * most)
    assert not [line for line in axes.lines if line.get_gid() == "cut"]


def test_runs_share_axes_as_a_line_each(recording: Recording) -> None:
    axes = plots.rate(recording, connection="iperf", label="one")
    plots.rate(recording, ax=axes, connection="iperf", label="two")
    assert named(axes) == ["one", "two"]
    assert [line.get_color() for line in axes.lines] == [colour(0), colour(1)]
    assert not axes.collections
    assert axes.get_ylabel() == "goodput (Mbps)"
    figure = plots.figure({"one": recording, "two": recording}, "rate")
    assert figure is not None
    assert legends(figure.axes[0]) == ["one", "two"]


def test_a_name_with_dollars_is_no_formula(recording: Recording, tmp_path: Path) -> None:
    runs = {"$x_{$": recording, "a $1$": recording}
    assert save("rate", runs, tmp_path / "rate.png") is not None
    figure = plots.figure(runs, "rate")
    assert figure is not None
    assert legends(figure.axes[0]) == list(runs)


def test_a_name_that_begins_with_an_underscore_is_in_the_legend(recording: Recording) -> None:
    links = [{**each, "name": f"_{each['name']}"} for each in recording.plan["links"]]
    plan = as_plan({**recording.plan, "links": links})
    axes = plots.window(replace(recording, plan=plan), connection="iperf")
    assert [label.strip() for label in named(axes)] == ["_path0", "_path1, backup"]
    figure = plots.figure({"_old": recording, "new": recording}, "rate")
    assert figure is not None
    assert [label.strip() for label in legends(figure.axes[0])] == ["_old", "new"]


@pytest.mark.parametrize(("name", "column"), [("window", "cwnd_packets"), ("rtt", "srtt_us")])
def test_an_axis_has_room_for_every_run_on_it(name: str, column: str, recording: Recording) -> None:
    more = recording.table("subflows").with_columns(pl.col(column) * 10)
    higher = replace(recording, tables={**recording.tables, "subflows": more})
    axes = Figure().subplots()
    for label, run in (("low", recording), ("high", higher)):
        REGISTRY[name].draw(run, axes, connection="iperf", label=label)
    most = max(value for line in axes.lines for value in numbers(line.get_ydata()) if value == value)
    bottom, top = axes.get_ylim()
    assert bottom == 0
    assert most < top < 1.2 * most


def test_an_axis_keeps_limits_that_a_person_set(recording: Recording) -> None:
    axes = Figure().subplots()
    axes.set_ylim(0, 1000)
    for label in ("one", "two"):
        plots.window(recording, axes, connection="iperf", label=label)
    assert axes.get_ylim() == (0, 1000)


@pytest.mark.parametrize("name", [name for name, kind in REGISTRY.items() if kind.overlays])
def test_several_runs_are_in_the_legend(name: str, recording: Recording) -> None:
    recording = suited(name, recording)
    figure = plots.figure({"before": recording, "after": recording}, name)
    assert figure is not None
    told = [label for axes in figure.axes for label in legends(axes)]
    assert any(label.startswith("before") for label in told)
    assert any(label.startswith("after") for label in told)


@pytest.mark.parametrize("name", [name for name, kind in REGISTRY.items() if not kind.overlays])
def test_what_shows_one_run_refuses_several(name: str, recording: Recording) -> None:
    with pytest.raises(MetricError, match=f"'{name}' shows one run"):
        plots.figure({"before": recording, "after": recording}, name)


OVER_TIME = ("rate", "window", "rtt", "sequence", "beginning", "acks", "waits", "delays")


@pytest.mark.parametrize("name", OVER_TIME)
def test_scheduled_events_are_marked_on_every_time_axis(name: str, recording: Recording) -> None:
    cut = with_event(recording, 1.1, 99.0)
    for axes in drawn(name, cut).axes:
        (lines,) = [each for each in axes.collections if isinstance(each, LineCollection)]
        # that at 99 s is after the run
        assert [numbers(segment)[0][0] for segment in lines.get_segments()] == [pytest.approx(1.1)]
    words = [text.get_text() for axes in drawn(name, cut).axes for text in axes.texts]
    assert "path0: down" in words


def test_events_of_joined_panels_are_named_once(recording: Recording) -> None:
    upper, lower, *_ = drawn("window+rtt", with_event(recording, 1.1)).axes
    assert [text.get_text() for text in upper.texts] == ["path0: down"]
    assert not lower.texts


def test_many_events_are_lines_and_a_number(recording: Recording) -> None:
    axes = plots.window(with_event(recording, *(1 + number / 10 for number in range(9))), connection="iperf")
    assert not axes.texts
    assert axes.get_title(loc="right") == "dashed: 9 changes of links or interfaces"


def test_very_many_events_are_ticks_that_hide_no_curve(recording: Recording) -> None:
    axes = plots.window(with_event(recording, *(1 + number / 50 for number in range(60))), connection="iperf")
    assert axes.get_title(loc="right") == "ticks: 60 changes of links or interfaces"
    (ticks,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    assert all(numbers(segment)[0][1] > 0.9 for segment in ticks.get_segments())


def test_subflows_of_a_path_are_shades_of_its_colour(recording: Recording) -> None:
    ends = recording.table("subflow_ends").filter(connection=0)
    many = pl.concat([ends.head(1).with_columns(subflow=pl.lit(number, pl.UInt32)) for number in range(8)])
    found = plots.rate(replace(recording, tables={**recording.tables, "subflow_ends": many}), connection="iperf")
    assert named(found) == [*(f"path0, subflow {number}" for number in range(8)), "goodput"]
    tints = [filled(area) for area in found.collections]
    assert tints == [shade(colour(0), number, 8) for number in range(8)]
    assert len(set(tints)) == 8
    light = [sum(int(tint[place : place + 2], 16) for place in (1, 3, 5)) for tint in tints]
    assert light == sorted(light)


@pytest.mark.parametrize("name", ["rate", "window"])
def test_subflows_of_a_path_stand_together(name: str, recording: Recording) -> None:
    first, second = recording.table("subflow_ends").filter(connection=0).to_dicts()
    rows = [{**(first, second)[number % 2], "subflow": number} for number in range(4)]
    ends = pl.DataFrame(rows, schema=dict(schema.TABLES["subflow_ends"]))
    samples = recording.table("subflows")
    every = pl.concat([samples, samples.with_columns(subflow=(pl.col("subflow") + 2).cast(pl.UInt32))])
    many = replace(recording, tables={**recording.tables, "subflow_ends": ends, "subflows": every})
    labels = named(REGISTRY[name].draw(many, connection="iperf"))
    assert [label.partition(",")[0] for label in labels[:4]] == ["path0", "path0", "path1", "path1"]


def test_a_legend_of_many_subflows_has_room(recording: Recording) -> None:
    ends = recording.table("subflow_ends").filter(connection=0)
    many = pl.concat([ends.head(1).with_columns(subflow=pl.lit(number, pl.UInt32)) for number in range(30)])
    one = recording.table("connection_ends").filter(connection=0)
    tables = {**recording.tables, "subflow_ends": many, "connection_ends": one}
    for size, shown in ((None, 11), ((3.5, 3.0), 7)):
        figure = plots.figure(replace(recording, tables=tables), "rate", Look(size=size))
        assert figure is not None
        told = legends(figure.axes[0])
        assert (told[0], told[-1]) == ("path0, subflow 0", "goodput")
        assert told[-2] == f"and {30 - (len(told) - 2)} more"
        assert abs(len(told) - shown) <= 1
        edges, height = figure.get_tightbbox(), figure.get_size_inches()[1]
        assert 0 <= edges.y0 <= edges.y1 <= height


def test_a_path_has_one_colour_in_all_panels(recording: Recording) -> None:
    ends = recording.table("subflow_ends").with_columns(
        interface=pl.when(pl.col("connection") == 1).then(pl.lit("eth1")).otherwise(pl.col("interface"))
    )
    iperf, msg = drawn("rate", replace(recording, tables={**recording.tables, "subflow_ends": ends})).axes
    assert filled(msg.collections[0]) == filled(iperf.collections[1])
    assert (msg.get_title(loc="left"), iperf.get_title(loc="left")) == ("msg", "iperf")


def test_sequence_colours_by_path_and_marks_what_is_sent_again(recording: Recording) -> None:
    (whole,) = drawn("sequence", recording).axes
    first, again = whole.collections
    assert numbers(first.get_offsets()) == [[1.05, 0.0], [1.09, 0.0014]]
    assert [to_hex(tint) for tint in numbers(first.get_facecolor())] == [colour(0).lower(), colour(1).lower()]
    assert numbers(again.get_offsets()) == [pytest.approx([1.2, 0.0014])]
    assert legends(whole) == ["delivered in order, sampled", "path0", "path1, backup", "reinjection"]
    line = whole.lines[0]
    assert numbers(line.get_ydata())[-1] == 3.0


def test_the_beginning_is_a_part(recording: Recording) -> None:
    (beginning,) = drawn("beginning", recording).axes
    assert [numbers(each.get_offsets()) for each in beginning.collections] == [[[1.05, 0.0]]]


def test_acks_are_a_line_in_the_numbers_of_the_subflow(recording: Recording) -> None:
    first, second = drawn("acks", recording).axes
    assert numbers(first.lines[0].get_xdata()) == [1.25]
    assert numbers(first.lines[0].get_ydata()) == [pytest.approx(1399e-6)]
    assert legends(first) == ["ACK", "path0", "reinjection"]
    assert first.get_title(loc="right") == "path0"
    assert second.get_title(loc="right") == "path1, backup"


def test_sack_blocks_are_bars_and_duplicates_diamonds(recording: Recording) -> None:
    first, _ = drawn("acks", replace(recording, tables={**recording.tables, "sack_blocks": sack_blocks()})).axes
    bars, duplicate = first.collections[:2]
    assert isinstance(bars, LineCollection)
    assert numbers(duplicate.get_offsets()) == [pytest.approx([1.25, 350e-6])]
    assert [numbers(each) for each in bars.get_segments()] == [
        [pytest.approx([1.25, 2100e-6]), pytest.approx([1.25, 2800e-6])]
    ]
    assert legends(first) == ["SACK", "D-SACK", "ACK", "path0", "reinjection"]


def test_window_leaves_out_rtt_before_the_first_measurement(recording: Recording) -> None:
    windows, delays = drawn("window+rtt", recording).axes
    assert numbers(windows.lines[0].get_xdata()) == [1.0, 2.0, 3.0]
    assert numbers(delays.lines[0].get_ydata()) == [40.0, 60.0]


def test_fast_links_have_numbers_without_powers_of_ten(recording: Recording) -> None:
    links = recording.plan["links"]
    fast = [{**link, "forward": {**link["forward"], "rate_bps": 1_234e6, "trace": {"name": "5g"}}} for link in links]
    axes = plots.topology(replace(recording, plan=as_plan({**recording.plan, "links": fast})))
    assert any("5g (mean 1230 Mbps)" in text.get_text() for text in axes.texts)
    burst = recording.table("connections").with_columns(pl.col("delivered_bytes") * 1000)
    ends = recording.table("connection_ends").with_columns(pl.col("server_received_bytes") * 1000)
    axes = plots.rate(
        replace(recording, tables={**recording.tables, "connections": burst, "connection_ends": ends}),
        connection="iperf",
    )
    assert axes.get_title(loc="right").endswith("cut off: up to 16000 Mbps")


def test_a_video_has_the_style_s_colour(recording: Recording) -> None:
    for name in ("player", "quality"):
        axes = REGISTRY[name].draw(suited(name, recording), connection="iperf")
        assert axes.lines[0].get_color() == colour(0)


def test_a_long_title_stays_within_the_figure(recording: Recording) -> None:
    name = "sweep (defaults.scheduler=roundrobin, link.wifi.rate=100 Mbps, seed=1)"
    figure = drawn("topology", replace(recording, metadata=replace(recording.metadata, scenario=name)))
    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    (title,) = [text for text in figure.texts if text.get_text() == name]
    assert title.get_window_extent().x1 <= figure.bbox.x1


def test_of_many_causes_the_longest_are_drawn(recording: Recording) -> None:
    rows = [[0, "server", "subflow", lane, "late", lane * SECOND, 0.0, 1] for lane in range(40)]
    blocking = pl.DataFrame(rows, schema=dict(schema.TABLES["blocking"]), orient="row")
    axes = plots.causes(replace(recording, tables={**recording.tables, "blocking": blocking}), connection="iperf")
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"within subflow {lane}" for lane in range(24, 40)]
    assert axes.get_title(loc="right") == "the longest 16 of 40"


def test_one_sample_of_a_window_holds_until_the_subflow_ends(recording: Recording) -> None:
    one = recording.table("subflows").filter(pl.col("time_ns") == 2 * SECOND)
    windows, delays = drawn("window+rtt", replace(recording, tables={**recording.tables, "subflows": one})).axes
    assert numbers(windows.lines[0].get_xdata()) == [2.0, 3.0]
    assert numbers(delays.lines[0].get_ydata()) == [40.0, 40.0]


def test_delays_in_the_order_of_sending_and_the_unanswered_marked(recording: Recording) -> None:
    over_time, distribution = drawn("delays+cdf", recording).axes
    assert numbers(over_time.lines[0].get_ydata()) == [55.0, 45.0]
    assert over_time.lines[0].get_linestyle() == "None"
    assert numbers(over_time.collections[0].get_offsets()) == [[2.0, 0.0]]
    assert distribution.get_xlabel() == "delay (ms)"
    # one of three has no answer
    assert numbers(distribution.lines[0].get_ydata()) == [0.0, pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert distribution.get_xscale() == "linear"


def test_a_distribution_with_a_long_tail_is_logarithmic(recording: Recording) -> None:
    rows = [[1, number, number, 40_000_000 if number else 990_000_000] for number in range(20)]
    requests = pl.DataFrame(rows, schema=dict(schema.TABLES["requests"]), orient="row")
    assert plots.cdf(replace(recording, tables={**recording.tables, "requests": requests})).get_xscale() == "log"


def test_waits_stack_by_cause_and_say_where_what_was_missing_came(recording: Recording) -> None:
    over_time, causes = drawn("waits+causes", recording).axes
    assert over_time.get_ylabel() == "waiting (kB)"
    rows = [text.get_text() for text in causes.get_yticklabels()]
    assert rows == [
        "within path0",
        "between subflows, came on path0",
        "between subflows, came on path1, backup",
        "between subflows, nothing came",
    ]
    assert legends(causes) == ["late", "retransmitted", "missing"]
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


def test_topology_stands_alone(recording: Recording) -> None:
    with pytest.raises(MetricError, match="'topology' stands alone"):
        plots.figure(recording, "rate+topology")


ARRANGED = ("rate", "window+rtt", "sequence+beginning", "waits+causes", "delays+cdf", "acks")
LOOKS = (Look(), Look(size=(3.5, 2.6)), Look(size=(3.5, 3.0), titles=False), Look(font_size=14))


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ["rate", "window", "sequence", "cdf", "acks"])
def test_everything_lies_within_the_picture(name: str, look: Look, recording: Recording) -> None:
    large = recording.table("subflows").with_columns(pl.col("cwnd_packets") * 30_000)
    one = recording.table("connection_ends").filter(connection=0) if name != "cdf" else None
    tables = {**recording.tables, "subflows": large, **({} if one is None else {"connection_ends": one})}
    figure = plots.figure(replace(recording, tables=tables), name, look)
    assert figure is not None
    width, height = figure.get_size_inches()
    assert look.size is None or (width, height) == look.size
    with style(look):
        edges = figure.get_tightbbox()
    assert 0 <= edges.x0 <= edges.x1 <= width
    assert 0 <= edges.y0 <= edges.y1 <= height


def test_a_label_is_no_longer_than_its_low_panel(recording: Recording) -> None:
    figure = plots.figure(recording, "acks", Look(size=(7, 3.6)))
    assert figure is not None
    with style(Look(size=(7, 3.6))):
        for axes in figure.axes:
            assert axes.yaxis.label.get_window_extent().height <= axes.get_window_extent().height + 1


def test_panels_keep_the_names_of_connections(recording: Recording) -> None:
    with style():
        panels = drawn("window+rtt", recording).axes
    assert [axes.get_title(loc="left") for axes in panels] == ["iperf", ""]
    assert [axes.get_xlabel() for axes in panels] == ["", "time (s)"]


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
    (whole,) = drawn("sequence", replace(recording, tables={**recording.tables, "segments": many})).axes
    (points,) = whole.collections
    assert 1000 < len(numbers(points.get_offsets())) < 3000


def test_an_interrupted_run_says_so(recording: Recording) -> None:
    cut = replace(recording, metadata=replace(recording.metadata, interrupted=True))
    assert drawn("rate", cut).get_suptitle() == "handmade (interrupted)"


def test_files_are_whole_pngs_and_equal_each_time(recording: Recording, tmp_path: Path) -> None:
    paths = save_all(recording, tmp_path)
    assert [path.name for path in paths] == [
        f"{name.replace('+', '-')}.png" for name in USUAL if name not in ("fct+slowdown", "player+quality")
    ]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths}
    first = paths[0].read_bytes()
    assert first.startswith(b"\x89PNG")
    assert first.endswith(b"IEND\xaeB`\x82")
    save("rate", recording, tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == first


@pytest.mark.parametrize(("form", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF-1."), ("png", b"\x89PNG\r\n")])
@pytest.mark.parametrize("name", ["rate", "sequence", "topology"])
def test_every_format_is_deterministic(
    form: str, start: bytes, name: str, recording: Recording, tmp_path: Path
) -> None:
    both = [save(name, recording, tmp_path / f"{number}.{form}") for number in (1, 2)]
    first, second = (path.read_bytes() for path in both if path is not None)
    assert first == second
    assert first.startswith(start)
    assert b"2026" not in first or form == "png"
    assert b"CreationDate" not in first
    assert b"dc:date" not in first


def test_fonts_of_a_pdf_are_truetype(recording: Recording, tmp_path: Path) -> None:
    path = save("rate", recording, tmp_path / "rate.pdf")
    assert path is not None
    assert b"/Type3" not in path.read_bytes()


def test_size_font_and_title_are_as_asked(recording: Recording) -> None:
    figure = plots.figure(recording, "rate", Look(size=(3.5, 3.4), titles=False))
    assert figure is not None
    assert figure.get_suptitle() == ""
    assert numbers(figure.get_size_inches()) == [3.5, 3.4]
    assert figure.axes[0].yaxis.label.get_fontsize() == 8
    large = plots.figure(recording, "rate", Look(font_size=13))
    assert large is not None
    assert large.axes[0].yaxis.label.get_fontsize() == 13


@pytest.mark.parametrize("look", [{"size": (-1.0, 2.0)}, {"size": (3.0, float("inf"))}, {"font_size": 0.0}])
def test_a_figure_has_a_size(look: Any) -> None:
    with pytest.raises(MetricError, match=r"than 0 (inches|points), not (-1|inf|0)"):
        Look(**look)


def test_a_rate_is_over_some_time(recording: Recording) -> None:
    with pytest.raises(MetricError, match="a rate is taken over more than 0 s, not over -1 s"):
        plots.rate(recording, connection="iperf", smooth_s=-1)


def test_the_suffix_decides_of_a_path_as_text(recording: Recording, tmp_path: Path) -> None:
    plots.write(drawn("rate", recording), str(tmp_path / "rate.pdf"))
    assert (tmp_path / "rate.pdf").read_bytes().startswith(b"%PDF-")


def test_a_style_sheet_decides_and_is_checked(recording: Recording, tmp_path: Path) -> None:
    sheet = tmp_path / "paper.mplstyle"
    sheet.write_text("axes.labelcolor: red\naxes.prop_cycle: cycler('color', ['111111', '222222'])\n")
    figure = plots.figure(recording, "rate", Look(sheet=sheet))
    assert figure is not None
    assert figure.axes[0].yaxis.label.get_color() == "red"
    assert filled(figure.axes[0].collections[1]) == "#222222"
    sheet.write_text("axes.labelcolour: red\n")
    with pytest.raises(OutputError, match=r"paper.mplstyle: unknown key 'axes.labelcolour'; did you mean 'axes.labelc"):
        plots.figure(recording, "rate", Look(sheet=sheet))
    with pytest.raises(OutputError, match=r"style sheet .*none.mplstyle: "):
        plots.figure(recording, "rate", Look(sheet=tmp_path / "none.mplstyle"))


def test_a_style_within_another_leaves_it_as_it_was() -> None:
    default = mpl.rcParams["font.size"], mpl.rcParams["pdf.fonttype"]
    with style():
        outer = mpl.rcParams["font.size"]
        with style(Look(font_size=7)):
            assert mpl.rcParams["font.size"] == 7
            with style(Look(font_size=7)):
                assert mpl.rcParams["font.size"] == 7
        assert mpl.rcParams["font.size"] == outer == 10
        assert mpl.rcParams["pdf.fonttype"] == 42
    assert (mpl.rcParams["font.size"], mpl.rcParams["pdf.fonttype"]) == default


def test_an_unknown_plot(recording: Recording, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown kind of figure 'rat'; did you mean 'rate'"):
        save("rat", recording, tmp_path / "rat.png")
    with pytest.raises(UnknownName, match="unknown format of figures 'gif'; there is png, svg, pdf"):
        save("rate", recording, tmp_path / "rate.gif")


def test_what_was_delivered_is_as_exact_as_the_acks(recording: Recording) -> None:
    """Of Multipath TCP the data ACKs say it, whichever subflow carries them, and a DATA_FIN counts as a byte."""
    (plain,) = drawn("sequence", recording).axes
    assert legends(plain)[0] == "delivered in order, sampled"
    of = metrics.connection(recording, "iperf")
    back = [
        (time, of.id, of.receiver, subflow, 0, 1, None, 0, "ack")
        for time, subflow in ((1_070_000_000, 0), (1_080_000_000, 1), (1_090_000_000, 0))
    ]
    names = list(schema.TABLES["segments"])
    acks = pl.DataFrame(back, schema=dict(schema.TABLES["segments"]), orient="row").select(names)
    segments = pl.concat([recording.table("segments"), acks])
    first = recording.table("segments").height
    empty = schema.empty("headers")
    rows = [
        {"segment": first + number, "data_ack": total, "data_fin": False, "flags": "ACK", "options": ""}
        for number, total in enumerate((1400, 1000, 10**9))
    ]
    headers = pl.concat([empty, pl.DataFrame(rows, schema_overrides=dict(empty.schema))], how="diagonal")
    told = replace(recording, tables={**recording.tables, "segments": segments, "headers": headers})
    (exact,) = drawn("sequence", told).axes
    assert legends(exact)[0] == "delivered in order"
    line = exact.lines[0]
    heights = dict(zip(numbers(line.get_xdata()), numbers(line.get_ydata()), strict=True))
    assert (heights[1.07], heights[1.08]) == (0.0014, 0.0014)
    assert max(heights.values()) == numbers(plain.lines[0].get_ydata())[-1]
