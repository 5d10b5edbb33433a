"""Links with queues, losses and middleboxes, and what happens to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .chance import Chance

if TYPE_CHECKING:
    from .drawn_network import Net


def plain(chance: Chance) -> dict[str, Any]:
    """A rate, a delay, and a queue or none."""
    made: dict[str, Any] = {"rate": chance.rate(0.4, 8), "delay": chance.time(0.2, 50)}
    if chance.happens(0.7):
        made["queue"] = queue(chance)
    return made


def quiet(chance: Chance) -> dict[str, Any]:
    """A rate and a delay, with room for all that waits."""
    return {"rate": chance.rate(0.4, 8), "delay": chance.time(0.2, 50)}


def link(chance: Chance, *, host_at_an_end: bool, plain: bool) -> dict[str, Any]:
    """What a link says beside its ends; `plain`: nothing that looks into packets."""
    made = _rated(chance) | _impaired(chance)
    if isinstance(made.get("rate"), str) and chance.happens(0.06):
        made["burst"] = chance.size(10_000, 40_000)
    if host_at_an_end and isinstance(made.get("rate"), str) and "burst" not in made and chance.happens(0.06):
        made["queue_at"] = "host-netem"
        made["queue"] = f"{chance.randint(2, 100)} packets"
    if chance.happens(0.08):
        made["mtu"] = chance.choice((1280, 1400, 1500, 9000))
        if chance.happens(0.3):
            made["icmp"] = False
    if isinstance(made.get("rate"), str) and "queue_at" not in made and chance.happens(0.04):
        made["bypass"] = chance.size(60, 200)
    if chance.happens(0.1):
        made["overhead"] = chance.randint(0, 60)
    if chance.happens(0.15):
        made[chance.choice(("forward", "backward"))] = {
            "delay": chance.time(0.2, 60),
            **({"rate": chance.rate(0.4, 8)} if isinstance(made.get("rate"), str) else {}),
        }
    if not plain and chance.happens(0.07):
        boxes = [chance.algorithm("middlebox") for _ in range(chance.choice((1, 1, 2)))]
        made["middlebox"] = boxes if len(boxes) > 1 else boxes[0]
    return made


def _rated(chance: Chance) -> dict[str, Any]:
    delay = {"delay": chance.time(0.2, 60)}
    if chance.happens(0.05):
        return delay
    if chance.happens(0.06):
        gaps = " ".join(f"{chance.randint(0, 12)}x{chance.randint(1, 30)}" for _ in range(chance.randint(1, 4)))
        return delay | {"rate": {"trace": "drawn", "gaps_ms": f"1 {gaps}"}, "queue": queue(chance)}
    made = delay | {"rate": chance.rate(0.4, 8)}
    return made | ({"queue": queue(chance)} if chance.happens(0.8) else {})


def _impaired(chance: Chance) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if chance.happens(0.25):
        made["loss"] = loss(chance)
    if chance.happens(0.1):
        made["jitter"] = chance.time(0.05, 5)
    for name in ("reorder", "duplicate", "corrupt"):
        if chance.happens(0.04):
            made[name] = chance.share(0.1, 5)
    return made


def loss(chance: Chance) -> str | dict[str, Any]:
    """Independent, or in bursts."""
    match chance.choice(("random", "random", "chain", "timed", "periodic")):
        case "chain":
            return {
                "kind": "gilbert-elliott",
                "good_to_bad": chance.share(0.1, 3),
                "bad_to_good": chance.share(10, 90),
            }
        case "periodic":
            return {"kind": "periodic", "every": chance.randint(10, 1000)}
        case "timed":
            return {
                "kind": "timed-gilbert-elliott",
                "good_time": chance.time(50, 1000),
                "bad_time": chance.time(1, 60),
                "bad_loss": chance.share(20, 100),
            }
    return chance.share(0.05, 8)


def queue(chance: Chance) -> str | dict[str, Any]:
    """By its length, or a discipline."""
    if chance.happens(0.65):
        return chance.choice((f"{chance.randint(2, 150)} packets", chance.size(4000, 150_000)))
    ecn = {"ecn": chance.happens(0.6)}
    match chance.choice(("red", "codel", "pie", "drr", "fq-codel")):
        case "red":
            least = chance.randint(1, 20)
            most = {"max": f"{least + chance.randint(1, 30)} packets"}
            return {"kind": "red", "min": f"{least} packets", **most, "limit": "100 packets", **ecn}
        case "drr":
            return {"kind": "drr", "limit": f"{chance.randint(5, 127)} packets"}
        case kind:
            return {"kind": kind, "limit": f"{chance.randint(20, 200)} packets", **ecn}


def events(chance: Chance, net: Net, duration_ms: int, over: set[str]) -> list[dict[str, Any]]:
    """Up to three, in any order."""
    found = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = {"at": f"{chance.randint(1, 1000 * duration_ms - 1)} us"}
        own = _of_interface(chance, net, over) if chance.happens(0.25) else None
        if own is None and net.links:
            own = _of_link(chance, net)
        if own is not None:
            found.append(at | own)
    return found


def _of_link(chance: Chance, net: Net) -> dict[str, Any] | None:
    name = chance.choice(list(net.links))
    link = net.links[name]
    if isinstance(link.get("rate"), str):
        changes = chance.some(("rate", "delay", "loss", "queue", "up"), 2)
    else:
        changes = chance.some(("loss", "up"), 1)
    made: dict[str, Any] = {"link": name}
    if chance.happens(0.3):
        made["direction"] = chance.choice(("forward", "backward"))
    for change in changes:
        match change:
            case "rate":
                made[change] = chance.rate(0.4, 8)
            case "delay":
                made[change] = chance.time(0.2, 60)
            case "loss":
                made[change] = chance.share(0.05, 20)
            case "queue":
                made[change] = f"{chance.randint(2, 60)} packets"
            case "up":
                made[change] = chance.happens(0.4)
    return made


def _of_interface(chance: Chance, net: Net, over: set[str]) -> dict[str, Any] | None:
    client = net.pairs[0][0]
    named = [end for link in net.links.values() for end in link["ends"] if end.partition(":")[0] == client]
    if not named:
        return None
    place = chance.randrange(len(named))
    interface = named[place] if ":" in named[place] else f"{client}:eth{sum(':' not in end for end in named[:place])}"
    if over & {"mptcp", "mpquic"} and chance.happens(0.4):
        return {"interface": interface, "backup": chance.happens(0.5)}
    return {"interface": interface, "up": chance.happens(0.3)}
