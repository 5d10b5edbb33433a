//! A client moves to another of its addresses (RFC 9000 section 9.2).

use polypath_transport::{EventKind, MILLISECOND as MS, SECOND};
use polypath_wire::quic::Frame;

use crate::common::client_address;
use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

fn established() -> Pair {
    let links = vec![link(10 * MBPS, 20 * MS), link(5 * MBPS, 30 * MS)];
    let mut pair = Pair::new(&quic(), &quic(), links, 1);
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    pair
}

fn transfer(pair: &mut Pair) {
    let now = pair.now;
    pair.client.write(1_000_000, now);
    let server = pair.server_mut();
    server.write(1_000_000, now);
    pair.run_until(now + 300 * MS, |_| false);
}

fn complete(pair: &mut Pair) {
    let until = pair.now + 20 * SECOND;
    pair.run_until(until, |pair| pair.read == [1_000_000; 2]);
    assert_eq!(pair.read, [1_000_000; 2]);
}

#[test]
fn a_client_moves_and_the_server_validates_it() {
    let mut pair = established();
    transfer(&mut pair);
    let now = pair.now;
    let before = pair.sent.len();
    assert!(pair.client.paths()[0].srtt > 0);
    assert!(pair.client.migrate_to(0, client_address(1), now));
    assert_eq!(pair.client.paths()[0].srtt, 0, "RFC 9000 section 9.4");
    complete(&mut pair);
    let server = pair.server();
    assert_eq!(server.members().len(), 1);
    assert_eq!(server.members()[0].tuple().remote.ip(), client_address(1));
    assert!(server.members()[0].validated() && pair.client.members()[0].validated());
    // Both sides take other ids (section 9.5), and no id goes from or to two addresses.
    for side in [Side::Client, Side::Server] {
        let ids = |link: usize| -> Vec<_> {
            let sent = pair.sent.iter();
            let sent = sent.filter(|(_, from, on, _)| *from == side && *on == link);
            let packets = sent.flat_map(|(.., transmit)| &transmit.datagram.packets);
            packets.map(|packet| packet.header.destination).collect()
        };
        let (first, second) = (ids(0), ids(1));
        assert!(!second.is_empty());
        assert!(second.iter().all(|id| !first.contains(id)), "{side:?}");
    }
    let later = pair.sent[before..].iter();
    let challenged = later.clone().any(|(_, side, _, transmit)| {
        let mut frames = transmit
            .datagram
            .packets
            .iter()
            .flat_map(|packet| &packet.frames);
        *side == Side::Server && frames.any(|frame| matches!(frame, Frame::PathChallenge(_)))
    });
    assert!(challenged);
}

#[test]
fn a_client_whose_address_goes_takes_another() {
    let mut pair = established();
    transfer(&mut pair);
    pair.fate = Box::new(|_, link, _, _| if link == 0 { Fate::Drop } else { Fate::Pass });
    let now = pair.now;
    pair.client.set_address_up(client_address(0), false, now);
    assert_eq!(
        pair.client.members()[0].tuple().local.ip(),
        client_address(1)
    );
    complete(&mut pair);
}

#[test]
fn an_address_that_leads_nowhere_is_left_for_the_former() {
    let mut pair = established();
    transfer(&mut pair);
    pair.fate = Box::new(|_, link, _, _| if link == 1 { Fate::Drop } else { Fate::Pass });
    let now = pair.now;
    assert!(pair.client.migrate_to(0, client_address(1), now));
    complete(&mut pair);
    assert_eq!(
        pair.client.members()[0].tuple().local.ip(),
        client_address(0)
    );
}

#[test]
fn an_address_that_comes_back_is_taken_if_the_other_leads_nowhere() {
    let mut pair = established();
    transfer(&mut pair);
    let now = pair.now;
    let back = now + 5 * SECOND;
    pair.fate = Box::new(move |_, link, at, _| {
        if link == 1 || at < back {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.client.set_address_up(client_address(0), false, now);
    pair.run_until(back, |_| false);
    assert_eq!(
        pair.client.members()[0].tuple().local.ip(),
        client_address(1)
    );
    pair.client.set_address_up(client_address(0), true, back);
    assert_eq!(
        pair.client.members()[0].tuple().local.ip(),
        client_address(0)
    );
    complete(&mut pair);
}

#[test]
fn a_path_of_several_moves_under_its_id() {
    let links = vec![link(10 * MBPS, 20 * MS); 3];
    let mut pair = Pair::new(&multipath(), &multipath(), links, 1);
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    transfer(&mut pair);
    let now = pair.now;
    let id = pair.client.members()[2].id();
    assert!(pair.client.migrate_to(2, client_address(1), now));
    complete(&mut pair);
    let server = pair.server();
    let member = server.members().iter().find(|member| member.id() == id);
    let member = member.expect("a path");
    assert_eq!(member.tuple().remote.ip(), client_address(1));
    assert!(member.validated());
}

#[test]
fn what_cannot_move_stays() {
    let links = vec![link(10 * MBPS, 20 * MS); 2];
    let mut early = Pair::new(&quic(), &quic(), links, 1);
    assert!(
        !early.client.migrate_to(0, client_address(1), 0),
        "before the handshake is confirmed"
    );
    let mut pair = established();
    let now = pair.now;
    assert!(
        !pair.client.migrate_to(0, client_address(0), now),
        "where it is"
    );
    assert!(
        !pair.client.migrate_to(0, client_address(7), now),
        "an address of another host"
    );
    assert!(
        !pair.client.migrate_to(1, client_address(1), now),
        "no such path"
    );
    pair.client.set_address_up(client_address(1), false, now);
    assert!(
        !pair.client.migrate_to(0, client_address(1), now),
        "an address that is down"
    );
    let server = pair.server_mut();
    assert!(!server.migrate_to(0, client_address(1), now), "a server");
}

/// Migrations and refusals that a side told, in order.
fn told(pair: &mut Pair, side: Side) -> Vec<EventKind> {
    let events = match side {
        Side::Client => pair.client.events(),
        Side::Server => pair.server_mut().events(),
    };
    let events = events.drain(..).map(|event| event.kind);
    events
        .filter(|kind| {
            matches!(
                kind,
                EventKind::PathMigrated { .. } | EventKind::MigrationRefused { .. }
            )
        })
        .collect()
}

#[test]
fn paths_from_an_address_move_and_both_sides_tell() {
    let links = vec![link(10 * MBPS, 20 * MS); 3];
    let mut pair = Pair::new(&multipath(), &multipath(), links, 1);
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    transfer(&mut pair);
    let now = pair.now;
    pair.client
        .migrate(client_address(2), client_address(1), now);
    complete(&mut pair);
    let from = |side: &polypath_transport::quic::PathState| side.tuple().local.ip();
    let locals: Vec<_> = pair.client.members().iter().map(from).collect();
    assert_eq!(locals, [0, 1, 1].map(client_address));
    let address = pair.client.members()[2].tuple().local;
    let moved = [EventKind::PathMigrated {
        subflow: 2,
        address,
    }];
    assert_eq!(told(&mut pair, Side::Client), moved);
    assert_eq!(told(&mut pair, Side::Server), moved);
}

#[test]
fn a_migration_that_cannot_be_is_told_with_its_reason() {
    let links = vec![link(10 * MBPS, 20 * MS); 2];
    let mut pair = Pair::new(&quic(), &quic(), links, 1);
    let refused = |reason| [EventKind::MigrationRefused { subflow: 0, reason }];
    pair.client.migrate(client_address(0), client_address(1), 0);
    assert_eq!(
        told(&mut pair, Side::Client),
        refused("the handshake is not confirmed")
    );
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    let now = pair.now;
    pair.client.set_address_up(client_address(1), false, now);
    pair.client
        .migrate(client_address(0), client_address(1), now);
    assert_eq!(
        told(&mut pair, Side::Client),
        refused("the address is down")
    );
    // Nothing is at the other one, and a server does not move.
    pair.client
        .migrate(client_address(1), client_address(0), now);
    assert_eq!(told(&mut pair, Side::Client), []);
}
