//! The packets of an end that wait at a link. What others send meanwhile is in their way.

use std::collections::VecDeque;

use polypath_net::Nanos;

/// A packet that entered the queue, by flow and its number there.
type Name = (u32, u16);

#[derive(Debug, Default)]
pub(super) struct Waiting(VecDeque<(Nanos, Name)>);

impl Waiting {
    pub fn enter(&mut self, at: Nanos, name: Name) {
        self.0.push_back((at, name));
    }

    /// It left, or was dropped.
    pub fn leave(&mut self, name: Name) {
        if let Some(place) = self.0.iter().position(|(_, it)| *it == name) {
            self.0.remove(place);
        }
    }

    /// Whether any has been there since `at` or longer.
    pub fn any_since(&self, at: Nanos) -> bool {
        self.0.front().is_some_and(|&(entered, _)| entered <= at)
    }
}
