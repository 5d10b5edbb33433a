//! CAIA Delay-Gradient, with figures worked out from `net/ipv4/tcp_cdg.c`.

use polypath_transport::path::{CaState, Member};
use polypath_transport::{Config, MICROSECOND, MILLISECOND as MS, Mib, Nanos, SECOND};
use serde_json::{Map, Value};

use crate::common::{Link, Pair, Side, tcp};
use crate::lab::Lab;

fn lab(parameters: &[(&str, Value)], seed: u64) -> Lab {
    let parameters: Map<String, Value> = (parameters.iter())
        .map(|(name, value)| (name.to_string(), value.clone()))
        .collect();
    let mut lab = Lab::new("cdg", &parameters, &[50 * MS]);
    lab.controllers[0].seed(seed);
    (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (100, 5);
    lab
}

/// A round trip that takes so many microseconds more. Whether its first acknowledgement, which ends the last one and has the new RTT, asked
/// for a reduction.
fn step(lab: &mut Lab, microseconds: i64) -> bool {
    lab.paths[0].state = CaState::Open;
    lab.rtt[0] = (lab.rtt[0] as i64 + microseconds * MICROSECOND as i64) as Nanos;
    lab.round(0, lab.now, false);
    lab.paths[0].state == CaState::Cwr
}

/// `tcp_cdg_backoff`: 1 - exp(-42 g / 1e6) for g microseconds. The first gradient stands for all eight of the window: 500 microseconds
/// count as 4,000, a probability of 0.155. A window of one has the gradient itself: 0.0208.
#[test]
fn a_rising_rtt_backs_off_at_random() {
    for (window, expected) in [(8, 155), (1, 21)] {
        let asked = (0..1000)
            .filter(|&seed| {
                let mut lab = lab(&[("window", window.into())], seed);
                step(&mut lab, 0);
                step(&mut lab, 500)
            })
            .count();
        assert!(asked.abs_diff(expected) <= 25, "{window}: {asked}");
    }
    let mut lab = lab(&[], 1);
    assert!((0..100).all(|_| !step(&mut lab, 0)));
}

/// Makes every gradient back off, for all practical purposes.
const CERTAIN: (&str, u32) = ("backoff_factor", 1_000_000);

/// `tcp_cdg_ssthresh`: a backoff leaves 724/1024. A loss after it takes half of the shadow window, which was not backed off, and half of
/// what is left where there is none.
#[test]
fn the_shadow_window_stays() {
    let left = |shadow: bool| {
        let factor = (CERTAIN.0, CERTAIN.1.into());
        let mut lab = lab(&[factor, ("use_shadow", shadow.into())], 1);
        step(&mut lab, 0);
        assert!(step(&mut lab, 10_000));
        let window = lab.paths[0].cwnd;
        lab.lose(0, CaState::Cwr);
        let backed_off = lab.paths[0].cwnd;
        lab.lose(0, CaState::Recovery);
        (window, backed_off, lab.paths[0].cwnd)
    };
    assert_eq!(left(true), (100, 70, 50));
    assert_eq!(left(false), (100, 70, 35));
}

/// `use_ineff`: after five backoffs without a falling RTT there are no more, until it falls.
#[test]
fn backoffs_without_effect_end() {
    let mut lab = lab(&[(CERTAIN.0, CERTAIN.1.into())], 1);
    step(&mut lab, 0);
    assert!((0..5).all(|_| step(&mut lab, 1_000)));
    assert!((0..5).all(|_| !step(&mut lab, 1_000)));
    step(&mut lab, -40_000);
    assert!(step(&mut lab, 80_000));
}

/// `use_tolerance`: a loss costs nothing while least and most RTT rise together, since the queue is not full.
#[test]
fn a_loss_without_a_full_queue_is_tolerated() {
    let left = |tolerance: bool| {
        let none = ("backoff_factor", 0.into());
        let mut lab = lab(&[none, ("use_tolerance", tolerance.into())], 1);
        step(&mut lab, 0);
        (0..3).for_each(|_| assert!(!step(&mut lab, 1_000)));
        lab.controllers[0].ssthresh(&mut Member::new(&mut lab.paths, 0))
    };
    assert_eq!(left(false), 50);
    assert_eq!(left(true), 100);
}

/// Over 10 Mbps and 40 ms with a queue of 400 ms, Reno fills the queue until it overflows. CDG reduces its window without a loss.
#[test]
fn the_queue_stays_short_without_losses() {
    let run = |congestion: &str| {
        let config = Config {
            congestion: congestion.into(),
            ..tcp()
        };
        let link = Link::limited(20 * MS, 10_000_000, 400 * MS);
        let mut pair = Pair::with(&config, &config, vec![link], 1, 7);
        pair.write(Side::Client, 1 << 40);
        pair.run_until(30 * SECOND);
        let path = &pair.client.connection().paths()[0];
        let rate = path.acked as f64 * 8.0 / 30.0 / 1e6;
        let again = pair.counter(Side::Client, Mib::TcpRetransSegs);
        (path.srtt / MS, again, rate)
    };
    let (reno, again, _) = run("reno");
    assert!(reno > 200 && again > 0, "{reno} ms, {again} again");
    let (cdg, again, rate) = run("cdg");
    assert!(cdg < 80 && again == 0, "{cdg} ms, {again} again");
    assert!(rate > 8.0, "{rate}");
}
