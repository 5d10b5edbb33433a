//! Converts a segment's sequence numbers to offsets in the streams.

use polypath_wire::mptcp::{DataAck, Dsn};
use polypath_wire::tcp::Segment;

/// What the numbers in a segment count from: those of what its sender sends, and of what it receives.
#[derive(Clone, Copy)]
pub(crate) struct Origins {
    /// Initial sequence numbers.
    pub sequence: (u32, u32),
    /// Data sequence numbers of offset 0.
    pub data: (Option<u64>, Option<u64>),
    /// What it received in order.
    pub received: u64,
    /// About how far it has sent and received on the subflow.
    pub reached: (u64, u64),
}

impl Origins {
    /// A sequence number of its own, relative.
    pub fn sent(&self, number: u32) -> u64 {
        near(number.wrapping_sub(self.sequence.0), self.reached.0)
    }

    /// A sequence number of its peer's, relative.
    pub fn taken(&self, number: u32) -> u64 {
        near(number.wrapping_sub(self.sequence.1), self.reached.1)
    }

    /// The offset up to which a segment of this end acknowledges data.
    pub fn acknowledged(&self, segment: &Segment) -> Option<u64> {
        let zero = self.data.1?;
        Some(match segment.dss?.data_ack? {
            DataAck::Long(number) => number.get().wrapping_sub(zero),
            DataAck::Short(number) => near(number.wrapping_sub(zero as u32), self.received),
        })
    }

    /// The offset of the data that the segment's DSS maps.
    pub fn carried(&self, segment: &Segment) -> Option<u64> {
        let zero = self.data.0?;
        Some(match segment.dss?.mapping?.dsn {
            Dsn::Long(number) => number.get().wrapping_sub(zero),
            Dsn::Short(number) => near(number.wrapping_sub(zero as u32), segment.payload.offset),
        })
    }
}

/// The number nearest to `about` that ends in these 32 bits, and is not negative.
fn near(low: u32, about: u64) -> u64 {
    let away = i64::from(low.wrapping_sub(about as u32) as i32);
    about.checked_add_signed(away).unwrap_or(u64::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_numbers_go_on_beyond_32_bits() {
        let origins = Origins {
            sequence: (u32::MAX, 7),
            data: (None, None),
            received: 0,
            reached: (5 << 32, (1 << 32) + 90),
        };
        assert_eq!(origins.sent(0), (5 << 32) + 1);
        assert_eq!(origins.sent(u32::MAX - 1), (5 << 32) - 1);
        assert_eq!(origins.taken(107), (1 << 32) + 100);
        assert_eq!(origins.taken(6), u64::from(u32::MAX));
        let begun = Origins {
            reached: (0, 0),
            ..origins
        };
        // What stands before the first byte, as in a keep-alive probe.
        assert_eq!(begun.sent(u32::MAX - 1), u64::from(u32::MAX));
    }
}
