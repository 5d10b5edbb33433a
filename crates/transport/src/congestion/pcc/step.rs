//! How far a rate moves along the gradient of its utility (authors' `pcc.h`, `decide`; `tcp_mpcc.c`, `pcc_convert_gradient_to_step`).

/// Bytes a second in a megabit a second.
pub(in crate::congestion) const MEGABIT: f64 = 125_000.0;
/// A gradient of one moves the rate by this (`factor`; in `tcp_mpcc.c` 250 * 1000 / 2 bytes a second).
const CONVERSION: f64 = MEGABIT;
/// The least change.
const LEAST: f64 = 0.5 * MEGABIT;
/// Changes of direction that are remembered: so many decisions in one direction pass before the amplifier grows.
const MOST_SWINGS: u32 = 2;

/// What differs between the authors' two programs.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion) struct Pace {
    /// The first bound of a change as a part of the rate is 0.05; it is wider by this after each change that met it.
    pub wider: f64,
    /// The gradient is multiplied by this after so many decisions in one direction.
    pub amplify: fn(f64) -> f64,
    /// By which that number grows.
    pub grow: fn(f64) -> f64,
}

const FIRST_BOUND: f64 = 0.05;

/// `decide`: the further in one direction, the faster.
pub(in crate::congestion) fn steeper(confidence: f64) -> f64 {
    match confidence {
        c if c < 3.0 => c + 1.0,
        c if c < 6.0 => 2.0 * c - 2.0,
        c if c < 9.0 => 4.0 * c - 14.0,
        c => 8.0 * c - 50.0,
    }
}

pub(in crate::congestion) fn slower_from_four(confidence: f64) -> f64 {
    if confidence > 3.0 { 0.5 } else { 1.0 }
}

#[derive(Debug, Default)]
pub(super) struct Step {
    /// The last change in bytes a second; 0: none that counts.
    last: f64,
    confidence: f64,
    widened: u32,
    swings: u32,
}

impl Step {
    /// The direction is forgotten, because two pairs of probes contradict each other.
    pub fn forget(&mut self) {
        self.last = 0.0;
    }

    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// The change of `rate`, whose bound is a part of `total`, both in bytes a second.
    pub fn take(&mut self, pace: &Pace, gradient: f64, rate: f64, total: f64) -> f64 {
        let turned = gradient * self.last < 0.0;
        let steady = gradient * self.last > 0.0;
        if turned {
            self.confidence = 0.0;
            self.widened = 0;
            self.swings = (self.swings + 1).min(MOST_SWINGS);
        }
        let mut change = CONVERSION * gradient.abs() * (pace.amplify)(self.confidence);
        if steady && self.swings == 0 {
            self.confidence += (pace.grow)(self.confidence);
        } else if steady {
            self.swings -= 1;
        }
        let bound = total * (FIRST_BOUND + pace.wider * f64::from(self.widened));
        if change > bound {
            change = bound;
            self.widened += u32::from(!turned);
        } else {
            self.widened = self.widened.saturating_sub(1);
        }
        let change = change.max(LEAST).min(rate / 2.0);
        self.last = change.copysign(gradient);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIVACE: Pace = Pace {
        wider: 0.06,
        amplify: steeper,
        grow: slower_from_four,
    };

    /// `decide`: 1, 2, 3, then faster and faster.
    #[test]
    fn confidence_amplifies() {
        let factors = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0].map(steeper);
        assert_eq!(factors, [1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 22.0]);
    }

    /// Rates in megabits: at 100 the bound of 5, 11 and 17 % holds a steep gradient, and a turn begins with 5 % again.
    #[test]
    fn the_bound_widens_until_the_direction_turns() {
        let mut step = Step::default();
        let mut take = |gradient| {
            let change = step.take(&VIVACE, gradient, 100.0 * MEGABIT, 100.0 * MEGABIT);
            (change / MEGABIT * 100.0).round() / 100.0
        };
        assert_eq!(
            [20.0, 20.0, 20.0, -20.0, -20.0, 0.1].map(&mut take),
            [5.0, 11.0, 17.0, -5.0, -5.0, 0.5]
        );
    }

    #[test]
    fn no_change_takes_more_than_half_of_the_rate() {
        let mut step = Step::default();
        let change = step.take(&VIVACE, -1.0, 0.2 * MEGABIT, 0.2 * MEGABIT);
        assert_eq!(change, -0.1 * MEGABIT);
    }
}
