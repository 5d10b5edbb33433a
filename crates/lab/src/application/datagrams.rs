//! The common parts of applications that send datagrams: the sender, and the receiver's counters.

use polypath_net::random;
use polypath_transport::{Nanos, SECOND};
use rand_pcg::Pcg64Mcg;

use super::session::Request;

/// The sender of a datagram application and what its receiver counted.
pub(crate) struct Datagrams {
    pattern: Pattern,
    payload: u32,
    gap: Nanos,
    ends_at: Nanos,
    most: u64,
    over_at: Option<Nanos>,
    pub sent: u64,
    pub received: u64,
    pub received_bytes: u64,
    pub delay_sum: u64,
    last_delay: Option<Nanos>,
    /// In sixteenths of a nanosecond.
    jitter: Option<u64>,
    /// Of echo requests.
    pub requests: Vec<Request>,
}

/// How long the last datagram or echo reply is waited for.
const LINGER: Nanos = SECOND;

pub(super) enum Pattern {
    Steady,
    /// Mean times, the present burst's end, and the random stream.
    OnOff {
        on: Nanos,
        off: Nanos,
        until: Nanos,
        random: Pcg64Mcg,
    },
    Echo,
}

/// Time from one datagram to the next at a rate, which counts payload.
pub(super) fn gap(packet_bytes: u64, rate_bps: u64) -> Nanos {
    (u128::from(packet_bytes) * 8 * u128::from(SECOND) / u128::from(rate_bps)) as Nanos
}

impl Datagrams {
    pub(super) fn new(pattern: Pattern, payload: u64, gap: Nanos, ends_at: Nanos) -> Self {
        Self {
            pattern,
            payload: payload as u32,
            gap,
            ends_at,
            most: u64::MAX,
            over_at: None,
            sent: 0,
            received: 0,
            received_bytes: 0,
            delay_sum: 0,
            last_delay: None,
            jitter: None,
            requests: Vec::new(),
        }
    }

    /// No more than so many are sent.
    pub(super) fn at_most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    pub fn echo(&self) -> bool {
        matches!(self.pattern, Pattern::Echo)
    }

    pub fn payload(&self) -> u32 {
        self.payload
    }

    /// Nothing more will be sent.
    fn finished(&self, now: Nanos) -> bool {
        self.sent >= self.most || now >= self.ends_at
    }

    /// Called when a datagram may be due. Gives whether one leaves now, and when to ask again; never again once the last one had time
    /// to arrive.
    pub fn tick(&mut self, now: Nanos) -> (bool, Option<Nanos>) {
        if self.finished(now) {
            let over = *self.over_at.get_or_insert(now + LINGER);
            return (false, (now < over).then_some(over));
        }
        if let Pattern::OnOff {
            on,
            off,
            until,
            random,
        } = &mut self.pattern
            && now >= *until
        {
            let burst_from = if self.sent == 0 {
                now
            } else {
                now + exponential(random, *off)
            };
            *until = burst_from + exponential(random, *on).max(1);
            if burst_from > now {
                return (false, Some(burst_from.min(self.ends_at)));
            }
        }
        self.sent += 1;
        if self.echo() {
            self.requests.push(Request {
                sent_at: now,
                delay: None,
            });
        }
        (true, Some((now + self.gap.max(1)).min(self.ends_at)))
    }

    /// Mean deviation of the difference in delay of two datagrams, smoothed (RFC 3550 sections 6.4.1 and A.8). Absent before the second.
    pub fn jitter(&self) -> Option<Nanos> {
        self.jitter.map(|sixteenths| sixteenths >> 4)
    }

    /// The receiver took a datagram, or the sender an echo reply.
    pub fn arrived(&mut self, sequence: u64, bytes: u32, delay: Nanos) {
        self.received += 1;
        self.received_bytes += u64::from(bytes);
        self.delay_sum += delay;
        if let Some(last) = self.last_delay.replace(delay) {
            let jitter = self.jitter.unwrap_or_default();
            self.jitter = Some(jitter + delay.abs_diff(last) - ((jitter + 8) >> 4));
        }
        if let Some(request) = self.requests.get_mut(sequence as usize) {
            request.delay.get_or_insert(delay);
        }
    }
}

fn exponential(random: &mut Pcg64Mcg, mean: Nanos) -> Nanos {
    (-(1.0 - random::uniform(random)).ln() * mean as f64) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady() -> Datagrams {
        Datagrams::new(Pattern::Steady, 1000, gap(1000, 1_000_000), SECOND)
    }

    #[test]
    fn the_last_of_it_is_waited_for_from_its_end_on() {
        let long = Pattern::OnOff {
            on: 1,
            off: 1000 * SECOND,
            until: 0,
            random: random::stream(1, "on-off", 0, "test"),
        };
        for pattern in [long, Pattern::Echo] {
            let mut datagrams = Datagrams::new(pattern, 1000, 700 * SECOND, 2 * SECOND);
            let (mut now, mut ticks) = (0, Vec::new());
            while let (_, Some(next)) = datagrams.tick(now) {
                assert!(next > now);
                now = next;
                ticks.push(now);
            }
            assert_eq!(ticks[ticks.len() - 2..], [2 * SECOND, 2 * SECOND + LINGER]);
        }
    }

    #[test]
    fn jitter_is_a_sixteenth_of_each_difference_and_forgets_as_fast() {
        let mut datagrams = steady();
        datagrams.arrived(0, 1000, 10_000);
        assert_eq!(datagrams.jitter(), None);
        datagrams.arrived(1, 1000, 26_000);
        assert_eq!(datagrams.jitter(), Some(1_000));
        datagrams.arrived(2, 1000, 26_000);
        assert_eq!(datagrams.jitter(), Some(937));
        datagrams.arrived(3, 1000, 10_000);
        assert_eq!(datagrams.jitter(), Some(1_878));
    }
}
