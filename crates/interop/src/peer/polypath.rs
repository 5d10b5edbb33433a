//! Our endpoint.

use polypath_transport::{Buffer, Config, Nanos};

use super::{Feature, Peer, Player, Setup};
use crate::ours::Ours;
use crate::world::client_address;

/// Links that a client has an address on.
const LINKS: usize = 2;

pub struct Polypath;

impl Peer for Polypath {
    fn name(&self) -> &str {
        "Polypath"
    }

    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        match feature {
            Feature::Resumption => Some("no state goes from one connection into the next"),
            Feature::Ecn => None,
        }
    }

    fn client(&self, setup: &Setup) -> Box<dyn Player> {
        Box::new(Ours::client(&config(setup), LINKS, setup.seed))
    }

    fn server(&self, setup: &Setup) -> Box<dyn Player> {
        let server = Ours::server(&config(setup), setup.seed);
        Box::new(server.with_intermediates(setup.intermediates))
    }
}

fn config(setup: &Setup) -> Config {
    let base = Config::default();
    let window = setup.window.map(|bytes| Buffer {
        minimum: bytes,
        default: bytes,
        maximum: bytes,
    });
    Config {
        mptcp: false,
        ecn: setup.ecn,
        retry: setup.retry,
        receive_buffer: window.unwrap_or(base.receive_buffer),
        ..base
    }
}

impl Player for Ours {
    fn take_secrets(&mut self) -> Vec<String> {
        self.both_mut()
            .map_or_else(Vec::new, |(connection, protector)| {
                protector.take_secrets(connection)
            })
    }

    fn update_keys(&mut self, now: Nanos) -> bool {
        let (connection, protector) = self.parts();
        protector.update_keys(connection, now)
    }

    fn move_to(&mut self, link: usize, now: Nanos) -> bool {
        self.parts().0.migrate_to(0, client_address(link), now)
    }
}
