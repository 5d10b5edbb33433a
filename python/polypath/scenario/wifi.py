"""Links over Wi-Fi: the settings of a station, and the channels that stations share (docs/wifi.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field, model_validator

from polypath import registry
from polypath.scenario.base import Model
from polypath.scenario.fields import Name, Packets, Period, Share, Size, fault
from polypath.units import TIME

Standard = Literal["802.11a", "802.11n", "802.11ac"]
STANDARDS: Final[tuple[Standard, ...]] = get_args(Standard)
DEFAULT_STANDARD: Final[Standard] = "802.11n"

Width = Literal["20 MHz", "40 MHz", "80 MHz"]
Guard = Literal["800 ns", "400 ns"]
Index = Annotated[int, Field(ge=0, le=31)]

_SHORTEST_DWELL = 1_000_000
_MOST_PACKETS = 64
_LONGEST_PPDU = 5_484_000
_LONGEST_AGGREGATE = 1_048_575
_ROUNDING = 1e-9


def overhead_bytes(standard: Standard) -> int:
    """Bytes of a data frame besides the IP packet: header (with QoS control or without), LLC and SNAP, FCS."""
    return 24 + 8 + 4 if standard == "802.11a" else 26 + 8 + 4


class Medium(Model):
    """A channel of the air. The links that name it take turns."""

    standard: Standard = DEFAULT_STANDARD
    """The standard of links without their own."""


class Aggregate(Model):
    """Bounds of what a station sends at a time (A-MPDU), beside the standard's own. At least one packet is sent."""

    packets: Packets = _MOST_PACKETS
    """Most packets, at most 64."""
    bytes: Size = _LONGEST_AGGREGATE
    """Most bytes; 802.11n has at most 65535."""
    airtime: Period = _LONGEST_PPDU
    """Longest time on the air, the preamble included; no more than 5.484 ms."""

    @model_validator(mode="after")
    def _allowed(self) -> Aggregate:
        if self.packets > _MOST_PACKETS:
            raise fault(f"a block ack covers {_MOST_PACKETS} packets at most", at=("packets",))
        if self.bytes > _LONGEST_AGGREGATE:
            raise fault(f"an aggregate has {_LONGEST_AGGREGATE} B at most", at=("bytes",))
        if self.airtime > _LONGEST_PPDU:
            raise fault(f"a frame takes {TIME.format(_LONGEST_PPDU)} at most", at=("airtime",))
        return self


class WifiState(Model):
    """A state of the air: a rate, and how often frames fail at it."""

    mcs: Index
    """Index of modulation and coding; for 802.11a, 0 to 7 stand for 6, 9, 12, 18, 24, 36, 48 and 54 Mbps."""
    error: Share = 0.0
    """Probability that a transmission of a packet fails."""
    dwell: Period | None = None
    """Mean time in the state (exponential), at least 1 ms; default: for ever."""
    next: list[Share] | None = None
    """The probability of each state as the next one, in their order; default: the neighbours in the list are equally
    likely."""


class Wifi(Model):
    """Wi-Fi in place of a rate: a station with the rates of a standard, aggregates, and retransmission."""

    standard: Standard | None = None
    """Default: the medium's, otherwise 802.11n."""
    mcs: Index | None = None
    """Index of modulation and coding; for 802.11a, 0 to 7 stand for 6, 9, 12, 18, 24, 36, 48 and 54 Mbps."""
    error: Share | None = None
    """Probability that a transmission of a packet fails; default: 0 %."""
    states: list[WifiState] | None = None
    """Replaces `mcs` and `error` with several states, between which rate adaptation moves as a Markov chain in
    continuous time. The first one applies at the start."""
    medium: Name | None = None
    """The channel that it shares with all links that name it; default: only the two directions of the link share
    one."""
    width: Width = "20 MHz"
    """Width of the channel: 20 or 40 MHz for 802.11n, also 80 MHz for 802.11ac."""
    streams: int = Field(default=1, ge=1, le=4)
    """Spatial streams of 802.11ac. In 802.11n the MCS includes their number: 8 to 15 have two."""
    guard: Guard = "800 ns"
    """Guard interval; 802.11a has no 400 ns."""
    aggregate: Aggregate | None = None
    """Bounds of an aggregate; 802.11a has no aggregates."""
    attempts: int = Field(default=7, ge=1, le=255)
    """Transmissions of a packet before it is lost (dot11ShortRetryLimit)."""

    @model_validator(mode="after")
    def _one_way(self) -> Wifi:
        if (self.mcs is None) == (self.states is None):
            raise fault("give either 'mcs' or 'states'")
        if self.states is None:
            return self
        if self.error is not None:
            raise fault("with 'states' each of them has its own 'error'", at=("error",))
        if not self.states:
            raise fault("there is no state", at=("states",))
        for number, state in enumerate(self.states):
            self._check(number, state, len(self.states))
        return self

    @staticmethod
    def _check(number: int, state: WifiState, count: int) -> None:
        at = ("states", number)
        if state.dwell is None:
            if state.next is not None:
                raise fault("without 'dwell' the state is never left, so that none is 'next'", at=(*at, "next"))
            return
        if count == 1:
            raise fault("there is no other state to follow this; take 'dwell' away", at=(*at, "dwell"))
        if state.dwell < _SHORTEST_DWELL:
            raise fault(f"'dwell' must be at least {TIME.format(_SHORTEST_DWELL)}", at=(*at, "dwell"))
        if state.next is None:
            return
        if len(state.next) != count:
            raise fault(f"'next' has {len(state.next)} shares, and there are {count} states", at=(*at, "next"))
        if state.next[number]:
            raise fault(f"state {number + 1} cannot follow itself; give it a longer 'dwell'", at=(*at, "next"))
        if abs(sum(state.next) - 1) > _ROUNDING:
            raise fault(f"the shares of 'next' make {sum(state.next) * 100:g} %, not 100 %", at=(*at, "next"))

    @property
    def chain(self) -> Sequence[WifiState]:
        """Its states; of `mcs` the only one."""
        if self.states is not None:
            return self.states
        assert self.mcs is not None
        return [WifiState.model_construct(mcs=self.mcs, error=self.error or 0.0, dwell=None, next=None)]

    def of(self, media: Mapping[str, Medium]) -> Standard:
        """Its standard, where these media are known."""
        named = None if self.medium is None else media.get(self.medium)
        return self.standard or (DEFAULT_STANDARD if named is None else named.standard)

    def rates_bps(self, standard: Standard) -> list[int | None]:
        """The rate of each MCS, None where there is none."""
        return rates_bps(standard, int(self.width.split()[0]), self.streams, self.guard == "400 ns")

    def plan(self, media: Mapping[str, Medium]) -> dict[str, Any]:
        """What a plan says of it."""
        standard = self.of(media)
        bounds = self.aggregate or Aggregate.empty()
        chain = self.chain
        medium = {} if self.medium is None else {"medium": list(media).index(self.medium)}
        return {
            "standard": standard,
            "width_mhz": int(self.width.split()[0]),
            "streams": self.streams,
            "short_guard": self.guard == "400 ns",
            **medium,
            "states": [_state(number, state, len(chain)) for number, state in enumerate(chain)],
            "packets": bounds.packets,
            "aggregate_bytes": bounds.bytes,
            "airtime_ns": bounds.airtime,
            "attempts": self.attempts,
        }


def _state(number: int, state: WifiState, count: int) -> dict[str, Any]:
    plain = {"mcs": state.mcs, "error": state.error}
    if state.dwell is None:
        return plain
    near = [place for place in (number - 1, number + 1) if 0 <= place < count]
    usual = [1 / len(near) if place in near else 0.0 for place in range(count)]
    return {**plain, "dwell_ns": state.dwell, "next": usual if state.next is None else state.next}


def rates_bps(standard: str, width_mhz: int, streams: int, short_guard: bool) -> list[int | None]:
    """The rate of each MCS, None where there is none; raises RegistryError for an unknown standard."""
    registry.find("wifi", standard)
    found = registry.wifi_rates(standard, width_mhz, streams, short_guard)
    assert found is not None
    return found


def highest_rate_bps(planned: Mapping[str, Any]) -> int | None:
    """The highest rate of the states of what a plan has."""
    known = rates_bps(planned["standard"], planned["width_mhz"], planned["streams"], planned["short_guard"])
    found = [known[state["mcs"]] for state in planned["states"] if state["mcs"] < len(known)]
    return max((rate for rate in found if rate is not None), default=None)
