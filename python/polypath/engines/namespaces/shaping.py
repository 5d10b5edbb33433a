"""Links as queue disciplines of the shaping namespace.

A direction of a link is one device's tree. The root, handle 1:, is netem for packets in flight (delay, loss, duplicates
..). Its child, handle 10:, is the bottleneck with its queue. A packet thus waits before the bottleneck for the delay
that the Plan has behind it. Both ends see no difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polypath.engines.base import EngineError

if TYPE_CHECKING:
    from polypath.plan.types import Channel, DrrQueue, FqCodelQueue, FqPieQueue, PieQueue


ETHERNET = 14
#: More packets than are ever under way.
_UNLIMITED = 1_000_000
#: In ns: of a delay and of its jitter tc asks for a microsecond at least where they are spread by a distribution.
_LEAST_SPREAD = 1_000
#: Sizes of tc have 32 bits.
_MOST_BYTES = 2**32 - 1
#: In what pie has its gains: a sixteenth, up to 2.
_GAIN, _MAX_GAIN = 16, 32
#: The most packets of a flow in sfq (net/sched/sch_sfq.c, SFQ_MAX_DEPTH).
_SFQ_DEPTH = 127
#: Queues of links that tc sets up here.
QUEUES = ("drop-tail", "codel", "pie", "drr", "fq-codel", "fq-pie")
#: The usual largest packet, header included: a bucket of tokens that holds less passes none of them.
PACKET = 1500 + ETHERNET


def at_host(channel: Channel) -> bool:
    """Whether the bottleneck is the sending host's own interface."""
    return "queue_at" in channel


def keeps_owner(channel: Channel) -> bool:
    """Whether packets in the host's queue stay on their socket's account."""
    return channel.get("queue_at") == "host-tbf"


def host_commands(device: str, channel: Channel, verb: str = "add", packet: int = PACKET) -> list[str]:
    """The bottleneck on the host's own `device`, whose stack hears what it drops; none without a rate, as nothing waits
    then. Raises EngineError."""
    if channel["rate_bps"] is None:
        return []
    if keeps_owner(channel):
        lines = [f"qdisc {verb} dev {device} root handle 10: {_tbf(channel, packet)}"]
        inner = _queue_of_tbf(channel)
        return [*lines, f"qdisc {verb} dev {device} parent 10:1 handle 11: {inner}"] if inner else lines
    line = _bottleneck(channel, packet)
    if not line.startswith("netem"):
        raise EngineError("a queue in the host's netem is drop-tail, in packets, without a burst or duplicates")
    return [f"qdisc {verb} dev {device} root handle 10: {line}"]


def commands(device: str, channel: Channel, verb: str = "add", packet: int = PACKET) -> list[str]:
    """Lines for `tc -batch` that shape what leaves `device`, packets of up to `packet` bytes; a bottleneck that is the
    host's is left out. Raises EngineError."""
    if "bypass_bytes" in channel:
        raise EngineError("no real link has a 'bypass' (--engine sim has)")
    lines = [f"qdisc {verb} dev {device} root handle 1: netem {_under_way(channel)}"]
    if verb == "replace" or (verb == "add" and not channel["up"]):
        # What waits is lost with its queue, and what is under way in the blackhole.
        lines.append(f"qdisc replace dev {device} parent 1:1 handle 20: blackhole")
    if not channel["up"]:
        return lines
    child = _bottleneck_of_link(channel, packet) or (f"pfifo limit {_UNLIMITED}" if verb == "replace" else "")
    if child:
        lines.append(f"qdisc {verb} dev {device} parent 1:1 handle 10: {child}")
        inner = _inner_queue(channel)
        if inner:
            lines.append(f"qdisc {verb} dev {device} parent 10:1 handle 11: {inner}")
    return lines


def shape(channel: Channel) -> tuple[str, ...]:
    """The kinds of disciplines: while they stay the same, a change keeps the packets that wait."""
    if not channel["up"]:
        return ("blackhole",)
    lines = _bottleneck_of_link(channel, PACKET), _inner_queue(channel)
    return tuple(line.split(" ", 1)[0] for line in lines if line)


def _under_way(channel: Channel) -> str:
    least = _LEAST_SPREAD if channel["jitter_ns"] else 0
    words = [f"limit {_UNLIMITED}", f"delay {_time(max(channel['delay_ns'], least))}"]
    if channel["jitter_ns"]:
        words.append(f"{_time(max(channel['jitter_ns'], least))} distribution normal")
    words.append(_loss(channel))
    for name in ("duplicate", "corrupt", "reorder"):
        if channel[name]:
            words.append(f"{name} {_percent(channel[name])}")
    if channel["reorder"]:
        words.append("gap 1")
    elif channel["jitter_ns"]:
        # with a rate, however large, netem keeps packets in order
        words.append("rate 100gbit")
    return " ".join(word for word in words if word)


def _loss(channel: Channel) -> str:
    loss = channel["loss"]
    if not channel["up"]:
        return "loss 100%"
    match loss["kind"]:
        case "random":
            return f"loss random {_percent(loss['probability'])}"
        case "gilbert-elliott":
            chain = (loss["good_to_bad"], loss["bad_to_good"], loss["bad_loss"], loss["good_loss"])
            return "loss gemodel " + " ".join(map(_percent, chain))
        case "timed-gilbert-elliott":
            raise EngineError(
                "netem has no loss 'timed-gilbert-elliott' (--engine sim has): its chain moves per packet"
            )
        case "periodic":
            raise EngineError("netem has no loss 'periodic' (--engine sim has): its losses are drawn")
        case _:
            return ""


def _bottleneck_of_link(channel: Channel, packet: int) -> str:
    return "" if at_host(channel) else _bottleneck(channel, packet)


def _bottleneck(channel: Channel, packet: int) -> str:
    rate = channel["rate_bps"]
    if rate is None:
        return ""
    queue = channel["queue"]
    overhead = channel["overhead_bytes"] - ETHERNET
    if queue["kind"] == "drop-tail" and _packet_by_packet(channel):
        packets = queue["packets"]
        limit = _UNLIMITED if packets is None else packets + 1
        more = f" {overhead}" if overhead else ""
        return f"netem limit {limit} rate {rate}bit{more}"
    return _tbf(channel, packet)


def _tbf(channel: Channel, packet: int) -> str:
    rate, queue = channel["rate_bps"], channel["queue"]
    if channel["overhead_bytes"] != ETHERNET:
        raise EngineError("Linux takes another overhead than 14 bytes only on links with a queue in packets")
    burst = max(channel["burst_bytes"], packet)
    room = packet if not channel["burst_bytes"] else 0
    most = queue["bytes"] if queue["kind"] == "drop-tail" else None
    limit = _UNLIMITED * packet if most is None else most + room
    return f"tbf rate {rate}bit burst {burst}b limit {min(limit, _MOST_BYTES)}b"


def _packet_by_packet(channel: Channel) -> bool:
    """Whether netem's own serialisation does: it allows no burst, counts packets, and stands no duplicates above it."""
    queue = channel["queue"]
    plain = queue["kind"] == "drop-tail" and queue["bytes"] is None
    return plain and not channel["burst_bytes"] and not channel["duplicate"]


def _inner_queue(channel: Channel) -> str:
    if channel["rate_bps"] is None or at_host(channel) or _packet_by_packet(channel):
        return ""
    return _queue_of_tbf(channel)


def _queue_of_tbf(channel: Channel) -> str:
    queue = channel["queue"]
    match queue["kind"]:
        case "drop-tail":
            if queue["packets"] is None:
                return ""
            if queue["bytes"] is not None:
                raise EngineError("Linux takes a queue limit in packets or in bytes, not both")
            return f"pfifo limit {queue['packets']}"
        case "codel":
            ecn = "ecn" if queue["ecn"] else "noecn"
            target, interval = queue["target_ns"] / 1e3, queue["interval_ns"] / 1e3
            return f"codel limit {queue['limit']} target {target}us interval {interval}us {ecn}"
        case "pie":
            return _pie(queue)
        case "drr":
            return _drr(queue)
        case "fq-codel":
            return _fq_codel(queue)
        case "fq-pie":
            return _fq_pie(queue)
        case "dualpi2":
            raise EngineError("the tc of iproute2 6.1 cannot set up queue 'dualpi2' (--engine sim has)")
        case kind:
            *first, last = QUEUES
            raise EngineError(f"Linux has no queue '{kind}'; it has {', '.join(first)} and {last}")


def _pie(queue: PieQueue) -> str:
    return f"pie limit {queue['limit']} {_control_of_pie(queue)}"


def _control_of_pie(queue: PieQueue | FqPieQueue) -> str:
    gains = [gain * _GAIN for gain in (queue["alpha"], queue["beta"])]
    if any(gain != int(gain) or gain > _MAX_GAIN for gain in gains):
        raise EngineError(f"Linux takes {queue['kind']}'s alpha and beta in sixteenths up to {_MAX_GAIN // _GAIN}")
    ecn = "ecn" if queue["ecn"] else "noecn"
    times = f"target {queue['target_ns'] / 1e3}us tupdate {queue['tupdate_ns'] / 1e3}us"
    alpha, beta = map(int, gains)
    return f"{times} alpha {alpha} beta {beta} {ecn}"


def _fq_pie(queue: FqPieQueue) -> str:
    """The probability up to which it marks is a whole number of percent there."""
    percent = queue["ecn_prob"] * 100
    if abs(percent - round(percent)) > 1e-9:
        raise EngineError("Linux takes fq-pie's ecn_prob in whole percent")
    size = f"flows {queue['flows']} quantum {queue['quantum_bytes']} ecn_prob {round(percent)}"
    return f"fq_pie limit {queue['limit']} {size} {_control_of_pie(queue)}"


def _drr(queue: DrrQueue) -> str:
    """sfq: tc's drr has a limit for each class, and none for all."""
    if queue["limit"] > _SFQ_DEPTH:
        raise EngineError(f"Linux (sfq) takes a limit of drr up to {_SFQ_DEPTH} packets, as one flow may have no more")
    if queue["flows"] & (queue["flows"] - 1):
        raise EngineError("Linux (sfq) hashes flows of drr to a power of two of queues")
    return f"sfq limit {queue['limit']} quantum {queue['quantum_bytes']}b divisor {queue['flows']}"


def _fq_codel(queue: FqCodelQueue) -> str:
    ecn = "ecn" if queue["ecn"] else "noecn"
    times = f"target {queue['target_ns'] / 1e3}us interval {queue['interval_ns'] / 1e3}us"
    size = f"quantum {queue['quantum_bytes']} flows {queue['flows']} drop_batch {queue['drop_batch']}"
    return f"fq_codel limit {queue['limit']} {size} {times} {ecn}"


def _percent(probability: float) -> str:
    return f"{probability * 100:.10g}%"


def _time(nanoseconds: int) -> str:
    return f"{nanoseconds / 1000:.3f}us"
