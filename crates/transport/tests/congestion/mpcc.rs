//! MPCC over Multipath TCP and two links, against Vivace on each path.

use polypath_transport::{Config, MILLISECOND as MS, Nanos, SECOND};

use crate::common::{Link, Pair, Side, mptcp, tcp};

const RATE: u64 = 10_000_000;

fn two(congestion: &str, queue: Nanos) -> Pair {
    let mut config = Config {
        congestion: congestion.into(),
        ..mptcp()
    };
    config.path_manager.name = "fullmesh".into();
    let links = vec![
        Link::limited(20 * MS, RATE, queue),
        Link::limited(20 * MS, RATE, queue),
    ];
    let mut pair = Pair::with(&config, &config, links, 1, 7);
    pair.write(Side::Client, 1 << 40);
    pair
}

fn variable(pair: &Pair, path: usize, name: &str) -> f64 {
    let connection = pair.client.connection();
    let observed = connection.subflows()[path].socket().observe();
    let found = observed.iter().find(|(known, _)| *known == name);
    found.map_or(0.0, |&(_, value)| value)
}

/// Each path takes what the other one published, which is the rate that it last probed around.
#[test]
fn paths_publish_their_rates() {
    let mut pair = two("mpcc", 200 * MS);
    let mut told = 0;
    for step in 1..=500 {
        pair.run_until(2 * SECOND + step * 10 * MS);
        assert_eq!(pair.client.connection().paths().len(), 2);
        for (path, other) in [(0, 1), (1, 0)] {
            let published = pair.client.connection().paths()[other].coupled as f64 * 8e-6;
            let taken = variable(&pair, path, "others_mbit_s");
            told += i32::from((published - taken).abs() < 0.01);
        }
    }
    assert!(told > 100, "{told}");
    let mut pair = two("vivace", 200 * MS);
    pair.run_until(3 * SECOND);
    assert_eq!(variable(&pair, 0, "others_mbit_s"), 0.0);
}

/// The paper's aim: both links are full.
#[test]
fn both_links_are_used() {
    let mut pair = two("mpcc", 200 * MS);
    pair.run_until(5 * SECOND);
    let acked = |pair: &Pair| -> Vec<u64> {
        (pair.client.connection().paths().iter())
            .map(|path| path.acked)
            .collect()
    };
    let before = acked(&pair);
    pair.run_until(15 * SECOND);
    for (after, before) in acked(&pair).into_iter().zip(before) {
        let rate = (after - before) as f64 * 8.0 / 10.0 / RATE as f64;
        assert!(rate > 0.8, "{rate}");
    }
}

/// Over one path nothing is coupled.
#[test]
fn one_path_has_no_others() {
    let config = Config {
        congestion: "mpcc".into(),
        ..tcp()
    };
    let link = Link::limited(20 * MS, RATE, 200 * MS);
    let mut pair = Pair::with(&config, &config, vec![link], 1, 7);
    pair.write(Side::Client, 1 << 40);
    pair.run_until(4 * SECOND);
    let before = pair.client.connection().paths()[0].acked;
    pair.run_until(14 * SECOND);
    let acked = pair.client.connection().paths()[0].acked - before;
    assert_eq!(variable(&pair, 0, "others_mbit_s"), 0.0);
    assert!(acked as f64 * 0.8 > 0.85 * RATE as f64, "{acked}");
}
