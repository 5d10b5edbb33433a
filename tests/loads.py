"""What players of video and loads of pages did, worked out again from the arrivals alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from polypath.results import Recording

SECOND = 1_000_000_000
Row = dict[str, Any]


def request_bytes(path: str) -> int:
    return len(f"GET {path} HTTP/1.1\r\nHost: server\r\nUser-Agent: polypath\r\nAccept: */*\r\n\r\n")


def response_bytes(size: int) -> int:
    head = "HTTP/1.1 200 OK\r\nServer: polypath\r\nContent-Type: application/octet-stream\r\n"
    return len(f"{head}Content-Length: {size}\r\n\r\n") + size


def check_player(recording: Recording, application: int = 0) -> list[Row]:
    """Every decision of a whole video, its times, its requests, its bytes. Returns its chunks."""
    work: Any = recording.plan["applications"][application]["work"]
    segment = work["segment_ns"]
    rows = _rows(recording, "chunks", application)
    assert [row["index"] for row in rows] == list(range(work["segments"]))
    room = work["buffer_ns"] - segment
    played: list[int] = []
    until = waiting = 0
    for number, row in enumerate(rows):
        before = rows[:number]
        if before:
            came, held = before[-1]["arrived_ns"], _held(until, before[-1]["arrived_ns"]) + waiting * segment
            # as soon as there is room, and no sooner
            assert row["asked_ns"] >= came + max(held - room, 0)
            assert row["buffer_ns"] <= room
        assert row["buffer_ns"] == _held(until, row["asked_ns"]) + waiting * segment
        assert row["representation"] == _choice(work, before, row["buffer_ns"]), row
        assert row["rate_bps"] == work["rates_bps"][row["representation"]]
        assert row["bytes"] == -(-row["rate_bps"] * segment // (8 * SECOND))
        now = row["arrived_ns"]
        assert now > row["asked_ns"]
        waiting += 1
        last = number + 1 == work["segments"]
        goes_on = bool(played) and until >= now
        if goes_on or waiting * segment >= work["startup_ns"] or (waiting + 1) * segment > work["buffer_ns"] or last:
            until = until if goes_on else now
            for _ in range(waiting):
                played.append(until)
                until += segment
            waiting = 0
    assert [row["played_ns"] for row in rows] == played
    _check_requests(recording, application, rows)
    paths = [f"/{row['representation']}/{row['index']}" for row in rows]
    _check_bytes(recording, application, paths, [row["bytes"] for row in rows])
    return rows


def _held(until: int, now: int) -> int:
    return max(until - now, 0)


def _choice(work: Mapping[str, Any], before: Sequence[Row], held: int) -> int:
    rule, rates = work["rule"], work["rates_bps"]
    match rule["kind"]:
        case "fixed":
            return int(rule["representation"])
        case "throughput":
            took = [row["arrived_ns"] - row["asked_ns"] for row in before[-rule["window"] :]]
            measured = [
                row["bytes"] * 8 * SECOND / time for row, time in zip(before[-rule["window"] :], took, strict=True)
            ]
            if not measured:
                return 0
            limit = rule["safety"] * len(measured) / sum(1 / rate for rate in measured)
            return max((place for place, rate in enumerate(rates) if rate <= limit), default=0)
    reservoir, cushion, top = rule["reservoir_ns"], rule["cushion_ns"], len(rates) - 1
    last = before[-1]["representation"] if before else 0
    if held <= reservoir:
        return 0
    if held >= reservoir + cushion:
        return top
    line = rates[0] + (rates[-1] - rates[0]) * (held - reservoir) / cushion
    if line >= rates[min(last + 1, top)]:
        return max(place for place, rate in enumerate(rates) if rate < line)
    if line <= rates[max(last - 1, 0)]:
        return min(place for place, rate in enumerate(rates) if rate > line)
    return int(last)


def check_page(recording: Recording, owner: int = 0) -> dict[int, Row]:
    """The order of a whole page, its requests, its bytes. Returns its objects."""
    applications: Any = recording.plan["applications"]
    own = [
        number
        for number, each in enumerate(applications)
        if each["work"]["kind"] == "page" and each["work"].get("of", number) == owner
    ]
    described = applications[owner]["work"]["objects"]
    rows = {row["object"]: row for number in own for row in _rows(recording, "objects", number)}
    assert sorted(rows) == list(range(len(described)))
    found = {place: (row["application"], row["asked_ns"]) for place, row in rows.items()}
    assert found == dict(_asked(recording, own, described, rows))
    for number in own:
        mine = sorted((row for row in rows.values() if row["application"] == number), key=lambda row: row["asked_ns"])
        _check_requests(recording, number, mine)
        _check_bytes(
            recording,
            number,
            [described[row["object"]]["path"] for row in mine],
            [described[row["object"]]["size_bytes"] for row in mine],
        )
        assert all(row["bytes"] == described[row["object"]]["size_bytes"] for row in mine)
    return rows


def _asked(
    recording: Recording, own: Sequence[int], described: Sequence[Row], rows: Mapping[int, Row]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Who asks for which object when, from what the objects wait for and when they come."""
    ends = recording.table("connection_ends").to_dicts()
    news: list[tuple[int, int, int | None]] = [
        (row["established_ns"], row["application"], None) for row in ends if row["application"] in own
    ]
    news += [(row["arrived_ns"], row["application"], place) for place, row in rows.items()]
    came: set[int] = set()
    asked: set[int] = set()
    idle: set[int] = set()
    for time, connection, arrived in sorted(news, key=lambda each: each[:2]):
        turns = [connection]
        if arrived is not None:
            came.add(arrived)
            turns += sorted(idle)
            idle.clear()
        for asking in turns:
            ready = (
                place for place, each in enumerate(described) if place not in asked and came.issuperset(each["after"])
            )
            if (wanted := next(ready, None)) is None:
                idle.add(asking)
            else:
                asked.add(wanted)
                yield wanted, (asking, time)


def _rows(recording: Recording, table: str, application: int) -> list[Row]:
    rows = recording.table(table)
    return rows.filter(rows["application"] == application).to_dicts()


def _check_requests(recording: Recording, application: int, rows: Sequence[Row]) -> None:
    requests = [(row["sent_ns"], row["delay_ns"]) for row in _rows(recording, "requests", application)]
    assert requests == [(row["asked_ns"], row["arrived_ns"] - row["asked_ns"]) for row in rows]


def _check_bytes(recording: Recording, application: int, paths: Sequence[str], sizes: Sequence[int]) -> None:
    (end,) = _rows(recording, "connection_ends", application)
    assert end["state"] == "finished"
    assert end["server_received_bytes"] == sum(map(request_bytes, paths))
    assert end["client_received_bytes"] == sum(map(response_bytes, sizes))
