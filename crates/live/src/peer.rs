//! One connection whose packets are bytes.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polypath_trace::frame::{Envelope, FrameBuilder, Mac};
use polypath_transport::{
    Accept, Algorithms, Arrival, BlackHoles, Config, Connection, MILLISECOND, Mib, Nanos, Ports,
    Retained, Segment, Sessions, Tuple,
};
use polypath_transport::{Codepoint, RegistryError};
use polypath_wire::mptcp::{MpJoin, MptcpOption};
use polypath_wire::tcp::Flags;
use polypath_wire::{ip, payload, tcp};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

use crate::LiveError;
use crate::settings::{Deed, Outcome, Role, Settings, Subflow};

/// Number of the payload of each direction: client to server, server to client.
const STREAMS: [u64; 2] = [1, 2];
/// Hosts send with this TTL (Linux ip_default_ttl).
const TTL: u8 = 64;
const ETHERNET_HEADER: usize = 14;

/// A connection of a host with several addresses, all of them on the interface that carries its packets.
pub struct Peer {
    settings: Settings,
    config: Arc<Config>,
    connection: Option<Connection>,
    builder: FrameBuilder,
    identification: u16,
    black_holes: BTreeSet<IpAddr>,
    stage: Stage,
    received: u64,
}

/// Progress of the outgoing stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Waits for subflows.
    Waiting,
    /// The first bytes are written. Actions are pending.
    Acting,
    Closed,
}

impl Peer {
    /// A client's connection opens at once.
    ///
    /// # Errors
    /// An algorithm that does not exist.
    pub fn new(settings: Settings, now: Nanos) -> Result<Self, LiveError> {
        let config = Arc::new(Config {
            path_manager: settings.path_manager.as_str().into(),
            checksum: settings.checksum,
            ..Config::default()
        });
        Algorithms::default().path_manager(&config)?;
        let mut peer = Self {
            config,
            connection: None,
            builder: FrameBuilder::new(),
            identification: 0,
            black_holes: BTreeSet::new(),
            stage: Stage::Waiting,
            received: 0,
            settings,
        };
        if peer.settings.role == Role::Connect {
            let host = peer.host();
            let tuple = Tuple {
                local: SocketAddr::new(peer.settings.local[0], host.ports.next()),
                remote: peer.settings.remote,
            };
            peer.connection = Some(Connection::connect(host, tuple, now)?);
            peer.advance(now);
        }
        Ok(peer)
    }

    fn host(&self) -> Accept {
        Accept {
            config: self.config.clone(),
            algorithms: Algorithms::default(),
            addresses: self.settings.local.iter().map(|&a| (a, false)).collect(),
            mtus: Vec::new(),
            ports: Ports::default(),
            black_holes: BlackHoles::default(),
            random: Pcg64Mcg::seed_from_u64(self.settings.seed),
            sessions: Sessions::default(),
            retained: Retained::default(),
            isn: None,
        }
    }

    /// Writes, acts and closes as the subflows' progress allows.
    fn advance(&mut self, now: Nanos) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if self.stage == Stage::Waiting {
            let able = connection.paths().iter().filter(|path| path.established);
            if able.count() < self.settings.subflows {
                return;
            }
            connection.write(self.settings.send, now);
            self.stage = Stage::Acting;
        }
        if self.stage == Stage::Acting {
            let actions = &mut self.settings.actions;
            while let Some(action) = actions.first()
                && acked(connection, action.address) >= action.acked
            {
                match action.deed {
                    Deed::Backup => connection.set_backup(action.address, true, now),
                    Deed::Remove => connection.set_address_up(action.address, false, now),
                    Deed::BlackHole => {
                        self.black_holes.insert(action.address);
                    }
                }
                actions.remove(0);
            }
            if actions.is_empty() {
                connection.write(self.settings.held, now);
                connection.close(now);
                self.stage = Stage::Closed;
            }
        }
    }

    fn streams(&self) -> (u64, u64) {
        match self.settings.role {
            Role::Connect => (STREAMS[0], STREAMS[1]),
            Role::Accept => (STREAMS[1], STREAMS[0]),
        }
    }

    /// Takes an IP packet; what is no TCP segment for this host is passed over.
    ///
    /// # Errors
    /// None of a packet; a congestion control that does not exist.
    pub fn receive(&mut self, packet: &[u8], now: Nanos) -> Result<(), RegistryError> {
        let Ok((header, body)) = ip::parse(packet) else {
            return Ok(());
        };
        let (source, destination) = header.addresses();
        if header.protocol() != ip::protocol::TCP || !self.settings.local.contains(&destination) {
            return Ok(());
        }
        let corrupted = !tcp::verify_checksum(body, (source, destination));
        let Ok((from, to, segment, bytes)) = tcp::parse(body) else {
            return Ok(());
        };
        if self.black_holes.contains(&destination) {
            return Ok(());
        }
        let tuple = Tuple {
            local: SocketAddr::new(destination, to),
            remote: SocketAddr::new(source, from),
        };
        let arrival = Arrival {
            ecn: Codepoint::of(header.ecn()),
            corrupted,
            ..Arrival::default()
        };
        self.dispatch(tuple, segment, bytes, arrival, now)
    }

    fn dispatch(
        &mut self,
        tuple: Tuple,
        mut segment: Segment,
        bytes: &[u8],
        arrival: Arrival,
        now: Nanos,
    ) -> Result<(), RegistryError> {
        let opening = segment.flags & (Flags::SYN | Flags::ACK) == Flags::SYN;
        let (_, incoming) = self.streams();
        let Some(connection) = &mut self.connection else {
            if opening && !arrival.corrupted && self.settings.role == Role::Accept {
                self.connection = Some(Connection::accept(
                    self.host(),
                    tuple,
                    (&segment, arrival.ecn),
                    now,
                )?);
                self.advance(now);
            }
            return Ok(());
        };
        let known = connection
            .subflows()
            .iter()
            .rposition(|subflow| subflow.tuple == tuple);
        if let Some(me) = known {
            segment.payload.offset = connection.locate(me, &segment).unwrap_or(0);
            if payload::check(incoming, segment.payload.offset, bytes).is_err() {
                segment.payload.offset = !segment.payload.offset;
            }
            connection.on_segment(me, &segment, arrival, now);
        } else if opening && !arrival.corrupted {
            let token = segment.mptcp().iter().find_map(|option| match option {
                MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
                _ => None,
            });
            if token.is_some() && token == connection.token() && connection.accepts_joins() {
                connection.accept_join(tuple, (&segment, arrival.ecn), now)?;
            }
        }
        Ok(())
    }

    /// Does what is due by now: timers, actions, reading.
    pub fn tick(&mut self, now: Nanos) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if connection.next_deadline() <= now {
            connection.on_time(now);
        }
        self.received += connection.read(connection.available(), now);
        if now >= self.settings.limit_ms * MILLISECOND {
            connection.abort(now);
        }
        self.advance(now);
    }

    /// The IP packets to be sent now.
    pub fn transmit(&mut self) -> Vec<Vec<u8>> {
        let (outgoing, _) = self.streams();
        let Some(connection) = &mut self.connection else {
            return Vec::new();
        };
        connection.events().clear();
        let mut packets = Vec::new();
        for transmit in std::mem::take(connection.transmits()) {
            let tuple = connection.subflows()[transmit.subflow].tuple;
            if self.black_holes.contains(&tuple.local.ip()) {
                continue;
            }
            self.identification = self.identification.wrapping_add(1);
            let envelope = Envelope {
                src_mac: Mac::default(),
                dst_mac: Mac::default(),
                src: tuple.local.ip(),
                dst: tuple.remote.ip(),
                ttl: TTL,
                identification: self.identification,
                ecn: 0,
                corrupted: false,
            };
            let segment = &transmit.segment;
            let dsn = connection.data_sequence(segment.payload.offset);
            let ports = (tuple.local.port(), tuple.remote.port());
            let mut frame = Vec::new();
            let built = self
                .builder
                .tcp(&envelope, ports, segment, outgoing, dsn, &mut frame);
            if built.is_ok() {
                packets.push(frame.split_off(ETHERNET_HEADER));
            }
        }
        packets
    }

    /// When [`Peer::tick`] has something to do at the latest.
    pub fn next_deadline(&self) -> Nanos {
        let limit = self.settings.limit_ms * MILLISECOND;
        let Some(connection) = &self.connection else {
            return limit;
        };
        connection.next_deadline().min(limit)
    }

    /// Whether there is nothing more to do.
    pub fn over(&self, now: Nanos) -> bool {
        let ended = |connection: &Connection| connection.ended().is_some();
        self.connection.as_ref().is_some_and(ended) || now >= self.settings.limit_ms * MILLISECOND
    }

    pub fn outcome(&self) -> Outcome {
        let connection = self.connection.as_ref();
        let subflows = connection.into_iter().flat_map(|connection| {
            let parts = connection.subflows().iter().zip(connection.paths());
            parts.map(|(subflow, path)| Subflow {
                local: subflow.tuple.local,
                remote: subflow.tuple.remote,
                established: subflow.established_at.is_some(),
                acked: path.acked,
                received: subflow.socket().totals().received,
            })
        });
        let counters = Mib::ALL.iter().filter_map(|&(mib, name)| {
            let value = connection?.counters().value(mib);
            (value > 0).then_some((name, u64::from(value)))
        });
        Outcome {
            ended: connection
                .and_then(Connection::ended)
                .map(|reason| format!("{reason:?}").to_lowercase()),
            multipath: connection.is_some_and(Connection::multipath),
            received: self.received,
            subflows: subflows.collect(),
            counters: counters.collect(),
        }
    }
}

/// Bytes that the remote side acknowledged on the subflows of a local address.
fn acked(connection: &Connection, address: IpAddr) -> u64 {
    let parts = connection.subflows().iter().zip(connection.paths());
    parts
        .filter(|(subflow, _)| subflow.tuple.local.ip() == address)
        .map(|(_, path)| path.acked)
        .sum()
}
