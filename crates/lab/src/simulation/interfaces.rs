//! What became of hosts' interfaces.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::Action;

/// What became of hosts' interfaces, by node and interface.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    down: BTreeSet<(usize, usize)>,
    backup: BTreeMap<(usize, usize), bool>,
}

impl Interfaces {
    pub fn note(&mut self, action: &Action) {
        match *action {
            Action::Interface {
                node,
                interface,
                up: false,
            } => {
                self.down.insert((node, interface));
            }
            Action::Interface {
                node, interface, ..
            } => {
                self.down.remove(&(node, interface));
            }
            Action::Priority {
                node,
                interface,
                backup,
            } => {
                self.backup.insert((node, interface), backup);
            }
            Action::Migrate { .. } | Action::Link { .. } => {}
        }
    }

    /// Whether an interface's subflows are backups, if that has changed.
    pub fn backup(&self, node: usize, interface: usize) -> Option<bool> {
        self.backup.get(&(node, interface)).copied()
    }

    /// No interface of any host is down.
    pub fn all_up(&self) -> bool {
        self.down.is_empty()
    }

    /// The interfaces of a node that are down.
    pub fn down(&self, node: usize) -> impl Iterator<Item = usize> {
        let down = self.down.range((node, 0)..(node + 1, 0));
        down.map(|(_, interface)| *interface)
    }
}
