//! All paths of a connection, open or not.

use std::ops::{Index, IndexMut};
use std::slice::{Iter, IterMut};

use polypath_wire::quic::Frame;
use rand::RngCore;
use rand_pcg::Pcg64Mcg;

use super::contents::Contents;
use super::ids::RemoteIds;
use super::loss::Sent;
use super::path::PathState;
use super::traffic::Traffic;
use crate::algorithms::Algorithms;
use crate::congestion::{CarefulResume, CongestionControl};
use crate::path::{Member, Path};
use crate::path_manager::Pair;
use crate::retained::Retained;
use crate::settings::Config;
use crate::{NEVER, Nanos, Tuple};
use polypath_settings::RegistryError;

/// A path that brings nothing for so many probe timeouts before another's last packet is taken for dead.
const SILENCE: Nanos = 3;

/// Every path that a connection ever had, by index.
pub(super) struct Paths {
    members: Vec<PathState>,
    /// What schedulers and coupled congestion controls see of each, side by side.
    shown: Vec<Path>,
    /// Of the open ones the longest probe timeout, without backoff and the delay of acknowledgements.
    longest_timeout: Nanos,
    /// Seeds of congestion controls.
    seeds: Pcg64Mcg,
    algorithms: Algorithms,
    /// What the host's paths were found to carry.
    retained: Retained,
    /// Empty between acknowledgements; kept for its room.
    acked: Vec<Sent<Contents>>,
}

impl Index<usize> for Paths {
    type Output = PathState;

    fn index(&self, path: usize) -> &PathState {
        &self.members[path]
    }
}

impl IndexMut<usize> for Paths {
    fn index_mut(&mut self, path: usize) -> &mut PathState {
        &mut self.members[path]
    }
}

impl Paths {
    pub fn new(seeds: Pcg64Mcg, algorithms: Algorithms, retained: Retained) -> Self {
        Self {
            members: Vec::new(),
            shown: Vec::new(),
            longest_timeout: 0,
            seeds,
            algorithms,
            retained,
            acked: Vec::new(),
        }
    }

    /// A congestion control for a path between two addresses, which draws from a stream of its own.
    pub fn make_congestion(
        &mut self,
        config: &Config,
        tuple: Tuple,
    ) -> Result<Box<dyn CongestionControl>, RegistryError> {
        let mut congestion = self.algorithms.congestion(config)?;
        if congestion.draws() {
            congestion.seed(self.seeds.next_u64());
        }
        if config.careful_resume {
            let (window, retained) = (config.initial_window, self.retained.clone());
            congestion = CarefulResume::before(congestion, window, retained, tuple);
        }
        Ok(congestion)
    }

    /// Gives the index.
    pub fn add(&mut self, member: PathState, shown: Path) -> usize {
        self.members.push(member);
        self.shown.push(shown);
        self.members.len() - 1
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn get(&self, path: usize) -> Option<&PathState> {
        self.members.get(path)
    }

    pub fn get_mut(&mut self, path: usize) -> Option<&mut PathState> {
        self.members.get_mut(path)
    }

    pub fn all(&self) -> &[PathState] {
        &self.members
    }

    pub fn iter(&self) -> Iter<'_, PathState> {
        self.members.iter()
    }

    pub fn iter_mut(&mut self) -> IterMut<'_, PathState> {
        self.members.iter_mut()
    }

    /// Each path, and what is shown of it.
    #[inline]
    pub fn pairs_mut(&mut self) -> impl Iterator<Item = (&mut PathState, &mut Path)> {
        let mut shown = self.shown.iter_mut();
        let members = self.members.iter_mut();
        members.map_while(move |member| Some((member, shown.next()?)))
    }

    /// A path, and what is shown of it and of the others.
    pub fn pair_mut(&mut self, path: usize) -> (&mut PathState, Member<'_>) {
        (&mut self.members[path], Member::new(&mut self.shown, path))
    }

    /// What is shown of all.
    pub fn all_shown(&self) -> &[Path] {
        &self.shown
    }

    /// What is shown of a path.
    pub fn shown(&self, path: usize) -> &Path {
        &self.shown[path]
    }

    pub fn shown_mut(&mut self, path: usize) -> &mut Path {
        &mut self.shown[path]
    }

    /// The index of the path with an id: as a rule the same.
    #[inline]
    pub fn named(&self, id: u64) -> Option<usize> {
        match self.members.get(id as usize) {
            Some(member) if member.id() == id => Some(id as usize),
            _ => self.members.iter().position(|member| member.id() == id),
        }
    }

    /// Those from an address that are not closed.
    pub fn at_address(&self, local_id: u8) -> Vec<usize> {
        let from = |path: &usize| {
            let member = &self.members[*path];
            member.ids().local == local_id && !member.closed()
        };
        (0..self.members.len()).filter(from).collect()
    }

    /// Those between two addresses that are not closed.
    pub fn between(&self, pair: Pair) -> Vec<usize> {
        let between = |path: &usize| {
            let member = &self.members[*path];
            member.ids() == pair && !member.closed()
        };
        (0..self.members.len()).filter(between).collect()
    }

    /// Some path may carry data now.
    pub fn any_has_room(&self) -> bool {
        let room = |path: &Path| path.established && path.room() > 0;
        self.shown.iter().any(room)
    }

    /// No other is open.
    pub fn is_last(&self, path: usize) -> bool {
        let mut others = (0..self.members.len()).filter(|&other| other != path);
        !others.any(|other| self.members[other].open())
    }

    /// Some path from another address is open.
    pub fn any_elsewhere(&self, local_id: u8) -> bool {
        let elsewhere = |member: &PathState| member.ids().local != local_id && member.open();
        self.members.iter().any(elsewhere)
    }

    /// Data goes on the open paths that this host is to send on; on all of them where none of those works.
    pub fn choose_senders(&mut self, config: &Config) {
        let chosen = |path: &usize| {
            let works = !self.shown[*path].potentially_failed;
            let sends = self.is_wanted(*path, config) && works || config.send_paths.is_empty();
            self.members[*path].open() && sends
        };
        let any = (0..self.members.len()).any(|path| chosen(&path));
        let sends: Vec<bool> = (0..self.members.len())
            .map(|path| {
                if any {
                    chosen(&path)
                } else {
                    self.members[path].open()
                }
            })
            .collect();
        for (path, sends) in sends.into_iter().enumerate() {
            self.shown[path].established = sends;
        }
    }

    /// This host is to send on a path.
    fn is_wanted(&self, path: usize, config: &Config) -> bool {
        let wanted = &config.send_paths;
        wanted.is_empty() || wanted.contains(&self.members[path].id())
    }

    /// A path is open on which this host would send only if those it is to send on fail.
    fn is_spare(&self, path: usize, config: &Config) -> bool {
        let works = !self.shown[path].potentially_failed;
        self.members[path].open() && !self.is_wanted(path, config) && works
    }

    /// Another path can take over what a path carries.
    pub fn has_substitute(&self, path: usize, config: &Config) -> bool {
        let mut others = (0..self.members.len()).filter(|&other| other != path);
        others.any(|other| {
            crate::scheduler::usable(&self.shown[other]) || self.is_spare(other, config)
        })
    }

    /// Whether it is a backup follows from what both sides said. Gives it where it changed.
    pub fn refresh_backup(&mut self, path: usize) -> Option<bool> {
        let backup = self.members[path].is_backup();
        let shown = &mut self.shown[path];
        let changed = shown.backup != backup;
        shown.backup = backup;
        changed.then_some(backup)
    }

    /// A status in place of which a newer one was told: it need not be repeated (RFC 10069 section 4.3).
    pub fn is_outdated_status(&self, frame: &Frame) -> bool {
        let Frame::PathStatus { path, sequence, .. } = frame else {
            return false;
        };
        let known = self.named(*path);
        known.is_some_and(|path| self.members[path].status().is_outdated(*sequence))
    }

    /// The path for frames that no data packet took.
    pub fn best_for_control(&self) -> Option<usize> {
        // Before the first path is open, there is no other.
        let left = (0..self.members.len()).filter(|&path| !self.members[path].closed());
        left.min_by_key(|&path| {
            let shown = &self.shown[path];
            let unfit = (!shown.established, shown.potentially_failed, shown.backup);
            (unfit, shown.srtt, path)
        })
    }

    /// The path that a close is likeliest to get through on. A side that only receives has nothing in flight whose loss would tell it that a
    /// path failed: it knows only which of them fell silent for a while, as probe timeouts of `timeout` have it.
    pub fn best_for_close(&self, remote: &RemoteIds, timeout: Nanos) -> Option<usize> {
        let usable = |path: &usize| {
            let member = &self.members[*path];
            remote.current(member.id()).is_some() && member.established_at().is_some()
        };
        let heard_at = |path: usize| self.members[path].space().received.largest_at();
        let paths = || (0..self.members.len()).filter(usable);
        let newest = paths().map(heard_at).max()?;
        paths().min_by_key(|&path| {
            let shown = &self.shown[path];
            let silent = heard_at(path) + SILENCE * timeout < newest;
            (shown.potentially_failed, silent, shown.srtt, path)
        })
    }

    /// Data is sent on a path, which works.
    pub fn carries(&self, path: usize) -> bool {
        let shown = &self.shown[path];
        shown.established && !shown.potentially_failed && !self.members[path].closed()
    }

    /// Of those that carry data the one with the shortest round trip.
    pub fn fastest(&self) -> Option<usize> {
        let carrying = (0..self.members.len()).filter(|&path| self.carries(path));
        carrying.min_by_key(|&path| (self.shown[path].srtt, path))
    }

    /// Grows with everything that came and whose sender waits for the acknowledgement.
    pub fn came_for_acks(&self) -> u64 {
        let came = self.members.iter().map(PathState::traffic);
        came.map(Traffic::came_for_acks).sum()
    }

    /// Room for packets that are acknowledged.
    pub fn take_acked(&mut self) -> Vec<Sent<Contents>> {
        std::mem::take(&mut self.acked)
    }

    /// Gives it back.
    pub fn keep_acked(&mut self, acked: Vec<Sent<Contents>>) {
        // What it replaces has no memory.
        std::mem::forget(std::mem::replace(&mut self.acked, acked));
    }

    /// A path that was given up is asked while it has nothing in flight whose probe timeout would ask.
    pub fn keep_asking(&mut self, path: usize) {
        let member = &mut self.members[path];
        let asked = !self.shown[path].potentially_failed || member.space().sent.eliciting() > 0;
        if !asked && !member.closed() {
            member.probing_mut().ask_once();
        }
    }

    /// The peer wants to know at once what came (draft-ietf-quic-ack-frequency-14 section 5): on `path`, whose packet says so, and on the others.
    pub fn expedite_acks(&mut self, path: usize, now: Nanos) {
        for (index, member) in self.members.iter_mut().enumerate() {
            let received = &mut member.space_mut().received;
            if index == path || received.deadline() < NEVER {
                received.expedite(now);
            }
        }
    }

    /// All paths end.
    pub fn close_all(&mut self, now: Nanos) {
        for (member, shown) in self.pairs_mut() {
            if !member.closed() {
                member.close(now);
                shown.established = false;
            }
        }
    }

    /// Of the open paths the longest probe timeout before backoff, of a peer that holds acknowledgements back for `ack_delay`; 0 where none is open.
    pub fn longest_probe_timeout(&self, ack_delay: Nanos) -> Nanos {
        debug_assert_eq!(self.longest_timeout, self.find_longest_timeout());
        match self.longest_timeout {
            0 => 0,
            longest => longest + ack_delay,
        }
    }

    fn find_longest_timeout(&self) -> Nanos {
        let left = self.members.iter().filter(|member| !member.closed());
        left.map(|member| member.rtt().probe_timeout(0))
            .max()
            .unwrap_or(0)
    }

    /// To be called when a round trip was measured or forgotten, and when a path was added or closed.
    pub fn compare_timeouts(&mut self) {
        self.longest_timeout = self.find_longest_timeout();
    }

    /// Nothing more leaves for now.
    pub fn settle_pacing(&mut self, now: Nanos) {
        for (member, shown) in self.pairs_mut() {
            member.window_mut().settle(shown, now);
        }
    }

    /// When the peer is to be asked again on some path, or one on which it does not answer is given up.
    pub fn validation_deadline(&self, ack_delay: Nanos) -> Nanos {
        let deadlines = self.members.iter().map(|member| {
            let given_up_at = member.validation_deadline(ack_delay);
            given_up_at.min(member.challenge_deadline(ack_delay))
        });
        deadlines.min().unwrap_or(NEVER)
    }

    /// Nothing more leaves once the handshake is confirmed: settles pacing, and gives when acknowledgements, recovery or pacing of some path are due.
    /// `limited`: a limit of the peer's holds data back.
    ///
    /// A path whose window is full needs no timer of its pacer: the acknowledgement that opens the window finds out whether the time has come.
    /// It gets one only while another path has room, which a scheduler left unused, or a limit of the peer's holds data back: the scheduler
    /// is asked again, the peer is told.
    #[inline]
    pub fn settle(&mut self, now: Nanos, ack_delay: Nanos, limited: bool) -> Settled {
        let (mut at, mut asked_at) = (NEVER, NEVER);
        let (mut validating, mut open) = (false, false);
        for (member, path) in self.pairs_mut() {
            at = at.min(member.space().received.deadline());
            let burst_at = member.window_mut().settle(path, now);
            if member.closed() {
                continue;
            }
            at = at.min(member.recovery_deadline(ack_delay));
            if path.window_full() {
                asked_at = asked_at.min(burst_at);
            } else {
                at = at.min(burst_at);
                open |= path.established && !path.paced;
            }
            validating |= !member.validated();
        }
        if open || limited {
            at = at.min(asked_at);
        }
        Settled { at, validating }
    }
}

/// What [`Paths::settle`] found.
pub(super) struct Settled {
    pub at: Nanos,
    /// Some path is not validated.
    pub validating: bool,
}
