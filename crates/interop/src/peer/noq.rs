//! noq-proto.

use polypath_transport::Nanos;

use super::{Peer, Player, Setup};
use crate::noq::{Noq, Settings};

pub struct NoqProto;

impl Peer for NoqProto {
    fn name(&self) -> &str {
        "noq-proto 1.4"
    }

    fn client(&self, setup: &Setup) -> Box<dyn Player> {
        Box::new(Noq::client_with(settings(setup), setup.sessions.clone()))
    }

    fn server(&self, setup: &Setup) -> Box<dyn Player> {
        Box::new(Noq::server_with(settings(setup), setup.sessions.clone()))
    }
}

fn settings(setup: &Setup) -> Settings {
    Settings {
        seed: setup.seed,
        retry: setup.retry,
        intermediates: setup.intermediates,
        window: setup.window,
        ..Settings::default()
    }
}

impl Player for Noq {
    fn take_secrets(&mut self) -> Vec<String> {
        self.secrets()
    }

    fn update_keys(&mut self, now: Nanos) -> bool {
        Noq::update_keys(self, now);
        true
    }

    fn move_to(&mut self, link: usize, now: Nanos) -> bool {
        Noq::move_to(self, link, now);
        true
    }
}
