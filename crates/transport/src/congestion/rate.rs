//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00).

use crate::Nanos;

/// What one ACK says of the rate at which packets arrive.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Absent where the ACK delivers nothing whose sending was timed.
    pub interval: Option<Interval>,
    /// Packets delivered so far, and when the last was.
    pub delivered: u64,
    pub delivered_at: Nanos,
    /// Packets taken for lost so far, and by this ACK.
    pub lost: u64,
    pub newly_lost: u32,
    /// Packets in flight before this ACK.
    pub in_flight_before: u32,
    /// A single small packet: the peer may have waited before it acknowledged.
    pub maybe_delayed: bool,
    /// When the next packet may leave.
    pub departure: Nanos,
}

/// The stretch from the sending of a packet to its acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Packets delivered meanwhile.
    pub packets: u64,
    /// Packets that had been delivered when it was sent.
    pub prior_delivered: u64,
    /// The longer of the time in which they were sent and that in which they were acknowledged.
    pub time: Nanos,
    /// The application had nothing more to send.
    pub app_limited: bool,
}
