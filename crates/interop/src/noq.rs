//! noq-proto as an end of a world.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Instant;

use polypath_noq::noq_proto::{
    Connection, ConnectionError, FourTuple, PathEvent, PathId, PathStatus, VarInt,
};
use polypath_noq::{Congestion, Content, Endpoint, News};
use polypath_transport::{AckFrequency, MILLISECOND, Nanos, Sessions, Tuple};
use polypath_wire::payload;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

use crate::end::{Arrival, Departure, End, Outcome, Received, Side};
use crate::ours::SERVER_PORT;
use crate::world::{client_address, server_address};

const CLIENT_PORT: u16 = 30_000;

/// What a test chooses.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub seed: u64,
    /// Bytes of its connection ids.
    pub id_len: usize,
    /// Paths at a time; 0: without the extension.
    pub paths: u32,
    pub idle: Nanos,
    /// After so long without a packet a path is abandoned.
    pub path_idle: Option<Nanos>,
    /// A path on which nothing came for so long is tried.
    pub keepalive: Option<Nanos>,
    pub reno: bool,
    /// A server asks for a token by Retry.
    pub retry: bool,
    /// What our acknowledgements are asked for.
    pub ack_frequency: Option<AckFrequency>,
    /// Certificates that follow a server's own.
    pub intermediates: usize,
    /// Bytes that may be unread on a stream; absent: as noq ships it.
    pub window: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            id_len: 8,
            paths: 0,
            idle: 30_000 * MILLISECOND,
            path_idle: None,
            keepalive: None,
            reno: false,
            retry: false,
            ack_frequency: None,
            intermediates: 0,
            window: None,
        }
    }
}

impl Settings {
    fn noq(self) -> polypath_noq::Settings {
        let shipped = polypath_noq::Settings::default();
        polypath_noq::Settings {
            congestion: if self.reno {
                Congestion::Reno
            } else {
                Congestion::Cubic
            },
            paths: NonZeroU32::new(self.paths),
            idle: self.idle,
            path_idle: self.path_idle,
            keepalive: self.keepalive,
            id_len: self.id_len,
            retry: self.retry,
            ack_frequency: self.ack_frequency,
            intermediates: self.intermediates,
            receive_window: self.window.unwrap_or(shipped.receive_window),
            ..shipped
        }
    }
}

/// Bytes that name their place, and a comparison of those that come.
struct Compared(Side);

impl Content for Compared {
    fn fill(&self, stream: u64, offset: u64, bytes: &mut [u8]) {
        payload::fill(self.0.content(stream), offset, bytes);
    }

    fn came(&mut self, stream: u64, offset: u64, bytes: &[u8]) {
        payload::check(self.0.other().content(stream), offset, bytes)
            .unwrap_or_else(|at| panic!("stream {stream} has another byte at {at}"));
    }
}

/// An endpoint of noq-proto and its one connection.
pub struct Noq {
    /// The link of the only address that a client's socket has since it moved.
    moved: Option<usize>,
    endpoint: Endpoint,
    established: bool,
    outcome: Option<Outcome>,
    received: BTreeMap<u64, Received>,
    pub events: Vec<PathEvent>,
}

impl Noq {
    pub fn client(settings: Settings) -> Self {
        Self::client_with(settings, None)
    }

    /// A client that resumes a session, if one is kept.
    pub fn client_with(settings: Settings, sessions: Option<Sessions>) -> Self {
        let tuple = Tuple {
            local: SocketAddr::new(client_address(0), CLIENT_PORT),
            remote: SocketAddr::new(server_address(), SERVER_PORT),
        };
        let random = Pcg64Mcg::seed_from_u64(settings.seed);
        let content = Box::new(Compared(Side::Client));
        let settings = settings.noq();
        Self::new(Endpoint::client(
            &settings, tuple, random, content, sessions, 0,
        ))
    }

    pub fn server(settings: Settings) -> Self {
        Self::server_with(settings, None)
    }

    /// A server, and where its sessions are kept.
    pub fn server_with(settings: Settings, sessions: Option<Sessions>) -> Self {
        let local = SocketAddr::new(server_address(), SERVER_PORT);
        let random = Pcg64Mcg::seed_from_u64(settings.seed);
        let content = Box::new(Compared(Side::Server));
        let settings = settings.noq();
        Self::new(Endpoint::server(
            &settings, local, random, content, sessions,
        ))
    }

    fn new(endpoint: Endpoint) -> Self {
        let mut noq = Self {
            moved: None,
            endpoint,
            established: false,
            outcome: None,
            received: BTreeMap::new(),
            events: Vec::new(),
        };
        noq.hear();
        noq
    }

    /// What its clock shows.
    pub fn at(&self, now: Nanos) -> Instant {
        self.endpoint.at(now)
    }

    /// # Panics
    /// There is no connection.
    pub fn connection(&mut self) -> &mut Connection {
        self.endpoint.connection().expect("a connection")
    }

    /// Opens a path from the client's address on a link.
    ///
    /// # Panics
    /// It is refused.
    pub fn open_path(&mut self, link: usize, backup: bool, now: Nanos) -> PathId {
        let server = SocketAddr::new(server_address(), SERVER_PORT);
        let path = FourTuple::new(server, Some(client_address(link)));
        let status = status(backup);
        let at = self.at(now);
        let id = self
            .connection()
            .open_path(path, status, at)
            .expect("admitted");
        self.flush(now);
        id
    }

    /// # Panics
    /// There is no such path.
    pub fn set_backup(&mut self, path: PathId, backup: bool, now: Nanos) {
        self.connection()
            .set_path_status(path, status(backup))
            .expect("a path");
        self.flush(now);
    }

    /// # Panics
    /// There is no such path, or no other.
    pub fn close_path(&mut self, path: PathId, now: Nanos) {
        let at = self.at(now);
        self.connection()
            .close_path(at, path, VarInt::from_u32(0))
            .expect("a path");
        self.flush(now);
    }

    /// The client's socket has the address on another link from now on.
    ///
    /// # Panics
    /// There is no connection.
    pub fn move_to(&mut self, link: usize, now: Nanos) {
        self.moved = Some(link);
        self.endpoint.move_to(client_address(link), now);
        self.hear();
    }

    /// Lines of a key log since this was last asked.
    pub fn secrets(&mut self) -> Vec<String> {
        self.endpoint.take_secrets()
    }

    pub fn update_keys(&mut self, now: Nanos) {
        self.connection().force_key_update();
        self.flush(now);
    }

    fn flush(&mut self, now: Nanos) {
        self.endpoint.flush(now);
        self.hear();
    }

    fn hear(&mut self) {
        for news in self.endpoint.news() {
            match news {
                News::Established => self.established = true,
                // A first packet that is not authentic makes no connection.
                News::Lost(_) if self.endpoint.connection().is_none() => {}
                News::Lost(reason) => self.outcome = Some(outcome(&reason)),
                News::Came(stream, bytes) => {
                    self.received.entry(stream).or_default().bytes += bytes
                }
                News::Ended(stream) => self.received.entry(stream).or_default().ended = true,
                News::Path(event) => self.events.push(event),
                News::Confirmed | News::Opened(_) | News::Acknowledged(_) => {}
            }
        }
    }
}

fn status(backup: bool) -> PathStatus {
    if backup {
        PathStatus::Backup
    } else {
        PathStatus::Available
    }
}

fn outcome(reason: &ConnectionError) -> Outcome {
    match reason {
        ConnectionError::TimedOut => Outcome::TimedOut,
        ConnectionError::LocallyClosed => Outcome::Closed,
        ConnectionError::ApplicationClosed(close) if close.error_code == VarInt::from_u32(0) => {
            Outcome::Closed
        }
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 0 => {
            Outcome::Closed
        }
        other => Outcome::Error(other.to_string()),
    }
}

impl End for Noq {
    fn receive(&mut self, arrival: &Arrival<'_>, now: Nanos) {
        let own = self.moved.map(client_address);
        if own.is_some_and(|own| own != arrival.tuple.local.ip()) {
            return;
        }
        self.endpoint.receive(*arrival, now);
        self.hear();
    }

    fn on_time(&mut self, now: Nanos) {
        self.endpoint.on_time(now);
        self.hear();
    }

    fn deadline(&self) -> Nanos {
        self.endpoint.deadline()
    }

    fn take(&mut self, _: Nanos) -> Vec<Departure> {
        self.endpoint.take()
    }

    fn established(&self) -> bool {
        self.established
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome.clone()
    }

    fn open(&mut self, bidirectional: bool, _: Nanos) -> Option<u64> {
        self.endpoint.open(bidirectional)
    }

    fn send(&mut self, stream: u64, bytes: u64, now: Nanos) {
        self.endpoint.write(stream, bytes);
        self.endpoint.finish(stream);
        self.flush(now);
    }

    fn received(&self) -> &BTreeMap<u64, Received> {
        &self.received
    }

    fn close(&mut self, now: Nanos) {
        self.endpoint.close(now);
        self.outcome.get_or_insert(Outcome::Closed);
        self.hear();
    }
}
