//! Packets of a connection: paths, ids, keys and frames of control of which they are made, and what becomes of them.
//!
//! Nothing here knows streams or schedulers: those are of [`super::transfer`], which fills packets with data.

use std::sync::Arc;

use rand_pcg::Pcg64Mcg;

use super::control::Control;
use super::handshake::Handshake;
use super::identity::Identity;
use super::lifetime::Lifetime;
use super::output::Output;
use super::parameters::Parameters;
use super::paths::Paths;
use crate::settings::Config;
use crate::{EventKind, Nanos};

/// All that a packet without data is made of.
pub struct Packets {
    pub(super) config: Arc<Config>,
    /// The time of the call at hand.
    pub(super) now: Nanos,
    pub(super) random: Pcg64Mcg,
    pub(super) handshake: Handshake,
    pub(super) identity: Identity,
    pub(super) parameters: Parameters,
    pub(super) paths: Paths,
    pub(super) control: Control,
    pub(super) lifetime: Lifetime,
    pub(super) output: Output,
}

impl Packets {
    pub(super) fn event(&mut self, kind: EventKind) {
        self.output.event(self.now, kind);
    }
}
