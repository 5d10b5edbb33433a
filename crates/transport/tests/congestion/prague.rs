//! Prague, with figures worked out from draft-briscoe-iccrg-prague-congestion-control-04 and its reference implementation.

use polypath_transport::congestion::{Ack, RateSample};
use polypath_transport::path::{CaState, Member};
use polypath_transport::{Codepoint, Config, MILLISECOND as MS, Nanos, SECOND};
use serde_json::{Map, Value};

use crate::common::{Fate, Link, Pair, Side, mptcp, tcp};
use crate::lab::{Lab, MSS};

fn lab(rtt: Nanos, transition: u32) -> Lab {
    let parameters: Map<String, Value> = [("rtt_transition".to_string(), transition.into())]
        .into_iter()
        .collect();
    let mut lab = Lab::new("prague", &parameters, &[rtt]);
    lab.paths[0].srtt = rtt;
    lab.controllers[0].on_established(&mut Member::new(&mut lab.paths, 0));
    lab
}

/// A round trip: as many packets as the window has arrive one by one, the first ones marked.
fn round(lab: &mut Lab, marked: u32) {
    let packets = lab.paths[0].cwnd;
    let begin = lab.sent[0];
    lab.sent[0] += u64::from(packets);
    let rtt = lab.rtt[0];
    lab.now += rtt;
    for number in 1..=packets {
        let ack = Ack {
            now: lab.now,
            packets: 1,
            marked: u32::from(number <= marked),
            rtt: Some(rtt),
            cwnd_limited: true,
            next_seq: lab.sent[0] + u64::from(number),
            una: begin + u64::from(number),
        };
        let mut member = Member::new(&mut lab.paths, 0);
        let controller = &mut lab.controllers[0];
        controller.on_sample(&mut member, &ack);
        if number == 1 && marked > 0 {
            controller.on_state(&mut member, CaState::Open);
            controller.on_state(&mut member, CaState::Cwr);
        }
        controller.control(&mut member, &ack, &RateSample::default());
    }
}

fn variable(lab: &Lab, name: &str) -> f64 {
    let found = lab.controllers[0].observe();
    found.into_iter().find(|it| it.0 == name).unwrap().1
}

/// The first mark ends slow start at half the window; alpha begins at nothing, and then averages with 1/16.
#[test]
fn the_first_mark_halves_and_alpha_averages() {
    let mut lab = lab(50 * MS, 4);
    for expected in [20, 40, 80] {
        round(&mut lab, 0);
        assert_eq!(lab.paths[0].cwnd, expected);
    }
    assert_eq!(variable(&lab, "alpha"), 0.0);
    round(&mut lab, 1);
    // The window goes there by a packet for each acknowledgement, and grows meanwhile.
    let window = variable(&lab, "window");
    assert!((40.0..42.0).contains(&window), "{window}");
    for _ in 0..400 {
        let quarter = lab.paths[0].cwnd / 4;
        round(&mut lab, quarter);
    }
    let alpha = variable(&lab, "alpha");
    assert!((0.15..0.3).contains(&alpha), "{alpha}");
}

/// A packet in each virtual round trip, at the rate of flows that have it: so much a round trip as the square of the ratio.
#[test]
fn growth_does_not_depend_on_short_round_trips() {
    for (rtt, transition, growth) in [
        (100 * MS, 4, 1.0),
        (25 * MS, 4, 1.0),
        (5 * MS, 4, 1.0 / 25.0),
        (5 * MS, 1_000_000, 1.0),
    ] {
        let mut lab = lab(rtt, transition);
        lab.paths[0].cwnd = 40;
        lab.paths[0].ssthresh = 40;
        lab.controllers[0].on_established(&mut Member::new(&mut lab.paths, 0));
        for _ in 0..10 {
            round(&mut lab, 0);
        }
        let before = variable(&lab, "window");
        for _ in 0..5 {
            round(&mut lab, 0);
        }
        let grown = (variable(&lab, "window") - before) / 5.0;
        assert!((grown / growth - 1.0).abs() < 0.03, "{rtt}: {grown}");
    }
}

/// Pacing is at the window's rate, and twice that in the beginning.
#[test]
fn the_rate_is_that_of_the_window() {
    let mut lab = lab(50 * MS, 4);
    round(&mut lab, 0);
    let rate = |packets: u32| u64::from(packets * MSS) * SECOND / (50 * MS);
    assert_eq!(lab.paths[0].pacing_rate, 2 * rate(20));
    lab.paths[0].ssthresh = 20;
    round(&mut lab, 0);
    // What is not yet a whole packet does not count.
    assert_eq!(lab.paths[0].pacing_rate, rate(20));
}

/// RFC 9331 section 4.3: a loss halves, and nothing grows before it is repaired.
#[test]
fn a_loss_halves() {
    let mut lab = lab(50 * MS, 4);
    lab.paths[0].cwnd = 40;
    lab.paths[0].ssthresh = 40;
    lab.controllers[0].on_established(&mut Member::new(&mut lab.paths, 0));
    lab.controllers[0].on_state(&mut Member::new(&mut lab.paths, 0), CaState::Recovery);
    round(&mut lab, 0);
    round(&mut lab, 0);
    assert_eq!(lab.paths[0].cwnd, 20);
    lab.controllers[0].on_state(&mut Member::new(&mut lab.paths, 0), CaState::Open);
    round(&mut lab, 0);
    assert_eq!(lab.paths[0].cwnd, 21);
}

fn config(congestion: &str, ecn: bool, accurate_ecn: bool) -> Config {
    Config {
        congestion: congestion.into(),
        ecn,
        accurate_ecn,
        ..tcp()
    }
}

fn between(client: &Config, server: &Config, marked: impl Fn(usize) -> bool + 'static) -> Pair {
    let link = Link::limited(10 * MS, 10_000_000, 100 * MS);
    let mut pair = Pair::with(client, server, vec![link], 1, 7);
    let mut count = 0;
    pair.hook(move |packet| {
        if packet.from == Side::Client && packet.carries_data() {
            count += 1;
            if marked(count) {
                return Fate::Mark;
            }
        }
        Fate::Pass
    });
    pair.transfer(500_000, 60 * SECOND);
    pair
}

/// Every segment of both ends is ECT(1), SYNs and acknowledgements included (RFC 9331 section 4.1, `TCP_CONG_WANTS_ECT_1`).
#[test]
fn all_segments_are_ect1() {
    let prague = config("prague", false, false);
    let pair = between(&prague, &prague, |at| at % 10 == 0);
    for side in [Side::Client, Side::Server] {
        assert!(pair.sent(side).all(|it| it.ecn == Codepoint::Ect1));
    }
    let variables = pair.client.connection().subflows()[0].socket().observe();
    let alpha = variables.iter().find(|it| it.0 == "alpha");
    assert!(
        alpha.is_some_and(|it| it.1 > 0.02 && it.1 < 0.3),
        "{variables:?}"
    );
}

/// Without accurate feedback it is Reno without ECN (RFC 9331 section 4.2, `TCP_CONG_NO_FALLBACK_RFC3168`).
#[test]
fn a_peer_without_accurate_feedback_gets_reno() {
    let prague = config("prague", false, false);
    for server in [config("reno", false, false), config("reno", true, false)] {
        let pair = between(&prague, &server, |_| false);
        let connection = pair.client.connection();
        assert!(connection.subflows()[0].socket().observe().is_empty());
        assert!(
            pair.data(Side::Client)
                .all(|it| it.ecn == Codepoint::NotEct)
        );
    }
    let pair = between(&prague, &config("reno", false, true), |_| false);
    assert!(pair.data(Side::Client).all(|it| it.ecn == Codepoint::Ect1));
}

/// A scheduler that looks at rates has one from the beginning.
#[test]
fn reno_in_its_place_has_a_rate() {
    let client = Config {
        congestion: "prague".into(),
        scheduler: "linux".into(),
        ..mptcp()
    };
    between(&client, &mptcp(), |_| false);
}
