"""The charges of an account in words, as one engineer says them to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from polypath.results.account import Account, Charge

#: What a cause is called in a table.
_TITLES: Final[Mapping[str, str]] = {
    "headers": "headers",
    "retransmitted": "retransmitted",
    "reinjected": "sent twice",
    "lost-behind": "lost behind",
    "other-paths": "its other paths",
    "others": "other traffic",
    "shared": "others' part",
    "under-way": "under way",
    "handshake": "handshake",
    "unused": "no subflow",
    "joining": "join under way",
    "closed": "subflow closed",
    "failed": "potentially failed",
    "backup": "backup",
    "down": "link down",
    "application": "nothing to send",
    "finished": "all sent",
    "send-buffer": "send buffer",
    "receive-window": "receive window",
    "scheduler": "scheduler",
    "pacing": "pacing",
    "held": "held back",
    "slow-start": "slow start",
    "queue-loss": "loss in a queue",
    "random-loss": "random loss",
    "reordering": "taken for loss",
    "mark": "ECN mark",
    "idleness": "after idleness",
    "coupling": "coupling",
    "controller": "controller",
}

_SENTENCES: Final[Mapping[str, Callable[[Charge], str]]] = {
    "headers": lambda it: f"headers of its packets took part of {it.path}",
    "retransmitted": lambda it: f"link {it.path} carried retransmissions",
    "reinjected": lambda it: f"link {it.path} carried copies of what another subflow had carried",
    "lost-behind": lambda it: f"what {it.path} had carried was lost on {it.at}, behind it",
    "other-paths": lambda it: f"link {it.path} carried what the connection sent over its other paths",
    "others": lambda it: f"link {it.path} carried the packets of others",
    "shared": lambda it: f"others wanted their part of what {it.path} had left",
    "under-way": lambda it: f"what {it.path} had carried was still on its way at the end",
    "handshake": lambda it: f"link {it.path} waited for the connection's handshake",
    "unused": lambda it: f"no subflow used {it.path}",
    "joining": lambda it: f"the subflow over {it.path} was in its handshake",
    "closed": lambda it: f"the subflow over {it.path} was closed",
    "failed": lambda it: f"the sender took the subflow over {it.path} for dead",
    "backup": lambda it: f"link {it.path} was kept as a backup",
    "down": lambda it: f"link {it.at} was down",
    "application": lambda it: f"the application had nothing to send over {it.path}",
    "finished": lambda it: f"link {it.path} had nothing left to carry: everything had been sent",
    "send-buffer": lambda it: f"the send buffer was full{_behind(it)}, so that {it.path} got nothing",
    "receive-window": lambda it: f"the receive window was full{_behind(it)}, so that {it.path} got nothing",
    "scheduler": lambda it: f"the scheduler preferred another path to {it.path}, or waited for one",
    "pacing": lambda it: f"pacing sent less than {it.path} could carry",
    "held": lambda it: f"the sender held data back from {it.path} (Nagle, a cork, or a queue of the host)",
    "slow-start": lambda it: f"the window on {it.path} was still growing in slow start",
    "queue-loss": lambda it: f"the window on {it.path} was short after the queue of {it.at} had dropped packets",
    "random-loss": lambda it: f"the window on {it.path} was short after {it.at} had lost packets at random",
    "reordering": lambda it: f"the window on {it.path} was short after a loss that was none",
    "mark": lambda it: f"the window on {it.path} was short after an ECN mark",
    "idleness": lambda it: f"the window on {it.path} was reset after a pause",
    "coupling": lambda it: (
        f"coupled congestion control let the window on {it.path} grow more slowly than it would alone"
    ),
    "controller": lambda it: f"congestion control kept the window on {it.path} short by its own rule",
}


def _behind(charge: Charge) -> str:
    return "" if charge.head is None else f" behind data on {charge.head}"


def title(charge: Charge) -> str:
    """What it is called in a table, with the place where that is not the path itself."""
    place = charge.at if charge.at is not None and charge.at != charge.path else charge.head
    return named(charge.cause, place)


def named(cause: str, place: str | None = None) -> str:
    """A cause, and where it was."""
    return _TITLES[cause] if place is None else f"{_TITLES[cause]} ({place})"


def sentence(charge: Charge) -> str:
    """What happened, without how much."""
    text = _SENTENCES[charge.cause](charge)
    return text[:1].upper() + text[1:]


def share(account: Account, charge: Charge) -> float:
    """Of what the links could have carried."""
    return charge.bytes / account.capacity_bytes if account.capacity_bytes else 0.0
