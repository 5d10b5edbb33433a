//! A third-party QUIC stack, as a run drives it: bytes in, bytes out.

use std::net::IpAddr;

use polypath_transport::quic::Codepoint;
use polypath_transport::{Accept, CloseReason, Event, Nanos, Tuple};

use crate::lane::Lane;
use crate::names::Names;

/// A datagram that it sends.
pub(crate) struct Departure {
    /// Its path.
    pub lane: usize,
    pub tuple: Tuple,
    pub bytes: Vec<u8>,
    pub ecn: Codepoint,
}

/// Makes connections of a stack, as one end of an application has it set.
pub(crate) trait OtherStack: Send + Sync {
    /// Opens a connection from `tuple.local` to `tuple.remote`, which carries what the names say.
    fn connect(
        &self,
        host: Accept,
        tuple: Tuple,
        names: Names,
        now: Nanos,
    ) -> Box<dyn OtherConnection>;

    /// A server's end, to which a client's first datagram is to be handed next.
    fn accept(&self, host: Accept, tuple: Tuple, names: Names) -> Box<dyn OtherConnection>;
}

/// A connection of such a stack, with the calls of [`polypath_transport::quic::Connection`].
pub(crate) trait OtherConnection: Send {
    fn receive(&mut self, tuple: Tuple, bytes: &[u8], ecn: Codepoint, now: Nanos);

    /// What it sends.
    fn departures(&mut self) -> Vec<Departure>;

    /// Lines of a key log since this was last asked.
    fn take_secrets(&mut self) -> Vec<String>;

    /// In-order bytes that came since this was last asked, by stream.
    fn take_arrivals(&mut self) -> Vec<(u64, u64)>;

    fn on_time(&mut self, now: Nanos);
    fn next_deadline(&self) -> Nanos;
    fn events(&mut self) -> &mut Vec<Event>;
    fn established(&self) -> bool;
    fn ended(&self) -> Option<CloseReason>;
    fn multipath(&self) -> bool;
    fn buffers(&self) -> (u64, u64);
    fn receive_window(&self) -> u64;
    fn send_queue(&self) -> (u64, u64);

    fn open(&mut self, bidirectional: bool) -> Option<u64>;
    fn write_to(&mut self, stream: u64, bytes: u64, now: Nanos);
    fn write_last(&mut self, stream: u64, bytes: u64, now: Nanos);
    fn set_priority(&mut self, stream: u64, priority: i32);
    fn finish(&mut self, stream: u64, now: Nanos);
    fn stream_at_end(&self, stream: u64) -> bool;
    fn write(&mut self, bytes: u64, now: Nanos);
    fn cancel_writes(&mut self) -> u64;
    fn at_end(&self) -> bool;
    fn close(&mut self, now: Nanos);

    fn set_address_up(&mut self, address: IpAddr, up: bool, now: Nanos);
    fn set_backup(&mut self, address: IpAddr, backup: bool, now: Nanos);
    fn migrate(&mut self, from: IpAddr, to: IpAddr, now: Nanos);

    /// Paths so far.
    fn lanes(&self) -> usize;

    /// The id of a path, which both ends know.
    fn path_id(&self, lane: usize) -> u64;

    fn lane(&self, lane: usize) -> Lane<'_>;
}
