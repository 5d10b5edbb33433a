//! Changes bytes of the payload and sets the TCP checksum right, as application-level gateways do.

use polypath_settings::{Algorithm, algorithm};

use super::work::{self, Middlebox, Passing, Way, Work};

algorithm! {
    "alter-payload",
    "Changes bytes in segments' payload, lengths kept, and sets TCP's checksum right",
    "RFC 8684 sections 3.3.1 (DSS checksum) and 3.7 (MP_FAIL)";
    /// Settings of changes to the payload.
    AlterPayloadConfig {
        /// segments with payload that it lets by before
        after: u64 as Integer.at_least(0).at_most(u32::MAX as u64) = Integer(10),
        /// segments that it changes
        count: u64 as Integer.at_least(1).at_most(u32::MAX as u64) = Integer(1),
        ..way: Way = work::FORWARD
    }
}

impl Algorithm<dyn Middlebox> for AlterPayloadConfig {
    fn make(self) -> Box<dyn Middlebox> {
        Box::new(AlterPayload {
            after: self.after,
            count: self.count,
            way: self.way,
        })
    }
}

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
