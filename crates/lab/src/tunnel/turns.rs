//! Lines that take turns by weight.

/// Each line is due as often as its weight says, and as evenly as that goes: a line gains its weight at each packet, and pays the sum of all
/// weights when it carries one.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    weights: Vec<i64>,
    credits: Vec<i64>,
}

impl Turns {
    pub fn new(weights: impl Iterator<Item = u32>) -> Self {
        let weights: Vec<i64> = weights.map(i64::from).collect();
        let credits = vec![0; weights.len()];
        Self { weights, credits }
    }

    /// The line of the next packet; of several that are due the first.
    pub fn next(&mut self) -> Option<usize> {
        let mut due: Option<usize> = None;
        for (line, weight) in self.weights.iter().enumerate() {
            self.credits[line] += weight;
            if due.is_none_or(|due| self.credits[line] > self.credits[due]) {
                due = Some(line);
            }
        }
        let sum: i64 = self.weights.iter().sum();
        if let Some(due) = due {
            self.credits[due] -= sum;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(weights: &[u32], packets: usize) -> Vec<usize> {
        let mut turns = Turns::new(weights.iter().copied());
        (0..packets).filter_map(|_| turns.next()).collect()
    }

    #[test]
    fn equal_lines_alternate() {
        assert_eq!(turns(&[1, 1, 1], 6), [0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(&[7], 2), [0, 0]);
    }

    #[test]
    fn others_have_their_part_evenly() {
        assert_eq!(turns(&[3, 1], 8), [0, 0, 1, 0, 0, 0, 1, 0]);
        let taken = turns(&[5, 2, 1], 800);
        let count = |line| taken.iter().filter(|&&each| each == line).count();
        assert_eq!([count(0), count(1), count(2)], [500, 200, 100]);
    }

    #[test]
    fn without_lines_there_is_no_turn() {
        assert_eq!(turns(&[], 3), [0usize; 0]);
    }
}
