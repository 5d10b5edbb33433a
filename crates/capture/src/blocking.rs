//! How long data waited behind what was missing, and how that came: docs/recording.md, "Head-of-line blocking".

/// How the missing bytes came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Cause {
    Late,
    Retransmitted,
    Reinjected,
    Missing,
}

impl Cause {
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Late, "late"),
        (Self::Retransmitted, "retransmitted"),
        (Self::Reinjected, "reinjected"),
        (Self::Missing, "missing"),
    ];
}

/// Time in nanoseconds, bytes integrated over it, most bytes at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waited {
    pub time: u64,
    pub byte_nanoseconds: u128,
    pub most: u64,
}

impl Waited {
    pub fn add(&mut self, other: Self) {
        self.time += other.time;
        self.byte_nanoseconds += other.byte_nanoseconds;
        self.most = self.most.max(other.most);
    }
}

/// Waits by cause.
pub type Waits = [Waited; 4];

/// What waits behind the hole in front.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    bytes: u64,
    since: i64,
    open: Waited,
}

impl Queue {
    fn pass(&mut self, now: i64) {
        let passed = now.saturating_sub(self.since).max(0) as u64;
        if self.bytes > 0 {
            self.open.time += passed;
            self.open.byte_nanoseconds += u128::from(self.bytes) * u128::from(passed);
        }
        self.since = now;
    }

    /// So many bytes wait now.
    pub fn hold(&mut self, bytes: u64, now: i64) {
        self.pass(now);
        self.bytes = bytes;
        self.open.most = self.open.most.max(bytes);
    }

    /// The hole in front is filled; gives what was waited for it. So many bytes wait behind the next.
    pub fn release(&mut self, bytes: u64, now: i64) -> Waited {
        self.pass(now);
        self.bytes = bytes;
        let next = Waited {
            most: bytes,
            ..Waited::default()
        };
        std::mem::replace(&mut self.open, next)
    }
}
