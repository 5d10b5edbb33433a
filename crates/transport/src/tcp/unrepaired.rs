//! Where in the flight segments may lie that are lost and wait to be sent again.

/// A stretch of sequence numbers: outside of it nothing waits. The search for what to send again is as long as this, not as the flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unrepaired {
    from: u64,
    to: u64,
}

impl Unrepaired {
    /// Something between two sequence numbers was lost.
    pub fn add(&mut self, from: u64, to: u64) {
        if self.is_empty() {
            *self = Self { from, to };
        } else {
            self.from = self.from.min(from);
            self.to = self.to.max(to);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    pub fn from(&self) -> u64 {
        self.from
    }

    pub fn to(&self) -> u64 {
        self.to
    }

    /// Nothing below this waits.
    pub fn cut_below(&mut self, from: u64) {
        self.from = self.from.max(from);
    }
}

#[cfg(test)]
mod tests {
    use super::Unrepaired;

    #[test]
    fn holds_all_that_was_lost_and_not_sent_again() {
        let mut waiting = Unrepaired::default();
        assert!(waiting.is_empty());
        waiting.add(7, 9);
        waiting.add(3, 5);
        assert_eq!((waiting.from(), waiting.to()), (3, 9));
        waiting.cut_below(9);
        assert!(waiting.is_empty());
        waiting.add(2, 3);
        assert_eq!((waiting.from(), waiting.to()), (2, 3));
    }
}
