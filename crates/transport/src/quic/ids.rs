//! Connection ids. Each belongs to a path (RFC 9000 section 5.1, RFC 10069 section 3.2).

use std::collections::{BTreeMap, BTreeSet};

use polypath_wire::quic::{ConnectionId, NewConnectionId};
use rand::RngCore;
use rand_pcg::Pcg64Mcg;

use super::id::random_id;
use super::reset::ResetKey;

/// Ids that are kept ready for each path: the one in use and a spare.
const READY: u64 = 2;

/// Ids that this side issued, by which packets for it are known.
#[derive(Debug, Default)]
pub(super) struct LocalIds {
    issued: Vec<(u64, u64, ConnectionId)>,
    /// By path id, the one that its newest packet had.
    newest: Vec<Option<ConnectionId>>,
    /// How many were ever issued for each path.
    counts: BTreeMap<u64, u64>,
    abandoned: BTreeSet<u64>,
    /// What tokens are made of; without it nobody knows them again, and they are noise.
    reset_key: Option<ResetKey>,
}

impl LocalIds {
    pub fn with_tokens_of(reset_key: Option<ResetKey>) -> Self {
        Self {
            reset_key,
            ..Self::default()
        }
    }

    /// The id of the handshake, which has sequence number 0 on path 0 (RFC 9000 section 5.1.1).
    pub fn begin(&mut self, id: ConnectionId) {
        self.issued.push((0, 0, id));
        self.counts.insert(0, 1);
    }

    /// Whether the newest packet of a path had this destination: then [`LocalIds::path_of`] gives the path.
    #[inline]
    pub fn is_newest(&self, path: u64, id: &ConnectionId) -> bool {
        self.newest.get(path as usize).and_then(Option::as_ref) == Some(id)
    }

    /// A packet of a path has this destination, as [`LocalIds::path_of`] found.
    pub fn note(&mut self, path: u64, id: &ConnectionId) {
        let at = path as usize;
        if self.newest.len() <= at {
            self.newest.resize(at + 1, None);
        }
        self.newest[at] = Some(*id);
    }

    /// The path that a packet with this destination is on.
    pub fn path_of(&self, id: &ConnectionId) -> Option<u64> {
        let found = self.issued.iter().find(|issued| issued.2 == *id);
        found.map(|issued| issued.0)
    }

    /// Issues as many ids for a path as the peer is to have, `limit` at most.
    pub fn issue(
        &mut self,
        path: u64,
        multipath: bool,
        limit: u64,
        random: &mut Pcg64Mcg,
    ) -> Vec<NewConnectionId> {
        let mut frames = Vec::new();
        if self.abandoned.contains(&path) {
            return frames;
        }
        let of_path = |issued: &&(u64, u64, ConnectionId)| issued.0 == path;
        let active = self.issued.iter().filter(of_path).count() as u64;
        let count = self.counts.entry(path).or_insert(0);
        for _ in active..READY.min(limit) {
            let sequence = *count;
            *count += 1;
            let id = random_id(random);
            let mut reset_token = [0; 16];
            random.fill_bytes(&mut reset_token);
            if let Some(key) = &self.reset_key {
                reset_token = key.token(&id);
            }
            self.issued.push((path, sequence, id));
            frames.push(NewConnectionId {
                path: multipath.then_some(path),
                sequence,
                retire_prior_to: 0,
                id,
                reset_token,
            });
        }
        frames
    }

    /// The sequence number of the next id of a path; nothing of one that is abandoned.
    pub fn next_sequence(&self, path: u64) -> Option<u64> {
        let known = self.counts.get(&path).copied().unwrap_or(0);
        (!self.abandoned.contains(&path)).then_some(known)
    }

    /// Whether this is the id that was issued for a path under a sequence number.
    pub fn has(&self, path: u64, sequence: u64, id: &ConnectionId) -> bool {
        self.issued.contains(&(path, sequence, *id))
    }

    /// The peer uses an id no more. False: it was never issued.
    pub fn retire(&mut self, path: u64, sequence: u64) -> bool {
        self.issued
            .retain(|issued| (issued.0, issued.1) != (path, sequence));
        self.newest.clear();
        self.counts
            .get(&path)
            .is_some_and(|&count| sequence < count)
    }

    /// A path is abandoned: it gets no further ids (RFC 10069 section 3.4). The peer may still retire them one by one.
    pub fn abandon(&mut self, path: u64) {
        self.abandoned.insert(path);
    }

    /// Packets on a path that is abandoned are not known any more.
    pub fn forget(&mut self, path: u64) {
        self.abandon(path);
        self.issued.retain(|issued| issued.0 != path);
        self.newest.clear();
    }
}

/// Ids that the peer issued, by which packets to it are sent.
#[derive(Debug, Default)]
pub(super) struct RemoteIds {
    ids: Vec<Remote>,
    /// Of each path the id that its packets carry.
    carried: Vec<(u64, ConnectionId)>,
    /// Path and sequence number of those that were retired: a frame that names one may come again.
    retired: BTreeSet<(u64, u64)>,
    /// Of each path, the sequence number below which the peer wants all retired.
    retire_prior_to: BTreeMap<u64, u64>,
    abandoned: BTreeSet<u64>,
    /// Paths whose ids are in use.
    opened: BTreeSet<u64>,
}

#[derive(Debug)]
struct Remote {
    path: u64,
    sequence: u64,
    id: ConnectionId,
    used: bool,
    reset_token: Option<[u8; 16]>,
}

/// More ids than were admitted, or one id with two meanings (RFC 9000 sections 5.1.1 and 19.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdError {
    Limit,
    Contradiction,
}

impl RemoteIds {
    /// The id that the peer chose in the handshake.
    pub fn begin(&mut self, id: ConnectionId) {
        self.ids
            .retain(|known| (known.path, known.sequence) != (0, 0));
        self.opened.insert(0);
        self.ids.push(Remote {
            path: 0,
            sequence: 0,
            id,
            used: true,
            reset_token: None,
        });
        self.find_carried();
    }

    /// The token of the id that the peer chose in the handshake.
    pub fn set_first_token(&mut self, token: Option<[u8; 16]>) {
        for known in self
            .ids
            .iter_mut()
            .filter(|known| (known.path, known.sequence) == (0, 0))
        {
            known.reset_token = token;
        }
    }

    /// Whether a datagram that ends so is a stateless reset: the token of an id that is in use (RFC 9000 section 10.3.1).
    pub fn are_reset_by(&self, end: &[u8; 16]) -> bool {
        let mut used = self.ids.iter().filter(|known| known.used);
        used.any(|known| known.reset_token.as_ref() == Some(end))
    }

    /// Takes an id. Returns the sequence numbers that this one retires.
    ///
    /// # Errors
    /// There are more than `limit` for the path, or the frame contradicts an earlier one.
    pub fn add(&mut self, frame: &NewConnectionId, limit: u64) -> Result<Vec<u64>, IdError> {
        let retired = self.take(frame, limit);
        self.find_carried();
        retired
    }

    fn take(&mut self, frame: &NewConnectionId, limit: u64) -> Result<Vec<u64>, IdError> {
        let path = frame.path.unwrap_or(0);
        let same = |known: &&Remote| known.path == path && known.sequence == frame.sequence;
        if let Some(known) = self.ids.iter().find(same) {
            let same_token = known
                .reset_token
                .is_none_or(|token| token == frame.reset_token);
            return if known.id == frame.id && same_token {
                Ok(Vec::new())
            } else {
                Err(IdError::Contradiction)
            };
        }
        let name = (path, frame.sequence);
        if self.abandoned.contains(&path) || self.retired.contains(&name) {
            return Ok(Vec::new());
        }
        let prior = self.retire_prior_to.entry(path).or_insert(0);
        *prior = frame.retire_prior_to.max(*prior);
        let prior = *prior;
        // All below are retired, and a repetition of one is answered again.
        self.retired
            .retain(|&(of, sequence)| of != path || sequence >= prior);
        if self.ids.iter().any(|known| known.id == frame.id) {
            return Err(IdError::Contradiction);
        }
        self.ids.push(Remote {
            path,
            sequence: frame.sequence,
            id: frame.id,
            used: false,
            reset_token: Some(frame.reset_token),
        });
        // The new one too, where a later frame overtook this one (RFC 9000 section 19.15).
        let old = |known: &Remote| known.path == path && known.sequence < prior;
        let retired = self.ids.iter().filter(|known| old(known));
        let retired: Vec<u64> = retired.map(|known| known.sequence).collect();
        self.ids.retain(|known| !old(known));
        let active = self.ids.iter().filter(|known| known.path == path).count() as u64;
        if active > limit {
            return Err(IdError::Limit);
        }
        Ok(retired)
    }

    /// The id that packets on a path carry now, with its sequence number.
    pub fn current(&self, path: u64) -> Option<(u64, ConnectionId)> {
        self.current_of(path)
            .map(|known| (known.sequence, known.id))
    }

    /// The same without the number.
    pub fn current_id(&self, path: u64) -> Option<&ConnectionId> {
        let mut carried = self.carried.iter();
        carried.find(|of| of.0 == path).map(|(_, id)| id)
    }

    /// Finds the ids that packets carry. To be called after each change.
    fn find_carried(&mut self) {
        for path in &self.opened {
            // What takes the place of a retired one is in use, too.
            if let Some((sequence, _)) = self.current(*path) {
                let name = (*path, sequence);
                let mut ids = self.ids.iter_mut();
                if let Some(known) = ids.find(|known| (known.path, known.sequence) == name) {
                    known.used = true;
                }
            }
        }
        let mut carried: Vec<(u64, ConnectionId)> = Vec::new();
        for Remote { path, .. } in &self.ids {
            if carried.iter().all(|of| of.0 != *path)
                && let Some((_, id)) = self.current(*path)
            {
                carried.push((*path, id));
            }
        }
        self.carried = carried;
    }

    fn current_of(&self, path: u64) -> Option<&Remote> {
        let of_path = || self.ids.iter().filter(|known| known.path == path);
        of_path()
            .find(|known| known.used)
            .or_else(|| of_path().min_by_key(|known| known.sequence))
    }

    /// Takes another id of a path into use, if there is one. Returns the sequence number of the one that is retired.
    pub fn change(&mut self, path: u64) -> Option<u64> {
        let (retired, _) = self.current(path)?;
        let next = self.spare_of(path)?.sequence;
        for known in &mut self.ids {
            known.used |= (known.path, known.sequence) == (path, next);
        }
        self.ids
            .retain(|known| (known.path, known.sequence) != (path, retired));
        self.retired.insert((path, retired));
        self.find_carried();
        Some(retired)
    }

    /// An id of a path that its packets do not carry.
    pub fn spare(&self, path: u64) -> Option<ConnectionId> {
        self.spare_of(path).map(|known| known.id)
    }

    /// Packets carry an id from the first on, whether or not it was put to use.
    fn spare_of(&self, path: u64) -> Option<&Remote> {
        let carried = self.current_of(path)?.sequence;
        let spare =
            |known: &&Remote| known.path == path && !known.used && known.sequence != carried;
        self.ids
            .iter()
            .filter(spare)
            .min_by_key(|known| known.sequence)
    }

    /// Puts a path's id to use, and those that take its place.
    pub fn put_to_use(&mut self, path: u64) -> Option<ConnectionId> {
        self.opened.insert(path);
        self.find_carried();
        self.current(path).map(|(_, id)| id)
    }

    /// A path was abandoned.
    pub fn is_abandoned(&self, path: u64) -> bool {
        self.abandoned.contains(&path)
    }

    /// A path is abandoned, and its ids with it.
    pub fn forget(&mut self, path: u64) {
        self.abandoned.insert(path);
        self.opened.remove(&path);
        self.ids.retain(|known| known.path != path);
        self.find_carried();
    }
}

#[cfg(test)]
mod tests {
    use super::super::id::LEN;
    use super::*;
    use rand::SeedableRng;

    fn frame(path: u64, sequence: u64, id: u8, retire_prior_to: u64) -> NewConnectionId {
        NewConnectionId {
            path: Some(path),
            sequence,
            retire_prior_to,
            id: ConnectionId::new(&[id; LEN]),
            reset_token: [0; 16],
        }
    }

    #[test]
    fn ids_belong_to_paths() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut ids = LocalIds::default();
        ids.begin(random_id(&mut random));
        assert_eq!(ids.issue(0, true, 8, &mut random).len(), 1);
        let second = ids.issue(1, true, 8, &mut random);
        assert_eq!(
            second
                .iter()
                .map(|frame| frame.sequence)
                .collect::<Vec<_>>(),
            [0, 1]
        );
        assert_eq!(ids.path_of(&second[1].id), Some(1));
        ids.note(1, &second[0].id);
        assert!(ids.is_newest(1, &second[0].id));
        assert!(!ids.is_newest(1, &second[1].id) && !ids.is_newest(0, &second[0].id));
        assert!(ids.retire(1, 0));
        assert!(!ids.is_newest(1, &second[0].id), "it was retired");
        assert!(!ids.retire(1, 7), "never issued");
        assert!(ids.retire(1, 0), "a repetition");
        assert_eq!(ids.issue(1, true, 8, &mut random)[0].sequence, 2);
        ids.forget(1);
        assert_eq!(ids.path_of(&second[1].id), None);
        assert!(ids.retire(1, 2), "of an abandoned path");
        assert!(ids.issue(1, true, 8, &mut random).is_empty());
    }

    #[test]
    fn an_id_is_changed_for_a_spare_one_of_its_path() {
        let mut ids = RemoteIds::default();
        ids.begin(ConnectionId::new(&[1; LEN]));
        assert_eq!((ids.change(0), ids.spare(0)), (None, None));
        ids.add(&frame(1, 0, 2, 0), 2).expect("admitted");
        assert_eq!(ids.change(0), None, "the spare one is of another path");
        ids.add(&frame(0, 1, 3, 0), 2).expect("admitted");
        assert_eq!(ids.spare(0), Some(ConnectionId::new(&[3; LEN])));
        assert_eq!(ids.change(0), Some(0));
        assert_eq!(ids.current(0), Some((1, ConnectionId::new(&[3; LEN]))));
        assert_eq!(ids.current_id(0), Some(&ConnectionId::new(&[3; LEN])));
        assert_eq!(ids.current_id(1), Some(&ConnectionId::new(&[2; LEN])));
        ids.forget(1);
        assert_eq!(ids.current_id(1), None);
    }

    #[test]
    fn the_id_that_packets_carry_is_no_spare_one() {
        let mut ids = RemoteIds::default();
        ids.add(&frame(1, 0, 2, 0), 2).expect("admitted");
        assert_eq!((ids.spare(1), ids.change(1)), (None, None));
        ids.add(&frame(1, 1, 3, 0), 2).expect("admitted");
        assert_eq!(ids.spare(1), Some(ConnectionId::new(&[3; LEN])));
        assert_eq!((ids.change(1), ids.change(1)), (Some(0), None));
        assert_eq!(ids.current(1), Some((1, ConnectionId::new(&[3; LEN]))));
    }

    /// RFC 9000 section 10.3.1.
    #[test]
    fn a_stateless_reset_has_the_token_of_an_id_in_use() {
        let issued = |path, sequence, id, prior| NewConnectionId {
            reset_token: [id; 16],
            ..frame(path, sequence, id, prior)
        };
        let mut ids = RemoteIds::default();
        ids.begin(ConnectionId::new(&[1; LEN]));
        ids.add(&issued(0, 1, 2, 0), 2).expect("admitted");
        assert!(!ids.are_reset_by(&[2; 16]), "it is spare");
        // The peer has the first one retired.
        ids.add(&issued(0, 2, 3, 1), 2).expect("admitted");
        assert!(ids.are_reset_by(&[2; 16]) && !ids.are_reset_by(&[3; 16]));
        // A path is opened before its ids have come.
        assert_eq!(ids.put_to_use(1), None);
        ids.add(&issued(1, 0, 4, 0), 2).expect("admitted");
        ids.add(&issued(1, 1, 5, 0), 2).expect("admitted");
        assert!(ids.are_reset_by(&[4; 16]) && !ids.are_reset_by(&[5; 16]));
        ids.forget(1);
        assert!(!ids.are_reset_by(&[4; 16]), "its path is abandoned");
    }

    #[test]
    fn a_retired_id_stays_retired() {
        let mut ids = RemoteIds::default();
        ids.begin(ConnectionId::new(&[1; LEN]));
        ids.add(&frame(0, 1, 2, 0), 2).expect("admitted");
        assert_eq!(ids.change(0), Some(0));
        assert_eq!(ids.add(&frame(0, 0, 1, 0), 2), Ok(vec![]), "a repetition");
        assert_eq!(ids.spare(0), None);
        // The frame that retires up to 3 overtakes the one that issues 2.
        assert_eq!(ids.add(&frame(0, 3, 4, 3), 2), Ok(vec![1]));
        assert_eq!(
            ids.add(&frame(0, 2, 3, 0), 2),
            Ok(vec![2]),
            "RFC 9000 section 19.15"
        );
        assert_eq!(ids.current(0), Some((3, ConnectionId::new(&[4; LEN]))));
        ids.forget(0);
        assert_eq!(ids.add(&frame(0, 4, 5, 0), 2), Ok(vec![]));
        assert_eq!(ids.current(0), None, "the path is abandoned");
    }

    #[test]
    fn the_peer_may_not_issue_more_than_admitted_nor_change_its_mind() {
        let mut ids = RemoteIds::default();
        assert_eq!(ids.add(&frame(1, 0, 1, 0), 2), Ok(vec![]));
        assert_eq!(ids.add(&frame(1, 0, 1, 0), 2), Ok(vec![]), "a repetition");
        assert_eq!(ids.add(&frame(1, 0, 2, 0), 2), Err(IdError::Contradiction));
        assert_eq!(ids.add(&frame(1, 1, 1, 0), 2), Err(IdError::Contradiction));
        assert_eq!(ids.add(&frame(1, 1, 3, 0), 2), Ok(vec![]));
        assert_eq!(ids.put_to_use(1), Some(ConnectionId::new(&[1; LEN])));
        assert_eq!(
            ids.add(&frame(1, 2, 4, 1), 2),
            Ok(vec![0]),
            "the first is retired"
        );
        assert_eq!(ids.current(1), Some((1, ConnectionId::new(&[3; LEN]))));
        assert_eq!(ids.add(&frame(1, 3, 5, 0), 2), Err(IdError::Limit));
    }
}
