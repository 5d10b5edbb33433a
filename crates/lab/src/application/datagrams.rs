//! Applications that send datagrams: ping, constant rate, on and off.

use polypath_net::random;
use polypath_transport::{Nanos, SECOND};
use rand_pcg::Pcg64Mcg;

use super::Request;
use crate::plan::Work;

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

enum Pattern {
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

/// IPv4 and UDP headers, as a datagram application's rate counts IP packets.
fn gap(packet_bytes: u64, rate: u64) -> Nanos {
    (u128::from(packet_bytes) * 8 * u128::from(SECOND) / u128::from(rate)) as Nanos
}

impl Datagrams {
    /// The datagram application of `work`; nothing for those over connections.
    pub fn new(work: &Work, start: Nanos, seed: u64, application: usize) -> Option<Self> {
        let new = |pattern, payload: u64, gap, ends_at, most| Self {
            pattern,
            payload: payload as u32,
            gap,
            ends_at,
            most,
            over_at: None,
            sent: 0,
            received: 0,
            received_bytes: 0,
            delay_sum: 0,
            last_delay: None,
            jitter: None,
            requests: Vec::new(),
        };
        Some(match *work {
            Work::Ping {
                interval_ns,
                payload_bytes,
                count,
                duration_ns,
            } => {
                let ends_at = duration_ns.map_or(Nanos::MAX, |duration| start + duration);
                new(
                    Pattern::Echo,
                    payload_bytes,
                    interval_ns,
                    ends_at,
                    count.unwrap_or(u64::MAX),
                )
            }
            Work::Cbr {
                rate_bps,
                packet_bytes,
                duration_ns,
            } => new(
                Pattern::Steady,
                packet_bytes,
                gap(packet_bytes, rate_bps),
                start + duration_ns,
                u64::MAX,
            ),
            Work::OnOff {
                rate_bps,
                packet_bytes,
                on_ns,
                off_ns,
                duration_ns,
            } => {
                let random = random::stream(seed, "application", application as u64, "on-off");
                let pattern = Pattern::OnOff {
                    on: on_ns,
                    off: off_ns,
                    until: start,
                    random,
                };
                new(
                    pattern,
                    packet_bytes,
                    gap(packet_bytes, rate_bps),
                    start + duration_ns,
                    u64::MAX,
                )
            }
            _ => return None,
        })
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
                return (false, Some(burst_from));
            }
        }
        self.sent += 1;
        if self.echo() {
            self.requests.push(Request {
                sent_at: now,
                delay: None,
            });
        }
        (true, Some(now + self.gap.max(1)))
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
        let work = Work::Cbr {
            rate_bps: 1_000_000,
            packet_bytes: 1000,
            duration_ns: SECOND,
        };
        Datagrams::new(&work, 0, 1, 0).expect("a datagram application")
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
