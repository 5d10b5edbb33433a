//! What a stack that is written elsewhere does, and what it is told.

use std::net::SocketAddr;
use std::sync::Arc;

use polypath_transport::{CloseReason, Codepoint, Nanos, Tuple};

use crate::control::Choosers;
use crate::names::Names;

/// What is written elsewhere, by the names under which a plan chooses it.
pub trait Elsewhere: Choosers {
    /// The stack of that name; nothing where there is none.
    fn stack(&self, name: &str, asked: &Asked) -> Option<Result<Arc<dyn WrittenStack>, String>>;
}

/// The settings of a host that such a stack can have.
#[derive(Clone, Debug)]
pub struct Asked {
    pub multipath: bool,
    /// Of the congestion control.
    pub congestion: String,
    /// Of the congestion window, in packets.
    pub initial_window: u32,
    /// Bytes that may be unread.
    pub receive_window: u64,
    /// UDP payload of the longest packet.
    pub longest_datagram: u32,
    /// A path on which nothing came for so long is tried.
    pub keepalive: Option<Nanos>,
    /// A server asks for a token by Retry.
    pub retry: bool,
}

/// Makes connections, as one end of an application has it set.
pub trait WrittenStack: Send + Sync {
    fn begin(&self, beginning: Beginning) -> Box<dyn WrittenEnd>;
}

/// What an end of a connection begins with.
pub struct Beginning {
    pub client: bool,
    pub tuple: Tuple,
    /// For everything that is drawn.
    pub seed: u64,
    /// The client's first path is a backup.
    pub backup: bool,
    pub content: Content,
    pub now: Nanos,
}

/// The bytes that an end sends on its streams.
#[derive(Clone, Copy, Debug)]
pub struct Content(pub(super) Names);

impl Content {
    /// Fills in bytes from an offset of a stream on.
    pub fn fill(&self, stream: u64, offset: u64, bytes: &mut [u8]) {
        self.0.fill(stream, offset, bytes);
    }
}

/// An end of a connection.
pub trait WrittenEnd: Send {
    /// A datagram came; its receiver's address is the local one.
    fn receive(&mut self, tuple: Tuple, bytes: &[u8], ecn: Codepoint, now: Nanos);

    /// Its deadline has come.
    fn on_time(&mut self, now: Nanos);

    /// Opens a stream, if the peer admits another one.
    fn open(&mut self, bidirectional: bool) -> Option<u64>;

    /// So many more bytes are to be sent on a stream.
    fn write(&mut self, stream: u64, bytes: u64);

    /// Nothing follows on a stream.
    fn finish(&mut self, stream: u64);

    /// Takes back what was written and has not been sent; returns how much.
    fn cancel(&mut self, stream: u64) -> u64;

    /// Serves a stream before those of lower priority.
    fn set_priority(&mut self, stream: u64, priority: i32);

    /// Opens a path. False: not now; it is asked again after the next change.
    fn open_path(&mut self, tuple: Tuple, backup: bool, now: Nanos) -> bool;

    fn abandon(&mut self, path: u64, now: Nanos);

    /// Has the peer use a path only if no other is there, or again. Whether that was possible.
    fn set_backup(&mut self, path: u64, backup: bool, now: Nanos) -> bool;

    /// Moves the one path of a client (RFC 9000 section 9.2). Whether that was possible.
    fn migrate(&mut self, tuple: Tuple, now: Nanos) -> bool;

    /// Closes the connection without an error.
    fn close(&mut self, now: Nanos);

    /// What it sends, what happened, and when it wants to be called.
    fn poll(&mut self, now: Nanos) -> Polled;
}

/// The answer of [`WrittenEnd::poll`].
#[derive(Debug, Default)]
pub struct Polled {
    pub datagrams: Vec<(Tuple, Vec<u8>, Codepoint)>,
    pub news: Vec<News>,
    pub paths: Vec<Figures>,
    pub deadline: Nanos,
    /// Bytes that were written and not sent.
    pub unwritten: u64,
    /// Everything that was sent has been acknowledged.
    pub idle: bool,
    pub multipath: bool,
}

/// What happened.
#[derive(Debug)]
pub enum News {
    /// The handshake is complete.
    Established,
    /// And the peer is known to know it (RFC 9001 section 4.1.2).
    Confirmed,
    Closed(CloseReason),
    /// The peer opened a stream.
    Opened(u64),
    /// In-order bytes of a stream.
    Came(u64, Vec<u8>),
    /// Everything of a stream was read.
    Ended(u64),
    /// Data may be sent on a path.
    PathOpen(u64, Tuple),
    PathClosed(u64),
    /// What the peer asks of a path.
    PathBackup(u64, bool),
    /// A line of a key log.
    Secret(String),
}

/// What a stack tells of a path. Windows are in bytes, counts in UDP payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub path: u64,
    pub remote: Option<SocketAddr>,
    pub mtu: u32,
    pub cwnd: u64,
    pub srtt: Nanos,
    pub in_flight: u64,
    pub sent: u64,
    pub received: u64,
    /// Packets taken for lost so far.
    pub lost: u64,
}
