"""The traffic of a scenario: applications, events, the record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from polypath import registry, units
from polypath.recorded import SAID
from polypath.scenario import declared, pages, script
from polypath.scenario.base import Model
from polypath.scenario.declared import Declared, OneOf
from polypath.scenario.errors import ScenarioError
from polypath.scenario.fields import IP, Depth, Name, Period, Rate, Size, Time, fault
from polypath.scenario.matrices import AnyMatrix
from polypath.scenario.network import Loss, Queue
from polypath.scenario.players import AnyRule, Throughput
from polypath.scenario.sizes import AnySizes
from polypath.scenario.stack import Stack

MS = 1_000_000
SECOND = units.SECOND

_LADDER = (300_000, 750_000, 1_200_000, 1_850_000, 2_850_000, 4_300_000)


class Application(Declared):
    """What runs between a client and a server: what every application has. A kind's own settings, which a checker of
    types does not see, are those of the registry."""

    registry_kind = "application"
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    name: Name | None = None
    """Default: its kind, numbered if there are several."""
    client: str = "client"
    """The host that starts the connection."""
    server: str = "server"
    """The host that answers."""
    matrix: AnyMatrix | None = None
    """Replaces client and server: the pairs among all hosts, "permutation", or a table with parameters; drawn again for
    each seed."""
    source: IP | None = None
    """The client's address; default: the first of its interfaces that are up at the start."""
    destination: IP | None = None
    """The server's address; default: its first of the same family."""
    start: Time = 0
    """Start time."""
    start_jitter: Time = 0
    """Largest random delay of the start, drawn uniformly for each seed. It avoids phase effects, in which the runs of
    all seeds are the same."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """The server's port; default: 5001 and upwards, in the applications' order."""
    stack: Stack = Field(default_factory=Stack.empty)
    """Differences of its transport from its hosts' settings, on both sides."""
    client_stack: Stack = Field(default_factory=Stack.empty)
    """Differences of its transport at the client."""
    server_stack: Stack = Field(default_factory=Stack.empty)
    """Differences of its transport at the server."""
    group: Name | None = None
    """The group with which its figures are counted; flows that arrive form their application's group."""
    transport: str

    @property
    def is_left_out(self) -> bool:
        return False

    @classmethod
    def table(cls, entry: registry.Entry) -> type[Self]:
        """The table of a kind, with what only a scenario says of it."""
        over = Literal[entry.transports], Field(default=entry.transports[0], description=_named(entry.transports))
        return declared.made(_SAYING_MORE.get(entry.name, cls), entry, entry.name, transport=over)

    def planned(self, rest: int) -> dict[str, Any]:
        """What a Plan says of its work, where the run ends `rest` ns after its start."""
        entry = registry.find("application", self.kind)
        return declared.planned(entry, {each.name: getattr(self, each.name) for each in entry.parameters}, rest)


#: The transports that are QUIC.
QUIC: Final = ("quic", "mpquic")

TRANSPORTS: Mapping[str, str] = {
    "mptcp": "Multipath TCP",
    "tcp": "TCP",
    "mpquic": "Multipath QUIC (RFC 10069)",
    "quic": "QUIC",
    "udp": "UDP",
    "icmp": "ICMP",
}


def _named(transports: Sequence[str]) -> str:
    *others, last = [TRANSPORTS[each] for each in transports]
    return f"{', '.join(others)} or {last}." if others else f"Always {last}."


class MeasuredApplication(Application):
    """An application that iperf3 knows, too."""

    program: Literal["iperf3"] | None = None
    """The program that runs it on the engines linux and live; default: Polypath's own. The simulator has one model of
    both."""
    count: int = Field(default=1, ge=0, le=10_000)
    """Parallel connections (iperf3 -P), each of which sends as much. From two on, their names end in -1, -2, .., and
    their ports count up. With 0 the application is left out."""

    @property
    def is_left_out(self) -> bool:
        return self.count == 0


class Bulk(MeasuredApplication):
    """A transfer, which may stand for flows that arrive at random."""

    arrivals: float | None = Field(default=None, gt=0, le=1e6)
    """Flows that begin per second, a Poisson process of all pairs of the matrix together. Each is a separate connection
    between one of the pairs, which is drawn. They begin from `start` on, for `duration` or to the end of the run."""
    sizes: AnySizes | None = None
    """With `arrivals`, replaces `size`: the distribution of the flows' sizes, "web-search", or a table."""

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
    def _aborted(self) -> Bulk:
        if not self.abort:
            return self
        if self.transport in QUIC:
            raise fault("an application aborts over Multipath TCP or TCP", at=("abort",))
        for key in ("size", "arrivals", "program"):
            if getattr(self, key):
                raise fault(f"a transfer that is aborted at its end has no '{key}'; leave one of them out", at=(key,))
        return self

    @model_validator(mode="after")
    def _paused(self) -> Bulk:
        if self.first and not self.pause:
            raise fault("these bytes go before a pause; give 'pause'", at=("first",))
        if self.pause and self.program:
            raise fault("iperf3 does not pause; leave one of them out", at=("pause",))
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


class Messages(Application):
    """Messages, whose interval may be given as a rate."""

    interval: Period | None = None
    """Time from one message to the next; required unless `rate` is given."""
    rate: Rate | None = None
    """Offered rate; required unless `interval` is given."""

    @model_validator(mode="after")
    def _one_pace(self) -> Messages:
        if (self.interval is None) == (self.rate is None):
            raise fault("messages need either 'interval' or 'rate'")
        return self

    def planned(self, rest: int) -> dict[str, Any]:
        gap = self.size * 8 * SECOND // self.rate if self.interval is None else self.interval
        return super().planned(rest) | {"interval_ns": gap}


class Video(Application):
    """Adaptive video; over QUIC all of it on one stream."""

    rates: list[Rate] = Field(default_factory=lambda: list(_LADDER), max_length=100)
    """Rates of the representations, ascending; default: those of Mao et al., SIGCOMM 2017."""
    segment: Period = 4000 * MS
    """Playing time of a segment; its size follows from its rate."""
    length: Period | None = None
    """Length of the video; the last segment is a whole one. Default: it does not end."""
    buffer: Period = 30_000 * MS
    """Most video in the player's buffer; it requests no segment that would not fit."""
    startup: Period | None = None
    """Video needed before playing, at the beginning and after a stall; default: a segment."""
    rule: AnyRule = Field(default_factory=lambda: Throughput(kind="throughput"))
    """Choice of the next rate: "throughput", "buffer", "fixed", or a table with parameters."""

    @model_validator(mode="after")
    def _fits(self) -> Video:
        if problem := registry.fault("application", "video", self.planned(0)):
            field, _, message = problem.partition(": ")
            at = tuple(part.partition("_")[0] for part in field.split("."))
            raise fault(message, at=("segment",) if at == ("buffer",) and "buffer" not in self.model_fields_set else at)
        if self.startup is not None and self.startup > self.buffer:
            # The simulator's player then begins when no more fits.
            raise fault("'startup' is longer than 'buffer', so that nothing ever plays", at=("startup",))
        return self

    def planned(self, rest: int) -> dict[str, Any]:
        return {
            "segment_ns": self.segment,
            "segments": None if self.length is None else -(-self.length // self.segment),
            "rates_bps": self.rates,
            "buffer_ns": self.buffer,
            "startup_ns": self.segment if self.startup is None else self.startup,
            "rule": {"kind": self.rule.kind, **self.rule.planned(self.buffer, self.segment)},
        }


_PATH: Final = "^/[!-~]*$"


def _check_path(value: str) -> str:
    if not re.fullmatch(_PATH, value):
        raise fault(f"{value!r} is no path, such as '/index.html'; a space is written as %20")
    return value


class PageObject(Model):
    """An object of a page."""

    name: str = Field(min_length=1, max_length=4000)
    """Its name in the results and in `after` of other objects."""
    size: Depth
    """Bytes of the response's body."""
    after: list[str] = Field(default_factory=list)
    """Names of the objects that must have arrived before it is requested."""
    think: Time = 0
    """Time from the request's last byte to the response's first."""
    path: (
        Annotated[
            str,
            Field(max_length=4000),
            AfterValidator(_check_path),
            WithJsonSchema({"type": "string", "pattern": _PATH, "maxLength": 4000}),
        ]
        | None
    ) = None
    """Path of the request; default: made from the name."""


class Page(Application):
    """A web page, by its objects: over HTTP/1.1 one at a time on each connection, over QUIC each on a stream of one."""

    objects: list[PageObject] = Field(default_factory=list, max_length=pages.MOST_OBJECTS)
    """The objects; required unless a file gives them."""
    csv: str | None = None
    """A CSV file with the objects, relative to the scenario's. Its columns are `object`, `size_bytes`, and optionally
    `after` (names separated by spaces) and `think_ms`."""
    har: str | None = None
    """A HAR file with the objects, as browsers save it. An object without an initiator waits for the first one."""
    connections: int = Field(default=1, ge=1, le=100)
    """Number of connections over TCP, all opened at the start. From two on, their names end in -1, -2, .., and their
    ports count up. Browsers open six."""
    of: Name | None = None
    """Another page's name: this is one more connection for the objects of that page. Resolved scenarios express
    `connections` in this way."""

    def side_by_side(self) -> list[Page]:
        """An application for each connection."""
        made: list[Page] = []
        for number in range(self.connections):
            port = None if self.port is None else self.port + number
            own: dict[str, Any] = {"name": f"{self.name}-{number + 1}", "connections": 1, "port": port}
            if number:
                own |= {"of": made[0].name, "objects": [], "csv": None, "har": None}
            made.append(self.model_copy(update=own))
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
        if self.of is not None:
            for key in given + ["connections"] * (self.connections > 1):
                raise fault(f"'of' names the page whose objects these are; leave '{key}' out", at=(key,))
            if self.transport in QUIC:
                raise fault("over QUIC the objects of a page are on streams of one connection", at=("of",))
            return self
        if len(given) != 1:
            raise fault("a page takes its objects from one of 'objects', 'csv' and 'har'", at=tuple(given[1:2]))
        if self.connections > 1 and self.transport in QUIC:
            raise fault("over QUIC the objects of a page are on streams of one connection", at=("connections",))
        try:
            self.wanted()
        except ScenarioError as error:
            raise fault(str(error), at=(given[0],)) from error
        return self


class Relay(Application):
    """A proxy's connection. The bytes of another application go on over it, both ways, from the host at which the
    connections of that one ended so far. It begins once the one before is established."""

    of: Name
    """The application whose bytes these are. It stands before, and its server is the first proxy."""


class Tunnel(Application):
    """A tunnel between two hosts. Packets that are routed over a link go over its connection, whole or as payloads of
    UDP. The link leads from one of the hosts to the other, and has nothing of its own but an `mtu`. Over UDP there is
    no connection: packets take the lines in turn, as in bonding."""

    link: Name
    """The link whose packets it carries."""
    weights: Annotated[list[Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=1, max_length=16)] | None = None
    """Over UDP: packets on each line in turn, in the order of the client's interfaces; default: one each."""

    @model_validator(mode="after")
    def _carried(self) -> Tunnel:
        if self.transport == "udp":
            for key, only in (("framing", "connect-ip"), ("carriage", "datagrams"), ("queue", 500)):
                if getattr(self, key) != only:
                    raise fault(f"over UDP there is no connection, and no '{key}'; leave it out", at=(key,))
        elif self.weights is not None:
            raise fault("over QUIC the scheduler decides; 'weights' are of transport = \"udp\"", at=("weights",))
        if self.carriage == "stream":
            if self.framing != "connect-ip":
                raise fault('a stream carries whole packets: framing = "connect-ip"', at=("framing",))
            if self.reorder:
                raise fault("a stream keeps packets in order; leave 'reorder' out", at=("reorder",))
        return self


_SAYING_MORE: Mapping[str, type[Application]] = {
    "bulk": Bulk,
    "stream": MeasuredApplication,
    "messages": Messages,
    "video": Video,
    "page": Page,
    "relay": Relay,
    "tunnel": Tunnel,
}
"""Kinds of which a scenario says more than the registry has settings."""


def _line_or_words(value: object) -> object:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(word, str) for word in value)):
        return value
    raise fault("expected a line for sh, or a list of a program and its arguments, each a text")


class Command(Model):
    """A program of the machine on a host, unmodified: a server, a client, a script. Engines linux and live run it."""

    kind: Literal["command"]
    name: Name | None = None
    """Default: its kind, numbered if there are several."""
    host: str = "client"
    """The host on which it runs."""
    command: Annotated[str | list[str], BeforeValidator(_line_or_words)]
    """The program and its arguments, `["curl", "http://server:8000/"]`, or a line for sh, `"sleep 1; curl .."`."""
    transport: Literal["mptcp", "tcp"] = "mptcp"
    """Use Multipath TCP also for sockets that request TCP, or the transport that the program requests."""
    start: Time = 0
    """Start time. In the background without a `start`, half a second before everything else."""
    background: bool = False
    """A server: the run does not wait for its end, and ends it with SIGTERM."""
    ends_run: bool = False
    """The run ends with it, even if others still run."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Further variables of its environment."""
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
        try:
            script.texts(self.files)
        except registry.RegistryError as error:
            raise fault(error.message, error.hint, at=("files",)) from error
        return self

    def _texts(self) -> Iterator[tuple[str, str]]:
        for word in [self.command] if isinstance(self.command, str) else self.command:
            yield "command", word
        for name, value in self.environment.items():
            yield "environment", name + value


AnyEntry = Annotated[Application | Command, OneOf(Application, Command)]


class Event(Model):
    """A change at a time: of a link, an interface, a host or a node.

    - A link has rate, delay, loss, queue and up.
    - A host's interface has up, backup, fullmesh, endpoint and migrate_to.
    - A host has flush_endpoints.
    - A router or switch has up.
    """

    at: Time
    """Time of the change."""
    link: str | None = None
    """The link that changes; other settings stay."""
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
    """The interface that changes, "client:eth0"; its host is notified."""
    host: str | None = None
    """The host that changes."""
    switch: str | None = None
    """The router or switch that fails or comes back: all of its links go down or up."""
    up: bool | None = None
    """Whether the link or interface is up from now on. A link that goes down loses the packets on it. An interface
    loses packets that arrive while it is down, and the path manager first loses the endpoints of its addresses."""
    backup: bool | None = None
    """Whether the interface's subflows are backups from now on, announced by MP_PRIO (RFC 8684 section 3.3.8)."""
    fullmesh: bool | None = None
    """Whether the interface's endpoints have the flag fullmesh from now on (ip mptcp endpoint change). Subflows from
    endpoints for subflows end, and others are opened."""
    endpoint: bool | None = None
    """Whether the interface's addresses are endpoints of path manager 'endpoints' from now on (ip mptcp endpoint delete
    and add). Their subflows end as if the interface went down, but the addresses stay."""
    flush_endpoints: Literal[True] | None = None
    """The host's path manager 'endpoints' loses all endpoints (ip mptcp endpoint flush). Subflows from them end, and
    announced addresses are withdrawn. An interface that goes down and comes back adds its own again."""
    migrate_to: str | None = None
    """Another interface of the host, "eth1", to which paths of its QUIC clients migrate (RFC 9000 section 9.2)."""


class Record(Model):
    """What is recorded besides totals and events."""

    interval: Period = 100 * MS
    """Sampling interval."""
    segments: bool = Field(False, description=SAID["segments"].help)
    decisions: bool = False
    """One event per scheduling decision; only in the simulator."""
    account: bool = Field(False, description=SAID["account"].help)
    memory: Size = 4_000_000_000
    """In the simulator, a run is stopped if its rows, requests and packets take more memory. Summary and files briefly
    take about twice as much."""
    snaplen: Size | None = None
    """Captures keep so many bytes of each frame, by default all; only in the simulator."""
