//! The settings of noq. Everything that is not listed here keeps noq's default.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use noq_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use noq_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use polypath_transport::{AckFrequency, MILLISECOND, Nanos, SECOND};

use crate::meter::Factory;

/// Congestion windows are given in packets of so many bytes (noq's `BASE_DATAGRAM_SIZE`).
const BASE_DATAGRAM: u64 = 1200;

/// The congestion controls of noq that mean what Polypath's of the same name mean. Its third is BBR version 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    Reno,
    Cubic,
}

impl Congestion {
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "reno" => Some(Self::Reno),
            "cubic" => Some(Self::Cubic),
            _ => None,
        }
    }

    fn factory(self, window: u64) -> Arc<Factory> {
        let factory: Arc<dyn ControllerFactory + Send + Sync> = match self {
            Self::Reno => {
                let mut config = NewRenoConfig::default();
                config.initial_window(window);
                Arc::new(config)
            }
            Self::Cubic => {
                let mut config = CubicConfig::default();
                config.initial_window(window);
                Arc::new(config)
            }
        };
        Arc::new(Factory(factory))
    }
}

/// Settings of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub congestion: Congestion,
    /// Of the congestion window, in packets of 1200 bytes.
    pub initial_window: u32,
    /// Bytes that may be unread on a stream. On all of them together there is no limit.
    pub receive_window: u64,
    /// Bytes that may be unacknowledged.
    pub send_window: u64,
    /// UDP payload that the search for the path's MTU ends at.
    pub longest_datagram: u16,
    /// Paths at a time; absent: without the extension.
    pub paths: Option<NonZeroU32>,
    /// After so long without a packet the connection is given up.
    pub idle: Nanos,
    /// After so long without a packet a path is abandoned; absent: never.
    pub path_idle: Option<Nanos>,
    /// A path on which nothing came for so long is tried.
    pub keepalive: Option<Nanos>,
    /// Bytes of its connection ids.
    pub id_len: usize,
    /// A server asks for a token by Retry.
    pub retry: bool,
    /// Certificates that follow a server's own.
    pub intermediates: usize,
    /// What the peer's acknowledgements are asked for; absent: noq offers this and asks for nothing.
    pub ack_frequency: Option<AckFrequency>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            congestion: Congestion::Cubic,
            initial_window: 10,
            receive_window: RECEIVE_WINDOW,
            send_window: 8 * RECEIVE_WINDOW,
            longest_datagram: LONGEST_DATAGRAM,
            paths: None,
            idle: 30 * SECOND,
            path_idle: None,
            keepalive: None,
            id_len: 8,
            retry: false,
            intermediates: 0,
            ack_frequency: None,
        }
    }
}

/// The same in noq's terms.
fn asked(of: AckFrequency) -> AckFrequencyConfig {
    let mut config = AckFrequencyConfig::default();
    config
        .ack_eliciting_threshold(of.packets.saturating_sub(1).into())
        .max_ack_delay(of.max_delay.map(Duration::from_nanos))
        .reordering_threshold(of.reordering.into());
    config
}

/// Where noq's search for the path's MTU ends as it ships.
pub const LONGEST_DATAGRAM: u16 = 1452;
/// Bytes that a stream may have unread as noq ships: what 100 Mbit/s carry in 100 ms. Eight times as many may be unacknowledged.
const RECEIVE_WINDOW: u64 = 1_250_000;

impl Settings {
    pub(crate) fn transport(&self) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        let idle = VarInt::from_u64(self.idle / MILLISECOND).expect("a short time");
        let keepalive = self.keepalive.map(Duration::from_nanos);
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(self.longest_datagram);
        let window = u64::from(self.initial_window) * BASE_DATAGRAM;
        let unread = VarInt::from_u64(self.receive_window).unwrap_or(VarInt::MAX);
        transport
            .stream_receive_window(unread)
            .send_window(self.send_window)
            .max_idle_timeout(Some(IdleTimeout::from(idle)))
            .mtu_discovery_config(Some(discovery))
            .max_concurrent_multipath_paths(self.paths.map_or(0, NonZeroU32::get))
            .default_path_keep_alive_interval(keepalive)
            .keep_alive_interval(keepalive)
            .default_path_max_idle_timeout(self.path_idle.map(Duration::from_nanos))
            .ack_frequency_config(self.ack_frequency.map(asked))
            .congestion_controller_factory(self.congestion.factory(window));
        Arc::new(transport)
    }
}
