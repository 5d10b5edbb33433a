//! An endpoint of noq-proto with one connection, without a socket or a clock.
//!
//! Datagrams, times and writes go in. Datagrams, deadlines and events come out.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::crypto::{CryptoError, HandshakeTokenKey};
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, DatagramEvent, Dir, EcnCodepoint, EndpointConfig, Event, FourTuple,
    PathEvent, ReadError, ServerConfig, StreamEvent, StreamId, TimeSource, Transmit, VarInt,
    WriteError,
};
use polypath_transport::quic::Codepoint;
use polypath_transport::quic::crypto::{
    certificate, client_config, drawing_from, keep, server_config, take_secrets,
};
use polypath_transport::{NEVER, Nanos, Sessions, Tuple};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use ring::hmac;

use crate::settings::Settings;

/// What the endpoint of `polypath_transport` speaks.
const PROTOCOL: &[u8] = b"hq-interop";
/// A client's first destination has so many bytes at least (RFC 9000 section 7.2).
const FIRST_LEN: usize = 8;
/// Bytes that are given to a stream at a time.
const PIECE: usize = 16_384;

/// A datagram that came, as its receiver sees the addresses.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    pub tuple: Tuple,
    pub bytes: &'a [u8],
    pub ecn: Codepoint,
}

/// A datagram to be sent, as its sender sees the addresses.
#[derive(Clone, Debug)]
pub struct Departure {
    pub tuple: Tuple,
    pub bytes: Vec<u8>,
    pub ecn: Codepoint,
}

/// What streams carry.
pub trait Content: Send {
    /// Fills in bytes that this side sends.
    fn fill(&self, stream: u64, offset: u64, bytes: &mut [u8]);

    /// Bytes came, in order.
    fn came(&mut self, stream: u64, offset: u64, bytes: &[u8]);
}

/// What happened.
#[derive(Debug)]
pub enum News {
    /// The handshake is complete.
    Established,
    /// And the peer is known to know it.
    Confirmed,
    /// The peer closed the connection, or it failed.
    Lost(ConnectionError),
    /// The peer opened a stream.
    Opened(u64),
    /// So many bytes of a stream were read.
    Came(u64, u64),
    /// Everything of a stream was read.
    Ended(u64),
    /// Everything that was sent on a stream, and its end, was acknowledged.
    Acknowledged(u64),
    Path(PathEvent),
}

/// What is to be written to a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    offset: u64,
    bytes: u64,
    /// Nothing follows.
    last: bool,
}

/// An endpoint and its one connection.
pub struct Endpoint {
    endpoint: noq_proto::Endpoint,
    both: Option<(ConnectionHandle, Connection)>,
    tuple: Tuple,
    retry: bool,
    /// What its clock shows at time 0. Only differences are used.
    epoch: Instant,
    /// What TLS draws from.
    random: Pcg64Mcg,
    secrets: Vec<String>,
    content: Box<dyn Content>,
    outgoing: BTreeMap<u64, Outgoing>,
    read: BTreeMap<u64, u64>,
    news: Vec<News>,
    out: Vec<Departure>,
}

impl Endpoint {
    /// A client that connects from `tuple.local` to `tuple.remote`, and resumes a session if one is kept.
    ///
    /// # Panics
    /// noq refuses the settings.
    pub fn client(
        settings: &Settings,
        tuple: Tuple,
        mut random: Pcg64Mcg,
        content: Box<dyn Content>,
        sessions: Option<Sessions>,
        now: Nanos,
    ) -> Self {
        let mut crypto = client_config(PROTOCOL);
        if let Some(sessions) = sessions {
            Arc::make_mut(&mut crypto).resumption = sessions.with(tuple.remote.ip());
        }
        let crypto = QuicClientConfig::try_from(crypto);
        let mut config = ClientConfig::new(Arc::new(crypto.expect("a suite for Initial packets")));
        config.transport_config(settings.transport());
        let ids = Mutex::new(Ids::new(random.next_u64(), FIRST_LEN));
        config.initial_dst_cid_provider(Arc::new(move || {
            ids.lock().expect("one thread").generate_cid()
        }));
        let mut client = Self::new(settings, None, tuple, random, content);
        let at = client.at(now);
        let (endpoint, remote) = (&mut client.endpoint, tuple.remote);
        let both = drawing_from(&mut client.random, || {
            endpoint.connect(at, config, remote, certificate::NAME)
        });
        client.secrets.extend(take_secrets());
        client.both = Some(both.expect("the configuration is complete"));
        client.flush(now);
        client
    }

    /// A server at `local`, and where its sessions are kept.
    ///
    /// # Panics
    /// As [`Endpoint::client`].
    pub fn server(
        settings: &Settings,
        local: SocketAddr,
        mut random: Pcg64Mcg,
        content: Box<dyn Content>,
        sessions: Option<Sessions>,
    ) -> Self {
        let mut crypto = server_config(PROTOCOL, settings.intermediates);
        if let Some(sessions) = sessions {
            keep(Arc::make_mut(&mut crypto), sessions.of_clients());
        }
        let crypto = QuicServerConfig::try_from(crypto);
        let crypto = Arc::new(crypto.expect("a suite for Initial packets"));
        let token_key = Tokens(hmac_key(&mut random));
        let mut config = ServerConfig::new(crypto, Arc::new(token_key));
        config
            .transport_config(settings.transport())
            .time_source(Arc::new(Epoch));
        // The peer is known once its first datagram has come.
        let tuple = Tuple {
            local,
            remote: local,
        };
        Self::new(settings, Some(config), tuple, random, content)
    }

    fn new(
        settings: &Settings,
        server: Option<ServerConfig>,
        tuple: Tuple,
        mut random: Pcg64Mcg,
        content: Box<dyn Content>,
    ) -> Self {
        let mut config = EndpointConfig::new(Arc::new(hmac_key(&mut random)));
        let mut seed = [0; 32];
        random.fill_bytes(&mut seed);
        config.rng_seed(Some(seed));
        let (seed, len) = (random.next_u64(), settings.id_len);
        config.cid_generator(Arc::new(move || Box::new(Ids::new(seed, len))));
        Self {
            endpoint: noq_proto::Endpoint::new(Arc::new(config), server.map(Arc::new), true),
            both: None,
            tuple,
            retry: settings.retry,
            epoch: Instant::now(),
            random,
            secrets: Vec::new(),
            content,
            outgoing: BTreeMap::new(),
            read: BTreeMap::new(),
            news: Vec::new(),
            out: Vec::new(),
        }
    }

    /// What its clock shows.
    pub fn at(&self, now: Nanos) -> Instant {
        self.epoch + Duration::from_nanos(now)
    }

    /// The connection; a server has none before its client's first datagram. After a change it is to be flushed.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.both.as_mut().map(|both| &mut both.1)
    }

    /// As it was made; a server's peer is the one that its client's first datagram came from.
    pub fn tuple(&self) -> Tuple {
        self.tuple
    }

    pub fn receive(&mut self, arrival: Arrival<'_>, now: Nanos) {
        let at = self.at(now);
        let path = FourTuple::new(arrival.tuple.remote, Some(arrival.tuple.local.ip()));
        let ecn = match arrival.ecn {
            Codepoint::NotEct => None,
            Codepoint::Ect0 => Some(EcnCodepoint::Ect0),
            Codepoint::Ect1 => Some(EcnCodepoint::Ect1),
            Codepoint::Ce => Some(EcnCodepoint::Ce),
        };
        let mut buffer = Vec::new();
        let (endpoint, both, news) = (&mut self.endpoint, &mut self.both, &mut self.news);
        let retry = self.retry;
        let response = drawing_from(&mut self.random, || {
            match endpoint.handle(at, path, ecn, BytesMut::from(arrival.bytes), &mut buffer)? {
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
                        Err(error) => {
                            news.push(News::Lost(error.cause));
                            return error.response;
                        }
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
        if self.tuple.remote == self.tuple.local && self.both.is_some() {
            self.tuple = arrival.tuple;
        }
        if let Some(transmit) = response {
            self.depart(&transmit, buffer);
        }
        self.flush(now);
    }

    /// What is due at `now`.
    pub fn on_time(&mut self, now: Nanos) {
        let at = self.at(now);
        if let Some((_, connection)) = &mut self.both {
            connection.handle_timeout(at);
        }
        self.flush(now);
    }

    pub fn deadline(&self) -> Nanos {
        let timeout = self.both.as_ref().and_then(|both| both.1.poll_timeout());
        timeout.map_or(NEVER, |at| {
            let since = at.saturating_duration_since(self.epoch);
            u64::try_from(since.as_nanos()).unwrap_or(NEVER)
        })
    }

    /// Datagrams to be sent.
    pub fn take(&mut self) -> Vec<Departure> {
        std::mem::take(&mut self.out)
    }

    /// What happened since this was last asked.
    pub fn news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Lines of a key log since this was last asked.
    pub fn take_secrets(&mut self) -> Vec<String> {
        std::mem::take(&mut self.secrets)
    }

    /// Opens a stream, if the peer admits another one.
    pub fn open(&mut self, bidirectional: bool) -> Option<u64> {
        let dir = if bidirectional { Dir::Bi } else { Dir::Uni };
        let stream = u64::from(self.connection()?.streams().open(dir)?);
        self.outgoing.insert(stream, Outgoing::default());
        Some(stream)
    }

    /// Whether a stream has something to send, or may still get it: its end is not acknowledged.
    pub fn is_sending(&self, stream: u64) -> bool {
        self.outgoing.contains_key(&stream)
    }

    /// The streams of which [`Endpoint::is_sending`] is true.
    pub fn sending(&self) -> impl Iterator<Item = u64> {
        self.outgoing.keys().copied()
    }

    /// Bytes that were written and noq has had no room for.
    pub fn unwritten(&self) -> u64 {
        let left = self.outgoing.values().map(|it| it.bytes - it.offset);
        left.fold(0, u64::saturating_add)
    }

    /// Adds bytes to a stream. They go as far as noq has room when the endpoint is flushed.
    pub fn write(&mut self, stream: u64, bytes: u64) {
        if let Some(outgoing) = self.outgoing.get_mut(&stream).filter(|it| !it.last) {
            outgoing.bytes = outgoing.bytes.saturating_add(bytes);
        }
    }

    /// Serves a stream before those of lower priority.
    pub fn set_priority(&mut self, stream: u64, priority: i32) {
        let number = VarInt::from_u64(stream).expect("an id that noq gave");
        if let Some(connection) = self.connection() {
            // A stream that is over has none.
            let _ = connection
                .send_stream(StreamId::from(number))
                .set_priority(priority);
        }
    }

    /// Nothing follows on a stream.
    pub fn finish(&mut self, stream: u64) {
        if let Some(outgoing) = self.outgoing.get_mut(&stream) {
            outgoing.last = true;
        }
    }

    /// Takes back what noq has had no room for; returns how much.
    pub fn cancel(&mut self, stream: u64) -> u64 {
        let Some(outgoing) = self.outgoing.get_mut(&stream) else {
            return 0;
        };
        let left = outgoing.bytes - outgoing.offset;
        outgoing.bytes = outgoing.offset;
        left
    }

    /// Closes the connection at once, without an error.
    pub fn close(&mut self, now: Nanos) {
        let at = self.at(now);
        if let Some(connection) = self.connection() {
            connection.close(at, VarInt::from_u32(0), Bytes::new());
        }
        self.flush(now);
    }

    /// The socket has another address from now on, and no other.
    ///
    /// # Panics
    /// There is no connection.
    pub fn move_to(&mut self, address: IpAddr, now: Nanos) {
        self.tuple.local.set_ip(address);
        let at = self.at(now);
        let connection = self.connection().expect("a connection");
        connection.handle_network_change(None, at);
        self.flush(now);
    }

    /// Lets everything happen that can happen now.
    pub fn flush(&mut self, now: Nanos) {
        let at = self.at(now);
        loop {
            self.hear();
            self.send();
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
        let local = self.tuple.local;
        let address = transmit.src_ip.unwrap_or(local.ip());
        let tuple = Tuple {
            local: SocketAddr::new(address, local.port()),
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

    /// Takes what happened, and every byte that waits to be read.
    fn hear(&mut self) {
        let Some((_, connection)) = &mut self.both else {
            return;
        };
        let mut readable = Vec::new();
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.news.push(News::Established),
                Event::HandshakeConfirmed => self.news.push(News::Confirmed),
                Event::ConnectionLost { reason } => self.news.push(News::Lost(reason)),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(stream) = connection.streams().accept(dir) {
                        self.news.push(News::Opened(stream.into()));
                        if dir == Dir::Bi {
                            self.outgoing.insert(stream.into(), Outgoing::default());
                        }
                        readable.push(stream);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => readable.push(id),
                Event::Stream(StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. }) => {
                    self.outgoing.remove(&id.into());
                    self.news.push(News::Acknowledged(id.into()));
                }
                Event::Path(event) => self.news.push(News::Path(event)),
                _ => {}
            }
        }
        for stream in readable {
            let id = u64::from(stream);
            let read = self.read.entry(id).or_default();
            let before = *read;
            let mut source = connection.recv_stream(stream);
            // A stream that is over needs no reading.
            let Ok(mut chunks) = source.read(true) else {
                continue;
            };
            let ended = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        self.content.came(id, chunk.offset, &chunk.bytes);
                        *read += chunk.bytes.len() as u64;
                    }
                    Err(ReadError::Blocked) => break false,
                    Ok(None) | Err(ReadError::Reset(_)) => break true,
                }
            };
            let _ = chunks.finalize();
            if *read > before {
                self.news.push(News::Came(id, *read - before));
            }
            if ended {
                self.news.push(News::Ended(id));
            }
        }
    }

    /// Hands over what streams have room for.
    fn send(&mut self) {
        let Some((_, connection)) = &mut self.both else {
            return;
        };
        let mut stopped = Vec::new();
        let mut piece = Vec::new();
        for (&id, outgoing) in &mut self.outgoing {
            let number = VarInt::from_u64(id).expect("an id that noq gave");
            let mut stream = connection.send_stream(StreamId::from(number));
            while outgoing.offset < outgoing.bytes {
                piece.resize(PIECE, 0);
                let left = (outgoing.bytes - outgoing.offset).min(PIECE as u64) as usize;
                // Nothing is filled in that there is no room for.
                match stream.write(&[]) {
                    Err(WriteError::Blocked) => break,
                    Err(_) => {
                        stopped.push(id);
                        break;
                    }
                    Ok(_) => {}
                }
                self.content.fill(id, outgoing.offset, &mut piece[..left]);
                match stream.write(&piece[..left]) {
                    Ok(written) => outgoing.offset += written as u64,
                    Err(_) => break,
                }
            }
            if outgoing.last && outgoing.offset == outgoing.bytes {
                // Refused where it was said before.
                let _ = stream.finish();
            }
        }
        for id in stopped {
            self.outgoing.remove(&id);
        }
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

fn hmac_key(random: &mut Pcg64Mcg) -> hmac::Key {
    let mut secret = [0; 32];
    random.fill_bytes(&mut secret);
    hmac::Key::new(hmac::HMAC_SHA256, &secret)
}

/// Tokens of a server, which must be authentic and need not be secret. They are as long as noq's own, which end with a tag of AES-GCM.
struct Tokens(hmac::Key);

impl Tokens {
    const TAG: usize = 16;

    fn tag(&self, nonce: u128, data: &[u8]) -> [u8; Self::TAG] {
        let signed = [&nonce.to_be_bytes()[..], data].concat();
        let tag = hmac::sign(&self.0, &signed);
        tag.as_ref()[..Self::TAG].try_into().expect("32 bytes")
    }
}

impl HandshakeTokenKey for Tokens {
    fn seal(&self, nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        let tag = self.tag(nonce, data);
        data.extend(tag);
        Ok(())
    }

    fn open<'a>(&self, nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let (data, tag) = data
            .split_last_chunk::<{ Self::TAG }>()
            .ok_or(CryptoError)?;
        if self.tag(nonce, data) == *tag {
            Ok(data)
        } else {
            Err(CryptoError)
        }
    }
}

/// No token is used in a later run: nothing here depends on the date.
struct Epoch;

impl TimeSource for Epoch {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
}
