//! Which representation comes next.

use super::chunk::Chunk;
use crate::plan::{Video, VideoRule};

/// The representation to ask for next, numbered from the lowest rate up; all of the segments so far came.
pub(super) fn choose(video: &Video, chunks: &[Chunk], buffered_ns: u64) -> usize {
    let rates = &video.rates_bps;
    match video.rule {
        VideoRule::Throughput { window, safety } => {
            let latest = &chunks[chunks.len().saturating_sub(window as usize)..];
            let measured = latest.iter().filter_map(Chunk::measured_bps);
            throughput(rates, measured, safety)
        }
        VideoRule::Buffer {
            reservoir_ns,
            cushion_ns,
        } => {
            let last = chunks.last().map_or(0, |chunk| chunk.representation);
            buffer(rates, last as usize, buffered_ns, reservoir_ns, cushion_ns)
        }
        VideoRule::Fixed { representation } => representation as usize,
    }
}

/// The highest rate below a part of the harmonic mean of the last segments' rates (the rate-based rule of Yin et al.,
/// SIGCOMM 2015; the part is dash.js' bandwidthSafetyFactor); the lowest before anything is known.
fn throughput(rates_bps: &[u64], measured: impl Iterator<Item = f64>, safety: f64) -> usize {
    let (mut count, mut slowness) = (0.0, 0.0);
    for rate in measured {
        count += 1.0;
        slowness += 1.0 / rate;
    }
    if count == 0.0 {
        return 0;
    }
    highest(rates_bps, |rate| rate <= safety * count / slowness)
}

/// BBA-0 (Huang et al., SIGCOMM 2014, algorithm 1): a line from the lowest rate, up to the reservoir, to the highest,
/// from the cushion's end; the rate changes where the line passes the next one.
fn buffer(
    rates_bps: &[u64],
    last: usize,
    buffered_ns: u64,
    reservoir_ns: u64,
    cushion_ns: u64,
) -> usize {
    let top = rates_bps.len() - 1;
    if buffered_ns <= reservoir_ns {
        return 0;
    }
    if buffered_ns >= reservoir_ns + cushion_ns {
        return top;
    }
    let (low, high) = (rates_bps[0] as f64, rates_bps[top] as f64);
    let line = low + (high - low) * (buffered_ns - reservoir_ns) as f64 / cushion_ns as f64;
    if line >= rates_bps[(last + 1).min(top)] as f64 {
        highest(rates_bps, |rate| rate < line)
    } else if line <= rates_bps[last.saturating_sub(1)] as f64 {
        let above = rates_bps.iter().position(|&rate| rate as f64 > line);
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

    #[test]
    fn the_mean_of_rates_is_harmonic() {
        let of = |rates: &[f64], safety| throughput(&RATES, rates.iter().copied(), safety);
        // 2 / (1 / 0.5 + 1 / 2) = 0.8
        assert_eq!(of(&[0.5e6, 2e6], 1.0), 1);
        assert_eq!(of(&[0.5e6, 2e6], 0.9), 0);
        assert_eq!((of(&[], 1.0), of(&[1.0], 1.0), of(&[1e9], 1.0)), (0, 0, 2));
    }

    #[test]
    fn of_the_rates_the_last_ones_count() {
        let came = |seconds: u64| Chunk {
            asked_at: 0,
            arrived_at: Some(seconds * SECOND),
            representation: 0,
            rate_bps: RATES[0],
            bytes: 1_000_000,
            buffered_ns: 0,
            played_at: None,
        };
        let video = |window| Video {
            segment_ns: SECOND,
            segments: None,
            rates_bps: RATES.to_vec(),
            buffer_ns: 9 * SECOND,
            startup_ns: SECOND,
            rule: VideoRule::Throughput {
                window,
                safety: 1.0,
            },
        };
        // 1, then 8 Mbit/s; both together 1.8.
        let chunks = [came(80), came(8), came(1)];
        assert_eq!(choose(&video(1), &chunks, 0), 2);
        assert_eq!(choose(&video(2), &chunks, 0), 2);
        assert_eq!(choose(&video(3), &chunks, 0), 0);
    }

    #[test]
    fn the_line_of_bba_0_is_stepped() {
        let at =
            |last, buffered: u64| buffer(&RATES, last, buffered * SECOND, 10 * SECOND, 20 * SECOND);
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
