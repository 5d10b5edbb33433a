//! What carries an application's bytes: a connection of TCP or Multipath TCP, or one of QUIC.

use std::net::IpAddr;

use polypath_transport::{Blocked, CloseReason, Connection, Event, Nanos, Tuple};

use crate::lane::Lane;
use crate::quic::Quic;

// TCP's lies inline: it is looked at for every packet, and there are few of the other.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Carrier {
    Tcp(Connection),
    Quic(Box<Quic>),
}

/// Calls the same method of either.
macro_rules! either {
    ($self:expr, $connection:ident => $call:expr) => {
        match $self {
            Carrier::Tcp($connection) => $call,
            Carrier::Quic($connection) => $call,
        }
    };
}

impl Carrier {
    #[inline(always)]
    pub fn tcp(&self) -> Option<&Connection> {
        match self {
            Self::Tcp(connection) => Some(connection),
            Self::Quic(_) => None,
        }
    }

    #[inline(always)]
    pub fn tcp_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Self::Tcp(connection) => Some(connection),
            Self::Quic(_) => None,
        }
    }

    pub fn quic(&self) -> Option<&Quic> {
        match self {
            Self::Tcp(_) => None,
            Self::Quic(connection) => Some(connection),
        }
    }

    pub fn quic_mut(&mut self) -> Option<&mut Quic> {
        match self {
            Self::Tcp(_) => None,
            Self::Quic(connection) => Some(connection),
        }
    }

    pub fn write(&mut self, bytes: u64, now: Nanos) {
        either!(self, it => it.write(bytes, now));
    }

    pub fn close(&mut self, now: Nanos) {
        either!(self, it => it.close(now));
    }

    /// Ends both directions at once; over QUIC, where no application asks for it, as [`Self::close`] does.
    pub fn abort(&mut self, now: Nanos) {
        match self {
            Self::Tcp(it) => it.abort(now),
            Self::Quic(it) => it.close(now),
        }
    }

    pub fn cancel_writes(&mut self) -> u64 {
        either!(self, it => it.cancel_writes())
    }

    #[inline(always)]
    pub fn at_end(&self) -> bool {
        either!(self, it => it.at_end())
    }

    /// Whether its handshake is done; of TCP.
    pub fn established(&self) -> bool {
        self.tcp().is_some_and(Connection::established)
    }

    /// In-order bytes that were not read; those of QUIC are read as they come.
    pub fn available(&self) -> u64 {
        self.tcp().map_or(0, Connection::available)
    }

    pub fn ended(&self) -> Option<CloseReason> {
        either!(self, it => it.ended())
    }

    pub fn multipath(&self) -> bool {
        either!(self, it => it.multipath())
    }

    #[inline(always)]
    pub fn next_deadline(&self) -> Nanos {
        either!(self, it => it.next_deadline())
    }

    pub fn on_time(&mut self, now: Nanos) {
        either!(self, it => it.on_time(now));
    }

    #[inline(always)]
    pub fn events(&mut self) -> &mut Vec<Event> {
        either!(self, it => it.events())
    }

    pub fn set_address_up(&mut self, address: IpAddr, up: bool, now: Nanos) {
        either!(self, it => it.set_address_up(address, up, now));
    }

    pub fn set_backup(&mut self, address: IpAddr, backup: bool, now: Nanos) {
        either!(self, it => it.set_backup(address, backup, now));
    }

    /// Over QUIC there are no endpoints.
    pub fn set_fullmesh(&mut self, address: IpAddr, fullmesh: bool, now: Nanos) {
        if let Self::Tcp(connection) = self {
            connection.set_fullmesh(address, fullmesh, now);
        }
    }

    /// The path manager takes leave of an address that stays, as it does of one that goes away. Over QUIC there are no endpoints.
    pub fn set_endpoint(&mut self, address: IpAddr, endpoint: bool, now: Nanos) {
        if let Self::Tcp(connection) = self {
            // One that was flushed has not been told to be away.
            if endpoint {
                connection.set_address_up(address, false, now);
            }
            connection.set_address_up(address, endpoint, now);
        }
    }

    /// Over QUIC there are no endpoints.
    pub fn flush_endpoints(&mut self, of: &[IpAddr], now: Nanos) {
        if let Self::Tcp(connection) = self {
            connection.flush_endpoints(of, now);
        }
    }

    /// Moves paths of a client of QUIC from one of its addresses to another; no other has such.
    pub fn migrate(&mut self, from: IpAddr, to: IpAddr, now: Nanos) {
        if let Self::Quic(connection) = self {
            connection.migrate(from, to, now);
        }
    }

    pub fn buffers(&self) -> (u64, u64) {
        either!(self, it => it.buffers())
    }

    pub fn receive_window(&self) -> u64 {
        either!(self, it => it.receive_window())
    }

    pub fn reassembly_bytes(&self) -> u64 {
        either!(self, it => it.reassembly_bytes())
    }

    pub fn send_queue(&self) -> (u64, u64) {
        either!(self, it => it.send_queue())
    }

    /// How long received data waited, and what for; nothing where an end is a stack by others, which does not tell.
    pub fn blocked(&self, now: Nanos) -> Vec<Blocked> {
        match self {
            Self::Tcp(it) => it.blocked(now),
            Self::Quic(it) => it.blocked(now),
        }
    }

    /// Subflows or paths so far.
    pub fn lanes(&self) -> usize {
        match self {
            Self::Tcp(it) => it.subflows().len(),
            Self::Quic(it) => it.lanes(),
        }
    }

    pub fn tuple(&self, lane: usize) -> Tuple {
        match self {
            Self::Tcp(it) => it.subflows()[lane].tuple,
            Self::Quic(it) => it.tuple(lane),
        }
    }

    /// The routers that it is steered through.
    pub fn gateways(&self, lane: usize) -> Option<&[IpAddr]> {
        match self {
            Self::Tcp(it) => it.subflows().get(lane).map(|subflow| &*subflow.gateways),
            Self::Quic(it) => it.gateways(lane),
        }
    }

    pub fn lane(&self, lane: usize) -> Lane<'_> {
        match self {
            Self::Tcp(it) => {
                let subflow = &it.subflows()[lane];
                let socket = subflow.socket();
                Lane {
                    tuple: subflow.tuple,
                    path: &it.paths()[lane],
                    state: socket.state().name(),
                    totals: socket.totals(),
                    out_of_order_bytes: socket.out_of_order_bytes(),
                    backup: subflow.backup_local || subflow.backup_remote,
                    established_at: subflow.established_at,
                    closed_at: subflow.closed_at,
                }
            }
            Self::Quic(it) => it.lane(lane),
        }
    }
}
