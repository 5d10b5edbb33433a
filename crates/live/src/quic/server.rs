//! A server of files.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};

use polypath_transport::quic::bytes::destination;
use polypath_transport::quic::{Connection, Greeting, Listener, ResetKey, answer_bytes};
use polypath_transport::{
    Accept, BlackHoles, Config, NEVER, Nanos, Ports, Retained, SECOND, Sessions, Tuple,
};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::peer::Peer;
use super::request::{self, error};
use super::sockets::Sockets;
use super::{Algorithms, PathReport, Stop};
use crate::{Clock, LiveError};

/// Connections at a time; who comes beyond them is not answered.
const MOST: usize = 1000;

/// Stateless resets in a second.
const MOST_RESETS: u32 = 100;

/// What is served, and where.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// A folder, or one file, which is served by its name.
    pub root: PathBuf,
    /// Port 0: the kernel chooses.
    pub listen: Vec<SocketAddr>,
    /// Ends with the first connection whose handshake was completed.
    #[serde(default)]
    pub once: bool,
    #[serde(default)]
    pub algorithms: Algorithms,
    /// What the tokens of stateless resets are made of: a server that begins with it ends the connections of the one before. Left out: of
    /// the seed.
    #[serde(default)]
    pub reset_key: Option<[u8; 32]>,
    pub seed: u64,
}

/// What a server tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "news")]
pub enum News {
    Listening {
        at: Vec<SocketAddr>,
    },
    /// A connection whose handshake was completed is over.
    Ended {
        /// Where the client was at first.
        client: SocketAddr,
        /// `finished`, `reset`, `timed-out`, `aborted`.
        how: &'static str,
        /// Files that it asked for, and what came of it: their bytes.
        asked: Vec<(String, Option<u64>)>,
        multipath: bool,
        paths: Vec<PathReport>,
    },
}

/// Serves until `stop` says so, or as the settings say.
///
/// # Errors
/// A root that cannot be read, an address at which it cannot listen.
pub fn serve(
    settings: &Serve,
    tell: &mut dyn FnMut(News),
    stop: Stop<'_>,
) -> Result<(), LiveError> {
    let files = Files::new(&settings.root)?;
    let config = settings.algorithms.config()?;
    let mut random = Pcg64Mcg::seed_from_u64(settings.seed);
    let mut sockets = Sockets::listen(&settings.listen)?;
    tell(News::Listening {
        at: sockets.names(),
    });
    let listener = Listener::new(config.retry, random.next_u64());
    let reset_key = settings.reset_key.unwrap_or_else(|| {
        let mut key = [0; 32];
        random.fill_bytes(&mut key);
        key
    });
    let mut server = Server {
        files,
        addresses: sockets.names().iter().map(SocketAddr::ip).collect(),
        listener: listener.resetting(ResetKey::new(reset_key)),
        resets: Budget::default(),
        config,
        random,
        clients: Vec::new(),
    };
    let clock = Clock::starting_at(0);
    loop {
        let now = clock.now();
        let mut answers = Vec::new();
        sockets.take(|tuple, datagram| {
            let answer = server.receive(tuple, datagram, now);
            answers.extend(answer.map(|bytes| (tuple, bytes)));
        })?;
        for (tuple, bytes) in answers {
            sockets.send(tuple, bytes)?;
        }
        let mut done = false;
        for client in &mut server.clients {
            client.peer.on_time(now);
            client.answer(&server.files, now);
            client.peer.depart(&mut sockets, now)?;
            if let Some(news) = client.news(&sockets) {
                tell(news);
                done |= settings.once;
            }
        }
        server.clients.retain(|client| !client.peer.over(now));
        if done || stop() {
            return server.leave(&mut sockets, now);
        }
        let deadlines = server.clients.iter().map(|client| client.peer.deadline());
        let deadline = deadlines.min().unwrap_or(NEVER);
        sockets.wait(deadline.saturating_sub(clock.now()))?;
    }
}

struct Server {
    files: Files,
    addresses: Vec<IpAddr>,
    listener: Listener,
    resets: Budget,
    config: Arc<Config>,
    random: Pcg64Mcg,
    clients: Vec<Client>,
}

impl Server {
    /// A datagram that is for no connection may be answered.
    fn receive(&mut self, tuple: Tuple, datagram: &[u8], now: Nanos) -> Option<Vec<u8>> {
        let destination = destination(datagram);
        let known = self.clients.iter_mut().find(|client| {
            let connection = client.peer.connection();
            destination.is_some_and(|id| connection.identity().knows(&id))
        });
        if let Some(client) = known {
            client.peer.receive(tuple, datagram, now);
            return None;
        }
        match self.listener.greet_bytes(tuple, datagram, now) {
            Greeting::Answer(answer) => return Some(answer_bytes(&answer)),
            Greeting::Accept(admission) if self.clients.len() < MOST => {
                let host = Accept {
                    config: self.config.clone(),
                    algorithms: Default::default(),
                    addresses: self.addresses.iter().map(|&it| (it, false)).collect(),
                    mtus: Vec::new(),
                    ports: Ports::default(),
                    black_holes: BlackHoles::default(),
                    random: Pcg64Mcg::seed_from_u64(self.random.next_u64()),
                    sessions: Sessions::default(),
                    retained: Retained::default(),
                    isn: None,
                };
                let connection = Connection::admit(host, tuple, admission, now).ok()?;
                let mut client = Client::new(Peer::new(connection), tuple.remote);
                client.peer.receive(tuple, datagram, now);
                self.clients.push(client);
            }
            Greeting::Ignore => {
                let reset = self.listener.reset(datagram)?;
                return self.resets.has_one(now).then_some(reset);
            }
            Greeting::Accept(_) => {}
        }
        None
    }

    /// Clients are told that it is over.
    fn leave(mut self, sockets: &mut Sockets, now: Nanos) -> Result<(), LiveError> {
        for client in &mut self.clients {
            client.peer.close(now);
            client.peer.depart(sockets, now)?;
        }
        Ok(())
    }
}

/// How many stateless resets may leave (RFC 9000 section 10.3.3).
#[derive(Default)]
struct Budget {
    second: Nanos,
    spent: u32,
}

impl Budget {
    fn has_one(&mut self, now: Nanos) -> bool {
        let second = now / SECOND;
        if second != self.second {
            *self = Self { second, spent: 0 };
        }
        self.spent += 1;
        self.spent <= MOST_RESETS
    }
}

/// A connection.
struct Client {
    peer: Peer,
    at: SocketAddr,
    /// What came of requests that are not complete.
    requests: BTreeMap<u64, Vec<u8>>,
    asked: Vec<(String, Option<u64>)>,
    told: bool,
}

impl Client {
    fn new(peer: Peer, at: SocketAddr) -> Self {
        Self {
            peer,
            at,
            requests: BTreeMap::new(),
            asked: Vec::new(),
            told: false,
        }
    }

    /// Reads requests, and begins to answer those that are complete.
    fn answer(&mut self, files: &Files, now: Nanos) {
        for stream in self.peer.connection().streams().readable() {
            let request = self.requests.entry(stream).or_default();
            let ended = self.peer.read(stream, now, &mut |bytes| {
                let room = (request::LONGEST + 1).saturating_sub(request.len());
                request.extend_from_slice(&bytes[..bytes.len().min(room)]);
                Ok(())
            });
            if !matches!(ended, Ok(true)) {
                continue;
            }
            let request = self.requests.remove(&stream).unwrap_or_default();
            let name = request::named(&request).filter(|_| request.len() <= request::LONGEST);
            let Some(name) = name else {
                self.peer.give_up(stream, error::MALFORMED, now);
                continue;
            };
            let file = files.open(name);
            self.asked
                .push((name.into(), file.as_ref().map(|(_, len)| *len)));
            match file {
                Some((file, len)) => self.peer.send(stream, Box::new(file), len, now),
                None => self.peer.give_up(stream, error::NO_FILE, now),
            }
        }
    }

    /// Once it is over.
    fn news(&mut self, sockets: &Sockets) -> Option<News> {
        let connection = self.peer.connection();
        let how = connection.ended()?.name();
        if self.told || !connection.established() {
            return None;
        }
        self.told = true;
        Some(News::Ended {
            client: self.at,
            how,
            asked: std::mem::take(&mut self.asked),
            multipath: connection.multipath(),
            paths: self.peer.paths(sockets),
        })
    }
}

/// What is served.
enum Files {
    One(String, PathBuf),
    Folder(PathBuf),
}

impl Files {
    fn new(root: &Path) -> Result<Self, LiveError> {
        let fault = |error| LiveError::File(root.display().to_string(), error);
        let root = root.canonicalize().map_err(fault)?;
        if root.is_dir() {
            return Ok(Self::Folder(root));
        }
        File::open(&root).map_err(fault)?;
        let name = root.file_name().unwrap_or_default();
        Ok(Self::One(name.to_string_lossy().into_owned(), root))
    }

    /// A file that can be read, and its length. Nothing outside the folder is one, wherever links point.
    fn open(&self, name: &str) -> Option<(File, u64)> {
        let path = match self {
            Self::One(own, path) => (own == name).then(|| path.clone())?,
            Self::Folder(root) => {
                let normal = |part| matches!(part, Component::Normal(_));
                let inside = Path::new(name).components().all(normal);
                let path = root.join(name).canonicalize().ok()?;
                (inside && path.starts_with(root)).then_some(path)?
            }
        };
        if !path.metadata().ok()?.is_file() {
            return None;
        }
        let file = File::open(path).ok()?;
        let len = file.metadata().ok()?.len();
        Some((file, len))
    }
}
