//! DCTCP, with figures worked out from RFC 8257 and `net/ipv4/tcp_dctcp.c`.

use polypath_transport::congestion::Ack;
use polypath_transport::path::{CaState, Member};
use polypath_transport::{Codepoint, Config, MILLISECOND as MS, SECOND};
use polypath_wire::tcp::Flags;
use serde_json::{Map, Value};

use crate::common::pair::Packet;
use crate::common::{Fate, Link, Pair, Side, tcp};
use crate::lab::Lab;

fn lab(parameters: &[(&str, u32)]) -> Lab {
    let parameters: Map<String, Value> = (parameters.iter())
        .map(|&(name, value)| (name.to_string(), value.into()))
        .collect();
    Lab::new("dctcp", &parameters, &[10 * MS])
}

/// So many packets arrive, of which the first ones are marked, while as many of the next leave.
fn window(lab: &mut Lab, packets: u32, marked: u32) -> f64 {
    let begin = lab.sent[0];
    lab.sent[0] += u64::from(packets);
    for number in 1..=packets {
        let ack = Ack {
            now: lab.now,
            packets: 1,
            marked: u32::from(number <= marked),
            rtt: Some(10 * MS),
            cwnd_limited: true,
            next_seq: lab.sent[0] + u64::from(number),
            una: begin + u64::from(number),
        };
        lab.controllers[0].on_sample(&mut Member::new(&mut lab.paths, 0), &ack);
    }
    lab.controllers[0].observe()[0].1 * 1024.0
}

/// RFC 8257 section 3.3: alpha = (1 - g) alpha + g M, with g = 1/16. The first acknowledgement is a window by itself.
#[test]
fn alpha_is_an_average_of_the_marked_part() {
    let mut lab = lab(&[]);
    // The next ones end with the first packet of these.
    assert_eq!(window(&mut lab, 8, 0), 1024.0 - 64.0);
    assert_eq!(window(&mut lab, 8, 2), 960.0 - 60.0 + 8.0);
    let mut alphas = (0..100).map(|_| window(&mut lab, 8, 2));
    assert_eq!(alphas.next(), Some(908.0 - 56.0 + 16.0));
    // A quarter is 256; whole sixteenths of up to 271 are 16, which are added again.
    assert_eq!(alphas.last(), Some(271.0));
    // Where a sixteenth is nothing, all of it goes.
    assert_eq!((0..100).map(|_| window(&mut lab, 8, 0)).last(), Some(0.0));
}

#[test]
fn the_weight_and_the_first_alpha_are_settings() {
    let mut lab = lab(&[("shift_g", 1), ("alpha_on_init", 512)]);
    assert_eq!(window(&mut lab, 1, 0), 256.0);
    assert_eq!(window(&mut lab, 1, 1), 128.0 + 512.0);
}

/// RFC 8257 section 3.3, step 9, and section 3.4: a mark takes alpha/2 of the window, a loss half of it, a timeout as well.
#[test]
fn marks_and_losses_take_different_parts() {
    let left = |state: Option<CaState>| {
        let mut lab = lab(&[("alpha_on_init", 256)]);
        lab.paths[0].cwnd = 100;
        let controller = &mut lab.controllers[0];
        let mut path = Member::new(&mut lab.paths, 0);
        path.ssthresh = controller.ssthresh(&mut path);
        match state {
            Some(CaState::Loss) => controller.on_timeout(&mut path),
            Some(state) => controller.on_state(&mut path, state),
            None => {}
        }
        path.cwnd = 10;
        assert_eq!(controller.undo(&path, 0), 100);
        path.ssthresh
    };
    assert_eq!(left(None), 88);
    assert_eq!(left(Some(CaState::Cwr)), 88);
    assert_eq!(left(Some(CaState::Recovery)), 50);
    assert_eq!(left(Some(CaState::Loss)), 50);
}

fn config(congestion: &str, ecn: bool) -> Config {
    Config {
        congestion: congestion.into(),
        ecn,
        ..tcp()
    }
}

/// A transfer in which the packets of data that `marks` chooses are marked.
fn transfer(client: &Config, server: &Config, marks: fn(usize) -> bool) -> Pair {
    let link = Link::limited(10 * MS, 20_000_000, SECOND);
    let mut pair = Pair::with(client, server, vec![link], 1, 7);
    let mut seen = 0;
    pair.hook(move |packet| {
        if packet.from == Side::Server || !packet.carries_data() {
            return Fate::Pass;
        }
        seen += 1;
        if marks(seen) { Fate::Mark } else { Fate::Pass }
    });
    pair.write(Side::Client, 10_000_000);
    pair.run_until(10 * SECOND);
    pair
}

/// Bytes that acknowledgements with and without an echo acknowledge in order.
fn echoed(pair: &Pair) -> [u64; 2] {
    let mut bytes = [0, 0];
    let mut last = None;
    for packet in pair.sent(Side::Server) {
        let ack = packet.segment.ack;
        if let Some(last) = last {
            let echo = packet.segment.flags.contains(Flags::ECE);
            bytes[usize::from(echo)] += u64::from(ack.wrapping_sub(last));
        }
        last = Some(ack);
    }
    bytes
}

/// RFC 8257 section 3.2: with ACKs for every second packet the echo still tells of each byte whether it was marked.
#[test]
fn the_echo_is_of_each_packet() {
    let dctcp = config("dctcp", false);
    for (marks, part) in [
        ((|at| at % 3 == 0) as fn(usize) -> bool, 1.0 / 3.0),
        (|at| at % 10 < 5, 0.5),
        (|_| false, 0.0),
    ] {
        let pair = transfer(&dctcp, &dctcp, marks);
        let [clear, marked] = echoed(&pair);
        let measured = marked as f64 / (clear + marked) as f64;
        assert!((measured - part).abs() < 0.005, "{measured} of {part}");
    }
}

/// Without marks as many ACKs leave as of any TCP, but for those of segments that tell of a reduction (CWR).
#[test]
fn an_echo_that_stays_costs_no_acks() {
    let count = |config: &Config| {
        let pair = transfer(config, config, |_| false);
        let told = |packet: &&Packet| packet.segment.flags.contains(Flags::CWR);
        let told = pair.data(Side::Client).filter(told).count();
        (pair.sent(Side::Server).count(), told)
    };
    let (acks, told) = count(&config("dctcp", false));
    let (usual, _) = count(&config("reno", false));
    assert_eq!(acks, usual + told);
}

/// One packet of twenty: of 64 * 1/20 whole numbers leave 3, and alpha stays where a sixteenth of it is 3.
#[test]
fn alpha_comes_to_what_is_marked() {
    let dctcp = config("dctcp", false);
    let pair = transfer(&dctcp, &dctcp, |at| at % 20 == 0);
    let connection = pair.client.connection();
    let (name, alpha) = connection.subflows()[0].socket().observe()[0];
    assert_eq!(name, "alpha");
    assert!((44.0..64.0).contains(&(alpha * 1024.0)), "{alpha}");
}

/// Linux `tcp_ecn_send`, `tcp_ecn_send_syn`: every segment of either side is ECN-capable, ACKs and SYNs included.
#[test]
fn every_segment_is_ecn_capable() {
    let dctcp = config("dctcp", false);
    let pair = transfer(&dctcp, &dctcp, |at| at == 20);
    for side in [Side::Client, Side::Server] {
        let capable = |packet: &Packet| packet.ecn == Codepoint::Ect0;
        assert!(pair.sent(side).all(capable), "{side:?}");
        assert!(pair.sent(side).count() > 2);
    }
}

/// Linux `dctcp_init`: a peer without ECN gets Reno, and nothing is sent as ECN-capable; a peer with classic ECN gets DCTCP.
#[test]
fn a_peer_without_ecn_gets_reno() {
    let dctcp = config("dctcp", false);
    let pair = transfer(&dctcp, &config("reno", false), |_| false);
    let connection = pair.client.connection();
    assert!(connection.subflows()[0].socket().observe().is_empty());
    let mut sent = pair.data(Side::Client);
    assert!(sent.all(|packet| packet.ecn == Codepoint::NotEct));
    let pair = transfer(&dctcp, &config("reno", true), |_| false);
    let variables = pair.client.connection().subflows()[0].socket().observe();
    assert_eq!(variables[0].0, "alpha");
}
