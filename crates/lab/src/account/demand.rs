//! How many ends want more of a channel than they get.

use polypath_net::ChannelId;

#[derive(Debug)]
pub(super) struct Demand(Vec<u32>);

impl Demand {
    pub fn new(channels: usize) -> Self {
        Self(vec![0; channels])
    }

    /// An end wanted more of it before, or not, and does now, or does not.
    pub fn change(&mut self, channel: ChannelId, before: bool, now: bool) {
        let count = &mut self.0[channel.index()];
        *count = *count + u32::from(now) - u32::from(before);
    }

    pub fn of(&self, channel: ChannelId) -> u32 {
        self.0[channel.index()]
    }
}
