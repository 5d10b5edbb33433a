"""Some set-ups on both engines; `make subflows` is the campaign."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from polypath import Scenario, run
from polypath.engines.linux.kernel import KernelError, find

from .__main__ import TOGETHER, by_cause, by_class, by_kind, known, page, stale
from .compared import Compared, compared, found
from .drawn import drawn, scenario

TODAY = datetime.now(UTC).date().toordinal()
CLASSES = {
    *("IPv6", "backup event", "backup interface", "both", "default", "fullmesh", "interface away", "isolated networks"),
    *("link away", "lost SYNs", "none", "one router", "signal", "small limits", "subflow", "flags by address"),
    *("denies joins to the first address", "port of its own", "first address with a port", "several servers"),
    *("fullmesh event", "flushed"),
}


#: Set-ups in which nothing differed when they were first compared; and some whose rules were mended.
ALIKE = (1, 2, 3, 4, 7, 8, 9, 10, 11, 17, 18, 20)
MENDED = (23, 26, 43, 55, 93, 111, 176, 297, 339, 378, 535, 872)
MENDED_LATER = (6, 74, 87, 119, 149, 157, 166, 177, 228, 260, 289, 347)
#: Attempts that nobody on their link answers.
UNRESOLVED = (12022, 12070, 12117, 12129, 12258, 12302, 12371, 12390, 12448, 12618, 12639, 12663)
#: Joins, ends and timers of later rules; and programs that connect without a route.
ENDING = (9145, 9161, 9219, 9275, 12013, 15056, 15063, 15206, 15226, 15244)
#: Announcements and removals that wait, data that is sent again, and interfaces with several addresses.
WAITING = (15175, 20175, 20331, 20613, 20972)


@pytest.mark.parametrize("numbers", [ALIKE, MENDED, MENDED_LATER, UNRESOLVED, ENDING, WAITING])
def test_what_was_alike_is_alike(numbers: tuple[int, ...]) -> None:
    try:
        find()
    except KernelError as error:
        pytest.skip(str(error))
    assert {row.number: row.differs for row in compared(numbers) if row.differs} == {}


@pytest.mark.parametrize(
    ("number", "counter", "value"),
    [
        # The server announces before its program writes, so that the client joins there first.
        (280, "client MPJoinSynTx", 3),
        # What comes through the router for the address of an interface that is down meets nobody.
        (177, "server MPJoinSynRx", 4),
        # A reset that comes by another interface than a server's own subflow is bound to ends it not.
        (321, "server MPJoinSynTx", 6),
        # The connection is over, and its client has no listener.
        (398, "client MPJoinSynRx", 0),
        # A FIN is acknowledged by itself, with an announcement that waited.
        (5111, "server AddAddrTx", 2),
        # A removal that waits is lost with the repeated SYN of a join.
        (12033, "client RmAddrTx", 2),
        # Data ACKs of 64 bits leave it no room there, so that it leaves on the FIN.
        (9430, "client RmAddr", 2),
        # Before the SYN is repeated the connection falls back, and no option is counted any more.
        (15012, "client RmAddrTx", 0),
        # The echo has no DSS beside it, and comes just before the last segment of a join.
        (9772, "server AddAddrTx", 4),
        # The connection is over, and its server counts what a SYN asks for nevertheless.
        (12582, "server MPJoinSynBackupRx", 3),
        # Endpoints were flushed before the connection, so that the one that returns is known as its first address.
        (12356, "server2 MPPrioTx", 1),
        # Endpoints are in the order of the interfaces, though the connection leaves by the fourth.
        (9866, "client MPJoinSynTx", 4),
        # An announcement waits for the timeout of a stale subflow as that backed it off.
        (20175, "client AddAddrTx", 3),
        # A SYN that was not answered knows of no timestamps, so that the removal has room, and is lost.
        (20613, "server RmAddrTx", 2),
        # The third segment of a join has room for a removal, which ends the subflow before an announcement comes.
        (20662, "server MPJoinSynTx", 1),
    ],
)
def test_the_simulator_counts_what_the_kernel_does(number: int, counter: str, value: int) -> None:
    text, [part] = scenario([number])
    recording = run(Scenario.parse(text, "set-up.toml").plan())
    assert found(recording)[part.name].counters.get(counter, 0) == value


def test_a_host_takes_nothing_from_a_subflow_that_it_has_left() -> None:
    """Its peer sends that again on the next one, which is no duplicate there then (`mptcp_data_ready`)."""
    recording = run(Scenario.parse(scenario([20578])[0], "set-up.toml").plan())
    counted = recording.table("counters").filter(host="n20578-server", name="MPTcpExtDuplicateData")
    assert counted["value"].sum() == 0


def test_every_class_is_drawn_and_nearly_every_set_up_has_a_plan() -> None:
    numbers = range(1000 * TODAY, 1000 * TODAY + 300)
    counts = Counter(name for number in numbers for name in drawn(number).classes)
    assert counts.keys() == CLASSES
    assert min(counts.values()) >= 3
    for first in numbers[:60:TOGETHER]:
        text, parts = scenario(range(first, first + TOGETHER))
        assert [text.count(f'name = "{part.name}-server"') for part in parts] == [1] * TOGETHER
    assert Scenario.parse(scenario([numbers[0]])[0], "x.toml").to_data()["application"]


def test_a_page_says_what_differs() -> None:
    rows = [
        Compared(1, ["signal"]),
        Compared(2, ["signal", "IPv6"], differs=["client Nothing: 1, 2", "closed 10.0.0.1 > 10.0.1.1: 1, 99 ms"]),
        Compared(3, ["IPv6"], refused="no addresses of one IP version"),
    ]
    assert stale(rows) == []
    assert list(by_class(rows[:2]))[2:] == ["| IPv6 | 1 | 0 |", "| signal | 2 | 1 |"]
    assert set(by_kind(rows)) >= {"| closed | 1 |", "| client Nothing | 1 |"}
    assert list(by_cause(rows))[2:] == ["| **not traced** | 1 | 2 |"]
    number, cause = next(iter(known().items()))
    explained = Compared(number, [], differs=["client Nothing: 1, 2"])
    assert list(by_cause([explained]))[2:] == [f"| {cause} | 1 | {number} |"]
    assert stale([Compared(number, [])]) == [number]
    assert "3 set-ups were drawn. 1 were refused" in page(rows)
    assert Compared.load(rows[1].json()) == rows[1]
