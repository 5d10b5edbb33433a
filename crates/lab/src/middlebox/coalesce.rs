//! Joins consecutive segments of a flow into longer ones.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use polypath_settings::{Algorithm, algorithm};
use polypath_transport::{MILLISECOND, NEVER, Nanos, Segment};
use polypath_wire::tcp::Flags;

use super::work::{self, Middlebox, Passing, Way, Work};

algorithm! {
    "coalesce",
    "Joins consecutive segments of a flow, with the options of the first",
    "RFC 8684 section 6 (the mapping of what is joined is lost)";
    /// Settings of joining.
    CoalesceConfig {
        /// longest payload that it makes
        bytes: u32 as Integer.at_least(2).at_most(65_495) = Integer(2_920),
        /// milliseconds that a segment waits for the next
        hold_ms: f64 as Number.within(0.001, 1_000.0) = Number(1.0),
        ..way: Way = work::BOTH
    }
}

impl Algorithm<dyn Middlebox> for CoalesceConfig {
    fn make(self) -> Box<dyn Middlebox> {
        Box::new(Coalesce {
            bytes: self.bytes,
            hold: (self.hold_ms * MILLISECOND as f64) as Nanos,
            way: self.way,
            waiting: BTreeMap::new(),
        })
    }
}

struct Coalesce {
    bytes: u32,
    hold: Nanos,
    way: Way,
    /// By source and destination.
    waiting: BTreeMap<(SocketAddr, SocketAddr), Waiting>,
}

/// A segment that waits for the next.
struct Waiting {
    packet: Passing,
    until: Nanos,
    /// Another was appended.
    grown: bool,
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
        if let Some(mut first) = self.waiting.remove(&ends) {
            // `inet_gro_receive`: what differs in the ECN field stays apart, so that no mark is lost (RFC 3168 section 5.3).
            let alike = first.packet.ecn == packet.ecn;
            let joined = match (first.packet.segment(), &joins) {
                (Some(first), Some(next)) => alike && self.join(first, next),
                _ => false,
            };
            if joined {
                work.tally.absorbed += 1;
                work.tally.changed += u64::from(!first.grown);
                first.grown = true;
                self.waiting.insert(ends, first);
                return;
            }
            work.send(first.packet);
        }
        if joins.is_some() {
            let until = work.now + self.hold;
            let waiting = Waiting {
                packet,
                until,
                grown: false,
            };
            self.waiting.insert(ends, waiting);
        } else {
            work.send(packet);
        }
    }

    fn deadline(&self) -> Nanos {
        let times = self.waiting.values().map(|waiting| waiting.until);
        times.min().unwrap_or(NEVER)
    }

    fn on_time(&mut self, work: &mut Work<'_>) {
        let now = work.now;
        let due = |waiting: &Waiting| waiting.until <= now;
        let ends: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| due(waiting))
            .map(|(ends, _)| *ends)
            .collect();
        for ends in ends {
            if let Some(waiting) = self.waiting.remove(&ends) {
                work.send(waiting.packet);
            }
        }
    }

    fn held(&self) -> u64 {
        self.waiting.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use polypath_net::Ecn;
    use polypath_net::random::stream;
    use polypath_transport::Purpose;

    use super::*;
    use crate::flow::{Body, Content, End};
    use crate::middlebox::{Conversation, Tally};

    const LEN: u32 = 1_000;

    /// The ECN field and the length of what leaves of a flow's consecutive segments with these fields.
    fn passed(fields: &[Ecn]) -> Vec<(Ecn, u32)> {
        let mut coalesce = Coalesce {
            bytes: 10 * LEN,
            hold: MILLISECOND,
            way: Way::Both,
            waiting: BTreeMap::new(),
        };
        let (mut random, mut tally) = (stream(1, "test", 0, "coalesce"), Tally::default());
        let mut work = Work::new(0, &mut random, &mut tally);
        for (number, ecn) in (0..).zip(fields) {
            let mut segment = Segment {
                seq: number * LEN,
                flags: Flags::ACK,
                ..Segment::default()
            };
            segment.payload.offset = u64::from(number * LEN);
            segment.payload.len = LEN;
            let end = SocketAddr::from(([10, 0, 0, 1], 80));
            let packet = Passing {
                forward: true,
                source: end,
                destination: end,
                ecn: *ecn,
                body: Body {
                    identification: 0,
                    altered: false,
                    purpose: Purpose::Data,
                    content: Content::Tcp(segment),
                },
                flow: None,
                conversation: Conversation {
                    sender: End::Datagrams { application: 0 },
                    stream: 0,
                    first_dsn: None,
                },
                about: None,
            };
            coalesce.pass(packet, &mut work);
        }
        work.now = coalesce.deadline();
        coalesce.on_time(&mut work);
        let sent = work.sent().into_iter();
        sent.map(|mut it| {
            (
                it.ecn,
                it.segment().map_or(0, |segment| segment.payload.len),
            )
        })
        .collect()
    }

    #[test]
    fn a_mark_is_joined_with_marks_alone() {
        use Ecn::{Ce, Ect0};
        assert_eq!(
            passed(&[Ect0, Ect0, Ce, Ce, Ect0]),
            [(Ect0, 2 * LEN), (Ce, 2 * LEN), (Ect0, LEN)]
        );
    }
}
