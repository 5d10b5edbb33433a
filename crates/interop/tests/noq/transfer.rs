//! Handshake and streams over one path.

use polypath_interop::{End, Exchange, Fate, Noq, Ours, Outcome, Settings, Side, World};
use polypath_transport::{MILLISECOND as MS, Nanos, SECOND};

use crate::{MBPS, Trouble, link, quic};

/// A megabyte each way, on streams of all four kinds.
pub fn megabyte() -> Exchange {
    Exchange::default()
        .request(Side::Client, 300_000, 400_000)
        .request(Side::Client, 100_000, 200_000)
        .request(Side::Server, 100_000, 200_000)
        .tell(Side::Client, 400_000)
        .tell(Side::Server, 300_000)
}

/// Runs an exchange to its end, and gives the time of that.
pub fn complete<C: End, S: End>(
    world: &mut World<C, S>,
    mut exchange: Exchange,
    within: Nanos,
) -> Nanos {
    let until = world.now + within;
    let done = world.run_until(until, |world| {
        let now = world.now;
        assert_eq!(
            world.client.outcome(),
            None,
            "the client's, at {} ms",
            now / MS
        );
        assert_eq!(
            world.server.outcome(),
            None,
            "the server's, at {} ms",
            now / MS
        );
        exchange.drive(&mut world.client, &mut world.server, now)
    });
    assert!(done, "not complete after {} ms", world.now / MS);
    world.now
}

/// Closes from one side and waits until the other knows.
fn close<C: End, S: End>(world: &mut World<C, S>, closes: Side) {
    let now = world.now;
    match closes {
        Side::Client => world.client.close(now),
        Side::Server => world.server.close(now),
    }
    world.run_until(now + 100 * SECOND, |world| {
        world.client.outcome().is_some() && world.server.outcome().is_some()
    });
    assert_eq!(
        world.client.outcome(),
        Some(Outcome::Closed),
        "{closes:?} closes"
    );
    assert_eq!(
        world.server.outcome(),
        Some(Outcome::Closed),
        "{closes:?} closes"
    );
    assert!(world.now < now + 100 * MS, "{} ms", (world.now - now) / MS);
}

fn both_ways(trouble: Trouble, within: Nanos) {
    let links = || vec![link(10 * MBPS, 20 * MS)];
    for seed in 1..=3 {
        let noq = Settings {
            seed,
            ..Settings::default()
        };
        let mut world = World::new(Ours::client(&quic(), 1, seed), Noq::server(noq), links());
        world.fate = trouble.hook(seed);
        complete(&mut world, megabyte(), within);
        all_opened(&mut world.client);
        let mut world = World::new(Noq::client(noq), Ours::server(&quic(), seed), links());
        world.fate = trouble.hook(seed);
        complete(&mut world, megabyte(), within);
        all_opened(&mut world.server);
    }
}

/// No link alters a packet: each that came was authentic.
fn all_opened(ours: &mut Ours) {
    let dropped = ours.parts().1.dropped();
    assert_eq!((dropped.not_authentic, dropped.malformed), (0, 0));
}

#[test]
fn a_megabyte_each_way() {
    both_ways(Trouble::default(), 3 * SECOND);
}

#[test]
fn a_megabyte_each_way_through_loss() {
    for lost in [1, 5, 10] {
        let trouble = Trouble {
            lost,
            ..Trouble::default()
        };
        both_ways(trouble, 60 * SECOND);
    }
}

#[test]
fn a_megabyte_each_way_reordered_and_duplicated() {
    let trouble = Trouble {
        lost: 2,
        late: 10,
        twice: 10,
    };
    both_ways(trouble, 60 * SECOND);
}

#[test]
fn each_side_closes_and_the_other_is_told() {
    let links = || vec![link(10 * MBPS, 20 * MS)];
    let small = || Exchange::default().request(Side::Client, 100, 1000);
    for closes in [Side::Client, Side::Server] {
        let client = Ours::client(&quic(), 1, 1);
        let mut world = World::new(client, Noq::server(Settings::default()), links());
        complete(&mut world, small(), SECOND);
        close(&mut world, closes);
        let server = Ours::server(&quic(), 1);
        let mut world = World::new(Noq::client(Settings::default()), server, links());
        complete(&mut world, small(), SECOND);
        close(&mut world, closes);
    }
}

#[test]
fn a_close_of_ours_that_is_lost_is_repeated() {
    let links = vec![link(10 * MBPS, 20 * MS)];
    let noq = Noq::server(Settings::default());
    let mut world = World::new(Ours::client(&quic(), 1, 1), noq, links);
    let mut exchange = megabyte();
    world.run_until(500 * MS, |world| {
        let now = world.now;
        exchange.drive(&mut world.client, &mut world.server, now)
    });
    let now = world.now;
    let mut first = true;
    world.fate = Box::new(move |seen| {
        let lost = seen.from == Side::Client && std::mem::take(&mut first);
        if lost { Fate::Drop } else { Fate::Pass }
    });
    world.client.close(now);
    world.run_until(now + SECOND, |world| world.server.outcome().is_some());
    assert_eq!(world.server.outcome(), Some(Outcome::Closed));
}

#[test]
fn the_same_seeds_give_the_same_datagrams() {
    let run = |seed| {
        let noq = Settings {
            seed,
            ..Settings::default()
        };
        let links = vec![link(10 * MBPS, 20 * MS)];
        let mut world = World::new(Ours::client(&quic(), 1, 1), Noq::server(noq), links);
        let trouble = Trouble {
            lost: 3,
            late: 5,
            twice: 5,
        };
        world.fate = trouble.hook(1);
        complete(&mut world, megabyte(), 60 * SECOND);
        world.seen
    };
    assert!(run(1) == run(1));
    assert!(run(1) != run(2));
}
