//! A client that moves to another of its addresses (RFC 9000 section 9.2).

use polypath_interop::{End, Exchange, Noq, Ours, Settings, Side, World, client_address};
use polypath_transport::{MILLISECOND as MS, SECOND};

use crate::transfer::complete;
use crate::{MBPS, Trouble, link, quic};

const TROUBLE: Trouble = Trouble {
    lost: 2,
    late: 5,
    twice: 5,
};

fn long() -> Exchange {
    Exchange::default()
        .request(Side::Client, 2_000_000, 1_000_000)
        .tell(Side::Server, 1_000_000)
}

/// Runs for half a second.
fn begin<C: End, S: End>(world: &mut World<C, S>, exchange: &mut Exchange) {
    world.fate = TROUBLE.hook(1);
    let until = world.now + 500 * MS;
    world.run_until(until, |world| {
        let now = world.now;
        exchange.drive(&mut world.client, &mut world.server, now)
    });
}

#[test]
fn ours_moves_and_noq_follows() {
    let links = vec![link(10 * MBPS, 20 * MS), link(10 * MBPS, 30 * MS)];
    let client = Ours::client(&quic(), 2, 1);
    let mut world = World::new(client, Noq::server(Settings::default()), links);
    let mut exchange = long();
    begin(&mut world, &mut exchange);
    for address in [1, 0, 1] {
        let now = world.now;
        let (connection, _) = world.client.parts();
        assert!(connection.migrate_to(0, client_address(address), now));
        let until = now + 500 * MS;
        world.run_until(until, |_| false);
        let member = &world.client.connection().members()[0];
        assert!(member.validated());
        assert_eq!(member.tuple.local.ip(), client_address(address));
    }
    complete(&mut world, exchange, 30 * SECOND);
    let now = world.now;
    let late = world
        .seen
        .iter()
        .rev()
        .take_while(|seen| seen.at + 200 * MS > now);
    assert!(late.into_iter().all(|seen| seen.link == 1));
}

#[test]
fn noq_moves_and_ours_follows() {
    let links = vec![link(10 * MBPS, 20 * MS), link(10 * MBPS, 30 * MS)];
    let client = Noq::client(Settings::default());
    let mut world = World::new(client, Ours::server(&quic(), 1), links);
    let mut exchange = long();
    begin(&mut world, &mut exchange);
    for link in [1, 0, 1] {
        let now = world.now;
        world.client.move_to(link, now);
        let until = now + 500 * MS;
        world.run_until(until, |world| {
            let now = world.now;
            exchange.drive(&mut world.client, &mut world.server, now)
        });
        let member = &world.server.connection().members()[0];
        assert!(member.validated());
        assert_eq!(member.tuple.remote.ip(), client_address(link));
    }
    complete(&mut world, exchange, 30 * SECOND);
}
