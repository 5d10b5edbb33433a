//! UDP datagrams at a constant rate.

use polypath_settings::model;
use polypath_transport::Nanos;

use super::datagrams::{Datagrams, Pattern, gap};
use super::kind::{Beginning, Begun, Delays, Direction, Entry, Kind, Traffic};
use crate::plan::Transport;

model! {
    "cbr",
    "UDP datagrams at a constant rate",
    "iperf -u";
    /// Settings of datagrams at a constant rate.
    CbrConfig {
        /// Offered rate.
        rate_bps: u64 as Rate,
        /// Bytes of a datagram's payload.
        packet_bytes: u64 as Size = Integer(1200),
        /// How long it sends; left out: to the end of the run.
        duration_ns: Nanos as Period.or_rest(),
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: &[Transport::Udp],
    traffic: Traffic::of(Direction::OneWay, Delays::None),
};

impl Kind for CbrConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn begin(&self, at: Beginning) -> Begun {
        Begun::Datagrams(Datagrams::new(
            Pattern::Steady,
            self.packet_bytes,
            gap(self.packet_bytes, self.rate_bps),
            at.start + self.duration_ns,
        ))
    }
}
