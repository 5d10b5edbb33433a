"""polypath compare --by, on the simulator and on an engine that hands out Recordings made by hand."""

from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Polypath, StandIn

from polypath import registry
from polypath.cli import paired
from polypath.results.axes import Axis
from polypath.statistics.paired import over_pairs
from polypath.statistics.points import table

LOSSY = """
name = "lossy"
duration = "2 s"

[host.client]
[host.server]

[link.wifi]
ends = ["client:wlan0", "server"]
rate = "8 Mbps"
delay = "10 ms"
loss = "1 %"

[link.lte]
ends = ["client:wwan0", "server"]
rate = "4 Mbps"
delay = "30 ms"
loss = "1 %"

[[application]]
name = "download"
kind = "bulk"
reverse = true
"""


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    path = tmp_path / "lossy.toml"
    path.write_text(LOSSY)
    return path


def test_values_are_compared_within_seeds(lossy: Path, polypath: Polypath, tmp_path: Path) -> None:
    out = tmp_path / "results"
    done = polypath("compare", lossy, "--by", "link.wifi.rate=8 Mbps,2 Mbps", "--seeds", "6", "--out", out)
    assert done.code == 0, done.err
    assert "link.wifi.rate, each against 8 Mbps, paired by seed" in done.out
    assert "download: goodput, Mbps" in done.out
    assert "sign-flip permutation test, corrected for 1 comparison (Holm)" in " ".join(done.out.split())
    found = pl.read_parquet(out / "paired.parquet")
    base, slow = found.iter_rows(named=True)
    assert (base["link.wifi.rate"], base["difference"], slow["pairs"]) == ("8 Mbps", None, 6)
    assert slow["p"] == slow["p_holm"] == 2 / 64
    assert slow["verdict"] == "lower"
    points = pl.read_parquet(out / "points.parquet")
    means = points.group_by("link.wifi.rate", maintain_order=True).agg(pl.col("goodput_mbps").mean())
    fast_mean, slow_mean = means["goodput_mbps"]
    assert slow["difference"] == pytest.approx(slow_mean - fast_mean)
    assert slow["low"] < slow["difference"] < slow["high"] < 0
    again = polypath("compare", lossy, "--by", "link.wifi.rate=8 Mbps,2 Mbps", "--seeds", "6", "--out", out)
    assert again.out == done.out


def test_the_base_can_be_chosen_and_the_scenario_names_the_values(lossy: Path, polypath: Polypath) -> None:
    lossy.write_text(LOSSY + '\n[vary]\n"link.wifi.loss" = ["1 %", "2 %"]\nseed = [4, 5]\n')
    done = polypath("compare", lossy, "--by", "link.wifi.loss", "--base", "2 %")
    assert "each against 2 %" in done.out
    assert "2 pairs can show no difference among 1 comparisons" in done.err
    assert "--seeds 6 or more" in done.err


SHORT = ("--set", "duration=200 ms", "--set", "link.wifi.loss=0 %", "--set", "link.lte.loss=0 %")


def test_every_scheduler_is_compared_where_none_is_named(lossy: Path, polypath: Polypath) -> None:
    done = polypath("compare", lossy, "--by", "defaults.scheduler", "--seeds", "1", *SHORT)
    assert done.code == 0
    names = [line.split()[0] for line in done.out.splitlines() if line.strip()]
    assert set(registry.entries("scheduler")) <= set(names)


def test_a_measure_that_no_connection_has_is_said(lossy: Path, polypath: Polypath) -> None:
    by = ("--by", "defaults.scheduler=default,roundrobin", "--seeds", "1")
    done = polypath("compare", lossy, *by, "--measure", "goodput", "--measure", "page_load", *SHORT)
    assert "download: goodput, Mbps" in done.out
    assert "lossy: no connection has a figure page_load" in " ".join(done.err.split())


def test_where_no_seed_changes_anything_nothing_is_tested(lossy: Path, polypath: Polypath) -> None:
    done = polypath("compare", lossy, "--by", "defaults.scheduler=default,roundrobin", "--seeds", "3", *SHORT)
    assert "deterministic: 3 runs agree" in done.out
    assert "±" not in done.out
    assert "(Holm)" not in done.out
    assert "the 3 seeds change nothing" in done.err
    assert "start_jitter" in done.err


def test_nor_where_no_run_of_a_value_finishes(lossy: Path, polypath: Polypath) -> None:
    lossy.write_text(LOSSY + 'size = "20 kB"\n')
    done = polypath("compare", lossy, "--by", "link.wifi.rate=8 Mbps,100 kbps", "--seeds", "6", *SHORT)
    (row,) = (line.split() for line in done.out.splitlines() if line.startswith("100 kbps"))
    assert " ".join(row[2:]) == "0 of 6 done +∞ deterministic: 6 runs agree"
    assert "(Holm)" not in done.out
    assert "the 6 seeds change nothing" in done.err


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("page.toml", {"load time of the page, s", "time to the first object, s"}),
        (
            "video.toml",
            {
                "mean rate of the video shown, Mbps",
                "time to the first picture, s",
                "time that the picture stood still, s",
            },
        ),
    ],
)
def test_pages_and_videos_are_compared_by_what_is_seen_of_them(polypath: Polypath, file: str, told: set[str]) -> None:
    scenario = Path(__file__).parents[1] / "linux" / file
    done = polypath("compare", scenario, "--by", "defaults.congestion=reno,cubic", "--seeds", "1")
    headings = " ".join(done.out.split())
    assert all(f": {heading}" in headings for heading in told)
    assert "goodput" not in headings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "defaults.schedule"), "--by defaults.schedule: the scenario does not vary it; name the values"),
        (("--by", "defaults.scheduler=default"), "one value is nothing to compare"),
        (("--by", "defaults.scheduler=default,roundrobin", "--base", "rounrobin"), "did you mean 'roundrobin'?"),
        (
            ("--by", "link.path0.rate=1 Mbps,2 Mbps", "--set", "link.path0.rate=3 Mbps"),
            "--set fixes link.path0.rate, and the command varies it; take one of both",
        ),
        (("--by", "seed=1,2"), "--by seed: seeds make the pairs; name a setting whose values are compared"),
        (("--by", "defaults.scheduler", "--measure", "goodpt"), "did you mean 'goodput'?"),
        (("--by", "defaults.scheduler", "--seed", "4"), "give their number, --seeds 10"),
        (("--by", "defaults.scheduler", "--engines", "sim,linux"), "one engine"),
        (("--seeds", "4"), "--seeds goes with --by"),
        (("--measure", "goodput"), "--measure goes with --by"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    engine: StandIn, scenario: Path, polypath: Polypath, arguments: tuple[str, ...], message: str
) -> None:
    done = polypath("compare", scenario, *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not engine.plans


@pytest.mark.parametrize(("name", "by"), [("base", "base"), ("p", "defaults.scheduler=default,roundrobin")])
def test_an_axis_is_not_named_as_a_column_of_the_comparison(
    engine: StandIn, lossy: Path, polypath: Polypath, name: str, by: str
) -> None:
    lossy.write_text(f'{LOSSY}\n[vary.{name}]\nlow = {{}}\nhigh = {{ "link.wifi.loss" = "2 %" }}\n')
    done = polypath("compare", lossy, "--by", by)
    assert done.code == 2
    told = f"axis '{name}' has the name of a column of the comparison; give it another one"
    assert done.err == f"polypath: {told}\n"
    assert not engine.plans


def test_pairs_that_a_failed_run_leaves_out_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    axes = [Axis("queue", ("red", "fifo", "codel")), Axis("seed", ("1", "2", "3"), (1.0, 2.0, 3.0))]
    ran = [(queue, seed) for queue in ("red", "fifo") for seed in axes[1].labels if (queue, seed) != ("fifo", "2")]
    rows = [
        (
            {"queue": queue, "seed": seed},
            [{"connection": "get", "goodput_mbps": len(queue) + float(seed) ** len(queue)}],
        )
        for queue, seed in ran
    ]
    found = over_pairs(table(axes, rows), axes, "queue", "red", {"get": ["goodput_mbps"]})
    paired._show("lab", "queue", "red", found, axes[0].labels, seeds=3)
    shown = capsys.readouterr().out
    lines = [line.split() for line in shown.splitlines()]
    assert ["queue", "pairs", "figure", "difference", "p"] in lines
    assert [line[:2] for line in lines if line[:1] in (["red"], ["fifo"])] == [["red", "3"], ["fifo", "2"]]
    assert ["codel", "0", "no", "figure"] in lines
    assert "pairs: of 3 seeds those of which both runs are there and have the figure" in shown
    paired._tell_of_too_few_pairs(found, seeds=3)
    assert (
        "2 pairs can show no difference among 1 comparisons, whatever the figures; take --seeds 7 or more"
        in " ".join(capsys.readouterr().err.split())
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0009, "< 0.001"), (0.0498, "0.0498"), (0.04996, "0.04996"), (0.05, "0.05"), (0.0504, "0.05"), (1.0, "1")],
)
def test_a_p_value_is_told_on_its_side_of_the_level(value: float, text: str) -> None:
    assert paired._p(value) == text


def test_a_base_without_results_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    axes = [Axis("queue", ("red", "fifo")), Axis("seed", ("1",), (1.0,))]
    rows = [({"queue": "fifo", "seed": "1"}, [{"connection": "get", "goodput_mbps": 1.0}])]
    found = over_pairs(table(axes, rows), axes, "queue", "red", {"get": ["goodput_mbps"]})
    paired._show("lab", "queue", "red", found, axes[0].labels, seeds=1)
    assert "nothing to compare with: no run of red has a figure" in capsys.readouterr().out
