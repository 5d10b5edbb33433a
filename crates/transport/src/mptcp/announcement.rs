//! Announced addresses (RFC 8684 section 3.4.1) and withdrawn ones (section 3.4.2).

use std::net::IpAddr;

use polypath_wire::mptcp::MptcpOption;

use crate::counters::Counters;
use crate::{Mib, NEVER, Nanos};

/// An announcement whose echo is awaited, or that waits for a subflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingAddAddr {
    pub id: u8,
    pub port: Option<u16>,
    pub repeat_at: Nanos,
    pub repeats: u32,
}

/// What waits for a subflow to leave on, of each kind one (Linux `addr_signal`).
#[derive(Clone, Debug, Default)]
pub(super) struct Unsent {
    pub announcement: Option<PendingAddAddr>,
    /// An address of the peer's that it announced.
    pub echo: Option<(u8, IpAddr, Option<u16>)>,
    /// Ids that are gone.
    pub removal: Option<Vec<u8>>,
}

/// What this end has told its peer of its own addresses, and is still to tell.
#[derive(Debug)]
pub(super) struct Announcements {
    /// Ids that the peer knows.
    known: Vec<u8>,
    /// Another one may be announced.
    open: bool,
    awaited: Vec<PendingAddAddr>,
    unsent: Unsent,
    /// That is not empty: asked for each segment.
    any_unsent: bool,
    /// So many segments that have not left yet are older than what waits.
    older: usize,
}

impl Default for Announcements {
    /// The peer knows the address that the connection began with.
    fn default() -> Self {
        Self {
            known: vec![0],
            open: true,
            awaited: Vec::new(),
            unsent: Unsent::default(),
            any_unsent: false,
            older: 0,
        }
    }
}

impl Announcements {
    pub fn known(&self) -> &[u8] {
        &self.known
    }

    pub fn add(&mut self, id: u8) {
        if !self.known.contains(&id) {
            self.known.push(id);
        }
    }

    /// How many addresses may be announced, of `most`.
    pub fn most(&self, most: usize) -> usize {
        if self.open { most } else { 0 }
    }

    pub fn set_open(&mut self, open: bool) {
        self.open = open;
    }

    /// It is the next address's turn. True: it was not yet.
    pub fn reopen(&mut self) -> bool {
        !std::mem::replace(&mut self.open, true)
    }

    /// An announcement waits for a subflow.
    pub fn is_waiting(&self) -> bool {
        self.unsent.announcement.is_some()
    }

    /// Something waits for a subflow.
    #[inline(always)]
    pub fn any_unsent(&self) -> bool {
        self.any_unsent
    }

    /// This waits for a subflow, in place of what waited of its kind, and for a segment after so many that have not left yet.
    pub fn wait(&mut self, unsent: Unsent, older: usize) {
        self.older = older;
        self.unsent = Unsent {
            announcement: unsent.announcement.or(self.unsent.announcement),
            echo: unsent.echo.or(self.unsent.echo),
            removal: unsent.removal.or(self.unsent.removal.take()),
        };
        self.note_waiting();
    }

    /// How many segments that have not left yet are older than what waits; from now on none.
    pub fn take_older(&mut self) -> usize {
        std::mem::take(&mut self.older)
    }

    pub fn take_echo(&mut self) -> Option<(u8, IpAddr, Option<u16>)> {
        let echo = self.unsent.echo.take();
        self.note_waiting();
        echo
    }

    pub fn take_announcement(&mut self) -> Option<PendingAddAddr> {
        let announcement = self.unsent.announcement.take();
        self.note_waiting();
        announcement
    }

    /// The removal that waits, where its option has room.
    pub fn take_removal(&mut self, room: u32) -> Option<Vec<u8>> {
        let removal = (self.unsent.removal).take_if(|ids| removal_len(ids) <= room);
        self.note_waiting();
        removal
    }

    fn note_waiting(&mut self) {
        let Unsent {
            announcement,
            echo,
            removal,
        } = &self.unsent;
        self.any_unsent = announcement.is_some() || echo.is_some() || removal.is_some();
    }

    pub fn awaits_echo(&mut self, announcement: PendingAddAddr) {
        self.awaited.push(announcement);
    }

    /// No echo of this id is awaited any longer. True: one was.
    pub fn end(&mut self, id: u8) -> bool {
        let awaited = self.awaited.len();
        self.awaited.retain(|other| other.id != id);
        self.awaited.len() < awaited
    }

    /// No echo of any is awaited any longer.
    pub fn end_all(&mut self) {
        self.awaited.clear();
    }

    /// The address with this id is gone. What waits leaves nevertheless, and is not `repeated`.
    pub fn remove(&mut self, id: u8, repeated: u32) {
        self.known.retain(|other| *other != id);
        self.end(id);
        if let Some(waiting) = &mut self.unsent.announcement
            && waiting.id == id
        {
            waiting.repeats = repeated;
        }
    }

    /// Those without an echo by `now`.
    pub fn due(&self, now: Nanos) -> Vec<PendingAddAddr> {
        let due = self.awaited.iter().filter(|one| one.repeat_at <= now);
        due.copied().collect()
    }

    pub fn next_repeat(&self) -> Nanos {
        let times = self.awaited.iter().map(|one| one.repeat_at);
        times.min().unwrap_or(NEVER)
    }

    /// Ids known and echoes awaited.
    pub fn len(&self) -> usize {
        self.known.len() + self.awaited.len()
    }
}

/// The answer to an announcement of the peer's.
pub(super) fn echo((address_id, address, port): (u8, IpAddr, Option<u16>)) -> MptcpOption {
    MptcpOption::AddAddr {
        echo: true,
        address_id,
        address,
        port,
        hmac: None,
    }
}

/// The option space that a removal takes (Linux `mptcp_rm_addr_len`).
fn removal_len(address_ids: &[u8]) -> u32 {
    4 + (address_ids.len() as u32)
        .saturating_sub(1)
        .next_multiple_of(4)
}

/// Addresses are gone; each counts as sent.
pub(super) fn removal(address_ids: Vec<u8>, counters: &mut Counters) -> MptcpOption {
    counters.add(Mib::MPTcpExtRmAddrTx, address_ids.len() as u32);
    MptcpOption::RemoveAddr { address_ids }
}
