"""Totals against what they are sums of."""

from __future__ import annotations

from random import Random

import polars as pl

from .case import Case
from .relation import need, relation, require

_RUNNING = {
    "subflows": (
        ("connection", "side", "subflow"),
        ("sent_bytes", "acked_bytes", "received_bytes", "retransmitted_bytes", "reinjected_bytes"),
    ),
    "connections": (("connection", "side"), ("delivered_bytes",)),
    "links": (("link", "direction"), ("sent_bytes", "sent_packets", "dropped_packets", "lost_packets")),
    "datagram_samples": (("application",), ("sent_packets", "received_packets", "received_bytes")),
}


@relation(
    "Running totals never fall.",
    "They count past events. A host takes back packets that its own queue refuses.",
)
def running_totals(case: Case, random: Random) -> None:
    need("queue_at" not in case.text)
    for name, (keys, totals) in _RUNNING.items():
        table = case.recording.table(name).sort("time_ns", maintain_order=True)
        for total in totals:
            fell = table.with_columns(before=pl.col(total).shift(1).over(keys)).filter(pl.col(total) < pl.col("before"))
            require(not fell.height, f"{name}: {total} fell: {fell.head(1).rows()}")


@relation(
    "The last sample of a link equals its totals.",
    "The run is sampled at its end.",
)
def last_samples(case: Case, random: Random) -> None:
    totals = ("sent_bytes", "sent_packets", "dropped_packets", "lost_packets")
    last = case.recording.table("links").group_by("link", "direction", maintain_order=True).last()
    ends = case.recording.table("link_ends")
    columns = ("link", "direction", *totals)
    one, other = sorted(last.select(columns).rows()), sorted(ends.select(columns).rows())
    require(one == other, f"links end with {one}, their totals are {other}")
    sampled = case.recording.table("datagram_samples").group_by("application", maintain_order=True).last()
    known = {row[0]: row[1:] for row in case.recording.table("datagrams").iter_rows()}
    for application, *found in sampled.select(
        "application", "sent_packets", "received_packets", "received_bytes"
    ).iter_rows():
        require(
            tuple(found) == known[application][:3], f"application {application}: {found}, total {known[application]}"
        )


@relation(
    "Payload of a subflow's segments adds up to its bytes: new data, retransmissions, reinjections.",
    "Each segment is noted as it leaves.",
)
def segments_of_subflows(case: Case, random: Random) -> None:
    plan = case.plan.view
    need(not case.plan.has_quic)
    need(not any("queue_at" in link[way] for link in plan["links"] for way in ("forward", "backward")))
    need(not any(link.get("middleboxes") for link in plan["links"]))
    segments = case.detailed.table("segments")
    sizes = segments.group_by("connection", "subflow", "side", "kind").agg(
        pl.col("payload_bytes").cast(pl.UInt64).sum()
    )
    found = {row[:4]: row[4] for row in sizes.iter_rows()}
    for row in case.detailed.table("subflow_ends").iter_rows(named=True):
        for side in ("client", "server"):
            key = (row["connection"], row["subflow"], side)
            again = found.get((*key, "retransmission"), 0)
            copies = found.get((*key, "reinjection"), 0)
            new = found.get((*key, "data"), 0) + copies
            told = (row[f"{side}_sent_bytes"], row[f"{side}_retransmitted_bytes"])
            require((new, again) == told, f"{key}: segments have {(new, again)}, the subflow {told}")


@relation(
    "A side receives no more than its peer sent, and an application gets no more than its subflows.",
    "No byte comes from nowhere.",
)
def received_and_sent(case: Case, random: Random) -> None:
    need("bridging" not in case.data)  # they flood copies
    need(not any(link.get("middleboxes") for link in case.plan.view["links"]))
    duplicates = any(link[way]["duplicate"] for link in case.plan.view["links"] for way in ("forward", "backward"))
    subflows = case.recording.table("subflow_ends")
    for row in subflows.iter_rows(named=True):
        for side, other in (("client", "server"), ("server", "client")):
            sent = row[f"{side}_sent_bytes"] + row[f"{side}_retransmitted_bytes"]
            got = row[f"{other}_received_bytes"]
            require(
                duplicates or got <= sent,
                f"connection {row['connection']}, subflow {row['subflow']}: {other} received {got} of {sent}",
            )
    works = [each["work"] for each in case.plan.view["applications"]]
    for row in case.recording.table("connection_ends").iter_rows(named=True):
        if works[row["application"]].get("delivery") == "datagrams":
            continue  # they are in no stream, and streams are what subflows count
        own = subflows.filter(pl.col("connection") == row["connection"])
        for side in ("client", "server"):
            got, carried = row[f"{side}_received_bytes"], own[f"{side}_received_bytes"].sum()
            require(got <= carried, f"{row['name']}: {side} was given {got} of {carried}")
    for row in case.recording.table("datagrams").iter_rows(named=True):
        require(
            duplicates or row["received_packets"] <= row["sent_packets"], f"more datagrams received than sent: {row}"
        )


@relation(
    "A link is busy for no longer than the run, and for as long as its bytes take at its rate.",
    "It sends one packet after the other.",
)
def busy_links(case: Case, random: Random) -> None:
    changed = {event["action"].get("link") for event in case.plan.view["events"]}
    ends = case.recording.table("link_ends")
    for row in ends.iter_rows(named=True):
        require(row["busy_ns"] <= case.end_ns, f"{row['name']} was busy for {row['busy_ns']} of {case.end_ns} ns")
        channel = case.plan.view["links"][row["link"]][row["direction"]]
        plain = not any(channel.get(name) for name in ("trace", "wifi", "bypass_bytes", "burst_bytes"))
        if channel["rate_bps"] and plain and row["link"] not in changed and channel["up"]:
            took = row["sent_bytes"] * 8 * 10**9 // channel["rate_bps"]
            # each packet's time is a whole number of ns, and the last one may be under way
            least, most = took - row["sent_packets"], took + 1 + 66_535 * 8 * 10**9 // channel["rate_bps"]
            require(least <= row["busy_ns"] <= most, f"{row['name']}: {row} at {channel['rate_bps']} bit/s")
