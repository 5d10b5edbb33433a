//! Counters of channels and of the whole network.

use crate::ids::Nanos;

/// What one channel did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStats {
    /// Packets that left the queue and were sent to their last bit.
    pub sent_packets: u64,
    /// Their IP lengths and overheads.
    pub sent_bytes: u64,
    /// Refused or dropped by the queue.
    pub dropped_packets: u64,
    /// Lost to the loss model, or because the channel was down.
    pub lost_packets: u64,
    /// The most packets that ever waited at once, the one being sent not included.
    pub max_queue_packets: u64,
    /// Time spent sending; with a token bucket, the time in which tokens came in for what was sent.
    pub busy: Nanos,
}

/// Where all packets went: `injected + duplicated == delivered + dropped + lost + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub injected: u64,
    /// Copies made by channels.
    pub duplicated: u64,
    pub delivered: u64,
    pub dropped: u64,
    pub lost: u64,
    pub in_flight: u64,
}
