//! quinn-proto as an end of a world.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use polypath_transport::quic::Codepoint;
use polypath_transport::quic::crypto::{
    certificate, client_config, drawing_from, keep, server_config, take_secrets,
};
use polypath_transport::{NEVER, Nanos, Tuple};
use polypath_wire::payload;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event,
    ReadError, ServerConfig, StreamEvent, StreamId, TimeSource, Transmit, TransportConfig, VarInt,
};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use ring::{hkdf, hmac};

use crate::end::{Arrival, Departure, End, Outcome, Received, Side};
use crate::ours::SERVER_PORT;
use crate::peer::Setup;
use crate::world::{client_address, server_address};

/// What our endpoint speaks.
const PROTOCOL: &[u8] = b"hq-interop";
const CLIENT_PORT: u16 = 40_000;
/// Bytes of its connection ids.
const ID_LEN: usize = 8;
/// Bytes that are given to a stream at a time.
const PIECE: usize = 16_384;

/// An endpoint of quinn-proto and its one connection.
pub struct Quinn {
    side: Side,
    endpoint: Endpoint,
    both: Option<(ConnectionHandle, Connection)>,
    /// Of the socket.
    local: SocketAddr,
    retry: bool,
    /// What its clock shows at time 0. Only differences are used.
    epoch: Instant,
    deadline: Nanos,
    /// What TLS draws from.
    random: Pcg64Mcg,
    secrets: Vec<String>,
    established: bool,
    outcome: Option<Outcome>,
    /// By stream, how much of what is to be sent quinn has, and the whole.
    sending: BTreeMap<u64, (u64, u64)>,
    readable: BTreeSet<StreamId>,
    received: BTreeMap<u64, Received>,
    out: Vec<Departure>,
}

impl Quinn {
    /// # Panics
    /// quinn refuses the configuration.
    pub fn client(setup: &Setup) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(setup.seed);
        let mut crypto = client_config(PROTOCOL);
        if let Some(sessions) = &setup.sessions {
            Arc::make_mut(&mut crypto).resumption = sessions.with(server_address());
        }
        let crypto = QuicClientConfig::try_from(crypto).expect("a suite for Initial packets");
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport(setup));
        let ids = Mutex::new(Ids(Pcg64Mcg::seed_from_u64(random.next_u64())));
        config.initial_dst_cid_provider(Arc::new(move || {
            ids.lock().expect("one thread").generate_cid()
        }));
        let local = SocketAddr::new(client_address(0), CLIENT_PORT);
        let remote = SocketAddr::new(server_address(), SERVER_PORT);
        let mut client = Self::new(Side::Client, None, local, random);
        let (endpoint, at) = (&mut client.endpoint, client.epoch);
        let both = drawing_from(&mut client.random, || {
            endpoint.connect(at, config, remote, certificate::NAME)
        });
        client.secrets.extend(take_secrets());
        client.both = Some(both.expect("the configuration is complete"));
        client.flush(0);
        client
    }

    /// # Panics
    /// As [`Quinn::client`].
    pub fn server(setup: &Setup) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(setup.seed);
        let mut crypto = server_config(PROTOCOL, setup.intermediates);
        if let Some(sessions) = &setup.sessions {
            keep(Arc::make_mut(&mut crypto), sessions.of_clients());
        }
        let crypto = QuicServerConfig::try_from(crypto).expect("a suite for Initial packets");
        let mut secret = [0; 32];
        random.fill_bytes(&mut secret);
        let token_key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&secret);
        let mut config = ServerConfig::new(Arc::new(crypto), Arc::new(token_key));
        config
            .transport_config(transport(setup))
            .time_source(Arc::new(Epoch));
        let local = SocketAddr::new(server_address(), SERVER_PORT);
        Self {
            retry: setup.retry,
            ..Self::new(Side::Server, Some(config), local, random)
        }
    }

    fn new(
        side: Side,
        server: Option<ServerConfig>,
        local: SocketAddr,
        mut random: Pcg64Mcg,
    ) -> Self {
        let (mut key, mut seed) = ([0; 32], [0; 32]);
        random.fill_bytes(&mut key);
        random.fill_bytes(&mut seed);
        let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &key)));
        // A trace is read by the bit that RFC 9287 lets two ends of quinn clear.
        config.rng_seed(Some(seed)).grease_quic_bit(false);
        let ids = random.next_u64();
        config.cid_generator(move || Box::new(Ids(Pcg64Mcg::seed_from_u64(ids))));
        Self {
            side,
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), true, None),
            both: None,
            local,
            retry: false,
            epoch: Instant::now(),
            deadline: NEVER,
            random,
            secrets: Vec::new(),
            established: false,
            outcome: None,
            sending: BTreeMap::new(),
            readable: BTreeSet::new(),
            received: BTreeMap::new(),
            out: Vec::new(),
        }
    }

    /// Lines of a key log since this was last asked.
    pub fn secrets(&mut self) -> Vec<String> {
        std::mem::take(&mut self.secrets)
    }

    /// # Panics
    /// There is no connection.
    pub fn update_keys(&mut self, now: Nanos) {
        self.connection().force_key_update();
        self.flush(now);
    }

    /// The client's socket has the address on another link from now on.
    ///
    /// # Panics
    /// There is no connection.
    pub fn move_to(&mut self, link: usize, now: Nanos) {
        self.local.set_ip(client_address(link));
        self.connection().local_address_changed();
        self.flush(now);
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.both.as_mut().expect("a connection").1
    }

    fn at(&self, now: Nanos) -> Instant {
        self.epoch + Duration::from_nanos(now)
    }

    /// Lets everything happen that can happen now.
    fn flush(&mut self, now: Nanos) {
        let at = self.at(now);
        loop {
            self.hear();
            self.read();
            self.write();
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
            let mut transmits = Vec::new();
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(at, 1, &mut buffer) {
                transmits.push((transmit, std::mem::take(&mut buffer)));
            }
            for (transmit, bytes) in transmits {
                idle = false;
                self.depart(&transmit, bytes);
            }
            if idle {
                break;
            }
        }
        let timeout = self.connection().poll_timeout();
        self.deadline = timeout.map_or(NEVER, |at| {
            let since = at.saturating_duration_since(self.epoch);
            u64::try_from(since.as_nanos()).unwrap_or(NEVER)
        });
    }

    fn depart(&mut self, transmit: &Transmit, mut bytes: Vec<u8>) {
        bytes.truncate(transmit.size);
        let ecn = match transmit.ecn {
            None => Codepoint::NotEct,
            Some(EcnCodepoint::Ect0) => Codepoint::Ect0,
            Some(EcnCodepoint::Ect1) => Codepoint::Ect1,
            Some(EcnCodepoint::Ce) => Codepoint::Ce,
        };
        let tuple = Tuple {
            local: self.local,
            remote: transmit.destination,
        };
        self.out.push(Departure { tuple, bytes, ecn });
    }

    fn hear(&mut self) {
        let Some((_, connection)) = &mut self.both else {
            return;
        };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.established = true,
                Event::ConnectionLost { reason } => {
                    self.outcome.get_or_insert(outcome(&reason));
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(stream) = connection.streams().accept(dir) {
                        self.readable.insert(stream);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    self.readable.insert(id);
                }
                _ => {}
            }
        }
    }

    fn read(&mut self) {
        let Some((_, connection)) = &mut self.both else {
            return;
        };
        for stream in std::mem::take(&mut self.readable) {
            let id = u64::from(stream);
            let mut source = connection.recv_stream(stream);
            // A stream that is over needs no reading.
            let Ok(mut chunks) = source.read(true) else {
                continue;
            };
            let received = self.received.entry(id).or_default();
            let content = self.side.other().content(id);
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        payload::check(content, chunk.offset, &chunk.bytes)
                            .unwrap_or_else(|at| panic!("stream {id} has another byte at {at}"));
                        received.bytes += chunk.bytes.len() as u64;
                    }
                    Err(ReadError::Blocked | ReadError::Reset(_)) => break,
                    Ok(None) => {
                        received.ended = true;
                        break;
                    }
                }
            }
            let _ = chunks.finalize();
        }
    }

    /// Hands over what streams have room for.
    fn write(&mut self) {
        let Some((_, connection)) = &mut self.both else {
            return;
        };
        let side = self.side;
        let mut piece = [0; PIECE];
        self.sending.retain(|&id, (sent, bytes)| {
            let number = VarInt::from_u64(id).expect("an id that quinn gave");
            let mut stream = connection.send_stream(StreamId::from(number));
            while *sent < *bytes {
                let left = (*bytes - *sent).min(PIECE as u64) as usize;
                payload::fill(side.content(id), *sent, &mut piece[..left]);
                match stream.write(&piece[..left]) {
                    Ok(written) => *sent += written as u64,
                    // Without room, or stopped.
                    Err(_) => return true,
                }
            }
            // Refused where the peer has stopped the stream.
            let _ = stream.finish();
            false
        });
    }
}

fn transport(setup: &Setup) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    if let Some(window) = setup.window {
        let window = VarInt::from_u64(window).expect("a short window");
        transport
            .stream_receive_window(window)
            .receive_window(window);
    }
    Arc::new(transport)
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

impl End for Quinn {
    fn receive(&mut self, arrival: &Arrival<'_>, now: Nanos) {
        let Arrival { tuple, bytes, ecn } = *arrival;
        // Its socket is bound to one address.
        if tuple.local != self.local {
            return;
        }
        let at = self.at(now);
        let ecn = match ecn {
            Codepoint::NotEct => None,
            Codepoint::Ect0 => Some(EcnCodepoint::Ect0),
            Codepoint::Ect1 => Some(EcnCodepoint::Ect1),
            Codepoint::Ce => Some(EcnCodepoint::Ce),
        };
        let mut buffer = Vec::new();
        let (endpoint, both, retry) = (&mut self.endpoint, &mut self.both, self.retry);
        let response = drawing_from(&mut self.random, || {
            let local = Some(tuple.local.ip());
            let datagram = BytesMut::from(bytes);
            match endpoint.handle(at, tuple.remote, local, ecn, datagram, &mut buffer)? {
                // There is one already: this is a copy of the first packet, or one that was altered.
                DatagramEvent::NewConnection(incoming) if both.is_some() => {
                    endpoint.ignore(incoming);
                    None
                }
                DatagramEvent::NewConnection(incoming) if retry && incoming.may_retry() => {
                    endpoint.retry(incoming, &mut buffer).ok()
                }
                DatagramEvent::NewConnection(incoming) => {
                    match endpoint.accept(incoming, at, &mut buffer, None) {
                        Ok(made) => *both = Some(made),
                        // A first packet that is not authentic makes no connection.
                        Err(error) => return error.response,
                    }
                    None
                }
                DatagramEvent::ConnectionEvent(_, event) => {
                    if let Some((_, connection)) = both {
                        connection.handle_event(event);
                    }
                    None
                }
                DatagramEvent::Response(transmit) => Some(transmit),
            }
        });
        self.secrets.extend(take_secrets());
        if let Some(transmit) = response {
            self.depart(&transmit, buffer);
        }
        self.flush(now);
    }

    fn on_time(&mut self, now: Nanos) {
        let at = self.at(now);
        if let Some((_, connection)) = &mut self.both {
            connection.handle_timeout(at);
        }
        self.flush(now);
    }

    fn deadline(&self) -> Nanos {
        self.deadline
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
        Some(self.connection().streams().open(dir)?.into())
    }

    fn send(&mut self, stream: u64, bytes: u64, now: Nanos) {
        self.sending.insert(stream, (0, bytes));
        self.flush(now);
    }

    fn received(&self) -> &BTreeMap<u64, Received> {
        &self.received
    }

    fn close(&mut self, now: Nanos) {
        let at = self.at(now);
        self.connection()
            .close(at, VarInt::from_u32(0), Bytes::new());
        self.outcome.get_or_insert(Outcome::Closed);
        self.flush(now);
    }
}

/// Connection ids from a seed.
struct Ids(Pcg64Mcg);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; ID_LEN];
        self.0.fill_bytes(&mut bytes);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        ID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// No token is used in a later run: nothing here depends on the date.
struct Epoch;

impl TimeSource for Epoch {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
}
