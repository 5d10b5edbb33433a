//! Where random losses hold each controller: rates over a long time, as multiples of what Reno gets on the best path alone.
//!
//! The expectations are the papers' fluid models (Wischik et al., NSDI 2011, sections 2 and 5; RFC 6356 section 3; Khalili et al., CoNEXT 2012).

use polypath_transport::path::CaState;
use polypath_transport::{MILLISECOND as MS, Nanos, SECOND};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Map, Value};

use crate::lab::{Lab, parameters};

/// A path: RTT and the probability that it loses a packet.
type Hop = (Nanos, f64);

const DURATION: Nanos = 2_000 * SECOND;

/// Packets a second on each path. A round that loses anything costs one reduction.
fn rates(name: &str, parameters: &Map<String, Value>, hops: &[Hop]) -> Vec<f64> {
    let rtt: Vec<Nanos> = hops.iter().map(|hop| hop.0).collect();
    let mut lab = Lab::new(name, parameters, &rtt);
    for path in &mut lab.paths {
        path.ssthresh = 2;
    }
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let mut next = vec![0; hops.len()];
    let mut packets = vec![0_u64; hops.len()];
    while let Some((me, start)) = next
        .iter()
        .copied()
        .enumerate()
        .min_by_key(|&(_, at)| at)
        .filter(|&(_, at)| at < DURATION)
    {
        let window = lab.paths[me].cwnd;
        lab.round(me, start, true);
        packets[me] += u64::from(window);
        if (0..window).any(|_| random.random_bool(hops[me].1)) {
            lab.lose(me, CaState::Recovery);
        }
        next[me] = start + hops[me].0;
    }
    let seconds = (DURATION / SECOND) as f64;
    packets
        .iter()
        .map(|&count| count as f64 / seconds)
        .collect()
}

fn alone(hop: Hop) -> f64 {
    rates("reno", &Map::new(), &[hop])[0]
}

/// Rates as multiples of what Reno gets on the best path.
fn relative(name: &str, parameters: &Map<String, Value>, hops: &[Hop]) -> Vec<f64> {
    let best = hops.iter().map(|&hop| alone(hop)).fold(0.0, f64::max);
    rates(name, parameters, hops)
        .iter()
        .map(|rate| rate / best)
        .collect()
}

fn assert_near(what: &str, measured: f64, expected: f64, bound: f64) {
    assert!(
        (measured - expected).abs() <= bound * expected,
        "{what}: {measured:.3}, expected {expected:.3}"
    );
}

const CLEAN: f64 = 0.0005;
const LOSSY: f64 = 0.002;

/// RFC 6356's first two goals: together as much as TCP gets on the best path, whatever the others are like.
#[test]
fn the_total_of_linked_windows_is_the_best_paths_tcp() {
    let hops = [
        vec![(50 * MS, CLEAN), (50 * MS, CLEAN)],
        vec![(50 * MS, CLEAN), (50 * MS, LOSSY)],
        vec![(20 * MS, LOSSY), (100 * MS, CLEAN)],
    ];
    for name in ["lia", "olia", "balia"] {
        for (index, hops) in hops.iter().enumerate() {
            let total: f64 = relative(name, &Map::new(), hops).iter().sum();
            assert_near(&format!("{name} on pair {index}"), total, 1.0, 0.15);
        }
    }
}

/// EWTCP with 1/n^2 is a TCP of 1/n on each path, so that two at one bottleneck are one TCP; with 1/sqrt(n) each gets n^(-1/4).
#[test]
fn ewtcp_is_a_part_of_tcp_on_each_path() {
    let hops = [(50 * MS, CLEAN), (50 * MS, LOSSY)];
    for (a, part) in [("1/n^2", 0.5), ("1/sqrt(n)", 0.841)] {
        let weighted = rates("ewtcp", &parameters("a", a), &hops);
        for (rate, hop) in weighted.iter().zip(hops) {
            assert_near(a, rate / alone(hop), part, 0.1);
        }
    }
}

/// Rates of the cleaner and the lossier of two paths of one RTT.
fn balance(name: &str) -> (f64, f64) {
    let rates = relative(name, &Map::new(), &[(50 * MS, CLEAN), (50 * MS, LOSSY)]);
    (rates[0], rates[1])
}

/// NSDI 2011 section 2: uncoupled windows go with 1/sqrt(p), semicoupled ones with 1/p, coupled ones leave the lossier path; OLIA and BALIA
/// balance better than LIA.
#[test]
fn the_more_coupled_the_less_goes_over_the_lossier_path() {
    let lossier_part = |name| {
        let (clean, lossy) = balance(name);
        lossy / (clean + lossy)
    };
    assert_near("reno", lossier_part("reno"), 1.0 / 3.0, 0.1);
    assert_near("semicoupled", lossier_part("semicoupled"), 0.2, 0.2);
    assert_near("lia", lossier_part("lia"), 0.2, 0.2);
    let coupled = lossier_part("coupled");
    assert!(coupled < 0.12, "coupled: {coupled}");
    for name in ["olia", "balia"] {
        let part = lossier_part(name);
        assert!(part < lossier_part("lia"), "{name}: {part}");
    }
}

/// NSDI 2011 section 2.3: where the cleaner path has the longer RTT, coupled windows go there and lose by it; compensation for the RTT is
/// what LIA adds.
#[test]
fn coupled_windows_follow_loss_whatever_the_rtt() {
    let hops = [(20 * MS, LOSSY), (100 * MS, CLEAN)];
    let total = |name: &str| -> f64 { relative(name, &Map::new(), &hops).iter().sum() };
    let coupled = relative("coupled", &Map::new(), &hops);
    assert!(coupled[1] > coupled[0], "{coupled:?}");
    assert!(total("coupled") < 0.7, "{coupled:?}");
    assert!(total("lia") > total("semicoupled") + 0.05);
}

/// NSDI 2011 section 2.4: with an increase of `a` for all windows together, their sum is that of a TCP times sqrt(a n) on n equal paths.
#[test]
fn semicoupled_windows_grow_with_the_root_of_a() {
    let hops = [(50 * MS, CLEAN); 2];
    for a in [0.5_f64, 2.0] {
        let chosen = Map::from_iter([("a".to_string(), a.into())]);
        let total: f64 = relative("semicoupled", &chosen, &hops).iter().sum();
        assert_near(&format!("a = {a}"), total, (2.0 * a).sqrt(), 0.12);
    }
}

/// Packets that 400 acknowledged ones add to the first of two paths, whose other one has this window and threshold.
fn gained(name: &str, state: CaState, window: u32, threshold: u32) -> u32 {
    let mut lab = Lab::new(name, &Map::new(), &[20 * MS, 20 * MS]);
    (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (10, 10);
    lab.paths[1].state = state;
    (lab.paths[1].cwnd, lab.paths[1].ssthresh) = (window, threshold);
    lab.round_of(0, 400);
    lab.paths[0].cwnd - 10
}

#[test]
fn a_window_that_is_being_reduced_counts_as_what_it_is_reduced_to() {
    for name in ["lia", "olia", "balia"] {
        let reduced = gained(name, CaState::Recovery, 40, 10);
        assert_eq!(reduced, gained(name, CaState::Open, 10, 10), "{name}");
        assert_ne!(reduced, gained(name, CaState::Open, 40, 10), "{name}");
        let below = gained(name, CaState::Recovery, 5, 10);
        assert_eq!(below, gained(name, CaState::Open, 5, 10), "{name}");
    }
}
