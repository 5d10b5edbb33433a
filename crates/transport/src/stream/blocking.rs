//! Head-of-line blocking: how long data waited for earlier data, and for which.
//!
//! Data waits at two levels. Inside a subflow it waits behind a hole in the subflow's sequence space. If it is in
//! sequence on its subflow, it may wait at connection level for bytes that another subflow carries. The reason is known
//! when the hole is filled: it depends on the segment that brings the missing bytes.

use crate::{Nanos, Purpose};

/// What the wait was for: how the missing bytes came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Cause {
    /// Sent once and under way all the time: a longer path, or reordering on one.
    Late,
    /// Lost, or taken for lost, and sent again on the same subflow.
    Retransmitted,
    /// Sent again on another subflow than before, where it came first.
    Reinjected,
    /// Not at all, as long as the connection or the run lasted.
    Missing,
}

impl Cause {
    pub const ALL: [Self; 4] = [
        Self::Late,
        Self::Retransmitted,
        Self::Reinjected,
        Self::Missing,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Retransmitted => "retransmitted",
            Self::Reinjected => "reinjected",
            Self::Missing => "missing",
        }
    }
}

impl From<Purpose> for Cause {
    fn from(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Control | Purpose::Data => Self::Late,
            Purpose::Retransmission => Self::Retransmitted,
            Purpose::Reinjection => Self::Reinjected,
        }
    }
}

/// Time during which something waited, in nanoseconds; what waited integrated over it; the most that waited at once, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    pub time: Nanos,
    pub byte_nanoseconds: u128,
    pub most: u64,
}

impl Waited {
    fn add(&mut self, other: Self) {
        self.time += other.time;
        self.byte_nanoseconds += other.byte_nanoseconds;
        self.most = self.most.max(other.most);
    }
}

/// A queue behind a hole, and what was waited for so far.
#[derive(Clone, Debug, Default)]
struct Queue {
    bytes: u64,
    since: Nanos,
    /// Since the present hole came to the front.
    open: Waited,
    closed: [Waited; 4],
}

impl Queue {
    fn pass(&mut self, now: Nanos) {
        if self.bytes > 0 {
            let passed = now - self.since;
            self.open.time += passed;
            self.open.byte_nanoseconds += u128::from(self.bytes) * u128::from(passed);
        }
        self.since = now;
    }

    fn set(&mut self, bytes: u64, now: Nanos) {
        self.pass(now);
        self.bytes = bytes;
        self.open.most = self.open.most.max(bytes);
    }

    /// The hole in front was filled; `bytes` wait behind the next one.
    fn release(&mut self, bytes: u64, now: Nanos) -> Waited {
        self.pass(now);
        self.bytes = bytes;
        let most = bytes;
        std::mem::replace(
            &mut self.open,
            Waited {
                most,
                ..Waited::default()
            },
        )
    }
}

/// Where data waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Out of sequence on its own subflow.
    Subflow,
    /// In sequence there, out of order in the connection's stream.
    Connection,
}

/// A total of a connection's waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub level: Level,
    /// The subflow that brought the missing bytes, or inside which data waited; none: they did not come.
    pub subflow: Option<usize>,
    pub cause: Cause,
    pub waited: Waited,
}

/// The waits of the direction that a connection receives.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    subflows: Vec<Queue>,
    connection: Queue,
    /// What the connection waited for, by the subflow that brought it.
    brought: Vec<[Waited; 4]>,
}

impl Blocking {
    fn subflow(&mut self, subflow: usize) -> &mut Queue {
        if self.subflows.len() <= subflow {
            self.subflows.resize_with(subflow + 1, Queue::default);
        }
        &mut self.subflows[subflow]
    }

    /// More waits on a subflow: `bytes` now.
    pub fn subflow_holds(&mut self, subflow: usize, bytes: u64, now: Nanos) {
        self.subflow(subflow).set(bytes, now);
    }

    /// What was missing on a subflow came, or never will; `bytes` wait for the next.
    pub fn subflow_advances(&mut self, subflow: usize, bytes: u64, cause: Cause, now: Nanos) {
        let queue = self.subflow(subflow);
        let waited = queue.release(bytes, now);
        queue.closed[cause as usize].add(waited);
    }

    /// More waits in the connection's stream: `bytes` now.
    pub fn connection_holds(&mut self, bytes: u64, now: Nanos) {
        self.connection.set(bytes, now);
    }

    /// What was missing in the stream came on a subflow; `bytes` wait for the next.
    pub fn connection_advances(&mut self, subflow: usize, bytes: u64, cause: Cause, now: Nanos) {
        let waited = self.connection.release(bytes, now);
        if self.brought.len() <= subflow {
            self.brought.resize(subflow + 1, [Waited::default(); 4]);
        }
        self.brought[subflow][cause as usize].add(waited);
    }

    /// The connection ended: nothing more comes.
    pub fn end(&mut self, now: Nanos) {
        let waited = self.connection.release(0, now);
        self.connection.closed[Cause::Missing as usize].add(waited);
    }

    /// Every wait up to `now` that was longer than nothing, by level, subflow and cause.
    pub fn report(&self, now: Nanos) -> Vec<Blocked> {
        let open = |queue: &Queue| {
            let mut queue = queue.clone();
            let waited = queue.release(0, now);
            queue.closed[Cause::Missing as usize].add(waited);
            queue.closed
        };
        let subflows = self.subflows.iter().map(open).enumerate();
        let subflows = subflows.map(|(subflow, waits)| (Level::Subflow, Some(subflow), waits));
        let brought = self.brought.iter().copied().enumerate();
        let brought = brought.map(|(subflow, waits)| (Level::Connection, Some(subflow), waits));
        let missing = [(Level::Connection, None, open(&self.connection))];
        let all = subflows.chain(brought).chain(missing);
        all.flat_map(|(level, subflow, waits)| {
            Cause::ALL.map(|cause| Blocked {
                level,
                subflow,
                cause,
                waited: waits[cause as usize],
            })
        })
        .filter(|blocked| blocked.waited.time > 0)
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(
        blocking: &Blocking,
        now: Nanos,
    ) -> Vec<(Level, Option<usize>, Cause, u64, u128, u64)> {
        let row = |blocked: Blocked| {
            let Waited {
                time,
                byte_nanoseconds,
                most,
            } = blocked.waited;
            (
                blocked.level,
                blocked.subflow,
                blocked.cause,
                time,
                byte_nanoseconds,
                most,
            )
        };
        blocking.report(now).into_iter().map(row).collect()
    }

    #[test]
    fn the_integral_is_taken_from_change_to_change() {
        let mut blocking = Blocking::default();
        blocking.connection_holds(100, 10);
        blocking.connection_holds(300, 20);
        blocking.connection_advances(1, 50, Cause::Late, 25);
        blocking.connection_advances(0, 0, Cause::Reinjected, 29);
        // Nothing waits from here on.
        blocking.connection_holds(10, 1000);
        assert_eq!(
            waited(&blocking, 1002),
            [
                (Level::Connection, Some(0), Cause::Reinjected, 4, 200, 50),
                (
                    Level::Connection,
                    Some(1),
                    Cause::Late,
                    15,
                    100 * 10 + 300 * 5,
                    300
                ),
                (Level::Connection, None, Cause::Missing, 2, 20, 10),
            ]
        );
        blocking.end(1001);
        assert_eq!(
            waited(&blocking, 5000)[2].3,
            1,
            "an ended connection waits for nothing"
        );
    }

    #[test]
    fn each_subflow_waits_for_itself() {
        let mut blocking = Blocking::default();
        blocking.subflow_holds(2, 7, 0);
        blocking.subflow_holds(0, 5, 1);
        blocking.subflow_advances(2, 0, Cause::Retransmitted, 3);
        assert_eq!(
            waited(&blocking, 4),
            [
                (Level::Subflow, Some(0), Cause::Missing, 3, 15, 5),
                (Level::Subflow, Some(2), Cause::Retransmitted, 3, 21, 7),
            ]
        );
    }
}
