//! Echo requests (ICMP): the delay of a path, and what it loses.

use polypath_settings::model;
use polypath_transport::{MILLISECOND, Nanos};

use super::datagrams::{Datagrams, Pattern};
use super::kind::{Beginning, Begun, Delays, Direction, Entry, Kind, MOST_REQUESTS, Traffic};
use crate::plan::Transport;

model! {
    "ping",
    "Echo requests (ICMP) at an interval",
    "RFC 792, RFC 4443 section 4";
    /// Settings of echo requests.
    PingConfig {
        /// Time from one request to the next.
        interval_ns: Nanos as Period = Integer(1000 * MILLISECOND),
        /// Bytes in a request after the ICMP header.
        payload_bytes: u64 as Size.at_least(0) = Integer(56),
        /// Number of requests.
        count: Option<u64> as Integer.at_least(1).at_most(MOST_REQUESTS) = Absent(()),
        /// How long it goes on.
        duration_ns: Option<Nanos> as Period = Absent(()),
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: &[Transport::Icmp],
    traffic: Traffic::of(Direction::BothWays, Delays::Echoes),
};

impl Kind for PingConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn begin(&self, at: Beginning) -> Begun {
        let ends_at = self
            .duration_ns
            .map_or(Nanos::MAX, |duration| at.start + duration);
        let requests = Datagrams::new(Pattern::Echo, self.payload_bytes, self.interval_ns, ends_at);
        Begun::Datagrams(requests.at_most(self.count.unwrap_or(u64::MAX)))
    }
}
