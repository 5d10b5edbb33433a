//! Keys and addresses that change, and a peer that falls silent.

use polypath_interop::{End, Exchange, Fate, Noq, Ours, Outcome, Settings, Side, World};
use polypath_transport::quic::bytes::Limits;
use polypath_transport::{Config, MILLISECOND as MS, SECOND};

use crate::transfer::complete;
use crate::{MBPS, Trouble, link, multipath, quic};

fn settings(config: &Config) -> Settings {
    Settings {
        paths: if config.multipath { 4 } else { 0 },
        ..Settings::default()
    }
}

fn long() -> Exchange {
    Exchange::default()
        .request(Side::Client, 3_000_000, 1_000_000)
        .tell(Side::Server, 2_000_000)
}

fn links(config: &Config) -> Vec<polypath_interop::Link> {
    vec![link(10 * MBPS, 20 * MS); if config.multipath { 2 } else { 1 }]
}

const TROUBLE: Trouble = Trouble {
    lost: 2,
    late: 5,
    twice: 5,
};

#[test]
fn noq_updates_its_keys_and_ours_follows() {
    for config in [quic(), multipath()] {
        let client = Ours::client(&config, links(&config).len(), 1);
        let mut world = World::new(client, Noq::server(settings(&config)), links(&config));
        world.fate = TROUBLE.hook(1);
        let mut exchange = long();
        world.run_until(5 * SECOND, |world| {
            let now = world.now;
            if world.server.established() {
                world.server.update_keys(now);
            }
            exchange.drive(&mut world.client, &mut world.server, now)
        });
        complete(&mut world, exchange, 30 * SECOND);
        let (_, protector) = world.client.parts();
        assert!(protector.key_updates() >= 2, "{}", protector.key_updates());
    }
}

#[test]
fn ours_updates_its_keys_and_noq_follows() {
    for config in [quic(), multipath()] {
        let server = Ours::server(&config, 1);
        let mut world = World::new(Noq::client(settings(&config)), server, links(&config));
        world.fate = TROUBLE.hook(2);
        let mut exchange = long();
        let mut updates = 0;
        world.run_until(5 * SECOND, |world| {
            let now = world.now;
            if world.server.established() {
                let (connection, protector) = world.server.parts();
                updates += u64::from(protector.update_keys(connection, now));
            }
            exchange.drive(&mut world.client, &mut world.server, now)
        });
        complete(&mut world, exchange, 30 * SECOND);
        assert!(updates >= 3, "{updates}");
        let (_, protector) = world.server.parts();
        assert!(protector.key_updates() >= updates);
    }
}

#[test]
fn ours_updates_keys_that_have_sealed_half_of_what_is_safe_and_noq_follows() {
    for config in [quic(), multipath()] {
        let client = Ours::client(&config, links(&config).len(), 1);
        let mut world = World::new(client, Noq::server(settings(&config)), links(&config));
        let (_, protector) = world.client.parts();
        protector.lower_limits(Limits {
            sealed: 1200,
            not_authentic: u64::MAX,
        });
        world.fate = TROUBLE.hook(4);
        let exchange = Exchange::default().tell(Side::Client, 3_000_000);
        complete(&mut world, exchange, 30 * SECOND);
        let (_, protector) = world.client.parts();
        assert!(protector.key_updates() >= 2, "{}", protector.key_updates());
    }
}

/// The client's port changes on each link, again and again, while it sends and receives.
fn rebound<C: End, S: End>(mut world: World<C, S>, links: usize) -> World<C, S> {
    let mut exchange = long();
    for _ in 0..3 {
        let until = world.now + 500 * MS;
        world.run_until(until, |world| {
            let now = world.now;
            exchange.drive(&mut world.client, &mut world.server, now)
        });
        (0..links).for_each(|link| world.rebind(link));
    }
    complete(&mut world, exchange, 30 * SECOND);
    world
}

#[test]
fn the_client_of_either_gets_other_ports() {
    for config in [quic(), multipath()] {
        let count = links(&config).len();
        let client = Ours::client(&config, count, 1);
        let world = World::new(client, Noq::server(settings(&config)), links(&config));
        rebound(world, count);
        let server = Ours::server(&config, 1);
        let world = World::new(Noq::client(settings(&config)), server, links(&config));
        let world = rebound(world, count);
        let member = &world.server.connection().members()[0];
        assert_eq!(member.tuple().remote.port(), 30_000 + 3 * 1000);
        assert!(member.validated());
    }
}

#[test]
fn a_silent_peer_is_given_up() {
    let idle = 5 * SECOND;
    let noq = Settings {
        idle,
        ..Settings::default()
    };
    let mut world = World::new(
        Ours::client(&quic(), 1, 1),
        Noq::server(noq),
        links(&quic()),
    );
    world.run_until(SECOND, |_| false);
    assert!(world.client.established() && world.server.established());
    world.fate = Box::new(|_| Fate::Drop);
    let now = world.now;
    world.run_until(100 * SECOND, |world| {
        world.client.outcome().is_some() && world.server.outcome().is_some()
    });
    assert_eq!(world.client.outcome(), Some(Outcome::TimedOut));
    assert_eq!(world.server.outcome(), Some(Outcome::TimedOut));
    assert!(world.now <= now + idle, "{} ms", (world.now - now) / MS);
}

#[test]
fn a_server_of_ours_that_forgot_the_connection_resets_it() {
    for config in [quic(), multipath()] {
        let client = Noq::client(settings(&config));
        let mut world = World::new(client, Ours::server(&config, 1), links(&config));
        let mut exchange = long();
        world.run_until(500 * MS, |world| {
            let now = world.now;
            exchange.drive(&mut world.client, &mut world.server, now)
        });
        assert!(world.server.established());
        // Another one with the same key for its tokens.
        world.server = Ours::server(&config, 2);
        let now = world.now;
        world.run_until(now + SECOND, |world| world.client.outcome().is_some());
        assert_eq!(
            world.client.outcome(),
            Some(Outcome::Error("reset by peer".to_string()))
        );
    }
}

#[test]
fn a_server_that_forgot_the_connection_resets_it() {
    for config in [quic(), multipath()] {
        let client = Ours::client(&config, links(&config).len(), 1);
        let mut world = World::new(client, Noq::server(settings(&config)), links(&config));
        let mut exchange = long();
        world.run_until(500 * MS, |world| {
            let now = world.now;
            exchange.drive(&mut world.client, &mut world.server, now)
        });
        // Another one with the same key for its tokens.
        world.server = Noq::server(settings(&config));
        let now = world.now;
        world.run_until(now + SECOND, |world| world.client.outcome().is_some());
        assert_eq!(
            world.client.outcome(),
            Some(Outcome::Error("Reset".to_string()))
        );
    }
}
