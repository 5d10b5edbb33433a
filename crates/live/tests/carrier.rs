//! The simulated network with real packets. Packets come out as they went in, at the time and in the state that the
//! plan defines.

use polypath_lab::plan::Plan;
use polypath_live::{Carrier, Delivery, Port};
use polypath_wire::ip::{self, v4};
use serde_json::json;

const MILLISECOND: u64 = 1_000_000;
const ETHERNET: usize = 14;

/// Two hosts, a router between them: 10 Mbps and 10 ms, then 5 ms.
fn plan(first: serde_json::Value) -> Plan {
    let host = |name: &str, address: &str| {
        let interfaces = json!([{ "name": "eth0", "addresses": [address] }]);
        json!({ "name": name, "kind": "host", "interfaces": interfaces })
    };
    let mut forward = json!({ "rate_bps": 10_000_000, "delay_ns": 10 * MILLISECOND });
    forward
        .as_object_mut()
        .unwrap()
        .append(first.clone().as_object_mut().unwrap());
    let end = |node: usize, interface: usize| json!({ "node": node, "interface": interface });
    let link = |name: &str, a, b, forward| json!({ "name": name, "a": a, "b": b, "forward": forward, "backward": {} });
    serde_json::from_value(json!({
        "version": 1,
        "name": "carrier",
        "seed": 1,
        "duration_ns": 1_000_000_000,
        "nodes": [
            host("client", "10.0.0.1"),
            { "name": "r", "kind": "router", "interfaces": [{ "name": "a" }, { "name": "b" }] },
            host("server", "10.0.1.1"),
        ],
        "links": [
            link("first", end(0, 0), end(1, 0), forward),
            link("second", end(1, 1), end(2, 0), json!({ "delay_ns": 5 * MILLISECOND })),
        ],
        "applications": [],
        "events": [{ "at_ns": 500 * MILLISECOND, "action": { "kind": "link", "link": 0, "direction": "both", "up": false } }],
    }))
    .unwrap()
}

fn carrier(first: serde_json::Value) -> Carrier {
    let port = |node, mac| Port {
        node,
        interface: 0,
        mac: [2, 0, 0, 0, 0, mac],
    };
    Carrier::new(&plan(first), vec![port(0, 1), port(2, 2)]).unwrap()
}

/// An Ethernet frame with an IPv4 packet of 1,000 bytes, protocol 253 (RFC 3692).
fn frame(from: [u8; 4], to: [u8; 4], ttl: u8, ecn: u8) -> Vec<u8> {
    let header = v4::Header {
        src: from.into(),
        dst: to.into(),
        protocol: 253,
        ttl,
        dscp: 0,
        ecn,
        identification: 7,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
    };
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00]);
    v4::emit(&header, 980, &mut frame).unwrap();
    frame.extend((0..980).map(|byte| byte as u8));
    frame
}

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 1, 1];

fn arrivals(carrier: &mut Carrier, until: u64) -> Vec<Delivery> {
    carrier.step(until);
    carrier.deliveries()
}

fn header(delivery: &Delivery) -> v4::Header {
    match ip::parse(&delivery.frame[ETHERNET..]).expect("a right header checksum") {
        (ip::Header::V4(header), _) => header,
        (ip::Header::V6(_), _) => panic!("IPv4 became IPv6"),
    }
}

#[test]
fn a_packet_arrives_when_the_links_say_with_a_hop_less_to_live() {
    let mut carrier = carrier(json!({}));
    carrier.step(3 * MILLISECOND);
    carrier.take(0, &frame(CLIENT, SERVER, 64, 0));
    // 1,000 bytes and 14 of Ethernet at 10 Mbps, 10 ms, 5 ms
    let due = 3 * MILLISECOND + 1_014 * 8 * 100 + 15 * MILLISECOND;
    assert!(arrivals(&mut carrier, due - 1).is_empty());
    let arrived = arrivals(&mut carrier, due);
    assert_eq!(arrived.len(), 1);
    assert_eq!((arrived[0].port, arrived[0].due), (1, due));
    assert_eq!(arrived[0].frame[..6], [2, 0, 0, 0, 0, 2]);
    assert_eq!(header(&arrived[0]).ttl, 63);
    let sent = frame(CLIENT, SERVER, 64, 0);
    assert_eq!(arrived[0].frame[ETHERNET + 20..], sent[ETHERNET + 20..]);
    assert_eq!(carrier.tally().carried, 1);
}

#[test]
fn a_frame_behind_its_packet_is_padded_and_nothing_else() {
    let mut carrier = carrier(json!({}));
    let mut padded = frame(CLIENT, SERVER, 64, 0);
    padded.extend([0; 20]);
    carrier.take(0, &padded);
    let arrived = arrivals(&mut carrier, 100 * MILLISECOND);
    assert_eq!(arrived[0].frame.len(), ETHERNET + 1_000);
}

#[test]
fn a_marking_queue_sets_congestion_experienced() {
    let red = json!({ "queue": {
        "kind": "red", "min": 0.1, "max": 0.2, "probability": 1.0, "weight": 1.0, "gentle": false, "limit": 100, "ecn": true,
    } });
    let mut carrier = carrier(red);
    for _ in 0..5 {
        carrier.take(0, &frame(CLIENT, SERVER, 64, 2));
    }
    let marks: Vec<_> = arrivals(&mut carrier, 100 * MILLISECOND)
        .iter()
        .map(|one| header(one).ecn)
        .collect();
    assert_eq!(marks.len(), 5);
    assert_eq!((marks[0], marks[4]), (2, 3));
}

#[test]
fn a_spoiled_packet_arrives_with_other_bytes_and_a_right_header() {
    let mut carrier = carrier(json!({ "corrupt": 1.0 }));
    carrier.take(0, &frame(CLIENT, SERVER, 64, 0));
    let arrived = arrivals(&mut carrier, 100 * MILLISECOND);
    header(&arrived[0]);
    let sent = frame(CLIENT, SERVER, 64, 0);
    assert_ne!(arrived[0].frame[ETHERNET + 20..], sent[ETHERNET + 20..]);
}

#[test]
fn a_link_that_is_down_carries_nothing_from_its_time_on() {
    let mut carrier = carrier(json!({}));
    carrier.step(400 * MILLISECOND);
    carrier.take(0, &frame(CLIENT, SERVER, 64, 0));
    assert_eq!(arrivals(&mut carrier, 501 * MILLISECOND).len(), 1);
    carrier.take(0, &frame(CLIENT, SERVER, 64, 0));
    assert!(arrivals(&mut carrier, 900 * MILLISECOND).is_empty());
    let sample = carrier.sample(900 * MILLISECOND);
    assert!(
        sample.contains("Q 900000000 b0 1014 1 1 0 0 0 811200\n"),
        "{sample}"
    );
}

#[test]
fn what_is_not_for_the_network_is_counted_and_nothing_more() {
    let mut carrier = carrier(json!({}));
    for junk in [
        vec![],
        vec![0; 13],
        vec![0; 60],
        frame(CLIENT, [10, 9, 9, 9], 64, 0),
        // by an interface that does not own its source
        frame(SERVER, CLIENT, 64, 0),
    ] {
        carrier.take(0, &junk);
    }
    let mut cut = frame(CLIENT, SERVER, 64, 0);
    cut.truncate(40);
    carrier.take(0, &cut);
    carrier.take(0, &frame(CLIENT, SERVER, 1, 0));
    assert!(arrivals(&mut carrier, 900 * MILLISECOND).is_empty());
    let tally = carrier.tally();
    assert_eq!((tally.carried, tally.ignored, tally.expired), (0, 6, 1));
}
