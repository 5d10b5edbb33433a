"""The cost of a run: the bytes over links that have a price or a cap.

The bytes are those of IP packets, without what the link adds, in both directions. What the link's queue dropped is not
paid for; what it sent and was lost on its way is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.plan.types import Link

#: Bytes that a price is for.
GB: Final = 10**9
#: What a link adds to an IP packet if its plan does not say.
ETHERNET_BYTES: Final = 14


@dataclass(frozen=True)
class LinkCost:
    """What a link with a price or a cap carried."""

    link: str
    price_per_gb: float | None
    cap_bytes: int | None
    #: IP packets in both directions together.
    bytes: int

    @property
    def over_cap_bytes(self) -> int | None:
        """None of a link without a cap."""
        return None if self.cap_bytes is None else max(0, self.bytes - self.cap_bytes)

    @property
    def cost(self) -> float | None:
        """In the currency of the price; None of a link without one."""
        return None if self.price_per_gb is None else self.bytes * self.price_per_gb / GB


@dataclass(frozen=True)
class Costs:
    """Those links in the plan's order."""

    links: tuple[LinkCost, ...]

    @property
    def cost(self) -> float | None:
        """What all bytes cost together; None if no link has a price."""
        known = [each.cost for each in self.links if each.cost is not None]
        return sum(known) if known else None

    @property
    def priced_bytes(self) -> int | None:
        """The bytes over links that have a price above zero; None if no link has a price."""
        known = [each for each in self.links if each.price_per_gb is not None]
        return sum(each.bytes for each in known if each.price_per_gb) if known else None

    @property
    def over_cap_bytes(self) -> int | None:
        """None if no link has a cap."""
        known = [each.over_cap_bytes for each in self.links if each.over_cap_bytes is not None]
        return sum(known) if known else None


def of(recording: Recording) -> Costs | None:
    """None if no link has a price or a cap."""
    links = recording.plan.get("links", [])
    counted = [(place, link) for place, link in enumerate(links) if "price_per_gb" in link or "cap_bytes" in link]
    if not counted:
        return None
    found = tuple(
        LinkCost(
            link=link["name"],
            price_per_gb=link.get("price_per_gb"),
            cap_bytes=link.get("cap_bytes"),
            bytes=_carried(recording, place, link),
        )
        for place, link in counted
    )
    return Costs(found)


def _carried(recording: Recording, place: int, link: Link) -> int:
    ends = recording.groups("link_ends", ("link", "direction"))
    total = 0
    for direction in ("forward", "backward"):
        for sent, packets in ends.rows(("sent_bytes", "sent_packets"), place, direction):
            total += sent - packets * link[direction].get("overhead_bytes", ETHERNET_BYTES)
    return int(total)
