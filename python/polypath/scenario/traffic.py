"""What runs in a scenario: applications, events, the record."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from polypath.scenario import pages
from polypath.scenario.base import Model
from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import IP, Depth, Name, Period, Rate, Size, Time, fault
from polypath.scenario.matrices import AnyMatrix
from polypath.scenario.network import Loss, Queue
from polypath.scenario.players import AnyRule, Fixed, Throughput
from polypath.scenario.sizes import AnySizes
from polypath.scenario.stack import Stack

KIB = 1024
MS = 1_000_000

_LADDER = (300_000, 750_000, 1_200_000, 1_850_000, 2_850_000, 4_300_000)
_SHORTEST_SEGMENT = 10 * MS


class Application(Model):
    """What every application has."""

    name: Name | None = None
    """Left out: its kind, numbered if there are several."""
    client: str = "client"
    """The host that starts it."""
    server: str = "server"
    """The host that answers."""
    matrix: AnyMatrix | None = None
    """Instead of client and server: who sends to whom among all hosts, "permutation", or a table with parameters; drawn
    anew for each seed."""
    source: IP | None = None
    """The client's address; left out: its first."""
    destination: IP | None = None
    """The server's address; left out: its first of the same family."""
    start: Time = 0
    """When it starts."""
    start_jitter: Time = 0
    """At most how much later it starts: a time drawn anew for each seed, evenly from none to this. Against phase
    effects, where runs of all seeds are one and the same run."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """The server's port; left out: 5001 and upwards, in the applications' order."""
    stack: Stack = Field(default_factory=Stack.empty)
    """Where its transport differs from its hosts' on both sides."""
    client_stack: Stack = Field(default_factory=Stack.empty)
    """Where its transport differs at the client."""
    server_stack: Stack = Field(default_factory=Stack.empty)
    """Where its transport differs at the server."""
    group: Name | None = None
    """Whose figures it counts for together with others of the same group; flows that arrive are their application's."""

    @property
    def is_left_out(self) -> bool:
        return False


class StreamApplication(Application):
    """An application over a byte stream."""

    transport: Literal["mptcp", "tcp", "mpquic", "quic"] = "mptcp"
    """Multipath TCP, TCP, Multipath QUIC (RFC 10069), or QUIC."""


class MeasuredApplication(StreamApplication):
    """An application that iperf3 knows, too."""

    program: Literal["iperf3"] | None = None
    """The program that plays it on the engines linux and live; left out: the project's own. The simulator has one
    model of both."""
    count: int = Field(default=1, ge=0, le=10_000)
    """Connections side by side (iperf3 -P), each of which sends as much; from two on, their names end in -1, -2, ..,
    and their ports count up. With 0 the application is left out."""

    @property
    def is_left_out(self) -> bool:
        return self.count == 0


class Bulk(MeasuredApplication):
    """As many bytes as the connection takes (iperf), for a time, up to a size, or to the end of the run."""

    kind: Literal["bulk"]
    duration: Period | None = None
    """How long it sends."""
    size: Depth | None = None
    """How much it sends; "0 B": the connection is opened and closed."""
    reverse: bool = False
    """The server sends."""
    reverse_size: Depth | None = None
    """How much the server sends at the same time, while the client sends `size`."""
    arrivals: float | None = Field(default=None, gt=0, le=1e6)
    """Flows that begin in a second, a Poisson process of all pairs of the matrix together: each is a connection of its
    own between one of the pairs, drawn anew. They begin from `start` on, for `duration` or to the end of the run."""
    sizes: AnySizes | None = None
    """With `arrivals`, in place of `size`: the distribution of the flows' sizes, "web-search", or a table."""

    @model_validator(mode="after")
    def _both_ways(self) -> Bulk:
        if self.reverse_size is None:
            return self
        if self.size is None or self.duration is not None:
            raise fault("a two-way transfer has two sizes: give 'size', and no 'duration'", at=("reverse_size",))
        for key in ("reverse", "arrivals", "program"):
            if getattr(self, key):
                raise fault(f"a two-way transfer has no '{key}'; leave one of them out", at=(key,))
        return self

    @model_validator(mode="after")
    def _flows(self) -> Bulk:
        if self.arrivals is not None and self.count > 1:
            raise fault("'arrivals' says how many connections there are; leave 'count' out", at=("count",))
        if self.arrivals is None and self.sizes is not None:
            raise fault("'sizes' are of flows that arrive; give 'arrivals', or one 'size'", at=("sizes",))
        if self.arrivals is not None and (self.sizes is None) == (self.size is None):
            raise fault("flows that arrive need either 'size' or 'sizes'", at=("arrivals",))
        if self.arrivals is not None and self.start_jitter:
            raise fault("flows that arrive begin at random anyway; leave 'start_jitter' out", at=("start_jitter",))
        return self


class Stream(MeasuredApplication):
    """Blocks at regular intervals so that a rate is offered (iperf3 -b)."""

    kind: Literal["stream"]
    rate: Rate
    """Offered rate."""
    block: Size = 128 * KIB
    """Bytes written at a time (iperf3's default)."""
    duration: Period | None = None
    """How long it sends."""
    reverse: bool = False
    """The server sends."""


class RequestResponse(StreamApplication):
    """Requests one after the other, each answered: sleep, send, wait."""

    kind: Literal["request-response"]
    count: int = Field(ge=1, le=10**9)
    """Number of requests."""
    interval: Time = 0
    """Sleep before each request."""
    request: Size
    """Bytes of a request."""
    response: Size
    """Bytes of a response."""
    think: Time = 0
    """Time from the request's last byte to the response's first."""


def _version(value: object) -> object:
    return str(value) if isinstance(value, float) else value


class Fetch(StreamApplication):
    """Files fetched on one connection: over HTTP/1.1, one after the other; over QUIC by HTTP/0.9, each on a stream."""

    kind: Literal["fetch"]
    size: Size
    """Bytes of a file."""
    count: int = Field(default=1, ge=1, le=10**9)
    """Number of files."""
    tls: Annotated[Literal["1.2", "1.3"], BeforeValidator(_version)] | None = None
    """Over TLS: the full handshake of version 1.2 (RFC 5246, two round trips) or 1.3 (RFC 8446, one) comes first and
    counts for the first file, and records add their bytes; left out: plain HTTP."""
    parallel: int = Field(default=1, ge=1, le=100)
    """Files that are asked for at once, over QUIC."""
    streams: Literal["each", "ordered", "one"] = "each"
    """Over QUIC: each file has a stream of its own, and all are sent in turn (`each`); the same, and what was asked for
    first is sent first, by the priority of its stream (`ordered`); all come in order on one stream (`one`)."""


class PingPong(StreamApplication):
    """A message back and forth without pause: the delay that an application sees without a standing queue."""

    kind: Literal["ping-pong"]
    size: Size
    """Bytes of the message."""
    count: int | None = Field(default=None, ge=1, le=10**9)
    """Number of round trips."""
    duration: Period | None = None
    """How long it goes on."""


class Messages(Application):
    """A message at regular intervals over QUIC, each with a delay of its own: a call, a game, a camera."""

    kind: Literal["messages"]
    transport: Literal["mpquic", "quic"] = "mpquic"
    """Multipath QUIC (RFC 10069) or QUIC."""
    size: Size
    """Bytes of a message."""
    interval: Period | None = None
    """Time from one message to the next; needed unless `rate` is given."""
    rate: Rate | None = None
    """Offered rate; needed unless `interval` is given."""
    delivery: Literal["datagrams", "stream"] = "datagrams"
    """In DATAGRAM frames (RFC 9221), which are neither retransmitted nor kept in order, or one after the other in a
    stream. A message that fits no packet is refused as a datagram."""
    duration: Period | None = None
    """How long it sends; left out: to the end of the run."""
    reverse: bool = False
    """The server sends."""

    @model_validator(mode="after")
    def _one_pace(self) -> Messages:
        if (self.interval is None) == (self.rate is None):
            raise fault("messages need either 'interval' or 'rate'")
        return self


class Video(StreamApplication):
    """Adaptive video over HTTP/1.1 (DASH): segments one after the other on one connection, each at the rate that the
    player's rule chooses; over QUIC all on one stream."""

    kind: Literal["video"]
    rates: list[Rate] = Field(default_factory=lambda: list(_LADDER), max_length=100)
    """Of the representations, ascending; left out: those of Mao et al., SIGCOMM 2017."""
    segment: Period = 4000 * MS
    """Time that a segment plays; its size follows from its rate."""
    length: Period | None = None
    """Of the video; the last segment is a whole one. Left out: it does not end."""
    buffer: Period = 30_000 * MS
    """The most that the player holds: it asks for no segment that would not fit."""
    startup: Period | None = None
    """What has to be there before it plays, at the beginning and after a stall; left out: a segment."""
    rule: AnyRule = Field(default_factory=lambda: Throughput(kind="throughput"))
    """How the next rate is chosen: "throughput", "buffer", "fixed", or a table with parameters."""

    @model_validator(mode="after")
    def _fits(self) -> Video:
        if not self.rates:
            raise fault("a video needs a rate", at=("rates",))
        if any(after <= before for before, after in itertools.pairwise(self.rates)):
            raise fault("the rates rise from one to the next", at=("rates",))
        if self.segment < _SHORTEST_SEGMENT:
            raise fault("a segment plays for 10 ms at least", at=("segment",))
        if self.buffer < self.segment:
            raise fault("the buffer has no room for a segment", at=("buffer",))
        if self.startup is not None and self.startup > self.buffer:
            raise fault("more than the buffer holds never comes", at=("startup",))
        if isinstance(self.rule, Fixed) and self.rule.representation >= len(self.rates):
            raise fault(f"there are {len(self.rates)} rates, numbered from 0", at=("rule", "representation"))
        return self


class PageObject(Model):
    """An object of a page."""

    name: str = Field(min_length=1, max_length=4000)
    """What it is called in the results and by objects that wait for it."""
    size: Depth
    """Bytes of the response's body."""
    after: list[str] = Field(default_factory=list)
    """Names of the objects that have to be there before it is asked for."""
    think: Time = 0
    """Time from the request's last byte to the response's first."""
    path: str | None = Field(default=None, pattern=r"^/[!-~]*$", max_length=4000)
    """What the request asks for; left out: made from the name."""


class Page(StreamApplication):
    """A web page: objects that wait for others, over HTTP/1.1 on several connections, one object at a time on each;
    over QUIC each on a stream of one connection."""

    kind: Literal["page"]
    objects: list[PageObject] = Field(default_factory=list, max_length=pages.MOST_OBJECTS)
    """The objects; needed unless a file gives them."""
    csv: str | None = None
    """A CSV file with the objects, relative to the scenario's, with columns `object`, `size_bytes`, and perhaps `after`
    (names, with spaces between them) and `think_ms`."""
    har: str | None = None
    """A HAR file with the objects, as browsers save it. What has no initiator there waits for the first one."""
    connections: int = Field(default=1, ge=1, le=100)
    """Over TCP: how many are opened, all at the start; from two on, their names end in -1, -2, .., and their ports
    count up. Browsers open six."""

    _of: str | None = PrivateAttr(default=None)

    @property
    def of(self) -> str | None:
        """The application that has the objects of which this is one more connection."""
        return self._of

    def side_by_side(self) -> list[Page]:
        """An application for each connection."""
        made = []
        for number in range(self.connections):
            port = None if self.port is None else self.port + number
            made.append(self.model_copy(update={"name": f"{self.name}-{number + 1}", "connections": 1, "port": port}))
            made[-1]._of = made[0].name if number else None
        return made

    def wanted(self) -> tuple[pages.Wanted, ...]:
        """The objects, each behind those that it waits for. Raises ScenarioError."""
        if self.csv is not None:
            return pages.of_csv(self.csv)
        if self.har is not None:
            return pages.of_har(self.har)
        own = (
            pages.Wanted(each.name, each.path or pages.path_of(each.name), each.size, tuple(each.after), each.think)
            for each in self.objects
        )
        return pages.ordered(list(own))

    @model_validator(mode="after")
    def _has_objects(self) -> Page:
        given = [key for key in ("objects", "csv", "har") if getattr(self, key)]
        if len(given) != 1:
            raise fault("a page takes its objects from one of 'objects', 'csv' and 'har'", at=tuple(given[1:2]))
        if self.connections > 1 and self.transport in ("quic", "mpquic"):
            raise fault("over QUIC the objects of a page are on streams of one connection", at=("connections",))
        try:
            self.wanted()
        except ScenarioError as error:
            raise fault(str(error), at=(given[0],)) from error
        return self


class Ping(Application):
    """ICMP echo requests."""

    kind: Literal["ping"]
    transport: Literal["icmp"] = "icmp"
    """Always ICMP."""
    interval: Period = 1000 * MS
    """Time from one request to the next."""
    payload: Size = 56
    """Bytes in a request after the ICMP header."""
    count: int | None = Field(default=None, ge=1, le=10**9)
    """Number of requests."""
    duration: Period | None = None
    """How long it goes on."""


class Cbr(Application):
    """UDP datagrams at a constant rate."""

    kind: Literal["cbr"]
    transport: Literal["udp"] = "udp"
    """Always UDP."""
    rate: Rate
    """Offered rate."""
    packet: Size = 1200
    """Bytes of a datagram's payload."""
    duration: Period | None = None
    """How long it sends; left out: to the end of the run."""


class OnOff(Application):
    """UDP datagrams in bursts; on and off times are exponentially distributed."""

    kind: Literal["on-off"]
    transport: Literal["udp"] = "udp"
    """Always UDP."""
    rate: Rate
    """Rate while on."""
    packet: Size = 1200
    """Bytes of a datagram's payload."""
    on: Period
    """Mean time on."""
    off: Period
    """Mean time off."""
    duration: Period | None = None
    """How long it sends; left out: to the end of the run."""


class Command(Model):
    """A program of the machine on a host, unmodified: a server, a client, a script. Engines linux and live run it."""

    kind: Literal["command"]
    name: Name | None = None
    """Left out: its kind, numbered if there are several."""
    host: str = "client"
    """The host on which it runs."""
    command: str | list[str]
    """The program and its arguments, `["curl", "http://server:8000/"]`, or a line for sh, `"sleep 1; curl .."`."""
    transport: Literal["mptcp", "tcp"] = "mptcp"
    """Over Multipath TCP also where the program asks for TCP, or over what it asks for."""
    start: Time = 0
    """When it starts. In the background with no `start`, half a second before everything else."""
    background: bool = False
    """A server: the run does not wait for its end, and ends it with SIGTERM."""
    ends_run: bool = False
    """The run ends with it, whatever else still runs."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables of its environment besides the usual ones."""
    files: list[str] = Field(default_factory=list)
    """Text files, beside the scenario, that are copied into its working folder, such as `["server.py"]`."""

    @property
    def is_left_out(self) -> bool:
        return False

    @model_validator(mode="after")
    def _words(self) -> Command:
        for key, text in self._texts():
            if "\0" in text:
                raise fault(f"'{key}' has a character NUL, which no program can be given", at=(key,))
        if not (self.command if isinstance(self.command, str) else "".join(self.command[:1])).strip():
            raise fault("the command is empty", at=("command",))
        if self.background and self.ends_run:
            raise fault("a program in the background does not end the run; leave one of them out", at=("ends_run",))
        for name in self.environment:
            if not name or "=" in name:
                raise fault(f"'{name}' is no name of a variable", at=("environment", name))
        return self

    def _texts(self) -> Iterator[tuple[str, str]]:
        for word in [self.command] if isinstance(self.command, str) else self.command:
            yield "command", word
        for name, value in self.environment.items():
            yield "environment", name + value


AnyApplication = Bulk | Stream | RequestResponse | Fetch | PingPong | Messages | Video | Page | Ping | Cbr | OnOff
"""What runs between a client and a server."""

AnyEntry = Annotated[AnyApplication | Command, Field(discriminator="kind")]


class Event(Model):
    """A change at a time: of a link (rate, delay, loss, queue, up), of a host's interface (up, backup, migrate_to), or
    of a router or switch (up)."""

    at: Time
    """When."""
    link: str | None = None
    """The link that changes; what is not given stays."""
    direction: Literal["both", "forward", "backward"] = "both"
    """The link's direction that changes."""
    rate: Rate | None = None
    """New rate."""
    delay: Time | None = None
    """New one-way delay."""
    loss: Loss | None = None
    """New loss."""
    queue: Queue | None = None
    """New queue."""
    interface: str | None = None
    """The interface that changes, "client:eth0"; its host is told."""
    switch: str | None = None
    """The router or switch that fails or comes back: all of its links go down or up."""
    up: bool | None = None
    """Whether the link or interface carries anything from now on."""
    backup: bool | None = None
    """Whether the interface's subflows are backups from now on, announced by MP_PRIO (RFC 8684 section 3.3.8)."""
    migrate_to: str | None = None
    """Another interface of the host, "eth1": paths of its clients of QUIC migrate there (RFC 9000 section 9.2)."""


class Record(Model):
    """What is recorded besides totals and events."""

    interval: Period = 100 * MS
    """Sampling interval."""
    segments: bool = False
    """One row a segment, for time-sequence plots."""
    decisions: bool = False
    """One event a scheduler's decision."""
    memory: Size = 4_000_000_000
    """In the simulator: a run that would take more memory is stopped."""
