"""The tables of a plan. Made by generators/plan_types.py from those in crates/lab/src/plan.rs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from typing_extensions import ReadOnly


class AckFrequency(TypedDict):
    """How often a peer of QUIC is asked to acknowledge (draft-ietf-quic-ack-frequency-14 section 4)."""

    max_delay_ns: ReadOnly[NotRequired[int | None]]
    """Longest delay of an acknowledgement; absent: the peer's own."""
    packets: ReadOnly[int]
    """Ack-eliciting packets that are acknowledged together."""
    reordering: ReadOnly[int]
    """Packet numbers by which a packet may be overtaken before that is acknowledged at once; 0: however many."""


AckPath: TypeAlias = Literal["same", "fastest", "scheduler"]
"""Which path of Multipath QUIC carries an acknowledgement that no data packet takes along (RFC 10069 section 5.1 leaves it open)."""


class App(TypedDict):
    """A controller as an os-ken application. The engine's owner runs it; the engine has the switches' ends of the control links."""

    file: ReadOnly[str]
    modules: ReadOnly[NotRequired[Mapping[str, str]]]
    """The modules beside it that it uses, by file."""
    source: ReadOnly[str]


class Application(TypedDict):
    """An application between two hosts."""

    client: ReadOnly[int]
    """Index into `nodes`."""
    client_stack: ReadOnly[NotRequired[Stack | None]]
    """Where this application differs from its hosts' stacks."""
    destination: ReadOnly[NotRequired[str | None]]
    """The address that the client connects to; absent: the server's first."""
    group: ReadOnly[NotRequired[str | None]]
    """Whose figures it counts for, with others."""
    name: ReadOnly[str]
    port: ReadOnly[int]
    program: ReadOnly[NotRequired[Program | None]]
    """The program that plays it where programs run; the simulator has its own model of it. Absent: the project's own."""
    server: ReadOnly[int]
    server_stack: ReadOnly[NotRequired[Stack | None]]
    source: ReadOnly[NotRequired[str | None]]
    """The address that the client connects from; absent: its first."""
    start_ns: ReadOnly[int]
    transport: ReadOnly[Transport]
    work: ReadOnly[Work]


class Attachment(TypedDict):
    interface: ReadOnly[int]
    """Index into the node's `interfaces`."""
    node: ReadOnly[int]
    """Index into `nodes`."""


class BridgePriority(TypedDict):
    """A bridge's priority, the lower the more likely it is the root."""

    node: ReadOnly[int]
    priority: ReadOnly[int]


class Bridging(TypedDict):
    """How routers and switches are Ethernet bridges."""

    ageing_ns: ReadOnly[int]
    """How long an address is known without a frame from there."""
    priorities: ReadOnly[NotRequired[Sequence[BridgePriority]]]
    """Of bridges that have another one than 32768."""
    protocol: ReadOnly[Choice]
    """By which they find their tree, of registry `spanning-tree`."""


Buffer: TypeAlias = Sequence[int]
"""Minimum, default and maximum size of a buffer in bytes."""


class BufferVideoRule(TypedDict):
    """By what is buffered: BBA-0."""

    cushion_ns: ReadOnly[int]
    kind: ReadOnly[Literal["buffer"]]
    reservoir_ns: ReadOnly[int]


class BulkWork(TypedDict):
    """Settings of a transfer."""

    abort: ReadOnly[NotRequired[bool]]
    """
    Its sender aborts the connection at the end of `duration` in place of closing it: by MP_FASTCLOSE (RFC 8684 section 3.5),
    over plain TCP by a reset.
    """
    duration_ns: ReadOnly[NotRequired[int | None]]
    """How long it sends."""
    first_bytes: ReadOnly[NotRequired[int]]
    """How much an end sends before its `pause`."""
    kind: ReadOnly[Literal["bulk"]]
    pause_ns: ReadOnly[NotRequired[int]]
    """How long an end that sends then waits before the rest."""
    reverse: ReadOnly[NotRequired[bool]]
    """The server sends."""
    reverse_bytes: ReadOnly[NotRequired[int | None]]
    """How much the server sends at the same time, while the client sends `size`."""
    size_bytes: ReadOnly[NotRequired[int | None]]
    """How much it sends; "0 B": the connection is opened and closed."""


Carriage: TypeAlias = Literal["datagrams", "stream"]
"""How a tunnel carries packets."""


class CbrWork(TypedDict):
    """Settings of datagrams at a constant rate."""

    duration_ns: ReadOnly[int]
    """How long it sends; left out: to the end of the run."""
    kind: ReadOnly[Literal["cbr"]]
    packet_bytes: ReadOnly[int]
    """Bytes of a datagram's payload."""
    rate_bps: ReadOnly[int]
    """Offered rate."""


class Channel(TypedDict):
    """One direction of a link."""

    burst_bytes: ReadOnly[NotRequired[int]]
    """Token-bucket depth; 0: packets leave one after the other at the rate."""
    bypass_bytes: ReadOnly[NotRequired[int]]
    """Packets of up to this IP length neither wait nor take time to send."""
    corrupt: ReadOnly[NotRequired[float]]
    """Probability that a packet arrives with a wrong checksum."""
    delay_ns: ReadOnly[NotRequired[int]]
    duplicate: ReadOnly[NotRequired[float]]
    icmp: ReadOnly[NotRequired[bool]]
    """Whether senders of longer ones are told, where the link begins at a router."""
    jitter_ns: ReadOnly[NotRequired[int]]
    """Normally distributed extra delay around `delay_ns`, standard deviation; packets keep their order unless `reorder` says otherwise."""
    loss: ReadOnly[NotRequired[Loss]]
    mtu: ReadOnly[NotRequired[int | None]]
    """Longest IP packet in bytes; absent: any."""
    overhead_bytes: ReadOnly[NotRequired[int]]
    """Link-layer bytes that each packet takes besides its IP length, in rate and byte limits."""
    queue: ReadOnly[NotRequired[Queue]]
    queue_at: ReadOnly[NotRequired[QueueAt]]
    rate_bps: ReadOnly[NotRequired[int | None]]
    """Absent: no serialisation time and no queue."""
    reorder: ReadOnly[NotRequired[float]]
    """Probability that a packet is sent at once, past those delayed (netem's reorder)."""
    trace: ReadOnly[NotRequired[Trace | None]]
    """In place of a rate; `rate_bps`, if present, is what it gives on average."""
    up: ReadOnly[NotRequired[bool]]
    wifi: ReadOnly[NotRequired[Wifi | None]]
    """In place of a rate; `rate_bps`, if present, is what is sent while data is sent, on average."""


class Choice(TypedDict):
    """An algorithm by name, with parameters, as the registries know it."""

    name: ReadOnly[str]
    parameters: ReadOnly[NotRequired[Mapping[str, Any]]]


class CodelQueue(TypedDict):
    """Settings of CoDel."""

    ecn: ReadOnly[NotRequired[bool]]
    """Mark packets of ECN-capable transports instead of dropping them."""
    interval_ns: ReadOnly[int]
    """Time in which the delay must come down."""
    kind: ReadOnly[Literal["codel"]]
    limit: ReadOnly[int]
    """Longest queue."""
    target_ns: ReadOnly[int]
    """Acceptable standing delay."""


ControlPath: TypeAlias = Literal["fastest", "scheduler"]
"""Which path of Multipath QUIC carries control frames that no data packet takes along."""


class Controller(TypedDict):
    """A controller of all routers and switches, each of which has a control link to it."""

    app: ReadOnly[NotRequired[App | None]]
    """What rules in place of a routing: a program outside of the simulator that speaks OpenFlow."""
    delay_ns: ReadOnly[NotRequired[int]]
    idle_timeout_ns: ReadOnly[NotRequired[int | None]]
    """How long an entry for a flow stays without a packet; absent: for good."""
    mode: ReadOnly[NotRequired[Mode]]
    processing_ns: ReadOnly[NotRequired[int]]
    """How long the controller works on one message."""
    rate_bps: ReadOnly[NotRequired[int | None]]
    """Of each control link, in each direction; absent: messages take no time to send."""
    routing: ReadOnly[NotRequired[Choice | None]]
    """Present unless there is an application."""


Delivery: TypeAlias = Literal["datagrams", "stream"]
"""How messages are carried."""


Direction: TypeAlias = Literal["forward", "backward", "both"]


class DropTailQueue(TypedDict):
    """Settings of a queue that drops what does not fit. Limits count waiting packets, the one being sent not included."""

    bytes: ReadOnly[NotRequired[int | None]]
    """Longest queue in bytes."""
    kind: ReadOnly[Literal["drop-tail"]]
    packets: ReadOnly[NotRequired[int | None]]
    """Longest queue in packets, the one being sent not counted."""


class DrrQueue(TypedDict):
    """Settings of DRR."""

    flows: ReadOnly[int]
    """Queues that flows are hashed to."""
    kind: ReadOnly[Literal["drr"]]
    limit: ReadOnly[int]
    """Most packets of all flows; beyond it the longest queue loses its last one."""
    quantum_bytes: ReadOnly[int]
    """What a flow may send in its turn; a packet of Ethernet by default."""


class Dualpi2Queue(TypedDict):
    """Settings of DualPI2."""

    alpha: ReadOnly[float]
    """What each second of delay beyond `target` adds to the probability at an update."""
    beta: ReadOnly[float]
    """What each second by which the delay has grown since the last update adds."""
    classic_share: ReadOnly[float]
    """The least share of the link that the classic queue gets while packets wait in both."""
    coupling: ReadOnly[int]
    """The low-latency queue is marked with so many times the probability whose square the classic queue has."""
    drop_overload: ReadOnly[bool]
    """Once the low-latency queue would mark all packets, drop packets in both queues instead of letting them grow to `limit`."""
    kind: ReadOnly[Literal["dualpi2"]]
    limit: ReadOnly[int]
    """Longest queue, of both together."""
    step_from: ReadOnly[int]
    """Only packets with which the low-latency queue is so long on arrival are marked by `step`."""
    step_ns: ReadOnly[int]
    """Delay of the low-latency queue above which each of its packets is marked."""
    target_ns: ReadOnly[int]
    """Delay of the classic queue that it steers to."""
    tupdate_ns: ReadOnly[int]
    """Time between two updates of the probability."""


class EndpointAction(TypedDict):
    """Takes the endpoints of an interface's addresses away, which stay, or adds them again (`ip mptcp endpoint delete`, `add`)."""

    endpoint: ReadOnly[bool]
    interface: ReadOnly[int]
    kind: ReadOnly[Literal["endpoint"]]
    node: ReadOnly[int]


class Event(TypedDict):
    """A change at a time."""

    action: ReadOnly[Action]
    at_ns: ReadOnly[int]


class FetchWork(TypedDict):
    """Settings of a fetch."""

    count: ReadOnly[NotRequired[int]]
    """Number of files."""
    kind: ReadOnly[Literal["fetch"]]
    parallel: ReadOnly[NotRequired[int]]
    """Files that are asked for at once, over QUIC."""
    size_bytes: ReadOnly[int]
    """Bytes of a file."""
    streams: ReadOnly[NotRequired[Streams]]
    """
    Over QUIC: each file has a stream of its own, and all are sent in turn (`each`); the same, and what was asked for
    first is sent first, by the priority of its stream (`ordered`); all come in order on one stream (`one`).
    """
    tls: ReadOnly[NotRequired[Tls | None]]
    """
    Over TLS: the full handshake of version 1.2 (RFC 5246, two round trips) or 1.3 (RFC 8446, one) comes first and
    counts for the first file, and records add their bytes; left out: plain HTTP.
    """


class FixedVideoRule(TypedDict):
    """Always the same one, by its place among the rates, from 0."""

    kind: ReadOnly[Literal["fixed"]]
    representation: ReadOnly[int]


class FlushAction(TypedDict):
    """The host's path manager forgets all of its endpoints (`ip mptcp endpoint flush`)."""

    kind: ReadOnly[Literal["flush"]]
    node: ReadOnly[int]


class FqCodelQueue(TypedDict):
    """Settings of FQ-CoDel."""

    drop_batch: ReadOnly[int]
    """Most packets that it loses then."""
    ecn: ReadOnly[NotRequired[bool]]
    """Mark packets of ECN-capable transports instead of dropping them."""
    flows: ReadOnly[int]
    """Queues that flows are hashed to."""
    interval_ns: ReadOnly[int]
    """Time in which the delay must come down."""
    kind: ReadOnly[Literal["fq-codel"]]
    limit: ReadOnly[int]
    """Most packets of all flows; beyond it the longest queue loses half of its bytes."""
    quantum_bytes: ReadOnly[int]
    """What a flow may send in its turn; a packet of Ethernet by default."""
    target_ns: ReadOnly[int]
    """Acceptable standing delay."""


class FqPieQueue(TypedDict):
    """Settings of FQ-PIE."""

    alpha: ReadOnly[float]
    """What each second of delay beyond `target` adds to a probability at an update, before it is scaled down at low probabilities."""
    beta: ReadOnly[float]
    """What each second by which the delay has grown since the last update adds."""
    ecn: ReadOnly[NotRequired[bool]]
    """Mark packets of ECN-capable transports while the flow's probability is at most `ecn_prob`, instead of dropping them."""
    ecn_prob: ReadOnly[NotRequired[float]]
    """Probability above which ECN-capable packets are dropped, too."""
    flows: ReadOnly[int]
    """Queues that flows are hashed to."""
    kind: ReadOnly[Literal["fq-pie"]]
    limit: ReadOnly[int]
    """Most packets of all flows."""
    quantum_bytes: ReadOnly[int]
    """What a flow may send in its turn; a packet of Ethernet by default."""
    target_ns: ReadOnly[int]
    """Delay of a flow's queue that it steers to."""
    tupdate_ns: ReadOnly[int]
    """Time between two updates of the drop probabilities."""


Framing: TypeAlias = Literal["connect-ip", "connect-udp"]
"""What a tunnel carries of each packet."""


class FullmeshAction(TypedDict):
    """Gives the endpoints of an interface's addresses flag `fullmesh` or takes it away (`ip mptcp endpoint change`)."""

    fullmesh: ReadOnly[bool]
    interface: ReadOnly[int]
    kind: ReadOnly[Literal["fullmesh"]]
    node: ReadOnly[int]


class GilbertElliottLoss(TypedDict):
    """Settings of the chain."""

    bad_loss: ReadOnly[float]
    """Loss probability in the bad state."""
    bad_to_good: ReadOnly[float]
    """Probability of leaving the bad state."""
    good_loss: ReadOnly[float]
    """Loss probability in the good state."""
    good_to_bad: ReadOnly[float]
    """Probability of entering the bad state."""
    kind: ReadOnly[Literal["gilbert-elliott"]]


class Interface(TypedDict):
    addresses: ReadOnly[NotRequired[Sequence[str]]]
    backup: ReadOnly[NotRequired[bool]]
    """Subflows that the host opens from this interface ask the peer to be backups (RFC 8684 section 3.3.8)."""
    name: ReadOnly[str]


class InterfaceAction(TypedDict):
    """Takes a host's interface down or up; its host is told (unlike a link that fails further away)."""

    interface: ReadOnly[int]
    kind: ReadOnly[Literal["interface"]]
    node: ReadOnly[int]
    up: ReadOnly[bool]


class Keepalive(TypedDict):
    """
    Probes of an idle peer (RFC 9293 section 3.8.4; Linux tcp_keepalive_time, tcp_keepalive_intvl, tcp_keepalive_probes).
    After `probes` unanswered ones it is gone.
    """

    interval_ns: ReadOnly[int]
    probes: ReadOnly[int]
    time_ns: ReadOnly[int]


class Link(TypedDict):
    """A bidirectional link between two interfaces; `forward` carries from a to b."""

    a: ReadOnly[Attachment]
    b: ReadOnly[Attachment]
    backward: ReadOnly[Channel]
    cap_bytes: ReadOnly[NotRequired[int | None]]
    forward: ReadOnly[Channel]
    middleboxes: ReadOnly[NotRequired[Sequence[Choice]]]
    """What stands at the link's end that is not a host's, or at `b` if both or none are, in order from `a` to `b`."""
    name: ReadOnly[str]
    price_per_gb: ReadOnly[NotRequired[float | None]]
    """What 10^9 bytes cost, in any currency. Results read it; it changes nothing of the run, and nor does the cap."""


class LinkAction(TypedDict):
    """Changes what is given of a link; the rest stays."""

    delay_ns: ReadOnly[NotRequired[int | None]]
    direction: ReadOnly[Direction]
    kind: ReadOnly[Literal["link"]]
    link: ReadOnly[int]
    loss: ReadOnly[NotRequired[Loss | None]]
    queue: ReadOnly[NotRequired[Queue | None]]
    rate_bps: ReadOnly[NotRequired[int | None]]
    up: ReadOnly[NotRequired[bool | None]]


class Medium(TypedDict):
    """A channel of the air that links share."""

    name: ReadOnly[str]


class MessagesWork(TypedDict):
    """Settings of messages."""

    bytes: ReadOnly[int]
    """Bytes of a message."""
    delivery: ReadOnly[NotRequired[Delivery]]
    """
    In DATAGRAM frames (RFC 9221), which are neither retransmitted nor kept in order, or one after the other in a
    stream. A message that fits no packet is refused as a datagram.
    """
    duration_ns: ReadOnly[int]
    """How long it sends; left out: to the end of the run."""
    interval_ns: ReadOnly[int]
    """Time from one message to the next."""
    kind: ReadOnly[Literal["messages"]]
    reverse: ReadOnly[NotRequired[bool]]
    """The server sends."""


class MigrateAction(TypedDict):
    """Moves the paths of a host's clients of QUIC from an interface to another one of the host (RFC 9000 section 9.2)."""

    interface: ReadOnly[int]
    kind: ReadOnly[Literal["migrate"]]
    node: ReadOnly[int]
    to: ReadOnly[int]


Mode: TypeAlias = Literal["proactive", "reactive", "hybrid"]
"""When a controller fills the tables."""


MtuProbing: TypeAlias = Literal["off"] | Literal["black-hole"] | Literal["on"]
"""When a sender looks for the path's MTU itself (RFC 4821, Linux tcp_mtu_probing: 0, 1, 2)."""


class Node(TypedDict):
    forwards: ReadOnly[NotRequired[bool]]
    """A host that forwards packets for others, too."""
    interfaces: ReadOnly[Sequence[Interface]]
    kind: ReadOnly[NodeKind]
    name: ReadOnly[str]
    stack: ReadOnly[NotRequired[Stack | None]]
    """Present on hosts."""


NodeKind: TypeAlias = Literal["host", "router", "switch"]


class NoneLoss(TypedDict):
    """A loss model and its settings."""

    kind: ReadOnly[Literal["none"]]


class Object(TypedDict):
    after: ReadOnly[NotRequired[Sequence[int]]]
    """Places of objects before this one; it is asked for when all of them have come."""
    name: ReadOnly[str]
    path: ReadOnly[str]
    """What the request asks for."""
    size_bytes: ReadOnly[int]
    think_ns: ReadOnly[NotRequired[int]]
    """From the request's last byte to the response's first."""


class OnOffWork(TypedDict):
    """Settings of bursts; on and off times are exponentially distributed around their means."""

    duration_ns: ReadOnly[int]
    """How long it sends; left out: to the end of the run."""
    kind: ReadOnly[Literal["on-off"]]
    off_ns: ReadOnly[int]
    """Mean time off."""
    on_ns: ReadOnly[int]
    """Mean time on."""
    packet_bytes: ReadOnly[int]
    """Bytes of a datagram's payload."""
    rate_bps: ReadOnly[int]
    """Rate while on."""


class PageWork(TypedDict):
    """Objects, each of which comes after those that it depends on."""

    kind: ReadOnly[Literal["page"]]
    objects: ReadOnly[NotRequired[Sequence[Object]]]
    of: ReadOnly[NotRequired[int | None]]
    """The application whose page it is, which this is one more connection for; absent: it has its own objects."""


class PeriodicLoss(TypedDict):
    """Settings of periodic losses."""

    every: ReadOnly[int]
    """Of so many packets the last one is lost."""
    kind: ReadOnly[Literal["periodic"]]


class PieQueue(TypedDict):
    """Settings of PIE."""

    alpha: ReadOnly[float]
    """What each second of delay beyond `target` adds to the probability at an update, before it is scaled down at low probabilities."""
    beta: ReadOnly[float]
    """What each second by which the delay has grown since the last update adds."""
    ecn: ReadOnly[NotRequired[bool]]
    """Mark packets of ECN-capable transports while the probability is at most 10 % (section 5.1), instead of dropping them."""
    kind: ReadOnly[Literal["pie"]]
    limit: ReadOnly[int]
    """Longest queue."""
    target_ns: ReadOnly[int]
    """Delay that it steers to."""
    tupdate_ns: ReadOnly[int]
    """Time between two updates of the drop probability."""


class PingPongWork(TypedDict):
    """Settings of a message that goes back and forth."""

    bytes: ReadOnly[int]
    """Bytes of the message."""
    count: ReadOnly[NotRequired[int | None]]
    """Number of round trips."""
    duration_ns: ReadOnly[NotRequired[int | None]]
    """How long it goes on."""
    kind: ReadOnly[Literal["ping-pong"]]


class PingWork(TypedDict):
    """Settings of echo requests."""

    count: ReadOnly[NotRequired[int | None]]
    """Number of requests."""
    duration_ns: ReadOnly[NotRequired[int | None]]
    """How long it goes on."""
    interval_ns: ReadOnly[int]
    """Time from one request to the next."""
    kind: ReadOnly[Literal["ping"]]
    payload_bytes: ReadOnly[int]
    """Bytes in a request after the ICMP header."""


class Plan(TypedDict):
    applications: ReadOnly[Sequence[Application]]
    bridging: ReadOnly[NotRequired[Bridging | None]]
    """Routers and switches are Ethernet bridges; absent: they are not."""
    controller: ReadOnly[NotRequired[Controller | None]]
    """What rules the routers and switches, which then forward by flow tables; absent: nothing does."""
    duration_ns: ReadOnly[int]
    """The run ends here at the latest, or when every application has ended."""
    events: ReadOnly[NotRequired[Sequence[Event]]]
    links: ReadOnly[Sequence[Link]]
    media: ReadOnly[NotRequired[Sequence[Medium]]]
    """Channels of the air that links over Wi-Fi share."""
    name: ReadOnly[str]
    nodes: ReadOnly[Sequence[Node]]
    record: ReadOnly[NotRequired[Record]]
    routes: ReadOnly[NotRequired[Sequence[Route]]]
    """Static routes; where none matches, the shortest path (fewest hops, then least delay) is taken."""
    routing: ReadOnly[NotRequired[Routing]]
    seed: ReadOnly[int]
    version: ReadOnly[int]


class Prefix(TypedDict):
    address: ReadOnly[str]
    length: ReadOnly[int]


class PriorityAction(TypedDict):
    """Changes the backup flag of the subflows of an interface, announced by MP_PRIO."""

    backup: ReadOnly[bool]
    interface: ReadOnly[int]
    kind: ReadOnly[Literal["priority"]]
    node: ReadOnly[int]


Action: TypeAlias = (
    LinkAction | InterfaceAction | PriorityAction | FullmeshAction | EndpointAction | FlushAction | MigrateAction
)


Profile: TypeAlias = Literal["rfc", "mptcp.org", "linux"]
"""Which implementation to follow where specifications leave room or implementations differ."""


Program: TypeAlias = Literal["iperf3"]
"""A program of others that can play an application."""


QueueAt: TypeAlias = Literal["link"] | Literal["host-netem"] | Literal["host-tbf"]
"""Where the queue of a direction is."""


class RandomLoss(TypedDict):
    """Settings of independent losses."""

    kind: ReadOnly[Literal["random"]]
    probability: ReadOnly[float]
    """Loss probability of a packet."""


class Record(TypedDict):
    """What is recorded."""

    account: ReadOnly[NotRequired[bool]]
    """Of each end that sends, what the links that bound it could carry, and why they did not."""
    decisions: ReadOnly[NotRequired[bool]]
    """One event for each scheduler decision."""
    interval_ns: ReadOnly[int]
    """Sampling interval."""
    memory_bytes: ReadOnly[NotRequired[int]]
    """A run that takes more memory is stopped."""
    segments: ReadOnly[NotRequired[bool]]
    """One row for each segment sent, for time-sequence plots."""
    snaplen: ReadOnly[NotRequired[int]]
    """Of each frame, captures keep so many bytes; 0: all."""


class RedQueue(TypedDict):
    """Settings of RED."""

    ecn: ReadOnly[NotRequired[bool]]
    """Mark packets of ECN-capable transports instead of dropping them."""
    gentle: ReadOnly[bool]
    """Above `max` the probability rises to 100 % at twice `max` instead of at once."""
    kind: ReadOnly[Literal["red"]]
    limit: ReadOnly[int]
    """Longest queue."""
    max: ReadOnly[float]
    """Average length at which `probability` is reached."""
    min: ReadOnly[float]
    """Average length from which packets are dropped."""
    probability: ReadOnly[float]
    """Drop probability at `max`."""
    weight: ReadOnly[float]
    """Weight of a new sample in the moving average; 1 takes the present length."""


class RelayWork(TypedDict):
    """What an application does, with its settings."""

    kind: ReadOnly[Literal["relay"]]
    of: ReadOnly[int]
    """The application whose bytes these are, by its place in the plan; it stands before."""


class RequestResponseWork(TypedDict):
    """Settings of requests and responses. The delay of one counts from the request's first byte sent to the response's last byte received."""

    count: ReadOnly[int]
    """Number of requests."""
    interval_ns: ReadOnly[int]
    """Sleep before each request."""
    kind: ReadOnly[Literal["request-response"]]
    request_bytes: ReadOnly[int]
    """Bytes of a request."""
    response_bytes: ReadOnly[int]
    """Bytes of a response."""
    think_ns: ReadOnly[NotRequired[int]]
    """Time from the request's last byte to the response's first."""


class Route(TypedDict):
    """A static route: packets at `node` whose source and destination match leave by `interface`."""

    destination: ReadOnly[Prefix]
    interface: ReadOnly[int]
    node: ReadOnly[int]
    source: ReadOnly[NotRequired[Prefix | None]]
    """Absent: any source."""


Routing: TypeAlias = Literal["shortest-path", "ecmp", "in-turn", "spread"]
"""How a path is chosen among those of fewest hops."""


SlowStart: TypeAlias = Literal["packets", "acks"]
"""What widens the window in slow start."""


class Stack(TypedDict):
    """Who speaks for a host, and its transport settings."""

    accurate_ecn: ReadOnly[NotRequired[bool]]
    """Accurate ECN feedback (RFC 9768), which goes back to `ecn` where the peer does not have it."""
    ack_frequency: ReadOnly[NotRequired[AckFrequency | None]]
    """QUIC offers its peer to acknowledge less often, and asks the same of a peer that offers it; absent: neither."""
    ack_path: ReadOnly[NotRequired[AckPath]]
    """
    Which path of Multipath QUIC carries acknowledgements that travel alone: the one that they are about, the one of
    lowest RTT, or the one that the packet scheduler gives them.
    """
    add_addr_timeout_ns: ReadOnly[NotRequired[int]]
    """
    Longest wait for the echo of an announced address before it is announced again (net.mptcp.add_addr_timeout); 0: it is
    announced once.
    """
    add_addr_v6_port_drop_ts: ReadOnly[NotRequired[bool]]
    """
    Whether timestamps are left out of a segment that announces an address of IPv6 with a port, which has no room beside them
    (net.mptcp.add_addr_v6_port_drop_ts); if not, such an address is not announced.
    """
    allow_join_initial_addr_port: ReadOnly[NotRequired[bool]]
    """
    Whether the peer may join at the address and port that a connection began with (flag C, RFC 8684 section 3.1;
    net.mptcp.allow_join_initial_addr_port).
    """
    autotuning: ReadOnly[bool]
    """Whether the receive buffer grows by itself (tcp_moderate_rcvbuf)."""
    blackhole_timeout_ns: ReadOnly[NotRequired[int]]
    """
    How long a client of the profile `linux` leaves out MP_CAPABLE once SYNs with it were lost and one without was answered
    (net.mptcp.blackhole_timeout): twice as long each time that this happens again, at most 64 times; 0: not at all.
    """
    careful_resume: ReadOnly[NotRequired[bool]]
    """
    Whether a host of QUIC begins with half of the window that it last used on a path between the same addresses, once the
    first window has arrived and the round trip is alike (RFC 9959). Not with a congestion control that sets a rate.
    """
    checksum: ReadOnly[bool]
    """Ask for DSS checksums (RFC 8684 section 3.3)."""
    close_timeout_ns: ReadOnly[NotRequired[int]]
    """
    How long a connection outlives its last subflow in the profile `linux`, so that another may join it
    (net.mptcp.close_timeout).
    """
    congestion: ReadOnly[Choice]
    control_path: ReadOnly[NotRequired[ControlPath]]
    """
    Which path of Multipath QUIC carries packets of control frames alone, such as limits, connection ids and a path's
    status: the one of lowest RTT, or the one that the packet scheduler gives them. Probes and challenges are of a path
    and stay on it.
    """
    cork: ReadOnly[NotRequired[bool]]
    """
    Whether what is smaller than a segment waits for more (TCP_CORK, stronger than TCP_NODELAY): as long as something
    is in flight, then a retransmission timeout of at least 200 ms. The end of the stream takes it along, in the profile
    `linux` over TCP only.
    """
    delayed_ack_ns: ReadOnly[int]
    """Longest delay of an acknowledgement (RFC 1122 section 4.2.3.2)."""
    ecn: ReadOnly[bool]
    """Explicit congestion notification (RFC 3168)."""
    initial_window: ReadOnly[int]
    """Initial congestion window in segments (RFC 6928)."""
    keepalive: ReadOnly[NotRequired[Keepalive | None]]
    """Absent: no keep-alive, as sockets are by default."""
    mtu: ReadOnly[int]
    """Largest IP packet in bytes."""
    mtu_probing: ReadOnly[NotRequired[MtuProbing]]
    """
    Whether a sender looks for the path's MTU itself (RFC 4821, tcp_mtu_probing): `off`, `black-hole` (once timeouts
    make it suspect that packets vanish for their length) or `on` (from the first segment).
    """
    nagle: ReadOnly[bool]
    """Nagle's algorithm (RFC 896); off is TCP_NODELAY."""
    path_manager: ReadOnly[Choice]
    profile: ReadOnly[Profile]
    receive_buffer: ReadOnly[Buffer]
    """In bytes (tcp_rmem)."""
    recovery: ReadOnly[NotRequired[WindowReduction]]
    """
    How the window shrinks in loss recovery: `prr` (in proportion to what arrives, RFC 6937) or `classic` (to the
    threshold at once, so that nothing new leaves until as much has arrived; RFC 6675, RFC 6582).
    """
    resumption: ReadOnly[NotRequired[bool]]
    """
    Whether a client of QUIC resumes its TLS session with a server that it has met before, and a server lets clients do
    so (RFC 8446 section 2.2): the certificate is not sent again. Both must want it.
    """
    retry: ReadOnly[NotRequired[bool]]
    """
    Whether a server of QUIC has each client return a token before it keeps anything of it (RFC 9000 section 8.1.2);
    that takes a round trip.
    """
    rto_initial_ns: ReadOnly[int]
    """Retransmission timeout before the first round-trip sample (RFC 6298 section 2.1)."""
    rto_min_ns: ReadOnly[int]
    """Least retransmission timeout (RFC 6298 section 2.4)."""
    sack: ReadOnly[bool]
    """Selective acknowledgements (RFC 2018)."""
    scheduler: ReadOnly[Choice]
    send_buffer: ReadOnly[Buffer]
    """In bytes (tcp_wmem)."""
    send_paths: ReadOnly[NotRequired[Sequence[int]]]
    """Ids of the paths of Multipath QUIC that this host sends on while one of them works; none: all."""
    slow_start: ReadOnly[NotRequired[SlowStart]]
    """
    What widens the window by a segment in slow start: each of the `packets` that are acknowledged, or each of the `acks`,
    of however many packets (RFC 5681 section 3.1, and Linux before version 3.13). `bbr` has a rule of its own.
    """
    stack: ReadOnly[NotRequired[str | None]]
    """Who speaks QUIC: `polypath`, `noq` or a stack that is written elsewhere; absent: `polypath`."""
    stale_loss_cnt: ReadOnly[NotRequired[int]]
    """
    After how many periods of the connection's timer without a sign of its peer a subflow takes no more data in the profile
    `linux` (net.mptcp.stale_loss_cnt); 0: after none.
    """
    syn_retrans_before_tcp_fallback: ReadOnly[NotRequired[int | None]]
    """
    How often a SYN is sent again with MP_CAPABLE before it is left out (net.mptcp.syn_retrans_before_tcp_fallback); from 128 on
    it never is. Left out: 2 in the profile `linux`, 3 in the others.
    """
    timestamps: ReadOnly[bool]
    """Timestamps (RFC 7323 section 3)."""
    user_timeout_ns: ReadOnly[NotRequired[int]]
    """How long retransmission, a closed window or silence under keep-alive may last (TCP_USER_TIMEOUT); 0: no limit."""
    window_scaling: ReadOnly[bool]
    """Window scaling (RFC 7323 section 2)."""


class StepQueue(TypedDict):
    """Settings of step marking. Lengths count waiting packets, the one being sent not included."""

    kind: ReadOnly[Literal["step"]]
    limit: ReadOnly[int]
    """Longest queue."""
    mark_above: ReadOnly[int]
    """A packet that finds more than this waiting is marked if its transport is ECN-capable."""


Queue: TypeAlias = (
    DropTailQueue | RedQueue | CodelQueue | PieQueue | DrrQueue | FqCodelQueue | StepQueue | FqPieQueue | Dualpi2Queue
)
"""A queue discipline and its settings."""


class StreamWork(TypedDict):
    """Settings of a stream."""

    block_bytes: ReadOnly[int]
    """Bytes written at a time (iperf3's default)."""
    duration_ns: ReadOnly[NotRequired[int | None]]
    """How long it sends."""
    kind: ReadOnly[Literal["stream"]]
    rate_bps: ReadOnly[int]
    """Offered rate."""
    reverse: ReadOnly[NotRequired[bool]]
    """The server sends."""


Streams: TypeAlias = Literal["each", "ordered", "one"]
"""Which streams of QUIC carry the files of a fetch."""


class ThroughputVideoRule(TypedDict):
    """By the harmonic mean of the rates of the last `window` segments, times `safety`."""

    kind: ReadOnly[Literal["throughput"]]
    safety: ReadOnly[float]
    window: ReadOnly[int]


class TimedGilbertElliottLoss(TypedDict):
    """Settings of the chain."""

    bad_loss: ReadOnly[float]
    """Loss probability in the bad state."""
    bad_time_ns: ReadOnly[int]
    """Mean time in the bad state (exponential)."""
    good_loss: ReadOnly[float]
    """Loss probability in the good state."""
    good_time_ns: ReadOnly[int]
    """Mean time in the good state (exponential)."""
    kind: ReadOnly[Literal["timed-gilbert-elliott"]]


Loss: TypeAlias = NoneLoss | RandomLoss | PeriodicLoss | GilbertElliottLoss | TimedGilbertElliottLoss
"""A loss model and its settings."""


Tls: TypeAlias = Literal["1.2", "1.3"]
"""The version of TLS that a fetch runs over."""


class Trace(TypedDict):
    """Delivery opportunities of 1500 bytes (and `overhead_bytes`) each, over and over."""

    gaps_ms: ReadOnly[Sequence[tuple[int, int]]]
    """Pairs of a gap in ms and how many opportunities follow one another at it, the first one after 0; their sum is the period."""
    name: ReadOnly[str]
    """What it is called, for people."""


Transport: TypeAlias = Literal["tcp", "mptcp", "quic", "mpquic", "udp", "icmp"]


class TunnelWork(TypedDict):
    """Settings of a tunnel."""

    carriage: ReadOnly[NotRequired[Carriage]]
    """In DATAGRAM frames, or one after the other in a stream. The stream repeats what is lost, and what follows waits."""
    framing: ReadOnly[NotRequired[Framing]]
    """What is carried of a packet: all of it, or the payload of UDP alone. Other packets then go nowhere."""
    kind: ReadOnly[Literal["tunnel"]]
    link: ReadOnly[int]
    """The link whose packets it carries, by its place in the plan."""
    queue: ReadOnly[NotRequired[int]]
    """
    Packets that wait at each end while the connection may not send more. Further ones are dropped. The default is that of
    Linux's tun (TUN_READQ_SIZE).
    """
    reorder_ns: ReadOnly[NotRequired[int]]
    """How long a packet waits at the far end for those sent before it; 0: it goes on at once."""
    reorder_packets: ReadOnly[NotRequired[int]]
    """Packets that wait there at most."""
    weights: ReadOnly[NotRequired[Weights | None]]
    """Over UDP: packets on each line in turn, in the order of the client's interfaces; left out: one each."""


class Video(TypedDict):
    """Segments of `segment_ns` each, in one of several representations."""

    buffer_ns: ReadOnly[int]
    """The most that is held: no segment is asked for that would not fit."""
    rates_bps: ReadOnly[Sequence[int]]
    """Of the representations, ascending."""
    rule: ReadOnly[VideoRule]
    segment_ns: ReadOnly[int]
    segments: ReadOnly[NotRequired[int | None]]
    """Absent: the video does not end."""
    startup_ns: ReadOnly[int]
    """What has to be there before it plays, at the beginning and after a stall."""


VideoRule: TypeAlias = ThroughputVideoRule | BufferVideoRule | FixedVideoRule
"""Which representation comes next."""


class VideoWork(TypedDict):
    """Segments of `segment_ns` each, in one of several representations."""

    buffer_ns: ReadOnly[int]
    """The most that is held: no segment is asked for that would not fit."""
    rates_bps: ReadOnly[Sequence[int]]
    """Of the representations, ascending."""
    rule: ReadOnly[VideoRule]
    segment_ns: ReadOnly[int]
    segments: ReadOnly[NotRequired[int | None]]
    """Absent: the video does not end."""
    startup_ns: ReadOnly[int]
    """What has to be there before it plays, at the beginning and after a stall."""
    kind: ReadOnly[Literal["video"]]


Weights: TypeAlias = Sequence[int]
"""The weights of lines."""


class Wifi(TypedDict):
    """How one direction of a link sends over the air."""

    aggregate_bytes: ReadOnly[int]
    airtime_ns: ReadOnly[int]
    attempts: ReadOnly[int]
    """Times that a packet is sent before it is lost."""
    medium: ReadOnly[NotRequired[int | None]]
    """Index into `media`; absent: shared with the link's other direction alone."""
    packets: ReadOnly[int]
    """Bounds of an aggregate."""
    short_guard: ReadOnly[bool]
    """Whether the guard interval is 400 ns in place of 800."""
    standard: ReadOnly[str]
    """By name: the registry's kind `wifi`."""
    states: ReadOnly[Sequence[WifiState]]
    """The first one holds at the start."""
    streams: ReadOnly[int]
    """Spatial streams that are chosen apart from the MCS."""
    width_mhz: ReadOnly[int]


class WifiState(TypedDict):
    """A state of a Markov chain in continuous time."""

    dwell_ns: ReadOnly[NotRequired[int | None]]
    """Mean time in the state (exponential); absent: it is never left."""
    error: ReadOnly[float]
    """Probability that a packet has to be sent again."""
    mcs: ReadOnly[int]
    """Index of modulation and coding."""
    next: ReadOnly[NotRequired[Sequence[float]]]
    """The probability of each state to follow."""


WindowReduction: TypeAlias = Literal["prr", "classic"]
"""How the window shrinks in loss recovery."""


Work: TypeAlias = (
    BulkWork
    | StreamWork
    | RequestResponseWork
    | FetchWork
    | PingPongWork
    | MessagesWork
    | VideoWork
    | PageWork
    | RelayWork
    | TunnelWork
    | PingWork
    | CbrWork
    | OnOffWork
)
"""What an application does, with its settings."""
