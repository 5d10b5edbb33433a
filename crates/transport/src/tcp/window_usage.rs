//! How much of the congestion window is used (RFC 7661, Linux `tcp_cwnd_validate`).

use super::flight::Flight;

/// The most packets in flight during a window, and whether the congestion window was the limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUsage {
    max_in_flight: u32,
    limited: bool,
    /// The sequence number with which the window ends.
    end: u64,
}

impl WindowUsage {
    /// Takes how much is in flight, and whether the congestion window was the limit.
    #[inline(always)]
    pub fn note(&mut self, flight: &Flight, limited: bool) {
        let in_flight = flight.packets();
        if flight.una() >= self.end || limited || (!self.limited && in_flight > self.max_in_flight)
        {
            self.limited = limited;
            self.max_in_flight = in_flight;
            self.end = flight.next();
        }
    }

    /// The window ends before `from`, which was not sent after all.
    pub fn end_at(&mut self, from: u64) {
        self.end = self.end.min(from);
    }

    #[inline(always)]
    pub fn limited(self) -> bool {
        self.limited
    }

    #[inline(always)]
    pub fn max_in_flight(self) -> u32 {
        self.max_in_flight
    }
}
