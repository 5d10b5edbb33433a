//! noq-proto, without a socket or a clock.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use noq_proto::congestion::{CubicConfig, NewRenoConfig};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event,
    FourTuple, IdleTimeout, PathEvent, PathId, PathStatus, ReadError, ServerConfig, StreamEvent,
    StreamId, Transmit, TransportConfig, VarInt,
};
use polypath_transport::quic::Codepoint;
use polypath_transport::quic::crypto::certificate;
use polypath_transport::{MILLISECOND, NEVER, Nanos, Tuple};
use polypath_wire::payload;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use rustls::crypto::ring::default_provider;
use rustls::version::TLS13;

use crate::end::{Arrival, Departure, End, Outcome, Received, Side};
use crate::ours::SERVER_PORT;
use crate::world::{client_address, server_address};

const CLIENT_PORT: u16 = 30_000;
/// What [`polypath_transport`] speaks.
const PROTOCOL: &[u8] = b"hq-interop";
/// A client's first destination has so many bytes at least (RFC 9000 section 7.2).
const FIRST_LEN: usize = 8;
/// Bytes that are given to a stream at a time.
const PIECE: usize = 16_384;

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
        }
    }
}

impl Settings {
    fn transport(self) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        let idle = VarInt::from_u64(self.idle / MILLISECOND).expect("a short time");
        transport
            .max_idle_timeout(Some(IdleTimeout::from(idle)))
            .max_concurrent_multipath_paths(self.paths)
            .default_path_keep_alive_interval(self.keepalive.map(Duration::from_nanos))
            .keep_alive_interval(self.keepalive.map(Duration::from_nanos))
            .default_path_max_idle_timeout(self.path_idle.map(Duration::from_nanos));
        if self.reno {
            transport.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
        } else {
            transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        Arc::new(transport)
    }

    fn endpoint(self, server: Option<Arc<ServerConfig>>) -> Endpoint {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.seed.to_be_bytes());
        let mut config = EndpointConfig::new(Arc::new(key));
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_be_bytes());
        config.rng_seed(Some(seed));
        config.cid_generator(Arc::new(move || Box::new(Ids::new(self.seed, self.id_len))));
        Endpoint::new(Arc::new(config), server, true)
    }
}

/// Connection ids from a seed.
struct Ids {
    random: Pcg64Mcg,
    len: usize,
}

impl Ids {
    fn new(seed: u64, len: usize) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed);
        Self { random, len }
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = vec![0; self.len];
        self.random.fill_bytes(&mut bytes);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        self.len
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// What is still to be written to a stream.
#[derive(Debug)]
struct Outgoing {
    stream: StreamId,
    offset: u64,
    bytes: u64,
}

/// An endpoint of noq-proto and its one connection.
pub struct Noq {
    side: Side,
    /// The link of the only address that a client's socket has since it moved.
    moved: Option<usize>,
    retry: bool,
    endpoint: Endpoint,
    both: Option<(ConnectionHandle, Connection)>,
    /// What its clock shows at time 0. Only differences are used.
    epoch: Instant,
    established: bool,
    outcome: Option<Outcome>,
    outgoing: Vec<Outgoing>,
    received: BTreeMap<u64, Received>,
    out: Vec<Departure>,
    pub events: Vec<PathEvent>,
}

impl Noq {
    /// # Panics
    /// Its configuration is refused.
    pub fn client(settings: Settings) -> Self {
        let provider = Arc::new(default_provider());
        let verifier = certificate::ThisOne {
            algorithms: provider.signature_verification_algorithms,
        };
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .expect("suites of TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let crypto = QuicClientConfig::try_from(tls).expect("a suite for Initial packets");
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(settings.transport());
        let ids = Mutex::new(Ids::new(!settings.seed, FIRST_LEN));
        config.initial_dst_cid_provider(Arc::new(move || {
            ids.lock().expect("one thread").generate_cid()
        }));
        let mut noq = Self::new(Side::Client, settings.endpoint(None));
        let server = SocketAddr::new(server_address(), SERVER_PORT);
        let both = noq
            .endpoint
            .connect(noq.epoch, config, server, certificate::NAME)
            .expect("the configuration is complete");
        noq.both = Some(both);
        noq.pump(0);
        noq
    }

    /// # Panics
    /// Its configuration is refused.
    pub fn server(settings: Settings) -> Self {
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("suites of TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![certificate::certificate()], certificate::key())
            .expect("the key belongs to the certificate");
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let crypto = QuicServerConfig::try_from(tls).expect("a suite for Initial packets");
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(settings.transport());
        let server = Self::new(Side::Server, settings.endpoint(Some(Arc::new(config))));
        Self {
            retry: settings.retry,
            ..server
        }
    }

    fn new(side: Side, endpoint: Endpoint) -> Self {
        Self {
            side,
            moved: None,
            retry: false,
            endpoint,
            both: None,
            epoch: Instant::now(),
            established: false,
            outcome: None,
            outgoing: Vec::new(),
            received: BTreeMap::new(),
            out: Vec::new(),
            events: Vec::new(),
        }
    }

    /// What its clock shows.
    pub fn at(&self, now: Nanos) -> Instant {
        self.epoch + Duration::from_nanos(now)
    }

    /// # Panics
    /// There is no connection.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.both.as_mut().expect("a connection").1
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
        self.pump(now);
        id
    }

    /// # Panics
    /// There is no such path.
    pub fn set_backup(&mut self, path: PathId, backup: bool, now: Nanos) {
        self.connection()
            .set_path_status(path, status(backup))
            .expect("a path");
        self.pump(now);
    }

    /// # Panics
    /// There is no such path, or no other.
    pub fn close_path(&mut self, path: PathId, now: Nanos) {
        let at = self.at(now);
        self.connection()
            .close_path(at, path, VarInt::from_u32(0))
            .expect("a path");
        self.pump(now);
    }

    /// The client's socket has the address on another link from now on.
    ///
    /// # Panics
    /// There is no connection.
    pub fn move_to(&mut self, link: usize, now: Nanos) {
        self.moved = Some(link);
        let at = self.at(now);
        self.connection().handle_network_change(None, at);
        self.pump(now);
    }

    pub fn update_keys(&mut self, now: Nanos) {
        self.connection().force_key_update();
        self.pump(now);
    }

    /// Lets everything happen that can happen now.
    fn pump(&mut self, now: Nanos) {
        loop {
            self.read();
            self.write();
            let at = self.at(now);
            let Some((handle, connection)) = &mut self.both else {
                return;
            };
            let mut idle = true;
            while let Some(event) = connection.poll_endpoint_events() {
                idle = false;
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            let mut buffer = Vec::new();
            let mut transmits = Vec::new();
            while let Some(transmit) = connection.poll_transmit(at, NonZeroUsize::MIN, &mut buffer)
            {
                transmits.push((transmit, std::mem::take(&mut buffer)));
            }
            for (transmit, bytes) in transmits {
                idle = false;
                self.depart(&transmit, bytes);
            }
            if idle {
                return;
            }
        }
    }

    fn depart(&mut self, transmit: &Transmit, mut bytes: Vec<u8>) {
        bytes.truncate(transmit.size);
        let (address, port) = match self.side {
            Side::Client => (client_address(self.moved.unwrap_or(0)), CLIENT_PORT),
            Side::Server => (server_address(), SERVER_PORT),
        };
        let tuple = Tuple {
            local: SocketAddr::new(transmit.src_ip.unwrap_or(address), port),
            remote: transmit.destination,
        };
        let ecn = match transmit.ecn {
            None => Codepoint::NotEct,
            Some(EcnCodepoint::Ect0) => Codepoint::Ect0,
            Some(EcnCodepoint::Ect1) => Codepoint::Ect1,
            Some(EcnCodepoint::Ce) => Codepoint::Ce,
        };
        self.out.push(Departure { tuple, bytes, ecn });
    }

    /// Takes what happened, and every byte that waits.
    fn read(&mut self) {
        let Some((_, connection)) = &mut self.both else {
            return;
        };
        let mut readable = Vec::new();
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.established = true,
                Event::ConnectionLost { reason } => self.outcome = Some(outcome(&reason)),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(stream) = connection.streams().accept(dir) {
                        readable.push(stream);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => readable.push(id),
                Event::Path(event) => self.events.push(event),
                _ => {}
            }
        }
        let from = self.side.other();
        for stream in readable {
            let id = u64::from(stream);
            let received = self.received.entry(id).or_default();
            let mut source = connection.recv_stream(stream);
            // A stream that is over needs no reading.
            let Ok(mut chunks) = source.read(true) else {
                continue;
            };
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        assert_eq!(chunk.offset, received.bytes);
                        payload::check(from.content(id), chunk.offset, &chunk.bytes)
                            .unwrap_or_else(|at| panic!("stream {id} has another byte at {at}"));
                        received.bytes += chunk.bytes.len() as u64;
                    }
                    Ok(None) => {
                        received.ended = true;
                        break;
                    }
                    Err(ReadError::Blocked) => break,
                    Err(error) => panic!("stream {id}: {error}"),
                }
            }
            let _ = chunks.finalize();
        }
    }

    fn write(&mut self) {
        let Some((_, connection)) = &mut self.both else {
            return;
        };
        let side = self.side;
        let mut piece = vec![0; PIECE];
        self.outgoing.retain_mut(|outgoing| {
            let mut stream = connection.send_stream(outgoing.stream);
            while outgoing.offset < outgoing.bytes {
                let left = (outgoing.bytes - outgoing.offset).min(PIECE as u64) as usize;
                let content = side.content(outgoing.stream.into());
                payload::fill(content, outgoing.offset, &mut piece[..left]);
                match stream.write(&piece[..left]) {
                    Ok(written) => outgoing.offset += written as u64,
                    Err(_) => return true,
                }
            }
            stream.finish().is_err()
        });
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
        let at = self.at(now);
        let path = FourTuple::new(arrival.tuple.remote, Some(arrival.tuple.local.ip()));
        let ecn = match arrival.ecn {
            Codepoint::NotEct => None,
            Codepoint::Ect0 => Some(EcnCodepoint::Ect0),
            Codepoint::Ect1 => Some(EcnCodepoint::Ect1),
            Codepoint::Ce => Some(EcnCodepoint::Ce),
        };
        let mut buffer = Vec::new();
        let event = self
            .endpoint
            .handle(at, path, ecn, BytesMut::from(arrival.bytes), &mut buffer);
        match event {
            Some(DatagramEvent::NewConnection(incoming)) if self.retry && incoming.may_retry() => {
                let retry = self.endpoint.retry(incoming, &mut buffer);
                let transmit = retry.ok().expect("a client without a token");
                self.depart(&transmit, buffer);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, at, &mut buffer, None);
                match accepted {
                    Ok(both) => self.both = Some(both),
                    Err(error) => self.outcome = Some(outcome(&error.cause)),
                }
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.both {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.depart(&transmit, buffer),
            None => {}
        }
        self.pump(now);
    }

    fn on_time(&mut self, now: Nanos) {
        let at = self.at(now);
        if let Some((_, connection)) = &mut self.both {
            connection.handle_timeout(at);
        }
        self.pump(now);
    }

    fn deadline(&self) -> Nanos {
        let timeout = self.both.as_ref().and_then(|both| both.1.poll_timeout());
        timeout.map_or(NEVER, |at| {
            let since = at.saturating_duration_since(self.epoch);
            u64::try_from(since.as_nanos()).unwrap_or(NEVER)
        })
    }

    fn take(&mut self, _: Nanos) -> Vec<Departure> {
        std::mem::take(&mut self.out)
    }

    fn established(&self) -> bool {
        self.established
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome.clone()
    }

    fn open(&mut self, bidirectional: bool, _: Nanos) -> Option<u64> {
        let dir = if bidirectional { Dir::Bi } else { Dir::Uni };
        self.connection().streams().open(dir).map(u64::from)
    }

    fn send(&mut self, stream: u64, bytes: u64, now: Nanos) {
        let stream = StreamId::from(VarInt::from_u64(stream).expect("a stream"));
        self.outgoing.push(Outgoing {
            stream,
            offset: 0,
            bytes,
        });
        self.pump(now);
    }

    fn received(&self) -> &BTreeMap<u64, Received> {
        &self.received
    }

    fn close(&mut self, now: Nanos) {
        let at = self.at(now);
        self.connection()
            .close(at, VarInt::from_u32(0), bytes::Bytes::new());
        self.outcome.get_or_insert(Outcome::Closed);
        self.pump(now);
    }
}
