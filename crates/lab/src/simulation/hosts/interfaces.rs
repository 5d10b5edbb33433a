//! What became of a host's interfaces.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::Action;

/// What became of a host's interfaces, by their place.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    down: BTreeSet<usize>,
    backup: BTreeMap<usize, bool>,
}

impl Interfaces {
    /// One of its own interfaces changes.
    pub fn note(&mut self, action: &Action) {
        match *action {
            Action::Interface {
                interface,
                up: false,
                ..
            } => {
                self.down.insert(interface);
            }
            Action::Interface { interface, .. } => {
                self.down.remove(&interface);
            }
            Action::Priority {
                interface, backup, ..
            } => {
                self.backup.insert(interface, backup);
            }
            Action::Migrate { .. } | Action::Link { .. } => {}
        }
    }

    /// Whether an interface's subflows are backups, if that has changed.
    pub fn backup(&self, interface: usize) -> Option<bool> {
        self.backup.get(&interface).copied()
    }

    /// Those that are down.
    pub fn down(&self) -> impl Iterator<Item = usize> {
        self.down.iter().copied()
    }
}
