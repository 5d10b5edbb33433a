//! Which representation comes next.

use crate::plan::VideoRule;

/// What a rule sees. Representations are numbered from the lowest rate up.
pub(super) struct View<'a> {
    pub rates_bps: &'a [u64],
    /// That of the segment before.
    pub last: Option<usize>,
    /// Rates at which the latest segments came, in bit/s, the oldest first.
    pub measured_bps: &'a [f64],
    pub buffered_ns: u64,
}

/// The representation to ask for.
pub(super) fn choose(rule: &VideoRule, view: &View) -> usize {
    match *rule {
        VideoRule::Throughput { window, safety } => throughput(view, window as usize, safety),
        VideoRule::Buffer {
            reservoir_ns,
            cushion_ns,
        } => buffer(view, reservoir_ns, cushion_ns),
        VideoRule::Fixed { representation } => {
            (representation as usize).min(view.rates_bps.len() - 1)
        }
    }
}

/// The highest rate below a part of the harmonic mean of the last segments' rates (the rate-based rule of Yin et al.,
/// SIGCOMM 2015, section 7.1.2; the part is dash.js' bandwidthSafetyFactor); the lowest before anything is known.
fn throughput(view: &View, window: usize, safety: f64) -> usize {
    let known = &view.measured_bps[view.measured_bps.len().saturating_sub(window)..];
    let slowness: f64 = known.iter().map(|rate| 1.0 / rate).sum();
    if known.is_empty() {
        return 0;
    }
    let expected = safety * known.len() as f64 / slowness;
    highest(view.rates_bps, |rate| rate <= expected)
}

/// BBA-0 (Huang et al., SIGCOMM 2014, algorithm 1): a line from the lowest rate, up to the reservoir, to the highest,
/// from the cushion's end; the rate changes where the line passes the next one.
fn buffer(view: &View, reservoir_ns: u64, cushion_ns: u64) -> usize {
    let top = view.rates_bps.len() - 1;
    let buffered = view.buffered_ns;
    if buffered <= reservoir_ns {
        return 0;
    }
    if buffered >= reservoir_ns + cushion_ns {
        return top;
    }
    let (low, high) = (view.rates_bps[0] as f64, view.rates_bps[top] as f64);
    let line = low + (high - low) * (buffered - reservoir_ns) as f64 / cushion_ns as f64;
    let last = view.last.unwrap_or(0);
    if line >= view.rates_bps[(last + 1).min(top)] as f64 {
        highest(view.rates_bps, |rate| rate < line)
    } else if line <= view.rates_bps[last.saturating_sub(1)] as f64 {
        let above = view.rates_bps.iter().position(|&rate| rate as f64 > line);
        above.unwrap_or(top)
    } else {
        last
    }
}

fn highest(rates_bps: &[u64], fits: impl Fn(f64) -> bool) -> usize {
    let place = rates_bps.iter().rposition(|&rate| fits(rate as f64));
    place.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [u64; 3] = [300_000, 750_000, 1_200_000];
    const SECOND: u64 = 1_000_000_000;

    fn view(last: usize, measured_bps: &[f64], buffered: u64) -> View<'_> {
        View {
            rates_bps: &RATES,
            last: Some(last),
            measured_bps,
            buffered_ns: buffered * SECOND,
        }
    }

    #[test]
    fn the_mean_of_rates_is_harmonic_and_of_the_last_ones() {
        // 2 / (1 / 0.5 + 1 / 2) = 0.8
        let rates = [9e6, 0.5e6, 2e6];
        assert_eq!(throughput(&view(0, &rates, 0), 2, 1.0), 1);
        assert_eq!(throughput(&view(0, &rates, 0), 2, 0.9), 0);
        assert_eq!(throughput(&view(0, &rates, 0), 3, 1.0), 1);
        assert_eq!(throughput(&view(2, &[], 0), 3, 1.0), 0);
        assert_eq!(throughput(&view(2, &[1.0], 0), 3, 1.0), 0);
        assert_eq!(throughput(&view(0, &[1e9], 0), 3, 1.0), 2);
    }

    #[test]
    fn the_line_of_bba_0_is_stepped() {
        let at = |last, buffered| buffer(&view(last, &[], buffered), 10 * SECOND, 20 * SECOND);
        assert_eq!((at(2, 0), at(2, 10)), (0, 0));
        assert_eq!((at(0, 30), at(0, 99)), (2, 2));
        // 20 s: the line is at 750 kbit/s, the next rate, and only lower ones are below it.
        assert_eq!(at(0, 20), 0);
        assert_eq!(at(0, 21), 1);
        // From above the line has to come down to the next rate.
        assert_eq!((at(2, 21), at(2, 20)), (2, 2));
        assert_eq!(at(2, 19), 1);
        assert_eq!((at(1, 15), at(1, 11)), (1, 1));
    }
}
