//! Path ids: how many each end admits, and what waits for one (RFC 10069 sections 3.1, 4.3, 4.6 and 4.7).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use polypath_wire::quic::Frame;

use crate::path_manager::Pair;

/// Path ids beyond the first that the peer may use at first.
pub(super) const PATHS: u64 = 7;
/// Path ids are admitted so many at a time once the peer asks for more (RFC 10069 section 4.7).
const MORE_PATHS: u64 = 8;
/// So many path ids that are not abandoned are admitted, however many the peer asks for.
const MOST_PATHS: u64 = 256;

/// A pair of addresses, and the routers through which packets between them are steered.
pub(super) type Wanted = (Pair, Vec<IpAddr>);

/// The path ids of a connection.
#[derive(Debug)]
pub(super) struct PathIds {
    /// The largest that this side admits, and that the peer does.
    admitted: u64,
    peer_admits: u64,
    /// The next that the client uses.
    next: u64,
    /// Paths that wait for an id.
    wanted: Vec<Wanted>,
    /// Status of paths that are not open yet, by id: sequence number, and whether they are backups.
    early_statuses: BTreeMap<u64, (u64, bool)>,
    /// What the peer was told last of an id that is missing.
    told_blocked: Option<Frame>,
}

impl Default for PathIds {
    fn default() -> Self {
        Self {
            admitted: PATHS,
            peer_admits: 0,
            next: 1,
            wanted: Vec::new(),
            early_statuses: BTreeMap::new(),
            told_blocked: None,
        }
    }
}

impl PathIds {
    /// The peer may use an id.
    pub fn admits(&self, id: u64) -> bool {
        id <= self.admitted
    }

    pub fn admitted(&self) -> u64 {
        self.admitted
    }

    pub fn peer_admits(&self) -> u64 {
        self.peer_admits
    }

    /// The peer's parameters say what it admits at first.
    pub fn begin_peer(&mut self, max: u64) {
        self.peer_admits = max;
    }

    /// The peer admits ids up to `max`. Those that both sides admit by that.
    pub fn raise_peer(&mut self, max: u64) -> RangeInclusive<u64> {
        let before = self.peer_admits;
        self.peer_admits = before.max(max);
        before + 1..=self.common()
    }

    /// The largest that both sides admit.
    pub fn common(&self) -> u64 {
        self.admitted.min(self.peer_admits)
    }

    /// Admits as many more as the peer's need suggests, which ran into the limit `asked`; so many of its ids are `abandoned`. Those that both
    /// sides admit by that; nothing if there are no more.
    pub fn raise(&mut self, asked: u64, abandoned: u64) -> Option<RangeInclusive<u64>> {
        if asked < self.admitted || self.admitted - abandoned >= MOST_PATHS {
            return None;
        }
        let before = self.admitted;
        self.admitted += MORE_PATHS;
        Some(before + 1..=self.common())
    }

    /// The next that this side uses, which is not `used` already.
    pub fn next(&mut self, used: impl Fn(u64) -> bool) -> u64 {
        while used(self.next) {
            self.next += 1;
        }
        self.next
    }

    /// [`PathIds::next`] has a path.
    pub fn advance(&mut self) {
        self.next += 1;
    }

    pub fn want(&mut self, pair: Pair, gateways: Vec<IpAddr>) {
        self.wanted.push((pair, gateways));
    }

    pub fn wants_any(&self) -> bool {
        !self.wanted.is_empty()
    }

    pub fn wanted(&self) -> impl Iterator<Item = Pair> {
        self.wanted.iter().map(|(pair, _)| *pair)
    }

    pub fn take_wanted(&mut self) -> Vec<Wanted> {
        std::mem::take(&mut self.wanted)
    }

    /// An id is missing, as this frame says. Whether the peer is to be told, which does not know it yet.
    pub fn block(&mut self, frame: &Frame) -> bool {
        let new = self.told_blocked.as_ref() != Some(frame);
        if new {
            self.told_blocked = Some(frame.clone());
        }
        new
    }

    /// A status came before its path.
    pub fn keep_status(&mut self, id: u64, sequence: u64, backup: bool) {
        let early = self.early_statuses.entry(id).or_insert((sequence, backup));
        *early = (*early).max((sequence, backup));
    }

    /// The last status of a path that came before it.
    pub fn take_status(&mut self, id: u64) -> Option<(u64, bool)> {
        self.early_statuses.remove(&id)
    }
}
