"""What hosts' stacks do, found in their packets."""

import numpy as np
import pytest

from polypath.twin import habits
from polypath.twin.made import make

from .conftest import Captured


@pytest.mark.parametrize("option", ["sack", "timestamps", "window_scaling"])
def test_an_option_that_a_host_lacks_is_found(captured: Captured, option: str) -> None:
    made = make(captured("client", duration="2 s", more=f"{option} = false", work='kind = "bulk"\nduration = "2 s"'))
    assert made.network.habits["client"].lacking == (option,)
    # It was not asked for it.
    assert made.network.habits["server"].lacking == ()
    assert f"[host.client]\n{option} = false  # not in its SYN" in made.text
    assert made.scenario.plan().data["nodes"][0]["stack"][option] is False


def test_usual_options_are_not_written(captured: Captured) -> None:
    made = make(captured("client", duration="2 s", work='kind = "bulk"\nreverse = true\nduration = "2 s"'))
    assert made.network.habits["client"].lacking == ()
    assert made.network.habits["client"].segments_per_ack == pytest.approx(2.0, rel=0.2)
    assert "delayed_ack" not in made.text


def test_the_delay_of_acknowledgements_is_that_of_single_segments() -> None:
    # Three segments each 0.3 s: an acknowledgement of two at once, and of the third 120 ms later.
    starts = np.arange(10) * 0.3
    arrived = np.concatenate([[start, start + 0.001, start + 0.002] for start in starts])
    end = 1448 * (1 + np.arange(30))
    times = np.concatenate([[start + 0.001, start + 0.122] for start in starts])
    numbers = np.concatenate([[end[3 * n + 1], end[3 * n + 2]] for n in range(10)])
    found = habits.delays(times, numbers, end, arrived, 1448)
    assert found == pytest.approx([0.12] * 10)
    assert list(habits.Habits((), 1.5, 0.12).lines()) == [
        'delayed_ack = "120 ms"  # the longest, of acknowledgements of one segment',
        "# acknowledges 1.5 segments at a time",
    ]
    assert not [line for line in habits.Habits((), None, 0.04).lines() if "delayed_ack" in line]


def test_a_connection_is_chosen_by_its_number(captured: Captured) -> None:
    more = """
[[application]]
name = "other"
transport = "tcp"
kind = "bulk"
size = "40 kB"
start = "1 s"
"""
    files = captured("client", duration="3 s", work='kind = "bulk"\nduration = "3 s"' + more)
    first = make(files)
    assert any("is taken, 1 other connection, 0.04 MB" in note for note in first.notes)
    second = make(files, "2")
    assert second.network.connection["connection"] == 1
    assert second.network.name != first.network.name
