//! noq as a stack of the lab.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use polypath_noq::{self as noq, Arrival, Connection, Content, Settings};
use polypath_transport::quic::Codepoint;
use polypath_transport::{Accept, CloseReason, Config, Event, Nanos, Tuple};

use crate::lane::Lane;
use crate::names::Names;
use crate::other_stack::{Departure, OtherConnection, OtherStack};
use crate::plan::Transport;

/// UDP's header, and IP's of either version.
const UDP_HEADERS: (u32, u32) = (20 + 8, 40 + 8);
/// Paths that noq has at a time over Multipath QUIC: as many as the other stack.
const NOQ_PATHS: NonZeroU32 = NonZeroU32::new(8).expect("above 0");

/// Why a host whose stack is noq cannot have an algorithm, if it cannot.
pub(crate) fn lacks(kind: &str, name: &str) -> Option<&'static str> {
    match (kind, name) {
        ("congestion", name) if noq::Congestion::by_name(name).is_some() => None,
        ("congestion", "bbr") => Some("its BBR is version 3, this is version 1"),
        ("congestion", _) => Some("it has none of that name"),
        ("path-manager", "ndiffports") => Some("it has one path between two addresses"),
        ("path-manager", "binder") => Some("it cannot steer a path through routers"),
        ("scheduler", _) => Some("it has one of its own, which cannot be replaced"),
        _ => None,
    }
}

/// noq as an end has it set.
///
/// # Errors
/// What noq cannot do.
pub(crate) fn make(
    config: &Config,
    transport: Transport,
    ipv6: bool,
) -> Result<Arc<dyn OtherStack>, String> {
    if !transport.is_quic() {
        return Err("noq speaks only QUIC".into());
    }
    let chosen = [
        ("congestion", &config.congestion),
        ("path-manager", &config.path_manager),
    ];
    for (kind, choice) in chosen {
        if let Some(reason) = lacks(kind, &choice.name) {
            return Err(format!("noq has no {kind} {}: {reason}", choice.name));
        }
    }
    let Some(congestion) = noq::Congestion::by_name(&config.congestion.name) else {
        return Err(format!("noq has no congestion {}", config.congestion.name));
    };
    let headers = if ipv6 { UDP_HEADERS.1 } else { UDP_HEADERS.0 };
    let longest = config.mtu.saturating_sub(headers);
    let longest = u16::try_from(longest).unwrap_or(u16::MAX);
    Ok(Arc::new(Settings {
        congestion,
        initial_window: config.initial_window,
        receive_window: config.receive_buffer.maximum,
        send_window: config.send_buffer.maximum,
        longest_datagram: longest.min(noq::LONGEST_DATAGRAM),
        paths: transport.is_multipath().then_some(NOQ_PATHS),
        keepalive: config.keepalive.map(|keepalive| keepalive.time),
        retry: config.retry,
        ack_frequency: config.ack_frequency,
        ..Settings::default()
    }))
}

impl Content for Names {
    fn fill(&self, stream: u64, offset: u64, bytes: &mut [u8]) {
        Self::fill(*self, stream, offset, bytes);
    }

    fn came(&mut self, stream: u64, offset: u64, bytes: &[u8]) {
        Self::came(*self, stream, offset, bytes);
    }
}

impl OtherStack for Settings {
    fn connect(
        &self,
        host: Accept,
        tuple: Tuple,
        names: Names,
        now: Nanos,
    ) -> Box<dyn OtherConnection> {
        Box::new(Connection::connect(self, host, tuple, Box::new(names), now))
    }

    fn accept(&self, host: Accept, tuple: Tuple, names: Names) -> Box<dyn OtherConnection> {
        Box::new(Connection::accept(self, host, tuple, Box::new(names)))
    }
}

/// Calls that noq's connection has under the same names.
macro_rules! same {
    ($($name:ident(&self $(, $value:ident: $type:ty)*) -> $given:ty;)*) => {$(
        fn $name(&self $(, $value: $type)*) -> $given {
            Connection::$name(self $(, $value)*)
        }
    )*};
    ($($name:ident(&mut self $(, $value:ident: $type:ty)*) $(-> $given:ty)?;)*) => {$(
        fn $name(&mut self $(, $value: $type)*) $(-> $given)? {
            Connection::$name(self $(, $value)*)
        }
    )*};
}

impl OtherConnection for Connection {
    fn receive(&mut self, tuple: Tuple, bytes: &[u8], ecn: Codepoint, now: Nanos) {
        Connection::receive(self, Arrival { tuple, bytes, ecn }, now);
    }

    fn departures(&mut self) -> Vec<Departure> {
        let departures = self.take().into_iter();
        let lanes = Connection::lanes(self);
        let lane = |tuple: Tuple| lanes.iter().position(|lane| lane.tuple == tuple);
        departures
            .map(|noq::Departure { tuple, bytes, ecn }| Departure {
                lane: lane(tuple).unwrap_or(0),
                tuple,
                bytes,
                ecn,
            })
            .collect()
    }

    fn events(&mut self) -> &mut Vec<Event> {
        Connection::events(self)
    }

    same! {
        take_secrets(&mut self) -> Vec<String>;
        take_arrivals(&mut self) -> Vec<(u64, u64)>;
        on_time(&mut self, now: Nanos);
        open(&mut self, bidirectional: bool) -> Option<u64>;
        write_to(&mut self, stream: u64, bytes: u64, now: Nanos);
        write_last(&mut self, stream: u64, bytes: u64, now: Nanos);
        set_priority(&mut self, stream: u64, priority: i32);
        finish(&mut self, stream: u64, now: Nanos);
        write(&mut self, bytes: u64, now: Nanos);
        cancel_writes(&mut self) -> u64;
        close(&mut self, now: Nanos);
        set_address_up(&mut self, address: IpAddr, up: bool, now: Nanos);
        set_backup(&mut self, address: IpAddr, backup: bool, now: Nanos);
        migrate(&mut self, from: IpAddr, to: IpAddr, now: Nanos);
    }

    same! {
        next_deadline(&self) -> Nanos;
        established(&self) -> bool;
        ended(&self) -> Option<CloseReason>;
        multipath(&self) -> bool;
        buffers(&self) -> (u64, u64);
        receive_window(&self) -> u64;
        send_queue(&self) -> (u64, u64);
        stream_at_end(&self, stream: u64) -> bool;
        at_end(&self) -> bool;
    }

    fn lanes(&self) -> usize {
        Connection::lanes(self).len()
    }

    fn path_id(&self, lane: usize) -> u64 {
        Connection::lanes(self)[lane].id()
    }

    fn lane(&self, lane: usize) -> Lane<'_> {
        let lane = &Connection::lanes(self)[lane];
        Lane {
            tuple: lane.tuple,
            path: &lane.path,
            state: lane.state(),
            totals: lane.totals,
            out_of_order_bytes: 0,
            backup: lane.backup,
            established_at: lane.established_at,
            closed_at: lane.closed_at,
        }
    }
}
