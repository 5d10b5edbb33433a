"""Plots and tables of QUIC speak of paths and of the stream, not of subflows and data sequence numbers."""

import pytest
from matplotlib.axes import Axes
from typer.testing import CliRunner

from polypath import plots
from polypath.cli import app
from polypath.engines import get
from polypath.engines.base import Options
from polypath.results import MetricError, Recording
from polypath.results.metrics import connections
from polypath.scenario import Scenario

TEXT = """
name = "quic"
duration = "5 s"
[defaults]
profile = "rfc"
[host.client]
[host.server]
[router.r]
[link.path0]
ends = ["client:eth0", "r"]
rate = "10 Mbps"
delay = "10 ms"
[link.path1]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "10 ms"
[link.server]
ends = ["r", "server"]
[[application]]
name = "app"
transport = "mpquic"
"""
FETCH = 'kind = "fetch"\nsize = "300 kB"'
MESSAGES = 'kind = "messages"\nsize = "200 B"\ninterval = "20 ms"\nduration = "1 s"'


def run(application: str) -> Recording:
    return get("sim").run(Scenario.parse(TEXT + application, "quic.toml").plan(), Options(segments=True))


@pytest.fixture(scope="module")
def recording() -> Recording:
    return run(FETCH)


def words(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    own = [] if legend is None else [text.get_text() for text in legend.get_texts()]
    rows = [text.get_text() for text in axes.get_yticklabels()]
    return [axes.get_xlabel(), axes.get_ylabel(), *own, *rows]


@pytest.mark.parametrize("name", ["rate", "window+rtt", "sequence", "waits+causes"])
def test_no_plot_speaks_of_subflows(name: str, recording: Recording) -> None:
    figure = plots.figure(recording, name)
    assert figure is not None
    told = [word for axes in figure.axes for word in words(axes)]
    assert any(word.endswith("path0") for word in told)
    assert not any(word.startswith("within") for word in told)
    assert not any("subflow" in word or "data sequence" in word for word in told)


def test_the_height_of_the_sequence_plot_is_the_stream(recording: Recording) -> None:
    figure = plots.figure(recording, "sequence")
    assert figure is not None
    assert {axes.get_ylabel() for axes in figure.axes} == {"stream position (MB)"}


def test_packet_numbers_are_not_drawn_as_bytes(recording: Recording) -> None:
    assert plots.figure(recording, "acks") is None
    (of,) = connections(recording)
    with pytest.raises(MetricError, match="app is QUIC, which numbers packets instead of bytes"):
        plots.acks(recording, connection=of)


def test_delays_of_messages_are_of_messages() -> None:
    figure = plots.figure(run(MESSAGES), "delays+cdf")
    assert figure is not None
    assert figure.axes[1].get_ylabel() == "part of the messages"


def test_a_run_of_many_connections_counts_paths(tmp_path) -> None:  # type: ignore[no-untyped-def]
    scenario = tmp_path / "many.toml"
    one = 'kind = "fetch"\nsize = "10 kB"\ntransport = "mpquic"\n'
    more = "".join(f'[[application]]\nname = "app{index}"\n{one}' for index in range(40))
    scenario.write_text(TEXT + 'kind = "fetch"\nsize = "10 kB"\n' + more, encoding="utf-8")
    told = CliRunner().invoke(app, ["run", str(scenario)]).output
    assert "82 paths" in told
    assert "subflow" not in told
