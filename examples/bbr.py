"""BBR version 1 as a class beside a scenario (draft-cardwell-iccrg-bbr-congestion-control-00; Linux tcp_bbr.c).

    [host.client]
    congestion = "bbr.py:Bbr"

It gives the bytes of the built-in `bbr`, and shows what a control that sets a rate takes. Section numbers are the
draft's. Times are in ns and rates in packets a second, as the built-in one has them.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

SECOND, MILLISECOND = 10**9, 10**6
STARTUP, DRAIN, PROBE_BANDWIDTH, PROBE_RTT = range(4)
#: 2/ln 2: the rate doubles each round trip.
HIGH_GAIN = 2.885
CYCLE = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
CRUISING_CWND_GAIN = 2.0
BANDWIDTH_ROUNDS = 10
MIN_RTT_WINDOW = 10 * SECOND
PROBE_RTT_TIME = 200 * MILLISECOND
SMALLEST_WINDOW, INITIAL_WINDOW = 4, 10
FULL_GROWTH, FULL_ROUNDS = 1.25, 3
#: Linux paces a hundredth below the estimate.
PACING_MARGIN = 0.99


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


class Maximum:
    """The maximum over the last rounds."""

    def __init__(self) -> None:
        self.values: deque[tuple[int, float]] = deque()

    def add(self, number: int, value: float, window: int) -> None:
        while self.values and self.values[-1][1] <= value:
            self.values.pop()
        self.values.append((number, value))
        while self.values[0][0] + window < number:
            self.values.popleft()

    def get(self) -> float:
        return self.values[0][1] if self.values else 0.0


class Policer:
    """Two stretches of high loss at one rate show what a token bucket grants (Linux `bbr_lt_bw_sampling`)."""

    LEAST_ROUNDS, TRUSTED_ROUNDS = 4, 48
    LOSSY, SAME_PART, SAME_BYTES = 50.0 / 256.0, 0.125, 500.0

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.rate, self.found, self.sampling = 0.0, False, False
        self.since = self.delivered = self.lost = self.rounds = 0

    def granted(self) -> float | None:
        return self.rate if self.found else None

    def begin(self, sample: Any) -> None:
        self.since, self.delivered, self.lost = ns(sample.delivered_at), sample.delivered, sample.lost
        self.rounds = 0

    def take(self, sample: Any, newly_lost: int, app_limited: bool, round_start: bool, probing: bool, mss: int) -> bool:
        """True: the rate was used for long enough, and no longer is."""
        if self.found:
            if probing and round_start:
                self.rounds += 1
                if self.rounds >= self.TRUSTED_ROUNDS:
                    self.reset()
                    return True
            return False
        if not self.sampling:
            if newly_lost == 0:
                return False
            self.begin(sample)
            self.sampling = True
        if app_limited:
            self.reset()
            return False
        self.rounds += round_start
        if self.rounds > 4 * self.LEAST_ROUNDS:
            self.reset()
        elif self.rounds >= self.LEAST_ROUNDS and newly_lost > 0:
            self.conclude(sample, mss)
        return False

    def conclude(self, sample: Any, mss: int) -> None:
        delivered = float(sample.delivered - self.delivered)
        lost = float(max(sample.lost - self.lost, 0))
        time = max(ns(sample.delivered_at) - self.since, 0)
        if delivered == 0.0 or lost < self.LOSSY * delivered or time < MILLISECOND:
            return
        rate = delivered * SECOND / time
        difference = abs(rate - self.rate)
        same = difference <= self.SAME_PART * self.rate or difference * mss <= self.SAME_BYTES
        if self.rate > 0.0 and same:
            self.rate, self.found, self.rounds = (self.rate + rate) / 2.0, True, 0
        else:
            self.rate = rate
            self.begin(sample)


class Aggregation:
    """How much more is acknowledged at once than the bandwidth explains (Linux `bbr_update_ack_aggregation`)."""

    SLOT_ROUNDS, LONGEST_STRETCH, MOST = 5, 1 << 20, 100 * MILLISECOND

    def __init__(self) -> None:
        self.since = self.acked = self.slot = self.rounds = 0
        self.excess = [0, 0]

    def restart(self, now: int) -> None:
        self.since, self.acked = now, 0

    def take(self, sample: Any, packets: int, round_start: bool, bandwidth: float, cwnd: int) -> None:
        if packets == 0 or sample.interval is None:
            return
        if round_start:
            self.rounds += 1
            if self.rounds >= self.SLOT_ROUNDS:
                self.rounds, self.slot = 0, 1 - self.slot
                self.excess[self.slot] = 0
        elapsed = max(ns(sample.delivered_at) - self.since, 0)
        expected = int(bandwidth * elapsed / SECOND)
        if self.acked <= expected or self.acked + packets >= self.LONGEST_STRETCH:
            self.restart(ns(sample.delivered_at))
            expected = 0
        self.acked += packets
        self.excess[self.slot] = max(self.excess[self.slot], min(self.acked - expected, cwnd))

    def allowance(self, bandwidth: float) -> int:
        return min(max(self.excess), int(bandwidth * self.MOST / SECOND))


class Bbr:
    paces = True

    def __init__(self) -> None:
        self.mode = STARTUP
        self.bandwidth = Maximum()
        self.round = self.round_end = 0
        self.round_start = False
        self.min_rtt: int | None = None
        self.min_rtt_at: int | None = None
        self.rtt_seen = False
        self.probe_rtt_until: int | None = None
        self.probe_rtt_round = False
        self.pacing_gain = self.cwnd_gain = HIGH_GAIN
        self.full, self.full_bandwidth, self.full_rounds = False, 0.0, 0
        self.phase = self.phase_at = 0
        self.prior_cwnd = 0
        self.prior_state = "Open"
        self.conserving = self.after_idle = False
        self.policer, self.aggregation = Policer(), Aggregation()
        self.last: Any = None

    def on_established(self, path: Any) -> None:
        path.ssthresh = None
        self.min_rtt = ns(path.min_rtt) or None
        self.pace_initially(path)

    def ssthresh(self, path: Any) -> int | None:
        """A loss changes nothing; the window to return to is remembered."""
        self.save_window(path)
        return path.ssthresh

    def control(self, path: Any, ack: Any, sample: Any) -> bool:
        self.last = sample
        now = ns(ack.now)
        self.update_bandwidth(path, sample)
        self.aggregation.take(sample, ack.packets, self.round_start, self.estimate(), path.cwnd)
        if self.mode == PROBE_BANDWIDTH and self.phase_over(now, path, sample):
            self.phase = (self.phase + 1) % len(CYCLE)
            self.phase_at = ns(sample.delivered_at)
        self.check_full(sample)
        self.check_drain(now, path, sample)
        limited = self.update_min_rtt(path, ack, now, sample)
        self.update_gains()
        self.set_rate(path, self.pacing_gain)
        self.set_window(path, ack.packets, sample)
        return limited

    def on_state(self, path: Any, state: str) -> None:
        if state == "Loss":
            self.prior_state = "Loss"
            self.full_bandwidth = 0.0
            self.round_start = True
            if self.last is not None:
                self.policer.take(self.last, 1, False, True, False, path.mss)

    def on_restart(self, path: Any, idleness: Any) -> None:
        """Linux `bbr_cwnd_event_tx_start`."""
        if not idleness.app_limited:
            return
        now = ns(idleness.now)
        self.after_idle = True
        self.aggregation.restart(now)
        if self.mode == PROBE_BANDWIDTH:
            self.set_rate(path, 1.0)
        elif self.mode == PROBE_RTT and self.probe_rtt_until is not None and now > self.probe_rtt_until:
            self.leave_probe_rtt(path, now)

    def undo(self, path: Any, prior: int) -> int:
        """The slow-down was not needed: full-pipe detection begins again."""
        self.full_bandwidth, self.full_rounds = 0.0, 0
        self.policer.reset()
        return path.cwnd

    def estimate(self) -> float:
        granted = self.policer.granted()
        return self.bandwidth.get() if granted is None else granted

    @staticmethod
    def pace(bandwidth: float, gain: float, path: Any) -> int:
        return max(int(bandwidth * gain * path.mss * PACING_MARGIN), 1)

    def pace_initially(self, path: Any) -> None:
        """Section 4.2.1: before anything is measured, the initial window in a round trip."""
        rtt = ns(path.srtt)
        self.rtt_seen = rtt > 0
        bandwidth = path.cwnd * SECOND / (rtt if self.rtt_seen else MILLISECOND)
        path.pacing_rate = self.pace(bandwidth, HIGH_GAIN, path)

    def set_rate(self, path: Any, gain: float) -> None:
        if not self.rtt_seen and path.srtt > 0:
            self.pace_initially(path)
        rate = self.pace(self.estimate(), gain, path)
        if self.full or rate > path.pacing_rate:
            path.pacing_rate = rate

    def product(self, bandwidth: float, gain: float) -> int:
        """Bandwidth times RTT times `gain`, in packets, rounded up."""
        if self.min_rtt is None:
            return INITIAL_WINDOW
        return math.ceil(bandwidth * self.min_rtt / SECOND * gain)

    def with_room(self, packets: int, path: Any) -> int:
        """Room for bursts at both ends, ACKs of two packets, and probing over small products (section 4.2.3.2)."""
        even = -(-(packets + 3 * path.burst) // 2) * 2
        return even + (2 if self.mode == PROBE_BANDWIDTH and self.phase == 0 else 0)

    def target(self, bandwidth: float, gain: float, path: Any) -> int:
        return self.with_room(self.product(bandwidth, gain), path)

    def in_network(self, in_flight: int, now: int, sample: Any, path: Any) -> int:
        """Packets in the network when the next burst leaves, if `now` there are `in_flight`."""
        wait = max(ns(sample.departure) - now, 0)
        delivered = int(self.estimate() * wait / SECOND)
        leaving = path.burst if self.pacing_gain > 1.0 else 0
        return max(in_flight + leaving - delivered, 0)

    def save_window(self, path: Any) -> None:
        untouched = self.prior_state not in ("Recovery", "Loss") and self.mode != PROBE_RTT
        self.prior_cwnd = path.cwnd if untouched else max(self.prior_cwnd, path.cwnd)

    def update_bandwidth(self, path: Any, sample: Any) -> None:
        """Sections 4.1.1 and 4.1.2: rounds and bandwidth."""
        self.round_start = False
        if sample.interval is None:
            return
        if sample.prior_delivered >= self.round_end:
            self.round_end = sample.delivered
            self.round += 1
            self.round_start = True
            self.conserving = False
        lost, limited = sample.newly_lost, sample.app_limited
        if self.policer.take(sample, lost, limited, self.round_start, self.mode == PROBE_BANDWIDTH, path.mss):
            self.probe_bandwidth(path, ns(sample.delivered_at))
        rate = sample.packets * SECOND / ns(sample.interval)
        if not limited or rate >= self.bandwidth.get():
            self.bandwidth.add(self.round, rate, BANDWIDTH_ROUNDS)

    def phase_over(self, now: int, path: Any, sample: Any) -> bool:
        """Section 4.3.4.2."""
        since = max(ns(sample.delivered_at) - self.phase_at, 0)
        long_enough = self.min_rtt is not None and since > self.min_rtt
        in_network = self.in_network(sample.in_flight_before, now, sample, path)
        bandwidth = self.bandwidth.get()
        if self.pacing_gain > 1.0:
            reached = in_network >= self.target(bandwidth, self.pacing_gain, path)
            return long_enough and (sample.newly_lost > 0 or reached)
        if self.pacing_gain < 1.0:
            return long_enough or in_network <= self.target(bandwidth, 1.0, path)
        return long_enough

    def probe_bandwidth(self, path: Any, at: int) -> None:
        """Enters ProbeBW in any phase but the one that drains (section 4.3.4.3)."""
        self.mode = PROBE_BANDWIDTH
        self.phase = (len(CYCLE) - path.below(len(CYCLE) - 1)) % len(CYCLE)
        self.phase_at = at

    def check_full(self, sample: Any) -> None:
        """Section 4.3.2.2."""
        if self.full or not self.round_start or sample.app_limited:
            return
        bandwidth = self.bandwidth.get()
        if bandwidth >= self.full_bandwidth * FULL_GROWTH:
            self.full_bandwidth, self.full_rounds = bandwidth, 0
        else:
            self.full_rounds += 1
            self.full = self.full_rounds >= FULL_ROUNDS

    def check_drain(self, now: int, path: Any, sample: Any) -> None:
        """Section 4.3.3."""
        full = self.target(self.bandwidth.get(), 1.0, path)
        if self.mode == STARTUP and self.full:
            self.mode = DRAIN
            path.ssthresh = full
        if self.mode == DRAIN and self.in_network(path.in_flight, now, sample, path) <= full:
            self.probe_bandwidth(path, ns(sample.delivered_at))

    def update_min_rtt(self, path: Any, ack: Any, now: int, sample: Any) -> bool:
        """Sections 4.1.3 and 4.3.5. True in ProbeRTT: what is sent there says nothing of the bandwidth."""
        if self.min_rtt_at is None:
            self.min_rtt_at = now
        expired = now > self.min_rtt_at + MIN_RTT_WINDOW
        if ack.rtt is not None:
            rtt = ns(ack.rtt)
            if self.min_rtt is None or rtt < self.min_rtt or (expired and not sample.maybe_delayed):
                self.min_rtt, self.min_rtt_at = rtt, now
        if expired and not self.after_idle and self.mode != PROBE_RTT:
            self.mode = PROBE_RTT
            self.save_window(path)
            self.probe_rtt_until = None
        if sample.packets > 0:
            self.after_idle = False
        if self.mode != PROBE_RTT:
            return False
        if self.probe_rtt_until is None:
            if path.in_flight <= SMALLEST_WINDOW:
                self.probe_rtt_until = now + PROBE_RTT_TIME
                self.probe_rtt_round = False
                self.round_end = sample.delivered
        else:
            self.probe_rtt_round = self.probe_rtt_round or self.round_start
            if self.probe_rtt_round and now > self.probe_rtt_until:
                self.leave_probe_rtt(path, now)
        return True

    def leave_probe_rtt(self, path: Any, now: int) -> None:
        self.min_rtt_at = now
        path.cwnd = max(path.cwnd, self.prior_cwnd)
        if self.full:
            self.probe_bandwidth(path, ns(self.last.delivered_at))
        else:
            self.mode = STARTUP

    def update_gains(self) -> None:
        if self.mode == STARTUP:
            self.pacing_gain, self.cwnd_gain = HIGH_GAIN, HIGH_GAIN
        elif self.mode == DRAIN:
            self.pacing_gain, self.cwnd_gain = 1.0 / HIGH_GAIN, HIGH_GAIN
        elif self.mode == PROBE_RTT:
            self.pacing_gain, self.cwnd_gain = 1.0, 1.0
        else:
            policed = self.policer.granted() is not None
            self.pacing_gain, self.cwnd_gain = 1.0 if policed else CYCLE[self.phase], CRUISING_CWND_GAIN

    def recover(self, path: Any, acked: int, sample: Any) -> bool:
        """Section 4.2.3.4: the window that recovery asks for. True: and no more."""
        state = path.state
        path.cwnd = max(path.cwnd - sample.newly_lost, 1)
        recovering = ("Recovery", "Loss")
        if state == "Recovery" and self.prior_state != "Recovery":
            self.conserving = True
            self.round_end = sample.delivered
            path.cwnd = path.in_flight + acked
        elif self.prior_state in recovering and state not in recovering:
            path.cwnd = max(path.cwnd, self.prior_cwnd)
            self.conserving = False
        self.prior_state = state
        if self.conserving:
            path.cwnd = max(path.cwnd, path.in_flight + acked)
        return self.conserving

    def set_window(self, path: Any, acked: int, sample: Any) -> None:
        """Section 4.2.3."""
        if acked > 0 and not self.recover(path, acked, sample):
            bandwidth = self.estimate()
            clumps = self.aggregation.allowance(bandwidth) if self.full else 0
            target = self.with_room(self.product(bandwidth, self.cwnd_gain) + clumps, path)
            cwnd = path.cwnd
            if self.full:
                cwnd = min(cwnd + acked, target)
            elif cwnd < target or sample.delivered < INITIAL_WINDOW:
                cwnd += acked
            path.cwnd = max(cwnd, SMALLEST_WINDOW)
        if self.mode == PROBE_RTT:
            path.cwnd = min(path.cwnd, SMALLEST_WINDOW)
