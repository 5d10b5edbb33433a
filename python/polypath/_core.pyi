"""The native module: the simulator's door to Python."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as Path_
from typing import Any, Literal, final

class PlanError(ValueError):
    """The plan is not one that the simulator can run; the message is one line."""

class Undetermined(ValueError):
    """Which of several paths is taken is up to the run."""

class ScriptError(RuntimeError):
    """An algorithm in Python failed: what, the instance, the method, the seconds; its cause is what was raised."""

@final
class Path:
    """A path of a connection at a scheduler's decision. Times in seconds, windows in packets of `mss` bytes."""

    @property
    def index(self) -> int: ...
    @property
    def established(self) -> bool:
        """The handshake is done."""
    @property
    def backup(self) -> bool: ...
    @property
    def potentially_failed(self) -> bool:
        """A retransmission timeout fired and nothing was acknowledged since."""
    @property
    def usable(self) -> bool:
        """Established and not potentially failed."""
    @property
    def ready(self) -> bool:
        """Usable, with `room` for more than is `queued`, and not in loss recovery after a timeout."""
    @property
    def state(self) -> Literal["Open", "Disorder", "CWR", "Recovery", "Loss"]: ...
    @property
    def mss(self) -> int:
        """Payload bytes of a full segment."""
    @property
    def cwnd(self) -> int: ...
    @property
    def ssthresh(self) -> int | None:
        """None before the first loss."""
    @property
    def in_flight(self) -> int:
        """Packets sent and neither acknowledged nor taken for lost."""
    @property
    def room(self) -> int:
        """Packets that the congestion window still admits; 0 while pacing holds the next one back."""
    @property
    def paced(self) -> bool:
        """Pacing holds the next packet back, whatever the window admits. A scheduler that answers with the path waits
        for its pacer, as `default` does over QUIC; one that looks at `ready` gives the next path its data."""
    @property
    def queued(self) -> int:
        """Bytes given to the path and not yet sent."""
    @property
    def pacing_rate(self) -> int:
        """Bytes a second. QUIC paces whatever controls the window, and so does a control with a rate of its own, as
        BBR; over TCP in the profile `linux` it is what Linux reckons with otherwise. 0 elsewhere, and of QUIC before
        the first RTT."""
    @property
    def srtt(self) -> float:
        """Smoothed RTT; 0 before the first sample."""
    @property
    def rttvar(self) -> float: ...
    @property
    def min_rtt(self) -> float: ...
    @property
    def latest_rtt(self) -> float: ...
    @property
    def acked(self) -> int:
        """Bytes acknowledged on the path so far."""

@final
class View:
    """A connection at a scheduler's decision. Offsets count the stream's bytes."""

    @property
    def now(self) -> float:
        """Seconds since the start of the run."""
    @property
    def paths(self) -> tuple[Path, ...]: ...
    @property
    def kind(self) -> str:
        """What is to be placed: `data`, and of QUIC `acknowledgement` or `control` where the host shows these."""
    @property
    def offset(self) -> int | None:
        """Of the next new segment; None when there is nothing to send or the peer's window is closed."""
    @property
    def length(self) -> int:
        """Bytes that could be sent from there."""
    @property
    def una(self) -> int:
        """The lowest offset not acknowledged at connection level."""
    @property
    def sent(self) -> int:
        """The first offset never sent."""
    @property
    def unsent(self) -> int:
        """Bytes written by the application and never sent."""
    @property
    def window(self) -> int:
        """Bytes beyond `sent` that the peer's window admits."""
    @property
    def head(self) -> tuple[int, int] | None:
        """Offset of the first unacknowledged segment and the path that carried it last."""

@final
class Address:
    """An address of a host (RFC 8684 section 3.2)."""

    @property
    def id(self) -> int: ...
    @property
    def address(self) -> str: ...
    @property
    def backup(self) -> bool: ...
    @property
    def up(self) -> bool: ...

@final
class PathManagerView:
    """A connection as its path manager sees it."""

    @property
    def now(self) -> float:
        """Seconds since the connection was first ready for more subflows."""
    @property
    def client(self) -> bool:
        """This end opened the connection. Over Multipath QUIC only it opens paths; over MPTCP either end may."""
    @property
    def local(self) -> tuple[Address, ...]: ...
    @property
    def remote(self) -> tuple[Address, ...]: ...
    @property
    def subflows(self) -> list[tuple[str, str]]:
        """Local and remote address of each subflow that exists or is being opened."""
    @property
    def announced(self) -> list[str]:
        """
        Local addresses that the peer knows: the first from the beginning on, others once it was told of them. Over
        QUIC, which has no frame for it, none.
        """

@final
class ControlledPath:
    """The path that a congestion control is of. `cwnd`, `ssthresh` and `pacing_rate` can be set; what else it reads is
    as of `Path`."""

    cwnd: int
    """Congestion window, in packets of `mss` bytes: at least 1."""
    ssthresh: int | None
    """Slow-start threshold in packets; None: not known yet."""
    pacing_rate: float
    """Bytes a second at which the path is paced, where the class says `paces = True`."""
    @property
    def paths(self) -> tuple[Path, ...]:
        """All paths of the connection as they are now, this one at `index`: for coupled controls."""
    @property
    def multipath(self) -> bool:
        """The connection is one of Multipath TCP or Multipath QUIC, even if it has only this path."""
    @property
    def in_slow_start(self) -> bool:
        """`cwnd` is below `ssthresh`."""
    @property
    def between_losses(self) -> int:
        """Bytes acknowledged between the last two losses or since the last, whichever is more (OLIA's l_r)."""
    def slow_start(self, packets: int) -> int:
        """One packet for each acknowledged, up to `ssthresh` (RFC 5681 section 3.1). Gives the packets left."""
    def additive_increase(self, per_packet: int, packets: int) -> None:
        """One packet for every `per_packet` acknowledged (Linux `tcp_cong_avoid_ai`)."""
    def below(self, count: int) -> int:
        """A whole number from 0 to below `count`, drawn from the run's seed: for a control that says `paces = True`."""
    @property
    def burst(self) -> int:
        """Packets that leave together at `pacing_rate`: those of a millisecond (Linux `bbr_tso_segs_goal`)."""
    @property
    def index(self) -> int: ...
    @property
    def established(self) -> bool: ...
    @property
    def backup(self) -> bool: ...
    @property
    def potentially_failed(self) -> bool: ...
    @property
    def usable(self) -> bool: ...
    @property
    def ready(self) -> bool: ...
    @property
    def state(self) -> Literal["Open", "Disorder", "CWR", "Recovery", "Loss"]: ...
    @property
    def mss(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def room(self) -> int: ...
    @property
    def paced(self) -> bool: ...
    @property
    def queued(self) -> int: ...
    @property
    def srtt(self) -> float: ...
    @property
    def rttvar(self) -> float: ...
    @property
    def min_rtt(self) -> float: ...
    @property
    def latest_rtt(self) -> float: ...
    @property
    def acked(self) -> int: ...

@final
class Acknowledgement:
    """What an acknowledgement brought. Times in seconds."""

    @property
    def now(self) -> float:
        """Since the start of the run."""
    @property
    def packets(self) -> int:
        """Newly acknowledged, cumulatively or selectively."""
    @property
    def rtt(self) -> float | None:
        """Of the newest of them, if unambiguous."""
    @property
    def cwnd_limited(self) -> bool:
        """The window, not the application, limited the sender."""
    @property
    def una(self) -> int:
        """Lowest unacknowledged sequence number of the path; of QUIC a count of bytes likewise."""
    @property
    def next_seq(self) -> int:
        """Next sequence number to be sent on the path, for rules that count round trips."""

@final
class DeliverySample:
    """What an acknowledgement says of the rate of delivery (draft-ietf-ccwg-bbr section 4.1)."""

    @property
    def rate(self) -> float | None:
        """Bytes a second; None where nothing was delivered whose sending was timed."""
    @property
    def packets(self) -> int:
        """Delivered in `interval`."""
    @property
    def interval(self) -> float | None: ...
    @property
    def prior_delivered(self) -> int:
        """Packets that had been delivered when the newest of them was sent, for rules that count round trips."""
    @property
    def app_limited(self) -> bool:
        """The application had nothing more to send when it was sent."""
    @property
    def delivered(self) -> int:
        """Packets delivered so far."""
    @property
    def lost(self) -> int:
        """Packets taken for lost so far."""
    @property
    def newly_lost(self) -> int: ...
    @property
    def in_flight_before(self) -> int:
        """Packets in flight before this acknowledgement."""
    @property
    def delivered_at(self) -> float:
        """When the last packet was delivered, in seconds since the start of the run."""
    @property
    def maybe_delayed(self) -> bool:
        """A single small packet was acknowledged: the peer may have waited before it did so."""
    @property
    def departure(self) -> float:
        """When the pacer lets the next packet leave, in seconds since the start of the run."""

@final
class Idleness:
    """How a path sends again that had nothing in flight."""

    @property
    def now(self) -> float: ...
    @property
    def idle(self) -> float:
        """Seconds since its last transmission."""
    @property
    def outdated(self) -> bool:
        """That was longer than a retransmission timeout (Linux `CA_EVENT_CWND_RESTART`)."""
    @property
    def app_limited(self) -> bool: ...

@final
class Table:
    """Rows of one table, as an Arrow stream (the Arrow PyCapsule interface)."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Figures:
    """The figures of a run, out of the tables of a recording: `polypath.results.metrics` tells of each.

    `of` is a `metrics.Connection`, `subflow` a `metrics.Subflow`. Times are ns. Raises ValueError for a table that is
    not as docs/recording.md has it.
    """

    def __new__(cls, plan_json: str, tables: Mapping[str, object], end_ns: int, interrupted: bool) -> Figures:
        """Tables are anything with the Arrow PyCapsule interface; those that are missing have no rows."""
    @staticmethod
    def tables() -> list[str]:
        """The names of the tables that it reads."""
    def connections(self) -> list[dict[str, Any]]: ...
    def subflows(self, of: object) -> list[dict[str, Any]]: ...
    def delivered(self, of: object) -> tuple[list[int], list[int]]:
        """Times and running totals of bytes."""
    def goodput_between(self, of: object, since: int, until: int) -> float | None:
        """Bit/s."""
    def goodput_series(self, of: object) -> list[tuple[int, float]]:
        """Ends of the sampling intervals, and Mbps in each."""
    def subflow_series(self, of: object, subflow: object) -> list[tuple[int, float]]:
        """Of a subflow over the same intervals."""
    def subflow_goodput(self, of: object, subflow: object) -> float | None:
        """Bit/s."""
    def silent_since_ns(self, of: object, subflow: object) -> int | None: ...
    def srtt_us(self, of: object, subflow: object) -> list[int]: ...
    def charts(self, of: object, coarse: bool) -> str:
        """What a page draws of a connection over time, in JSON. `coarse`: a quarter of the resolution."""
    def summary(self, of: object) -> str:
        """A connection's figures with those of its requests and subflows, in JSON."""
    def account(self, of: object, since_ns: int, until_ns: int | None) -> dict[str, Any] | None:
        """The account of a connection's sender over a stretch of time; None where none was kept."""
    def links(self) -> str:
        """The figures of each direction of each link, in JSON."""
    def link_courses(self) -> str | None:
        """Use and queue of each direction of each link over time, in JSON; None where no time passed."""
    def paths(self) -> list[str]:
        """The links at the client's interfaces that connections use, in the order of the plan."""
    def queues(self, coarse: bool) -> str | None:
        """The longest queues over time, in JSON; None where none was longer than a packet."""

@final
class Flow:
    """A flow that a controller has to give a path, by its first packet."""

    @property
    def time(self) -> float:
        """Seconds since the start of the run."""
    @property
    def source(self) -> str: ...
    @property
    def source_port(self) -> int: ...
    @property
    def destination(self) -> str: ...
    @property
    def destination_port(self) -> int: ...
    @property
    def protocol(self) -> str:
        """`tcp`, `udp` (QUIC, too) or `icmp`."""
    @property
    def hash(self) -> int:
        """Of addresses, ports, protocol and the run's seed: what `hashed` goes by."""

@final
class Recording:
    """The tables of docs/recording.md."""

    @property
    def names(self) -> Sequence[str]: ...
    def table(self, name: str) -> Table:
        """Raises KeyError for an unknown name."""
    @property
    def sha256(self) -> str:
        """Hash of all tables, equal for equal runs."""

@final
class Routes:
    """The ways of packets in a plan's network, as the simulator routes them; read once for many questions.

    Of the plan it takes nodes, links and what is said of routes. Raises PlanError for a network that there cannot be.
    """

    def __new__(cls, plan_json: str) -> Routes: ...
    def way(self, node: int, source: str, destination: str) -> list[tuple[int, Literal["forward", "backward"]]] | None:
        """The links that a packet from `source` at a node crosses to `destination`, and in which direction each.

        None where no way leads there. Raises Undetermined where the plan's routing lets flows choose and there is a
        choice; ValueError for what is no address.
        """
    def narrowest(
        self, ways: list[list[tuple[int, Literal["forward", "backward"]]]]
    ) -> list[tuple[int, Literal["forward", "backward"]]]:
        """The links that bound what can be sent over these ways: each way's narrowest, or one that several share and
        that is narrower than their own together."""

@final
class Simulation:
    """A run in progress. Raises PlanError for a plan that it cannot run."""

    def __new__(
        cls,
        plan_json: str,
        captures: Literal["none", "hosts", "links"] = "none",
        directory: str | None = None,
        load: Callable[[str, str], object] | None = None,
        aside: Sequence[Literal["segments", "account"]] = (),
        qlogs: str | None = None,
    ) -> Simulation:
        """`load` makes what is chosen as "python": from the kind and the parameters in JSON, an instance.

        `aside` has these recorded even if the plan does not ask for them; the recording's hash is then without them.
        `qlogs` is a new or empty folder for a qlog of each side of each connection of QUIC.
        """
    @property
    def now_ns(self) -> int:
        """Simulated time since the start of the run."""
    def step(self, until_ns: int) -> bool:
        """Advances to that time at most; true once the run has ended. Lets other threads run meanwhile.

        Raises ScriptError where a scheduler or path manager in Python failed.
        """
    def step_to_event(self, until_ns: int) -> bool:
        """As step, but only to the first event that is recorded."""
    def observe(self) -> dict[str, list[dict[str, Any]]]:
        """The rows that a sample would record now, of tables `subflows`, `connections` and `links`; the recording stays
        as it is. A table without rows is absent."""
    @property
    def recorded_events(self) -> int:
        """How many events were recorded so far."""
    def events_since(self, known: int) -> dict[str, list[dict[str, Any]]]:
        """The rows of table `events` after the first `known`."""
    def change(self, action_json: str) -> None:
        """Changes the network or a host now, by the `action` of a plan's event. Raises PlanError."""
    def controller_receives(self) -> list[tuple[int, bytes]]:
        """What switches sent to a controller outside that has arrived: datapaths and messages of OpenFlow, in order."""
    def controller_sends(self, datapath: int, data: bytes) -> bool:
        """Sends bytes of such a controller to a datapath now; false if there is none of this number."""
    def recording(self) -> Recording:
        """Ends the run, finished or not, closes its captures and gives what was recorded. At most once."""

def check(plan_json: str, load: Callable[[str, str], object] | None = None) -> str | None:
    """The first thing that makes a plan impossible, as Simulation raises it; None where it can run. `load` as there."""

def charge_title(charge: object) -> str:
    """What an `account.Charge` is called in a table, with the place where that is not the path itself."""

def charge_sentence(charge: object) -> str:
    """What happened, without how much."""

def carry(
    plan_json: str, ports_json: str, interfaces: Sequence[int], stop: int, now_ns: int, log: str
) -> tuple[int, int, int, int]:
    """Carries frames between TAP interfaces over the plan's network, in real time, until `stop` can be read.

    Samples of the links go to `log`, each at once; a byte SIGUSR1 of `stop` has the last one taken while it goes on.
    It takes the descriptors over. `now_ns` is the run's time at the call, negative before it begins. Gives the packets
    that it carried, passed over and let expire, and how late in ns the latest was. Raises PlanError and OSError.
    """

def trace(
    paths: Sequence[Path_], interval_ns: int, segments: bool = False, keys: str = ""
) -> tuple[Recording, int, str]:
    """What captures tell: the tables, the time of the last segment in ns, and in JSON hosts, connections and notes.

    `keys` has lines of a key log of TLS.

    Ctrl-C ends it with what was read until then. Raises ValueError, in one line that names the file, where nothing can
    be read of one.
    """

def quic_fetch(settings_json: str, into: int) -> str:
    """Fetches a file over QUIC and writes it to a descriptor, which it takes over.

    Gives what came of it, in JSON: bytes, sha256, nanoseconds, multipath, paths. Raises OSError with one line, and what
    a signal's handler raises.
    """

def quic_serve(settings_json: str, tell: Callable[[str], object]) -> None:
    """Serves files over QUIC until a signal's handler raises; `tell` is given each piece of news, in JSON.

    Raises OSError with one line.
    """

def parquet_size(path: Path_, most: int) -> tuple[list[int], int]:
    """The values of each column of a Parquet file, and the bytes of its pages without compression, which are not read.

    Ends early once one is more than `most`. Raises OSError, and ValueError for what is no such file.
    """

def plan_schema() -> str:
    """The JSON Schema of a plan (draft 2020-12)."""

def tables() -> str:
    """The tables of a Recording as a JSON list: `name`, `about` (what a row is), `optional`, and `columns`, each with
    `name`, `type`, `nullable` and `about`."""

def registry(kind: str) -> str:
    """The algorithms of a kind as a JSON list. Raises KeyError for an unknown kind."""

def fault(kind: str, name: str, parameters: str) -> str | None:
    """What is wrong with the parameters of an algorithm, in JSON; None where the engine takes them."""

def wifi_rates(standard: str, width_mhz: int, streams: int, short_guard: bool) -> list[int | None] | None:
    """The rate in bit/s of each MCS of a Wi-Fi standard, None where there is none; None for another standard."""

def works() -> list[tuple[str, str, float]]:
    """Name, description and simulated seconds of each benchmark."""

def bench(name: str, seconds: float) -> str:
    """Runs a benchmark for some simulated seconds; what it did as JSON. Raises KeyError for an unknown name."""

def version() -> str: ...
