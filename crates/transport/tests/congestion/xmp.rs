//! XMP: what marks take and what paths grow by, with figures worked out from the paper's algorithm 1.

use polypath_transport::path::{CaState, Member};
use polypath_transport::{Config, MILLISECOND as MS, Nanos, SECOND};
use serde_json::Map;

use crate::common::{Fate, Link, Pair, Side, tcp};
use crate::lab::Lab;

fn lab(windows: &[u32], rtt: &[Nanos]) -> Lab {
    let mut lab = Lab::new("xmp", &Map::new(), rtt);
    for (path, &window) in lab.paths.iter_mut().zip(windows) {
        path.cwnd = window;
        path.ssthresh = window;
    }
    lab
}

/// What `rounds` round trips add to the window of a path, each.
fn growth(lab: &mut Lab, me: usize, rounds: u32) -> f64 {
    // The first acknowledgement ends no round.
    lab.round_of(me, 1);
    let before = lab.paths[me].cwnd;
    for _ in 0..rounds {
        lab.round_of(me, before);
    }
    f64::from(lab.paths[me].cwnd - before) / f64::from(rounds)
}

/// BOS: a packet each round trip on one path.
#[test]
fn one_path_grows_by_a_packet() {
    let grown = growth(&mut lab(&[20], &[10 * MS]), 0, 8);
    assert!((grown - 1.0).abs() < 0.13, "{grown}");
}

/// TraSh: each path has its part of a packet; one of twice the RTT has its window over what all would have at the shortest.
#[test]
fn paths_share_the_growth() {
    let grown = growth(&mut lab(&[20, 20], &[10 * MS, 10 * MS]), 0, 20);
    assert!((0.4..0.75).contains(&grown), "{grown}");
    // 20 / (20 + 20 / 2) and 20 / (20 + 10) again: the sum of rates at the shortest RTT is 30 packets.
    let grown = growth(&mut lab(&[20, 20], &[10 * MS, 20 * MS]), 1, 20);
    assert!((0.55..0.9).contains(&grown), "{grown}");
}

/// A reduction begins at a mark.
fn mark(lab: &mut Lab) {
    let mut member = Member::new(&mut lab.paths, 0);
    member.ssthresh = lab.controllers[0].ssthresh(&mut member);
    lab.controllers[0].on_state(&mut member, CaState::Cwr);
}

/// BOS: a quarter goes at a mark, one packet at least, and two stay.
#[test]
fn a_mark_takes_a_quarter() {
    for (window, left) in [(40, 30), (10, 8), (3, 2), (2, 2)] {
        let mut lab = lab(&[window], &[10 * MS]);
        mark(&mut lab);
        assert_eq!(lab.paths[0].ssthresh, left);
    }
    // In slow start it ends that, and takes nothing.
    let mut lab = lab(&[40], &[10 * MS]);
    lab.paths[0].ssthresh = u32::MAX;
    mark(&mut lab);
    assert_eq!(lab.paths[0].ssthresh, 40);
}

/// A loss halves, as of any TCP.
#[test]
fn a_loss_halves() {
    let mut lab = lab(&[40], &[10 * MS]);
    lab.lose(0, CaState::Recovery);
    assert_eq!(lab.paths[0].cwnd, 20);
}

/// Marks at ten packets keep the queue there; without ECN it is Reno.
#[test]
fn it_asks_for_ecn() {
    let config = |congestion: &str| Config {
        congestion: congestion.into(),
        ..tcp()
    };
    for (server, marked) in [("xmp", true), ("reno", false)] {
        let mut server = config(server);
        server.ecn = marked;
        let link = Link::limited(MS, 100_000_000, 100 * MS);
        let mut pair = Pair::with(&config("xmp"), &server, vec![link], 1, 7);
        let mut count = 0;
        pair.hook(move |packet| {
            count += usize::from(packet.carries_data());
            match packet.carries_data() && count % 40 == 0 && marked {
                true => Fate::Mark,
                false => Fate::Pass,
            }
        });
        pair.transfer(2_000_000, 60 * SECOND);
        let connection = pair.client.connection();
        let observed = connection.subflows()[0].socket().observe();
        assert_eq!(observed.is_empty(), !marked);
        let cwnd = connection.paths()[0].cwnd;
        assert!(!marked || cwnd < 60, "{cwnd}");
        assert!(pair.data(Side::Client).count() > 1000);
    }
}
