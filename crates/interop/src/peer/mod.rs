//! The implementations under test, by name.

mod aioquic;
mod noq;
mod polypath;
mod quinn;

use polypath_transport::{Nanos, Sessions};

pub use aioquic::AioquicPeer;
pub use noq::NoqProto;
pub use polypath::Polypath;
pub use quinn::QuinnProto;

use crate::end::End;

/// What a scenario asks of an end. What is not here is as its implementation ships it.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub seed: u64,
    /// A server asks for a token by Retry.
    pub retry: bool,
    /// Packets are sent with ECT(0).
    pub ecn: bool,
    /// Certificates that follow the server's own.
    pub intermediates: usize,
    /// Bytes that may be unread at first, on a stream and on the connection.
    pub window: Option<u64>,
    /// TLS sessions are kept here, to be resumed.
    pub sessions: Option<Sessions>,
}

/// What not every implementation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Explicit congestion notification (RFC 9000 section 13.4).
    Ecn,
}

/// An implementation of QUIC.
pub trait Peer {
    fn name(&self) -> &str;

    /// Why a feature is not offered, if it is not.
    fn lacks(&self, _: Feature) -> Option<&'static str> {
        None
    }

    fn client(&self, setup: &Setup) -> Box<dyn Player>;

    fn server(&self, setup: &Setup) -> Box<dyn Player>;
}

/// An end of which a scenario can ask more than to speak.
pub trait Player: End {
    /// Lines of a key log since this was last asked.
    fn take_secrets(&mut self) -> Vec<String>;

    /// Begins to use new keys for what is sent (RFC 9001 section 6). False: it is too early.
    fn update_keys(&mut self, now: Nanos) -> bool;

    /// The client moves to its address on another link (RFC 9000 section 9.2). False: it is too early.
    fn move_to(&mut self, link: usize, now: Nanos) -> bool;
}
