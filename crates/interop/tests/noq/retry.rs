//! A server that asks for a token (RFC 9000 section 8.1.2).

use polypath_interop::{Exchange, Noq, Ours, Settings, Side, World};
use polypath_transport::{Config, MILLISECOND as MS, SECOND};

use crate::transfer::complete;
use crate::{MBPS, Trouble, link, multipath, quic};

fn exchange() -> Exchange {
    Exchange::default()
        .request(Side::Client, 300_000, 100_000)
        .tell(Side::Server, 200_000)
}

fn settings(config: &Config) -> Settings {
    Settings {
        paths: if config.multipath { 4 } else { 0 },
        retry: true,
        ..Settings::default()
    }
}

const TROUBLE: [Trouble; 2] = [
    Trouble {
        lost: 0,
        late: 0,
        twice: 0,
    },
    Trouble {
        lost: 15,
        late: 10,
        twice: 20,
    },
];

#[test]
fn ours_returns_the_token_of_noq() {
    for (seed, trouble) in (1..).zip(TROUBLE) {
        for config in [quic(), multipath()] {
            let links = vec![link(10 * MBPS, 20 * MS); 2];
            let client = Ours::client(&config, 2, seed);
            let mut world = World::new(client, Noq::server(settings(&config)), links);
            world.fate = trouble.hook(seed);
            complete(&mut world, exchange(), 60 * SECOND);
            if seed == 1 {
                let datagrams = world.seen.iter();
                let first = datagrams.filter(|seen| seen.at < 60 * MS).count();
                assert!(
                    first <= 3,
                    "{first} datagrams before the token was returned"
                );
            }
        }
    }
}

#[test]
fn noq_returns_the_token_of_ours() {
    for (seed, trouble) in (1..).zip(TROUBLE) {
        for config in [quic(), multipath()] {
            let links = vec![link(10 * MBPS, 20 * MS); 2];
            let server = Config {
                retry: true,
                ..config.clone()
            };
            let client = Noq::client(Settings {
                retry: false,
                ..settings(&config)
            });
            let mut world = World::new(client, Ours::server(&server, seed), links);
            world.fate = trouble.hook(seed);
            complete(&mut world, exchange(), 60 * SECOND);
            if seed == 1 {
                let datagrams = world.seen.iter();
                let first = datagrams.filter(|seen| seen.at < 60 * MS).count();
                assert!(
                    first <= 3,
                    "{first} datagrams before the token was returned"
                );
            }
        }
    }
}
