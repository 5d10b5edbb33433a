//! aioquic, if Python has it.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;

use polypath_transport::Nanos;

use super::{Feature, Peer, Player, Setup};
use crate::aioquic::{Aioquic, Program};

pub struct AioquicPeer {
    name: String,
    program: Rc<RefCell<Program>>,
}

impl AioquicPeer {
    /// # Errors
    /// That interpreter of Python does not run, or cannot import aioquic.
    pub fn with(python: &Path) -> io::Result<Self> {
        let program = Program::start(python)?;
        Ok(Self {
            name: format!("aioquic {}", program.version()),
            program: Rc::new(RefCell::new(program)),
        })
    }
}

impl Peer for AioquicPeer {
    fn name(&self) -> &str {
        &self.name
    }

    fn lacks(&self, feature: Feature) -> Option<&'static str> {
        match feature {
            Feature::Ecn => Some("its calls have no ECN codepoints"),
        }
    }

    fn client(&self, setup: &Setup) -> Box<dyn Player> {
        Box::new(Aioquic::client(&self.program, setup))
    }

    fn server(&self, setup: &Setup) -> Box<dyn Player> {
        Box::new(Aioquic::server(&self.program, setup))
    }
}

impl Player for Aioquic {
    fn take_secrets(&mut self) -> Vec<String> {
        self.secrets()
    }

    fn update_keys(&mut self, now: Nanos) -> bool {
        Aioquic::update_keys(self, now);
        true
    }

    fn move_to(&mut self, link: usize, now: Nanos) -> bool {
        Aioquic::move_to(self, link, now);
        true
    }
}
