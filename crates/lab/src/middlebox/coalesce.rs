//! Joins consecutive segments of a flow into longer ones.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use polypath_transport::registry::{Entry, Parameter};
use polypath_transport::{MILLISECOND, NEVER, Nanos, Segment};
use polypath_wire::tcp::Flags;

use super::{Middlebox, Passing, Way, Work};

pub(super) const ENTRY: Entry<dyn Middlebox> = Entry {
    name: "coalesce",
    description: "Joins consecutive segments of a flow, with the options of the first",
    source: "RFC 8684 section 6 (the mapping of what is joined is lost)",
    parameters: || {
        vec![
            Parameter::integer("bytes", 2_920, 2, 65_495, "longest payload that it makes"),
            Parameter::number(
                "hold_ms",
                1.0,
                0.001,
                1_000.0,
                "milliseconds that a segment waits for the next",
            ),
            Way::parameter(),
        ]
    },
    make: |parameters| {
        Box::new(Coalesce {
            bytes: parameters.integer("bytes") as u32,
            hold: (parameters.number("hold_ms") * MILLISECOND as f64) as Nanos,
            way: Way::of(parameters),
            waiting: BTreeMap::new(),
        })
    },
};

struct Coalesce {
    bytes: u32,
    hold: Nanos,
    way: Way,
    /// By source and destination: the segment that waits for the next, and until when.
    waiting: BTreeMap<(SocketAddr, SocketAddr), (Passing, Nanos)>,
}

/// A segment with any of these goes as it is.
const ALONE: Flags = Flags::SYN
    .union(Flags::FIN)
    .union(Flags::RST)
    .union(Flags::URG)
    .union(Flags::CWR);

impl Coalesce {
    /// Appends `next` if it continues `first` in sequence space and in the sender's stream.
    fn join(&self, first: &mut Segment, next: &Segment) -> bool {
        let fits = first.payload.len + next.payload.len <= self.bytes;
        let end = first.payload.offset + u64::from(first.payload.len);
        let continues =
            first.seq.wrapping_add(first.payload.len) == next.seq && end == next.payload.offset;
        if fits && continues {
            first.payload.len += next.payload.len;
            first.flags |= next.flags;
            first.ack = next.ack;
            first.window = next.window;
        }
        fits && continues
    }
}

impl Middlebox for Coalesce {
    fn pass(&mut self, mut packet: Passing, work: &mut Work<'_>) {
        let ends = packet.ends();
        let wanted = self.way.includes(packet.forward) && !packet.body.altered;
        let segment = packet.segment().cloned();
        let joins = segment.filter(|segment| {
            wanted && segment.payload.len > 0 && !segment.flags.intersects(ALONE)
        });
        if let Some((mut first, until)) = self.waiting.remove(&ends) {
            let joined = match (first.segment(), &joins) {
                (Some(first), Some(next)) => self.join(first, next),
                _ => false,
            };
            if joined {
                work.tally.absorbed += 1;
                work.tally.changed += 1;
                self.waiting.insert(ends, (first, until));
                return;
            }
            work.send(first);
        }
        if joins.is_some() {
            self.waiting.insert(ends, (packet, work.now + self.hold));
        } else {
            work.send(packet);
        }
    }

    fn deadline(&self) -> Nanos {
        let times = self.waiting.values().map(|(_, until)| *until);
        times.min().unwrap_or(NEVER)
    }

    fn on_time(&mut self, work: &mut Work<'_>) {
        let now = work.now;
        let due = |until: Nanos| until <= now;
        let ends: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, (_, until))| due(*until))
            .map(|(ends, _)| *ends)
            .collect();
        for ends in ends {
            if let Some((packet, _)) = self.waiting.remove(&ends) {
                work.send(packet);
            }
        }
    }

    fn held(&self) -> u64 {
        self.waiting.len() as u64
    }
}
