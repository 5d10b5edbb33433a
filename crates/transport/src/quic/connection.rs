//! A connection: its paths, its streams, and the calls by which its owner drives it.
//!
//! The owner hands in datagrams ([`Connection::on_datagram`]), the time ([`Connection::on_time`]), and the
//! application's calls ([`Connection::write`], [`Connection::read`], [`Connection::close`]). After each call it takes
//! datagrams to send ([`Connection::transmits`]) and events ([`Connection::events`]). Then it asks when to call again
//! ([`Connection::next_deadline`]).

use std::net::IpAddr;
use std::sync::Arc;

use polypath_wire::quic::{ConnectionId, Packet, TransportError, TransportParameters};
use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Map;

use super::ack_frequency;
use super::closed::Close;
use super::control::Control;
use super::crypto::Session;
use super::datagram_size::DatagramSize;
use super::datagrams::{self, Datagrams};
use super::handshake::Handshake;
use super::id::{LEN, random_id};
use super::identity::Identity;
use super::lifetime::{IDLE, Lifetime};
use super::listener::Admission;
use super::output::{Output, Transmit};
use super::parameters::Parameters;
use super::path::PathState;
use super::path_ids::{PATHS, PathIds};
use super::paths::Paths;
use super::route::Route;
use super::spares::Spares;
use super::streams::{STREAMS, Streams};
use crate::accept::Accept;
use crate::algorithms::Algorithms;
use crate::host::Egress;
use crate::path::Path;
use crate::path_manager::{FIRST, Pair};
use crate::policy::{Addresses, Policy};
use crate::scheduler::{self, Rescuer, Scheduler};
use crate::settings::Config;
use crate::stream::Blocked;
use crate::{CloseReason, Event, EventKind, MILLISECOND, Nanos, Purpose, Tuple};
use polypath_settings::RegistryError;

/// The application protocol of the handshake: HTTP/0.9 over QUIC, as interoperability tests name it.
pub(super) const PROTOCOL: &[u8] = b"hq-interop";

/// One end of a QUIC connection.
pub struct Connection {
    pub(super) config: Arc<Config>,
    pub(super) now: Nanos,
    pub(super) random: Pcg64Mcg,
    pub(super) handshake: Handshake,
    pub(super) identity: Identity,
    pub(super) parameters: Parameters,
    pub(super) paths: Paths,
    pub(super) control: Control,
    pub(super) streams: Streams,
    pub(super) datagrams: Datagrams,
    pub(super) policy: Policy,
    pub(super) path_ids: PathIds,
    pub(super) lifetime: Lifetime,
    pub(super) deadline: Nanos,
    pub(super) output: Output,
}

/// The scheduler and what helps beside it. Without Multipath QUIC there is nothing to choose, and a scheduler that fills queues, which a path
/// of QUIC does not have, gives way.
fn scheduler_for(
    config: &Config,
    algorithms: &Algorithms,
) -> Result<(Box<dyn Scheduler>, Rescuer), RegistryError> {
    let chosen = algorithms.scheduler(config)?;
    let rescuer = chosen.rescuer();
    let scheduler = match config.multipath || !chosen.fills_queues() {
        true => chosen,
        false => scheduler::REGISTRY.make("default", &Map::new())?,
    };
    Ok((scheduler, rescuer))
}

impl Connection {
    fn new(
        host: Accept,
        tuple: Tuple,
        client: bool,
        admission: Option<Admission>,
        now: Nanos,
    ) -> Result<Self, RegistryError> {
        let local = host.local_addresses(tuple.local.ip());
        let Accept {
            config,
            algorithms,
            addresses: _,
            mtus,
            ports,
            black_holes: _,
            mut random,
            sessions,
            isn: _,
        } = host;
        let sessions = config.resumption.then_some(sessions);
        let source = random_id(&mut random);
        let admission = admission.unwrap_or_else(|| Admission {
            original_destination: random_id(&mut random),
            retry_source: None,
            reset_key: None,
            intermediates: 0,
        });
        let identity = Identity::new(client, source, &admission);
        let Admission {
            original_destination,
            retry_source,
            reset_key,
            intermediates,
        } = admission;
        let window = config
            .receive_buffer
            .maximum
            .max(config.receive_buffer.default);
        let parameters = TransportParameters {
            original_destination_connection_id: (!client).then_some(original_destination),
            retry_source_connection_id: retry_source,
            // RFC 9000 section 18.2.
            stateless_reset_token: reset_key.map(|key| key.token(&source)),
            max_idle_timeout: IDLE / MILLISECOND,
            initial_max_data: window,
            initial_max_stream_data_bidi_local: window,
            initial_max_stream_data_bidi_remote: window,
            initial_max_stream_data_uni: window,
            initial_max_streams_bidi: STREAMS,
            initial_max_streams_uni: STREAMS,
            initial_source_connection_id: Some(source),
            max_datagram_frame_size: datagrams::LONGEST,
            initial_max_path_id: config.multipath.then_some(PATHS),
            min_ack_delay: ack_frequency::offer(&config),
            ..TransportParameters::default()
        };
        let mut encoded = Vec::new();
        parameters
            .encode(&mut encoded)
            .expect("values within their bounds");
        let seed = random.next_u64();
        let session = if client {
            let kept = sessions.map(|kept| kept.with(tuple.remote.ip()));
            Session::client_with(seed, encoded, PROTOCOL, kept)
        } else {
            let kept = sessions.map(|kept| kept.of_clients());
            Session::server_with(seed, encoded, PROTOCOL, intermediates, kept)
        };
        let (scheduler, rescuer) = scheduler_for(&config, &algorithms)?;
        let mut connection = Self {
            now,
            handshake: Handshake::new(session, now),
            identity,
            parameters: Parameters::new(parameters),
            paths: Paths::new(Pcg64Mcg::seed_from_u64(!seed), algorithms.clone()),
            control: Control::default(),
            streams: Streams::new(client, window),
            datagrams: Datagrams::default(),
            policy: Policy::new(
                scheduler,
                rescuer,
                algorithms.path_manager(&config)?,
                Addresses::new(local, tuple.remote.ip(), Egress::new(mtus, ports)),
            ),
            path_ids: PathIds::default(),
            lifetime: Lifetime::new(now, config.keepalive.as_ref().map(|probing| probing.time)),
            deadline: 0,
            output: Output::default(),
            random,
            config,
        };
        connection.add_path(0, tuple, FIRST)?;
        let backup = connection.policy.addresses().is_backup(0);
        connection.paths[0].status_mut().set_local(backup);
        if client {
            // The client chose the server's address (RFC 9000 section 8.1).
            connection.paths[0].reach_mut().validate();
        }
        if retry_source.is_some() {
            // It returned the token (RFC 9000 section 8.1.2).
            connection.paths[0].reach_mut().validate();
        }
        Ok(connection)
    }

    /// Opens a connection from `tuple.local` to `tuple.remote`.
    ///
    /// # Errors
    /// An algorithm or parameter of the host's configuration does not exist.
    pub fn connect(host: Accept, tuple: Tuple, now: Nanos) -> Result<Self, RegistryError> {
        let mut connection = Self::new(host, tuple, true, None, now)?;
        connection.flush();
        Ok(connection)
    }

    /// A server's end for a client whose first packet was addressed to `original_destination`. The packet is to be handed to it next.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn accept(
        host: Accept,
        tuple: Tuple,
        original_destination: ConnectionId,
        now: Nanos,
    ) -> Result<Self, RegistryError> {
        let admission = Admission {
            original_destination,
            retry_source: None,
            reset_key: None,
            intermediates: 0,
        };
        Self::admit(host, tuple, admission, now)
    }

    /// A server's end for a client that a listener admits. The packet is to be handed to it next.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn admit(
        host: Accept,
        tuple: Tuple,
        admission: Admission,
        now: Nanos,
    ) -> Result<Self, RegistryError> {
        Self::new(host, tuple, false, Some(admission), now)
    }

    pub(super) fn add_path(
        &mut self,
        id: u64,
        tuple: Tuple,
        ids: Pair,
    ) -> Result<usize, RegistryError> {
        let mtu = self.mtu_of(tuple.local.ip());
        let takes = self.parameters.peer().max_udp_payload_size;
        let congestion = self.paths.make_congestion(&self.config)?;
        let route = Route::new(tuple, ids);
        let size = DatagramSize::new(tuple, mtu, takes);
        let mut member = PathState::new(&self.config, congestion, id, route, size);
        member
            .space_mut()
            .received
            .set_policy(self.parameters.ack_policy());
        if let Some((sequence, backup)) = self.path_ids.take_status(id) {
            member.status_mut().take(sequence, backup);
        }
        let mut path = Path::new(payload(member.datagram()), self.config.initial_window);
        path.multipath = self.config.multipath;
        path.paces = true;
        let index = self.paths.add(member, path);
        self.compare_timeouts();
        Ok(index)
    }

    /// The longest packet that leaves from an address.
    pub(super) fn mtu_of(&self, local: IpAddr) -> u32 {
        self.policy.addresses().egress().mtu(local, self.config.mtu)
    }

    /// Datagrams to be sent, in order.
    pub fn transmits(&mut self) -> &mut Vec<Transmit> {
        self.output.transmits()
    }

    /// Room for datagrams to be sent. Its owner may put in those that it is done with; without them each is allocated.
    pub fn spares(&mut self) -> &mut Spares {
        self.output.spares()
    }

    /// Whether [`Connection::events`] has any.
    pub fn has_events(&self) -> bool {
        self.output.has_events()
    }

    /// What happened since this was last emptied.
    pub fn events(&mut self) -> &mut Vec<Event> {
        self.output.events()
    }

    pub(super) fn event(&mut self, kind: EventKind) {
        self.output.event(self.now, kind);
    }

    /// Tells each scheduler decision as an event.
    pub fn record_decisions(&mut self) {
        self.output.tell_decisions();
    }

    /// The handshake is complete on this side.
    pub fn established(&self) -> bool {
        self.lifetime.established()
    }

    pub fn ended(&self) -> Option<CloseReason> {
        self.lifetime.ended()
    }

    /// Both sides speak RFC 10069.
    pub fn multipath(&self) -> bool {
        self.parameters.multipath()
    }

    /// Its paths, in the order in which this side came to know them.
    pub fn members(&self) -> &[PathState] {
        self.paths.all()
    }

    /// What schedulers see of them.
    pub fn paths(&self) -> &[Path] {
        self.paths.all_shown()
    }

    /// As [`Connection::knows`], of a packet; what is usual is known soon.
    #[inline]
    pub fn knows_packet(&self, packet: &Packet) -> bool {
        self.identity.knows_packet(packet)
    }

    /// Whether packets with this destination are for this connection.
    pub fn knows(&self, destination: &ConnectionId) -> bool {
        self.identity.knows(destination)
    }

    /// Bytes written and not acknowledged; and those never sent.
    pub fn send_queue(&self) -> (u64, u64) {
        (
            self.streams.outgoing().unacknowledged(),
            self.streams.outgoing().unsent(),
        )
    }

    /// Bytes that wait for others before them in their stream.
    pub fn reassembly_bytes(&self) -> u64 {
        self.streams.incoming().reassembly_bytes()
    }

    /// How long data that arrived waited up to `now` for what comes before it in its stream, and what for. Where several streams wait at once, that
    /// counts once, and for the hole that is filled first.
    pub fn blocked(&self, now: Nanos) -> Vec<Blocked> {
        self.streams.blocked(now)
    }

    /// How the datagrams were sent that come next: for [`Connection::blocked`] alone.
    #[inline]
    pub fn expect_purpose(&mut self, purpose: Purpose) {
        self.streams.expect(purpose);
    }

    /// What the application may leave unacknowledged, and unread.
    pub fn buffers(&self) -> (u64, u64) {
        (
            self.config.send_buffer.maximum,
            self.streams.incoming().window(),
        )
    }

    /// What the peer may still send.
    pub fn receive_window(&self) -> u64 {
        self.streams.incoming().offered()
    }
}

/// Stream bytes in a packet full of them: without a short header with an id of eight bytes and a number of two, the fields of a STREAM
/// frame, the tag.
pub(super) fn payload(datagram: u32) -> u32 {
    datagram.saturating_sub((1 + LEN as u32 + 2) + 8 + polypath_wire::quic::TAG_LEN)
}

impl Connection {
    /// Closes the connection for an error of the peer's.
    pub(super) fn fail(&mut self, error: TransportError, frame_type: u64, reason: &'static str) {
        let close = Close {
            error: error.0,
            frame_type: Some(frame_type),
            reason,
        };
        self.close_with(close, CloseReason::Aborted);
    }

    /// Ends the connection and tells the peer why, unless it has ended.
    pub(super) fn close_with(&mut self, close: Close, reason: CloseReason) {
        if !self.lifetime.over() {
            self.lifetime.close(close);
            self.end(reason);
        }
    }

    pub(super) fn end(&mut self, reason: CloseReason) {
        if self.lifetime.over() {
            return;
        }
        self.lifetime.end(reason, self.longest_probe_timeout());
        self.streams.end(self.now);
        self.paths.close_all(self.now);
        self.compare_timeouts();
        self.event(EventKind::ConnectionClosed(reason));
    }
}
