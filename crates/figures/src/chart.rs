//! Series as a page holds them: whole numbers, thinned out, as differences.

use serde::Serialize;

/// Values of one chart at most; beyond, each series is thinned out.
pub const MOST_VALUES: usize = 12_000;
/// Pieces of the time that have the extremes of all series; where there is no room for so many, those of the first.
const LEAST_PIECES: usize = 50;

pub type Column = Vec<Option<f64>>;

/// Series over the same times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    pub times: Vec<i64>,
    pub series: Vec<Column>,
}

/// A chart on a page: times in microseconds and the series, each number less the one before that is there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Packed {
    pub t: Vec<Option<i64>>,
    pub v: Vec<Vec<Option<i64>>>,
    /// Samples before some were left out.
    pub of: usize,
    /// Of how many series the extremes are kept; 0 of means.
    pub extremes: usize,
}

impl Chart {
    /// Whether there is anything to draw.
    pub fn says_something(&self) -> bool {
        !self.times.is_empty() && self.series.iter().flatten().any(Option::is_some)
    }

    /// Thinned out where there are more than `most` values.
    pub fn packed(&self, most: usize) -> Packed {
        let kept = keep(&self.series, self.times.len(), most);
        let column = |column: &Column| differences(kept.iter().map(|row| column[*row].map(whole)));
        Packed {
            t: differences(kept.iter().map(|row| Some(micros(self.times[*row])))),
            v: self.series.iter().map(column).collect(),
            of: self.times.len(),
            extremes: followed(self.series.len(), most),
        }
    }

    /// As [`Self::packed`], of rates over the time since the row before: means over longer times, in which all that was
    /// carried is.
    pub fn averaged(&self, most: usize) -> Packed {
        let (rows, count) = (self.times.len(), self.series.len().max(1));
        if rows * count <= most {
            return self.packed(most);
        }
        let pieces = (most / count).saturating_sub(1).max(1);
        let kept: Vec<usize> = (0..=pieces)
            .map(|piece| part(rows - 1, piece, pieces))
            .collect();
        let times: Vec<i64> = kept.iter().map(|row| self.times[*row]).collect();
        let series = self.series.iter().map(|column| {
            let carried = self.carried(column);
            let rates = kept.windows(2).map(|rows| {
                let passed = self.times[rows[1]] - self.times[rows[0]];
                (carried[rows[1]] - carried[rows[0]]) / passed as f64
            });
            let rates: Vec<f64> = rates.collect();
            rates[..1].iter().chain(&rates).copied().map(Some).collect()
        });
        let means = Self {
            series: series.collect(),
            times,
        };
        Packed {
            of: rows,
            extremes: 0,
            ..means.packed(most)
        }
    }

    /// Running totals of rates.
    fn carried(&self, column: &Column) -> Vec<f64> {
        let mut sum = 0.0;
        let steps = self
            .times
            .windows(2)
            .zip(&column[1..])
            .map(|(times, rate)| {
                sum += rate.unwrap_or(0.0) * (times[1] - times[0]) as f64;
                sum
            });
        std::iter::once(0.0)
            .chain(steps.collect::<Vec<_>>())
            .collect()
    }
}

/// The rows to keep so that there are about `most` values.
///
/// The time is cut into pieces of equal numbers of rows; of each piece the first row stays, and those in which some series
/// has its least or its greatest value there, or of very many series the first one. Every value that stays was sampled.
fn keep(series: &[Column], rows: usize, most: usize) -> Vec<usize> {
    if rows * series.len() <= most || series.is_empty() {
        return (0..rows).collect();
    }
    let followed = followed(series.len(), most);
    let pieces = rows.min((most / (series.len() * (1 + 2 * followed))).max(1));
    let mut chosen = vec![0, rows - 1];
    for piece in 0..pieces {
        let (first, beyond) = (part(rows, piece, pieces), part(rows, piece + 1, pieces));
        chosen.push(first);
        for column in &series[..followed] {
            let known = (first..beyond).filter(|row| column[*row].is_some());
            let value = |row: &usize| column[*row].unwrap_or(0.0);
            let least = known
                .clone()
                .min_by(|one, other| value(one).total_cmp(&value(other)));
            // of equal ones the first
            let greatest = known
                .rev()
                .max_by(|one, other| value(one).total_cmp(&value(other)));
            chosen.extend(least.into_iter().chain(greatest));
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

fn followed(series: usize, most: usize) -> usize {
    if most >= LEAST_PIECES * series * (1 + 2 * series) {
        series
    } else {
        series.min(1)
    }
}

/// The nearest whole number to `whole * piece / pieces`.
fn part(whole: usize, piece: usize, pieces: usize) -> usize {
    ((whole * piece) as f64 / pieces as f64).round_ties_even() as usize
}

/// Each value less the one before that is there.
pub fn differences(values: impl IntoIterator<Item = Option<i64>>) -> Vec<Option<i64>> {
    let mut before = 0;
    let step =
        |value: Option<i64>| value.map(|value| value - std::mem::replace(&mut before, value));
    values.into_iter().map(step).collect()
}

pub(crate) fn micros(time_ns: i64) -> i64 {
    whole(time_ns as f64 / 1000.0)
}

pub(crate) fn whole(value: f64) -> i64 {
    value.round_ties_even() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summed(steps: &[Option<i64>]) -> Vec<i64> {
        let mut sum = 0;
        let add = |step: &Option<i64>| {
            sum += step.unwrap_or(0);
            sum
        };
        steps.iter().map(add).collect()
    }

    fn column(values: impl IntoIterator<Item = i64>) -> Column {
        let values = values.into_iter();
        values.map(|value| Some(value as f64)).collect()
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(keep(&[vec![Some(1.0), None, Some(3.0)]], 3, 3), [0, 1, 2]);
        let chart = Chart {
            times: vec![0, 1500, 2500, 7_000],
            series: vec![column([3, 5, 4, 4])],
        };
        let packed = chart.packed(100);
        // of a half the even neighbour
        assert_eq!(summed(&packed.t), [0, 2, 2, 7]);
        assert_eq!(summed(&packed.v[0]), [3, 5, 4, 4]);
        assert_eq!(packed.of, 4);
    }

    #[test]
    fn what_is_thinned_out_keeps_the_extremes() {
        let mut flat = column(std::iter::repeat_n(5, 100_000));
        (flat[70_001], flat[20_002], flat[40_000]) = (Some(999.0), Some(-7.0), None);
        let chart = Chart {
            times: (0..100_000).collect(),
            series: vec![flat, column((0..100_000).map(|row| row % 3))],
        };
        let packed = chart.packed(4000);
        assert_eq!((packed.of, packed.extremes), (100_000, 2));
        assert!(packed.t.len() <= 4000);
        let values = summed(&packed.v[0]);
        assert!(values.contains(&999) && values.contains(&-7));
    }

    #[test]
    fn of_very_many_series_the_samples_that_stay_are_spread_over_the_time() {
        let rows = 1200;
        let mut series: Vec<Column> = (0..61)
            .map(|lane| column((0..rows as i64).map(|row| lane + row % 7)))
            .collect();
        series[0][777] = Some(999.0);
        let kept = keep(&series, rows, MOST_VALUES);
        assert!(kept.len() * series.len() <= MOST_VALUES);
        assert!(kept.contains(&777));
        assert!(kept.windows(2).all(|rows| rows[1] - rows[0] < 24));
        assert_eq!((kept[0], kept[kept.len() - 1]), (0, rows - 1));
    }

    #[test]
    fn rates_that_are_too_many_become_means_of_all_that_was_carried() {
        let later = 1..=2000;
        let burst = |row: i64| if row % 10 == 0 { 5_000_000 } else { 0 };
        let chart = Chart {
            times: std::iter::once(0)
                .chain(later.clone().map(|row| 1000 * row + row % 3))
                .collect(),
            series: vec![
                column(std::iter::once(0).chain(later.clone().map(burst))),
                column(std::iter::once(0).chain(later.map(|_| 1_000_000))),
            ],
        };
        let packed = chart.averaged(400);
        assert_eq!((packed.of, packed.extremes), (2001, 0));
        assert!(packed.t.len() * 2 <= 400);
        assert_eq!(summed(&packed.t).last(), Some(&2000));
        let (bursts, steady) = (summed(&packed.v[0]), summed(&packed.v[1]));
        assert!(steady.iter().all(|rate| *rate == 1_000_000));
        let mean = bursts[1..].iter().sum::<i64>() / (bursts.len() as i64 - 1);
        assert!((495_000..=505_000).contains(&mean), "{mean}");
        assert!(bursts.iter().all(|rate| *rate < 1_000_000));
    }

    #[test]
    fn an_absent_value_changes_no_difference() {
        let found = differences([Some(5), None, Some(7)]);
        assert_eq!(found, [Some(5), None, Some(2)]);
    }
}
