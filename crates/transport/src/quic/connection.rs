//! A connection: its paths, its streams, and the calls by which its owner drives it.
//!
//! The owner passes these in:
//!
//! - datagrams ([`Connection::on_datagram`]) and the time ([`Connection::on_time`])
//! - the application's calls ([`Connection::write`], [`Connection::read`], [`Connection::close`])
//!
//! After each call it takes the output ([`Connection::transmits`]), the events ([`Connection::events`]), and the time
//! of the next call ([`Connection::next_deadline`]).

use polypath_wire::quic::{ConnectionId, TransportParameters};
use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Map;

use super::ack_frequency;
use super::control::Control;
use super::crypto::Session;
use super::datagrams::{self, Datagrams};
use super::handshake::Handshake;
use super::id::random_id;
use super::identity::Identity;
use super::lifetime::{IDLE, Lifetime};
use super::listener::Admission;
use super::output::{Output, Transmit};
use super::packets::Packets;
use super::parameters::Parameters;
use super::path::PathState;
use super::path_ids::PATHS;
use super::path_management::PathManagement;
use super::paths::Paths;
use super::spares::Spares;
use super::streams::{STREAMS, Streams};
use super::transfer::Transfer;
use crate::accept::Accept;
use crate::algorithms::Algorithms;
use crate::host::Egress;
use crate::path::Path;
use crate::path_manager::FIRST;
use crate::policy::{Addresses, Policy};
use crate::scheduler::{self, Rescuer, Scheduler};
use crate::settings::Config;
use crate::{CloseReason, Event, MILLISECOND, Nanos, Purpose, Tuple};
use polypath_settings::RegistryError;

/// The application protocol of the handshake: HTTP/0.9 over QUIC, as interoperability tests name it.
pub const PROTOCOL: &[u8] = b"hq-interop";

/// One end of a QUIC connection.
pub struct Connection {
    pub(super) transfer: Transfer,
    pub(super) path_management: PathManagement,
    pub(super) deadline: Nanos,
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
            retained,
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
        let policy = Policy::new(
            scheduler,
            rescuer,
            algorithms.path_manager(&config)?,
            Addresses::new(local, tuple.remote.ip(), Egress::new(mtus, ports)),
        );
        let keepalive = config.keepalive.as_ref().map(|probing| probing.time);
        let packets = Packets {
            now,
            random,
            handshake: Handshake::new(session, now),
            identity,
            parameters: Parameters::new(parameters),
            paths: Paths::new(Pcg64Mcg::seed_from_u64(!seed), algorithms, retained),
            control: Control::default(),
            lifetime: Lifetime::new(now, keepalive),
            output: Output::default(),
            config,
        };
        let transfer = Transfer {
            packets,
            streams: Streams::new(client, window),
            datagrams: Datagrams::default(),
            policy,
        };
        let mut connection = Self {
            transfer,
            path_management: PathManagement::default(),
            deadline: 0,
        };
        connection
            .path_management
            .add_path(&mut connection.transfer, 0, tuple, FIRST)?;
        let backup = connection.transfer.policy.addresses().is_backup(0);
        connection.transfer.packets.paths[0]
            .status_mut()
            .set_local(backup);
        if client {
            // The client chose the server's address (RFC 9000 section 8.1).
            connection.transfer.packets.paths[0].reach_mut().validate();
        }
        if retry_source.is_some() {
            // It returned the token (RFC 9000 section 8.1.2).
            connection.transfer.packets.paths[0].reach_mut().validate();
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

    /// Datagrams to be sent, in order.
    pub fn transmits(&mut self) -> &mut Vec<Transmit> {
        self.transfer.packets.output.transmits()
    }

    /// Room for datagrams to be sent. Its owner may put in those that it is done with; without them each is allocated.
    pub fn spares(&mut self) -> &mut Spares {
        self.transfer.packets.output.spares()
    }

    /// Whether [`Connection::events`] has any.
    pub fn has_events(&self) -> bool {
        self.transfer.packets.output.has_events()
    }

    /// What happened since this was last emptied.
    pub fn events(&mut self) -> &mut Vec<Event> {
        self.transfer.packets.output.events()
    }

    /// Tells each scheduler decision as an event.
    pub fn record_decisions(&mut self) {
        self.transfer.packets.output.tell_decisions();
    }

    /// The handshake is complete on this side.
    pub fn established(&self) -> bool {
        self.transfer.packets.lifetime.established()
    }

    pub fn ended(&self) -> Option<CloseReason> {
        self.transfer.packets.lifetime.ended()
    }

    /// Both sides speak RFC 10069.
    pub fn multipath(&self) -> bool {
        self.transfer.packets.parameters.multipath()
    }

    /// Its paths, in the order in which this side came to know them.
    pub fn members(&self) -> &[PathState] {
        self.transfer.packets.paths.all()
    }

    /// What schedulers see of them.
    pub fn paths(&self) -> &[Path] {
        self.transfer.packets.paths.all_shown()
    }

    /// What packets are made of, and what became of them.
    pub fn packets(&self) -> &Packets {
        &self.transfer.packets
    }

    pub fn packets_mut(&mut self) -> &mut Packets {
        &mut self.transfer.packets
    }

    /// The ids of both ends.
    pub fn identity(&self) -> &Identity {
        &self.transfer.packets.identity
    }

    /// How and when it ends.
    pub fn lifetime(&self) -> &Lifetime {
        &self.transfer.packets.lifetime
    }

    /// Both halves of all streams.
    pub fn streams(&self) -> &Streams {
        &self.transfer.streams
    }

    /// Bytes written and not acknowledged; and those never sent.
    pub fn send_queue(&self) -> (u64, u64) {
        (
            self.transfer.streams.outgoing().unacknowledged(),
            self.transfer.streams.outgoing().unsent(),
        )
    }

    /// How the datagrams were sent that come next: for [`Connection::blocked`] alone.
    #[inline]
    pub fn expect_purpose(&mut self, purpose: Purpose) {
        self.transfer.streams.expect(purpose);
    }

    /// What the application may leave unacknowledged, and unread.
    pub fn buffers(&self) -> (u64, u64) {
        (
            self.transfer.packets.config.send_buffer.maximum,
            self.transfer.streams.incoming().window(),
        )
    }

    /// What the peer may still send.
    pub fn receive_window(&self) -> u64 {
        self.transfer.streams.incoming().offered()
    }
}
