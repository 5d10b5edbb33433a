//! The time that channels have been sending. The rest of their counters is left out, because it takes longer.

use super::Network;
use crate::events::EventQueue;
use crate::ids::{ChannelId, Nanos};

/// The time that a channel spent sending up to now; nothing if there is no such channel.
pub fn busy<B, Q: EventQueue>(network: &mut Network<B, Q>, channel: ChannelId) -> Nanos {
    let now = network.now;
    let channel = network.channels.get_mut(channel.index());
    channel.map_or(0, |channel| channel.busy(now))
}
