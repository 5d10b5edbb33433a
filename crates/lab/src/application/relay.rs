//! One more connection of an application over proxies: it relays what the one before brought to the host where it begins.

use polypath_settings::Model;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Beginning, Begun, Delays, Direction, Entry, Kind, Traffic};
use super::session::{Io, Session};
use crate::plan::Transport;

/// Its only setting is another application's name, which has no unit, no bound and no default.
pub(super) const ENTRY: Entry = Entry {
    model: Model {
        name: "relay",
        summary: "A proxy's connection, over which the bytes of another application go on, both ways",
        source: "RFC 3135 section 2.4 (split connections)",
        parameters: &[],
        groups: &[],
    },
    transports: &[Transport::Mptcp, Transport::Tcp],
    traffic: Traffic::of(Direction::BothWays, Delays::None),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// The application whose bytes these are, by its place in the plan; it stands before.
    pub of: usize,
}

impl Kind for Relay {
    fn fault(&self) -> Option<String> {
        None
    }

    fn begin(&self, _: Beginning) -> Begun {
        Begun::session(Nothing)
    }
}

/// What it does until it is part of a chain.
struct Nothing;

impl Session for Nothing {
    fn run(&mut self, _: &mut Io) {}
}
