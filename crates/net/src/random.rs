//! Named random streams, and draws that give the same value on every machine.

use rand::RngCore;
use rand_pcg::Pcg64Mcg;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// The random stream of one purpose of one component, for example `stream(seed, "channel", 3, "loss")`.
///
/// Streams of different names are independent, so that a new component does not shift another's draws. The name is hashed
/// with FNV-1a and spread by SplitMix64 (Steele, Lea and Flood 2014), both fixed for good.
pub fn stream(seed: u64, component: &str, index: u64, purpose: &str) -> Pcg64Mcg {
    let separator = [0xff];
    let name = component
        .bytes()
        .chain(separator)
        .chain(index.to_le_bytes())
        .chain(purpose.bytes());
    let hash = name.fold(FNV_OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    });
    let high = mix(hash ^ mix(seed));
    let low = mix(high ^ hash);
    Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low))
}

/// One step of SplitMix64: a good 64-bit mixing function.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Uniform in [0, 1), with 53 random bits.
pub fn uniform(rng: &mut impl RngCore) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// True with the given probability. Draws once, whatever the probability.
pub fn chance(rng: &mut impl RngCore, probability: f64) -> bool {
    uniform(rng) < probability
}

/// Standard normal variate, by inversion of one uniform draw.
///
/// The inverse of the distribution function is Acklam's rational approximation (relative error below 1.2e-9). Only operations that
/// IEEE 754 defines exactly are used, because the logarithm of the system's library differs between machines.
pub fn normal(rng: &mut impl RngCore) -> f64 {
    let half_step = 0.5 / (1u64 << 53) as f64;
    normal_quantile(uniform(rng) + half_step)
}

fn normal_quantile(p: f64) -> f64 {
    const TAIL: f64 = 0.02425;
    const A: [f64; 6] = [
        -3.969683028665376e+01,
        2.209460984245205e+02,
        -2.759285104469687e+02,
        1.383_577_518_672_69e2,
        -3.066479806614716e+01,
        2.506628277459239e+00,
    ];
    const B: [f64; 6] = [
        -5.447609879822406e+01,
        1.615858368580409e+02,
        -1.556989798598866e+02,
        6.680131188771972e+01,
        -1.328068155288572e+01,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e+00,
        -2.549732539343734e+00,
        4.374664141464968e+00,
        2.938163982698783e+00,
    ];
    const D: [f64; 5] = [
        7.784695709041462e-03,
        3.224671290700398e-01,
        2.445134137142996e+00,
        3.754408661907416e+00,
        1.0,
    ];
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = (-2.0 * ln(p)).sqrt();
        horner(&C, q) / horner(&D, q)
    };
    if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        q * horner(&A, q * q) / horner(&B, q * q)
    }
}

/// Time until something that happens after `mean` on average, exponentially distributed.
pub(crate) fn exponential(rng: &mut impl RngCore, mean: u64) -> u64 {
    let half_step = 0.5 / (1u64 << 53) as f64;
    // A float beyond the range converts to the nearest end of it.
    (-ln(uniform(rng) + half_step) * mean as f64) as u64
}

/// Natural logarithm of a positive normal number, by the series of the inverse hyperbolic tangent.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..12)
        .rev()
        .fold(0.0, |sum, k| sum * s * s + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

/// `e^-x` of a number that is not negative.
pub(crate) fn decay(x: f64) -> f64 {
    const TERMS: u32 = 16;
    if x > 700.0 {
        return 0.0;
    }
    let halvings = (x / std::f64::consts::LN_2).round();
    let rest = x - halvings * std::f64::consts::LN_2;
    let series = (1..=TERMS)
        .rev()
        .fold(1.0, |sum, k| 1.0 - sum * rest / f64::from(k));
    series * f64::from_bits((1023 - halvings as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_stable_and_differ_by_every_part_of_their_name() {
        let first = |seed, component: &str, index, purpose: &str| {
            stream(seed, component, index, purpose).next_u64()
        };
        let base = first(1, "channel", 0, "loss");
        assert_eq!(base, first(1, "channel", 0, "loss"));
        for other in [
            first(2, "channel", 0, "loss"),
            first(1, "node", 0, "loss"),
            first(1, "channel", 1, "loss"),
            first(1, "channel", 0, "jitter"),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn quantiles_of_the_normal_distribution() {
        for (p, z) in [
            (0.5, 0.0),
            (0.975, 1.959963984540054),
            (0.01, -2.326347874040841),
            (0.999, 3.090232306167813),
            (1e-6, -4.753424308822899),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}");
        }
    }

    #[test]
    fn logarithm_agrees_with_the_library() {
        for x in [1e-17, 0.3, 0.7, 1.0, 1.5, 2.0, 12345.678] {
            assert!((ln(x) - x.ln()).abs() <= 1e-13 * x.ln().abs().max(1.0));
        }
    }

    #[test]
    fn decay_agrees_with_the_library() {
        for x in [0.0, 1e-9, 0.3, 0.35, 1.0, 20.0, 699.0] {
            assert!((decay(x) - (-x).exp()).abs() <= 1e-13 * (-x).exp(), "{x}");
        }
        assert_eq!(decay(1e12), 0.0);
    }

    #[test]
    fn exponential_times_have_their_moments() {
        let mut rng = stream(7, "test", 0, "exponential");
        let n = 100_000;
        let draws: Vec<f64> = (0..n)
            .map(|_| exponential(&mut rng, 1_000_000) as f64 / 1e6)
            .collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
        assert!((variance - 1.0).abs() < 0.04, "{variance}");
    }

    #[test]
    fn normal_variates_have_their_moments() {
        let mut rng = stream(7, "test", 0, "normal");
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| normal(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.015, "{mean}");
        assert!((variance - 1.0).abs() < 0.025, "{variance}");
    }
}
