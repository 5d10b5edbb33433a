//! Path ids: how many each end admits (RFC 10069 sections 3.1, 4.3, 4.6 and 4.7).

use std::ops::RangeInclusive;

/// Path ids beyond the first that the peer may use at first.
pub(super) const PATHS: u64 = 7;
/// Path ids are admitted so many at a time once the peer asks for more (RFC 10069 section 4.7).
const MORE_PATHS: u64 = 8;
/// So many path ids that are not abandoned are admitted, however many the peer asks for.
const MOST_PATHS: u64 = 256;

/// The path ids of a connection.
#[derive(Debug)]
pub(super) struct PathIds {
    /// The largest that this side admits, and that the peer does.
    admitted: u64,
    peer_admits: u64,
    /// The next that the client uses.
    next: u64,
}

impl Default for PathIds {
    fn default() -> Self {
        Self {
            admitted: PATHS,
            peer_admits: 0,
            next: 1,
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
}
