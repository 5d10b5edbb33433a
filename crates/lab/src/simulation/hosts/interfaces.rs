//! The state of a host's interfaces after changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::Action;

/// What became of a host's interfaces, by their place.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    down: BTreeSet<usize>,
    backup: BTreeMap<usize, bool>,
    fullmesh: BTreeMap<usize, bool>,
    /// Their addresses are endpoints no more.
    flushed: BTreeSet<usize>,
    /// The same, one by one.
    removed: BTreeSet<usize>,
}

impl Interfaces {
    /// Something changes of its `number` interfaces.
    pub fn note(&mut self, action: &Action, number: usize) {
        match *action {
            Action::Interface {
                interface,
                up: false,
                ..
            } => {
                self.down.insert(interface);
                self.flushed.remove(&interface);
                self.removed.remove(&interface);
            }
            Action::Interface { interface, .. } => {
                self.down.remove(&interface);
            }
            Action::Priority {
                interface, backup, ..
            } => {
                self.backup.insert(interface, backup);
            }
            Action::FullMesh {
                interface,
                fullmesh,
                ..
            } => {
                self.fullmesh.insert(interface, fullmesh);
            }
            Action::Endpoint {
                interface,
                endpoint: false,
                ..
            } => {
                self.removed.insert(interface);
            }
            Action::Endpoint { interface, .. } => {
                self.removed.remove(&interface);
                self.flushed.remove(&interface);
            }
            Action::Flush { .. } => {
                let up = (0..number).filter(|interface| !self.down.contains(interface));
                self.flushed = up.collect();
            }
            Action::Migrate { .. } | Action::Link { .. } => {}
        }
    }

    /// Whether an interface's subflows are backups, if that has changed.
    pub fn backup(&self, interface: usize) -> Option<bool> {
        self.backup.get(&interface).copied()
    }

    /// Whether the endpoints of interfaces have flag `fullmesh`, where that has changed.
    pub fn fullmesh(&self) -> impl Iterator<Item = (usize, bool)> {
        (self.fullmesh.iter()).map(|(interface, fullmesh)| (*interface, *fullmesh))
    }

    /// Those whose addresses are endpoints no more.
    pub fn flushed(&self) -> impl Iterator<Item = usize> {
        self.flushed.iter().copied()
    }

    /// Those whose endpoints were taken away.
    pub fn removed(&self) -> impl Iterator<Item = usize> {
        self.removed.iter().copied()
    }

    /// Whether endpoints can be added to an interface, or taken away.
    pub fn changes(&self, interface: usize, endpoint: bool) -> bool {
        let gone = self.flushed.contains(&interface) || self.removed.contains(&interface);
        !self.down.contains(&interface) && endpoint == gone
    }

    /// Those that are down.
    pub fn down(&self) -> impl Iterator<Item = usize> {
        self.down.iter().copied()
    }
}
