//! A client that fetches one file.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use polypath_transport::quic::Connection;
use polypath_transport::{
    Accept, BlackHoles, CloseReason, Nanos, Ports, Retained, Sessions, Tuple,
};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::peer::Peer;
use super::request;
use super::sockets::Sockets;
use super::{Algorithms, PathReport, Stop};
use crate::{Clock, LiveError};

/// What is to be fetched, and from where.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    pub server: SocketAddr,
    pub name: String,
    /// Local addresses, the first one that of the first path.
    pub from: Vec<IpAddr>,
    #[serde(default)]
    pub algorithms: Algorithms,
    /// Connections of one seed have the same ids and keys.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Fetched {
    pub bytes: u64,
    /// In hexadecimal.
    pub sha256: String,
    /// From the first packet to the last byte.
    pub nanoseconds: u64,
    pub multipath: bool,
    pub paths: Vec<PathReport>,
}

/// Fetches a file and writes it, in order, to `into`.
///
/// # Errors
/// Addresses that this host does not have, a server that does not answer or does not have the file, `into` that takes no more, and
/// [`LiveError::Stopped`]. Something may have been written then.
pub fn fetch(settings: &Fetch, into: &mut dyn Write, stop: Stop<'_>) -> Result<Fetched, LiveError> {
    let server = settings.server;
    for from in &settings.from {
        if from.is_ipv4() != server.is_ipv4() {
            return Err(LiveError::Family(*from, server.ip()));
        }
    }
    let first = settings.from.first().copied();
    let first = first.map_or_else(|| source_towards(server), Ok)?;
    let mut sockets = Sockets::listen(&[SocketAddr::new(first, 0)])?;
    let local = sockets.names()[0];
    for &other in settings.from.iter().skip(1) {
        sockets.named(SocketAddr::new(other, local.port()))?;
    }
    let mut client = Client::connect(settings, local)?;
    let mut write = |bytes: &[u8]| {
        let wrote = into.write_all(bytes);
        wrote.map_err(LiveError::Interface)
    };
    client.run(&mut sockets, &mut write, stop)
}

/// The address from which the kernel would send.
fn source_towards(server: SocketAddr) -> Result<IpAddr, LiveError> {
    let any: IpAddr = if server.is_ipv4() {
        [0; 4].into()
    } else {
        [0; 16].into()
    };
    let probe = std::net::UdpSocket::bind((any, 0))?;
    let connected = probe.connect(server);
    connected.map_err(|error| LiveError::Bind(server.ip(), error))?;
    Ok(probe.local_addr()?.ip())
}

struct Client<'a> {
    settings: &'a Fetch,
    peer: Peer,
    clock: Clock,
    stream: Option<u64>,
    came: u64,
    hash: Sha256,
    /// When the last byte came.
    complete_at: Option<Nanos>,
}

impl<'a> Client<'a> {
    fn connect(settings: &'a Fetch, local: SocketAddr) -> Result<Self, LiveError> {
        let host = Accept {
            config: settings.algorithms.config()?,
            algorithms: Default::default(),
            addresses: settings.from.iter().map(|&it| (it, false)).collect(),
            mtus: Vec::new(),
            ports: Ports::default(),
            black_holes: BlackHoles::default(),
            random: Pcg64Mcg::seed_from_u64(settings.seed),
            sessions: Sessions::default(),
            retained: Retained::default(),
            isn: None,
        };
        let tuple = Tuple {
            local,
            remote: settings.server,
        };
        Ok(Self {
            settings,
            peer: Peer::new(Connection::connect(host, tuple, 0)?),
            clock: Clock::starting_at(0),
            stream: None,
            came: 0,
            hash: Sha256::new(),
            complete_at: None,
        })
    }

    fn run(
        &mut self,
        sockets: &mut Sockets,
        write: &mut dyn FnMut(&[u8]) -> Result<(), LiveError>,
        stop: Stop<'_>,
    ) -> Result<Fetched, LiveError> {
        loop {
            let now = self.clock.now();
            let peer = &mut self.peer;
            sockets.take(|tuple, datagram| peer.receive(tuple, datagram, now))?;
            peer.on_time(now);
            let result = self.advance(now, write);
            if result.is_err() || stop() {
                self.peer.close(now);
                self.peer.depart(sockets, now)?;
                return Err(result.err().unwrap_or(LiveError::Stopped));
            }
            self.peer.depart(sockets, now)?;
            match self.complete_at {
                Some(at) if self.peer.over(now) => return Ok(self.fetched(at, sockets)),
                _ => {}
            }
            sockets.wait(self.peer.deadline().saturating_sub(self.clock.now()))?;
        }
    }

    /// Asks for the file, takes what has come of it, and closes the connection after its end.
    fn advance(
        &mut self,
        now: Nanos,
        write: &mut dyn FnMut(&[u8]) -> Result<(), LiveError>,
    ) -> Result<(), LiveError> {
        if self.complete_at.is_some() {
            return Ok(());
        }
        if self.stream.is_none() && self.peer.connection().established() {
            let request = request::request(&self.settings.name);
            self.stream = self.peer.request(request, now);
        }
        if let Some(stream) = self.stream {
            if let Some(error) = self.peer.connection().streams().reset_by_peer(stream) {
                let (server, meaning) = (self.settings.server, request::error::meaning(error));
                return Err(LiveError::GivenUp(server, self.came, meaning, error));
            }
            let mut taken = Vec::new();
            let ended = self.peer.read(stream, now, &mut |bytes| {
                taken.extend_from_slice(bytes);
                Ok(())
            })?;
            self.came += taken.len() as u64;
            self.hash.update(&taken);
            write(&taken)?;
            if ended {
                self.complete_at = Some(now);
                self.peer.close(now);
                return Ok(());
            }
        }
        match self.peer.connection().ended() {
            None => Ok(()),
            Some(reason) => Err(self.failure(reason)),
        }
    }

    fn failure(&self, reason: CloseReason) -> LiveError {
        let (server, came) = (self.settings.server, self.came);
        let Some(cause) = self.peer.connection().lifetime().cause() else {
            return match reason {
                CloseReason::Unreachable => LiveError::Unanswered(server),
                CloseReason::Reset => LiveError::Forgotten(server, came),
                _ => LiveError::Silent(server, came),
            };
        };
        let said = match cause.reason.as_str() {
            "" => String::new(),
            text => format!(" ({})", text.escape_debug()),
        };
        if cause.by_peer {
            LiveError::Refused(server, cause.error, said, came)
        } else {
            LiveError::Violated(server, cause.error, said, came)
        }
    }

    fn fetched(&self, at: Nanos, sockets: &Sockets) -> Fetched {
        let digest = self.hash.clone().finalize();
        Fetched {
            bytes: self.came,
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            nanoseconds: at,
            multipath: self.peer.connection().multipath(),
            paths: self.peer.paths(sockets),
        }
    }
}
