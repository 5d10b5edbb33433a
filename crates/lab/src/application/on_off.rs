//! UDP datagrams in bursts.

use polypath_net::random;
use polypath_settings::model;
use polypath_transport::Nanos;

use super::datagrams::{Datagrams, Pattern, gap};
use super::kind::{Beginning, Begun, Delays, Direction, Entry, Kind, Traffic};
use crate::plan::Transport;

model! {
    "on-off",
    "UDP datagrams in exponentially distributed bursts",
    "ns-2 Application/Traffic/Exponential";
    /// Settings of bursts; on and off times are exponentially distributed around their means.
    OnOffConfig {
        /// Rate while on.
        rate_bps: u64 as Rate,
        /// Bytes of a datagram's payload.
        packet_bytes: u64 as Size = Integer(1200),
        /// Mean time on.
        on_ns: Nanos as Period,
        /// Mean time off.
        off_ns: Nanos as Period,
        /// How long it sends; left out: to the end of the run.
        duration_ns: Nanos as Period.or_rest(),
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: &[Transport::Udp],
    traffic: Traffic::of(Direction::OneWay, Delays::None),
};

impl Kind for OnOffConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn begin(&self, at: Beginning) -> Begun {
        let pattern = Pattern::OnOff {
            on: self.on_ns,
            off: self.off_ns,
            until: at.start,
            random: random::stream(at.seed, "application", at.number as u64, "on-off"),
        };
        Begun::Datagrams(Datagrams::new(
            pattern,
            self.packet_bytes,
            gap(self.packet_bytes, self.rate_bps),
            at.start + self.duration_ns,
        ))
    }
}
