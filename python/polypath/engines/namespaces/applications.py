"""A Plan's applications as command lines of the guest's programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from polypath import registry
from polypath.engines.base import EngineError
from polypath.engines.namespaces import iperf3
from polypath.engines.namespaces.kernel import Kernel
from polypath.plan.access import own_stack, setting, settings_of_host

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Application, FetchWork, Object, Stack, VideoWork, Work

#: Settings that a socket can have apart from its host's.
_OF_A_SOCKET = ("congestion", "nagle", "cork", "keepalive", "user_timeout_ns")

#: In seconds (MAX_TCP_KEEPIDLE, MAX_TCP_KEEPINTVL).
_LONGEST_KEEPALIVE = 32_767

#: The programs of kinds that send datagrams.
_OF_DATAGRAMS = {"cbr": "datagrams", "on-off": "datagrams", "ping": "ping"}

#: The time, and what IPv4 leaves (programs/datagram.c).
_DATAGRAM_BYTES = (8, 65_507)

_REQUEST_HEAD = "GET {path} HTTP/1.1\r\nHost: server\r\nUser-Agent: polypath\r\nAccept: */*\r\n\r\n"


#: TLS as the simulator has it (crates/lab/src/application/tls.rs): the handshake's exchanges, what goes with the first
#: request, and the bytes of a record besides its plaintext.
_TLS: Mapping[str | None, tuple[tuple[tuple[int, int], ...], int, int]] = {
    None: ((), 0, 0),
    "1.2": (((134, 1229), (93, 51)), 0, 29),
    "1.3": (((194, 1274),), 64, 22),
}
_LONGEST_RECORD = 1 << 14


_RESPONSE_HEAD = (
    "HTTP/1.1 200 OK\r\nServer: polypath\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n"
)


def log(application: int, side: str) -> str:
    """The name of the file that one end of an application writes."""
    return f"app-{application}-{side}"


def command(plan: PlanData, kernel: Kernel, index: int, side: str) -> str:
    """The guest program's part and its options for one end. Raises EngineError."""
    application = plan["applications"][index]
    # As in the simulator, the first address of either host where none is named; a socket that is bound to none would
    # have that of the shortest way.
    destination = application.get("destination") or _first_address(plan, application["server"])
    source = application.get("source") or _first_address(plan, application["client"])
    options = {
        "side": side,
        "destination": destination,
        "port": application["port"],
        "stream": index,
        "start": application["start_ns"],
        "log": f"out/{log(index, side)}",
    }
    if (":" in source) == (":" in destination):
        options["source"] = source
    match application["transport"]:
        case "udp" | "icmp":
            part, work = _of_datagrams(application["work"]), _settings(application["work"])
            if part == "datagrams":
                _require_size(application)
                options |= {"seed": plan["seed"] + index, "sample": plan["record"]["interval_ns"]}
        case transport:
            if iperf3.plays(application):
                part, work = iperf3.NAME, iperf3.work(plan, application)
            else:
                part, work = "app", _stream_work(plan, index)
            options |= {"transport": transport, "sample": plan["record"]["interval_ns"]}
            if transport == "mptcp" and _both_families(plan, application):
                options |= {"families": 2}
                if part == iperf3.NAME and ":" not in str(options["destination"]):
                    raise EngineError(
                        f"iperf3's socket to {options['destination']} would have no subflows of IPv6; "
                        f"give application '{application['name']}' the server's IPv6 address as destination"
                    )
            options |= _socket_options(plan, kernel, application, side)
    words = [f"{name}={value}" for name, value in (options | work).items() if value is not None]
    return " ".join([part, *words])


def _first_address(plan: PlanData, node: int) -> str:
    for interface in plan["nodes"][node]["interfaces"]:
        for address in interface["addresses"]:
            return str(address)
    raise EngineError(f"host {plan['nodes'][node]['name']} has no address")


def _both_families(plan: PlanData, application: Application) -> bool:
    """Whether the hosts at both ends have addresses of IPv4 and of IPv6."""
    return all(
        {
            ":" in address
            for interface in plan["nodes"][application[side]]["interfaces"]
            for address in interface["addresses"]
        }
        == {False, True}
        for side in ("client", "server")
    )


def _socket_options(plan: PlanData, kernel: Kernel, application: Application, side: str) -> dict[str, Any]:
    host = settings_of_host(plan["nodes"][application["client" if side == "client" else "server"]])
    own = own_stack(application, side) or host
    usual = dict(host)
    for name, value in own.items():
        if name not in _OF_A_SOCKET and value != usual[name]:
            raise EngineError(f"Linux sets {name} for a host, not for application '{application['name']}' alone")
    if iperf3.plays(application):
        for name, value in own.items():
            if value and name in ("cork", "keepalive", "user_timeout_ns"):
                raise EngineError(
                    f"iperf3 does not ask its sockets for {name.removesuffix('_ns')}, as application"
                    f" '{application['name']}' is to"
                )
    options: dict[str, Any] = {"nodelay": int(not own["nagle"]), "cork": int(own["cork"])}
    options |= _liveness(own, application["transport"])
    if own["congestion"] != host["congestion"] or not kernel.congestion_of_host:
        options["congestion"] = kernel.congestion(own)
    return options


def _liveness(stack: Stack, transport: str) -> dict[str, int]:
    """Keep-alive and the user timeout, as options of sockets."""
    options: dict[str, int] = {}
    if keepalive := stack["keepalive"]:
        times = (("time", "keepidle", keepalive["time_ns"]), ("interval", "keepintvl", keepalive["interval_ns"]))
        for name, option, time_ns in times:
            seconds, rest = divmod(time_ns, 1_000_000_000)
            if rest or not 1 <= seconds <= _LONGEST_KEEPALIVE:
                raise EngineError(f"Linux takes keepalive_{name} in whole seconds, from 1 to {_LONGEST_KEEPALIVE}")
            options[option] = seconds
        options["keepcnt"] = keepalive["probes"]
    if timeout := stack["user_timeout_ns"]:
        if transport == "mptcp":
            raise EngineError("Linux has no user_timeout for sockets of Multipath TCP")
        if timeout % 1_000_000:
            raise EngineError("Linux takes user_timeout in whole milliseconds")
        options["user_timeout"] = timeout // 1_000_000
    return options


def _stream_work(plan: PlanData, index: int) -> dict[str, Any]:
    work = plan["applications"][index]["work"]
    match work["kind"]:
        case "bulk":
            settings = _settings(work)
            pause = {name: settings.pop(name) for name in ("first", "pause")}
            work_of = {"work": "bulk", "back": settings.pop("reverse_size"), **settings}
            return work_of | pause if pause["pause"] else work_of
        case "stream" | "request-response" as kind:
            return {"work": kind, **_settings(work)}
        case "fetch":
            return _fetch(work)
        case "ping-pong":
            return {
                "work": "back-and-forth",
                "count": work["count"],
                "duration": work["duration_ns"],
                "request": work["bytes"],
                "response": work["bytes"],
            }
        case "video":
            return video(work)
        case "page":
            return {"work": "page", "objects": _objects(_owner(plan, index))} | _heads()
        case kind:
            raise EngineError(f"Linux has no application '{kind}' over TCP")


def _of_datagrams(work: Work) -> str:
    kind = work["kind"]
    if kind not in _OF_DATAGRAMS:
        raise EngineError(f"Linux has no application '{kind}' that sends datagrams")
    return _OF_DATAGRAMS[kind]


def _require_size(application: Application) -> None:
    """Raises EngineError for datagrams that the program cannot send."""
    least, most = _DATAGRAM_BYTES
    size = int(setting(application["work"], "packet_bytes"))
    if not least <= size <= most:
        raise EngineError(
            f"application '{application['name']}' sends datagrams of {size} bytes: Linux's UDP takes {most}, and each"
            f" here has the time at which it was sent, {least} bytes (engine sim has any)"
        )


def _settings(work: Work) -> dict[str, Any]:
    """What a kind is told, by the names that a scenario has for it."""
    given = {each.name: setting(work, each.field) for each in registry.find("application", work["kind"]).parameters}
    return {name: int(value) if isinstance(value, bool) else value for name, value in given.items()}


def _fetch(work: FetchWork) -> dict[str, Any]:
    size = work["size_bytes"]
    request_head, response_head = _REQUEST_HEAD.format(path="/file"), _RESPONSE_HEAD.format(size=size)
    exchanges, parting, record = _TLS[work.get("tls")]
    request, response = (
        plain + -(-plain // _LONGEST_RECORD) * record for plain in (len(request_head), len(response_head) + size)
    )
    options: dict[str, Any] = {
        "work": "back-and-forth",
        "count": work["count"],
        "request": request,
        "response": response,
    }
    if not work.get("tls"):
        options |= _heads(request_head, response_head)
    for number, (flight, answer) in enumerate(exchanges, 1):
        options |= {f"hello{number}": flight, f"answer{number}": answer}
    return options | ({"parting": parting} if parting else {})


def _heads(request: str = _REQUEST_HEAD, response: str = _RESPONSE_HEAD) -> dict[str, str]:
    return {"request_head": request.encode().hex(), "response_head": response.encode().hex()}


def video(work: VideoWork) -> dict[str, Any]:
    rule = work["rule"]
    named = {"kind": "rule", "reservoir_ns": "reservoir", "cushion_ns": "cushion"}
    return {
        "work": "video",
        "rates": ",".join(map(str, work["rates_bps"])),
        "segment": work["segment_ns"],
        "segments": work["segments"],
        "buffer": work["buffer_ns"],
        "startup": work["startup_ns"],
        **{named.get(name, name): value for name, value in rule.items()},
        **_heads(),
    }


def _owner(plan: PlanData, index: int) -> int:
    """The application that has the objects of a page."""
    of = setting(plan["applications"][index]["work"], "of")
    return index if of is None else int(of)


def _objects(owner: int) -> str:
    return f"page-{owner}"


def _ends(owner: int) -> str:
    return f"page-{owner}-ends"


def client(plan: PlanData, kernel: Kernel, index: int) -> str | None:
    """The command of the client; None where another application's has this connection, too: one process has all of a
    page. Raises EngineError."""
    if plan["applications"][index]["work"]["kind"] != "page":
        return command(plan, kernel, index, "client")
    owner = _owner(plan, index)
    return f"app ends={_ends(owner)}" if index == owner else None


def files(plan: PlanData, kernel: Kernel) -> dict[str, str]:
    """What the commands read in the run's folder, by name. Raises EngineError."""
    found: dict[str, str] = {}
    for index, application in enumerate(plan["applications"]):
        if application["work"]["kind"] != "page":
            continue
        owner = _owner(plan, index)
        first = plan["applications"][owner]
        if (application["client"], application["start_ns"]) != (first["client"], first["start_ns"]):
            raise EngineError(f"connection '{application['name']}' of a page begins elsewhere than '{first['name']}'")
        if index == owner:
            found[_objects(owner)] = _page(application)
        end = command(plan, kernel, index, "client").removeprefix("app ")
        found[_ends(owner)] = f"{found.get(_ends(owner), '')}{end}\n"
    return found


def _page(application: Application) -> str:
    """A line for each object: bytes, the server's time, path, what it waits for."""
    lines = []
    known: dict[str, Object] = {}
    for each in setting(application["work"], "objects"):
        other = known.setdefault(each["path"], each)
        if (other["size_bytes"], other["think_ns"]) != (each["size_bytes"], each["think_ns"]):
            raise EngineError(
                f"objects '{other['name']}' and '{each['name']}' of '{application['name']}' differ, and a server knows "
                f"them by their path, {each['path']}; give one another 'path'"
            )
        lines.append(" ".join(map(str, [each["size_bytes"], each["think_ns"], each["path"], *each["after"]])))
    return "".join(f"{line}\n" for line in lines)
