//! The TLS handshake of one endpoint (RFC 9001 section 4).

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::quic::{
    ClientConnection, Connection, KeyChange, Keys, PacketKeySet, Secrets, ServerConnection, Version,
};
use rustls::server::{NoServerSessionStorage, StoresServerSessions};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{AlertDescription, ClientConfig, ServerConfig};

use super::certificate::{self, ThisOne};
use super::key_log::{self, Collector};
use super::provider::{drawing_from, provider};
use crate::sessions::TICKETS;

/// Encryption levels that have CRYPTO frames of their own (RFC 9001 section 4.1.4, without 0-RTT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Initial = 0,
    Handshake = 1,
    OneRtt = 2,
}

/// Why TLS refuses what the peer sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct TlsError {
    alert: u8,
    reason: String,
}

impl TlsError {
    /// The alert that goes into CRYPTO_ERROR (RFC 9001 section 4.8).
    pub fn alert(&self) -> u8 {
        self.alert
    }
}

/// The handshake of a client or a server. Bytes of CRYPTO frames go in and come out, in order.
pub struct Session {
    tls: Connection,
    random: Pcg64Mcg,
    /// The highest level whose keys exist; what TLS writes next goes there.
    level: Level,
    written: VecDeque<(Level, Vec<u8>)>,
    handshake_keys: Option<Keys>,
    one_rtt_keys: Option<Keys>,
    next: Option<Secrets>,
    secrets: Vec<String>,
}

impl Session {
    /// A client's, with its ClientHello written.
    pub fn client(seed: u64, transport_parameters: Vec<u8>, alpn: &[u8]) -> Self {
        Self::client_with(seed, transport_parameters, alpn, None)
    }

    pub fn server(seed: u64, transport_parameters: Vec<u8>, alpn: &[u8]) -> Self {
        Self::server_with(seed, transport_parameters, alpn, 0, None)
    }

    /// A client's that resumes a session, if one is kept.
    pub fn client_with(
        seed: u64,
        transport_parameters: Vec<u8>,
        alpn: &[u8],
        kept: Option<Resumption>,
    ) -> Self {
        Self::new(seed, || {
            let name = ServerName::try_from(certificate::NAME).expect("a valid name");
            let alpn = vec![alpn.to_vec()];
            let mut config = Arc::clone(&CLIENT);
            if let Some(kept) = kept {
                Arc::make_mut(&mut config).resumption = kept;
            }
            ClientConnection::new_with_alpn(config, Version::V1, name, transport_parameters, alpn)
                .expect("the configuration serves QUIC")
                .into()
        })
    }

    /// A server's whose certificate is followed by so many others, and where its sessions are kept.
    pub fn server_with(
        seed: u64,
        transport_parameters: Vec<u8>,
        alpn: &[u8],
        intermediates: usize,
        kept: Option<Arc<dyn StoresServerSessions>>,
    ) -> Self {
        Self::new(seed, || {
            let mut config = server_config(alpn, intermediates);
            if let Some(kept) = kept {
                keep(Arc::make_mut(&mut config), kept);
            }
            ServerConnection::new(config, Version::V1, transport_parameters)
                .expect("the configuration serves QUIC")
                .into()
        })
    }

    fn new(seed: u64, connect: impl FnOnce() -> Connection) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let tls = drawing_from(&mut random, connect);
        let mut session = Self {
            tls,
            random,
            level: Level::Initial,
            written: VecDeque::new(),
            handshake_keys: None,
            one_rtt_keys: None,
            next: None,
            secrets: Vec::new(),
        };
        session.collect();
        session
    }

    /// Takes the next bytes of the CRYPTO stream of a level.
    ///
    /// # Errors
    /// What TLS refuses, and bytes of another level than the one that TLS reads now (RFC 9001 section 4.1.3).
    pub fn read(&mut self, level: Level, bytes: &[u8]) -> Result<(), TlsError> {
        let expected = self.reading();
        if level != expected {
            return Err(TlsError {
                alert: AlertDescription::UnexpectedMessage.into(),
                reason: format!("handshake bytes of level {level:?} where {expected:?} is read"),
            });
        }
        let tls = &mut self.tls;
        let result = drawing_from(&mut self.random, || tls.read_hs(bytes));
        // A server that refuses may have written before.
        self.collect();
        result.map_err(|error| TlsError {
            alert: self
                .tls
                .alert()
                .unwrap_or(AlertDescription::InternalError)
                .into(),
            reason: error.to_string(),
        })
    }

    /// The next bytes for CRYPTO frames, and their level.
    pub fn write(&mut self) -> Option<(Level, Vec<u8>)> {
        self.written.pop_front()
    }

    /// The highest level that packets can be sent on.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Whether TLS has not finished on this side.
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// The transport parameters of the peer, as they came. They are authentic once the handshake is complete (RFC 9001 section 8.2); a client
    /// waits for that, since TLS shows those of the session that it resumes before.
    pub fn peer_parameters(&self) -> Option<&[u8]> {
        match &self.tls {
            Connection::Client(_) if self.is_handshaking() => None,
            tls => tls.quic_transport_parameters(),
        }
    }

    /// Keys of the Handshake or 1-RTT level, once; those of Initial packets are [`super::initial_keys`].
    pub fn take_keys(&mut self, level: Level) -> Option<Keys> {
        match level {
            Level::Initial => None,
            Level::Handshake => self.handshake_keys.take(),
            Level::OneRtt => self.one_rtt_keys.take(),
        }
    }

    /// Packet keys of the next key phase (RFC 9001 section 6); those for header protection stay. Nothing before the 1-RTT level.
    pub fn next_packet_keys(&mut self) -> Option<PacketKeySet> {
        self.next.as_mut().map(Secrets::next_packet_keys)
    }

    /// The level whose bytes TLS expects: a server has 1-RTT keys before it has read the client's Finished.
    fn reading(&self) -> Level {
        if self.is_handshaking() {
            self.level.min(Level::Handshake)
        } else {
            Level::OneRtt
        }
    }

    /// Lines of a key log since this was last asked, for whoever is to decrypt a capture.
    pub fn take_secrets(&mut self) -> Vec<String> {
        std::mem::take(&mut self.secrets)
    }

    /// Takes from TLS what it has written, and keys.
    fn collect(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let tls = &mut self.tls;
            let change = drawing_from(&mut self.random, || tls.write_hs(&mut bytes));
            let wrote = !bytes.is_empty();
            if wrote {
                self.written.push_back((self.level, bytes));
            }
            match change {
                Some(KeyChange::Handshake { keys }) => {
                    self.level = Level::Handshake;
                    self.handshake_keys = Some(keys);
                }
                Some(KeyChange::OneRtt { keys, next }) => {
                    self.level = Level::OneRtt;
                    self.one_rtt_keys = Some(keys);
                    self.next = Some(next);
                }
                None if wrote => {}
                None => break,
            }
        }
        self.secrets.extend(key_log::take());
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("level", &self.level)
            .field("handshaking", &self.is_handshaking())
            .finish_non_exhaustive()
    }
}

/// TLS of a client for one application protocol. It works inside [`super::drawing_from`] only.
pub fn client_config(alpn: &[u8]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(&CLIENT);
    config.alpn_protocols = vec![alpn.to_vec()];
    Arc::new(config)
}

/// As [`client_config`], of the server whose certificate is [`certificate::certificate`], followed by so many others.
pub fn server_config(alpn: &[u8], intermediates: usize) -> Arc<ServerConfig> {
    let mut config = if intermediates == 0 {
        SERVER.clone()
    } else {
        server_with(certificate::chain(intermediates))
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    Arc::new(config)
}

/// Has a server keep its sessions, and give tickets for them.
pub fn keep(config: &mut ServerConfig, sessions: Arc<dyn StoresServerSessions>) {
    config.session_storage = sessions;
    config.send_tls13_tickets = TICKETS;
}

/// No session is resumed: what is kept for that belongs to a host, not to the process.
static CLIENT: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let provider = provider();
    let verifier = ThisOne {
        algorithms: provider.signature_verification_algorithms,
    };
    let mut config = ClientConfig::builder_with_details(provider, Arc::new(Epoch))
        .with_protocol_versions(&[&TLS13])
        .expect("the suite is of TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.key_log = Arc::new(Collector);
    Arc::new(config)
});

static SERVER: LazyLock<ServerConfig> = LazyLock::new(|| server_with(certificate::chain(0)));

fn server_with(chain: Vec<CertificateDer<'static>>) -> ServerConfig {
    let mut config = ServerConfig::builder_with_details(provider(), Arc::new(Epoch))
        .with_protocol_versions(&[&TLS13])
        .expect("the suite is of TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, certificate::key())
        .expect("the key belongs to the certificate");
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.key_log = Arc::new(Collector);
    config.send_tls13_tickets = 0;
    config
}

/// Nothing checked here depends on the date.
#[derive(Debug)]
struct Epoch;

impl TimeProvider for Epoch {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::ZERO))
    }
}
