//! A switch: its tables one after the other (section 5.1), its groups and its ports.

use std::collections::{BTreeMap, BTreeSet};

use polypath_net::Nanos;

use crate::fields::{Fields, Match};
use crate::group::{Group, GroupKind, Kept};
use crate::table::{
    Action, Counts, Entry, EntryId, Instructions, Port, Reason, Removed, Table, Timeouts,
};
use crate::wanted::Wanted;

/// The most copies that a switch makes of one packet; more are not made.
pub const MAX_COPIES: usize = 1024;

/// How much a switch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub tables: u8,
    /// Entries of a table.
    pub entries: usize,
    pub groups: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tables: 8,
            entries: 1 << 22,
            groups: 1 << 20,
        }
    }
}

/// Why a switch refuses a change, under the names of section 7.4.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    #[error("there is no table {0} (OFPFMFC_BAD_TABLE_ID)")]
    BadTable(u8),
    #[error("table {table} cannot lead on to table {goto} (OFPBIC_BAD_TABLE_ID)")]
    BadGoto { table: u8, goto: u8 },
    #[error("table {0} is full (OFPFMFC_TABLE_FULL)")]
    TableFull(u8),
    #[error("an entry of the same priority overlaps it (OFPFMFC_OVERLAP)")]
    Overlap,
    #[error("there is no group {0} (OFPBAC_BAD_OUT_GROUP, OFPGMFC_UNKNOWN_GROUP)")]
    UnknownGroup(u32),
    #[error("there is a group {0} already (OFPGMFC_GROUP_EXISTS)")]
    GroupExists(u32),
    #[error("there are too many groups (OFPGMFC_OUT_OF_GROUPS)")]
    OutOfGroups,
    #[error("a group's bucket names a group (OFPGMFC_CHAINING_UNSUPPORTED)")]
    Chaining,
    #[error("a group of this kind cannot have these buckets (OFPGMFC_INVALID_GROUP)")]
    InvalidGroup,
    #[error("there is no port {0} (OFPBAC_BAD_OUT_PORT)")]
    BadPort(u32),
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Out by the port of this number.
    Port(u32),
    /// To the controller: `miss` where a table-miss entry sent it (`OFPR_NO_MATCH`).
    /// `max_len` is as in [`Port::Controller`].
    Controller { miss: bool, max_len: u16 },
}

/// What a switch does with a packet. No destination: it is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub destinations: Vec<Destination>,
    /// The entries that it matched, with their tables, in the pipeline's order.
    pub entries: Vec<(u8, EntryId)>,
    pub groups: Vec<u32>,
    /// The last table asked had no entry for it.
    pub missed: bool,
}

impl Decision {
    /// The port that it leaves by, if it leaves by one and goes nowhere else.
    pub fn only_port(&self) -> Option<u32> {
        match self.destinations[..] {
            [Destination::Port(port)] => Some(port),
            _ => None,
        }
    }
}

/// What the pipeline's end does: a group counts before an output (section 5.10).
#[derive(Default)]
struct ActionSet {
    group: Option<u32>,
    output: Option<Port>,
}

impl ActionSet {
    fn write(&mut self, actions: &[Action]) {
        for action in actions {
            match *action {
                Action::Group(group) => self.group = Some(group),
                Action::Output(port) => self.output = Some(port),
            }
        }
    }
}

/// A switch with its state.
#[derive(Clone, Debug)]
pub struct Switch {
    limits: Limits,
    tables: Vec<Table>,
    groups: BTreeMap<u32, Kept>,
    /// By number: whether it is up.
    ports: BTreeMap<u32, bool>,
    seed: u64,
    next_entry: u64,
    /// When entries are to be looked at.
    deadlines: BTreeSet<(Nanos, u8, EntryId)>,
    most_entries: usize,
}

impl Switch {
    /// A switch with ports 1 to `ports`, all up, and empty tables. `seed` is that of the hash of its `select` groups.
    pub fn new(ports: u32, seed: u64, limits: Limits) -> Self {
        Self {
            limits,
            tables: vec![Table::default(); usize::from(limits.tables)],
            groups: BTreeMap::new(),
            ports: (1..=ports).map(|port| (port, true)).collect(),
            seed,
            next_entry: 0,
            deadlines: BTreeSet::new(),
            most_entries: 0,
        }
    }

    /// Where a packet goes. Nothing changes by the question.
    pub fn decide(&self, fields: &Fields) -> Decision {
        let mut decision = Decision::default();
        let mut set = ActionSet::default();
        let mut number = 0;
        while let Some(table) = self.tables.get(usize::from(number)) {
            let Some(entry) = table.lookup(fields) else {
                // Section 5.4: without a table-miss entry the packet is dropped.
                decision.missed = true;
                return decision;
            };
            decision.entries.push((number, entry.id));
            let miss = entry.is_miss();
            for action in &entry.instructions.apply {
                self.perform(*action, fields, miss, &mut decision);
            }
            if entry.instructions.clear {
                set = ActionSet::default();
            }
            set.write(&entry.instructions.write);
            match entry.instructions.goto {
                Some(next) => number = next,
                None => {
                    let output = set.output.map(Action::Output);
                    let last = set.group.map(Action::Group).or(output);
                    if let Some(action) = last {
                        self.perform(action, fields, miss, &mut decision);
                    }
                    return decision;
                }
            }
        }
        decision
    }

    /// What becomes of a packet that a controller has these actions done with (section 7.3.7).
    pub fn execute(&self, actions: &[Action], fields: &Fields) -> Decision {
        let mut decision = Decision::default();
        for action in actions {
            self.perform(*action, fields, false, &mut decision);
        }
        decision
    }

    /// Whether a controller may ask for these actions.
    ///
    /// # Errors
    /// The first that it cannot do.
    pub fn check(&self, actions: &[Action]) -> Result<(), SwitchError> {
        actions.iter().try_for_each(|action| match *action {
            Action::Group(group) if !self.groups.contains_key(&group) => {
                Err(SwitchError::UnknownGroup(group))
            }
            action => self.check_port(action),
        })
    }

    fn perform(&self, action: Action, fields: &Fields, miss: bool, decision: &mut Decision) {
        match action {
            Action::Output(port) => self.output(port, fields, miss, decision),
            Action::Group(number) => {
                let Some(kept) = self.groups.get(&number) else {
                    return;
                };
                decision.groups.push(number);
                let up = |port: u32| self.is_up(port);
                for bucket in kept.group.chosen(fields, self.seed, up) {
                    for action in &bucket.actions {
                        if let Action::Output(port) = *action {
                            self.output(port, fields, miss, decision);
                        }
                    }
                }
            }
        }
    }

    fn output(&self, port: Port, fields: &Fields, miss: bool, decision: &mut Decision) {
        let room = MAX_COPIES.saturating_sub(decision.destinations.len());
        let to = &mut decision.destinations;
        match port {
            // Section 5.13: a packet leaves by the port that it came in by only where that is asked for by name.
            Port::Number(number) if number == fields.in_port => {}
            Port::Number(number) => to.extend([Destination::Port(number)].iter().take(room)),
            Port::In => to.extend([Destination::Port(fields.in_port)].iter().take(room)),
            Port::Controller(max_len) => {
                to.extend(Some(Destination::Controller { miss, max_len }).filter(|_| room > 0));
            }
            Port::All | Port::Flood => {
                let others = self.ports.keys().filter(|port| **port != fields.in_port);
                to.extend(others.map(|port| Destination::Port(*port)).take(room));
            }
        }
    }

    /// Counts packets that went as a decision says, the last of them at `at`.
    pub fn credit(&mut self, decision: &Decision, counts: Counts, at: Nanos) {
        for &(table, id) in &decision.entries {
            self.credit_entry(table, id, counts, at);
        }
        for group in &decision.groups {
            if let Some(kept) = self.groups.get_mut(group) {
                kept.counts.add(counts);
            }
        }
    }

    fn credit_entry(&mut self, table: u8, id: EntryId, counts: Counts, at: Nanos) {
        let table = self.tables.get_mut(usize::from(table));
        if let Some(entry) = table.and_then(|table| table.get_mut(id)) {
            entry.counts.add(counts);
            entry.used_at = entry.used_at.max(at);
        }
    }

    /// Adds an entry with the counters that it has; one with the same match and priority makes room for it without a word (section 6.4),
    /// and is given back.
    ///
    /// # Errors
    /// Why it is refused. Nothing has changed then.
    pub fn add(
        &mut self,
        table: u8,
        entry: Entry,
        check_overlap: bool,
        now: Nanos,
    ) -> Result<(EntryId, Option<Entry>), SwitchError> {
        self.check_instructions(table, &entry.instructions)?;
        let entries = self
            .tables
            .get(usize::from(table))
            .ok_or(SwitchError::BadTable(table))?;
        let same = entries.same(&entry.matching, entry.priority);
        if check_overlap {
            let clash = |known: &Entry| {
                known.priority == entry.priority && known.matching.overlaps(&entry.matching)
            };
            if entries.entries().any(clash) {
                return Err(SwitchError::Overlap);
            }
        }
        if same.is_none() && entries.len() >= self.limits.entries {
            return Err(SwitchError::TableFull(table));
        }
        let replaced = same.and_then(|id| self.take(table, id));
        let id = EntryId(self.next_entry);
        self.next_entry += 1;
        let added = Entry {
            id,
            added_at: now,
            used_at: now,
            ..entry
        };
        if let Some((at, _)) = added.deadline() {
            self.deadlines.insert((at, table, id));
        }
        self.tables[usize::from(table)].insert(added);
        self.most_entries = self.most_entries.max(self.entries());
        Ok((id, replaced))
    }

    /// An entry as [`Switch::add`] takes it.
    pub fn entry(matching: Match, priority: u16, instructions: Instructions) -> Entry {
        Entry {
            id: EntryId(0),
            matching,
            priority,
            instructions,
            timeouts: Timeouts::default(),
            cookie: 0,
            notify: false,
            counts: Counts::default(),
            added_at: 0,
            used_at: 0,
        }
    }

    /// Gives the entries of a table that `wanted` is for other instructions (section 6.4). Timeouts stay, and counters unless they begin again.
    /// Gives how many there were.
    ///
    /// # Errors
    /// Why it is refused. Nothing has changed then.
    pub fn modify(
        &mut self,
        table: u8,
        wanted: &Wanted,
        instructions: &Instructions,
        reset_counts: bool,
    ) -> Result<usize, SwitchError> {
        self.check_instructions(table, instructions)?;
        let found = self.selected(table, wanted)?;
        for id in &found {
            if let Some(entry) = self.tables[usize::from(table)].get_mut(*id) {
                entry.instructions = instructions.clone();
                if reset_counts {
                    entry.counts = Counts::default();
                }
            }
        }
        Ok(found.len())
    }

    /// Deletes entries as [`Switch::modify`] finds them.
    ///
    /// # Errors
    /// An unknown table.
    pub fn delete(&mut self, table: u8, wanted: &Wanted) -> Result<Vec<Removed>, SwitchError> {
        let found = self.selected(table, wanted)?;
        let gone = found.into_iter().filter_map(|id| self.take(table, id));
        let gone = gone.map(|entry| Removed {
            table,
            entry,
            reason: Reason::Deleted,
        });
        Ok(gone.collect())
    }

    /// The entries of a table that `wanted` is for, in the order in which they came.
    ///
    /// # Errors
    /// An unknown table.
    pub fn selected(&self, table: u8, wanted: &Wanted) -> Result<Vec<EntryId>, SwitchError> {
        let entries = self
            .tables
            .get(usize::from(table))
            .ok_or(SwitchError::BadTable(table))?;
        Ok(match wanted.strict {
            Some(priority) => {
                let same = entries.same(&wanted.matching, priority);
                let same = same.filter(|id| entries.get(*id).is_some_and(|it| wanted.also(it)));
                same.into_iter().collect()
            }
            None => {
                let included = |entry: &&Entry| {
                    wanted.matching.includes(&entry.matching) && wanted.also(entry)
                };
                let found = entries.entries().filter(included);
                found.map(|entry| entry.id).collect()
            }
        })
    }

    fn take(&mut self, table: u8, id: EntryId) -> Option<Entry> {
        let entry = self.tables.get_mut(usize::from(table))?.remove(id)?;
        // Its deadline may be an earlier one, which is then found to be of no entry.
        if let Some((at, _)) = entry.deadline() {
            self.deadlines.remove(&(at, table, id));
        }
        Some(entry)
    }

    fn check_instructions(&self, table: u8, given: &Instructions) -> Result<(), SwitchError> {
        if usize::from(table) >= self.tables.len() {
            return Err(SwitchError::BadTable(table));
        }
        if let Some(goto) = given.goto
            && (goto <= table || usize::from(goto) >= self.tables.len())
        {
            return Err(SwitchError::BadGoto { table, goto });
        }
        self.check(&given.apply)?;
        self.check(&given.write)
    }

    fn check_port(&self, action: Action) -> Result<(), SwitchError> {
        match action {
            Action::Output(Port::Number(port)) if !self.ports.contains_key(&port) => {
                Err(SwitchError::BadPort(port))
            }
            _ => Ok(()),
        }
    }

    /// Adds a group.
    ///
    /// # Errors
    /// Why it is refused. Nothing has changed then.
    pub fn add_group(&mut self, number: u32, group: Group) -> Result<(), SwitchError> {
        self.check_group(&group)?;
        if self.groups.contains_key(&number) {
            return Err(SwitchError::GroupExists(number));
        }
        if self.groups.len() >= self.limits.groups {
            return Err(SwitchError::OutOfGroups);
        }
        let counts = Counts::default();
        self.groups.insert(number, Kept { group, counts });
        Ok(())
    }

    /// Gives a group another kind and other buckets.
    ///
    /// # Errors
    /// Why it is refused. Nothing has changed then.
    pub fn modify_group(&mut self, number: u32, group: Group) -> Result<(), SwitchError> {
        self.check_group(&group)?;
        let unknown = SwitchError::UnknownGroup(number);
        let kept = self.groups.get_mut(&number).ok_or(unknown)?;
        kept.group = group;
        Ok(())
    }

    /// Deletes a group and the entries that name it (section 6.5). An unknown one is none to delete.
    pub fn delete_group(&mut self, number: u32) -> Vec<Removed> {
        if self.groups.remove(&number).is_none() {
            return Vec::new();
        }
        let names = |entry: &&Entry| {
            let given = &entry.instructions;
            let mut actions = given.apply.iter().chain(&given.write);
            actions.any(|action| *action == Action::Group(number))
        };
        let mut gone = Vec::new();
        for table in 0..self.limits.tables {
            let entries = self.tables[usize::from(table)].entries().filter(names);
            let found: Vec<EntryId> = entries.map(|entry| entry.id).collect();
            let taken = found.into_iter().filter_map(|id| self.take(table, id));
            gone.extend(taken.map(|entry| Removed {
                table,
                entry,
                reason: Reason::Deleted,
            }));
        }
        gone
    }

    fn check_group(&self, group: &Group) -> Result<(), SwitchError> {
        if group.kind == GroupKind::Indirect && group.buckets.len() != 1 {
            return Err(SwitchError::InvalidGroup);
        }
        // Section 5.6.1: whoever fails over must know when.
        let watched = group.buckets.iter().all(|bucket| bucket.watch.is_some());
        if group.kind == GroupKind::FastFailover && !watched {
            return Err(SwitchError::InvalidGroup);
        }
        for bucket in &group.buckets {
            if let Some(port) = bucket.watch.filter(|port| !self.ports.contains_key(port)) {
                return Err(SwitchError::BadPort(port));
            }
            for action in &bucket.actions {
                if matches!(action, Action::Group(_)) {
                    return Err(SwitchError::Chaining);
                }
                self.check_port(*action)?;
            }
        }
        Ok(())
    }

    /// Whether a port is up; one that does not exist is not.
    pub fn is_up(&self, port: u32) -> bool {
        self.ports.get(&port).copied().unwrap_or(false)
    }

    /// Sets a port's state. True: it was another.
    pub fn set_port(&mut self, port: u32, up: bool) -> bool {
        match self.ports.get_mut(&port) {
            Some(state) if *state != up => {
                *state = up;
                true
            }
            _ => false,
        }
    }

    /// When an entry may have outlived its timeouts, at the earliest.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.deadlines.first().map(|(at, ..)| *at)
    }

    /// The entries to be looked at by `now`, so that the owner can credit them what they did before [`Switch::expire`].
    pub fn due(&self, now: Nanos) -> Vec<(u8, EntryId)> {
        let due = self.deadlines.iter().take_while(|(at, ..)| *at <= now);
        due.map(|(_, table, id)| (*table, *id)).collect()
    }

    /// Removes entries that have outlived their timeouts by `now`.
    pub fn expire(&mut self, now: Nanos) -> Vec<Removed> {
        let mut gone = Vec::new();
        while let Some(&(at, table, id)) = self.deadlines.first().filter(|(at, ..)| *at <= now) {
            self.deadlines.remove(&(at, table, id));
            let entries = self.tables.get(usize::from(table));
            let entry = entries.and_then(|entries| entries.get(id));
            let Some((until, why)) = entry.and_then(Entry::deadline) else {
                continue;
            };
            if until > now {
                self.deadlines.insert((until, table, id));
                continue;
            }
            let reason = Reason::Expired(why);
            let taken = self.take(table, id);
            gone.extend(taken.map(|entry| Removed {
                table,
                entry,
                reason,
            }));
        }
        gone
    }

    /// The entry of this id.
    pub fn get(&self, table: u8, id: EntryId) -> Option<&Entry> {
        self.tables.get(usize::from(table))?.get(id)
    }

    /// All entries of a table.
    pub fn table(&self, table: u8) -> impl Iterator<Item = &Entry> {
        let table = self.tables.get(usize::from(table));
        table.into_iter().flat_map(Table::entries)
    }

    /// Entries of all tables.
    pub fn entries(&self) -> usize {
        self.tables.iter().map(Table::len).sum()
    }

    /// The most entries that there ever were.
    pub fn most_entries(&self) -> usize {
        self.most_entries
    }

    /// The groups in the order of their numbers, with what each forwarded.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Group, Counts)> {
        let all = self.groups.iter();
        all.map(|(number, kept)| (*number, &kept.group, kept.counts))
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The ports in order, and whether each is up.
    pub fn ports(&self) -> impl Iterator<Item = (u32, bool)> + '_ {
        self.ports.iter().map(|(port, up)| (*port, *up))
    }

    /// What a group forwarded.
    pub fn group_counts(&self, number: u32) -> Option<Counts> {
        self.groups.get(&number).map(|kept| kept.counts)
    }
}
