//! Either side asks the other for fewer acknowledgements (draft-ietf-quic-ack-frequency-14; noq has the fields and code points of its version 4).

use polypath_interop::{End, Exchange, Link, Noq, Ours, Seen, Settings, Side, World};
use polypath_transport::{AckFrequency, Config, MILLISECOND as MS, SECOND};

use crate::transfer::complete;
use crate::{MBPS, Trouble, multipath, quic};

const BYTES: u64 = 2_000_000;
/// No longer datagram holds data in these exchanges, but for a few.
const SHORT: u32 = 100;

/// A queue in which nothing is lost.
fn links(count: usize) -> Vec<Link> {
    let long = Link {
        one_way: 20 * MS,
        rate: 10 * MBPS,
        queue: 10_000_000,
    };
    vec![long; count]
}

fn asked() -> Option<AckFrequency> {
    Some(AckFrequency {
        packets: 10,
        max_delay: None,
        reordering: 3,
    })
}

fn ours(config: Config, asks: bool) -> Config {
    Config {
        ack_frequency: if asks { asked() } else { None },
        ..config
    }
}

fn noq(paths: u32, asks: bool) -> Settings {
    Settings {
        paths,
        ack_frequency: if asks { asked() } else { None },
        ..Settings::default()
    }
}

/// Short datagrams of the receiving side while the other sends 2 MB.
fn acknowledgements<C: End, S: End>(world: &mut World<C, S>, sender: Side) -> usize {
    complete(world, Exchange::default().tell(sender, BYTES), 20 * SECOND);
    let own = world.seen.iter().filter(|seen| seen.from != sender);
    own.filter(|seen| seen.len < SHORT).count()
}

fn falls(usual: usize, fewer: usize, what: &str) {
    assert!(usual > 600, "{what}: {usual} as usual");
    assert!(4 * fewer < usual, "{what}: {usual} as usual, then {fewer}");
}

#[test]
fn noq_acknowledges_less_often_when_we_ask() {
    for sender in [Side::Client, Side::Server] {
        let count = |asks| {
            let config = ours(quic(), asks);
            match sender {
                Side::Client => {
                    let client = Ours::client(&config, 1, 1);
                    let server = Noq::server(noq(0, false));
                    acknowledgements(&mut World::new(client, server, links(1)), sender)
                }
                Side::Server => {
                    let server = Ours::server(&config, 1);
                    let client = Noq::client(noq(0, false));
                    acknowledgements(&mut World::new(client, server, links(1)), sender)
                }
            }
        };
        falls(count(false), count(true), &format!("our {sender:?} sends"));
    }
}

/// We take requests where we make some ourselves.
#[test]
fn we_acknowledge_less_often_when_noq_asks() {
    for sender in [Side::Client, Side::Server] {
        let count = |asks| {
            let config = ours(quic(), true);
            match sender {
                Side::Client => {
                    let client = Noq::client(noq(0, asks));
                    let server = Ours::server(&config, 1);
                    acknowledgements(&mut World::new(client, server, links(1)), sender)
                }
                Side::Server => {
                    let client = Ours::client(&config, 1, 1);
                    let server = Noq::server(noq(0, asks));
                    acknowledgements(&mut World::new(client, server, links(1)), sender)
                }
            }
        };
        falls(
            count(false),
            count(true),
            &format!("noq's {sender:?} sends"),
        );
    }
}

#[test]
fn what_is_asked_for_holds_on_each_path() {
    for noq_sends in [false, true] {
        let count = |asks| {
            let config = ours(multipath(), asks || noq_sends);
            let client = Ours::client(&config, 2, 1);
            let server = Noq::server(noq(4, asks && noq_sends));
            let mut world = World::new(client, server, links(2));
            let sender = if noq_sends {
                Side::Server
            } else {
                Side::Client
            };
            let count = acknowledgements(&mut world, sender);
            for link in 0..2 {
                let own = |seen: &&Seen| seen.from == sender && seen.link == link;
                let carried = world.seen.iter().filter(own).count();
                assert!(carried > 200, "{sender:?} on link {link}: {carried}");
            }
            count
        };
        falls(
            count(false),
            count(true),
            &format!("noq sends: {noq_sends}"),
        );
    }
}

#[test]
fn nothing_is_missing_through_loss_and_reordering() {
    let trouble = Trouble {
        lost: 3,
        late: 5,
        twice: 2,
    };
    for seed in 1..=3 {
        let config = ours(quic(), true);
        let exchange = || {
            Exchange::default()
                .request(Side::Client, 100_000, 400_000)
                .request(Side::Server, 100_000, 400_000)
        };
        let client = Ours::client(&config, 1, seed);
        let mut world = World::new(client, Noq::server(noq(0, true)), links(1));
        world.fate = trouble.hook(seed);
        complete(&mut world, exchange(), 60 * SECOND);
        let server = Ours::server(&config, seed);
        let mut world = World::new(Noq::client(noq(0, true)), server, links(1));
        world.fate = trouble.hook(seed);
        complete(&mut world, exchange(), 60 * SECOND);
    }
}
