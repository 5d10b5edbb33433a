//! Changes bytes of the payload and sets the TCP checksum right, as application-level gateways do.

use polypath_transport::registry::{Entry, Parameter};

use super::work::{Middlebox, Passing, Way, Work};

pub(super) const ENTRY: Entry<dyn Middlebox> = Entry {
    name: "alter-payload",
    description: "Changes bytes in segments' payload, lengths kept, and sets TCP's checksum right",
    source: "RFC 8684 sections 3.3.1 (DSS checksum) and 3.7 (MP_FAIL)",
    parameters: || {
        vec![
            Parameter::integer(
                "after",
                10,
                0,
                u64::from(u32::MAX),
                "segments with payload that it lets by before",
            ),
            Parameter::integer(
                "count",
                1,
                1,
                u64::from(u32::MAX),
                "segments that it changes",
            ),
            Parameter::choice(
                "direction",
                &["forward", "backward", "both"],
                "packets of which direction; forward is from the link's first end to its second",
            ),
        ]
    },
    make: |parameters| {
        Box::new(AlterPayload {
            after: parameters.integer("after"),
            count: parameters.integer("count"),
            way: Way::of(parameters),
        })
    },
};

struct AlterPayload {
    /// Segments to let by, then to change.
    after: u64,
    count: u64,
    way: Way,
}

impl Middlebox for AlterPayload {
    fn pass(&mut self, mut packet: Passing, work: &mut Work<'_>) {
        let wanted = self.way.includes(packet.forward);
        let data = packet
            .segment()
            .is_some_and(|segment| segment.payload.len > 0);
        if wanted && data {
            if self.after > 0 {
                self.after -= 1;
            } else if self.count > 0 {
                self.count -= 1;
                packet.body.altered = true;
                work.tally.changed += 1;
            }
        }
        work.send(packet);
    }
}
