//! Our endpoint.

use polypath_transport::{Buffer, Config, Nanos};

use super::{Peer, Player, Setup};
use crate::ours::Ours;
use crate::world::client_address;

/// Links that a client has an address on.
const LINKS: usize = 2;

pub struct Polypath;

impl Peer for Polypath {
    fn name(&self) -> &str {
        "Polypath"
    }

    fn client(&self, setup: &Setup) -> Box<dyn Player> {
        let sessions = setup.sessions.clone().unwrap_or_default();
        let client = Ours::client_with(&config(setup), LINKS, setup.seed, &sessions);
        Box::new(client)
    }

    fn server(&self, setup: &Setup) -> Box<dyn Player> {
        let sessions = setup.sessions.clone().unwrap_or_default();
        let server = Ours::server(&config(setup), setup.seed);
        let server = server.with_intermediates(setup.intermediates);
        Box::new(server.with_sessions(sessions))
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
        multipath: false,
        ecn: setup.ecn,
        retry: setup.retry,
        resumption: setup.sessions.is_some(),
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
