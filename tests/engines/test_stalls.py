"""Runs that must end: every byte of a transfer arrives; a run that cannot go on is stopped with its reason."""

import pytest

import polypath
from polypath.engines.base import EngineError
from polypath.results import Recording

PAIR = """
[host.client]
[host.server]
[link.path0]
ends = ["client", "server"]
"""


def run(text: str) -> Recording:
    return polypath.run(polypath.Scenario.parse(text, "stalls"))


def assert_whole(recording: Recording, size: int) -> None:
    row = recording.table("connection_ends").row(0, named=True)
    assert (row["state"], row["server_received_bytes"] + row["client_received_bytes"]) == ("finished", size)


@pytest.mark.parametrize("reverse", ["false", "true"])
def test_a_proxy_may_stand_at_a_hosts_own_place(reverse: str) -> None:
    recording = run(f"""
duration = "20 s"
{PAIR}
rate = "1 Gbps"
delay = "20 ms"
middlebox = "proxy"
[[application]]
kind = "bulk"
transport = "tcp"
size = "50 MB"
reverse = {reverse}
""")
    assert_whole(recording, 50_000_000)


@pytest.mark.parametrize("buffer", ["4500 B", "5300 B", "6 kB", "8 kB"])
def test_a_window_of_a_few_segments_with_loss_stalls_nothing(buffer: str) -> None:
    for seed in range(4):
        recording = run(f"""
duration = "600 s"
seed = {seed}
[defaults]
profile = "linux"
[host.client]
receive_buffer = "{buffer}"
[host.server]
[link.path0]
ends = ["client", "server"]
rate = "100 Mbps"
delay = "20 ms"
loss = "1 %"
[[application]]
kind = "bulk"
size = "1 MB"
reverse = true
transport = "tcp"
""")
        assert_whole(recording, 1_000_000)


def test_keepalive_does_not_stop_retransmission() -> None:
    for seed in range(40):
        recording = run(f"""
duration = "600 s"
seed = {seed}
[defaults]
keepalive = true
{PAIR}
rate = "20 Mbps"
delay = "20 ms"
loss = "5 %"
forward = {{reorder = "20 %"}}
[[application]]
kind = "bulk"
size = "300 kB"
transport = "tcp"
""")
        assert_whole(recording, 300_000)


def test_without_a_middlebox_nothing_falls_back() -> None:
    for seed in range(400):
        recording = run(f"""
duration = "60 s"
seed = {seed}
[defaults]
profile = "linux"
{PAIR}
rate = "20 Mbps"
delay = "10 ms"
forward = {{loss = "15 %", reorder = "9 %"}}
[[application]]
kind = "fetch"
size = "2 B"
count = 4
""")
        row = recording.table("connection_ends").row(0, named=True)
        counted = dict(recording.table("counters").filter(host="client").select("name", "value").iter_rows())
        gave_up = counted["MPTcpExtMPCapableSYNTXDrop"]  # its SYNs with MP_CAPABLE were lost, as at a middlebox
        assert row["transport"] == ("fallback" if gave_up else "mptcp"), seed


@pytest.mark.parametrize(
    "application",
    ['kind = "bulk"', 'kind = "ping-pong"\nsize = "1 kB"', 'kind = "bulk"\nduration = "1 s"\nreverse = true'],
)
def test_a_run_whose_time_stands_still_is_stopped(application: str) -> None:
    with pytest.raises(EngineError, match=r"time stands still at 0 s: .*; give link 'path0' a rate or a delay"):
        run(f'duration = "1 s"\n{PAIR}\n[[application]]\n{application}\n')


def test_a_transfer_over_an_instant_link_ends_at_once() -> None:
    assert_whole(run(f'duration = "1 s"\n{PAIR}\n[[application]]\nkind = "bulk"\nsize = "10 MB"\n'), 10_000_000)


@pytest.mark.parametrize(
    ("record", "application", "reason"),
    [
        ('interval = "1 ns"\nmemory = "20 MB"', 'kind = "bulk"', r"most of it for samples; raise \[record\] interval"),
        (
            'memory = "20 MB"',
            'kind = "ping"\ninterval = "1 ns"',
            r"most of it for (requests|packets under way); send fewer",
        ),
    ],
)
def test_a_run_that_takes_too_much_memory_is_stopped(record: str, application: str, reason: str) -> None:
    text = f'{PAIR}\nrate = "20 Mbps"\ndelay = "10 ms"\n[record]\n{record}\n[[application]]\n{application}\n'
    with pytest.raises(EngineError, match=rf"more than 20 MB of memory at [0-9.e-]+ s, {reason}"):
        run(text)


def test_memory_is_looked_at_after_each_sample() -> None:
    """One has a row for each direction of each link: here 50 samples take more than a megabyte."""
    links = "".join(f'[link.own{number}]\nends = ["client", "server"]\nrate = "1 Mbps"\n' for number in range(200))
    record = '[record]\ninterval = "1 ns"\nmemory = "1 MB"\n'
    with pytest.raises(EngineError, match=r"more than 1 MB of memory at 0.0000000[0-9]+ s"):
        run(f'{PAIR}\nrate = "20 Mbps"\ndelay = "10 ms"\n{links}{record}[[application]]\nkind = "bulk"\n')
