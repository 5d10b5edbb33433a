"""What happened to a connection, in sentences: of the labs that make it happen."""

from __future__ import annotations

import pytest

from polypath.engines.sim import Simulator
from polypath.labs import get
from polypath.results import incidents, metrics
from polypath.scenario import Scenario


def of_lab(lab: str, run: str) -> list[str]:
    (chosen,) = (each for each in get(lab).runs if each.name == run)
    return sentences(chosen.of(get(lab).scenario()))


def sentences(scenario: Scenario) -> list[str]:
    recording = Simulator().run(scenario.plan())
    (connection,) = metrics.connections(recording)
    return [each.sentence for each in incidents.of_connection(recording, connection)]


def test_nothing_is_said_where_nothing_happened() -> None:
    assert of_lab("middleboxes", "none") == []


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        ("strip-syn", "It fell back to TCP at 0.03215 s (client: no MP_CAPABLE on the SYN/ACK)."),
        ("alter-only-path", "It fell back to TCP at 0.2015 s (server: DSS checksum failed)."),
    ],
)
def test_a_fallback_has_its_reason(run: str, sentence: str) -> None:
    assert of_lab("middleboxes", run) == [sentence]


def test_a_join_without_its_option_is_reset() -> None:
    assert of_lab("middleboxes", "strip-join") == ["The join of subflow 1 (eth1) failed at 0.0979 s: client reset it."]


def test_a_subflow_whose_checksum_fails_is_reset() -> None:
    assert of_lab("middleboxes", "alter-checksum") == ["Subflow 1 (eth1) was reset by server at 0.2994 s."]


def test_timeouts_are_counted_from_the_first_to_the_last() -> None:
    (sentence,) = of_lab("failover", "busy-5")
    assert sentence.startswith("Subflow 0 (eth0) had 9 retransmission timeouts between 5.287 s and ")


UNANSWERED = """
duration = "1 s"
defaults = { profile = "linux", path_manager = "fullmesh" }
host = { client = {}, server = {} }
link.wifi = { ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms" }
link.lte = { ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms", up = false }
application = [{ name = "bulk", kind = "bulk", duration = "1 s" }]
"""


def test_a_join_without_an_answer_is_named() -> None:
    found = sentences(Scenario.parse(UNANSWERED, "dark.toml"))
    assert any(each.startswith("The join of subflow ") and each.endswith(" had no answer.") for each in found), found
