//! Finds the entries that a controller's command concerns (section 6.4).

use crate::fields::Match;
use crate::table::{Action, Entry, Port};

/// Entries that a match includes, or with a priority only the one that has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub matching: Match,
    pub strict: Option<u16>,
    /// Only those whose cookie has these bits under this mask.
    pub cookie: u64,
    pub cookie_mask: u64,
    /// Only those that have an output to this port.
    pub out_port: Option<Port>,
    /// Only those that name this group.
    pub out_group: Option<u32>,
}

impl Wanted {
    /// All entries that a match includes.
    pub fn included(matching: Match) -> Self {
        Self {
            matching,
            ..Self::default()
        }
    }

    /// The entry of this match and priority.
    pub fn strictly(matching: Match, priority: u16) -> Self {
        Self {
            strict: Some(priority),
            ..Self::included(matching)
        }
    }

    /// Whether an entry is as asked for besides its match and its priority.
    pub(crate) fn also(&self, entry: &Entry) -> bool {
        let given = &entry.instructions;
        let actions = || given.apply.iter().chain(&given.write);
        let leads = |port: Port| {
            actions().any(|action| match *action {
                // However much of the packet it gets.
                Action::Output(Port::Controller(_)) => matches!(port, Port::Controller(_)),
                action => action == Action::Output(port),
            })
        };
        let names = |group: u32| actions().any(|action| *action == Action::Group(group));
        let same = (entry.cookie ^ self.cookie) & self.cookie_mask == 0;
        same && self.out_port.is_none_or(leads) && self.out_group.is_none_or(names)
    }
}
