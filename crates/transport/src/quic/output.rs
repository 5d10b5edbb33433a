//! The output of a connection for its owner: datagrams, events, notes.

use std::mem::discriminant;

use polypath_wire::quic::{Datagram, Packet};

use super::note::{Discard, Note};
use super::spares::Spares;
use crate::{Codepoint, Event, EventKind, Nanos, Purpose, Tuple};

/// A datagram to be sent on a path.
#[derive(Clone, Debug)]
pub struct Transmit {
    pub path: usize,
    /// Where it goes: to the addresses of its path, but for what tests others.
    pub tuple: Tuple,
    pub datagram: Datagram,
    /// UDP payload bytes.
    pub len: u32,
    pub purpose: Purpose,
    pub ecn: Codepoint,
    /// As all datagrams of its path so far it goes between the path's first addresses.
    pub steady: bool,
}

/// What waits for a connection's owner.
#[derive(Default)]
pub(super) struct Output {
    transmits: Vec<Transmit>,
    /// Room for datagrams that the owner is done with.
    spares: Spares,
    events: Vec<Event>,
    /// Each decision of the scheduler is an event.
    tells_decisions: bool,
    /// What became of packets, where somebody wants to know.
    notes: Option<Vec<Note>>,
}

impl Output {
    pub fn transmit(&mut self, transmit: Transmit) {
        self.transmits.push(transmit);
    }

    pub fn transmits(&mut self) -> &mut Vec<Transmit> {
        &mut self.transmits
    }

    pub fn spares(&mut self) -> &mut Spares {
        &mut self.spares
    }

    pub fn event(&mut self, at: Nanos, kind: EventKind) {
        self.events.push(Event { at, kind });
    }

    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub fn events(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    pub fn tell_decisions(&mut self) {
        self.tells_decisions = true;
    }

    pub fn tells_decisions(&self) -> bool {
        self.tells_decisions
    }

    /// Keeps notes from now on.
    pub fn keep_notes(&mut self) {
        self.notes.get_or_insert_default();
    }

    pub fn note(&mut self, note: impl FnOnce() -> Note) {
        if let Some(notes) = &mut self.notes {
            notes.push(note());
        }
    }

    pub fn take_notes(&mut self) -> Vec<Note> {
        self.notes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub fn note_drop(&mut self, packet: &Packet, reason: Discard) {
        self.note(|| Note::Dropped {
            kind: discriminant(&packet.header.kind),
            path: packet.path,
            number: packet.header.number,
            reason,
        });
    }
}
