"""What an account says holds against the run without the cause."""

from __future__ import annotations

import pytest

from polypath import remedies
from polypath.results import metrics

from .test_account import WIFI_LTE, kept, ran

#: A cause whose removal brings less than this part of its charge is a defect.
LEAST = 0.5


@pytest.mark.parametrize(
    ("settings", "more", "first"),
    [
        ((), "", "random-loss"),
        (("link.wifi.loss=0 %",), '\n[[event]]\nat = "5 s"\nlink = "lte"\nup = false\n', "down"),
        (("link.wifi.loss=0 %",), '\n[[event]]\nat = "5 s"\nlink = "lte"\nloss = "100 %"\n', "down"),
        (("link.wifi.loss=0 %", "defaults.receive_buffer=60 kB"), "", "receive-window"),
        (("link.wifi.loss=0 %", "defaults.send_buffer=60 kB"), "", "send-buffer"),
        (("link.wifi.loss=0 %", "link.wifi.queue=4 packets", "defaults.congestion=reno"), "", "queue-loss"),
        (("link.wifi.loss=0 %", "defaults.path_manager=default"), "", "unused"),
        (("link.wifi.loss=0 %", "host.client.interface.lte.backup=true"), "", "backup"),
        (("link.wifi.loss=0 %", "defaults.scheduler=redundant"), "", "reinjected"),
    ],
)
def test_without_the_dearest_cause_at_least_half_of_it_is_gained(
    settings: tuple[str, ...], more: str, first: str
) -> None:
    recording = ran(WIFI_LTE + more, *settings)
    found = kept(recording, "get")
    dearest = remedies.cases(found)[0]
    assert dearest.cause == first
    (trial,) = remedies.verify(recording, metrics.connection(recording, "get"), [dearest])
    assert trial.gained_bytes >= LEAST * dearest.bytes
