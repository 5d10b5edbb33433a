//! Changes of channels, at once or at their time.

use super::{CONTROL, ChangeError, Network, Output};
use crate::channel::Dropped;
use crate::config::{Change, ChannelConfig};
use crate::events::EventQueue;
use crate::ids::{ChannelId, NEVER, Nanos};
use crate::packet::{DropReason, Observer};

impl<B: Clone, Q: EventQueue> Network<B, Q> {
    /// Has a change applied at its time, before whatever else happens then. [`Output::Changed`] tells of it.
    ///
    /// # Errors
    /// An unknown channel, a time that is past, or values that no channel can have.
    pub fn schedule(
        &mut self,
        at: Nanos,
        channel: ChannelId,
        change: Change,
    ) -> Result<(), ChangeError> {
        self.config(channel)?.with(&change).check()?;
        if at < self.now {
            return Err(ChangeError::Past { at, now: self.now });
        }
        self.changes.insert((at, self.scheduled), (channel, change));
        self.scheduled += 1;
        self.set_control();
        Ok(())
    }

    /// Applies a change now.
    ///
    /// # Errors
    /// An unknown channel, or values that no channel can have.
    pub fn apply<O: Observer<B>>(
        &mut self,
        channel: ChannelId,
        change: &Change,
        obs: &mut O,
    ) -> Result<(), ChangeError> {
        let config = self.config(channel)?.with(change);
        config.check()?;
        self.reconfigure(channel.0, config, obs);
        Ok(())
    }

    pub(super) fn set_control(&mut self) {
        let at = match self.changes.first_key_value() {
            _ if !self.urgent.is_empty() => self.now,
            Some((&(at, _), _)) => at,
            None => NEVER,
        };
        self.events.set(CONTROL, at);
    }

    /// The entity of changes came up: tells what is urgent, or applies the next change.
    pub(super) fn control<O: Observer<B>>(&mut self, obs: &mut O) -> Option<Output<B>> {
        if let Some(output) = self.urgent.pop_front() {
            self.set_control();
            return Some(output);
        }
        let (_, (channel, change)) = self.changes.pop_first()?;
        self.set_control();
        let config = self.channels[channel.index()].config().with(&change);
        self.reconfigure(channel.0, config, obs);
        Some(Output::Changed(channel))
    }

    pub(super) fn reconfigure<O: Observer<B>>(
        &mut self,
        channel: u32,
        config: ChannelConfig,
        obs: &mut O,
    ) {
        let mut dropped = Dropped::new();
        let changed = &mut self.channels[channel as usize];
        let lost = changed.reconfigure(self.now, config, &mut self.store, &mut dropped);
        for slot in lost {
            self.discard(channel, slot, DropReason::Down, obs);
        }
        self.discard_all(channel, dropped, obs);
        self.tell_medium(channel);
        self.set_event(channel);
    }
}
