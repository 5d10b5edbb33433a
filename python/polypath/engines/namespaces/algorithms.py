"""The kernel's names of a Plan's algorithms, and the reasons why others are missing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from polypath.engines.base import EngineError
from polypath.registry import TITLES, Kind, entries
from polypath.scenario import compiled

if TYPE_CHECKING:
    from polypath.plan.types import Choice

_Name = Callable[[Mapping[str, Any]], str]


def _only(name: str, **fixed: Any) -> _Name:
    """The kernel's name of an algorithm whose parameters cannot be changed there."""

    def named(given: Mapping[str, Any]) -> str:
        for parameter, value in fixed.items():
            if given.get(parameter, value) != value:
                raise EngineError(
                    f"Linux has {name} with {parameter}={_show(value)} only, not {_show(given[parameter])}"
                )
        return name

    return named


def _suffixed(name: str, parameter: str, values: tuple[int, ...]) -> _Name:
    """The kernel's name of an algorithm that has its parameter in its name."""

    def named(given: Mapping[str, Any]) -> str:
        value = given.get(parameter)
        if value is None:
            return name
        if value not in values:
            known = ", ".join(map(str, values))
            raise EngineError(f"Linux has {name} with {parameter} {known}, not {_show(value)}")
        return f"{name}{int(value)}"

    return named


def _balanced(given: Mapping[str, Any]) -> str:
    """Its margin in per cent is in the kernel's name."""
    percents = (0, 1, 5, 10, 20)
    epsilon = given.get("epsilon", 0.05)
    percent = round(100 * epsilon)
    if percent not in percents or abs(percent - 100 * epsilon) > 1e-9:
        known = ", ".join(str(one / 100) for one in percents)
        raise EngineError(f"Linux has balanced with epsilon {known}, not {_show(epsilon)}")
    return f"{_only('balanced', cap='half')(given)}{percent}"


def _show(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_ONCE = "the kernel's scheduler hooks hand each byte to one subflow"


def own_name(given: Mapping[str, Any]) -> str:
    """The name in the kernel of a scheduler in C, which has room for 15 letters (MPTCP_SCHED_NAME_MAX)."""
    return f"own_{hashlib.sha256(given['source'].encode()).hexdigest()[:10]}"


#: `default` is the kernel's own default scheduler, whose rule is not the out-of-tree kernel's lowest RTT.
SCHEDULERS: Final[Mapping[str, _Name]] = {
    "default": _only("default"),
    "linux": lambda given: "default",
    "roundrobin": _only("roundrobin", num_segments=1, cwnd_limited=True),
    "kbest": _suffixed("kbest", "k", (1, 2, 3, 4, 5, 6, 7, 8)),
    "balanced": _balanced,
    "blest": _only("blest", variant="paper", **{"lambda": 1.0}),
    "ecf": _only("ecf", variant="paper", beta=0.25),
    compiled.NAME: own_name,
}

#: Upstream has neither. `default` brings both, and stands for the kernel's own default scheduler all the same.
_NO_RESCUE: Final = {"opportunistic_retransmission": False, "penalisation": False}

_REFUSED: Final[Mapping[str, str]] = {
    "redundant": f"redundant scheduler: {_ONCE}",
    "python": "algorithms in Python",
}

CONGESTION: Final[Mapping[str, _Name]] = {
    "reno": _only("reno", abe=False, hystart_plus=False),
    "cubic": _only("cubic", hystart=True, fast_convergence=True, abe=False, hystart_plus=False),
    "bbr": _only("bbr"),
    "vegas": _only("vegas", alpha=2, beta=4, gamma=1),
    "scalable": _only("scalable", variant="linux", a=0.01, b=0.125),
    "westwood": _only("westwood"),
    "htcp": _only("htcp", rtt_scaling=True, bandwidth_switch=True),
    "illinois": _only("illinois", win_thresh=15, theta=5),
    "cdg": _only(
        "cdg",
        window=8,
        backoff_beta=724,
        backoff_factor=42,
        hystart_detect=3,
        use_ineff=5,
        use_shadow=True,
        use_tolerance=False,
    ),
    "dctcp": _only("dctcp", shift_g=4, alpha_on_init=1024),
    "lia": _only("lia", variant="rfc"),
    "olia": _only("olia", variant="draft"),
    "balia": _only("balia", variant="draft"),
}

#: Those of them that set a rate, so that their window only bounds what is under way.
PACING: Final = frozenset(("bbr",))


def refuse(name: str) -> None:
    """Raises EngineError, with the reason, for what no kernel can have."""
    if name in _REFUSED:
        raise EngineError(f"Linux has no {_REFUSED[name]}; --engine sim has it")


def lacks(kind: Kind, name: str, known: Iterable[str]) -> EngineError:
    """What to say of an algorithm that only the simulator has: which ones that a scenario can name are in Linux."""
    offered = ", ".join(each for each in known if each in entries(kind))
    return EngineError(f"Linux has no {TITLES[kind]} '{name}' (--engine sim has); it has {offered}")


def _named(kind: Kind, known: Mapping[str, _Name], choice: Choice) -> str:
    name = choice["name"]
    refuse(name)
    if name not in known:
        raise lacks(kind, name, known)
    return known[name](choice.get("parameters") or {})


def scheduler(choice: Choice) -> str:
    """The value of net.mptcp.scheduler. Raises EngineError."""
    name = _named("scheduler", SCHEDULERS, choice)
    if choice["name"] not in ("default", compiled.NAME):
        _only(choice["name"], **_NO_RESCUE)(choice.get("parameters") or {})
    return name


def congestion(choice: Choice) -> str:
    """The value of net.ipv4.tcp_congestion_control. Raises EngineError."""
    return _named("congestion", CONGESTION, choice)
