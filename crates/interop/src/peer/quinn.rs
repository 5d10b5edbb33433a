//! quinn-proto.

use polypath_transport::Nanos;

use super::{Peer, Player, Setup};
use crate::quinn::Quinn;

pub struct QuinnProto;

impl Peer for QuinnProto {
    fn name(&self) -> &str {
        "quinn-proto 0.11.19"
    }

    fn client(&self, setup: &Setup) -> Box<dyn Player> {
        Box::new(Quinn::client(setup))
    }

    fn server(&self, setup: &Setup) -> Box<dyn Player> {
        Box::new(Quinn::server(setup))
    }
}

impl Player for Quinn {
    fn take_secrets(&mut self) -> Vec<String> {
        self.secrets()
    }

    fn update_keys(&mut self, now: Nanos) -> bool {
        Quinn::update_keys(self, now);
        true
    }

    fn move_to(&mut self, link: usize, now: Nanos) -> bool {
        Quinn::move_to(self, link, now);
        true
    }
}
