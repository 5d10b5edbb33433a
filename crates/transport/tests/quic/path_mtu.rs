//! Reports that a datagram was too long for a link (RFC 9000 section 14.2.1).

use std::cell::RefCell;
use std::rc::Rc;

use polypath_transport::quic::Transmit;
use polypath_transport::{EventKind, MILLISECOND as MS, SECOND};
use polypath_wire::quic::ConnectionId;

use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

/// IPv4's and UDP's.
const HEADERS: u32 = 28;

/// A pair whose first link drops what is longer than `mtu` bytes; what it dropped of the client's is in the list.
fn over_tunnel(mut pair: Pair, mtu: u32) -> (Pair, Rc<RefCell<Vec<Transmit>>>) {
    let dropped = Rc::new(RefCell::new(Vec::new()));
    let list = dropped.clone();
    pair.fate = Box::new(move |from, link, _, transmit| {
        let fits = link > 0 || transmit.len + HEADERS <= mtu;
        if !fits && from == Side::Client {
            list.borrow_mut().push(transmit.clone());
        }
        if fits { Fate::Pass } else { Fate::Drop }
    });
    (pair, dropped)
}

fn destination(transmit: &Transmit) -> ConnectionId {
    transmit.datagram.packets[0].header.destination
}

/// Runs for a second in which the client is told of each drop.
fn run_with_reports(pair: &mut Pair, dropped: &RefCell<Vec<Transmit>>, mtu: u32) {
    let until = pair.now + SECOND;
    pair.run_until(until, |pair| {
        for transmit in dropped.borrow_mut().drain(..) {
            let (now, to) = (pair.now, destination(&transmit));
            pair.client
                .on_packet_too_big(transmit.path, &to, transmit.len, mtu, now);
        }
        false
    });
}

fn established(multi: bool) -> Pair {
    let config = if multi { multipath() } else { quic() };
    let links = vec![link(10 * MBPS, 10 * MS); if multi { 2 } else { 1 }];
    let mut pair = Pair::new(&config, &config, links, 1);
    pair.establish();
    pair
}

fn probes(pair: &Pair) -> usize {
    let beyond = |sent: &&(_, Side, usize, Transmit)| {
        let frames = &sent.3.datagram.packets[0].frames;
        sent.1 == Side::Client && sent.2 == 0 && sent.3.len > 1200 && frames.len() == 2
    };
    pair.sent.iter().filter(beyond).count()
}

#[test]
fn a_report_ends_the_search_at_the_reported_length() {
    for multi in [false, true] {
        let (mut pair, dropped) = over_tunnel(established(multi), 1400);
        run_with_reports(&mut pair, &dropped, 1400);
        assert_eq!(pair.client.members()[0].datagram(), 1400 - HEADERS);
        let with = probes(&pair);
        let (mut pair, _) = over_tunnel(established(multi), 1400);
        pair.run_until(10 * SECOND, |_| false);
        let found = pair.client.members()[0].datagram() + HEADERS;
        assert!((1392..=1400).contains(&found), "{found} without reports");
        assert!(with < probes(&pair), "{with} probes");
        if multi {
            let other = pair.client.members()[1].datagram() + HEADERS;
            assert!(other > 1492, "{other} on the other path");
        }
    }
}

#[test]
fn what_the_path_takes_no_more_goes_again_in_shorter_datagrams() {
    let mut pair = established(false);
    pair.run_until(2 * SECOND, |_| false);
    assert!(pair.client.members()[0].datagram() + HEADERS > 1490);
    pair.client.events().clear();
    let (mut pair, dropped) = over_tunnel(pair, 1300);
    let now = pair.now;
    pair.client.write(300_000, now);
    pair.client.close(now);
    run_with_reports(&mut pair, &dropped, 1300);
    assert_eq!(pair.read[1], 300_000);
    assert_eq!(pair.client.members()[0].datagram(), 1300 - HEADERS);
    let told = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::PathMtu {
                subflow: 0,
                mtu: 1300
            }
        )
    };
    let events = pair.client.events().iter();
    assert_eq!(events.filter(|event| told(&event.kind)).count(), 1);
}

#[test]
fn reports_that_cannot_be_meant_are_ignored() {
    let mut pair = established(false);
    pair.run_until(2 * SECOND, |_| false);
    let (now, before) = (pair.now, pair.client.members()[0].datagram());
    let last = pair.sent.iter().rfind(|sent| sent.1 == Side::Client);
    let own = destination(&last.expect("something was sent").3);
    let another = ConnectionId::new(&[7; 8]);
    for (path, destination, len, mtu, what) in [
        (0, own, 1400, 1200 + HEADERS - 1, "below the least"),
        (0, own, 1300, 1400, "the packet was not longer"),
        (0, another, 1472, 1300, "somebody else's packet"),
        (1, own, 1472, 1300, "no such path"),
    ] {
        pair.client
            .on_packet_too_big(path, &destination, len, mtu, now);
        assert_eq!(pair.client.members()[0].datagram(), before, "{what}");
    }
    pair.client.on_packet_too_big(0, &own, 1472, 1300, now);
    assert_eq!(pair.client.members()[0].datagram(), 1300 - HEADERS);
    pair.client.on_packet_too_big(0, &own, 1472, 1400, now);
    pair.run_until(now + SECOND, |_| false);
    let after = pair.client.members()[0].datagram();
    assert_eq!(after, 1300 - HEADERS, "a report does not lengthen packets");
}
