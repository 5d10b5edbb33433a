//! One flow table: entries by priority (section 5.2).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use polypath_net::Nanos;

use crate::fields::{Fields, Match};

/// Names an entry for as long as it is there; never given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// `OFPCML_NO_BUFFER`: a controller gets whole packets.
pub const WHOLE: u16 = u16::MAX;

/// Where an output action sends a packet (section 5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Number(u32),
    /// Back by the port that it came in by, which nothing else does.
    In,
    /// Out by every port but that.
    All,
    /// As `All`: no port is blocked.
    Flood,
    /// At most so many bytes of it, if the switch keeps the packet ([`WHOLE`]: it does not).
    Controller(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Output(Port),
    Group(u32),
}

impl Action {
    /// Out by a port of this number.
    pub fn port(number: u32) -> Self {
        Self::Output(Port::Number(number))
    }
}

/// What becomes of a packet that matches (section 5.9). Nothing at all: it is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Done at once, in this order.
    pub apply: Vec<Action>,
    /// Whether the action set is emptied before `write`.
    pub clear: bool,
    /// Put into the action set, which is done when the pipeline ends.
    pub write: Vec<Action>,
    /// The table that goes on, one behind this.
    pub goto: Option<u8>,
}

impl Instructions {
    /// Does these actions and no more.
    pub fn apply(actions: &[Action]) -> Self {
        Self {
            apply: actions.to_vec(),
            ..Self::default()
        }
    }

    /// Out by a port.
    pub fn out(port: u32) -> Self {
        Self::apply(&[Action::port(port)])
    }

    pub fn controller() -> Self {
        Self::apply(&[Action::Output(Port::Controller(WHOLE))])
    }
}

/// How long an entry stays (section 5.5); absent: that does not end it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Without a packet.
    pub idle: Option<Nanos>,
    pub hard: Option<Nanos>,
}

/// What was forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub packets: u64,
    pub bytes: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, more: Self) {
        self.packets = self.packets.saturating_add(more.packets);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// An entry as it stands in a table.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: EntryId,
    pub matching: Match,
    pub priority: u16,
    pub instructions: Instructions,
    pub timeouts: Timeouts,
    pub cookie: u64,
    /// Whether the controller is told when it goes (`OFPFF_SEND_FLOW_REM`).
    pub notify: bool,
    pub counts: Counts,
    pub added_at: Nanos,
    pub used_at: Nanos,
}

impl Entry {
    /// When it goes if no packet comes, and why.
    pub fn deadline(&self) -> Option<(Nanos, Expired)> {
        let idle = self.timeouts.idle.map(|after| {
            let at = self.used_at.saturating_add(after);
            (at, Expired::Idle)
        });
        let hard = self.timeouts.hard.map(|after| {
            let at = self.added_at.saturating_add(after);
            (at, Expired::Hard)
        });
        idle.into_iter().chain(hard).min_by_key(|(at, _)| *at)
    }

    pub(crate) fn is_miss(&self) -> bool {
        self.priority == 0 && self.matching == Match::any()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    Idle,
    Hard,
}

/// Why an entry is gone (section 7.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Expired(Expired),
    Deleted,
}

/// An entry that is gone.
#[derive(Clone, Debug)]
pub struct Removed {
    pub table: u8,
    pub entry: Entry,
    pub reason: Reason,
}

/// Entries that share a mask, by what they want under it. Of those that want the same, the one that counts is first.
type Masked = BTreeMap<Fields, Vec<(Reverse<u16>, EntryId)>>;

/// A table. It is searched one mask after the other, of which there are few however many entries there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    entries: BTreeMap<EntryId, Entry>,
    masks: BTreeMap<Fields, Masked>,
}

impl Table {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    pub fn get(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub fn get_mut(&mut self, id: EntryId) -> Option<&mut Entry> {
        self.entries.get_mut(&id)
    }

    /// The matching entry of highest priority; of several, which section 5.3 leaves open, the one added first.
    pub fn lookup(&self, fields: &Fields) -> Option<&Entry> {
        let found = self.masks.iter().filter_map(|(mask, masked)| {
            let alike = masked.get(&Match::masked(mask, fields))?;
            alike.first().copied()
        });
        found.min().and_then(|(_, id)| self.entries.get(&id))
    }

    /// The entry with the same match and priority.
    pub fn same(&self, matching: &Match, priority: u16) -> Option<EntryId> {
        let alike = self.masks.get(matching.mask())?.get(matching.value())?;
        let found = alike.iter().find(|(Reverse(own), _)| *own == priority);
        found.map(|(_, id)| *id)
    }

    pub fn insert(&mut self, entry: Entry) {
        let masked = self.masks.entry(*entry.matching.mask()).or_default();
        let alike = masked.entry(*entry.matching.value()).or_default();
        let key = (Reverse(entry.priority), entry.id);
        let place = alike.partition_point(|known| *known < key);
        alike.insert(place, key);
        self.entries.insert(entry.id, entry);
    }

    pub fn remove(&mut self, id: EntryId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        let (mask, value) = (entry.matching.mask(), entry.matching.value());
        if let Some(masked) = self.masks.get_mut(mask) {
            if let Some(alike) = masked.get_mut(value) {
                alike.retain(|(_, known)| *known != id);
                if alike.is_empty() {
                    masked.remove(value);
                }
            }
            if masked.is_empty() {
                self.masks.remove(mask);
            }
        }
        Some(entry)
    }
}
