//! The rate that a station sends at: a Markov chain in continuous time over states of the air.

use rand_pcg::Pcg64Mcg;

use super::State;
use crate::ids::{NEVER, Nanos};
use crate::random::{exponential, uniform};

/// Where the chain is. It moves whether anything is sent or not; the moves up to a time are drawn when somebody asks.
#[derive(Debug)]
pub(crate) struct Chain {
    place: usize,
    until: Nanos,
    rng: Pcg64Mcg,
}

impl Chain {
    /// In the first state, at time 0.
    pub fn new(states: &[State], rng: Pcg64Mcg) -> Self {
        let mut chain = Self {
            place: 0,
            until: 0,
            rng,
        };
        chain.stay(states, 0);
        chain
    }

    fn stay(&mut self, states: &[State], from: Nanos) {
        self.until = match states[self.place].dwell {
            Some(mean) => from.saturating_add(exponential(&mut self.rng, mean)),
            None => NEVER,
        };
    }

    /// The state's position at a time, which never goes back.
    pub fn at(&mut self, states: &[State], now: Nanos) -> usize {
        while self.until <= now {
            let left = self.until;
            self.place = self.successor(states);
            self.stay(states, left);
        }
        self.place
    }

    fn successor(&mut self, states: &[State]) -> usize {
        let mut rest = uniform(&mut self.rng);
        let next = &states[self.place].next;
        let found = next.iter().position(|share| {
            let found = rest < *share;
            rest -= share;
            found
        });
        // What rounding leaves goes to the last one that has a share.
        found
            .or_else(|| next.iter().rposition(|share| *share > 0.0))
            .unwrap_or(self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    const MS: Nanos = 1_000_000;

    fn state(dwell: Option<Nanos>, next: &[f64]) -> State {
        State {
            mcs: 0,
            error: 0.0,
            dwell,
            next: next.to_vec(),
        }
    }

    #[test]
    fn time_is_shared_as_in_equilibrium_however_seldom_one_looks() {
        // Visits by the jump chain are 4/9, 1/3, 2/9 of all; weighted with the dwell times 100, 50 and 25 ms.
        let states = [
            state(Some(100 * MS), &[0.0, 0.5, 0.5]),
            state(Some(50 * MS), &[1.0, 0.0, 0.0]),
            state(Some(25 * MS), &[0.75, 0.25, 0.0]),
        ];
        // pi_0 = pi_1 + 0.75 pi_2, pi_1 = 0.5 pi_0 + 0.25 pi_2, pi_2 = 0.5 pi_0
        let visits = [1.0, 0.625, 0.5];
        let weighted = [100.0 * visits[0], 50.0 * visits[1], 25.0 * visits[2]];
        let all: f64 = weighted.iter().sum();
        for step in [MS, 700 * MS] {
            let mut chain = Chain::new(&states, stream(1, "test", 0, "rate"));
            let mut found = [0_u32; 3];
            for index in 1..=60_000 {
                found[chain.at(&states, index * step)] += 1;
            }
            for (found, wanted) in found.iter().zip(weighted) {
                let share = f64::from(*found) / 60_000.0;
                assert!(
                    (share - wanted / all).abs() < 0.03,
                    "{share} {}",
                    wanted / all
                );
            }
        }
    }

    #[test]
    fn a_state_without_dwell_time_is_never_left() {
        let states = [state(None, &[0.0, 1.0]), state(Some(MS), &[1.0, 0.0])];
        let mut chain = Chain::new(&states, stream(1, "test", 0, "rate"));
        assert_eq!(chain.at(&states, NEVER - 1), 0);
    }
}
