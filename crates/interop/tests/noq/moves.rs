//! A client that moves to another of its addresses (RFC 9000 section 9.2).

use polypath_interop::{End, Exchange, Noq, Ours, Settings, Side, World, client_address};
use polypath_transport::{MILLISECOND as MS, SECOND};

use crate::transfer::complete;
use crate::{MBPS, Trouble, link, multipath, quic};

const TROUBLE: Trouble = Trouble {
    lost: 2,
    late: 5,
    twice: 5,
};

/// Packets, as the configuration has it.
const INITIAL_WINDOW: u32 = 10;

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

/// The client has just moved to a link. Our server follows with a path that it knows nothing of, and until the new address has answered
/// sends three times what came from there at most (RFC 9000 sections 8.2, 9.3.1 and 9.4).
fn follows_within_the_rules(world: &mut World<Noq, Ours>, exchange: &mut Exchange, link: usize) {
    let begun = world.seen.len();
    let mut cwnd = None;
    let until = world.now + 500 * MS;
    let validated = world.run_until(until, |world| {
        let now = world.now;
        exchange.drive(&mut world.client, &mut world.server, now);
        let member = &world.server.connection().members()[0];
        let there = member.tuple().remote.ip() == client_address(link);
        if there && !member.validated() {
            let path = &world.server.connection().paths()[0];
            assert_eq!(path.srtt, 0, "nothing of it is acknowledged yet");
            cwnd.get_or_insert(path.cwnd);
            let bytes = |side: Side| -> u32 {
                let seen = world.seen[begun..].iter();
                let seen = seen.filter(|seen| seen.from == side && seen.link == link);
                seen.map(|seen| seen.len).sum()
            };
            assert!(bytes(Side::Server) <= 3 * bytes(Side::Client));
        }
        there && member.validated()
    });
    assert!(validated, "no answer to the challenge");
    assert_eq!(cwnd, Some(INITIAL_WINDOW), "RFC 9000 section 9.4");
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
        let path = &connection.paths()[0];
        assert_eq!(
            (path.cwnd, path.srtt),
            (INITIAL_WINDOW, 0),
            "RFC 9000 section 9.4"
        );
        let until = now + 500 * MS;
        world.run_until(until, |_| false);
        let member = &world.client.connection().members()[0];
        assert!(member.validated());
        assert_eq!(member.tuple().local.ip(), client_address(address));
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
        follows_within_the_rules(&mut world, &mut exchange, link);
        let until = now + 500 * MS;
        world.run_until(until, |world| {
            let now = world.now;
            exchange.drive(&mut world.client, &mut world.server, now)
        });
        let member = &world.server.connection().members()[0];
        assert!(member.validated());
        assert_eq!(member.tuple().remote.ip(), client_address(link));
    }
    complete(&mut world, exchange, 30 * SECOND);
}

/// A path of several moves under its id, and the peer is noq.
#[test]
fn ours_moves_one_of_two_paths_and_noq_follows() {
    let links = vec![link(10 * MBPS, 20 * MS); 3];
    let client = Ours::client(&multipath(), 2, 1);
    let settings = Settings {
        paths: 4,
        ..Settings::default()
    };
    let mut world = World::new(client, Noq::server(settings), links);
    let mut exchange = long();
    begin(&mut world, &mut exchange);
    let now = world.now;
    let (connection, _) = world.client.parts();
    assert_eq!(connection.members().len(), 2);
    connection.migrate(client_address(1), client_address(0), now);
    let until = now + 500 * MS;
    world.run_until(until, |world| {
        let now = world.now;
        exchange.drive(&mut world.client, &mut world.server, now)
    });
    let member = &world.client.connection().members()[1];
    assert!(member.validated() && !member.closed());
    assert_eq!(member.tuple().local.ip(), client_address(0));
    let moved = world.now;
    complete(&mut world, exchange, 30 * SECOND);
    let mut late = world.seen.iter().filter(|seen| seen.at > moved);
    assert!(late.all(|seen| seen.link == 0));
}
