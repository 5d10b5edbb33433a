"""Files over HTTP and over TLS."""

import pytest

import polypath
from polypath import Scenario

SCENARIO = """
duration = "10 s"
[host.client]
[host.server]
[link.l]
ends = ["client", "server"]
delay = "50 ms"
[[application]]
kind = "fetch"
size = "1 kB"
count = 3
"""


@pytest.mark.parametrize(("tls", "round_trips"), [("", 1), ('tls = "1.2"', 3), ('tls = "1.3"', 2)])
def test_the_handshake_of_tls_counts_for_the_first_file(tls: str, round_trips: int) -> None:
    recording = polypath.run(Scenario.parse(SCENARIO + tls, "fetch"))
    (connection,) = polypath.summary(recording)["connections"]
    first, *others = connection["requests"]["delay_s"]
    assert first == pytest.approx(0.1 * round_trips, rel=0.01)
    assert others == pytest.approx([0.1, 0.1], rel=0.01)
