"""Videos and pages in real time."""

from collections.abc import Callable

import pytest

from polypath.results import Recording

from ..loads import check_page, check_player

Run = Callable[..., Recording]


@pytest.mark.parametrize("rule", ["throughput", '{ kind = "buffer", reservoir = "500 ms", cushion = "1500 ms" }'])
def test_a_player_and_a_page_keep_their_rules_and_every_byte_is_right(live: Run, rule: str) -> None:
    recording = live("loads", f"application.film.rule={rule}")
    chunks = check_player(recording)
    assert chunks[0]["representation"] == 0  # how far it rises is up to the machine's load: check_player has the rule
    objects = check_page(recording, 1)
    assert {row["application"] for row in objects.values()} == {1, 2}
    # the server's time, and 20 ms there and back
    assert objects[0]["arrived_ns"] - objects[0]["asked_ns"] >= 60_000_000
